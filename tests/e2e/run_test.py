"""What a command finds, and what comes back of it: environment, stdin, output, caps, and the policy's extensions."""

import ctypes
import hashlib
import os
import pathlib
import shutil
import signal
import unittest

from harness import AM_ROOT, PYTHON, Case, main, write_program


class Environment(Case):
    def test_the_environment_is_built_from_nothing(self):
        node = self.node(["env"])
        node.env = {"X0X_SECRET": "1", "LANG": "de_DE.UTF-8", "TERM": "xterm", "USER": "somebody"}
        connection = self.connect(node.start())
        self.assertEqual(sorted(connection.run(["env"]).stdout.decode().splitlines()),
                         [f"HOME={node.directory}", "LANG=C.UTF-8", "LC_ALL=C.UTF-8",
                          "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"])

    def test_the_policy_may_add_variables_of_its_own(self):
        node = self.node()
        argv = node.allow(["env"], env={"TERM": "dumb", "SPACE": "a b=c"})
        connection = self.connect(node.start())
        lines = connection.run(argv).stdout.decode().splitlines()
        self.assertEqual(sorted(set(lines) - {line for line in lines if line[:4] in ("HOME", "LANG", "LC_A", "PATH")}),
                         ["SPACE=a b=c", "TERM=dumb"])
        self.assertEqual(len(lines), 6)

    def test_argv_reaches_the_program_byte_for_byte(self):
        tokens = ["", " ", "  two  ", "-n", "--", "*", "'\"\\", "é\u202e", "\t\r\x01", "a=b", "%s\\n", "(x)", "{a,b}",
                  "~", "#"]
        node = self.node()
        program = node.script("import os, sys\nos.write(1, b'\\0'.join(os.fsencode(a) for a in sys.argv[1:]))",
                              interpreter=PYTHON)
        argv = node.allow([program, *tokens])
        connection = self.connect(node.start())
        self.assertEqual(connection.run(argv).stdout, "\0".join(tokens).encode())

    def test_a_bare_name_is_found_in_the_fixed_path_only(self):
        node = self.node(["x0x-no-such-program"])
        node.script("echo found", name="x0x-no-such-program")
        node.env["PATH"] = f"{node.bin}:{os.environ['PATH']}"
        connection = self.connect(node.start())
        self.assert_denied(connection.request(["x0x-no-such-program"]), "spawn_failed")

    def test_the_directory_is_the_commands_or_the_default_or_the_daemons(self):
        node = self.node(["pwd"])
        own = node.allow(["pwd", "-P"], cwd=node.bin)
        with_default = self.node(["pwd"])
        with_default.exec["default_cwd"] = "/usr"
        default_but_own = with_default.allow(["pwd", "-P"], cwd=node.bin)
        connection = self.connect(node.start())
        self.assert_ok(connection.request(["pwd"]), f"{node.work}\n".encode())
        self.assert_ok(connection.request(own), f"{node.bin}\n".encode())
        connection = self.connect(with_default.start())
        self.assert_ok(connection.request(["pwd"]), b"/usr\n")
        self.assert_ok(connection.request(default_but_own), f"{node.bin}\n".encode())


