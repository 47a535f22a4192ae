"""What the enforcer keeps in memory: idle, and with sessions that print without end."""

import contextlib
import pathlib
import re
import time
import uuid

import report
import wire
from lab import AGENT, MACHINE

MIB = 1 << 20
SESSIONS = 32


def memory(lab):
    with lab.daemon():
        lab.samples("parallel", lab.socket)  # leaves a log of some MiB, as a node has when its enforcer starts again
    with lab.daemon() as process:
        idle = resident(process.pid)
        yield report.row("memory", "idle enforcer, resident", "–", ("at most", 3), [idle / MIB], unit="MiB")
        each, growth, reason = [], [], ""
        try:
            before, _ = proportional(process.pid)
            early, late = printing_sessions(lab, process.pid)
            each, growth = [(max(early, late) - before) / SESSIONS / MIB], [late / early]
        except PermissionError:
            reason = "only root may look at what an enforcer holds"
    yield report.row("memory", f"each of {SESSIONS} sessions printing without end", "–", ("at most", 2), each, reason, unit="MiB")
    yield report.row("memory", "their memory after 9 s", "after 3 s", ("at most", 1.1), growth, reason)


def resident(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) * 1024


def proportional(root):
    """Bytes of the enforcer and of what it started, shared pages counted once, and how many commands are alive: they are not ours."""
    parents, commands = {}, set()
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            name, rest = re.match(r"\d+ \((.*)\) (.*)", (entry / "stat").read_text(), re.S).groups()
            state, parent = rest.split()[:2]
            if state not in "ZX":
                parents[int(entry.name)] = int(parent)
                if name == "yes":
                    commands.add(int(entry.name))
    family = {root}
    while grown := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= grown
    total = 0
    for pid in family - commands:  # none of them may be missing, or out of sight
        total += int(re.search(r"^Pss:\s+(\d+)", pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M).group(1)) * 1024
    return total, len(family & commands)


def printing_sessions(lab, pid):
    """Every other front end reads what it is sent; the rest read nothing. Memory after 3 and after 9 seconds."""
    sessions = [(lab.connect(), uuid.uuid4()) for _ in range(SESSIONS)]
    taken = []
    for connection, name in sessions:
        connection.setblocking(False)
        connection.send(wire.exec_message(AGENT, MACHINE, wire.request_frame(name, ["yes"])))
    start, renewed = time.monotonic(), 0
    for wanted in (3, 9):
        while (now := time.monotonic() - start) < wanted:
            if now - renewed > 1.5:
                renewed = now
                for connection, name in sessions:
                    connection.send(wire.exec_message(AGENT, MACHINE, wire.frame(wire.LEASE_RENEW, name)))
            for connection, _ in sessions[::2]:
                with contextlib.suppress(BlockingIOError):
                    if connection.recv(MIB) == b"":
                        raise RuntimeError("the enforcer closed a connection")
        size, printing = proportional(pid)
        if printing != SESSIONS:
            raise RuntimeError(f"{printing} of {SESSIONS} sessions print after {wanted} s: their memory would say nothing")
        taken.append(size)
    for connection, _ in sessions:
        connection.close()
    return taken
