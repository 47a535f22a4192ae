"""What the end-to-end tests stand on: a node of their own in a temporary directory, connections to it, and a runner.

Only behaviour is looked at: the socket, the audit log, exit status, stderr, and what /proc shows of processes. The
programs come from the build directory in X0X_BUILD (default: build-asan/). When a node is closed it must have left no
process, no socket, no file of its own making and no sanitizer report."""

import collections
import concurrent.futures
import datetime
import hashlib
import json
import os
import pathlib
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import unittest
import uuid

import wire

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("X0X_BUILD", ROOT / "build-asan")).resolve()
ENFORCER, POLICYC, CLIENT = BUILD / "enforcer/x0x-enforcer", BUILD / "policyc/x0x-policyc", BUILD / "client/x0x-exec"

AGENT, MACHINE = "ab" * 32, "cd" * 32
OTHER_AGENT, OTHER_MACHINE = "12" * 32, "34" * 32
PATIENCE = 60.0  # how long to wait for what must happen; only a failing test waits that long
LEASE_SECS, RENEW_SECS, GRACE_SECS = 4.0, 1.0, 5.0
YEAR_2100 = datetime.datetime(2100, 1, 1)
PYTHON = "/usr/bin/python3"  # for scripts: where every user can reach it
AM_ROOT = os.geteuid() == 0
SANITIZERS = ("AddressSanitizer", "LeakSanitizer", "UndefinedBehaviorSanitizer", "runtime error:")
SANITIZER_OPTIONS = {"ASAN_OPTIONS": "exitcode=99:quarantine_size_mb=4", "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1:exitcode=99"}


def wait_until(what, timeout=PATIENCE, every=0.02):
    """Waits until what() is true, and returns it. Fails when it never is."""
    end = time.monotonic() + timeout
    while not (found := what()):
        if time.monotonic() > end:
            raise AssertionError(f"did not happen within {timeout} s: {what}")
        time.sleep(every)
    return found


def run(*command, env=None, timeout=PATIENCE, **more):
    """Runs a program to its end. Its environment is what we say, not ours."""
    return subprocess.run([str(word) for word in command], env={**SANITIZER_OPTIONS, "PATH": os.environ["PATH"], **(env or {})},
                          capture_output=True, timeout=timeout, **{"text": True, "stdin": subprocess.DEVNULL, **more})


def in_mount_namespace(setup):
    """Words before a command that give it mounts of its own, changed by shell commands; None where that is not allowed.
    For an ordinary user this is a user namespace, in which that user is called root."""
    words = ["unshare", *([] if AM_ROOT else ["--user", "--map-root-user"]), "--mount", "--propagation", "private"]
    if run(*words, "mount", "-t", "tmpfs", "none", "/mnt").returncode != 0:
        return None
    return [*words, "/bin/sh", "-ec", setup + '\nexec "$@"', "sh"]


def heard(told, message):
    """Whether this has arrived on a datagram socket that has a short timeout."""
    try:
        return told.recv(100) == message
    except TimeoutError:
        return False


def assert_clean(text, whose):
    """No sanitizer has complained."""
    for word in SANITIZERS:
        assert word not in text, f"{whose}:\n{text}"


# ---- policies

def toml(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, str)):
        return json.dumps(value)
    if isinstance(value, pathlib.Path):
        return json.dumps(str(value))
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(toml(item) for item in value) + "]"
    return value.strftime("%Y-%m-%dT%H:%M:%SZ")


def table(header, keys):
    return header + "\n" + "".join(f"{key} = {toml(value)}\n" for key, value in keys.items())


class Keys:
    """Key pairs, made once for all tests of a file."""
    lock, directory, made = threading.Lock(), None, {}

    @classmethod
    def get(cls, name="policy"):
        """(public file, secret file)"""
        with cls.lock:
            cls.directory = cls.directory or tempfile.TemporaryDirectory(prefix="x0x-keys-")
            if name not in cls.made:
                public, secret = (pathlib.Path(cls.directory.name, f"{name}.{end}") for end in ("pub", "key"))
                made = run(POLICYC, "keygen", "-p", public, "-s", secret, "--no-password")
                assert made.returncode == 0, made.stderr
                cls.made[name] = (public, secret)
            return cls.made[name]