class ChildState(Case):
    def test_a_child_starts_with_a_clean_slate(self):
        node = self.node(["cat", "/proc/self/status"], ["ls", "/proc/self/fd"], ["cat", "/proc/self/stat"])
        connection = self.connect(node.start())
        status = dict(line.split(":\t", 1) for line in
                      connection.run(["cat", "/proc/self/status"]).stdout.decode().splitlines())
        self.assertEqual({key: int(status[key].strip(), 16) for key in ("SigBlk", "SigIgn", "SigPnd", "ShdPnd")},
                         {"SigBlk": 0, "SigIgn": 0, "SigPnd": 0, "ShdPnd": 0})
        self.assertEqual((status["Umask"].strip(), status["NoNewPrivs"].strip()), ("0027", "1"))
        listed = connection.run(["ls", "/proc/self/fd"])
        self.assertEqual(listed.stdout.split(), [b"0", b"1", b"2", b"3"])  # the fourth is what ls reads
        session = connection.run(["cat", "/proc/self/stat"])
        group, own_session, terminal = session.stdout.split()[4:7]
        self.assertEqual((int(group), int(own_session), int(terminal)), (session.started.pid, session.started.pid, 0))

    def test_the_pid_of_started_is_that_of_the_command(self):
        node = self.node()
        argv = node.allow_script("echo $$")
        session = self.connect(node.start()).run(argv)
        self.assertEqual(int(session.stdout), session.started.pid)
        self.assertEqual(next(r["pid"] for r in node.audit() if r["event"] == "started"), session.started.pid)

    def test_a_session_belongs_to_no_terminal_and_leaves_none_behind(self):
        node = self.node()
        argv = node.allow_script("(exec 3<>/dev/tty) 2>/dev/null && echo a terminal || echo none")
        self.assert_ok(self.connect(node.start()).request(argv), b"none\n")


class Stdin(Case):
    def test_without_stdin_the_command_reads_an_end_at_once(self):
        _, connection = self.started(["cat"])
        self.assert_ok(connection.request(["cat"]), b"")
        self.assert_ok(connection.request(["cat"], stdin=b""), b"")

    def test_stdin_arrives_byte_for_byte_and_then_ends(self):
        _, connection = self.started(["cat"])
        for stdin in (b"\0", bytes(range(256)) * 7, os.urandom(1 << 20)):
            self.assert_ok(connection.request(["cat"], stdin=stdin), stdin)

    def test_a_command_that_does_not_read_its_stdin_ends_normally(self):
        _, connection = self.started(["true"], ["head", "-c", "5"])
        self.assert_ok(connection.request(["true"], stdin=b"x" * (1 << 20)))
        self.assert_ok(connection.request(["head", "-c", "5"], stdin=b"x" * (1 << 20)), b"xxxxx")


class Output(Case):
    def test_both_streams_come_back_binary_and_apart(self):
        node = self.node()
        argv = node.allow_python("import os\nfor i in range(256):\n os.write(1, bytes([i]))\n"
                                 " os.write(2, bytes([255 - i]))")
        session = self.connect(node.start()).run(argv)
        self.assert_ok(session, bytes(range(256)))
        self.assertEqual(session.stderr, bytes(range(256))[::-1])
        self.assertEqual((session.exit.stdout_bytes, session.exit.stderr_bytes, session.exit.truncated),
                         (256, 256, False))

    def test_output_comes_as_it_is_written_and_not_at_the_end(self):
        node = self.node()
        argv = node.allow_script("echo one; sleep 60")
        session = self.connect(node.start()).request(argv)
        session.wait_output(b"one\n")
        self.assertIsNone(session.exit)

    def test_many_megabytes_arrive_complete_and_in_order(self):
        node = self.node()
        argv = node.allow_python("import os, sys\nfor n in range(800000):\n sys.stdout.write(f'{n:09}\\n')")
        session = self.connect(node.start()).run(argv)
        self.assert_ok(session)
        self.assertEqual(hashlib.sha256(session.stdout).hexdigest(),
                         hashlib.sha256("".join(f"{n:09}\n" for n in range(800000)).encode()).hexdigest())

    def test_exit_has_the_code_or_the_signal_and_the_duration(self):
        node = self.node()
        codes = {code: node.allow_script(f"exit {code}") for code in (0, 1, 3, 127, 255)}
        signals = {number: node.allow_script(f"kill -{number} $$") for number in (1, 6, 9, 15, 11)}
        sleeps = node.allow(["sleep", "0.3"])
        connection = self.connect(node.start())
        for code, argv in codes.items():
            self.assertEqual(connection.run(argv).exit[:2], (code, None))
        for number, argv in signals.items():
            session = connection.run(argv)
            self.assertEqual(session.exit[:2], (None, number))
            self.assertEqual(node.audit_of(session)[-1] | {"seq": 0, "prev": "", "ts": ""}, {
                "seq": 0, "prev": "", "ts": "", "event": "exit", "request_id": str(session.address.request_id),
                "code": None,
                "signal": number, "duration_ms": session.exit.duration_ms, "stdout_bytes": 0, "stderr_bytes": 0,
                "truncated": False})
        self.assertGreaterEqual(connection.run(sleeps).exit.duration_ms, 300)


