"""Line and branch coverage of enforcer/: coverage.py BUILD. Run by `./dev coverage` after the tests of an instrumented build.

Prints a table, writes BUILD/coverage/index.html, and lists every line that no test reaches. docs/coverage.md explains
such lines, a table row each: `file` | `the line` | why. Exit status 1: a line is not explained, or the goal is missed."""

import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PURE = ("cursor.hpp", "text.hpp", "verify.cpp", "blob_view.hpp", "blob_view.cpp", "blob_validate.cpp", "decide.hpp",
        "decide.cpp", "frame.hpp", "frame.cpp", "session.hpp", "session.cpp", "json.hpp", "json.cpp", "fault.hpp", "verify.hpp")
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


def explained():
    rows = re.findall(r"^\| `([^`]+)` \| `(.+?)` \|", (ROOT / "docs/coverage.md").read_text(), re.M)
    return {(name, line.replace("\\|", "|")) for name, line in rows}


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
    known, unexplained, missed = explained(), [], []
    rest = {"covered": 0, "count": 0}
    print(f"{'':20} {'lines':>16} {'branches':>18}")
    files = {(build / data["filename"]).resolve(): data for data in json.loads(export)["data"][0]["files"]}
    for path, data in sorted(files.items(), key=lambda found: (found[0].name not in PURE, found[0].name)):
        if path.parent != ROOT / "enforcer":
            continue
        lines, branches = data["summary"]["lines"], data["summary"]["branches"]
        print(f"{path.name:20} {lines['covered']:5}/{lines['count']:<5}{lines['percent']:5.1f} %"
              f" {branches['covered']:6}/{branches['count']:<5}{branches['percent'] if branches['count'] else 100:5.1f} %"
              f"  {'pure' if path.name in PURE else ''}")
        text = path.read_text().splitlines()
        bare = [(path.name, number, text[number - 1].strip()) for number in uncovered_lines(data)]
        unexplained += [line for line in bare if (line[0], line[2]) not in known and line[2] not in ("}", "{", "")]
        if path.name in PURE:
            missed += [f"{path.name}: a line of the pure part"] if lines["covered"] < lines["count"] else []
        else:
            rest = {key: rest[key] + lines[key] for key in rest}
    percent = 100 * rest["covered"] / max(rest["count"], 1)
    print(f"outside the pure part: {percent:.1f} % of lines\nHTML: {build / 'coverage/index.html'}")
    if percent < GOAL_OF_THE_REST:
        missed.append(f"the rest: {percent:.1f} %, the goal is {GOAL_OF_THE_REST} %")
    for name, number, line in unexplained:
        print(f"not reached, not explained: enforcer/{name}:{number}: {line}")
    for goal in missed:
        print(f"goal missed: {goal}")
    return 1 if unexplained or missed else 0


if __name__ == "__main__":
    sys.exit(main())
