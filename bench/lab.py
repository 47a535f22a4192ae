"""Everything a measurement needs around it: a scratch directory on disk, signed policies, an enforcer, peers. All of it goes away again."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

AGENT, MACHINE = "ab" * 32, "cd" * 32
GIB = 1 << 30
STREAM = ["head", "-c", str(GIB), "/dev/zero"]


class NotMeasured(Exception):
    """A peer is missing or may not run here. The row says so; it does not count as met."""


class Lab:
    def __init__(self, build):
        self.build = pathlib.Path(build).resolve()
        self.policyc = self.build / "policyc/x0x-policyc"
        self.enforcer = self.build / "enforcer/x0x-enforcer"
        self.client = self.build / "client/x0x-exec"
        self.bench = self.build / "bench/x0x-bench"
        self.toml_parse = self.build / "bench/toml-parse"
        self.decisions = self.build / "bench/decisions"

    def __enter__(self):
        missing = [program.name for program in (self.policyc, self.enforcer) if not program.exists()]
        if missing:
            raise RuntimeError(f"{self.build} has no {' and no '.join(missing)}; `./dev bench` builds them")
        self.stack = contextlib.ExitStack()
        # Not /tmp: that is often memory, where making a record durable costs nothing.
        self.scratch = pathlib.Path(self.stack.enter_context(tempfile.TemporaryDirectory(prefix="x0x-bench.", dir="/var/tmp")))
        self.socket = self.scratch / "socket"
        self.key, self.trust = self.scratch / "key", self.scratch / "key.pub"
        self.call(self.policyc, "keygen", "-s", self.key, "-p", self.trust, "--no-password")
        config = self.scratch / "x0x/exec.toml"
        config.parent.mkdir()
        config.write_text(f'agent = "{AGENT}"\nmachine = "{MACHINE}"\nsocket = "{self.socket}"\n')
        self.environment = {**os.environ, "XDG_CONFIG_HOME": str(self.scratch)}
        return self

    def __exit__(self, *failure):
        return self.stack.__exit__(*failure)

    def call(self, *command, **options):
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
        if done.returncode != 0:
            raise RuntimeError(f"{pathlib.Path(command[0]).name}: exit status {done.returncode}\n{done.stderr.strip()}")
        return done.stdout

    def samples(self, *arguments, timeout=400):
        """What x0x-bench measured: series of samples by name."""
        return json.loads(self.call(self.bench, *arguments, env=self.environment, timeout=timeout))

    def commands(self, rounds, **programs):
        """Programs run in turn: wall-clock nanoseconds by name, and processor time by name + ' cpu'."""
        words = []
        for name, argv in programs.items():
            words += [":::", name, *argv] if words else [name, *argv]
        return self.samples("commands", rounds, *words)

    # ---- policies

    def policy_text(self, pairs, commands):
        """Commands of five tokens, half of them with an <INT>, spread over as many pairs as wanted."""
        lines = self.head("large")
        for pair in range(pairs):
            lines += ["[[exec.allow]]", f'agent_id = "{pair:064x}"', f'machine_id = "{MACHINE}"']
            for command in range(commands):
                last = "now" if command % 2 else "<INT>"
                lines += ["[[exec.allow.commands]]", f'argv = ["service", "--unit", "unit-{command}", "-n", "{last}"]']
        return "\n".join(lines) + "\n"

    def head(self, name):
        return ["[policy]", f'name = "{name}"', "version = 1", "[exec]", "enabled = true", "max_stdout_bytes = 4000000000000",
                "max_concurrent_per_agent = 32", f'audit_log_path = "{self.scratch}/{name}.log"']

    def write_policy(self, name, text):
        path = self.scratch / f"{name}.toml"
        path.write_text(text)
        return path

    def compile_words(self, source, output):
        return [str(self.policyc), "compile", str(source), "-o", str(output), "--key", str(self.key), "--no-expiry", "--force"]

    def large_table(self):
        """100,000 commands: source and signed table."""
        source, table = self.scratch / "large.toml", self.scratch / "large.x0xp"
        if not table.exists():
            self.write_policy("large", self.policy_text(1000, 100))
            self.call(*self.compile_words(source, table))
        return source, table

    # ---- the enforcer

    def enforcer_words(self, table, socket_path):
        state = self.scratch / f"{table.stem}.state"
        state.mkdir(exist_ok=True)
        return [str(self.enforcer), "--policy", str(table), "--trust", str(self.trust), "--state", str(state),
                "--socket", str(socket_path)]

    @contextlib.contextmanager
    def daemon(self, wrapper=()):
        """A running enforcer that lets the pair run what the measurements run. Yields its process."""
        allowed = [["true"], STREAM, ["yes"]]
        text = self.head("small") + ["[[exec.allow]]", f'agent_id = "{AGENT}"', f'machine_id = "{MACHINE}"']
        for argv in allowed:
            text += ["[[exec.allow.commands]]", f"argv = {json.dumps(argv)}"]
        table = self.scratch / "small.x0xp"
        self.call(*self.compile_words(self.write_policy("small", "\n".join(text) + "\n"), table))
        process = subprocess.Popen([*wrapper, *self.enforcer_words(table, self.socket)], env=self.environment)
        try:
            self.wait_for_socket(process)
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)

    def wait_for_socket(self, process):
        for _ in range(500):
            if process.poll() is not None:
                raise RuntimeError("the enforcer ended at once")
            with contextlib.suppress(OSError):
                return self.connect().close()
            time.sleep(0.02)
        raise RuntimeError("the enforcer does not listen")

    def connect(self):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(self.socket))
        return connection

    # ---- peers; each yields the words to run `true`

    @contextlib.contextmanager
    def sudo(self):
        yield self.working("sudo", "-n", "true")

    @contextlib.contextmanager
    def doas(self):
        """doas has no rule by default, not even for root: ours is there for as long as it takes, and only if there was none."""
        config = pathlib.Path("/etc/doas.conf")
        made = shutil.which("doas") is not None and os.geteuid() == 0 and not config.exists()
        try:
            if made:
                config.touch(0o600, exist_ok=False)
                config.write_text("permit nopass root\n")
            yield self.working("doas", "-n", "true")
        finally:
            if made:
                config.unlink()

    @contextlib.contextmanager
    def ssh(self):
        """A private sshd on a loopback port with keys of its own, and one connection that is already open.

        HOME is an empty one: a shell started by sshd reads ~/.bashrc, and what people keep there is not ssh's to answer for.
        """
        if shutil.which("sshd", path="/usr/sbin") is None or shutil.which("ssh") is None:
            raise NotMeasured("ssh or sshd is not installed")
        home = self.scratch / "ssh"
        home.mkdir()
        for name in ("host", "user"):
            self.call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", home / name)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        (home / "config").write_text(f"""ListenAddress 127.0.0.1:{port}\nHostKey {home}/host\nAuthorizedKeysFile {home}/user.pub