class Caps(Case):
    def writer(self, node, stdout, stderr=0, **keys):
        return node.allow_python(f"import sys\nsys.stdout.write('o' * {stdout})\nsys.stdout.flush()\n"
                                 f"sys.stderr.write('e' * {stderr})\nsys.stderr.flush()\nsys.exit(7)", **keys)

    def test_output_over_the_cap_is_counted_and_dropped_and_the_command_runs_on(self):
        node = self.node()
        node.exec.update(max_stdout_bytes=1000, warn_stdout_bytes=0, max_stderr_bytes=2000, warn_stderr_bytes=0)
        argv = self.writer(node, 50000, 60000)
        connection = self.connect(node.start())
        session = connection.run(argv)
        self.assertEqual((len(session.stdout), len(session.stderr)), (1000, 2000))
        self.assertEqual(session.exit[:2] + session.exit[3:], (7, None, 50000, 60000, True, None))
        self.assertEqual(sorted(session.warnings), ["StderrCapHit", "StdoutCapHit"])
        document = connection.diagnostics()
        self.assertEqual(document["totals"]["cap_breaches"], {"stdout": 1, "stderr": 1, "duration": 0})
        self.assertEqual({w["kind"] for w in document["recent_warnings"]}, {"StderrCapHit", "StdoutCapHit"})
        for warning in document["recent_warnings"]:
            self.assertEqual((warning["request_id"], warning["argv_summary"]),
                             (str(session.address.request_id), argv[0]))
        audited = [r for r in node.audit_of(session) if r["event"] == "warning"]
        self.assertEqual(sorted(r["kind"] for r in audited), ["StderrCapHit", "StdoutCapHit"])

    def test_output_that_just_reaches_the_cap_is_not_truncated(self):
        node = self.node()
        node.exec.update(max_stdout_bytes=1000, warn_stdout_bytes=0, max_stderr_bytes=1000, warn_stderr_bytes=0)
        full, one_over = self.writer(node, 1000, 1000), self.writer(node, 1000, 1001)
        connection = self.connect(node.start())
        session = connection.run(full)
        self.assertEqual((session.exit.truncated, session.warnings), (False, []))
        session = connection.run(one_over)
        self.assertEqual((session.exit.truncated, session.exit.stderr_bytes, session.warnings),
                         (True, 1001, ["StderrCapHit"]))

    def test_each_warning_fires_once_and_the_approach_comes_before_the_cap(self):
        node = self.node()
        node.exec.update(max_stdout_bytes=100000, warn_stdout_bytes=50000)
        argv = node.allow_python("import os\nfor i in range(200):\n os.write(1, b'x' * 1000)")
        connection = self.connect(node.start())
        session = connection.run(argv)
        self.assertEqual(session.warnings, ["StdoutApproachingCap", "StdoutCapHit"])  # a second one would be a failure
        self.assertEqual(connection.run(argv).warnings, ["StdoutApproachingCap", "StdoutCapHit"])
        self.assertEqual(connection.diagnostics()["totals"]["cap_warnings"]["stdout_approaching"], 2)

    def test_a_threshold_of_stderr_has_a_warning_of_its_own_and_none_below_it(self):
        node = self.node()
        node.exec.update(max_stderr_bytes=10000, warn_stderr_bytes=500)
        below, at = self.writer(node, 5000, 499), self.writer(node, 0, 500)
        connection = self.connect(node.start())
        self.assertEqual(connection.run(below).warnings, [])
        self.assertEqual(connection.run(at).warnings, ["StderrApproachingCap"])
        self.assertEqual(connection.diagnostics()["totals"]["cap_warnings"]["stderr_approaching"], 1)

    def test_a_command_may_have_a_smaller_cap_of_its_own(self):
        node = self.node()
        own, general = self.writer(node, 5000, max_stdout_bytes=100), self.writer(node, 5001)
        connection = self.connect(node.start())
        self.assertEqual(len(connection.run(own).stdout), 100)
        self.assertEqual(len(connection.run(general).stdout), 5001)

    def test_recent_warnings_are_the_last_sixty_four(self):
        node = self.node()
        node.exec.update(max_stdout_bytes=1, warn_stdout_bytes=0)
        argv = node.allow(["echo", "<INT>"])
        connection = self.connect(node.start())
        for number in range(1, 71):
            connection.run(["echo", str(number)])
        recent = connection.diagnostics()["recent_warnings"]
        self.assertEqual([w["argv_summary"] for w in recent], [f"echo {number}" for number in range(7, 71)])
        self.assertEqual(argv, ["echo", "<INT>"])


