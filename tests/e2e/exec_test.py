"""x0x-exec against the real enforcer: the end-to-end list of the design, then what the program itself promises."""

import base64
import json
import os
import signal
import subprocess
import time

from harness import (AGENT, CLIENT, MACHINE, OTHER_AGENT, POLICYC, SANITIZER_OPTIONS, Case, Keys, assert_clean, main,
                     run, slow, wait_until)

STUBBORN = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up', flush=True)\ntime.sleep(60)"


class ClientCase(Case):
    def environment(self, node, **more):
        return {"HOME": str(node.work), "XDG_RUNTIME_DIR": str(node.work), "PATH": os.environ["PATH"],
                **SANITIZER_OPTIONS, **more}

    def words(self, node, argv, options=(), agent=AGENT, machine=MACHINE):
        return [str(word) for word in (CLIENT, "--socket", node.socket, "--agent", agent, "--machine", machine,
                                       *options, "--", *argv)]

    def exec(self, node, *argv, options=(), agent=AGENT, **more):
        """Runs x0x-exec to its end; stdout and stderr are bytes."""
        done = subprocess.run(self.words(node, argv, options, agent), env=self.environment(node), capture_output=True,
                              timeout=60,
                              **{"stdin": subprocess.DEVNULL, **more})
        assert_clean(done.stderr.decode(errors="replace"), "x0x-exec")
        return done

    def begin(self, node, *argv, options=()):
        """Starts x0x-exec and leaves it running."""
        process = subprocess.Popen(self.words(node, argv, options), env=self.environment(node),
                                   stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        return process

    def ask(self, node, *words):
        return run(CLIENT, *words, env=self.environment(node))

    def assert_line(self, done, status, pattern):
        """It ends with this status, and one line on stderr says why."""
        text = done.stderr.decode() if isinstance(done.stderr, bytes) else done.stderr
        self.assertEqual(done.returncode, status, text)
        self.assertRegex(text, rf"^x0x-exec: {pattern}[^\n]*\n\Z")

    def assert_denied_client(self, done, reason):
        self.assertEqual(done.stdout, b"")
        self.assert_line(done, 255, f"denied: {reason}: ")

    def finish(self, process, timeout=60):
        stdout, stderr = process.communicate(timeout=timeout)
        assert_clean(stderr.decode(errors="replace"), "x0x-exec")
        return subprocess.CompletedProcess([], process.returncode, stdout, stderr)


class DesignList(ClientCase):
    """Alice may run these on Bob's machine; Charlie may not."""

    def bob(self):
        node = self.node(["echo", "<INT>"], ["printenv", "PATH"])
        return node.start()

    def test_echo_42_gives_42_and_0(self):
        done = self.exec(self.bob(), "echo", "42")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"42\n", b""))

    def test_echo_hello_is_denied_because_the_template_does_not_match(self):
        self.assert_denied_client(self.exec(self.bob(), "echo", "hello"), "argv_not_allowed")

    def test_a_semicolon_in_a_token_is_denied_although_there_is_no_shell(self):
        node = self.bob()
        self.assert_denied_client(self.exec(node, "echo", "99", ";", "ls"), "shell_metachar_in_argv")
        self.assert_denied_client(self.exec(node, "echo", "99;ls"), "shell_metachar_in_argv")

    def test_rm_rf_is_denied_because_it_is_not_in_the_list(self):
        self.assert_denied_client(self.exec(self.bob(), "rm", "-rf", "/"), "argv_not_allowed")

    def test_printenv_path_shows_a_scrubbed_environment(self):
        done = self.exec(self.bob(), "printenv", "PATH")
        self.assertEqual((done.returncode, done.stdout),
                         (0, b"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"))

    def test_charlie_is_denied_what_alice_may(self):
        self.assert_denied_client(self.exec(self.bob(), "echo", "42", agent=OTHER_AGENT), "agent_machine_not_in_acl")

    def test_diagnostics_show_the_right_counters(self):
        node = self.bob()
        for argv in (["echo", "1"], ["echo", "2"], ["echo", "x"], ["echo", "1;"]):
            self.exec(node, *argv)
        self.exec(node, "echo", "42", agent=OTHER_AGENT)
        done = self.ask(node, "diagnostics", "--socket", node.socket, "--format", "json")
        totals = json.loads(done.stdout)["totals"]
        self.assertEqual((totals["requests_received"], totals["requests_allowed"], totals["requests_denied"]),
                         (5, 2, 3))
        self.assertEqual({k: v for k, v in totals["denial_breakdown"].items() if v},
                         {"argv_not_allowed": 1, "shell_metachar_in_argv": 1, "agent_machine_not_in_acl": 1})

    def test_stdout_stderr_code_and_the_log_are_those_of_the_command(self):
        node = self.node()
        argv = node.allow_script("echo out; echo err >&2; exit 7")
        done = self.exec(node.start(), *argv)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (7, b"out\n", b"err\n"))
        self.assertEqual([r["event"] for r in node.audit()], ["policy_loaded", "request", "started", "exit"])
        self.assertEqual(node.audit()[-1]["code"], 7)

    def test_a_denied_argv_starts_no_process(self):
        node = self.node()
        node.allow([node.script(f"touch {node.work}/ran"), "x"])
        done = self.exec(node.start(), node.entries[0][1][0]["argv"][0], "y")
        self.assert_denied_client(done, "argv_not_allowed")
        self.assertFalse((node.work / "ran").exists())
        self.assertNotIn("started", [r["event"] for r in node.audit()])

    def test_a_client_that_is_killed_makes_the_child_receive_sigterm_within_five_seconds(self):
        node = self.node()
        argv = node.allow_script(f"trap 'touch {node.work}/told; exit 0' TERM; echo up; while :; do sleep 0.1; done")
        process = self.begin(node.start(), *argv)
        self.assertEqual(process.stdout.readline(), b"up\n")
        process.kill()
        wait_until((node.work / "told").exists)
        self.assertEqual(node.wait_for_audit("exit")["code"], 0)  # a SIGKILL after five seconds would show here
        self.assertEqual(node.processes(but_enforcer=True), [])

    def test_the_fifth_session_of_an_agent_is_denied(self):
        node = self.node(["sleep", "60"]).start()
        for _ in range(4):
            self.begin(node, "sleep", "60")
        wait_until(lambda: sum(r["event"] == "started" for r in node.audit()) == 4)
        self.assert_denied_client(self.exec(node, "sleep", "60"), "concurrency_limit_reached")

    def test_a_cap_on_stdout_truncates_warns_and_does_not_kill(self):
        node = self.node()
        node.exec.update(max_stdout_bytes=10, warn_stdout_bytes=5)
        argv = node.allow_script("echo 0123456789abcdef; exit 3")
        done = self.exec(node.start(), *argv)
        self.assertEqual((done.returncode, done.stdout), (3, b"0123456789"))
        self.assertRegex(done.stderr.decode(), r"^x0x-exec: warning: StdoutApproachingCap: [^\n]+\n"
                                               r"x0x-exec: warning: StdoutCapHit: [^\n]+\n\Z")
        breaches = self.connect(node).diagnostics()["totals"]["cap_breaches"]
        self.assertEqual(breaches["stdout"], 1)

    @slow
    def test_a_cap_on_duration_kills_and_is_said(self):
        node = self.node()
        argv = node.allow_python(STUBBORN, max_duration_secs=6)
        done = self.exec(node.start(), *argv)
        self.assertEqual((done.returncode, done.stdout), (255, b"up\n"))
        self.assertRegex(done.stderr.decode(), r"x0x-exec: killed: its time was up: SIGKILL after 6\.\d s[^\n]*\n\Z")

    def test_a_policy_with_a_mistake_never_becomes_a_table(self):
        node = self.node(["echo", "1"])
        good = node.policy_text()
        bad = {"missing required field": good.replace("machine_id", "#"),
               "invalid hex": good.replace(AGENT, "zz" + AGENT[2:]),
               "unknown template": good.replace('"1"', '"<NUMBER>"')}
        said = set()
        for name, text in bad.items():
            with self.subTest(name):
                done = run(POLICYC, "compile", "-", "-o", node.policy_file, "--key", Keys.get()[1], input=text,
                           stdin=None)
                self.assertEqual(done.returncode, 1)
                self.assertFalse(node.policy_file.exists())
                said.add(done.stderr.splitlines()[0])
        self.assertEqual(len(said), 3, said)


