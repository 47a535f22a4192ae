"""A front end: sends what it is told to, sorts what comes back by session, and holds it against docs/wire.md."""

import collections
import json
import select
import signal
import socket
import time
import uuid

import wire

AGENT, MACHINE = "ab" * 32, "cd" * 32
OTHER_AGENT, OTHER_MACHINE = "12" * 32, "34" * 32
RENEW_SECS = 1.0  # a lease lasts four times as long
PATIENCE = 60.0   # how long to wait for what must happen; only a failing test waits that long


class Session:
    """One request as its requester sees it, held against what wire.md promises about the order of frames."""

    def __init__(self, connection, address, argv):
        self.connection, self.address, self.argv = connection, address, argv
        self.frames, self.warnings = [], []
        self.started = self.exit = None
        self.output = {"stdout": bytearray(), "stderr": bytearray()}
        self.seq = {"stdout": 0, "stderr": 0}
        self.renewing = True

    def take(self, frame):
        assert self.exit is None, f"{frame} after {self.exit}"
        self.frames.append(frame)
        if isinstance(frame, wire.Started):
            assert self.started is None and not any(self.output.values()), f"a late {frame}"
            self.started = frame
        elif isinstance(frame, wire.Output):
            assert self.started is not None, "output before Started"
            assert frame.seq == self.seq[frame.stream], f"{frame.stream} {frame.seq}, not {self.seq[frame.stream]}"
            self.seq[frame.stream] += 1
            self.output[frame.stream] += frame.data
        elif isinstance(frame, wire.Warned):
            assert frame.kind not in self.warnings, f"{frame.kind} twice"
            self.warnings.append(frame.kind)
        else:
            self.exit = frame
            self.check_exit()

    def check_exit(self):
        end = self.exit
        if end.denial is not None:
            assert end[:6] == (None, None, 0, 0, 0, False), f"a denial of another shape: {end}"
            assert self.started is None or end.denial == "malformed_frame", f"{end} after Started"
            return
        assert (end.code is None) != (end.signal is None), end
        assert self.started is not None or end.signal == signal.SIGKILL, end  # together with its supervisor, at once
        sent, total = (len(self.stdout), len(self.stderr)), (end.stdout_bytes, end.stderr_bytes)
        assert end.truncated == (sent != total) and sent[0] <= total[0] and sent[1] <= total[1], f"{sent} of {end}"

    @property
    def stdout(self):
        return bytes(self.output["stdout"])

    @property
    def stderr(self):
        return bytes(self.output["stderr"])

    def send(self, tag):
        self.connection.send(wire.exec_message(self.address.agent, self.address.machine,
                                               wire.frame(tag, self.address.request_id)))

    def renew(self):
        self.send(wire.LEASE_RENEW)

    def cancel(self):
        self.send(wire.CANCEL)

    def wait_started(self):
        """The pid, once the command runs."""
        self.connection.pump(lambda: self.started or self.exit)
        assert self.started is not None, self.exit
        return self.started.pid

    def wait_output(self, text, stream="stdout"):
        """Until the command has said this; b"" waits for anything."""
        said = self.output[stream]
        self.connection.pump(lambda: (text in said and said) or self.exit)
        assert text in said, f"{text!r} not in {bytes(said)!r}, {self.exit}"

    def wait(self, timeout=PATIENCE):
        """Its Exit."""
        self.connection.pump(lambda: self.exit, timeout)
        return self.exit


class Connection:
    """A front end. Whatever waits also reads, sorts the frames by session, and renews the leases."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.socket.settimeout(PATIENCE)
        self.poll = select.poll()
        self.poll.register(self.socket, select.POLLIN)
        self.data = b""
        self.closed = False
        self.sessions, self.documents = {}, collections.deque()
        self.next_renewal = time.monotonic() + RENEW_SECS

    def send(self, data):
        self.socket.sendall(data)

    def request(self, argv, agent=AGENT, machine=MACHINE, request_id=None, **more):
        """Asks for a command; `more` is stdin, timeout_ms, cwd."""
        session = self.expect(wire.Address(agent, machine, request_id or uuid.uuid4()), argv)
        self.send(wire.exec_message(agent, machine, wire.request_frame(session.address.request_id, argv, **more)))
        return session

    def expect(self, address, argv=()):
        """A session whose request the caller sends itself."""
        self.sessions[address] = Session(self, address, list(argv))
        return self.sessions[address]

    def run(self, argv, **more):
        """Asks, and waits for the end."""
        session = self.request(argv, **more)
        session.wait()
        return session

    def ask(self, kind):
        self.send(wire.message(bytes([kind])))
        self.pump(lambda: self.documents)
        answered, document = self.documents.popleft()
        assert answered == kind, f"asked {kind}, answered {answered}"
        return json.loads(document)

    def diagnostics(self):
        return self.ask(wire.DIAGNOSTICS)

    def list_sessions(self):
        return self.ask(wire.SESSIONS)["sessions"]

    def sleep(self, seconds):
        """Lets time pass without losing a lease."""
        end = time.monotonic() + seconds
        self.pump(lambda: time.monotonic() >= end or self.closed, seconds + PATIENCE)

    def wait_closed(self):
        """Until the enforcer has hung up."""
        self.pump(lambda: self.closed)

    def pump(self, until, timeout=PATIENCE):
        end = time.monotonic() + timeout
        while not until():
            assert not self.closed, "the enforcer has closed the connection"
            assert time.monotonic(
            ) < end, f"nothing within {timeout} s; {[s.frames[-3:] for s in self.sessions.values()]}"
            self.renew_all()
            if self.poll.poll(50):
                self.receive()

    def renew_all(self):
        if time.monotonic() < self.next_renewal:
            return
        self.next_renewal = time.monotonic() + RENEW_SECS
        for session in self.sessions.values():
            if session.exit is None and session.renewing:
                session.renew()

    def receive(self):
        try:
            data = self.socket.recv(1 << 16)
        except ConnectionResetError:
            data = b""
        self.closed = not data
        self.data += data
        while len(self.data) >= 4:
            length = int.from_bytes(self.data[:4], "little")
            assert 0 < length <= wire.MAX_MESSAGE, f"a message of {length} bytes"
            if len(self.data) < 4 + length:
                break
            self.take(self.data[4:4 + length])
            self.data = self.data[4 + length:]
        if self.closed:
            assert not self.data, f"the connection ends within a message: {self.data!r}"

    def take(self, body):
        if body[0] in (wire.DIAGNOSTICS, wire.SESSIONS):
            self.documents.append((body[0], body[1:].decode()))
            return
        address, frame = wire.decode(body)
        assert address in self.sessions, f"{frame} for {address}, which nobody asked for"
        self.sessions[address].take(frame)

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.close()


class Breakable(Connection):
    """May be cut off in the middle of a message."""

    def receive(self):
        try:
            super().receive()
        except AssertionError:
            if not (self.closed and self.data):
                raise

    def fileno(self):
        return self.socket.fileno()