# ---- a node

class Node:
    """An enforcer with everything it needs in one temporary directory.

        node = Node()
        node.allow(["echo", "<INT>"])
        node.start()
        with node.connect() as connection:
            assert connection.run(["echo", "42"]).stdout == b"42\\n"
        node.close()

    Its HOME is the directory, and so is that of everything it starts: that is how processes() finds them."""

    def __init__(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="x0x-e2e-")).resolve()
        self.policy_file, self.trust = self.directory / "policy.x0xp", self.directory / "trust.pub"
        self.state, self.log = self.directory / "state", self.directory / "exec.log"
        self.socket, self.work, self.bin = (self.directory / name for name in ("s", "work", "bin"))
        for directory in (self.state, self.work, self.bin):
            directory.mkdir()
        self.trust.write_bytes(Keys.get()[0].read_bytes())
        self.policy = {"name": "e2e", "version": 1, "expires": YEAR_2100}
        self.exec = {"enabled": True, "audit_log_path": self.log}
        self.entries = []
        self.options = []           # more arguments for the enforcer
        self.wrapper = []           # words before the enforcer's own
        self.env = {}               # more variables for the enforcer
        self.process, self.errors = None, ""
        self.expected_status = 0

    # -- what the policy says

    def entry(self, agent=AGENT, machine=MACHINE, **keys):
        """Begins an entry; allow() adds to the last one."""
        self.entries.append(({"agent_id": agent, "machine_id": machine, "description": f"{agent[:4]} on {machine[:4]}",
                              **keys}, []))

    def allow(self, argv, **keys):
        """One more command, with the keys that its table has."""
        if not self.entries:
            self.entry()
        self.entries[-1][1].append({"argv": [str(token) for token in argv], **keys})
        return [str(token) for token in argv]

    def script(self, text, name=None, interpreter="/bin/sh"):
        """An executable file; an allowed argv has no room for what a shell wants."""
        path = self.bin / (name or f"script-{len(list(self.bin.iterdir()))}")
        path.write_text(f"#!{interpreter}\n{text}\n")
        path.chmod(0o755)
        return str(path)

    def allow_script(self, text, interpreter="/bin/sh", **keys):
        return self.allow([self.script(text, interpreter=interpreter)], **keys)

    def allow_python(self, text, **keys):
        return self.allow_script(text, interpreter=PYTHON, **keys)

    def policy_text(self):
        text = table("[policy]", self.policy) if self.policy else ""
        text += table("[exec]", self.exec)
        for entry, commands in self.entries:
            text += table("[[exec.allow]]", entry)
            text += "".join(table("[[exec.allow.commands]]", command) for command in commands)
        return text

    def compile(self, *more, key="policy"):
        done = run(POLICYC, "compile", "-", "-o", self.policy_file, "--key", Keys.get(key)[1], "--force", *more,
                   input=self.policy_text(), stdin=None)
        assert done.returncode == 0, f"{self.policy_text()}\n{done.stderr}"

    # -- its life

    def command(self, *more):
        return [*self.wrapper, ENFORCER, "--policy", self.policy_file, "--trust", self.trust, "--state", self.state,
                "--socket", self.socket, *self.options, *more]

    def environment(self):
        return {"HOME": str(self.directory), **self.env}

    def refuse(self, *more, timeout=PATIENCE):
        """Runs the enforcer when it is expected to end by itself."""
        done = run(*self.command(*more), env=self.environment(), cwd=self.work, timeout=timeout)
        assert_clean(done.stderr, "x0x-enforcer")
        return done

    def launch(self, notify="", **more):
        """Starts it and does not wait."""
        with open(self.directory / "stderr", "ab") as errors:
            self.process = subprocess.Popen(
                [str(word) for word in self.command()], stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, cwd=self.work,
                env={"PATH": os.environ["PATH"], **SANITIZER_OPTIONS, "NOTIFY_SOCKET": str(notify), **self.environment()}, **more)

    def start(self, compile=True, **more):
        """Starts it and waits until it says that it is ready."""
        if compile:
            self.compile()
        notify = self.directory / "notify"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
            told.bind(str(notify))
            os.chmod(notify, 0o777)
            self.launch(notify, **more)
            told.settimeout(0.05)
            wait_until(lambda: self.process.poll() is not None or heard(told, b"READY=1"))
        notify.unlink()
        if self.process.poll() is not None:
            raise AssertionError(f"not started, status {self.wait()}:\n{self.read_errors()}")
        return self

    def limit_file_size(self, size):
        """No file of the enforcer's may grow beyond this: what it writes then fails, as on a full disk."""
        hard = resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE)[1]
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (hard if size is None else size, hard))

    def read_errors(self):
        path = self.directory / "stderr"
        return path.read_text(errors="replace") if path.exists() else ""

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, timeout=PATIENCE):
        """Its exit status, once it has ended by itself."""
        status = self.process.wait(timeout)
        self.process = None
        return status

    def stop(self):
        """SIGTERM, and what must be true afterwards."""
        self.signal(signal.SIGTERM)
        status = self.wait()
        assert status == self.expected_status, f"exit status {status}\n{self.read_errors()}"
        self.assert_nothing_left()

    def kill(self):
        """SIGKILL, as a crash would."""
        self.signal(signal.SIGKILL)
        self.wait()

    def assert_nothing_left(self):
        wait_until(lambda: not self.processes(), timeout=10)
        assert not self.socket.exists(), "the socket is still there"
        ours = {"policy.x0xp", "trust.pub", "state", "work", "bin", "stderr"}
        left = {path.name for path in self.directory.iterdir() if not path.name.startswith("exec.log")} - ours
        assert not left, f"left behind: {left}"
        assert {path.name for path in self.state.iterdir()} <= {"highest"}, list(self.state.iterdir())

    def close(self):
        """Stops it if it runs, and removes everything."""
        try:
            if self.process is not None:
                self.stop()
            assert_clean(self.read_errors(), "x0x-enforcer")
        finally:
            if self.process is not None:
                self.kill()
            for pid in self.processes():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            subprocess.run(["chmod", "-R", "u+rwX", self.directory], check=False)
            shutil.rmtree(self.directory)

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.close()

    # -- what can be seen of it

    def connect(self, **more):
        return Connection(self.socket, **more)

    def processes(self, but_enforcer=False):
        """Every living process that the enforcer has started, and the enforcer itself."""
        mark = f"HOME={self.directory}".encode()
        found = []
        for name in os.listdir("/proc"):
            try:
                if name.isdigit() and mark in pathlib.Path("/proc", name, "environ").read_bytes().split(b"\0"):
                    found.append(int(name))
            except OSError:
                pass
        if but_enforcer and self.process is not None:
            found = [pid for pid in found if pid != self.process.pid]
        return found

    def memory(self):
        """What the enforcer holds in memory, in bytes."""
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(text.split("VmRSS:")[1].split()[0]) * 1024

    def audit(self):
        """The records, after checking that every line is one and that the chain holds."""
        return read_audit([self.log])

    def wait_for_audit(self, event, **fields):
        """The first record of that kind, once it is there."""
        def found():
            return next((r for r in self.audit() if r["event"] == event and fields.items() <= r.items()), None)
        return wait_until(found)

    def audit_of(self, session):
        """The records of one session."""
        return [r for r in self.audit() if r.get("request_id") == str(session.address.request_id)]


