"""Breaks the trusted base on purpose, one small change at a time, and sees whether the tests notice.

`./dev mutants [--file enforcer/decide.cpp] [--sample N] [--again]`. All mutants are in one build (build-mutants/, a copy of the
sources): a function that has any is given a body for each, and the environment says which one runs. What stands outside
of functions is left as it is, and a change that does not compile is no mutant. One that the tests do not notice is a survivor:
either a test is missing, or the change changes nothing, and then equivalent.txt, beside this script, says why. What was noticed
is remembered as long as the file stays as it is. Exit status 1: a survivor without a reason, or a reason without a survivor."""

import argparse
import collections
import concurrent.futures
import fcntl
import hashlib
import json
import os
import pathlib
import random
import re
import resource
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
READER, DAEMON = "tests/reader-tests", "tests/daemon-tests"
# The pure files, and the tests that must notice, the likeliest first.
FILES = {"enforcer/" + name: tests for name, tests in {
    "cursor.hpp": [READER, DAEMON], "text.hpp": [READER, DAEMON], "verify.cpp": [READER], "blob_view.cpp": [READER],
    "blob_view.hpp": [READER], "decide.cpp": [READER], "frame.cpp": [DAEMON], "frame.hpp": [DAEMON],
    "session.cpp": [DAEMON], "session.hpp": [DAEMON], "json.hpp": [DAEMON]}.items()}

CONDITION = r"((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*)"
# (name, pattern, replacement). Each match is one mutant.
CHANGES = [(name, re.compile(pattern, re.M), replacement) for name, pattern, replacement in [
    ("negated condition", r"\bif \(([^;()]*(?:\([^()]*\))?[^;()]*; )?" + CONDITION + r"\)", r"if (\1!(\2))"),
    ("less or equal", r"(?<=[\w\])]) < (?=[\w(&])", " <= "),
    ("less", r" <= ", " < "),
    ("greater or equal", r"(?<=[\w\])]) > (?=[\w(&])", " >= "),
    ("greater", r" >= ", " > "),
    ("not equal", r" == ", " != "),
    ("equal", r" != ", " == "),
    ("or", r" &&(?=\s)", " ||"),
    ("and", r" \|\|(?=\s)", " &&"),
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
]]

Mutant = collections.namedtuple("Mutant", "number path name start end text")  # text[start:end] of the file becomes `text`


def masked(text):
    """The same length, without what only looks like code: comments, preprocessor lines, strings, type declarations."""
    blank = lambda found: re.sub(r"[^\n]", " ", found[0])
    text = re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', lambda found: '"' * len(found[0]), text)
    return re.sub(r"//.*|^#.*|^ *(?:using|template|static_assert)\b.*", blank, text, flags=re.M)


def functions(code):
    """(where its head begins, begin and end of what stands between the braces) of each function; its lambdas belong to it."""
    open_at, begun, head_at = [], None, 0
    for at, c in ((m.start(), m[0]) for m in re.finditer(r"[{}]", code)):
        if c == "{":
            before = max(code.rfind(end, 0, at) for end in ";{}") + 1
            head = code[before:at]
            if begun is None and re.search(r"\)[\w\s]*$", head) and "=" not in head.split("(")[0]:
                begun, head_at = len(open_at), before
            open_at.append(at)
        else:
            start = open_at.pop()
            if begun == len(open_at):
                begun = None
                yield head_at, start + 1, at


def mutants_of(path, first):
    text = (ROOT / path).read_text()
    code, seen = masked(text), set()
    bodies = list(functions(code))
    for name, pattern, replacement in CHANGES:
        for found in pattern.finditer(code):
            group = lambda g: text[slice(*found.span(int(g[1])))]
            new = re.sub(r"\\(\d)", group, replacement)
            changed = text[:found.start()] + new + text[found.end():]
            inside = any(begin <= found.start() and found.end() <= end for _, begin, end in bodies)
            if inside and changed != text and changed not in seen:
                seen.add(changed)
                yield Mutant(first + len(seen) - 1, path, name, found.start(), found.end(), new)


