"""Runs fuzz targets with libFuzzer: `./dev fuzz TARGET|all [--minutes N]`, `./dev fuzz --minimise [TARGET]`.

Minutes are of processor time, so that a busy machine does not make a campaign smaller than it says. What was run is noted in
build-fuzz/campaign.jsonl; `./dev fuzz --report` adds it up. What a campaign finds worth keeping grows in build-fuzz/corpus/TARGET/ and is used again by the next one. --minimise takes
over into corpus/fuzz/TARGET/ what reaches code that nothing there reaches yet. An input that fails is saved there
too: `./dev test` replays it from then on. Give it a name that says what went wrong."""

import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD, CORPUS = ROOT / "build-fuzz", ROOT / "corpus/fuzz"
TARGETS = {name: int(size) for name, size in re.findall(r"^ +T\((\w+), (\d+)\)", (ROOT / "fuzz/target.hpp").read_text(), re.M)}
STATUS = re.compile(r"#(\d+)\s.*cov: (\d+) ft: (\d+) corp: (\d+)")
RECORD = BUILD / "campaign.jsonl"


def seeds(target):
    """Directories to start from, the growing one first."""
    grown, given = BUILD / "corpus" / target, CORPUS / target
    for directory in (grown, given):
        directory.mkdir(parents=True, exist_ok=True)
    return [grown, given] + ([ROOT / "corpus/policies"] if target == "policy_toml" else [])


def libfuzzer(target, *options):
    dictionary = ROOT / "fuzz" / f"{target}.dict"
    words = [f"-dict={dictionary}"] if dictionary.exists() else []
    # libFuzzer's timeout is of time on the wall, so a busy machine must not look like a slow input.
    return [BUILD / "fuzz" / f"fuzz-{target}", f"-max_len={TARGETS[target]}", "-timeout=300", "-rss_limit_mb=2048", *words, *options]


class Progress:
    """What libFuzzer says while it runs, line by line."""

    def __init__(self, stream):
        self.stream, self.tail, self.runs, self.edges, self.features, self.inputs = stream, [], 0, 0, 0, 0

    def follow(self):
        for line in self.stream:
            self.tail = (self.tail + [line])[-60:]
            if found := STATUS.match(line):
                self.runs, self.edges, self.features, self.inputs = map(int, found.groups())
            elif line.startswith("stat::number_of_executed_units:"):
                self.runs = int(line.split()[1])

    def show(self, target, cpu):
        print(f"{target:14} {cpu / 60:6.1f} CPU minutes  {self.runs:>11,} runs  {self.edges:>6} edges  {self.features:>6} features  "
              f"{self.inputs:>5} inputs", flush=True)


def cpu_seconds(pid):
    user, system = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def fuzz(target, minutes):
    """True: nothing was found."""
    artifacts = BUILD / "artifacts" / target
    artifacts.mkdir(parents=True, exist_ok=True)
    before, started = set(artifacts.iterdir()), time.time()
    process = subprocess.Popen(libfuzzer(target, f"-artifact_prefix={artifacts}/", "-print_final_stats=1", *seeds(target)),
                               stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, errors="replace", cwd=BUILD)
    progress = Progress(process.stderr)
    reader = threading.Thread(target=progress.follow)
    reader.start()
    stop, seconds = False, 0
    while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        try:
            time.sleep(1)
            if not stop and cpu_seconds(process.pid) >= minutes * 60:
                os.kill(process.pid, signal.SIGUSR1)  # libFuzzer ends after the input at hand
            if (seconds := seconds + 1) % 15 == 0:
                progress.show(target, cpu_seconds(process.pid))
        except KeyboardInterrupt:
            os.kill(process.pid, signal.SIGUSR1)
            stop = True
    cpu, status = cpu_seconds(process.pid), process.wait()
    reader.join()
    progress.show(target, cpu)
    with RECORD.open("a") as record:
        print(json.dumps({"target": target, "started": round(started), "runs": progress.runs, "edges": progress.edges,
                          "cpu_seconds": round(cpu, 1), "status": status}), file=record)
    if stop:
        raise KeyboardInterrupt
    if status == 0:
        return True
    sys.stderr.writelines(progress.tail)
    for artifact in sorted(set(artifacts.iterdir()) - before):
        saved = CORPUS / target / artifact.name
        saved.write_bytes(artifact.read_bytes())
        print(f"{target}: failed. Replay: ./dev fuzz {target} --replay {saved.relative_to(ROOT)}", file=sys.stderr)
    return False


def minimise(target):
    grown, given = seeds(target)[:2]
    subprocess.run(libfuzzer(target, "-set_cover_merge=1", given, grown), stderr=subprocess.DEVNULL, check=True, cwd=BUILD)
    for path in given.iterdir():  # libFuzzer names what it adds by its digest
        path.chmod(0o644)
    print(f"{target:14} {len(list(given.iterdir())):5} inputs, {sum(p.stat().st_size for p in given.iterdir()):8} bytes")


def report():
    """The table of docs/fuzzing.md: everything that campaign.jsonl notes, target by target."""
    runs = [json.loads(line) for line in RECORD.read_text().splitlines()] if RECORD.exists() else []
    print("| target | inputs run | edges | minutes of processor time |\n|---|---|---|---|")
    for target in TARGETS:
        of = [run for run in runs if run["target"] == target]
        print(f"| `{target}` | {sum(run['runs'] for run in of):,} | {max((run['edges'] for run in of), default=0):,} | "
              f"{sum(run['cpu_seconds'] for run in of) / 60:.1f} |")


def main():
    parser = argparse.ArgumentParser(prog="./dev fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", nargs="?", choices=[*TARGETS, "all"], metavar="TARGET", help=f"all, {', '.join(TARGETS)}")
    parser.add_argument("--minutes", type=float, default=5, help="of processor time, for each target (default: 5)")
    parser.add_argument("--minimise", action="store_true", help="keep in corpus/ what adds coverage")
    parser.add_argument("--report", action="store_true", help="what was run so far, as a table")
    parser.add_argument("--replay", metavar="FILE", type=pathlib.Path, help="run one input and show what happens")
    given = parser.parse_args()
    if given.report:
        return report()
    if given.target is None and not given.minimise:
        parser.error("say which target, or all")
    targets = list(TARGETS) if given.target in (None, "all") else [given.target]
    if given.replay:
        return max(subprocess.run([*libfuzzer(target), given.replay]).returncode for target in targets)
    if given.minimise:
        for target in targets:
            minimise(target)
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return 0 if all([fuzz(target, given.minutes) for target in targets]) else 1
    except KeyboardInterrupt:  # what was run is noted
        return 130


if __name__ == "__main__":
    sys.exit(main())