def read_audit(logs, first_prev="00" * 32):
    """The records of files that follow each other; a chain that breaks is a failure."""
    records, prev, seq = [], first_prev, None
    for log in logs:
        data = pathlib.Path(log).read_bytes() if pathlib.Path(log).exists() else b""
        for line in data[:data.rfind(b"\n") + 1].split(b"\n")[:-1]:
            if line.endswith(b"~"):  # a line that a crash has torn; the next record says so
                continue
            record = json.loads(line)
            assert b"\n" not in line and line.decode().isprintable(), line
            assert record["prev"] == prev, f"the chain breaks at {record}"
            assert seq is None or record["seq"] == seq + 1, f"{record['seq']} after {seq}"
            prev, seq = hashlib.blake2b(line, digest_size=32).hexdigest(), record["seq"]
            records.append(record)
    return records


# ---- a connection

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
        assert self.started is not None and (end.code is None) != (end.signal is None), end
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

    def __init__(self, path, buffer=None):
        self.socket = socket.socket(socket.AF_UNIX)
        if buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
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
            assert time.monotonic() < end, f"nothing within {timeout} s; {[s.frames[-3:] for s in self.sessions.values()]}"
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


# ---- tests

class Case(unittest.TestCase):
    """A test whose nodes and connections are closed, and checked, at its end."""
    maxDiff = None

    def node(self, *argvs):
        """A node, not started; it allows these."""
        node = Node()
        self.addCleanup(node.close)
        for argv in argvs:
            node.allow(argv)
        return node

    def connect(self, node, **more):
        connection = node.connect(**more)
        self.addCleanup(connection.close)
        return connection

    def started(self, *argvs):
        """A running node that allows these, and a connection to it."""
        node = self.node(*argvs).start()
        return node, self.connect(node)

    def assert_denied(self, session, reason):
        self.assertEqual(session.wait().denial, reason, session.argv)

    def assert_ok(self, session, stdout=None):
        self.assertEqual((session.wait().code, session.exit.denial), (0, None), (session.argv, session.stderr))
        if stdout is not None:
            self.assertEqual(session.stdout, stdout)


