"""The frames and socket messages of docs/wire.md, written from the document alone: the tests' own opinion of the bytes.

Encoding can be made to produce anything; decoding is as strict as the document asks a decoder to be."""

import struct
import typing
import uuid

PREFIX = b"x0x-exec-v1\0"
EXEC, DIAGNOSTICS, SESSIONS = 1, 2, 3
MAX_MESSAGE = 2 << 20
MAX_CHUNK = 16 << 10
REQUEST, LEASE_RENEW, STARTED, STDOUT, STDERR, WARNING, EXIT, CANCEL = range(8)

WARNINGS = ["StdoutCapHit", "StderrCapHit", "DurationApproachingCap", "StdoutApproachingCap", "StderrApproachingCap",
            "LeaseExpired", "PeerDisconnected", "Cancelled"]
DENIALS = ["exec_disabled", "unverified_sender", "trust_rejected", "agent_machine_not_in_acl", "argv_not_allowed",
           "stdin_too_large", "timeout_too_large", "cwd_not_allowed", "concurrency_limit_reached",
           "shell_metachar_in_argv", "spawn_failed", "malformed_frame"]


class Started(typing.NamedTuple):
    pid: int


class Output(typing.NamedTuple):
    stream: str
    seq: int
    data: bytes


class Warned(typing.NamedTuple):
    kind: str
    message: str


class Exit(typing.NamedTuple):
    code: int | None
    signal: int | None
    duration_ms: int
    stdout_bytes: int
    stderr_bytes: int
    truncated: bool
    denial: str | None


class Address(typing.NamedTuple):
    agent: str
    machine: str
    request_id: uuid.UUID


# ---- what a front end says

def u32(number):
    return struct.pack("<I", number)


def u64(number):
    return struct.pack("<Q", number)


def sized(data):
    data = data.encode() if isinstance(data, str) else data
    return u64(len(data)) + data


def option(value, encode):
    return b"\0" if value is None else b"\1" + encode(value)


def frame(tag, request_id, fields=b""):
    return PREFIX + u32(tag) + request_id.bytes + fields


def request_frame(request_id, argv, stdin=None, timeout_ms=0, cwd=None):
    tokens = b"".join(sized(token) for token in argv)
    return frame(REQUEST, request_id,
                 u64(len(argv)) + tokens + option(stdin, sized) + u32(timeout_ms) + option(cwd, sized))


def message(body):
    return u32(len(body)) + body


def exec_message(agent, machine, payload):
    return message(bytes([EXEC]) + bytes.fromhex(agent) + bytes.fromhex(machine) + payload)


# ---- what the enforcer says

class Malformed(AssertionError):
    """The enforcer sent something that docs/wire.md does not have."""


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        if count > len(self.data) - self.at:
            raise Malformed(f"{count} bytes wanted at {self.at} of {len(self.data)}")
        self.at += count
        return self.data[self.at - count:self.at]

    def number(self, form):
        return struct.unpack("<" + form, self.take(struct.calcsize("<" + form)))[0]

    def flag(self):
        byte = self.number("B")
        if byte > 1:
            raise Malformed(f"a flag of {byte}")
        return byte == 1

    def option(self, form):
        return self.number(form) if self.flag() else None

    def sized(self):
        return self.take(self.number("Q"))

    def end(self):
        if self.at != len(self.data):
            raise Malformed(f"{len(self.data) - self.at} trailing bytes")


def name_of(names, number):
    if number >= len(names):
        raise Malformed(f"number {number} has no name in {names}")
    return names[number]


def decode(body):
    """An exec message without its length: (Address, frame)."""
    reader = Reader(body)
    if reader.number("B") != EXEC:
        raise Malformed(f"not an exec message: {body[:1]!r}")
    agent, machine = reader.take(32).hex(), reader.take(32).hex()
    if reader.take(len(PREFIX)) != PREFIX:
        raise Malformed("the prefix is missing")
    tag, request_id = reader.number("I"), uuid.UUID(bytes=reader.take(16))
    if tag == STARTED:
        found = Started(reader.number("I"))
    elif tag in (STDOUT, STDERR):
        found = Output("stdout" if tag == STDOUT else "stderr", reader.number("I"), reader.sized())
        if not 0 < len(found.data) <= MAX_CHUNK:
            raise Malformed(f"a chunk of {len(found.data)} bytes")
    elif tag == WARNING:
        found = Warned(name_of(WARNINGS, reader.number("I")), reader.sized().decode())
    elif tag == EXIT:
        found = Exit(reader.option("i"), reader.option("i"), reader.number("Q"), reader.number("Q"),
                     reader.number("Q"), reader.flag(), reader.option("I"))
        if found.denial is not None:
            found = found._replace(denial=name_of(DENIALS, found.denial))
    else:
        raise Malformed(f"tag {tag} does not travel this way")
    reader.end()
    return Address(agent, machine, request_id), found
