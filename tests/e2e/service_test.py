"""The enforcer as a service: without a policy, under systemd, told to stop, and with a log that others rotate."""

import errno
import signal
import socket
import stat
import time

from harness import (ENFORCER, PYTHON, Case, in_mount_namespace, main, read_audit, slow, wait_until)

STUBBORN = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up', flush=True)\ntime.sleep(60)"
# Takes the number of a descriptor, then a command: what systemd does for a unit with a socket.
ACTIVATE = ("import os, sys\nos.dup2(int(sys.argv[1]), 3)\nos.environ['LISTEN_FDS'] = '1'\n"
            "os.environ['LISTEN_PID'] = str(os.getpid() + int(sys.argv[2]))\nos.execv(sys.argv[3], sys.argv[3:])")


def knock(path):
    """What connecting to it gives: 0 when somebody listens, or an errno."""
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path))


class WithoutPolicy(Case):
    """The default path is /etc/x0x/exec-policy.x0xp, so these see an /etc and a /var/log of their own."""

    def default_node(self, setup=""):
        node = self.node(["true"])
        logs = node.work / "log"
        logs.mkdir()
        node.wrapper = in_mount_namespace(f"mount -t tmpfs none /etc\nmount -t tmpfs none /var/log\n"
                                          f"mkdir /etc/x0x /var/log/x0x\n"
                                          f"mount --bind {logs} /var/log/x0x\n{setup}")
        if node.wrapper is None:
            self.skipTest("mount namespaces are not allowed here")
        node.log = logs / "exec.log"
        node.command = lambda *more: [*node.wrapper, ENFORCER, "--state", node.state, "--socket", node.socket, *more]
        return node

    def test_it_starts_with_exec_disabled_when_there_is_no_policy_at_the_default_path(self):
        node = self.default_node().start(compile=False)
        connection = self.connect(node)
        self.assert_denied(connection.request(["true"]), "exec_disabled")
        document = connection.diagnostics()
        self.assertEqual((document["enabled"], document["acl_summary"]["command_entry_count"],
                          document["policy"]["version"]),
                         (False, 0, 0))
        self.assertEqual([(r["event"], r.get("enabled")) for r in node.audit()],
                         [("policy_loaded", False), ("denial", None)])
        done = node.refuse("--check")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("exec: disabled\npolicy: /etc/x0x/exec-policy.x0xp: missing", node.refuse("--doctor").stdout)

    def test_a_policy_at_the_default_path_that_is_broken_is_never_taken_for_none(self):
        for setup, fault in (("echo garbage > /etc/x0x/exec-policy.x0xp; touch /etc/x0x/policy-trust.pub",
                              "trust_no_keys"),
                             ("ln -s /nowhere /etc/x0x/exec-policy.x0xp", "symlink"),
                             ("mkdir /etc/x0x/exec-policy.x0xp", "not_a_file"),
                             ("echo garbage > /etc/x0x/exec-policy.x0xp", "missing")):  # the trust file is
            with self.subTest(setup=setup):
                done = self.default_node(setup).refuse()
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr, rf"^x0x-enforcer: /etc/x0x/[^\n]*: {fault}: [^\n]+\n\Z")

    def test_the_defaults_are_those_of_the_manual(self):
        node = self.node(["true"])
        node.exec["audit_log_path"] = "/var/log/x0x/exec.log"
        node.compile()
        logs = node.work / "log"
        logs.mkdir()
        node.wrapper = in_mount_namespace(
            f"mount -t tmpfs none /etc\nmkdir /etc/x0x\n"
            f"cp {node.policy_file} /etc/x0x/exec-policy.x0xp\ncp {node.trust} /etc/x0x/policy-trust.pub\n"
            f"for d in /var/log /var/lib /run; do mount -t tmpfs none $d; mkdir $d/x0x; done\n"
            f"mount --bind {logs} /var/log/x0x\nmount --bind {node.state} /var/lib/x0x\n"
            f"mount --bind {node.work} /run/x0x")
        if node.wrapper is None:
            self.skipTest("mount namespaces are not allowed here")
        node.command = lambda *more: [*node.wrapper, ENFORCER, *more]
        node.socket, node.log = node.work / "enforcer.sock", logs / "exec.log"
        self.assert_ok(self.connect(node.start(compile=False)).request(["true"]))
        self.assertEqual([path.name for path in node.state.iterdir()], ["highest"])
        self.assertEqual(node.audit()[0]["loaded_from"], "/etc/x0x/exec-policy.x0xp")


