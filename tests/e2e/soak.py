"""Twenty thousand sessions of every kind over fifty connections, against release programs: soak.py [SESSIONS]

Front ends hang up, cancel, talk nonsense and come back. In the end the enforcer must be as it was when it had warmed up,
in memory, descriptors, children and sessions, and its log must hold every request exactly once, with its end."""

import collections
import json
import os
import pathlib
import random
import select
import sys
import time

os.environ.setdefault("X0X_BUILD", str(pathlib.Path(__file__).resolve().parents[2] / "build"))

import wire
from connection import Breakable
from harness import POLICYC, Node, run, wait_until

SESSIONS = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
CONNECTIONS, AT_ONCE = 50, 4  # each
CHECKS = 10                   # how often everything is let go of, and looked at; the first is the warm-up
RSS_SLACK_KIB = 256           # 15 bytes for each session
# Without these the allocator keeps what was freed, and a leak could hide in it.
GIVE_BACK = {"MALLOC_MMAP_THRESHOLD_": "16384", "MALLOC_TRIM_THRESHOLD_": "16384", "MALLOC_TOP_PAD_": "0"}
AGENTS = [f"{number:02x}" * 32 for number in range(1, 6)]
CAP = 100_000


class Kind:
    """A request, how often it is asked for, and what must come of it."""

    def __init__(self, weight, argv, check, cancel=False, **more):
        self.weight, self.argv, self.check, self.cancel, self.more = weight, argv, check, cancel, more


def ran(**fields):
    return lambda s: s.exit.denial is None and all(getattr(s.exit, key) == value for key, value in fields.items())


def denied(reason):
    return lambda s: s.exit.denial == reason


INPUT = random.Random(1).randbytes(50_000)
KINDS = {
    "allowed": Kind(30, ["true"], ran(code=0, stdout_bytes=0)),
    "failing": Kind(5, ["false"], ran(code=1)),
    "output": Kind(20, ["echo", "42"], lambda s: ran(code=0)(s) and s.stdout == b"42\n"),
    "stdin": Kind(10, ["cat"], lambda s: ran(code=0)(s) and s.stdout == INPUT, stdin=INPUT),
    "big output": Kind(5, ["head", "-c", "90000", "/dev/zero"], ran(code=0, stdout_bytes=90_000, truncated=False)),
    "cut output": Kind(5, ["head", "-c", "900000", "/dev/zero"], ran(code=0, stdout_bytes=900_000, truncated=True)),
    "not allowed": Kind(15, ["rm", "-r"], denied("argv_not_allowed")),
    "hostile": Kind(5, ["echo", "1;2\n"], denied("shell_metachar_in_argv")),
    "no program": Kind(2, ["/no/such/program"], denied("spawn_failed")),
    "cancelled": Kind(6, ["sleep", "100"], ran(signal=15), cancel=True),
    "out of time": Kind(1, ["sleep", "100"], lambda s: ran()(s) and s.exit.signal in (9, 15), timeout_ms=1000),
}


class FrontEnd(Breakable):
    """One connection with some sessions at a time; it may be lost at any moment."""


def open_files(pid):
    files = []
    for descriptor in os.listdir(f"/proc/{pid}/fd"):
        try:
            files.append(os.readlink(f"/proc/{pid}/fd/{descriptor}").split(":")[0])
        except FileNotFoundError:
            pass  # closed meanwhile
    return sorted(files)