class Status(ClientCase):
    def test_the_code_is_that_of_the_command(self):
        node = self.node()
        argvs = {code: node.allow_script(f"exit {code}") for code in (0, 1, 42, 254, 255)}
        node.start()
        for code, argv in argvs.items():
            done = self.exec(node, *argv)
            self.assertEqual((done.returncode, done.stderr), (code, b""))

    def test_a_signal_is_128_and_its_number(self):
        node = self.node()
        argvs = {number: node.allow_script(f"kill -{number} $$")
                 for number in (signal.SIGHUP, signal.SIGKILL, signal.SIGSEGV)}
        node.start()
        for number, argv in argvs.items():
            self.assert_line(self.exec(node, *argv), 128 + number, f"killed: {number.name} after ")

    def test_a_failed_start_is_255(self):
        node = self.node(["/x0x/no/such/program"]).start()
        self.assert_line(self.exec(node, "/x0x/no/such/program"), 255, "denied: spawn_failed: ")

    def test_an_enforcer_that_is_not_there_is_255(self):
        node = self.node(["true"])
        self.assert_line(self.exec(node, "true"), 255, "error: no enforcer socket at ")
        node.start()
        node.kill()
        self.assert_line(self.exec(node, "true"), 255, "error: nothing listens on ")
        node.socket.unlink()

    def test_a_user_who_may_not_connect_is_told(self):
        node = self.node(["true"])
        node.options = ["--allow-uid", str(os.geteuid() + 1)]
        self.assert_line(self.exec(node.start(), "true"), 255, "transport: lost the enforcer: .*--allow-uid")

    def test_an_enforcer_that_is_killed_is_lost_and_it_is_said_plainly(self):
        node = self.node()
        argv = node.allow_script("echo up; sleep 60")
        process = self.begin(node.start(), *argv)
        self.assertEqual(process.stdout.readline(), b"up\n")
        node.kill()
        self.assert_line(self.finish(process), 255, "transport: lost the enforcer: ")
        wait_until(lambda: not node.processes())
        node.socket.unlink()

    def test_an_enforcer_that_stops_ends_the_command_and_it_is_said(self):
        node = self.node()
        argv = node.allow_script("echo up; exec sleep 60")
        process = self.begin(node.start(), *argv)
        self.assertEqual(process.stdout.readline(), b"up\n")
        node.stop()
        done = self.finish(process)
        self.assertEqual(done.returncode, 255)
        self.assertRegex(done.stderr.decode(),
                         r"x0x-exec: killed: the enforcer cancelled the session: SIGTERM after [^\n]+\n\Z")

    def test_mistakes_on_the_command_line_are_255_and_one_line(self):
        node = self.node()
        for words in ([], ["--"], ["--agent", "12", "--machine", MACHINE, "--", "true"], ["true"],
                      ["--tmeout", "3", "--", "true"],
                      ["--timeout", "0", "--", "true"], ["--timeout", "x", "--", "true"], ["cancel"], ["cancel", "12"],
                      ["sessions", "x"], ["diagnostics", "--format", "xml"],
                      ["--stdin-file", "/nowhere", "--agent", AGENT, "--machine",
                                                                              MACHINE, "--", "true"]):
            with self.subTest(words=words):
                self.assert_line(self.ask(node, *words), 255, "error: ")


