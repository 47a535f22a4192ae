"""Who may run what, asked through the socket: the order of the decision, every reason for a denial, and limits."""

import datetime
import itertools
import subprocess
import time

from harness import AGENT, MACHINE, OTHER_AGENT, OTHER_MACHINE, SANITIZER_OPTIONS, Case, main, slow, wait_until

STDIN_CAP, DURATION_CAP = 100, 30
# A wall clock that a test can turn.
CLOCK = b"""#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec* now) {
  long offset = 0;
  FILE* file = clock == CLOCK_REALTIME && getenv("X0X_OFFSET") ? fopen(getenv("X0X_OFFSET"), "r") : NULL;
  if (file && fscanf(file, "%ld", &offset) != 1) offset = 0;
  if (file) fclose(file);
  long result = syscall(SYS_clock_gettime, clock, now);
  now->tv_sec += offset;
  return (int)result;
}
"""

# What can be wrong with a request, and what it is denied for, in the order of the decision.
FAULTS = {"empty argv": "argv_not_allowed", "a directory": "cwd_not_allowed",
          "a metacharacter": "shell_metachar_in_argv",
          "an unknown pair": "agent_machine_not_in_acl", "an unknown command": "argv_not_allowed",
          "too much stdin": "stdin_too_large", "too long a timeout": "timeout_too_large"}


def faulty(faults):
    """The arguments of a request with exactly these faults."""
    argv = ["rm" if "an unknown command" in faults else "echo", "1;2" if "a metacharacter" in faults else "12"]
    return {"argv": [] if "empty argv" in faults else argv,
            "cwd": "/" if "a directory" in faults else None,
            "agent": OTHER_AGENT if "an unknown pair" in faults else AGENT,
            "stdin": b"x" * (STDIN_CAP + 1) if "too much stdin" in faults else None,
            "timeout_ms": DURATION_CAP * 1000 + 1 if "too long a timeout" in faults else 0}


def subsets(faults):
    """Every non-empty one that a request can have: an empty argv holds no token to find fault with."""
    for size in range(1, len(faults) + 1):
        for chosen in itertools.combinations(faults, size):
            if "empty argv" not in chosen or "a metacharacter" not in chosen:
                yield chosen


class Order(Case):
    def full_node(self, **more):
        """One that has room for one session, and a command that fills it."""
        node = self.node(["echo", "<INT>"])
        node.exec.update(max_stdin_bytes=STDIN_CAP, max_duration_secs=DURATION_CAP, max_concurrent_per_agent=1,
                         warn_duration_secs=DURATION_CAP, **more)
        self.filler = node.allow(["sleep", "30"])
        return node.start()

    def test_the_first_rule_that_a_request_violates_is_the_reason(self):
        node = self.full_node()
        connection = self.connect(node)
        tried = 0
        for faults in subsets(list(FAULTS)):
            with self.subTest(faults=faults):
                self.assert_denied(connection.request(**faulty(faults)), FAULTS[faults[0]])
                tried += 1
        self.assertEqual(tried, 95)
        self.assertEqual({r["event"] for r in node.audit()}, {"policy_loaded", "denial"})

    def test_the_limit_on_sessions_comes_after_every_other_rule(self):
        connection = self.connect(self.full_node())
        filler = connection.request(self.filler)
        filler.wait_started()
        for fault, reason in FAULTS.items():
            with self.subTest(fault=fault):
                self.assert_denied(connection.request(**faulty([fault])), reason)
        self.assert_denied(connection.request(**faulty([])), "concurrency_limit_reached")
        filler.cancel()
        filler.wait()
        self.assert_ok(connection.request(**faulty([])), b"12\n")

    def test_a_disabled_policy_denies_with_exec_disabled_whatever_else_is_wrong(self):
        node = self.full_node(enabled=False)
        connection = self.connect(node)
        for fault in FAULTS:
            with self.subTest(fault=fault):
                self.assert_denied(connection.request(**faulty([fault])), "exec_disabled")
        self.assert_denied(connection.request(**faulty([])), "exec_disabled")
        self.assertFalse(connection.diagnostics()["enabled"])
        self.assertEqual(node.audit()[0]["enabled"], False)


