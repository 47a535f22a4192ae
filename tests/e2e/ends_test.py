"""How a command ends: durations, cancel, disconnect, lease, whole trees, failed starts; and what is on record."""

import datetime
import os
import resource
import signal
import time
import unittest

from harness import AGENT, AM_ROOT, OTHER_AGENT, Case, in_mount_namespace, main, slow, wait_until, write_program

STUBBORN = "import os, signal, sys, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up', flush=True)\n"
# A tree that does what it can to get away: sessions of their own, parents that end, and deaf ears.
HIDING = """import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
for depth in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() > 0 and depth < 2:
            os._exit(0)
        if os.fork() == 0:
            os.setsid()
            os.setpgid(0, 0) if os.getpid() != os.getsid(0) else None
open(f"{os.environ['HOME']}/desk/{os.getpid()}", "w").close()
"""
# A command that turns on those above it.
TURNING = """import ctypes, os, resource, signal, time
PTRACE_SEIZE = 0x4206
supervisor = os.getppid()
enforcer = int(open(f"/proc/{supervisor}/status").read().split("PPid:")[1].split()[0])
def seize(pid):
    return ctypes.CDLL(None).ptrace(PTRACE_SEIZE, pid, 0, 0)
"""


class Timed(Case):
    def assert_about(self, seconds, expected):
        """Never too early; late by what a busy machine may need, and not by a whole other period."""
        self.assertGreaterEqual(seconds, expected - 0.01)
        self.assertLess(seconds, expected + 3.5)


class Durations(Timed):
    @slow
    def test_sigterm_comes_five_seconds_before_the_cap_and_sigkill_at_it(self):
        node = self.node()
        node.exec["max_duration_secs"] = 7
        argv = node.allow_python("import os, signal, time\n"
                                 "signal.signal(signal.SIGTERM, lambda *_: os.write(1, f'{time.time()}\\n'.encode()))\n"
                                 "while True:\n time.sleep(1)")
        connection = self.connect(node.start())
        session = connection.run(argv)
        self.assertEqual(session.exit[:2], (None, signal.SIGKILL))
        self.assert_about(session.exit.duration_ms / 1000, 7)
        told = [float(line) for line in session.stdout.split()]
        self.assertEqual(len(told), 1, "one SIGTERM")
        asked, ended = (datetime.datetime.fromisoformat(node.audit_of(session)[i]["ts"]).timestamp() for i in (0, -1))
        self.assert_about(told[0] - asked, 2)
        self.assertGreater(ended, told[0] + 1)  # it was 5 s, less what the machine was late with SIGTERM
        self.assertEqual(connection.diagnostics()["totals"]["cap_breaches"]["duration"], 1)

    @slow
    def test_a_command_that_heeds_sigterm_ends_before_the_cap(self):
        _, connection = self.started(["sleep", "60"])
        session = connection.run(["sleep", "60"], timeout_ms=6500)
        self.assertEqual(session.exit[:2], (None, signal.SIGTERM))
        self.assert_about(session.exit.duration_ms / 1000, 1.5)

    @slow
    def test_with_five_seconds_or_less_both_signals_come_at_the_cap(self):
        node = self.node()
        stubborn = node.allow_python(STUBBORN + "time.sleep(60)")
        node.allow(["sleep", "60"])
        connection = self.connect(node.start())
        sessions = [connection.request(["sleep", "60"], timeout_ms=3000), connection.request(stubborn, timeout_ms=3000)]
        for session in sessions:
            self.assertIn(session.wait().signal, (signal.SIGTERM, signal.SIGKILL))
            self.assert_about(session.exit.duration_ms / 1000, 3)
        self.assertEqual(sessions[1].exit.signal, signal.SIGKILL)

    @slow
    def test_a_session_that_runs_long_is_warned_of_once(self):
        node = self.node()
        node.exec.update(warn_duration_secs=1, max_duration_secs=30)
        argv = node.allow(["sleep", "2.5"])
        connection = self.connect(node.start())
        session = connection.run(argv)
        self.assert_ok(session)
        self.assertEqual(session.warnings, ["DurationApproachingCap"])
        self.assertEqual(connection.diagnostics()["totals"]["cap_warnings"]["duration_approaching"], 1)

    @slow
    def test_a_command_may_have_a_shorter_time_of_its_own(self):
        node = self.node()
        argv = node.allow(["sleep", "60"], max_duration_secs=1)
        session = self.connect(node.start()).run(argv)
        self.assertIn(session.exit.signal, (signal.SIGTERM, signal.SIGKILL))
        self.assert_about(session.exit.duration_ms / 1000, 1)


