"""Messages and frames in every shape, right and wrong: what is read, and what is malformed."""

import random
import socket
import uuid

import wire
from harness import AGENT, MACHINE, Case, main

ID_END = 1 + 32 + 32 + len(wire.PREFIX) + 4 + 16  # of a message's body: here the request id has been read


def body_of(payload, agent=AGENT, machine=MACHINE):
    return bytes([wire.EXEC]) + bytes.fromhex(agent) + bytes.fromhex(machine) + payload


class Framing(Case):
    def test_a_message_may_come_one_byte_at_a_time(self):
        _, connection = self.started(["echo", "<INT>"])
        address = wire.Address(AGENT, MACHINE, uuid.uuid4())
        session = connection.expect(address)
        for byte in wire.message(body_of(wire.request_frame(address.request_id, ["echo", "12"]))):
            connection.send(bytes([byte]))
        self.assert_ok(session, b"12\n")
        for byte in wire.message(bytes([wire.SESSIONS])):
            connection.send(bytes([byte]))
        connection.pump(lambda: connection.documents)

    def test_messages_may_be_cut_anywhere_or_come_all_at_once(self):
        node = self.node(["echo", "<INT>"])
        node.exec.update(max_concurrent_per_agent=64, max_concurrent_total=64)
        node.start()
        for seed in range(10):
            connection = self.connect(node)
            sessions = [connection.expect(wire.Address(AGENT, MACHINE, uuid.uuid4())) for _ in range(5)]
            data = b"".join(wire.message(body_of(wire.request_frame(s.address.request_id, ["echo", str(1 + i)])))
                            for i, s in enumerate(sessions))
            cuts = sorted(random.Random(seed).sample(range(1, len(data)), seed))
            for start, end in zip([0, *cuts], [*cuts, len(data)]):
                connection.send(data[start:end])
            for i, session in enumerate(sessions):
                self.assert_ok(session, f"{1 + i}\n".encode())

    def test_a_message_of_two_mebibytes_is_read(self):
        node = self.node(["wc", "-c"])
        node.exec["max_stdin_bytes"] = 4 << 20
        connection = self.connect(node.start())
        size = wire.MAX_MESSAGE - len(body_of(wire.request_frame(uuid.uuid4(), ["wc", "-c"], stdin=b"")))
        self.assert_ok(connection.request(["wc", "-c"], stdin=b"x" * size), f"{size}\n".encode())

    def test_a_length_that_cannot_be_closes_the_connection(self):
        node, connection = self.started(["true"])
        for length in (0, wire.MAX_MESSAGE + 1, 0x7fffffff, 0xffffffff):
            with self.subTest(length=length):
                other = self.connect(node)
                other.send(wire.u32(length) + b"x" * min(length, 1000))
                other.wait_closed()
        self.assertEqual([r["event"] for r in node.audit()], ["policy_loaded"] + ["malformed"] * 4)
        self.assert_ok(connection.request(["true"]))

    def test_a_kind_that_does_not_exist_closes_the_connection(self):
        node, connection = self.started(["true"])
        for body in (b"\0", b"\4", b"\xff", b"\0" + body_of(wire.request_frame(uuid.uuid4(), ["true"]))[1:]):
            with self.subTest(body=body):
                other = self.connect(node)
                other.send(wire.message(body))
                other.wait_closed()
        self.assert_ok(connection.request(["true"]))

    def test_a_question_has_no_body(self):
        node, _ = self.started(["true"])
        for kind in (wire.DIAGNOSTICS, wire.SESSIONS):
            connection = self.connect(node)
            connection.send(wire.message(bytes([kind, 0])))
            connection.wait_closed()
            self.assertFalse(connection.documents)

    def test_a_peer_that_goes_in_the_middle_of_a_message_is_forgotten(self):
        node, connection = self.started(["true"])
        whole = wire.message(body_of(wire.request_frame(uuid.uuid4(), ["true"])))
        for cut in range(1, len(whole)):
            other = node.connect()
            other.send(whole[:cut])
            other.close()
        self.assert_ok(connection.request(["true"]))
        self.assertEqual([r["event"] for r in node.audit()], ["policy_loaded", "request", "started", "exit"])