class Reasons(Case):
    def test_a_denial_says_who_asked_for_what_and_why_in_the_log_and_in_the_counters(self):
        node, connection = self.started(["echo", "<INT>"])
        session = connection.run(["echo", "twelve"])
        self.assert_denied(session, "argv_not_allowed")
        record = node.audit()[-1]
        self.assertEqual({key: record[key] for key in ("event", "request_id", "agent_id", "machine_id", "argv",
                                                       "reason")},
                         {"event": "denial", "request_id": str(session.address.request_id), "agent_id": AGENT,
                          "machine_id": MACHINE, "argv": ["echo", "twelve"], "reason": "argv_not_allowed"})
        totals = connection.diagnostics()["totals"]
        self.assertEqual((totals["requests_received"], totals["requests_allowed"], totals["requests_denied"]),
                         (1, 0, 1))
        self.assertEqual({k: v for k, v in totals["denial_breakdown"].items() if v}, {"argv_not_allowed": 1})
        self.assertEqual(node.processes(but_enforcer=True), [])

    def test_both_halves_of_a_pair_must_match(self):
        _, connection = self.started(["true"])
        self.assert_ok(connection.request(["true"]))
        for agent, machine in ((OTHER_AGENT, MACHINE), (AGENT, OTHER_MACHINE), (MACHINE, AGENT), ("00" * 32, "00" * 32),
                               (AGENT[:-1] + "a", MACHINE), (AGENT, "dd" + MACHINE[2:])):
            with self.subTest(agent=agent, machine=machine):
                self.assert_denied(connection.request(["true"], agent=agent, machine=machine),
                                   "agent_machine_not_in_acl")

    def test_every_forbidden_byte_is_refused_in_every_token_even_for_an_unknown_pair(self):
        _, connection = self.started(["echo", "a", "b"])
        for byte in ";|&><`$\n\0":
            for position in range(3):
                with self.subTest(byte=byte, position=position):
                    argv = ["echo", "a", "b"]
                    argv[position] += byte
                    self.assert_denied(connection.request(argv), "shell_metachar_in_argv")
                    self.assert_denied(connection.request(argv, agent=OTHER_AGENT), "shell_metachar_in_argv")

    def test_other_bytes_are_only_compared(self):
        token = "a b\t'\"\\*?[]{}()!#~%=é\u200b\x1b"
        _, connection = self.started(["printf", "%s", token])
        self.assert_ok(connection.request(["printf", "%s", token]), token.encode())
        self.assert_denied(connection.request(["printf", "%s", token + " "]), "argv_not_allowed")

    def test_stdin_may_reach_the_cap_and_not_pass_it(self):
        node = self.node(["cat"])
        node.exec["max_stdin_bytes"] = 1000
        refused = node.allow(["head"], stdin=False)
        connection = self.connect(node.start())
        self.assert_ok(connection.request(["cat"], stdin=b"x" * 1000), b"x" * 1000)
        self.assert_denied(connection.request(["cat"], stdin=b"x" * 1001), "stdin_too_large")
        self.assert_denied(connection.request(refused, stdin=b"x"), "stdin_too_large")
        self.assert_ok(connection.request(refused), b"")

    def test_a_timeout_is_rounded_up_to_seconds_and_held_against_the_smallest_cap(self):
        node = self.node()
        node.exec["max_duration_secs"] = 20
        global_cap = node.allow(["echo", "global"])
        node.entry(max_duration_secs=10)
        entry_cap = node.allow(["echo", "entry"])
        command_cap = node.allow(["echo", "command"], max_duration_secs=6)
        connection = self.connect(node.start())
        for argv, cap in ((global_cap, 20), (entry_cap, 10), (command_cap, 6)):
            with self.subTest(argv=argv):
                for timeout_ms in (0, 6000, cap * 1000 - 1, cap * 1000):
                    self.assert_ok(connection.request(argv, timeout_ms=timeout_ms))
                for timeout_ms in (cap * 1000 + 1, 0xffffffff):
                    self.assert_denied(connection.request(argv, timeout_ms=timeout_ms), "timeout_too_large")

    def test_the_fault_of_an_audit_log_comes_last_and_denies_with_exec_disabled(self):
        node, connection = self.started(["true"])
        self.assert_ok(connection.request(["true"]))
        node.limit_file_size(node.log.stat().st_size)
        self.assert_denied(connection.request(["true"]), "exec_disabled")  # the first without a record
        self.assert_denied(connection.request(["true"]), "exec_disabled")
        self.assert_denied(connection.request(["rm"]), "argv_not_allowed")
        node.limit_file_size(None)
        wait_until(lambda: not connection.diagnostics()["audit_degraded"])
        self.assert_ok(connection.request(["true"]))