def slow(test):
    """Marks a test that waits long, so that it starts first and others run beside it."""
    test.slow = True
    return test


class Tap(unittest.TestResult):
    """The Test Anything Protocol, which Meson counts."""

    def __init__(self):
        super().__init__()
        self.lock, self.count, self.bad, self.began = threading.Lock(), 0, 0, {}

    def startTest(self, test):
        self.began[test] = time.monotonic()

    def say(self, good, test, note="", text=""):
        with self.lock:
            self.count += 1
            self.bad += not good
            seconds = time.monotonic() - self.began.get(test, time.monotonic())
            name = test.id().removeprefix("__main__.")
            print(f"{'ok' if good else 'not ok'} {self.count} - {name} ({seconds:.1f} s){note}")
            for line in text.splitlines():
                print(f"# {line}")
            sys.stdout.flush()

    def addSuccess(self, test):
        self.say(True, test)

    def addFailure(self, test, err):
        self.say(False, test, text="".join(traceback.format_exception(*err)))

    addError = addFailure

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.say(False, subtest, text="".join(traceback.format_exception(*err)))

    def addSkip(self, test, reason):
        self.say(True, test, f" # SKIP {reason}")

    def addExpectedFailure(self, test, err):
        self.say(False, test, " # TODO a known fault")
        self.bad -= 1

    def addUnexpectedSuccess(self, test):
        self.say(False, test, text="this was expected to fail and does not; remove the mark")


def flatten(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flatten(test)
        else:
            yield test


def main():
    """Runs the tests of the calling file, many at a time: they mostly wait. Arguments: parts of names to choose by."""
    tests = list(flatten(unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])))
    if len(sys.argv) > 1:
        tests = [test for test in tests if any(word in test.id() for word in sys.argv[1:])]
    tests.sort(key=lambda test: not getattr(getattr(test, test._testMethodName), "slow", False))
    print(f"1..{len(tests)}", flush=True)
    result = Tap()
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("X0X_E2E_JOBS", 12))) as pool:
        list(pool.map(lambda test: test.run(result), tests))
    if Keys.directory is not None:
        Keys.directory.cleanup()
    sys.exit(1 if result.bad or not tests else 0)