class Streams(ClientCase):
    def test_both_streams_are_passed_on_byte_for_byte(self):
        node = self.node()
        argv = node.allow_python("import os\nos.write(1, bytes(range(256)) * 300)\n"
                                 "os.write(2, bytes(range(255, -1, -1)))")
        done = self.exec(node.start(), *argv)
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (0, bytes(range(256)) * 300, bytes(range(255, -1, -1))))

    def test_output_is_shown_as_it_comes(self):
        node = self.node()
        argv = node.allow_script("echo one; sleep 60")
        process = self.begin(node.start(), *argv)
        self.assertEqual(process.stdout.readline(), b"one\n")
        self.assertIsNone(process.poll())

    def test_large_output_arrives_complete_through_a_slow_reader(self):
        node = self.node(["head", "-c", "9000000", "/dev/zero"]).start()
        process = self.begin(node, "head", "-c", "9000000", "/dev/zero")
        time.sleep(1)
        self.assertEqual(len(process.stdout.read()), 9000000)
        self.assertEqual(self.finish(process).returncode, 0)

    def test_a_reader_that_goes_away_cancels_the_command(self):
        node = self.node(["yes"]).start()
        process = self.begin(node, "yes")
        self.assertEqual(process.stdout.readline(), b"y\n")
        process.stdout.close()
        process.stdout = None
        self.assert_line(self.finish(process), 128 + signal.SIGPIPE, "stopped: nobody reads the output")
        node.wait_for_audit("exit")

    def test_stdin_comes_from_a_file_or_from_stdin_and_never_by_itself(self):
        node = self.node(["cat"]).start()
        data = os.urandom(100000)
        file = node.work / "input"
        file.write_bytes(data)
        self.assertEqual(self.exec(node, "cat", options=["--stdin-file", file]).stdout, data)
        self.assertEqual(self.exec(node, "cat", options=["--stdin-file", "-"], input=data, stdin=None).stdout, data)
        self.assertEqual(self.exec(node, "cat", input=data, stdin=None).stdout, b"")

    def test_stdin_that_is_too_large_for_the_rule_or_for_a_request_is_255(self):
        node = self.node(["cat"]).start()
        options = ["--stdin-file", "-"]
        self.assert_line(self.exec(node, "cat", options=options, input=b"x" * ((1 << 20) + 1), stdin=None), 255,
                         "denied: stdin_too_large: ")
        self.assert_line(self.exec(node, "cat", options=options, input=b"x" * (2 << 20), stdin=None), 255,
                         "error: the input is too large")
        self.assert_line(self.exec(node, "cat", options=options, input=b"x" * (3 << 20), stdin=None), 255,
                         "error: `stdin` is too large")

    @slow
    def test_the_lease_is_renewed_for_as_long_as_the_command_runs(self):
        node = self.node(["sleep", "6"]).start()
        done = self.exec(node, "sleep", "6")
        self.assertEqual((done.returncode, done.stderr), (0, b""))