class Rules(Case):
    def test_the_first_command_that_matches_wins_and_its_entry_is_named_in_the_log(self):
        node = self.node()
        node.entry(max_duration_secs=5, description="first")
        node.allow(["echo", "<INT>"])
        node.entry(description="second")
        node.allow(["echo", "7"])
        node.allow(["echo", "seven"])
        connection = self.connect(node.start())
        self.assert_denied(connection.request(["echo", "7"], timeout_ms=5001), "timeout_too_large")
        self.assert_ok(connection.request(["echo", "7"]), b"7\n")
        self.assert_ok(connection.request(["echo", "seven"], timeout_ms=200000), b"seven\n")
        requests = [r for r in node.audit() if r["event"] == "request"]
        self.assertEqual([(r["matched_acl"], r["rule"]) for r in requests],
                         [("first", {"entry": 0, "command": 0}), ("second", {"entry": 1, "command": 1})])

    def test_the_request_record_has_everything_that_was_decided(self):
        node, connection = self.started(["cat"])
        session = connection.run(["cat"], stdin=b"four", timeout_ms=2500)
        record = node.audit_of(session)[0]
        self.assertEqual({key: record[key] for key in record if key not in ("seq", "prev", "ts")},
                         {"event": "request", "request_id": str(session.address.request_id), "agent_id": AGENT,
                          "machine_id": MACHINE, "argv": ["cat"], "matched_acl": "abab on cdcd",
                          "rule": {"entry": 0, "command": 0}, "policy": connection.diagnostics()["policy"]["digest"],
                          "stdin_bytes": 4, "timeout_ms": 2500})
        self.assertRegex(record["ts"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")

    def test_one_pair_cannot_use_the_commands_of_another(self):
        node = self.node(["echo", "one"])
        node.entry(OTHER_AGENT, MACHINE)
        node.allow(["echo", "two"])
        connection = self.connect(node.start())
        self.assert_denied(connection.request(["echo", "two"]), "argv_not_allowed")
        self.assert_denied(connection.request(["echo", "one"], agent=OTHER_AGENT), "argv_not_allowed")
        self.assert_ok(connection.request(["echo", "two"], agent=OTHER_AGENT))

    def test_an_argv_at_its_longest_runs(self):
        node = self.node()
        argv = node.allow(["printf", "%s"] + [f"{number:04}" + "x" * 60 for number in range(200)])
        connection = self.connect(node.start())
        self.assert_ok(connection.request(argv), "".join(argv[2:]).encode())
        self.assert_denied(connection.request(argv[:-1]), "argv_not_allowed")


class Concurrency(Case):
    def sleepers(self, per_agent, total):
        node = self.node(["sleep", "60"])
        node.entry(AGENT, OTHER_MACHINE)
        node.allow(["sleep", "60"])
        node.entry(OTHER_AGENT, OTHER_MACHINE)
        node.allow(["sleep", "60"])
        node.exec.update(max_concurrent_per_agent=per_agent, max_concurrent_total=total)
        return node.start()

    def test_the_fifth_session_of_an_agent_is_denied_when_four_may_run(self):
        node = self.sleepers(4, 32)
        one, two = self.connect(node), self.connect(node)
        running = [one.request(["sleep", "60"]), two.request(["sleep", "60"]),  # whatever the connection
                   one.request(["sleep", "60"], machine=OTHER_MACHINE), one.request(["sleep", "60"])]
        for session in running:
            session.wait_started()
        self.assert_denied(one.request(["sleep", "60"]), "concurrency_limit_reached")
        self.assert_denied(two.request(["sleep", "60"], machine=OTHER_MACHINE), "concurrency_limit_reached")
        other = one.request(["sleep", "60"], agent=OTHER_AGENT, machine=OTHER_MACHINE)
        other.wait_started()
        document = one.diagnostics()
        self.assertEqual((document["active_sessions"], document["active_per_agent"]), (5, {AGENT: 4, OTHER_AGENT: 1}))
        running[1].cancel()
        running[1].wait()
        one.request(["sleep", "60"]).wait_started()

    def test_all_agents_together_stay_within_the_total(self):
        connection = self.connect(self.sleepers(2, 3))
        for agent, machine in ((AGENT, MACHINE), (OTHER_AGENT, OTHER_MACHINE), (OTHER_AGENT, OTHER_MACHINE)):
            connection.request(["sleep", "60"], agent=agent, machine=machine).wait_started()
        self.assert_denied(connection.request(["sleep", "60"]), "concurrency_limit_reached")

    def test_many_requests_at_once_never_exceed_the_limit(self):
        node = self.sleepers(4, 32)
        connections = [self.connect(node) for _ in range(5)]
        sessions = [connection.request(["sleep", "60"]) for connection in connections for _ in range(6)]
        for session in sessions:
            session.connection.pump(lambda s=session: s.started or s.exit)
        self.assertEqual(sum(session.started is not None for session in sessions), 4)
        self.assertEqual({session.exit.denial for session in sessions if session.exit}, {"concurrency_limit_reached"})


class Expiry(Case):
    @slow
    def test_a_policy_that_expires_denies_from_then_on_and_says_so_once(self):
        node = self.node(["true"], ["sleep", "14"])
        expiry = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0) + datetime.timedelta(seconds=12)
        node.policy["expires"] = expiry
        connection = self.connect(node.start())
        running = connection.request(["sleep", "14"])
        self.assert_ok(connection.request(["true"]))
        self.assertTrue(connection.diagnostics()["enabled"])
        connection.sleep(expiry.timestamp() - time.time() + 0.1)
        for _ in range(3):
            self.assert_denied(connection.request(["true"]), "exec_disabled")
        self.assertFalse(connection.diagnostics()["enabled"])
        self.assert_ok(running)  # what ran already is left alone
        self.assert_denied(connection.request(["true"]), "exec_disabled")
        events = [r["event"] for r in node.audit()]
        self.assertEqual(events.count("policy_expired"), 1, events)

    def test_a_clock_that_is_turned_forward_and_back_does_not_bring_an_expired_policy_back(self):
        node = self.node(["true"])
        offset, clock = node.work / "offset", node.bin / "clock.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", clock], input=CLOCK, check=True)
        node.env = {"LD_PRELOAD": str(clock), "X0X_OFFSET": str(offset),
                    "ASAN_OPTIONS": SANITIZER_OPTIONS["ASAN_OPTIONS"] + ":verify_asan_link_order=0"}
        node.policy["expires"] = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
        connection = self.connect(node.start())
        for seconds, denial in (0, None), (7200, "exec_disabled"), (0, "exec_disabled"), (-7200, "exec_disabled"):
            offset.write_text(str(seconds))
            self.assert_denied(connection.request(["true"]), denial)
        self.assertFalse(connection.diagnostics()["enabled"])
        self.assertEqual([r["event"] for r in node.audit()].count("policy_expired"), 1)


if __name__ == "__main__":
    main()
