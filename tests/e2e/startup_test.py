"""What the enforcer refuses to start with: each fault by its name, in one line, with status 1, and nothing left behind."""

import base64
import datetime
import os
import pathlib
import shutil
import struct
import subprocess
import unittest

from harness import AM_ROOT, ENFORCER, POLICYC, Case, Keys, in_mount_namespace, main, run

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
DAY = datetime.timedelta(days=1)


def now():
    return datetime.datetime.now(datetime.timezone.utc)


def split(table):
    """payload and signature records of a table (docs/format.md)."""
    size = struct.unpack("<I", table[-12:-8])[0]
    return table[:-16 - size], table[-16 - size:-16]


def join(payload, records, count):
    return payload + records + struct.pack("<II", count, len(records)) + b"x0xsigs\n"


def sign(payload, directory, key="policy"):
    """A signature record made by the stock minisign, which signs anything: a broken payload, for instance."""
    file, signature = directory / "payload", directory / "payload.minisig"
    file.write_bytes(payload)
    subprocess.run(["minisign", "-S", "-s", Keys.get(key)[1], "-m", file, "-x", signature, "-t", "a comment"], check=True,
                   stdin=subprocess.DEVNULL, capture_output=True)
    _, first, comment, second = signature.read_text().splitlines()
    comment = comment.removeprefix("trusted comment: ").encode()
    file.unlink()
    signature.unlink()
    return base64.b64decode(first)[2:] + base64.b64decode(second) + bytes([len(comment)]) + comment


class Refusal(Case):
    """assert_refused() also asks --check, which must say the same."""

    def assert_refused(self, node, fault, blamed=None, check=True):
        for more in ([], ["--check"]) if check else ([],):
            done = node.refuse(*more)
            self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
            self.assertRegex(done.stderr, rf"^x0x-enforcer: [^\n]*: {fault}: [^\n]+\n\Z")
            self.assertTrue(done.stderr.startswith(f"x0x-enforcer: {blamed or node.policy_file}: "), done.stderr)
        self.assertEqual(node.processes(), [])

    def assert_accepted(self, node):
        done = node.refuse("--check")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def compiled(self, *argvs):
        node = self.node(*argvs or (["true"],))
        node.compile()
        return node


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