class Json(ClientCase):
    def test_one_object_holds_everything(self):
        node = self.node()
        argv = node.allow_script("printf 'a\\0b'; echo err >&2; exit 3")
        done = self.exec(node.start(), *argv, options=["--json"])
        self.assertEqual((done.returncode, done.stderr), (3, b""))
        result = json.loads(done.stdout)
        self.assertEqual(done.stdout.count(b"\n"), 1)
        self.assertEqual(base64.b64decode(result.pop("stdout_b64")), b"a\0b")
        self.assertEqual(base64.b64decode(result.pop("stderr_b64")), b"err\n")
        self.assertEqual(result.pop("request_id"), node.audit()[-1]["request_id"])
        self.assertEqual(result.pop("duration_ms"), node.audit()[-1]["duration_ms"])
        self.assertEqual(result, {"code": 3, "signal": None, "stdout_bytes_total": 3, "stderr_bytes_total": 4,
                                  "truncated": False,
                                  "denial_reason": None, "warnings": [], "error": None, "status": 3})

    def test_a_denial_a_signal_and_a_cap_are_in_it_too(self):
        node = self.node()
        node.exec.update(max_stdout_bytes=4, warn_stdout_bytes=0)
        argv = node.allow_script("echo 123456; kill -9 $$")
        node.start()
        done = self.exec(node, "rm", options=["--json"])
        denied = json.loads(done.stdout)
        self.assertEqual((done.returncode, denied["denial_reason"], denied["status"]), (255, "argv_not_allowed", 255))
        self.assertEqual(done.stderr.decode(), f"x0x-exec: {denied['error']}\n")
        done = self.exec(node, *argv, options=["--json"])
        killed = json.loads(done.stdout)
        self.assertEqual((done.returncode, killed["signal"], killed["code"], killed["truncated"]), (137, 9, None, True))
        self.assertEqual([warning["kind"] for warning in killed["warnings"]], ["StdoutCapHit"])