class Extensions(Case):
    def copy(self, node, program, name):
        path = node.bin / name
        write_program(path, pathlib.Path(shutil.which(program)).read_bytes())
        return path, hashlib.sha256(path.read_bytes()).hexdigest()

    def test_exe_names_the_file_and_argv_stays_as_it_was_asked(self):
        node = self.node()
        argv = node.allow(["dog", "/proc/self/cmdline"], exe=shutil.which("cat"))
        self.assert_ok(self.connect(node.start()).request(argv), b"dog\0/proc/self/cmdline\0")

    def test_sha256_lets_only_that_content_run(self):
        node = self.node()
        cat, digest = self.copy(node, "cat", "pinned")
        argv = node.allow(["pinned", "/proc/self/cmdline"], exe=cat, sha256=digest)
        connection = self.connect(node.start())
        self.assert_ok(connection.request(argv), b"pinned\0/proc/self/cmdline\0")
        for content in (cat.read_bytes() + b"\0", cat.read_bytes()[:-1], pathlib.Path(shutil.which("ls")).read_bytes()):
            write_program(cat, content)
            session = connection.run(argv)
            self.assert_denied(session, "spawn_failed")
            self.assertEqual(node.audit_of(session)[-1]["step"], "digest")

    def test_limits_are_those_of_the_policy(self):
        node = self.node()
        limits = {"cpu_secs": 11, "memory_bytes": 1 << 30, "file_bytes": 4096, "open_files": 20, "processes": 321}
        argv = node.allow_python("import resource as r\nprint([r.getrlimit(k) for k in "
                                 "(r.RLIMIT_CPU, r.RLIMIT_AS, r.RLIMIT_FSIZE, r.RLIMIT_NOFILE, r.RLIMIT_NPROC, "
                                 "r.RLIMIT_CORE)])",
                                 limits=limits)
        session = self.connect(node.start()).run(argv)
        self.assertEqual(session.stdout.decode().strip(), str([(v, v) for v in limits.values()] + [(0, 0)]))

    def test_limits_hold(self):
        node = self.node()
        memory = node.allow_python("try:\n x = bytearray(1 << 30)\nexcept MemoryError:\n print('no memory')",
                                   limits={"memory_bytes": 512 << 20})
        file = node.allow(["head", "-c", "5000", "/dev/zero"], limits={"file_bytes": 4096})
        files = node.allow_script(f"head -c 5000 /dev/zero > {node.work}/large", limits={"file_bytes": 4096})
        spinning = node.allow_script("while :; do :; done", limits={"cpu_secs": 1})
        connection = self.connect(node.start())
        self.assert_ok(connection.request(memory), b"no memory\n")
        self.assertEqual(connection.run(file).exit.stdout_bytes, 5000)  # a pipe is not a file
        connection.run(files)
        self.assertEqual((node.work / "large").stat().st_size, 4096)
        self.assertIn(connection.run(spinning).exit.signal, (signal.SIGXCPU, signal.SIGKILL))

    def test_without_network_only_unix_sockets_can_be_made(self):
        node = self.node()
        code = ("import socket as s\nfor family in (s.AF_UNIX, s.AF_INET, s.AF_INET6, s.AF_NETLINK):\n"
                " try:\n  s.socket(family, s.SOCK_DGRAM).close()\n  print('yes')\n"
                " except PermissionError:\n  print('no')")
        without, with_network = node.allow_python(code, network=False), node.allow_python(code)
        connection = self.connect(node.start())
        self.assert_ok(connection.request(without), b"yes\nno\nno\nno\n")
        self.assert_ok(connection.request(with_network), b"yes\nyes\nyes\nyes\n")

    def test_nothing_but_writable_can_be_written_or_the_command_does_not_run(self):
        node = self.node()
        inside, outside = node.work / "inside", node.work / "outside"
        inside.mkdir()
        outside.write_text("kept")
        text = (f"echo 1 > {inside}/new && echo in; echo 2 > {node.work}/new || echo out\n"
                f"true > {outside} || echo kept; rm {outside} || echo stays; echo 3 > /dev/null && echo null")
        argv = node.allow_script(text, writable=[inside])
        connection = self.connect(node.start())
        session = connection.run(argv)
        if landlock_abi() < 3:
            self.assert_denied(session, "spawn_failed")
            self.assertEqual(node.audit_of(session)[-1]["step"], "landlock")
            return
        self.assertEqual(session.stdout, b"in\nout\nkept\nstays\nnull\n", session.stderr)
        self.assertEqual((outside.read_text(), (inside / "new").read_text()), ("kept", "1\n"))

    @unittest.skipUnless(AM_ROOT, "only root can make devices")
    def test_no_device_can_be_made_where_files_may_be_written(self):
        node = self.node()
        argv = node.allow_python("import os, stat\nfor kind in stat.S_IFBLK, stat.S_IFCHR, stat.S_IFIFO:\n try:\n"
                                 "  os.mknod(str(kind), kind | 0o600, os.makedev(1, 3))\n  print('made')\n"
                                 " except PermissionError:\n  print('refused')",
                                 cwd=node.work, writable=[node.work])
        connection = self.connect(node.start())
        self.assert_ok(connection.request(argv), b"refused\nrefused\nmade\n")

    def test_with_audit_hash_no_argument_is_written_anywhere(self):
        node = self.node(["true"])
        node.allow(["printf", "secret-%d", "<INT>"], audit="hash", max_stdout_bytes=1, max_duration_secs=20)
        connection = self.connect(node.start())
        ran = [connection.run(["printf", "secret-%d", number]) for number in ("77001", "77001", "77002")]
        self.assertEqual(ran[0].warnings, ["StdoutApproachingCap", "StdoutCapHit"])
        denied = connection.run(["printf", "secret-%d", "77003"], timeout_ms=20001)
        self.assert_denied(denied, "timeout_too_large")
        for text in (node.log.read_text(), str(connection.diagnostics())):
            self.assertNotIn("secret", text)
            self.assertNotIn("7700", text)
        records = [node.audit_of(session)[0] for session in ran]
        self.assertTrue(all("argv" not in record for record in records))
        digests = [record["argv_blake2b"] for record in records]
        self.assertEqual(digests[0], hashlib.blake2b(b"printf\0secret-%d\00077001\0", digest_size=32).hexdigest())
        self.assertEqual((digests[0] == digests[1], digests[1] == digests[2]), (True, False))

    def test_with_audit_hash_the_list_of_sessions_says_nothing_either(self):
        node = self.node()
        argv = node.allow(["sleep", "61"], audit="hash")
        connection = self.connect(node.start())
        connection.request(argv).wait_started()
        listed = connection.list_sessions()
        self.assertEqual(len(listed), 1)
        self.assertNotIn("61", listed[0]["argv_summary"])


def landlock_abi():
    return ctypes.CDLL(None, use_errno=True).syscall(444, None, ctypes.c_size_t(0), 1)


if __name__ == "__main__":
    main()
