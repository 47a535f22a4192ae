"""What the enforcer refuses to start with: each fault by its name, in one line, with status 1, and nothing left.

Tables that are refused for what is in them are in tables_test.py."""

import os
import pathlib
import struct
import unittest

from harness import AM_ROOT, ENFORCER, in_mount_namespace, main, run, write_program
from refusal import NOBODY, Refusal


class PolicyFile(Refusal):
    def test_missing(self):
        self.assert_refused(self.node(["true"]), "missing")

    def test_unreadable(self):
        node = self.compiled()
        if AM_ROOT:
            node.wrapper = NOBODY
            node.directory.chmod(0o755)
        node.policy_file.chmod(0o600 if AM_ROOT else 0)
        self.assert_refused(node, "unreadable")

    def test_wrong_owner(self):
        node = self.compiled()
        if AM_ROOT:
            os.chown(node.policy_file, 12345, 12345)
        else:  # in a user namespace of our own even root's files are a stranger's
            node.wrapper = in_mount_namespace("")
            if node.wrapper is None:
                self.skipTest("user namespaces are not allowed here")
            node.policy_file = pathlib.Path("/etc/passwd")
        self.assert_refused(node, "wrong_owner")

    def test_wrong_mode(self):
        node = self.compiled()
        for mode in (0o620, 0o602, 0o666):
            node.policy_file.chmod(mode)
            self.assert_refused(node, "wrong_mode")

    def test_symlink(self):
        node = self.compiled()
        real = node.work / "real.x0xp"
        node.policy_file.rename(real)
        node.policy_file.symlink_to(real)
        self.assert_refused(node, "symlink")

    def test_not_a_file(self):
        node = self.node()
        node.policy_file.mkdir()
        self.assert_refused(node, "not_a_file")

    def test_too_large(self):
        node = self.compiled()
        os.truncate(node.policy_file, (256 << 20) + 1)
        self.assert_refused(node, "too_large")

    def test_bad_magic(self):
        node = self.node()
        for content in (b"", b"x", b"[exec]\nenabled = true\n" * 50, bytes(1000)):
            node.policy_file.write_bytes(content)
            self.assert_refused(node, "bad_magic")


class AuditLog(Refusal):
    def test_audit_not_writable(self):
        node = self.compiled()
        node.log.symlink_to(node.work / "elsewhere")
        self.assert_refused(node, "audit_not_writable", blamed=node.log)
        node.log.unlink()
        node.log.mkdir()
        self.assert_refused(node, "audit_not_writable", blamed=node.log)
        node.log.rmdir()
        os.mkfifo(node.log)
        self.assert_refused(node, "audit_not_writable", blamed=node.log)
        node.log.unlink()
        node.exec["audit_log_path"] = node.work / "missing" / "exec.log"
        node.policy["version"] = 2
        node.compile()
        self.assert_refused(node, "audit_not_writable", blamed=node.work / "missing" / "exec.log")
        self.assertFalse(node.socket.exists())

    def test_audit_in_use(self):
        node, other = self.node(["true"]), self.node(["true"])
        other.exec["audit_log_path"] = node.log
        node.start()
        other.compile()
        self.assert_refused(other, "audit_in_use", blamed=node.log, check=False)
        self.assertFalse(other.socket.exists())

    def test_audit_not_ours(self):
        node = self.compiled()
        node.log.write_text("Nov 18 10:00:00 host sshd[1]: a line of another program {}\n")
        self.assert_refused(node, "audit_not_ours", blamed=node.log, check=False)
        self.assertEqual(node.log.read_text().count("\n"), 1)


class Socket(Refusal):
    def test_socket_in_use(self):
        node, other = self.node(["true"]).start(), self.compiled()
        other.socket, own = node.socket, other.socket
        self.assert_refused(other, "socket_in_use", blamed=node.socket, check=False)
        self.assert_ok(self.connect(node).request(["true"]))  # nothing has happened to it
        other.socket = own
        done = node.refuse()  # the log is in use as well, but that is not what to mend
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertTrue(done.stderr.startswith(f"x0x-enforcer: {node.socket}: socket_in_use: "), done.stderr)

    def test_without_a_descriptor_for_signals_it_does_not_start(self):
        node = self.compiled()
        node.wrapper = ["prlimit", "--nofile=5"]
        done = node.refuse()
        self.assertEqual(done.returncode, 1)
        self.assertIn("descriptor", done.stderr)

    def test_a_socket_that_a_crash_left_behind_is_replaced(self):
        node = self.node(["true"]).start()
        node.kill()
        self.assertTrue(node.socket.exists())
        node.start(compile=False)
        self.assert_ok(self.connect(node).request(["true"]))

    def test_socket_not_possible(self):
        node = self.compiled()
        node.socket.write_text("a file of somebody's")
        self.assert_refused(node, "socket_not_possible", blamed=node.socket, check=False)
        self.assertEqual(node.socket.read_text(), "a file of somebody's")
        node.socket.unlink()
        for path in (node.directory / ("x" * 120), node.work / "missing" / "s"):
            node.socket = path
            self.assert_refused(node, "socket_not_possible", blamed=path, check=False)


