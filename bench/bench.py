#!/usr/bin/env python3
"""Measures x0x-policy against what its users would pick instead.

  ./dev bench [PART …] [--json FILE]  measure
  ./dev bench --docs                  measure everything, then write docs/performance.{json,svg,md}
  ./dev bench --render [--check]      write the document again from docs/performance.json, or only compare

A row is a ratio, taken in one run: both sides in turn, round after round, and the median of the rounds' ratios with the middle
half beside it. So a noisy machine hurts both sides, as alike as taking turns can make it (docs/performance.md says where it does not),
and no row depends on how fast the machine is. What cannot be measured here is shown as not measured, never as met. `./dev bench` builds what this needs and installs the peers.

Exit status: 0 all goals met, or the document is what it should be; 1 a goal missed, or the document is not; 2 could not measure, or
usage; 130 interrupted; 128 + n ended by signal n. Whatever it is, nothing is left running or lying about.
"""

import argparse
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests/e2e"))  # wire.py: the frames

import counts
import memory
import report
from lab import STREAM, Lab, NotMeasured

SIZES = {"17": "17 commands", "1000x20": "1,000 pairs × 20", "10000x10": "10,000 pairs × 10", "1x100000": "1 pair × 100,000"}


def ratios(above, below):
    return [a / b for a, b in zip(above, below)]


def nanoseconds(samples):
    value = report.statistics.median(samples)
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g} ns"


def compared(part, what, against, goal, ours, theirs):
    """A row of two series of times; `at least` means how many times faster we are, anything else how many times slower."""
    samples = ratios(theirs, ours) if goal and goal[0] == "at least" else ratios(ours, theirs)
    return report.row(part, what, against, goal, samples, ours=nanoseconds(ours), theirs=nanoseconds(theirs))


# ---- the parts: each yields rows

def decide(lab):
    taken = lab.samples("decide")
    for (size, name), times in zip(SIZES.items(), (2, 10, 100, 20000)):
        yield compared("decide", f"decision, {name}", "linear scan", ("at least", times), taken[f"ours {size}"], taken[f"scan {size}"])
    yield compared("decide", "decision, 1,000,000 commands", "decision, 17 commands", ("at most", 2), taken["ours million"], taken["ours 17"])
    yield compared("decide", "the same, requests in random order", "decision, 17 commands", None, taken["cold million"], taken["cold 17"])
    yield compared("decide", "decision, 17 commands", "hash of the pair, compare of argv", ("at most", 3), taken["ours 17"], taken["floor"])


def load(lab):
    _, table = lab.large_table()
    taken = lab.samples("load", table, lab.trust, *lab.enforcer_words(table, lab.scratch / "ready.socket"))
    yield compared("load", "load of 100,000 commands", "BLAKE2b-512 and one Ed25519 verification", ("at most", 1.5),
                   taken["load"], taken["hash and verify"])
    yield compared("load", "start to ready, 100,000 commands", "its load time", ("at most", 3), taken["ready"], taken["load on the wall"])


def compile(lab):
    source, table = lab.large_table()
    taken = lab.commands(9, ours=lab.compile_words(source, table), toml=[str(lab.toml_parse), str(source)])
    yield compared("compile", "compile of 100,000 commands", "toml++ parsing the file", ("at most", 3), taken["ours cpu"], taken["toml cpu"])


def session(lab):
    with lab.daemon():
        taken = lab.samples("session", lab.socket, lab.scratch / "bare.log")
    yield compared("session", "run of `true`, warm connection, durable", "posix_spawn and two fdatasync", ("at most", 1.3),
                   taken["ours"], taken["bare"])


def commands(lab):
    peers, missing = {}, {}
    with contextlib.ExitStack() as stack:
        stack.enter_context(lab.daemon())
        for name, start in (("sudo", lab.sudo), ("doas", lab.doas), ("ssh", lab.ssh)):
            try:
                peers[name] = stack.enter_context(start())
            except NotMeasured as reason:
                missing[name] = str(reason)
        taken = lab.commands(60, ours=[str(lab.client), "--", "true"], **peers)
    for name, words, times in (("sudo", "sudo -n true", 2), ("doas", "doas -n true", 1), ("ssh", "ssh localhost true, multiplexed", 1)):
        if name in peers:
            yield compared("commands", "`x0x-exec -- true`", words, ("at least", times), taken["ours"], taken[name])
        else:
            yield report.row("commands", "`x0x-exec -- true`", words, ("at least", times), reason=missing[name])