class Systemd(Case):
    def test_readiness_and_stopping_are_told_to_an_abstract_socket_too(self):
        node = self.node(["true"])
        node.compile()
        name = f"x0x-e2e-{node.directory.name}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
            told.bind("\0" + name)
            told.settimeout(60)
            node.launch("@" + name)
            self.assertEqual(told.recv(100), b"READY=1")
            self.assert_ok(self.connect(node).request(["true"]))
            node.signal(signal.SIGTERM)
            self.assertEqual(told.recv(100), b"STOPPING=1")
            self.assertEqual(node.wait(), 0)

    def test_a_notify_socket_that_is_not_there_harms_nobody(self):
        node = self.node(["true"])
        node.compile()
        node.launch("/nowhere")
        wait_until(node.socket.exists)
        self.assert_ok(self.connect(node).request(["true"]))

    def activated(self, node, offset=0):
        """Starts it with a listening socket on descriptor 3, for this process or (offset 1) for another."""
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        path = node.work / "activated"
        listener.bind(str(path))
        listener.listen(10)
        node.wrapper = [PYTHON, "-c", ACTIVATE, listener.fileno(), offset]
        return listener, path

    def test_a_socket_that_systemd_passes_is_used_and_stays(self):
        node = self.node(["true"], ["env"], ["ls", "/proc/self/fd"])
        listener, path = self.activated(node)
        early = socket.socket(socket.AF_UNIX)  # a client that comes before the service
        early.connect(str(path))
        self.addCleanup(early.close)
        node.start(pass_fds=[listener.fileno()])
        self.assertFalse(node.socket.exists())
        node.socket = path
        connection = self.connect(node)
        self.assert_ok(connection.request(["true"]))
        self.assertNotIn(b"LISTEN", connection.run(["env"]).stdout)
        self.assertEqual(connection.run(["ls", "/proc/self/fd"]).stdout.split(), [b"0", b"1", b"2", b"3"])
        node.signal(signal.SIGTERM)
        self.assertEqual(node.wait(), 0)
        self.assertTrue(path.exists())

    def test_a_socket_that_was_meant_for_another_process_is_not_used(self):
        node = self.node(["true"])
        listener, path = self.activated(node, offset=1)
        node.start(pass_fds=[listener.fileno()])
        self.assert_ok(self.connect(node).request(["true"]))
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.connect(str(path))
            stranger.settimeout(0.3)
            with self.assertRaises(TimeoutError):
                stranger.recv(1)


