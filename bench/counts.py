"""What is counted, not timed: the same on every machine, so these parts are tests as well."""

import collections
import os
import re
import subprocess
import uuid

import report
import wire
from lab import AGENT, MACHINE, NotMeasured

SYSCALLS = 80  # a ceiling against creeping growth; a sanitised enforcer makes a few more than a release


def instructions(lab):
    """Of one decision, by callgrind."""
    def count(size):
        counted = subprocess.run(["valgrind", "--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file=/dev/null", lab.decisions,
                                  "run", size, lab.scratch], capture_output=True, text=True, timeout=280)
        if counted.returncode != 0:
            raise RuntimeError(f"decisions: exit status {counted.returncode}\n{counted.stderr}")
        return int(re.search(r"Collected : (\d+)", counted.stderr).group(1)) / int(re.search(r"(\d+) decisions", counted.stdout).group(1))

    try:
        subprocess.run(["valgrind", "--version"], capture_output=True, check=True)
    except FileNotFoundError:
        yield report.row("instructions", "instructions of a decision", "–", ("at most", 1.5), reason="valgrind is not installed")
        return
    lab.call(lab.decisions, "make", lab.scratch, timeout=200)
    small = count("17")
    if small < 50:
        raise RuntimeError(f"{small} instructions a decision: the counter did not count")
    for size, name in (("10000x10", "10,000 pairs × 10"), ("1x100000", "1 pair × 100,000"), ("million", "1,000,000 commands")):
        many = count(size)
        yield report.row("instructions", f"instructions of a decision, {name}", "17 commands", ("at most", 1.5), [many / small],
                         ours=f"{many:.0f}", theirs=f"{small:.0f}")


def syscalls(lab):
    """Of one session, by strace: the enforcer's own and those of the child until it becomes the program."""
    few, many = 10, 30
    try:
        calls = traced(lab, many)
        calls.subtract(traced(lab, few))
    except FileNotFoundError:
        yield report.row("syscalls", "system calls of a session", "–", ("at most", SYSCALLS), reason="strace is not installed", unit="")
        return
    except NotMeasured as reason:
        yield report.row("syscalls", "system calls of a session", "–", ("at most", SYSCALLS), reason=str(reason), unit="")
        return
    each = {name: round(count / (many - few), 1) for name, count in calls.most_common() if count >= many - few}
    yield report.row("syscalls", "system calls of a session", "–", ("at most", SYSCALLS), [sum(calls.values()) / (many - few)], unit="",
                     detail=", ".join(f"{name} {count:g}" for name, count in each.items()))


def traced(lab, sessions):
    """System calls by name, of an enforcer that runs `true` this many times, from start to stop."""
    log = lab.scratch / "strace"
    tried = subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, text=True)
    if tried.returncode != 0:
        raise NotMeasured(f"strace may not run here: {tried.stderr.strip()}")
    # Sanitizers cannot look for leaks while they are traced.
    lab.environment["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
    with lab.daemon(["strace", "-D", "-f", "-qq", "-e", "signal=none", "-o", log]), lab.connect() as connection:
        received = b""
        for _ in range(sessions):
            connection.sendall(wire.exec_message(AGENT, MACHINE, wire.request_frame(uuid.uuid4(), ["true"])))
            ended = False
            while not ended:
                received += connection.recv(65536)
                while len(received) >= 4 and len(received) >= 4 + (size := int.from_bytes(received[:4], "little")):
                    ended |= isinstance(wire.decode(received[4:4 + size])[1], wire.Exit)
                    received = received[4 + size:]
    calls, programs = collections.Counter(), set()
    for line in log.read_text().splitlines():
        found = re.match(r"(\d+) +(\w+)\(", line)
        if found is None or found[1] in programs:
            continue
        calls[found[2]] += 1
        if found[2] in ("execve", "execveat") and "enforcer" not in line and not re.search(r"= -1 ", line):
            programs.add(found[1])
    return calls


def bytes(lab):
    """Of a table, for each of its commands."""
    source, table = lab.large_table()
    text, size = source.stat().st_size / 100_000, table.stat().st_size / 100_000
    yield report.row("bytes", "bytes of table for a command", "bytes of TOML", ("at most", 2), [size / text], ours=f"{size:.0f}", theirs=f"{text:.0f}")
