"""Line and branch coverage of enforcer/: coverage.py BUILD. Run by `./dev coverage` after the tests of an instrumented build.

Prints a table, writes BUILD/coverage/index.html, and lists every line that no test reaches and every branch of the pure part
that none takes. docs/coverage.md explains them, a table row each: `file` | `the line` | why, or `file` | `condition` is never
true | why. Exit status 1: something is not explained, an explanation is no longer needed, or the goal is missed."""

import collections
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PURE = ("cursor.hpp", "text.hpp", "verify.cpp", "blob_view.hpp", "blob_view.cpp", "decide.hpp",
        "decide.cpp", "frame.hpp", "frame.cpp", "session.hpp", "session.cpp", "json.hpp", "fault.hpp", "verify.hpp")
NO_CODE = ()  # of the pure part
GOAL_OF_THE_REST = 95.0


def programs(build):
    found = [build / "enforcer/x0x-enforcer", build / "fuzz/fuzz-replay", build / "policyc/x0x-policyc"]
    found += [build / "tests" / name for name in ("reader-tests", "daemon-tests", "spawn-tests", "exhaustive-tests")]
    return [path for path in found if path.exists()]


def uncovered_lines(data):
    """Lines that have code of which nothing was run."""
    count = {}
    segments = data["segments"]
    for (line, _, runs, counted, *_), (end, *_) in zip(segments, segments[1:]):
        if not counted:
            continue
        for number in range(line, end + (1 if end == line else 0)):
            count[number] = max(count.get(number, 0), runs)
        if end > line:
            count.setdefault(end, runs)
    return [number for number, runs in sorted(count.items()) if runs == 0]


def branches_of(data):
    """{(line, column, end line, end column): (times true, times false)}; an instance of a template counts for all of them.
    What the compiler folded is no branch: it is neither, though its line is run."""
    taken = {}
    for *place, yes, no, _, _, _ in data["branches"]:
        before = taken.get(tuple(place), (0, 0))
        taken[tuple(place)] = (before[0] + yes, before[1] + no)
    return {place: counts for place, counts in taken.items() if any(counts)}


def never_taken(text, branches):
    """(line number, what is never so)"""
    for (line, column, end_line, end_column), counts in sorted(branches.items()):
        condition = "\n".join(text[line - 1:end_line])[column - 1:]
        condition = condition[:len(condition) - len(text[end_line - 1]) + end_column - 1]
        for count, side in zip(counts, ("true", "false")):
            if count == 0:
                yield line, f"`{' '.join(condition.split())}` is never {side}"


def explained():
    """(file, a line in backquotes or `condition` is never true|false)"""
    rows = re.findall(r"^\| `([^`]+)` \| (`.+?`(?: is never \w+)?) \|", (ROOT / "docs/coverage.md").read_text(), re.M)
    return {(name, what.replace("\\|", "|")) for name, what in rows}


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    profile = build / "coverage.profdata"
    subprocess.run(["llvm-profdata", "merge", "--failure-mode=all", "-o", profile, *sorted(build.glob("profiles/*.profraw"))], check=True)
    first, *others = programs(build)
    binaries = [first, *[f"-object={other}" for other in others]]
    sources = sorted(path for path in (ROOT / "enforcer").iterdir() if path.suffix in (".cpp", ".hpp"))
    subprocess.run(["llvm-cov", "show", "-format=html", f"-output-dir={build / 'coverage'}", "-show-branches=count",
                    f"-instr-profile={profile}", *binaries, *sources], check=True, stdout=subprocess.DEVNULL)
    export = subprocess.run(["llvm-cov", "export", f"-instr-profile={profile}", *binaries, *sources],
                            check=True, capture_output=True, text=True).stdout
    known, found, missed = explained(), [], []
    pure, rest = collections.Counter(), collections.Counter()
    print(f"{'':20} {'lines':>16} {'branches':>18}")
    files = {(build / data["filename"]).resolve(): data for data in json.loads(export)["data"][0]["files"]}
    missed += [f"{name}: not measured" for name in PURE if ROOT / "enforcer" / name not in files and name not in NO_CODE]
    for path, data in sorted(files.items(), key=lambda found: (found[0].name not in PURE, found[0].name)):
        if path.parent != ROOT / "enforcer":
            continue
        text, lines, branches = path.read_text().splitlines(), data["summary"]["lines"], branches_of(data)
        taken, count = sum(n > 0 for counts in branches.values() for n in counts), 2 * len(branches)
        print(f"{path.name:20} {lines['covered']:5}/{lines['count']:<5}{lines['percent']:5.1f} %"
              f" {taken:6}/{count:<5}{100 * taken / max(count, 1) if count else 100:5.1f} %"
              f"  {'pure' if path.name in PURE else ''}")
        total = pure if path.name in PURE else rest
        total.update(covered=lines["covered"], count=lines["count"], taken=taken, branches=count)
        bare = [(number, text[number - 1].strip()) for number in uncovered_lines(data)]
        found += [(path.name, number, f"`{line}`") for number, line in bare if line not in ("}", "{", "")]
        if path.name in PURE:
            found += [(path.name, *what) for what in never_taken(text, branches)]
    percent = 100 * rest["covered"] / max(rest["count"], 1)
    print(f"the pure part: {pure['covered']} of {pure['count']} lines, {pure['taken']} of {pure['branches']} branches\n"
          f"the rest: {percent:.1f} % of lines\nHTML: {build / 'coverage/index.html'}")
    if percent < GOAL_OF_THE_REST:
        missed.append(f"the rest: {percent:.1f} %, the goal is {GOAL_OF_THE_REST} %")
    unexplained = [what for what in found if (what[0], what[2]) not in known]
    for name, number, what in unexplained:
        print(f"not reached, not explained: enforcer/{name}:{number}: {what}")
    missed += [f"docs/coverage.md explains what is reached: {name}: {what}" for name, what in sorted(known - {(f[0], f[2]) for f in found})]
    for goal in missed:
        print(f"goal missed: {goal}")
    return 1 if unexplained or missed else 0


if __name__ == "__main__":
    sys.exit(main())