class Soak:
    def __init__(self, node):
        seed = int(os.environ.get("X0X_SEED", random.randrange(1 << 16)))
        print(f"{SESSIONS} sessions over {CONNECTIONS} connections, X0X_SEED={seed}")
        self.random, self.node = random.Random(seed), node
        self.front_ends = []
        self.kind_of = {}                          # address: kind, while it is open
        self.outcome = {}                          # id: "exit", "denial", or "unknown" to whom hung up
        self.count = collections.Counter()
        self.asked, self.began = 0, time.monotonic()
        self.levels = []

    # -- asking

    def ask(self, front_end):
        name = self.random.choices(list(KINDS), [kind.weight for kind in KINDS.values()])[0]
        kind = KINDS[name]
        try:
            session = front_end.request(kind.argv, agent=self.random.choice(AGENTS), **kind.more)
        except BrokenPipeError:
            raise AssertionError(self.hung_up(front_end)) from None
        self.kind_of[session.address] = name
        self.asked += 1

    def look_at(self, front_end):
        """What has come in for one connection."""
        for address, session in list(front_end.sessions.items()):
            kind = KINDS[self.kind_of[address]]
            if session.exit is None:
                if kind.cancel and session.started and session.renewing:
                    session.renewing = False  # once
                    session.cancel()
                continue
            assert kind.check(session), f"{self.kind_of[address]}: {session.exit} {session.stderr!r}"
            self.count[self.kind_of[address]] += 1
            self.settle(front_end, address, "exit" if session.exit.denial is None else "denial")

    def settle(self, front_end, address, outcome):
        self.outcome[str(address.request_id)] = outcome
        del front_end.sessions[address], self.kind_of[address]

    def hang_up(self, front_end):
        """Politely or not, and what was open has an end that nobody is told."""
        way = self.random.choice(["close", "nonsense", "half a message"])
        if way == "nonsense":
            front_end.send(wire.message(b"\x63nonsense"))
        if way == "half a message":
            front_end.send(wire.message(b"\1" + b"x" * 100)[:50])
        for address, session in list(front_end.sessions.items()):
            self.settle(front_end, address, "exit" if session.started else "unknown")
        self.count[way] += 1
        front_end.close()
        self.front_ends.remove(front_end)

    def round(self, until):
        next_goodbye = self.asked
        while self.asked < until:
            while len(self.front_ends) < CONNECTIONS:
                self.front_ends.append(FrontEnd(self.node.socket))
            for front_end in self.front_ends:
                while len(front_end.sessions) < AT_ONCE and self.asked < until:
                    self.ask(front_end)
            self.turn()
            if self.asked >= next_goodbye:
                next_goodbye = self.asked + self.random.randrange(100)
                self.hang_up(self.random.choice(self.front_ends))
            self.progress()
        while any(front_end.sessions for front_end in self.front_ends):
            self.turn()
        for front_end in self.front_ends:
            front_end.close()
        self.front_ends.clear()

    def turn(self):
        for front_end in select.select(self.front_ends, [], [], 0.05)[0]:
            front_end.receive()
            assert not front_end.closed, self.hung_up(front_end)
            self.look_at(front_end)
        for front_end in self.front_ends:
            front_end.renew_all()

    def hung_up(self, front_end):
        status = self.node.process.poll()
        frames = [(self.kind_of.get(address), session.frames[-2:]) for address, session in front_end.sessions.items()]
        return f"the enforcer has hung up; its status is {status}\n{self.node.read_errors()}\n{frames}"

    # -- looking

    def level(self):
        """What the enforcer holds on to when nobody wants anything of it."""
        pid = self.node.process.pid
        with self.node.connect() as connection:
            wait_until(lambda: connection.diagnostics()["active_sessions"] == 0)
            self.received = connection.diagnostics()["totals"]["requests_received"]
        wait_until(lambda: not pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text())  # nor a zombie
        assert self.node.processes() == [pid], self.node.processes()
        files = self.files_when_alone()
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        rss = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
        return {"files": files, "rss": rss}

    def files_when_alone(self):
        """Our last connection may still be closing: what stays open is what is open twice."""
        previous = None
        while (files := open_files(self.node.process.pid)) != previous:
            previous = files
            time.sleep(0.05)
        return files

    def progress(self, end="\r"):
        if end == "\r" and not sys.stdout.isatty():
            return
        seconds = time.monotonic() - self.began
        print(f"  {self.asked:6} sessions, {seconds:5.0f} s, {self.asked / seconds:5.0f}/s", end=end, flush=True)

    def check_levels(self):
        warm = self.levels[1]
        for level in self.levels[2:]:
            assert level["files"] == self.levels[0]["files"], f"descriptors: {self.levels[0]['files']} became {level['files']}"
            assert level["rss"] <= warm["rss"] + RSS_SLACK_KIB, f"memory: {[l['rss'] for l in self.levels]} KiB"

    def check_log(self):
        done = run(POLICYC, "audit", "verify", self.node.log, "--format", "json")
        found = json.loads(done.stdout)
        assert done.returncode == 0, found["breaks"]
        records = collections.defaultdict(list)
        malformed = 0
        with open(self.node.log) as log:
            for line in log:
                record = json.loads(line)
                malformed += record["event"] == "malformed"
                if record["event"] in ("request", "started", "exit", "denial"):
                    records[record["request_id"]].append(record["event"])
        shapes = {"exit": [["request", "started", "exit"]], "denial": [["denial"], ["request", "denial"]]}
        shapes["unknown"] = [[], ["request", "exit"], *shapes["exit"], *shapes["denial"]]
        for request, outcome in self.outcome.items():
            assert records[request] in shapes[outcome], f"{request}: {outcome}, but on record {records[request]}"
        assert records.keys() == self.outcome.keys(), "the log holds requests that nobody made"
        on_record = malformed + sum(1 for events in records.values() if events)
        assert on_record == self.received, f"{self.received} requests received, {on_record} on record"
        assert malformed <= self.count["nonsense"], f"{malformed} malformed, {self.count['nonsense']} were said"
        return found

    def run(self):
        self.levels.append(self.level())
        for check in range(CHECKS):
            self.round(SESSIONS * (check + 1) // CHECKS)
            self.levels.append(self.level())
            self.progress(end=", ")
            print(f"{self.levels[-1]['rss']} KiB, {len(self.levels[-1]['files'])} descriptors", flush=True)
        self.check_levels()
        self.node.stop()
        found = self.check_log()
        print("  " + ", ".join(f"{count} {name}" for name, count in sorted(self.count.items())))
        print(f"  {found['records']} records, the chain is intact; nothing is left over")


def main():
    node = Node()
    try:
        node.exec.update(max_concurrent_per_agent=500, max_concurrent_total=500, max_stdout_bytes=CAP)
        for agent in AGENTS:
            node.entry(agent)
            for kind in KINDS.values():
                if not {"rm", "1;2\n"} & set(kind.argv):
                    node.allow(kind.argv)
        node.env.update(GIVE_BACK)
        node.start()
        Soak(node).run()
    finally:
        node.close()


if __name__ == "__main__":
    main()