SetEnv HOME={home}\nPidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\n""")
        separation = pathlib.Path("/run/sshd")
        made = os.geteuid() == 0 and not separation.exists()
        if made:
            separation.mkdir(0o755)
        server = subprocess.Popen(["/usr/sbin/sshd", "-D", "-e", "-f", home / "config"], stderr=subprocess.DEVNULL)
        words = ["ssh", "-F", "/dev/null", "-i", str(home / "user"), "-p", str(port), "-o", "StrictHostKeyChecking=no",
                 "-o", f"UserKnownHostsFile={home}/known", "-o", "LogLevel=ERROR", "-o", "BatchMode=yes",
                 "-o", f"ControlPath={home}/control", "-o", "ControlMaster=auto", "-o", "ControlPersist=600", "127.0.0.1"]
        try:
            time.sleep(0.5)
            yield self.working(*words, "true")
        finally:
            subprocess.run([*words[:-1], "-O", "exit", words[-1]], capture_output=True)
            server.terminate()
            server.wait(10)
            if made:
                separation.rmdir()

    def working(self, *words):
        try:
            tried = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=20)
        except FileNotFoundError:
            raise NotMeasured(f"{words[0]} is not installed") from None
        if tried.returncode != 0:
            raise NotMeasured((tried.stderr.decode().strip().splitlines() or [f"{words[0]}: exit status {tried.returncode}"])[-1])
        return list(words)