class Decoder(Case):
    def assert_malformed(self, node, body, answered=True):
        """It is refused as wire.md says: one Exit if the id could be read, an audit line, a closed connection."""
        connection = node.connect()
        with connection:
            request_id = uuid.UUID(bytes=body[ID_END - 16:ID_END]) if answered else None
            session = connection.expect(wire.Address(AGENT, MACHINE, request_id)) if answered else None
            connection.send(wire.message(body))
            connection.wait_closed()
            if answered:
                self.assertEqual([frame.denial for frame in session.frames], ["malformed_frame"])
                record = node.wait_for_audit("malformed", request_id=str(request_id))
                self.assertEqual(record["event"], "malformed")

    def test_a_frame_that_ends_too_early_is_malformed_wherever_it_ends(self):
        node, connection = self.started(["true"])
        for cut in range(1, len(body_of(wire.request_frame(uuid.uuid4(), ["true", "x"], b"in", 5, "/")))):
            with self.subTest(cut=cut):
                body = body_of(wire.request_frame(uuid.uuid4(), ["true", "x"], b"in", 5, "/"))[:cut]
                self.assert_malformed(node, body, answered=cut >= ID_END)
        self.assertEqual({r["event"] for r in node.audit()}, {"policy_loaded", "malformed"})
        self.assertGreater(connection.diagnostics()["totals"]["denial_breakdown"]["malformed_frame"], 100)

    def test_bytes_after_the_end_of_a_frame_are_malformed(self):
        node, _ = self.started(["true"])
        for frame in (wire.request_frame(uuid.uuid4(), ["true"]), wire.frame(wire.LEASE_RENEW, uuid.uuid4()),
                      wire.frame(wire.CANCEL, uuid.uuid4())):
            for rest in (b"\0", b"garbage", frame):
                with self.subTest(frame=frame, rest=rest):
                    self.assert_malformed(node, body_of(frame + rest))
        self.assertNotIn("request", [r["event"] for r in node.audit()])

    def test_a_tag_that_is_unknown_or_travels_the_other_way_is_malformed(self):
        node, _ = self.started(["true"])
        fields = {wire.STARTED: wire.u32(1), wire.STDOUT: wire.u32(0) + wire.sized(b"x"),
                  wire.STDERR: wire.u32(0) + wire.sized(b"x"),
                  wire.WARNING: wire.u32(0) + wire.sized("x"), wire.EXIT: b"\0\0" + b"\0" * 26, 8: b"", 256: b"",
                  0xffffffff: b""}
        for tag, rest in fields.items():
            with self.subTest(tag=tag):
                self.assert_malformed(node, body_of(wire.frame(tag, uuid.uuid4(), rest)))

    def test_a_request_must_be_exactly_what_bincode_writes(self):
        node, _ = self.started(["true"])
        none, one, argv = b"\0", wire.u32(0), wire.u64(1) + wire.sized("true")
        bad = {"an option of 2 for stdin": argv + b"\2" + wire.sized(b"") + one + none,
               "an option of 2 for cwd": argv + none + one + b"\2" + wire.sized("/"),
               "an option of 255": argv + b"\xff" + one + none,
               "argc of 2**64 - 1": wire.u64(2**64 - 1) + wire.sized("true") + none + one + none,
               "argc one too large": wire.u64(2) + wire.sized("true") + none + one + none,
               "a token of 2**64 - 1 bytes": wire.u64(1) + wire.u64(2**64 - 1) + b"true" + none + one + none,
               "a token of 2**63 bytes": wire.u64(1) + wire.u64(2**63) + b"true" + none + one + none,
               "a token one byte too long": wire.u64(1) + wire.u64(12) + b"true" + none + one + none,
               "stdin of 2**64 - 1 bytes": argv + b"\1" + wire.u64(2**64 - 1) + one + none,
               "cwd beyond the end": argv + none + one + b"\1" + wire.u64(1)}
        for name, fields in bad.items():
            with self.subTest(name):
                self.assert_malformed(node, body_of(wire.frame(wire.REQUEST, uuid.uuid4(), fields)))

    def test_text_that_is_not_utf8_is_malformed(self):
        node, connection = self.started(["true"])
        texts = (b"\x80", b"\xc3", b"\xc3(", b"\xc0\xaf", b"\xe0\x80\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80",
                 b"\xf8\x88\x80\x80\x80",
                 b"\xff", b"true\xfe")
        for text in texts:
            with self.subTest(text=text):
                self.assert_malformed(node, body_of(wire.request_frame(uuid.uuid4(), ["true", text])))
                self.assert_malformed(node, body_of(wire.request_frame(uuid.uuid4(), ["true"], cwd=text)))
        self.assert_denied(connection.request(["é\u0800\U0010ffff"]), "argv_not_allowed")

    def test_a_prefix_with_any_byte_changed_is_malformed(self):
        node, _ = self.started(["true"])
        for position in range(len(wire.PREFIX)):
            body = bytearray(body_of(wire.request_frame(uuid.uuid4(), ["true"])))
            body[65 + position] ^= 0x20
            connection = self.connect(node)
            connection.expect(wire.Address(AGENT, MACHINE, uuid.UUID(bytes=bytes(body[ID_END - 16:ID_END]))))
            connection.send(wire.message(bytes(body)))
            connection.wait_closed()
        self.assertEqual([r["event"] for r in node.audit()], ["policy_loaded"] + ["malformed"] * len(wire.PREFIX))

    def test_a_malformed_message_ends_what_ran_on_its_connection_and_nothing_else(self):
        node, connection = self.started(["sleep", "60"])
        mine = connection.request(["sleep", "60"])
        mine.wait_started()
        other = self.connect(node)
        theirs = other.request(["sleep", "60"])
        theirs.wait_started()
        other.send(wire.message(b"\xff"))
        other.wait_closed()
        end = node.wait_for_audit("exit", request_id=str(theirs.address.request_id))
        self.assertEqual(end["signal"], 15)
        self.assertEqual([s["request_id"] for s in connection.list_sessions()], [str(mine.address.request_id)])

    def test_random_bytes_never_harm_it(self):
        node, connection = self.started(["true"])
        noise = random.Random(7)
        for _ in range(150):
            body = bytearray(body_of(wire.request_frame(uuid.UUID(int=noise.getrandbits(128)), ["true", "x"], b"in", 5,
                                                        "/")))
            for _ in range(noise.randrange(1, 6)):
                body[noise.randrange(len(body))] = noise.randrange(256)
            with socket.socket(socket.AF_UNIX) as raw:
                raw.connect(str(node.socket))
                raw.sendall(wire.message(bytes(body)) if noise.random() < 0.8 else noise.randbytes(60))
        self.assert_ok(connection.request(["true"]))


if __name__ == "__main__":
    main()
