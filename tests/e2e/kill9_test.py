"""SIGKILL for the enforcer, 200 times under load. After each: nothing it has started is alive. After all: the chain of the
audit log holds, every command that ran has its request on record, and so has everything a front end was told."""

import collections
import json
import os
import random
import select
import time

from connection import Breakable
from harness import POLICYC, Case, main, run, wait_until

KILLS = 200
TORN_EVERY = 10  # SIGKILL does not tear a line, a power cut does: so often we leave a part of one
FRONT_ENDS = 3

# Each leaves its number in a file before it does anything else.
SHORT = "echo $1 >> $HOME/desk/marks"
LONG = SHORT + "; exec sleep 1000"
TREE = SHORT + "; trap '' TERM; (setsid sh -c 'trap \"\" TERM; sleep 1000; :' &); sleep 1000; :"
DENIED = "/bin/false"
# What a power cut may leave of a record: any part of it, or all but its newline.
RECORD = b'{"seq":7,"prev":"' + b"ab" * 32 + b'","ts":"2026-11-18T10:00:00.000Z","event":"stopped"}'

# When it is killed: whenever, after a Started, or after the Exit of something that ran.
MOMENTS = [lambda session: True, lambda session: True, lambda session: session.started,
           lambda session: session.exit and session.exit.denial is None]


class FrontEnd(Breakable):
    """Asks for one thing after another and may be cut off in the middle of a message."""

    def ask_for(self, program, mark):
        self.request([program, str(mark)])


class Kill9(Case):
    def setUp(self):
        seed = int(os.environ.get("X0X_SEED", random.randrange(1 << 16)))
        print(f"# X0X_SEED={seed}", flush=True)
        self.random = random.Random(seed)
        self.marks = iter(range(1, 1_000_000))
        self.told = collections.defaultdict(set)  # event on record by then: ids of requests
        self.parts = []                           # of lines, torn by us

    def make_node(self):
        node = self.node()
        self.programs = [node.script(text) for text in (SHORT, SHORT, SHORT, LONG, TREE)] + [DENIED]
        for program in self.programs[:-1]:
            node.allow([program, "<INT>"])
        node.exec.update(max_concurrent_per_agent=40, max_concurrent_total=40)
        node.compile()
        return node

    def load(self, front_ends, seconds, until=lambda session: True):
        """Keeps the enforcer busy for that long, and until some session is as it should be; sometimes cancels."""
        for front_end in front_ends:
            front_end.ask_for(self.programs[0], next(self.marks))
            for _ in range(2):
                front_end.ask_for(self.random.choice(self.programs), next(self.marks))
        end = time.monotonic() + seconds
        while time.monotonic() < end or not any(until(s) for f in front_ends for s in f.sessions.values()):
            for ready in select.select(front_ends, [], [], max(end - time.monotonic(), 0.01))[0]:
                ready.receive()
                ready.ask_for(self.random.choice(self.programs), next(self.marks))
                if self.random.random() < 0.1:
                    self.random.choice(list(ready.sessions.values())).cancel()

    def note_what_was_said(self, front_ends):
        for front_end in front_ends:
            while not front_end.closed:
                front_end.receive()
            front_end.close()
            for address, session in front_end.sessions.items():
                if session.started:
                    self.told["request"].add(str(address.request_id))
                if session.exit:
                    self.told["exit" if session.exit.denial is None else "denial"].add(str(address.request_id))

    def tear(self, node):
        part = RECORD[:self.random.choice([1, 20, self.random.randrange(1, len(RECORD)), len(RECORD)])]
        self.parts.append(part)
        with open(node.log, "ab") as log:
            log.write(part)

    def round(self, node, number):
        node.start(compile=False)
        front_ends = [FrontEnd(node.socket) for _ in range(FRONT_ENDS)]
        self.load(front_ends, self.random.uniform(0, 0.03), MOMENTS[number % len(MOMENTS)])
        node.kill()
        self.note_what_was_said(front_ends)
        wait_until(lambda: not node.processes(), every=0.002)
        if number % TORN_EVERY == 0:
            self.tear(node)

    def verify(self, node):
        done = run(POLICYC, "audit", "verify", node.log, "--format", "json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def test_nothing_outlives_it_and_nothing_is_lost(self):
        node = self.make_node()
        for number in range(KILLS):
            self.round(node, number)
        node.start(compile=False)
        node.stop()

        found = self.verify(node)
        self.assertGreaterEqual(found["torn_lines"], len(self.parts))  # a kill may tear a long write by itself
        text = node.log.read_bytes()
        for part in self.parts:
            self.assertIn(part + b"~\n", text)

        records = node.audit()
        count = collections.Counter(record["event"] for record in records)
        self.assertEqual(count["policy_loaded"], KILLS + 1)
        self.assertEqual(count["stopped"], 1)
        on_record = collections.defaultdict(set)
        for record in records:
            on_record[record["event"]].add(record.get("request_id"))
        for event, ids in self.told.items():
            self.assertLessEqual(ids, on_record[event], f"{event}: a front end knows more than the log")
        ran = {int(line) for line in (node.work / "marks").read_text().split()}
        requested = {int(record["argv"][1]) for record in records if record["event"] == "request"}
        self.assertLessEqual(ran, requested, "a command ran without its request on record")
        self.assertGreaterEqual(len(self.told["exit"]), KILLS // len(MOMENTS))
        self.assertGreaterEqual(len(ran), KILLS // len(MOMENTS))
        print(f"# {dict(count)}, {len(ran)} commands ran")


if __name__ == "__main__":
    main()