class Privilege(Refusal):
    def assert_no_privilege(self, node, program, wrapper=()):
        for more in ([], ["--check"], ["--version"], ["--help"]):
            done = run(*wrapper, program, *node.command(*more)[1:], env=node.environment())
            self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
            self.assertRegex(done.stderr, rf"^x0x-enforcer: {program}: setuid: [^\n]+\n\Z")

    def copy(self, mode):
        node = self.compiled()
        program = node.bin / "x0x-enforcer"
        write_program(program, ENFORCER.read_bytes(), mode)
        return node, program

    def test_setuid(self):
        self.assert_no_privilege(*self.copy(0o4755))

    def test_setgid(self):
        self.assert_no_privilege(*self.copy(0o2755))

    @unittest.skipUnless(AM_ROOT, "only root can give a file capabilities")
    def test_a_program_with_capabilities(self):
        node, program = self.copy(0o755)
        for path in (node.directory, node.bin):
            path.chmod(0o755)
        os.setxattr(program, "security.capability", struct.pack("<IIIII", 0x02000001, 1 << 10, 0, 0,
                                                                0))  # net_bind_service
        self.assert_no_privilege(node, program, NOBODY)


class CommandLine(Refusal):
    def test_usage_errors_exit_with_2_and_show_the_usage(self):
        node = self.compiled()
        for words in (["--polcy", "x"], ["stray"], ["--check", "stray"], ["--policy"], ["--allow-uid", ""],
                      ["--allow-uid", "root"],
                      ["--allow-uid", "-1"], ["--allow-uid", "4294967295"], ["--allow-uid", "1x"],
                      ["--allow-uid", " 1"], ["-x"]):
            with self.subTest(words=words):
                done = node.refuse(*words)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn("usage: x0x-enforcer", done.stderr)

    def test_version_and_help_are_answers(self):
        done = run(ENFORCER, "--version")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"^x0x-enforcer \d+\.\d+\.\d+\n\Z")
        done = run(ENFORCER, "--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for option in ("--policy", "--trust", "--state", "--socket", "--node", "--allow-uid", "--check", "--doctor"):
            self.assertIn(option, done.stdout)


class Doctor(Refusal):
    def test_it_says_in_words_what_is_there(self):
        node = self.compiled(["true"], ["uptime"])
        done = node.refuse("--doctor")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = dict(line.split(": ", 1) for line in done.stdout.splitlines())
        self.assertEqual({key: lines[key] for key in ("exec", "policy", "name", "version", "entries", "commands")},
                         {"exec": "enabled", "policy": str(node.policy_file), "name": "e2e", "version": "1",
                          "entries": "1", "commands": "2"})
        self.assertEqual(lines["socket"], f"{node.socket}: nobody listens")
        self.assertEqual(lines["audit log"], f"{node.log}: writable")
        self.assertRegex(lines["kernel"], "Landlock.*seccomp.*cgroup")
        self.assertEqual(lines["running as"], f"{'root' if AM_ROOT else 'an ordinary user'}, uid {os.geteuid()}")
        node.start(compile=False)
        self.assertIn(f"socket: {node.socket}: an enforcer listens\n", node.refuse("--doctor").stdout)

    def test_digest_and_expiry_are_plain_words(self):
        lines = dict(line.split(": ", 1) for line in self.compiled().refuse("--doctor").stdout.splitlines())
        self.assertRegex(lines["digest"], r"^[0-9a-f]{64}$")
        self.assertRegex(lines["expires"], r"^2100-01-01T00:00:00")

    def test_a_policy_without_expiry_expires_never(self):
        node = self.node(["true"])
        del node.policy["expires"]
        node.compile("--no-expiry")
        self.assertIn("expires: never\n", node.refuse("--doctor").stdout)

    def test_it_says_why_nothing_would_run(self):
        node = self.node(["true"])
        done = node.refuse("--doctor")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"exec: disabled\npolicy: {node.policy_file}: missing: ", done.stdout)
        self.assertEqual(done.stderr, node.refuse("--check").stderr)
        node.exec["enabled"] = False
        node.compile()
        done = node.refuse("--doctor")
        self.assertEqual(done.returncode, 0)
        self.assertIn("exec: disabled by the policy\n", done.stdout)
        node.log.mkdir()
        done = node.refuse("--doctor")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, f"audit log: {node.log}: (?!writable)")
        self.assertEqual(done.stderr, node.refuse("--check").stderr)


if __name__ == "__main__":
    main()
