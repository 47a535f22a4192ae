"""Runs fuzz targets with libFuzzer: `./dev fuzz TARGET|all [--minutes N]`, `./dev fuzz --minimise [TARGET]`.

What a campaign finds worth keeping grows in build-fuzz/corpus/TARGET/ and is used again by the next one. --minimise takes
over into corpus/fuzz/TARGET/ what reaches code that nothing there reaches yet. An input that fails is saved there
too: `./dev test` replays it from then on. Give it a name that says what went wrong."""

import argparse
import pathlib
import re
import resource
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD, CORPUS = ROOT / "build-fuzz", ROOT / "corpus/fuzz"
TARGETS = {name: int(size) for name, size in re.findall(r"^ +T\((\w+), (\d+)\)", (ROOT / "fuzz/target.hpp").read_text(), re.M)}
STATUS = re.compile(r"#(\d+)\s.*cov: (\d+) ft: (\d+) corp: (\d+).*?(?:exec/s: (\d+))?")


def seeds(target):
    """Directories to start from, the growing one first."""
    grown, given = BUILD / "corpus" / target, CORPUS / target
    for directory in (grown, given):
        directory.mkdir(parents=True, exist_ok=True)
    return [grown, given] + ([ROOT / "corpus/policies"] if target == "policy_toml" else [])


def libfuzzer(target, *options):
    dictionary = ROOT / "fuzz" / f"{target}.dict"
    words = [f"-dict={dictionary}"] if dictionary.exists() else []
    return [BUILD / "fuzz" / f"fuzz-{target}", f"-max_len={TARGETS[target]}", "-timeout=20", "-rss_limit_mb=2048", *words, *options]


def cpu_minutes():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) / 60


def fuzz(target, minutes):
    """True: nothing was found."""
    artifacts = BUILD / "artifacts" / target
    artifacts.mkdir(parents=True, exist_ok=True)
    before, started, shown = set(artifacts.iterdir()), time.monotonic(), 0.0
    process = subprocess.Popen(
        libfuzzer(target, f"-max_total_time={max(1, round(minutes * 60))}", f"-artifact_prefix={artifacts}/",
                  "-print_final_stats=1", *seeds(target)),
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, errors="replace", cwd=BUILD)
    tail, cpu = [], cpu_minutes()
    for line in process.stderr:
        tail = (tail + [line])[-60:]
        found, elapsed = STATUS.match(line), time.monotonic() - started
        if found and (elapsed - shown > 10 or "DONE" in line or "INITED" in line):
            runs, edges, features, corpus, _ = found.groups()
            print(f"{target:14} {elapsed:6.0f} s  {int(runs):>11,} runs  {round(int(runs) / max(elapsed, 1)):>8,}/s  "
                  f"{edges:>6} edges  {features:>6} features  {corpus:>5} inputs", flush=True)
            shown = elapsed
    status = process.wait()
    print(f"{target:14} {cpu_minutes() - cpu:6.1f} minutes of processor time", flush=True)
    if status == 0:
        return True
    sys.stderr.writelines(tail)
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


def main():
    parser = argparse.ArgumentParser(prog="./dev fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", nargs="?", choices=[*TARGETS, "all"], metavar="TARGET", help=f"all, {', '.join(TARGETS)}")
    parser.add_argument("--minutes", type=float, default=5, help="for each target (default: 5)")
    parser.add_argument("--minimise", action="store_true", help="keep in corpus/ what adds coverage")
    parser.add_argument("--replay", metavar="FILE", type=pathlib.Path, help="run one input and show what happens")
    given = parser.parse_args()
    if given.target is None and not given.minimise:
        parser.error("say which target, or all")
    targets = list(TARGETS) if given.target in (None, "all") else [given.target]
    if given.replay:
        return max(subprocess.run([*libfuzzer(target), given.replay]).returncode for target in targets)
    if given.minimise:
        for target in targets:
            minimise(target)
        return 0
    return 0 if all([fuzz(target, given.minutes) for target in targets]) else 1


if __name__ == "__main__":
    sys.exit(main())