def shown(mutant):
    """The lines that the change is in, before and after, each as one line."""
    text = (ROOT / mutant.path).read_text()
    begin, end = text.rfind("\n", 0, mutant.start + 1) + 1, (text + "\n").find("\n", mutant.end)
    before, after = " ".join(text[begin:end].split()), text[begin:mutant.start] + mutant.text + text[mutant.end:end]
    return text.count("\n", 0, begin) + 1, before, "without " + before if after.strip() == ";" else " ".join(after.split())


def with_all(path, mutants):
    """The file with a body for each mutant in its functions, and which mutant each line belongs to."""
    text = (ROOT / path).read_text()
    pieces, done = [], 0
    for head, begin, end in functions(masked(text)):
        mine = [m for m in mutants if begin <= m.start and m.end <= end]
        if mine:  # what is chosen at run time is no constant
            pieces.append((None, text[done:head] + text[head:begin].replace("constexpr", "inline")))
            for m in mine:
                pieces.append((m, f" if (x0x_mutant == {m.number}) {{{text[begin:m.start]}{m.text}{text[m.end:end]}\n}} else\n"))
            pieces.append((None, "{" + text[begin:end] + "}"))
            done = end
    pieces.append((None, text[done:]))
    lines = [None]
    for mutant, piece in pieces:
        lines += [mutant] * piece.count("\n")
    return '#include "mutant.hpp"\n' + "".join(piece for _, piece in pieces), lines


class Workshop:
    """A copy of the sources with a build of its own."""

    def __init__(self, directory):
        self.source, self.build = directory / "source", directory / "build"
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
        self.broken, self.plan = set(), {}
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).is_file() and name not in FILES:
                self.put(name, (ROOT / name).read_text(errors="surrogateescape"))
        self.put("mutant.hpp", '#pragma once\n#include <cstdlib>\ninline const int x0x_mutant = [] {\n'
                 '  const char* number = std::getenv("X0X_MUTANT");\n  return number == nullptr ? -1 : std::atoi(number);\n}();\n')

    def put(self, name, text):
        path = self.source / name
        if not path.exists() or path.read_text(errors="surrogateescape") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, errors="surrogateescape")
            shutil.copymode(ROOT / name, path) if (ROOT / name).exists() else None

    def make(self):
        """What the compiler says; empty: the tests are built."""
        if not (self.build / "build.ninja").exists():
            subprocess.run(["meson", "setup", self.build, self.source, "-Dtests=true", "-Ddebug=false", "-Doptimization=1",
                            "-Dcpp_args=-O1", "-Db_sanitize=address", "-Db_lundef=false", "-Dwerror=false", "-Dwarning_level=0"], check=True, stdout=subprocess.DEVNULL)
        made = subprocess.run(["ninja", "-k", "0", "-C", self.build, READER, DAEMON], capture_output=True, text=True)
        return made.stdout if made.returncode != 0 else ""

    def build_all(self, mutants):
        """Puts every mutant in that compiles."""
        while True:
            where = {}
            for path in FILES:
                text, lines = with_all(path, [m for m in mutants if m.path == path and m not in self.broken])
                self.put(path, text)
                where.update({(path, n): m for n, m in enumerate(lines, 1) if m})
            if not (errors := self.make()):
                return
            found = {where.get((path, int(line))) for path, line in re.findall(r"(enforcer/[\w.]+):(\d+):\d+: (?:fatal )?error", errors)}
            if not found - {None}:
                sys.exit(errors)
            self.broken |= found - {None}

    def run(self, test, number, *options, seconds=100):
        """What the tests say when they notice nothing."""
        try:
            # A mutant may loop forever, or take all memory, and that is noticed too; that the machine is busy is not.
            limit = round(3 * seconds + 5)
            done = subprocess.run([self.build / test, "--abort-after=1", *options], capture_output=True, text=True, errors="replace",
                                  env={**os.environ, "X0X_MUTANT": str(number), "ASAN_OPTIONS": "hard_rss_limit_mb=2000"},
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit)), timeout=10 * limit)
            return done.stdout if done.returncode == 0 else ""
        except subprocess.TimeoutExpired:
            return ""

    def clean_run(self):
        """How long the tests take. Those that take longer than all the others are left for last."""
        for test in (READER, DAEMON):
            times = re.findall(r"^([\d.]+) s: (.+)", self.run(test, -1, "--duration"), re.M)
            if not times:
                sys.exit(f"{test} fails without any mutant")
            slow = ",".join(name.replace(",", "?") for seconds, name in times if float(seconds) > 0.1)
            self.plan[test] = [(f"--test-case-exclude={slow}", sum(float(s) for s, _ in times if float(s) <= 0.1))]
            self.plan[test] += [(f"--test-case={slow}", sum(float(s) for s, _ in times if float(s) > 0.1))] if slow else []

    def passes(self, test, number):
        return all(self.run(test, number, which, seconds=seconds) for which, seconds in self.plan[test])

    def survives(self, mutant):
        return all(self.passes(test, mutant.number) for test in FILES[mutant.path])