class Ends(Timed):
    def test_cancel_sends_sigterm_at_once(self):
        node, connection = self.started(["sleep", "60"])
        session = connection.request(["sleep", "60"])
        session.wait_started()
        session.cancel()
        self.assertEqual(session.wait()[:2], (None, signal.SIGTERM))
        self.assertEqual(session.warnings, ["Cancelled"])
        self.assertEqual([r["event"] for r in node.audit_of(session)], ["request", "started", "warning", "exit"])
        totals = connection.diagnostics()["totals"]
        self.assertEqual((totals["sessions_started"], totals["sessions_completed"], totals["sessions_cancelled"]),
                         (1, 1, 1))

    @slow
    def test_sigterm_reaches_every_process_and_not_only_the_first(self):
        node = self.node()
        far = node.allow_python("import os, signal, sys, time\n"
                                "told = lambda *_: (os.write(1, b'told\\n'), sys.exit())\n"
                                "if os.fork() == 0:\n os.setsid()\n if os.fork() == 0:\n"
                                "  signal.signal(signal.SIGTERM, told)\n  print('up', flush=True)\n  time.sleep(60)\n"
                                " os._exit(0)\n"
                                "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(60)")
        connection = self.connect(node.start())
        session = connection.request(far)
        session.wait_output(b"up")
        session.cancel()
        session.wait_output(b"told")
        self.assertEqual(session.wait().signal, signal.SIGKILL)

    def test_a_command_may_clean_up_when_it_is_cancelled(self):
        node = self.node()
        argv = node.allow_script("trap 'echo bye; exit 4' TERM; echo up; while :; do sleep 0.1; done")
        connection = self.connect(node.start())
        session = connection.request(argv)
        session.wait_output(b"up")
        session.cancel()
        self.assertEqual(session.wait()[:2], (4, None))
        self.assertEqual(session.stdout, b"up\nbye\n")

    def test_a_cancel_that_follows_its_request_at_once_is_not_lost(self):
        _, connection = self.started(["sleep", "60"])
        for _ in range(10):
            session = connection.request(["sleep", "60"])
            session.cancel()
            session.cancel()
            self.assertEqual((session.wait().signal, session.warnings), (signal.SIGTERM, ["Cancelled"]))

    @slow
    def test_a_command_that_ignores_a_cancel_is_killed_five_seconds_later(self):
        node = self.node()
        argv = node.allow_python(STUBBORN + "time.sleep(60)")
        connection = self.connect(node.start())
        session = connection.request(argv)
        session.wait_output(b"up")
        at = time.monotonic()
        session.cancel()
        self.assertEqual(session.wait()[:2], (None, signal.SIGKILL))
        self.assert_about(time.monotonic() - at, 5)

    @slow
    def test_a_peer_that_disconnects_ends_its_sessions_within_five_seconds_of_sigterm(self):
        node = self.node()
        polite = node.allow_script(f"trap 'echo told > {node.work}/told; exit 0' TERM\n"
                                   "echo up; while :; do sleep 0.1; done")
        stubborn = node.allow_python(STUBBORN + "time.sleep(60)")
        node.start()
        connection = node.connect()
        sessions = [connection.request(polite), connection.request(stubborn)]
        for session in sessions:
            session.wait_output(b"up")
        connection.close()
        wait_until((node.work / "told").exists)
        for session in sessions:
            identity = str(session.address.request_id)
            self.assertEqual(node.wait_for_audit("warning", request_id=identity)["kind"], "PeerDisconnected")
        ends = [node.wait_for_audit("exit", request_id=str(s.address.request_id)) for s in sessions]
        self.assertEqual([(end["code"], end["signal"]) for end in ends], [(0, None), (None, signal.SIGKILL)])
        self.assertEqual(node.processes(but_enforcer=True), [])

    def test_a_peer_that_disconnects_leaves_the_sessions_of_others_alone(self):
        node, connection = self.started(["sleep", "60"])
        session = connection.request(["sleep", "60"])
        session.wait_started()
        other = node.connect()
        other.request(["sleep", "60"]).wait_started()
        other.close()
        node.wait_for_audit("exit")
        self.assertEqual([s["request_id"] for s in connection.list_sessions()], [str(session.address.request_id)])

    @slow
    def test_a_lease_that_is_not_renewed_ends_the_session_after_four_seconds(self):
        node = self.node(["sleep", "60"])
        stubborn = node.allow_python(STUBBORN + "time.sleep(60)")
        connection = self.connect(node.start())
        silent = [connection.request(["sleep", "60"]), connection.request(stubborn)]
        renewed = connection.request(["sleep", "60"])
        for session in silent:
            session.renewing = False
        self.assertEqual((silent[0].wait().signal, silent[0].warnings), (signal.SIGTERM, ["LeaseExpired"]))
        self.assert_about(silent[0].exit.duration_ms / 1000, 4)
        self.assertEqual((silent[1].wait().signal, silent[1].warnings), (signal.SIGKILL, ["LeaseExpired"]))
        self.assert_about(silent[1].exit.duration_ms / 1000, 9)
        self.assertIsNone(renewed.exit)

    def test_a_failed_start_is_spawn_failed_and_the_log_names_the_step(self):
        node = self.node()
        plain = node.bin / "plain"
        write_program(plain, b"echo a shell would run this\n")
        steps = {"open_exe": node.allow([node.bin / "missing"]), "cwd": node.allow(["true"], cwd=node.work / "missing"),
                 "exec": node.allow([plain]), "landlock": node.allow(["echo"], writable=[node.work / "missing"])}
        node.exec["max_concurrent_per_agent"] = 1
        connection = self.connect(node.start())
        for step, argv in steps.items():
            with self.subTest(step=step):
                session = connection.run(argv)
                self.assert_denied(session, "spawn_failed")
                records = node.audit_of(session)
                self.assertEqual([r["event"] for r in records], ["request", "denial"])
                self.assertEqual((records[1]["reason"], records[1]["step"]), ("spawn_failed", step))
        self.assertEqual(connection.diagnostics()["active_sessions"], 0)


