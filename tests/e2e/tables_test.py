"""Tables that the enforcer refuses to start with: signatures, keys, structure, validity, audience, version."""

import base64
import datetime
import struct
import subprocess

from harness import AM_ROOT, POLICYC, Keys, main, run
from refusal import NOBODY, Refusal

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
    subprocess.run(["minisign", "-S", "-s", Keys.get(key)[1], "-m", file, "-x", signature, "-t", "a comment"],
                   check=True,
                   stdin=subprocess.DEVNULL, capture_output=True)
    _, first, comment, second = signature.read_text().splitlines()
    comment = comment.removeprefix("trusted comment: ").encode()
    file.unlink()
    signature.unlink()
    return base64.b64decode(first)[2:] + base64.b64decode(second) + bytes([len(comment)]) + comment


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
        broken = {"bad_magic": changed(0, b"X"), "wrong_purpose": changed(8, b"x"),
                  "unknown_version": changed(16, b"\2"),
                  "bad_flags": changed(20, b"\x80"), "bad_cap": changed(48, bytes(8)),
                  "bad_window": changed(32, struct.pack("<QQ", 9, 9)),
                  "truncated": payload[:-1],
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
        for options in ([], ["--node", "web-3"], ["--node", "web-1 "], ["--node", "WEB-1"], ["--node", "web"],
                        ["--node", ""]):
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


if __name__ == "__main__":
    main()