def parallel(lab):
    with lab.daemon():
        taken = lab.samples("parallel", lab.socket)
    yield report.row("parallel", "32 sessions at once, runs per second", "bare spawn loop", ("at least", 0.8), ratios(taken["ours"], taken["bare"]),
                     ours=f"{report.statistics.median(taken['ours']):,.0f}/s", theirs=f"{report.statistics.median(taken['bare']):,.0f}/s")


def stream(lab):
    with lab.daemon():
        taken = lab.commands(7, ours=[str(lab.client), "--", *STREAM], cat=["sh", "-c", " ".join(STREAM) + " | cat"])
    yield compared("stream", "1 GiB of stdout", "a pipe and `cat`", ("at least", 0.5), taken["ours"], taken["cat"])


PARTS = {part.__name__: part for part in (decide, load, compile, session, commands, parallel, stream, memory.memory, counts.instructions,
                                          counts.syscalls, counts.bytes)}


def go_first(wanted):
    """Both sides inherit it: whatever else the machine is doing waits. Where that is not allowed they share it, alike. Says which."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR if wanted else os.SCHED_OTHER, os.sched_param(1 if wanted else 0))
    except OSError:
        return False
    return wanted


def measure(lab, names):
    rows = []
    for name in names:
        print(f"measuring: {name}", file=sys.stderr, flush=True)
        go_first(name != "memory")  # which keeps every core busy for seconds, and is not timed
        rows += PARTS[name](lab)
    return rows


def parse(arguments):
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     allow_abbrev=False)
    parser.add_argument("parts", nargs="*", metavar="PART", help=" ".join(PARTS))
    parser.add_argument("--json", metavar="FILE", help="write the figures")
    parser.add_argument("--docs", action="store_true", help="write docs/performance.{json,svg,md}")
    parser.add_argument("--render", action="store_true", help="write the document from docs/performance.json")
    parser.add_argument("--check", action="store_true", help="with --render: compare only")
    parser.add_argument("--build", default=ROOT / "build", help="build directory with the programs")
    options = parser.parse_args(arguments)
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"unknown part `{unknown[0]}`; there are: {' '.join(PARTS)}")
    if options.docs and options.parts:
        parser.error("--docs needs all parts")
    if options.check and not options.render:
        parser.error("--check needs --render")
    if options.render and (options.parts or options.docs or options.json):
        parser.error("--render measures nothing: no parts, no --docs and no --json with it")
    return options


def end(number, _):
    """As an exception, so that every context manager cleans up; once, so that none is interrupted in it."""
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, signal.SIG_IGN)
    raise SystemExit(128 + number)


def run(options):
    if options.render:
        return report.render(ROOT, options.check)
    with contextlib.ExitStack() as stack:
        # Opened now: a name that cannot be written is known before minutes of measuring, not after.
        output = stack.enter_context(open(options.json, "w")) if options.json else None
        lab = stack.enter_context(Lab(options.build))
        results = {"machine": report.machine(lab.scratch, go_first(True)), "command": " ".join(["./dev bench", *sys.argv[1:]])}
        results["rows"] = measure(lab, options.parts or PARTS)
        text = json.dumps(results, indent=1, ensure_ascii=False) + "\n"
        if output:
            output.write(text)
    print(report.table(results["rows"]))
    if options.docs:
        (ROOT / "docs/performance.json").write_text(text)
        report.render(ROOT)
    return 1 if any(row["verdict"] == report.MISSED for row in results["rows"]) else 0


def main():
    options = parse(sys.argv[1:])
    for ending in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(ending) != signal.SIG_IGN:  # as under nohup
            signal.signal(ending, end)
    try:
        return run(options)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except (OSError, RuntimeError, subprocess.SubprocessError) as failure:
        print("bench: " + " ".join(str(failure).split()), file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