class Stopping(Case):
    def test_sigterm_and_sigint_end_an_idle_enforcer_with_status_0_and_a_last_record(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            node = self.node(["true"]).start()
            self.connect(node).run(["true"])
            node.signal(number)
            self.assertEqual(node.wait(), 0)
            self.assertEqual(node.audit()[-1]["event"], "stopped")
            node.assert_nothing_left()

    def test_sessions_are_ended_and_their_peers_are_told(self):
        node, connection = self.started(["sleep", "60"])
        session = connection.request(["sleep", "60"])
        session.wait_started()
        node.signal(signal.SIGTERM)
        self.assertEqual((session.wait().signal, session.warnings), (signal.SIGTERM, ["Cancelled"]))
        connection.wait_closed()
        self.assertEqual(node.wait(), 0)
        self.assertEqual([r["event"] for r in node.audit()][-3:], ["warning", "exit", "stopped"])

    @slow
    def test_a_stubborn_session_has_the_grace_and_no_more_and_nothing_new_is_accepted(self):
        node = self.node(["true"])
        argv = node.allow_python(STUBBORN)
        connection = self.connect(node.start())
        session = connection.request(argv)
        session.wait_output(b"up")
        began = time.monotonic()
        node.signal(signal.SIGTERM)
        connection.pump(lambda: session.warnings)
        with self.assertRaises(OSError):
            wait_until(lambda: node.connect().close(), timeout=2)  # refused, not left waiting
        self.assert_denied(connection.request(["true"]), "exec_disabled")
        self.assertEqual(session.wait().signal, signal.SIGKILL)
        self.assertGreaterEqual(time.monotonic() - began, 4.9)
        self.assertEqual(node.wait(), 0)
        node.assert_nothing_left()

    @slow
    def test_the_socket_of_a_successor_is_left_alone(self):
        node = self.node()
        argv = node.allow_script("trap '' TERM; echo up; while :; do sleep 0.1; done")
        connection = self.connect(node.start())
        connection.request(argv).wait_output(b"up")
        node.signal(signal.SIGTERM)
        wait_until(lambda: knock(node.socket) == errno.ECONNREFUSED)
        successor = self.node(["true"])
        successor.socket = node.socket
        successor.start()
        self.assertEqual(node.wait(), 0)
        self.assert_ok(self.connect(successor).request(["true"]))

    def test_of_many_that_start_at_once_one_serves(self):
        node = self.node(["true"])
        node.compile()
        for _ in range(5):
            with socket.socket(socket.AF_UNIX) as stale:  # as a crash leaves it
                stale.bind(str(node.socket))
            started = []
            for _ in range(8):
                node.launch()
                started.append(node.process)
            wait_until(lambda: sum(process.poll() is None for process in started) == 1)
            node.process = next(process for process in started if process.poll() is None)
            self.assertEqual({process.wait() for process in started if process is not node.process}, {1})
            wait_until(lambda: knock(node.socket) == 0)
            self.assert_ok(self.connect(node).request(["true"]))
            node.stop()

    def test_a_peer_that_does_not_read_cannot_hold_up_the_end(self):
        node = self.node()
        argv = node.allow(["head", "-c", "8000000", "/dev/zero"])
        connection = self.connect(node.start())
        session = connection.request(argv)
        session.wait_started()
        node.signal(signal.SIGTERM)
        self.assertEqual(node.wait(), 0)
        self.assertEqual(node.audit()[-1]["event"], "stopped")


class Reading(Case):
    def test_the_policy_is_read_once(self):
        node = self.node(["echo", "old"]).start()
        node.entries.clear()
        node.allow(["echo", "new"])
        node.policy["version"] = 2
        node.compile()
        connection = self.connect(node)
        node.signal(signal.SIGHUP)
        node.wait_for_audit("log_reopened")
        self.assert_denied(connection.request(["echo", "new"]), "argv_not_allowed")
        self.assert_ok(connection.request(["echo", "old"]))
        node.stop()
        connection = self.connect(node.start(compile=False))
        self.assert_ok(connection.request(["echo", "new"]))

    def test_its_own_environment_decides_nothing(self):
        node = self.node(["echo", "<INT>"])
        node.env = {"X0X_SOCKET": "/nowhere", "X0X_POLICY": "/nowhere", "TZ": "Asia/Tokyo", "LC_ALL": "tr_TR.UTF-8",
                    "POSIXLY_CORRECT": "1", "TMPDIR": "/nowhere"}
        connection = self.connect(node.start())
        self.assert_ok(connection.request(["echo", "1"]))
        self.assertLess(abs(time.time() - time.mktime(time.strptime(node.audit()[0]["ts"][:19],
                                                                    "%Y-%m-%dT%H:%M:%S")) + time.timezone), 120)


class Log(Case):
    def test_it_is_for_its_owner_and_group(self):
        node, _ = self.started(["true"])
        self.assertEqual(stat.S_IMODE(node.log.stat().st_mode), 0o640)

    def test_the_chain_goes_on_after_a_restart(self):
        node = self.node(["true"])
        for _ in range(3):
            self.connect(node.start()).run(["true"])
            node.stop()
        records = node.audit()
        self.assertEqual([r["seq"] for r in records], list(range(len(records))))
        self.assertEqual([r["event"] for r in records], ["policy_loaded", "request", "started", "exit", "stopped"] * 3)

    def test_logrotate_moves_it_and_the_chain_carries_on_in_the_new_file(self):
        node, connection = self.started(["true"], ["sleep", "60"])
        running = connection.request(["sleep", "60"])
        running.wait_started()
        rotated = []
        for number in range(3):
            connection.run(["true"])
            rotated.append(node.log.with_name(f"exec.log.{number}"))
            node.log.rename(rotated[-1])
            connection.run(["true"])  # still into the old one
            node.signal(signal.SIGHUP)
            wait_until(node.log.exists)
            wait_until(lambda: b"log_reopened" in node.log.read_bytes())
        running.cancel()
        running.wait()
        node.stop()
        records = read_audit([*rotated, node.log])
        self.assertEqual([r["event"] for r in records].count("exit"), 7)
        self.assertEqual([r["event"] for r in records].count("log_reopened"), 3)
        self.assertEqual(stat.S_IMODE(node.log.stat().st_mode), 0o640)

    def test_a_sighup_without_a_rotation_loses_nothing(self):
        node, connection = self.started(["true"])
        for _ in range(20):
            node.signal(signal.SIGHUP)
            self.assert_ok(connection.request(["true"]))
        node.stop()
        self.assertEqual([r["event"] for r in node.audit()].count("exit"), 20)

    def test_when_it_cannot_be_reopened_the_old_file_is_kept_and_it_is_said(self):
        node, connection = self.started(["true"])
        moved = node.log.with_name("exec.log.1")
        node.log.rename(moved)
        node.log.symlink_to(node.work / "elsewhere")
        node.signal(signal.SIGHUP)
        wait_until(lambda: "going on in the old file" in node.read_errors())
        self.assert_ok(connection.request(["true"]))
        self.assertEqual([r["event"] for r in read_audit([moved])][-1], "exit")
        self.assertFalse((node.work / "elsewhere").exists())
        node.log.unlink()


if __name__ == "__main__":
    main()