class Signatures(Refusal):
    def test_unsigned(self):
        node = self.compiled()
        payload, _ = split(node.policy_file.read_bytes())
        node.policy_file.write_bytes(join(payload, b"", 0))
        self.assert_refused(node, "unsigned_table")

    def test_untrusted_key(self):
        node = self.node(["true"])
        node.compile(key="stranger")
        self.assert_refused(node, "untrusted_key")

    def test_bad_signature(self):
        node = self.compiled()
        payload, records = split(node.policy_file.read_bytes())
        for position in (0, 21, len(payload) // 2, len(payload) - 1):
            changed = bytearray(payload)
            changed[position] ^= 1
            node.policy_file.write_bytes(join(bytes(changed), records, 1))
            self.assert_refused(node, "bad_signature")
        node.policy_file.write_bytes(join(payload, records[:8] + bytes(64) + records[72:], 1))
        self.assert_refused(node, "bad_signature")

    def test_bad_signature_block(self):
        node = self.compiled()
        payload, records = split(node.policy_file.read_bytes())
        for table in (join(payload, records + b"x", 1), join(payload, records, 2), join(payload, records[:-1], 1),
                      join(payload, records, 65), payload + records + struct.pack("<II", 1, 0xffffffff) + b"x0xsigs\n"):
            node.policy_file.write_bytes(table)
            self.assert_refused(node, "bad_signature_block")

    def test_threshold_not_met(self):
        node = self.compiled()
        first, second = (Keys.get(name)[0].read_text() for name in ("policy", "second"))
        node.trust.write_text(first + second + "threshold 2\n")
        self.assert_refused(node, "threshold_not_met")
        payload, records = split(node.policy_file.read_bytes())
        node.policy_file.write_bytes(join(payload, records * 2, 2))  # the same key twice is one vote
        self.assert_refused(node, "threshold_not_met")
        node.policy_file.write_bytes(join(payload, records, 1))
        signed = run(POLICYC, "sign", node.policy_file, "--key", Keys.get("second")[1])
        self.assertEqual(signed.returncode, 0, signed.stderr)
        self.assert_accepted(node)

    def test_a_table_that_the_stock_minisign_signed_is_accepted(self):
        node = self.compiled()
        payload, _ = split(node.policy_file.read_bytes())
        node.policy_file.write_bytes(join(payload, sign(payload, node.work), 1))
        self.assert_accepted(node)


class TrustFile(Refusal):
    def test_what_is_wrong_with_it_has_a_name_too(self):
        node = self.compiled()
        key = Keys.get()[0].read_text()
        word = key.splitlines()[1]
        texts = {"trust_no_keys": "", "trust_bad_line": key + "hello there\n", "trust_bad_key": key + word[:-4] + "\n",
                 "trust_duplicate_key": key + key, "trust_bad_threshold": key + "threshold 2\n",
                 "trust_too_large": key + "\n" * (64 << 10)}
        for fault, text in texts.items():
            with self.subTest(fault):
                node.trust.write_text(text)
                self.assert_refused(node, fault, blamed=node.trust)
        for threshold in ("0", "-1", "1x", "", "1\nthreshold 1"):
            with self.subTest(threshold=threshold):
                node.trust.write_text(f"{key}threshold {threshold}\n")
                self.assert_refused(node, "trust_bad_threshold", blamed=node.trust)

    def test_it_is_opened_as_carefully_as_the_policy(self):
        node = self.compiled()
        node.trust.chmod(0o666)
        self.assert_refused(node, "wrong_mode", blamed=node.trust)
        real = node.work / "trust"
        node.trust.rename(real)
        self.assert_refused(node, "missing", blamed=node.trust)
        node.trust.symlink_to(real)
        self.assert_refused(node, "symlink", blamed=node.trust)


class Structure(Refusal):
    def test_what_a_trusted_key_signed_is_still_checked_byte_by_byte(self):
        node = self.compiled(["echo", "<INT>"], ["uptime"])
        payload, _ = split(node.policy_file.read_bytes())

        def changed(offset, data):
            return payload[:offset] + data + payload[offset + len(data):]
        broken = {"bad_magic": changed(0, b"X"), "wrong_purpose": changed(8, b"x"), "unknown_version": changed(16, b"\2"),
                  "bad_flags": changed(20, b"\x80"), "bad_cap": changed(48, bytes(8)),
                  "bad_window": changed(32, struct.pack("<QQ", 9, 9)),
                  "bad_padding": changed(180, b"\1"), "truncated": payload[:-1],
                  "trailing_bytes": payload + b"\0", "bad_text": changed(len(payload) - 1, b"x")}
        for fault, table in broken.items():
            with self.subTest(fault):
                node.policy_file.write_bytes(join(table, sign(table, node.work), 1))
                self.assert_refused(node, fault)


class Validity(Refusal):
    def test_expired(self):
        node = self.node(["true"])
        node.policy["expires"] = now() - DAY
        node.compile()
        self.assert_refused(node, "expired")

    def test_not_yet_valid(self):
        node = self.node(["true"])
        node.policy["not_before"] = now() + DAY
        node.compile()
        self.assert_refused(node, "not_yet_valid")

    def test_wrong_audience(self):
        node = self.node(["true"])
        node.policy["audience"] = ["web-1", "web-2"]
        node.compile()
        for options in ([], ["--node", "web-3"], ["--node", "web-1 "], ["--node", "WEB-1"], ["--node", "web"], ["--node", ""]):
            node.options = options
            self.assert_refused(node, "wrong_audience")
        node.options = ["--node", "web-2"]
        self.assert_accepted(node)


class Versions(Refusal):
    def load(self, node, version, **exec_keys):
        node.policy["version"] = version
        node.exec.update(exec_keys)
        node.compile()

    def test_lower_version(self):
        node = self.node(["true"])
        self.load(node, 5)
        node.start().stop()
        self.load(node, 4)
        self.assert_refused(node, "lower_version")
        self.load(node, 6)
        node.start(compile=False).stop()
        self.load(node, 5)
        self.assert_refused(node, "lower_version")

    def test_same_version_other_content(self):
        node = self.node(["true"])
        self.load(node, 5)
        node.start(compile=False).stop()
        node.start(compile=False).stop()  # the same again is fine
        self.load(node, 5, max_duration_secs=17)
        self.assert_refused(node, "same_version_other_content")

    def test_a_table_that_is_refused_does_not_raise_the_version(self):
        node = self.node(["true"])
        self.load(node, 9)
        node.policy_file.write_bytes(join(split(node.policy_file.read_bytes())[0], b"", 0))
        self.assert_refused(node, "unsigned_table")
        node.policy["expires"] = now() - DAY
        self.load(node, 8)
        self.assert_refused(node, "expired")
        node.policy["expires"] = now() + DAY
        self.load(node, 1)
        node.start(compile=False)

    def test_check_and_doctor_record_nothing(self):
        node = self.node(["true"])
        self.load(node, 9)
        self.assert_accepted(node)
        self.assertEqual(node.refuse("--doctor").returncode, 0)
        self.assertEqual(list(node.state.iterdir()), [])
        self.assertFalse(node.log.exists() or node.socket.exists())
        self.load(node, 1)
        self.assert_accepted(node)

    def test_state_damaged(self):
        node = self.compiled()
        for text in ("", "garbage\n", "1\n", "1 " + "0" * 63 + "\n", "1 " + "0" * 64 + "\nx"):
            with self.subTest(text=text):
                (node.state / "highest").write_text(text)
                self.assert_refused(node, "state_damaged", blamed=node.state)

    def test_state_not_writable(self):
        node = self.compiled()
        node.state.rmdir()
        self.assert_refused(node, "state_not_writable", blamed=node.state)
        node.state.mkdir()
        if AM_ROOT:
            node.wrapper = NOBODY
            for path in (node.directory, node.work):
                path.chmod(0o755)
        node.state.chmod(0o555)
        self.assert_refused(node, "state_not_writable", blamed=node.state)
        node.state.chmod(0o755)


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
        program = shutil.copy(ENFORCER, node.bin / "x0x-enforcer")
        os.chmod(program, mode)
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
        os.setxattr(program, "security.capability", struct.pack("<IIIII", 0x02000001, 1 << 10, 0, 0, 0))  # net_bind_service
        self.assert_no_privilege(node, program, NOBODY)


class CommandLine(Refusal):
    def test_usage_errors_exit_with_2_and_show_the_usage(self):
        node = self.compiled()
        for words in (["--polcy", "x"], ["stray"], ["--check", "stray"], ["--policy"], ["--allow-uid", ""], ["--allow-uid", "root"],
                      ["--allow-uid", "-1"], ["--allow-uid", "4294967295"], ["--allow-uid", "1x"], ["--allow-uid", " 1"], ["-x"]):
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
                         {"exec": "enabled", "policy": str(node.policy_file), "name": "e2e", "version": "1", "entries": "1", "commands": "2"})
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
        node.exec["enabled"] = False
        node.compile()
        done = node.refuse("--doctor")
        self.assertEqual(done.returncode, 0)
        self.assertIn("exec: disabled by the policy\n", done.stdout)
        node.log.mkdir()
        done = node.refuse("--doctor")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, f"audit log: {node.log}: (?!writable)")


if __name__ == "__main__":
    main()