class Interrupts(ClientCase):
    def running(self, *, stubborn):
        node = self.node()
        argv = node.allow_python(STUBBORN) if stubborn else node.allow_script("echo up; exec sleep 60")
        process = self.begin(node.start(), *argv)
        self.assertEqual(process.stdout.readline(), b"up\n")
        return node, process

    def test_the_first_interrupt_cancels_and_waits_for_the_end(self):
        node, process = self.running(stubborn=False)
        process.send_signal(signal.SIGINT)
        self.assert_line(self.finish(process), 128 + signal.SIGTERM, "cancelled: SIGTERM after ")
        self.assertEqual(node.audit()[-1]["signal"], signal.SIGTERM)

    @slow
    def test_it_waits_for_a_command_that_does_not_heed_it(self):
        node, process = self.running(stubborn=True)
        process.send_signal(signal.SIGINT)
        self.assert_line(self.finish(process), 128 + signal.SIGKILL, "cancelled: SIGKILL after ")
        self.assertEqual(node.processes(but_enforcer=True), [])

    @slow
    def test_the_second_interrupt_leaves_at_once_and_the_enforcer_ends_the_command(self):
        node, process = self.running(stubborn=True)
        process.send_signal(signal.SIGINT)
        node.wait_for_audit("warning", kind="Cancelled")
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        self.assert_line(self.finish(process), 128 + signal.SIGINT, "left: did not wait for the command's end")
        self.assertNotIn("exit", [r["event"] for r in node.audit()])
        node.wait_for_audit("exit")
        self.assertEqual(node.processes(but_enforcer=True), [])

    @slow
    def test_a_client_that_is_suspended_loses_its_lease(self):
        node, process = self.running(stubborn=False)
        process.send_signal(signal.SIGSTOP)
        node.wait_for_audit("exit")
        process.send_signal(signal.SIGCONT)
        done = self.finish(process)
        self.assertEqual(done.returncode, 255)
        self.assertRegex(done.stderr.decode(), r"x0x-exec: killed: the lease ran out: SIGTERM after [^\n]+\n\Z")

    @slow
    def test_timeout_ends_the_command_and_is_said(self):
        node = self.node(["sleep", "60"]).start()
        for seconds in ("1.5", "6"):
            done = self.exec(node, "sleep", "60", options=["--timeout", seconds])
            self.assertEqual(done.returncode, 255)
            self.assertRegex(done.stderr.decode(),
                             r"x0x-exec: killed: its time was up: SIG(TERM|KILL) after [^\n]+\n\Z")

    def test_a_timeout_over_the_cap_is_denied(self):
        node = self.node(["true"]).start()
        self.assertEqual(self.exec(node, "true", options=["--timeout", "300"]).returncode, 0)
        self.assert_line(self.exec(node, "true", options=["--timeout", "300.5"]), 255, "denied: timeout_too_large: ")