def explained():
    """Survivors that change nothing: `file | the line after the change | why`, a line each."""
    reasons = {}
    for line in (ROOT / "tests/mutants/equivalent.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            (path, _, rest), why = line.rpartition(" | ")[0].partition(" | "), line.rpartition(" | ")[2]
            reasons[path, rest.strip()] = why
    return reasons


def main():
    parser = argparse.ArgumentParser(prog="./dev mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", action="append", choices=list(FILES), metavar="FILE", help=", ".join(FILES))
    parser.add_argument("--sample", type=int, help="this many mutants of each file, chosen at random")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--again", action="store_true", help="forget what was noticed before")
    parser.add_argument("--list", action="store_true", help="only say how many there are")
    given = parser.parse_args()

    directory = ROOT / "build-mutants"
    directory.mkdir(exist_ok=True)
    lock = open(directory / "lock", "w")  # one run at a time in one workshop
    fcntl.flock(lock, fcntl.LOCK_EX)
    mutants = []
    for path in given.file or FILES:
        of_file = list(mutants_of(path, len(mutants)))
        if given.sample and given.sample < len(of_file):
            of_file = random.Random(1).sample(of_file, given.sample)
        mutants += of_file
        if given.list:
            print(f"{path}: {len(of_file)}")
    if given.list:
        return 0

    memory = directory / "noticed.json"
    noticed = set(json.loads(memory.read_text())) if memory.exists() and not given.again else set()
    keys = {m: hashlib.sha256(repr([(ROOT / m.path).read_text(), m[1:]]).encode()).hexdigest() for m in mutants}
    workshop = Workshop(directory)
    workshop.build_all(mutants)
    workshop.clean_run()
    mutants = [m for m in mutants if m not in workshop.broken]
    to_try = [m for m in mutants if keys[m] not in noticed]
    print(f"{len(mutants)} mutants, and {len(workshop.broken)} that do not compile; {len(to_try)} to try; "
          f"the tests take {sum(s for plan in workshop.plan.values() for _, s in plan):.1f} s", flush=True)
    reasons, survivors, unexplained, started = explained(), set(), 0, time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        for tried, (mutant, survived) in enumerate(zip(to_try, pool.map(workshop.survives, to_try)), 1):
            number, before, after = shown(mutant)
            if not survived:
                noticed.add(keys[mutant])
                memory.write_text(json.dumps(sorted(noticed)))
            elif (mutant.path, after) not in reasons:
                unexplained += 1
                print(f"{mutant.path}:{number}: {mutant.name}\n  - {before}\n  + {after}", flush=True)
            else:
                survivors.add((mutant.path, after))
            if tried % 100 == 0:
                print(f"{tried} tried, {time.monotonic() - started:.0f} s", flush=True)
    stale = [] if given.file or given.sample else sorted(set(reasons) - survivors)
    for path, after in stale:
        print(f"equivalent.txt explains what is noticed or not there: {path} | {after}")
    explained_away = sum((m.path, shown(m)[2]) in survivors for m in to_try)
    print(f"{len(mutants)} mutants: {len(mutants) - explained_away - unexplained} noticed, {explained_away} explained, {unexplained} not noticed")
    return 1 if unexplained or stale else 0


if __name__ == "__main__":
    sys.exit(main())
