"""Breaks the trusted base on purpose, one small change at a time, and sees whether the unit tests notice.

`./dev mutants [--file enforcer/decide.cpp] [--sample N] [--seed N] [--again]`. Each change is made in a scratch copy of
the sources (build-mutants/), built and tested there. A change that does not build is no mutant. One that the tests do
not notice is a survivor: either a test is missing, or the change changes nothing, and then equivalent.txt, beside this
script, says why. Results are kept, so an interrupted run goes on where it was. Exit status 1: an unexplained survivor."""

import argparse
import fcntl
import hashlib
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
READER, DAEMON = "tests/reader-tests", "tests/daemon-tests"
# The pure files, and the tests that must notice.
FILES = {"enforcer/" + name: tests for name, tests in {
    "cursor.hpp": [READER, DAEMON], "text.hpp": [READER, DAEMON], "verify.cpp": [READER], "blob_view.cpp": [READER],
    "blob_view.hpp": [READER], "blob_validate.cpp": [READER], "decide.cpp": [READER], "frame.cpp": [DAEMON],
    "session.cpp": [DAEMON], "session.hpp": [DAEMON], "json.cpp": [DAEMON]}.items()}
TIMEOUT = 300  # seconds; a mutant may loop forever, and that is noticed too

# (name, pattern, replacement). Each match is one mutant.
CHANGES = [
    ("negated condition", r"\bif \(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)", r"if (!(\1))"),
    ("less or equal", r"(?<=[\w\])]) < (?=[\w(&])", " <= "),
    ("less", r" <= ", " < "),
    ("greater or equal", r"(?<=[\w\])]) > (?=[\w(&])", " >= "),
    ("greater", r" >= ", " > "),
    ("not equal", r" == ", " != "),
    ("equal", r" != ", " == "),
    ("or", r" && ", " || "),
    ("and", r" \|\| ", " && "),
    ("one more", r" \+ 1\b", " + 2"),
    ("one added", r"(?<=[\w)]) - 1\b", " - 0"),
    ("plus", r"(?<=[\w\])]) - (?=[\w(])(?!1\b)", " + "),
    ("minus", r"(?<=[\w\])]) \+ (?=[\w(])(?!1\b)", " - "),
    ("dropped check", r"^( +)return fail\(Fault::\w+\);", r"\1return true;"),
    ("dropped refusal", r"^( +)(?:if \(.*\) )?return (?:false|Fault::\w+);", r"\1;"),
    ("yes", r"\breturn false\b", "return true"),
    ("no", r"\breturn true\b", "return false"),
    ("dropped statement", r"^( +)(?!return|const|static|using|break|continue|if|for|while|switch|case|else)[\w\[\].>()*-]+ "
                          r"?(?:[+|-]?= .*|\(.*\));$", r"\1;"),
]


def mutants_of(path):
    """(line number, name, the line before, the line after)"""
    for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
        code = line.split("//")[0].rstrip()
        if not code.strip() or code.lstrip().startswith(("#", "using ", "template", "static_assert")):
            continue
        seen = set()
        for name, pattern, replacement in CHANGES:
            for match in re.finditer(pattern, code):
                changed = code[:match.start()] + match.expand(replacement) + code[match.end():]
                if changed != code and changed not in seen:
                    seen.add(changed)
                    yield number, name, line, changed


def explained():
    """Survivors that change nothing: `file | the line after the change | why`, a line each."""
    reasons = {}
    for line in (ROOT / "tests/mutants/equivalent.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            path, changed, why = (part.strip() for part in line.split(" | "))
            reasons[path, changed] = why
    return reasons


class Workshop:
    """A copy of the sources with a build of its own."""

    def __init__(self, directory):
        self.source, self.build = directory / "source", directory / "build"
        self.source.mkdir(parents=True, exist_ok=True)
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
        for name in filter(None, listed.split("\0")):
            here, there = ROOT / name, self.source / name
            if here.is_file() and not (there.exists() and there.read_bytes() == here.read_bytes()):
                there.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(here, there)
        if not (self.build / "build.ninja").exists():
            subprocess.run(["meson", "setup", self.build, self.source, "-Dtests=true", "-Ddebug=false", "-Doptimization=0",
                            "-Dwerror=false"],
                           check=True, stdout=subprocess.DEVNULL)
        self.make([READER, DAEMON], check=True)

    def make(self, targets, check=False):
        return subprocess.run(["ninja", "-C", self.build, "--quiet", *targets], capture_output=True, check=check).returncode == 0

    def passes(self, tests):
        for test in tests:
            try:
                if subprocess.run([self.build / test, "--abort-after=1"], capture_output=True, timeout=TIMEOUT).returncode != 0:
                    return False
            except subprocess.TimeoutExpired:
                return False
        return True

    def verdict(self, path, number, changed):
        file = self.source / path
        original = file.read_text()
        lines = original.splitlines(keepends=True)
        lines[number - 1] = changed + "\n"
        try:
            file.write_text("".join(lines))
            if not self.make(FILES[path]):
                return "does not build"
            return "survived" if self.passes(FILES[path]) else "noticed"
        finally:
            file.write_text(original)


def main():
    parser = argparse.ArgumentParser(prog="./dev mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", action="append", choices=list(FILES), metavar="FILE", help=", ".join(FILES))
    parser.add_argument("--sample", type=int, help="this many mutants of each file, chosen at random")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--again", action="store_true", help="forget earlier results")
    parser.add_argument("--list", action="store_true", help="only say how many there are")
    given = parser.parse_args()

    directory = ROOT / "build-mutants"
    directory.mkdir(exist_ok=True)
    lock = open(directory / "lock", "w")  # one run at a time in one workshop
    fcntl.flock(lock, fcntl.LOCK_EX)
    results_file = directory / "results.json"
    results = json.loads(results_file.read_text()) if results_file.exists() and not given.again else {}
    reasons = explained()
    workshop = None if given.list else Workshop(directory)
    if workshop and not workshop.passes([READER, DAEMON]):
        sys.exit("the tests fail without any mutant")
    counts, unexplained = {}, []
    for path in given.file or FILES:
        mutants = list(mutants_of(path))
        if given.sample and given.sample < len(mutants):
            mutants = sorted(random.Random(given.seed).sample(mutants, given.sample))
        if given.list:
            print(f"{path}: {len(mutants)}")
            continue
        content = (ROOT / path).read_text()
        for number, name, before, changed in mutants:
            key = hashlib.sha256("\0".join([path, content, str(number), changed]).encode()).hexdigest()
            if key not in results:
                results[key] = workshop.verdict(path, number, changed)
                results_file.write_text(json.dumps(results))
            verdict = results[key]
            if verdict == "survived" and (path, changed.strip()) in reasons:
                verdict = "explained"
            counts[verdict] = counts.get(verdict, 0) + 1
            if verdict == "survived":
                unexplained.append((path, number, name, before, changed))
                print(f"{path}:{number}: {name}\n  - {before.strip()}\n  + {changed.strip()}", flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
