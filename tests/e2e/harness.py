"""What the end-to-end tests stand on: a node of their own in a temporary directory, and what must be true of it.

Only behaviour is looked at: the socket, the audit log, exit status, stderr, and what /proc shows of processes. The
programs come from the build directory in X0X_BUILD (default: build-asan/). When a node is closed it must have left no
process, no socket, no file of its own making and no sanitizer report."""

import datetime
import hashlib
import json
import os
import pathlib
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from connection import AGENT, MACHINE, OTHER_AGENT, OTHER_MACHINE, PATIENCE, Connection
from runner import main, slow

__all__ = ["AGENT", "AM_ROOT", "BUILD", "CLIENT", "ENFORCER", "MACHINE", "OTHER_AGENT", "OTHER_MACHINE", "PATIENCE",
           "POLICYC", "PYTHON", "ROOT", "SANITIZER_OPTIONS", "Case", "Connection", "Keys", "Node", "assert_clean",
           "in_mount_namespace", "main", "read_audit", "run", "slow", "wait_until", "write_program"]

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("X0X_BUILD", ROOT / "build-asan")).resolve()
ENFORCER, POLICYC, CLIENT = BUILD / "enforcer/x0x-enforcer", BUILD / "policyc/x0x-policyc", BUILD / "client/x0x-exec"

YEAR_2100 = datetime.datetime(2100, 1, 1)
PYTHON = "/usr/bin/python3"  # for scripts: where every user can reach it
AM_ROOT = os.geteuid() == 0
SANITIZERS = ("AddressSanitizer", "LeakSanitizer", "UndefinedBehaviorSanitizer", "runtime error:")
SANITIZER_OPTIONS = {"ASAN_OPTIONS": "exitcode=99:quarantine_size_mb=4",
                     "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1:exitcode=99"}


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
    return subprocess.run([str(word) for word in command], capture_output=True, timeout=timeout,
                          env={**SANITIZER_OPTIONS, "PATH": os.environ["PATH"], **(env or {})},
                          **{"text": True, "stdin": subprocess.DEVNULL, **more})


def write_program(path, content, mode=0o755):
    """An executable file. Another process writes it: a fork in one of our own threads could inherit a descriptor that
    is still open for writing, and as long as one is, the file cannot be executed."""
    subprocess.run(["/bin/sh", "-c", 'cat > "$0" && chmod "$1" "$0"', path, f"{mode:o}"], input=content, check=True)


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
        self.socket, self.work, self.bin = (self.directory / name for name in ("s", "desk", "bin"))
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
        write_program(path, f"#!{interpreter}\n{text}\n".encode())
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
                [str(word) for word in self.command()], stdin=subprocess.DEVNULL, stdout=errors, stderr=errors,
                env={"PATH": os.environ["PATH"], **SANITIZER_OPTIONS, "NOTIFY_SOCKET": str(notify),
                     **self.environment()}, cwd=self.work, **more)

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
        ours = {"policy.x0xp", "trust.pub", "state", "desk", "bin", "stderr"}
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

    def connect(self, path=None):
        return Connection(path or self.socket)

    def processes(self, but_enforcer=False):
        """Every living process that the enforcer has started, and the enforcer itself; or only those of sessions."""
        mark = f"HOME={self.directory}".encode()
        found = []
        for name in os.listdir("/proc"):
            try:
                if name.isdigit() and mark in pathlib.Path("/proc", name, "environ").read_bytes().split(b"\0"):
                    found.append(int(name))
            except OSError:
                pass
        if but_enforcer and self.process is not None:
            idle = self.idle_supervisors()
            found = [pid for pid in found if pid != self.process.pid and pid not in idle]
        return found

    def idle_supervisors(self):
        """They wait for another session and have no child."""
        def reads(pid, name):
            try:
                return pathlib.Path("/proc", pid, name).read_text()
            except OSError:
                return "gone"
        children = reads(str(self.process.pid), f"task/{self.process.pid}/children").split()
        return [int(pid) for pid in children
                if reads(pid, "comm") == "x0x-supervisor\n" and reads(pid, f"task/{pid}/children") == ""]

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
