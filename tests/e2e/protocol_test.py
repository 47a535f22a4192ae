"""The socket: who owns a session, how many peers there may be and who, and the two documents."""

import os
import resource
import signal
import socket
import stat
import threading
import unittest
import uuid

import wire
from harness import AGENT, AM_ROOT, MACHINE, OTHER_AGENT, OTHER_MACHINE, PATIENCE, PYTHON, Case, main, run, slow


class Ownership(Case):
    def test_reusing_the_id_of_a_live_session_is_malformed(self):
        node, connection = self.started(["sleep", "60"], ["true"])
        session = connection.request(["sleep", "60"])
        session.wait_started()
        connection.send(wire.exec_message(AGENT, MACHINE, wire.request_frame(session.address.request_id, ["true"])))
        connection.wait_closed()
        self.assertEqual(session.exit.denial, "malformed_frame")
        node.wait_for_audit("exit", request_id=str(session.address.request_id))
        self.assertEqual([r["event"] for r in node.audit()].count("started"), 1)

    def test_the_same_id_may_live_on_another_connection_or_for_another_pair(self):
        node = self.node(["sleep", "60"])
        for agent, machine in ((OTHER_AGENT, MACHINE), (AGENT, OTHER_MACHINE)):
            node.entry(agent, machine)
            node.allow(["sleep", "60"])
        node.start()
        one, two, request_id = self.connect(node), self.connect(node), uuid.uuid4()
        for connection, agent, machine in ((one, AGENT, MACHINE), (one, OTHER_AGENT, MACHINE),
                                           (one, AGENT, OTHER_MACHINE),
                                           (two, AGENT, MACHINE)):
            connection.request(["sleep", "60"], agent=agent, machine=machine, request_id=request_id).wait_started()
        self.assertEqual(len(one.list_sessions()), 4)
        one.sessions[wire.Address(OTHER_AGENT, MACHINE, request_id)].cancel()
        self.assertEqual(one.sessions[wire.Address(OTHER_AGENT, MACHINE, request_id)].wait().signal, 15)
        self.assertEqual(len(one.list_sessions()), 3)

    def test_a_second_request_after_exit_is_a_new_session(self):
        node, connection = self.started(["echo", "<INT>"])
        request_id = uuid.uuid4()
        for number in ("1", "2"):
            self.assert_ok(connection.request(["echo", number], request_id=request_id), number.encode() + b"\n")
        self.assertEqual([r["event"] for r in node.audit()][1:], ["request", "started", "exit"] * 2)

    def test_words_for_a_session_that_is_over_or_never_was_are_ignored(self):
        _, connection = self.started(["true"])
        session = connection.run(["true"])
        for _ in range(3):
            session.renew()
            session.cancel()
        stranger = wire.frame(wire.CANCEL, uuid.uuid4())
        connection.send(wire.exec_message(AGENT, MACHINE, stranger))
        connection.send(wire.exec_message(OTHER_AGENT, OTHER_MACHINE, stranger))
        self.assert_ok(connection.request(["true"]))

    def test_nobody_can_cancel_the_session_of_another(self):
        node, connection = self.started(["sleep", "1.5"])
        session = connection.request(["sleep", "1.5"])
        session.wait_started()
        cancel = wire.frame(wire.CANCEL, session.address.request_id)
        other = self.connect(node)
        other.send(wire.exec_message(AGENT, MACHINE, cancel))        # the same names on another connection
        connection.send(wire.exec_message(OTHER_AGENT, MACHINE, cancel))
        connection.send(wire.exec_message(AGENT, OTHER_MACHINE, cancel))
        other.diagnostics()
        self.assert_ok(session)
        self.assertEqual(session.warnings, [])

    @slow
    def test_nobody_can_renew_the_session_of_another(self):
        node, connection = self.started(["sleep", "60"])
        session = connection.request(["sleep", "60"])
        session.renewing = False
        others = [(self.connect(node), AGENT, MACHINE), (connection, OTHER_AGENT, MACHINE),
                  (connection, AGENT, OTHER_MACHINE)]
        while session.exit is None:
            for other, agent, machine in others:
                other.send(wire.exec_message(agent, machine, wire.frame(wire.LEASE_RENEW, session.address.request_id)))
            connection.sleep(0.5)
            self.assertLess(session.exit.duration_ms if session.exit else 0, PATIENCE * 1000)
        self.assertEqual(session.warnings, ["LeaseExpired"])