class Words(ClientCase):
    def test_sessions_lists_what_runs_and_cancel_ends_it(self):
        node = self.node()
        argv = node.allow_script("echo up; exec sleep 60")
        node.start()
        self.assertEqual(self.ask(node, "sessions", "--socket", node.socket).stdout, "no session is running\n")
        process = self.begin(node, *argv)
        self.assertEqual(process.stdout.readline(), b"up\n")
        listed = json.loads(self.ask(node, "sessions", "--socket", node.socket, "--format", "json").stdout)["sessions"]
        shown = self.ask(node, "sessions", "--socket", node.socket).stdout
        self.assertEqual(len(listed), 1)
        self.assertIn(listed[0]["request_id"], shown)
        self.assertIn(argv[0], shown)
        done = self.ask(node, "cancel", listed[0]["request_id"])
        self.assertEqual((done.returncode, done.stdout), (0, f"told process {process.pid} to cancel\n"))
        self.assert_line(self.finish(process), 128 + signal.SIGTERM, "cancelled: SIGTERM after ")
        self.assertEqual(list((node.work / "x0x-exec").iterdir()), [])
        self.assert_line(self.ask(node, "cancel", listed[0]["request_id"]), 255,
                         "error: no x0x-exec of this user runs session ")

    def test_cancel_works_without_a_runtime_directory(self):
        node = self.node()
        argv = node.allow_script("echo up; exec sleep 60")
        node.start()
        bare = {"HOME": str(node.work), **SANITIZER_OPTIONS}
        process = subprocess.Popen(self.words(node, argv), env=bare, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"up\n")
        listed = json.loads(run(CLIENT, "sessions", "--socket", node.socket, "--format", "json", env=bare).stdout)
        done = run(CLIENT, "cancel", listed["sessions"][0]["request_id"], env={"XDG_RUNTIME_DIR": ""})
        self.assertEqual((done.returncode, done.stdout), (0, f"told process {process.pid} to cancel\n"), done.stderr)
        self.assert_line(self.finish(process), 128 + signal.SIGTERM, "cancelled: SIGTERM after ")

    def test_diagnostics_for_people_and_for_programs(self):
        node = self.node(["true"]).start()
        self.exec(node, "true")
        shown = self.ask(node, "diagnostics", "--socket", node.socket)
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        self.assertRegex(shown.stdout, r"(?m)^enabled +yes$")
        self.assertRegex(shown.stdout, r"(?m)^ +requests allowed +1$")
        done = self.ask(node, "diagnostics", "--socket", node.socket, "--format", "json")
        self.assertEqual(json.loads(done.stdout)["enabled"], True)

    def test_socket_and_ids_may_come_from_the_environment_and_a_file(self):
        node = self.node(["echo", "<INT>"]).start()
        config = node.work / ".config/x0x/exec.toml"
        config.parent.mkdir(parents=True)
        config.write_text(f'agent = "{AGENT}"\nmachine = "{MACHINE}"\nsocket = "/nowhere"\n')
        words = [CLIENT, "--", "echo", "7"]
        done = run(*words, env=self.environment(node, X0X_SOCKET=str(node.socket)))
        self.assertEqual((done.returncode, done.stdout), (0, "7\n"))
        self.assert_line(run(*words, env=self.environment(node)), 255, "error: no enforcer socket at `/nowhere`")
        config.write_text(f'agent = "{AGENT}"\nmachine = "{MACHINE}"\nsocket = "{node.socket}"\n')
        self.assertEqual(run(*words, env=self.environment(node)).stdout, "7\n")
        self.assert_line(run(*words, env=self.environment(node, X0X_SOCKET="/nowhere")), 255,
                         "error: no enforcer socket at `/nowhere`")

    def test_help_and_version_are_answers(self):
        node = self.node()
        for words, pattern in ((["--help"], r"usage: x0x-exec"), (["--version"], r"^x0x-exec \d+\.\d+\.\d+\n\Z")):
            done = self.ask(node, *words)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertRegex(done.stdout, pattern)


if __name__ == "__main__":
    main()