class Trees(Case):
    def hunt(self, node):
        argv = node.allow_python(HIDING + "print('up', flush=True)\ntime.sleep(60)")
        connection = self.connect(node.start())
        session = connection.request(argv)
        session.wait_output(b"up")
        wait_until(lambda: len(list(node.work.iterdir())) >= 8)
        self.assertGreaterEqual(len(node.processes(but_enforcer=True)), 8)
        session.cancel()
        self.assertEqual(session.wait().signal, signal.SIGKILL)
        self.assertEqual(node.processes(but_enforcer=True), [])

    @slow
    def test_nothing_of_a_tree_that_hides_and_ignores_sigterm_is_alive_after_exit(self):
        self.hunt(self.node())

    @slow
    def test_the_same_where_no_cgroup_is_delegated(self):
        node = self.node()
        node.wrapper = in_mount_namespace("mount -t tmpfs none /sys/fs/cgroup")
        if node.wrapper is None:
            self.skipTest("mount namespaces are not allowed here")
        self.hunt(node)

    def test_leftovers_are_killed_when_the_command_ends_by_itself(self):
        node = self.node()
        argv = node.allow_python(HIDING + "if os.getsid(0) == os.getpid() == os.getpgid(0) and os.getppid() != 1:\n"
                                          " time.sleep(0.5)\n print('bye', flush=True)\n os._exit(0)\ntime.sleep(60)")
        connection = self.connect(node.start())
        session = connection.run(argv)
        self.assertEqual(session.exit.code, 0)
        self.assertEqual(node.processes(but_enforcer=True), [])
        self.assertGreaterEqual(len(list(node.work.iterdir())), 2)

    def test_a_command_that_turns_on_its_parent_harms_only_itself(self):
        node = self.node(["true"])
        wait = f"while [ ! -e {node.work}/go ]; do sleep 0.05; done\n"
        killing = [node.allow_script(f"setsid sleep 60 &\n{wait}kill -{number} $PPID; exec sleep 60")
                   for number in ("KILL", "STOP")]
        shouting = node.allow_python("import os\nfor number in set(range(1, 65)) - {9, 18, 19, 32, 33}:\n"
                                     " os.kill(os.getppid(), number)")
        node.exec["max_duration_secs"] = 3
        connection = self.connect(node.start())
        sessions = [connection.request(argv) for argv in killing]
        for session in sessions:
            session.wait_started()
        (node.work / "go").touch()
        for session in sessions:
            self.assertIn(session.wait().signal, (signal.SIGTERM, signal.SIGKILL))
        self.assert_ok(connection.request(shouting))
        self.assert_ok(connection.request(["true"]))
        self.assertEqual(node.processes(but_enforcer=True), [])

    @slow
    def test_a_supervisor_serves_the_next_session_and_is_dismissed_when_there_is_none(self):
        node = self.node(["true"])
        connection = self.connect(node.start())
        self.assert_ok(connection.request(["true"]))
        kept = node.idle_supervisors()
        self.assertEqual(len(kept), 1)
        self.assert_ok(connection.request(["true"]))
        self.assertEqual(node.idle_supervisors(), kept)
        os.kill(kept[0], signal.SIGKILL)
        wait_until(lambda: not node.idle_supervisors())  # it is reaped
        self.assert_ok(connection.request(["true"]))
        self.assertEqual(len(node.idle_supervisors()), 1)
        other = connection.request(["false"])
        while node.idle_supervisors():  # what happens elsewhere does not keep it
            other = connection.run(["false"])
        self.assert_denied(other, "argv_not_allowed")

    @slow
    def test_a_supervisor_is_dismissed_while_nobody_says_anything(self):
        node = self.node(["true"])
        self.assert_ok(self.connect(node.start()).request(["true"]))
        self.assertEqual(len(node.idle_supervisors()), 1)
        wait_until(lambda: not node.idle_supervisors(), timeout=25, every=0.5)

    def test_an_enforcer_whose_descriptors_are_limited_while_it_runs_still_ends(self):
        node = self.node(["true"])
        node.env["ASAN_OPTIONS"] = "detect_leaks=0"  # looking for leaks takes descriptors
        connection = self.connect(node.start())
        self.assert_ok(connection.run(["true"]))
        limit = resource.prlimit(node.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(node.process.pid, resource.RLIMIT_NOFILE, (1, limit[1]))
        node.signal(signal.SIGTERM)
        self.assertEqual(node.wait(), 0)

    def test_a_supervisor_serves_one_agent_and_machine_only(self):
        node = self.node(["true"])
        node.entry(agent=OTHER_AGENT)
        node.allow(["true"])
        connection = self.connect(node.start())
        for agent, supervisors in ((AGENT, 1), (OTHER_AGENT, 2), (AGENT, 2), (OTHER_AGENT, 2)):
            self.assert_ok(connection.request(["true"], agent=agent))
            self.assertEqual(len(node.idle_supervisors()), supervisors)

    def test_a_request_that_meets_the_end_of_an_idle_supervisor_runs(self):
        node = self.node(["true"])
        argv = node.allow_script("sleep 0.5; echo ran")
        connection = self.connect(node.start())
        self.assert_ok(connection.request(["true"]))
        os.kill(node.process.pid, signal.SIGSTOP)
        os.kill(node.idle_supervisors()[0], signal.SIGKILL)
        session = connection.request(argv)
        time.sleep(0.1)  # both wait for the enforcer now
        os.kill(node.process.pid, signal.SIGCONT)
        self.assert_ok(session, b"ran\n")
        self.assertEqual([record["event"] for record in node.audit_of(session)], ["request", "started", "exit"])

    def test_a_supervisor_that_has_no_room_for_descriptors_fails_the_request_and_is_not_used_again(self):
        node = self.node(["true"])
        argv = node.allow_python("import os, resource\n"
                                 "resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (2, 4096))")
        connection = self.connect(node.start())
        self.assert_ok(connection.request(argv))
        session = connection.run(["true"])
        self.assert_denied(session, "spawn_failed")
        self.assertEqual(node.audit_of(session)[-1]["step"], "pipes")
        self.assert_ok(connection.request(["true"]))

    @slow
    @unittest.skipUnless(AM_ROOT, "others may not trace a supervisor")
    def test_an_idle_supervisor_that_is_traced_does_not_hold_up_the_enforcer(self):
        node = self.node(["sleep", "1"])
        argv = node.allow_python(TURNING + "idle = [int(pid) for pid in open(f'/proc/{enforcer}/task/{enforcer}/children')"
                                           ".read().split() if int(pid) != supervisor]\n"
                                           "print([seize(pid) for pid in idle], flush=True)\ntime.sleep(60)")
        connection = self.connect(node.start())
        for session in [connection.request(["sleep", "1"]) for _ in range(2)]:
            self.assert_ok(session)
        session = connection.request(argv)
        session.wait_output(b"[0]")
        connection.sleep(11)  # it is dismissed after ten seconds
        self.assertEqual(connection.diagnostics()["active_sessions"], 1)
        session.cancel()
        self.assertEqual(session.wait().signal, signal.SIGTERM)

    def test_nothing_is_printed_before_started_by_a_command_that_kills_its_supervisor_at_once(self):
        node = self.node()
        argv = node.allow_script("kill -9 $PPID; echo ran")
        connection = self.connect(node.start())
        for session in [connection.run(argv) for _ in range(20)]:
            self.assertEqual(session.exit.signal, signal.SIGKILL)
            self.assertTrue(session.started or not session.stdout)

    def test_a_supervisor_that_is_traced_and_killed_does_not_hold_up_the_enforcer(self):
        node = self.node(["true"])
        argv = node.allow_python(TURNING + "told, tell = os.pipe()\nif os.fork() == 0:\n os.setsid()\n"
                                           " print('traced', seize(supervisor), flush=True)\n os.write(tell, b'x')\n"
                                           " time.sleep(60)\n"
                                           "os.read(told, 1)\nos.kill(supervisor, signal.SIGKILL)\ntime.sleep(60)")
        connection = self.connect(node.start())
        session = connection.request(argv)
        self.assertEqual(session.wait().signal, signal.SIGKILL)
        self.assertEqual(session.stdout, b"traced 0\n" if AM_ROOT else b"traced -1\n")
        self.assert_ok(connection.request(["true"]))
        self.assertEqual(node.processes(but_enforcer=True), [])

    @unittest.skipIf(AM_ROOT, "root may look into every process")
    def test_a_command_cannot_trace_the_enforcer_or_its_supervisor_nor_open_their_memory(self):
        node = self.node()
        argv = node.allow_python(TURNING + "for pid in enforcer, supervisor:\n"
                                           " print(seize(pid), os.access(f'/proc/{pid}/mem', os.W_OK))")
        self.assert_ok(self.connect(node.start()).request(argv), b"-1 False\n" * 2)

    def test_processes_that_cannot_be_listed_are_not_taken_for_dead(self):
        node = self.node()
        argv = node.allow_python(TURNING + "if os.fork() == 0:\n os.setsid()\n time.sleep(60)\n"
                                           "resource.prlimit(enforcer, resource.RLIMIT_NOFILE, (0, int(input())))\n"
                                           "os.kill(supervisor, signal.SIGKILL)\ntime.sleep(60)")
        connection = self.connect(node.start())
        limit = resource.prlimit(node.process.pid, resource.RLIMIT_NOFILE)
        session = connection.request(argv, stdin=str(limit[1]).encode())
        session.wait_started()
        wait_until(lambda: resource.prlimit(node.process.pid, resource.RLIMIT_NOFILE)[0] == 0)
        connection.sleep(1)
        self.assertIsNone(session.exit)  # its child still runs
        resource.prlimit(node.process.pid, resource.RLIMIT_NOFILE, limit)
        self.assertEqual(session.wait().signal, signal.SIGKILL)
        self.assertEqual(node.processes(but_enforcer=True), [])

    def test_a_command_that_makes_a_cgroup_does_not_doom_the_next_session(self):
        node = self.node(["true"])
        argv = node.allow_python("import os, sys\nown = open('/proc/self/cgroup').read().split('0::')[1].split()[0]\n"
                                 "own = next((m + own for m in ('/sys/fs/cgroup/unified', '/sys/fs/cgroup')\n"
                                 "            if '/x0x-' in own and os.access(m + own, os.W_OK)), None)\n"
                                 "os.path.exists(own or '') or sys.exit(3)\nos.mkdir(own + '/more')\n"
                                 "if os.fork() == 0:\n os.execvp('sleep', ['sleep', '60'])\nprint(own)")
        connection = self.connect(node.start())
        session = connection.run(argv)
        if session.exit.code == 3:
            self.skipTest("no cgroup is delegated here")
        made = session.stdout.decode().strip()
        try:
            for _ in range(3):
                self.assert_ok(connection.request(["true"]))
        finally:
            os.rmdir(made + "/more")
        node.kill()
        node.start()
        self.assertFalse(os.path.exists(made), "an enforcer that was killed left a cgroup, and the next one too")

    def test_a_grandchild_that_holds_the_pipes_open_does_not_hold_up_the_end(self):
        node = self.node()
        argv = node.allow_script("setsid sleep 60 & echo done")
        session = self.connect(node.start()).run(argv)
        self.assert_ok(session, b"done\n")
        self.assertEqual(node.processes(but_enforcer=True), [])

    def test_the_last_output_of_a_command_is_not_lost_with_its_leftovers(self):
        node = self.node()
        argv = node.allow_python("import os, sys\nif os.fork() == 0:\n os.setsid()\n"
                                 " os.execvp('sleep', ['sleep', '60'])\n"
                                 "sys.stdout.write('x' * 60000)")
        session = self.connect(node.start()).run(argv)
        self.assert_ok(session, b"x" * 60000)


class Audit(Case):
    def test_the_request_is_in_the_log_before_the_command_exists(self):
        node = self.node()
        argv = node.allow_script(f"grep -c '\"event\":\"request\"' {node.log}")
        connection = self.connect(node.start())
        for number in range(1, 6):
            self.assert_ok(connection.request(argv), f"{number}\n".encode())

    def test_the_end_is_in_the_log_before_the_exit_arrives(self):
        node, connection = self.started(["true"])
        for _ in range(20):
            session = connection.run(["true"])
            self.assertEqual([r["event"] for r in node.audit_of(session)], ["request", "started", "exit"])


if __name__ == "__main__":
    main()