class Crowds(Case):
    def test_many_sessions_on_one_connection_do_not_mix(self):
        node = self.node(["cat"])
        node.exec.update(max_concurrent_per_agent=32, max_concurrent_total=32)
        connection = self.connect(node.start())
        inputs = [os.urandom(50000) for _ in range(32)]
        sessions = [connection.request(["cat"], stdin=stdin) for stdin in inputs]
        for session, stdin in zip(sessions, inputs):
            self.assert_ok(session, stdin)

    def test_many_connections_at_once_are_served(self):
        node = self.node(["echo", "<INT>"])
        node.exec.update(max_concurrent_per_agent=200, max_concurrent_total=200)
        node.start()
        sessions = [self.connect(node).request(["echo", str(1 + number)]) for number in range(100)]
        for number, session in enumerate(sessions):
            session.wait()
            if session.exit.denial != "concurrency_limit_reached":  # there may be a limit of the enforcer's own
                self.assert_ok(session, f"{1 + number}\n".encode())
        self.assertGreaterEqual(sum(session.exit.denial is None for session in sessions), 32)

    @slow
    def test_who_takes_the_place_of_a_peer_that_spoke_nonsense_hears_nothing_of_its_sessions(self):
        node = self.node(["echo", "<INT>"], ["yes"])
        node.start()
        others = [self.connect(node) for _ in range(255)]
        last = self.connect(node)  # now there are as many as there may be
        last.request(["yes"]).wait_started()
        for other in others:
            self.assertIn("totals", other.diagnostics())  # so the last has been silent longest
        node.signal(signal.SIGSTOP)
        last.send(bytes(4))  # a message of no bytes
        stranger = self.connect(node)
        node.signal(signal.SIGCONT)
        self.assert_ok(stranger.run(["echo", "7"]), b"7\n")  # fails on what is another's

    def test_ten_thousand_connections_that_say_nothing_lock_nobody_out(self):
        node, connection = self.started(["echo", "<INT>"], ["sleep", "60"])
        running = connection.request(["sleep", "60"])
        running.wait_started()
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        waves = 10 if hard < 12000 else 1
        for _ in range(waves):
            silent = []
            try:
                for number in range(10000 // waves):
                    silent.append(socket.socket(socket.AF_UNIX))
                    silent[-1].connect(str(node.socket))
                    if number % 200 == 0:
                        running.renew()
                with node.connect() as latecomer:
                    self.assert_ok(latecomer.request(["echo", "7"]), b"7\n")
            finally:
                for each in silent:
                    each.close()
        self.assertIsNone(running.exit)
        running.cancel()
        running.wait()

    def test_a_peer_that_does_not_read_holds_up_its_command_and_not_the_enforcer(self):
        node = self.node(["true"])
        size = 12 << 20
        argv = node.allow(["head", "-c", str(size), "/dev/zero"])
        node.start()
        slow_one, other = self.connect(node), self.connect(node)
        session = slow_one.request(argv)
        session.wait_started()
        counts = [0, 1]
        while len(set(counts[-5:])) > 1:  # until the command has come to a halt
            session.renew()  # it renews its lease, but reads nothing
            self.assert_ok(other.request(["true"]))
            other.sleep(0.1)
            counts += [listed["stdout_bytes"] for listed in other.list_sessions()]
            self.assertLess(counts[-1], 4 << 20)
        self.assert_ok(session, bytes(size))

    def test_a_peer_that_reads_late_loses_nothing_of_a_command_that_has_ended(self):
        node = self.node(["head", "-c", "<INT>", "/dev/zero"])
        node.exec.update(max_concurrent_per_agent=32, max_concurrent_total=32)
        node.start()
        sizes = range(300 << 10, 640 << 10, 12 << 10)  # some leave a full pipe behind, whatever the buffers between
        sessions = [self.connect(node).request(["head", "-c", str(size), "/dev/zero"]) for size in sizes]
        self.connect(node).sleep(1)
        for session, size in zip(sessions, sizes):
            for other in sessions:  # nobody else does while they are read one after the other
                other.renew()
            self.assert_ok(session, bytes(size))

    def test_a_peer_that_asks_without_reading_is_answered_in_full_and_costs_little_memory(self):
        node, connection = self.started(["true"])
        before, count = node.memory(), 5000
        sender = threading.Thread(target=lambda: [connection.send(wire.message(bytes([wire.DIAGNOSTICS])))
                                                  for _ in range(count)])
        sender.start()
        other = self.connect(node)
        for _ in range(10):
            self.assert_ok(other.request(["true"]))
            other.sleep(0.05)
        self.assertLess(node.memory() - before, 32 << 20)
        connection.pump(lambda: len(connection.documents) == count)
        sender.join()


class Users(Case):
    def test_the_socket_is_for_its_owner_only(self):
        node, _ = self.started(["true"])
        mode = node.socket.stat()
        self.assertEqual((stat.S_IMODE(mode.st_mode), mode.st_uid), (0o600, os.geteuid()))

    def test_a_user_who_is_not_allowed_is_closed_before_a_byte_is_read(self):
        node = self.node(["true"])
        node.options = ["--allow-uid", str(os.geteuid() + 1)]
        connection = self.connect(node.start())
        try:
            connection.request(["true"])
        except BrokenPipeError:
            pass
        connection.wait_closed()
        self.assertEqual([r["event"] for r in node.audit()], ["policy_loaded"])

    def test_several_users_may_be_allowed(self):
        node = self.node(["true"])
        node.options = ["--allow-uid", str(os.geteuid() + 1), "--allow-uid", str(os.geteuid())]
        self.assert_ok(self.connect(node.start()).request(["true"]))

    @unittest.skipUnless(AM_ROOT, "only root can act for two users")
    def test_not_even_root_may_talk_to_the_enforcer_of_another_user(self):
        for allowed in (False, True):
            node = self.node(["true"])
            node.compile()
            for path in (node.directory, node.policy_file, node.trust, node.state, node.work, node.bin):
                os.chown(path, 65534, 65534)
            node.wrapper = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
            node.options = ["--allow-uid", "0"] if allowed else []
            connection = self.connect(node.start(compile=False))
            if allowed:
                self.assert_ok(connection.request(["true"]))
            else:
                connection.wait_closed()


    def test_the_socket_may_have_an_abstract_name(self):
        node = self.node(["true"])
        name = f"x0x-{node.directory.name}"
        node.socket = "@" + name
        node.start()
        node.socket = node.directory / "s"  # where nothing may be left
        self.assert_ok(self.connect(node, path="\0" + name).request(["true"]))

    @unittest.skipUnless(AM_ROOT, "only root can act for two users")
    def test_an_ordinary_user_may_talk_to_an_enforcer_of_root_only_when_allowed(self):
        client = ("import socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.connect('\\0' + sys.argv[1])\n"
                  "try:\n s.sendall(b'\\x01\\0\\0\\0\\x03')\n print(len(s.recv(100)))\n"
                  "except (BrokenPipeError, ConnectionResetError):\n print(0)")
        for allowed in (False, True):
            node = self.node(["true"])
            name = f"x0x-{node.directory.name}"
            node.socket = "@" + name
            node.options = ["--allow-uid", "0"] + (["--allow-uid", "65534"] if allowed else [])
            node.start()
            node.socket = node.directory / "s"
            done = run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", PYTHON, "-c", client, name)
            self.assertEqual((done.returncode, int(done.stdout) > 0), (0, allowed), done.stderr)


class Documents(Case):
    def test_diagnostics_count_what_happened(self):
        node = self.node(["echo", "<INT>"], ["sleep", "60"])
        connection = self.connect(node.start())
        connection.run(["echo", "1"])
        connection.run(["echo", "x"])
        connection.run(["echo", "1;"])
        connection.run(["echo", "1"], agent=OTHER_AGENT)
        running = connection.request(["sleep", "60"])
        running.wait_started()
        document = connection.diagnostics()
        self.assertEqual((document["enabled"], document["active_sessions"], document["active_per_agent"]),
                         (True, 1, {AGENT: 1}))
        totals = document["totals"]
        denials = totals.pop("denial_breakdown")
        self.assertEqual({k: v for k, v in denials.items() if v},
                         {"argv_not_allowed": 1, "shell_metachar_in_argv": 1, "agent_machine_not_in_acl": 1})
        self.assertEqual(set(denials), set(wire.DENIALS))
        self.assertEqual(totals, {"requests_received": 5, "requests_allowed": 2, "requests_denied": 3,
                                  "cap_breaches": {"stdout": 0, "stderr": 0, "duration": 0},
                                  "cap_warnings": {"stdout_approaching": 0, "stderr_approaching": 0,
                                                   "duration_approaching": 0},
                                  "sessions_started": 2, "sessions_completed": 1, "sessions_cancelled": 0,
                                  "audit_write_failures": 0})
        self.assertEqual(document["recent_warnings"], [])
        summary = document["acl_summary"]
        self.assertEqual((summary["loaded_from"], summary["allow_entry_count"], summary["command_entry_count"]),
                         (str(node.policy_file), 1, 2))
        self.assertRegex(summary["loaded_at"], r"^\d{4}-\d\d-\d\dT[\d:.]+Z$")
        policy = document["policy"]
        self.assertEqual((policy["name"], policy["version"]), ("e2e", 1))
        self.assertRegex(policy["expires"], r"^2100-01-01T00:00:00(\.000)?Z$")
        self.assertRegex(policy["digest"], r"^[0-9a-f]{64}$")

    def test_requests_that_could_not_start_or_be_read_are_counted_once(self):
        node = self.node(["true"], ["/nonexistent/program"])
        connection = self.connect(node.start())
        connection.run(["true"])
        self.assert_denied(connection.request(["/nonexistent/program"]), "spawn_failed")
        rude = self.connect(node)
        rude.send(wire.message(b"\x09"))
        rude.wait_closed()
        totals = connection.diagnostics()["totals"]
        self.assertEqual((totals["requests_received"], totals["requests_allowed"], totals["requests_denied"]), (3, 1, 2))
        self.assertEqual(sum(totals["denial_breakdown"].values()), 2)
        self.assertEqual((totals["sessions_started"], totals["sessions_completed"]), (1, 1))

    def test_diagnostics_never_show_what_the_policy_allows(self):
        node = self.node(["x0x-secret-program", "x0x-secret-argument"])
        node.entries[-1][0]["description"] = "x0x-secret-description"
        text = str(self.connect(node.start()).diagnostics())
        self.assertNotIn("secret", text)
        self.assertNotIn(AGENT, text)

    def test_the_list_of_sessions_shows_who_runs_what_and_for_how_long(self):
        node = self.node()
        argv = node.allow_script("echo 12345; echo 123 >&2; sleep 60")
        connection = self.connect(node.start())
        self.assertEqual(connection.list_sessions(), [])
        session = connection.request(argv)
        session.wait_output(b"12345")
        session.wait_output(b"123", "stderr")
        listed = connection.list_sessions()
        self.assertEqual(len(listed), 1)
        shown = listed[0]
        self.assertEqual((shown["request_id"], shown["agent_id"], shown["machine_id"], shown["pid"]),
                         (str(session.address.request_id), AGENT, MACHINE, session.started.pid))
        self.assertEqual((shown["stdout_bytes"], shown["stderr_bytes"], shown["argv_summary"]), (6, 4, argv[0]))
        self.assertRegex(shown["started_at"], r"^\d{4}-\d\d-\d\dT[\d:.]+Z$")
        connection.sleep(0.2)
        self.assertGreaterEqual(connection.list_sessions()[0]["duration_ms"], shown["duration_ms"] + 200)

    def test_a_session_of_many_strange_arguments_leaves_the_documents_valid(self):
        node = self.node()
        argv = node.allow([node.script("sleep 60"), "\"quote\\", "\x1b[31m\t", "é" * 200])
        connection = self.connect(node.start())
        connection.request(argv).wait_started()
        summary = connection.list_sessions()[0]["argv_summary"]  # an invalid document would have failed here
        self.assertTrue(summary.startswith(argv[0]))


if __name__ == "__main__":
    main()
