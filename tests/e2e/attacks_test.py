"""The attacks that others have suffered, each under its number in the catalogue; what they all come to is a denial.

12 and 13 (ids, lengths, crowds) are in protocol_test.py, 14 to 17 (tables) in tests/enforcer/, 18 in audit_test.py."""

import hashlib
import os
import pathlib
import shutil
import signal
import threading

from harness import AM_ROOT, PYTHON, Case, main, slow, write_program

# Runs a command with everything about it that a daemon could pass on by mistake. Its controlling terminal is a new one.
HOSTILE_PARENT = """
import fcntl, os, pty, signal, sys, termios
if os.getsid(0) != os.getpid():
    os.setsid()
master, slave = pty.openpty()
fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
for number in (4, 5, 17, 500):
    os.dup2(os.open('/etc/passwd', os.O_RDONLY), number, inheritable=True)
os.dup2(master, 6, inheritable=True)
os.umask(0)
for name in ('SIGPIPE', 'SIGCHLD', 'SIGUSR1', 'SIGALRM', 'SIGQUIT'):
    signal.signal(getattr(signal, name), signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, set(range(1, 65)) - {32, 33})
os.execv(sys.argv[1], sys.argv[1:])
"""

# Every process starts the next and ends: no list of them is true for long.
RUNAWAY = """import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for chain in range(3):
    if os.fork() == 0:
        while True:
            os.setsid()
            if os.fork() > 0:
                os._exit(0)
            time.sleep(0.001)
print('up', flush=True)
time.sleep(60)
"""

# Seven generations, two children each.
BOMB = """import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for generation in range(7):
    try:
        os.fork()
    except OSError:
        pass
os.write(1, b'.')
time.sleep(60)
"""


class Argv(Case):
    def assert_all_denied(self, connection, argvs, reason="argv_not_allowed"):
        for argv in argvs:
            with self.subTest(argv=argv):
                self.assert_denied(connection.request(argv), reason)

    def test_attack_1_no_argument_and_empty_arguments(self):
        node, connection = self.started(["echo", "<INT>"], ["true"], ["printf", "%s", ""])
        self.assert_all_denied(connection, [[], [""], ["", "true"], ["true", ""], ["echo", ""], ["", ""], ["echo"],
                                            ["printf", "%s"], ["printf", "", "%s"]])
        self.assert_ok(connection.request(["printf", "%s", ""]), b"")
        self.assertEqual([r["argv"] for r in node.audit() if r["event"] == "denial"][:2], [[], [""]])

    def test_attack_2_one_token_more_or_fewer_or_two_in_one(self):
        _, connection = self.started(["systemctl", "status", "x0xd"], ["echo", "<INT>", "<INT>"], ["cat", "<URL_PATH>"])
        self.assert_all_denied(connection, [
            ["systemctl", "status"], ["systemctl", "status", "x0xd", "sshd"], ["systemctl", "status x0xd"],
            ["systemctl status x0xd"], ["systemctl", "status", "x0xd "], ["systemctl", "status", "x0xd", ""],
            ["echo", "1"], ["echo", "1", "2", "3"], ["echo", "1 2"], ["cat", "/a /b"], ["cat", "/a", "/b"], ["cat"]])

    def test_attack_3_a_leading_dash_where_a_template_sits(self):
        _, connection = self.started(["echo", "<INT>"], ["echo", "x", "<URL_PATH>"],
                                     ["echo", "y", "http://h:1<URL_PATH>"])
        self.assert_all_denied(connection, [["echo", token] for token in ("-1", "--1", "-n", "--", "-", "--help")])
        self.assert_all_denied(connection, [["echo", "x", token]
                                            for token in ("-/x", "--/x", "-o/etc/passwd", "--", "-")])
        self.assert_all_denied(connection, [["echo", "y", token] for token in ("-http://h:1/x", "--url=http://h:1/x")])

    def test_attack_4_other_names_for_an_allowed_program(self):
        node = self.node(["echo", "1"])
        path = node.allow_script("echo ran")[0]
        link = node.bin / "link"
        link.symlink_to(path)
        connection = self.connect(node.start())
        self.assert_ok(connection.request([path]), b"ran\n")
        directory, name = os.path.split(path)
        self.assert_all_denied(connection, [[other] for other in (
            f"/{path}", f"//{path}", f"{path} ", f" {path}", f"{path}/", f"{directory}/./{name}",
            f"{directory}//{name}",
            f"{directory}/../bin/{name}", f"./{name}", name, str(link), path.upper())])
        others = ("/bin/echo", "./echo", "echo ", " echo", "ECHO", "../bin/echo")
        self.assert_all_denied(connection, [[other, "1"] for other in others])

    def test_attack_4_a_pinned_program_that_is_replaced_between_check_and_exec(self):
        node = self.node()
        good, evil, target = node.bin / "good", node.bin / "evil", node.bin / "target"
        for path, program in ((good, "true"), (evil, "false"), (target, "true")):
            write_program(path, pathlib.Path(shutil.which(program)).read_bytes())
        argv = node.allow([target], sha256=hashlib.sha256(good.read_bytes()).hexdigest())
        connection = self.connect(node.start())
        over = threading.Event()

        def swap():
            number = 0
            while not over.is_set():
                number += 1
                os.link(good if number % 2 else evil, node.bin / "next")
                os.rename(node.bin / "next", target)
        swapper = threading.Thread(target=swap)
        swapper.start()
        try:
            ends = {(end.code, end.denial) for end in (connection.run(argv).exit for _ in range(300))}
        finally:
            over.set()
            swapper.join()
        self.assertEqual(ends, {(0, None), (None, "spawn_failed")})  # both, or nothing was raced; never a code of 1

    def test_attack_4_a_symlink_that_is_turned_elsewhere_does_not_change_what_a_pin_allows(self):
        node = self.node()
        link, target = node.bin / "link", node.bin / "target"
        write_program(target, pathlib.Path(shutil.which("true")).read_bytes())
        link.symlink_to(target)
        argv = node.allow([link], sha256=hashlib.sha256(target.read_bytes()).hexdigest())
        connection = self.connect(node.start())
        self.assert_ok(connection.request(argv))
        link.unlink()
        link.symlink_to(shutil.which("false"))
        self.assert_denied(connection.request(argv), "spawn_failed")

    def test_attack_5_what_is_not_an_int(self):
        _, connection = self.started(["echo", "<INT>"])
        for token in ("1", "9", "10", "42", "12345", "999999"):
            self.assert_ok(connection.request(["echo", token]), token.encode() + b"\n")
        self.assert_all_denied(connection, [["echo", token] for token in (
            "0", "00", "01", "+1", "-1", "1000000", "9999999", "1e5", "1.0", "0x10", "1_000", "1,000", " 1", "1 ",
            "1\t", "1\r", "",
            "１", "١", "1\u200b", "\ufeff1", "²", "Ⅷ", "INT", "int")])
        self.assert_all_denied(connection, [["echo", token] for token in ("1\n", "1\0", "\x001", "5`a", "1;", "<INT>")],
                               "shell_metachar_in_argv")

    def test_attack_6_what_is_not_a_url_path(self):
        _, connection = self.started(["echo", "<URL_PATH>"], ["echo", "-s", "http://h:1<URL_PATH>"])
        good = ("/", "/health", "/foo/bar", "/a.b/c_d-e", "/.", "/./", "//evil", "/" + "a" * 256, "/-rf", "/.a./.b")
        for path in good:
            self.assert_ok(connection.request(["echo", path]), path.encode() + b"\n")
            self.assert_ok(connection.request(["echo", "-s", "http://h:1" + path]),
                           b"-s http://h:1" + path.encode() + b"\n")
        bad = ("", "health", "/..", "/a..b", "/../x", "/x/..", "/...", "/foo bar", "/%2e%2e", "/a?b", "/a#b", "/a:b",
               "/a@b", "/a\\b",
               "/a\r", "/é", "/\u200b", "/" + "a" * 257, "/" + "a" * 258, "/a*", "/~", "/a=b", "/a+b", "/\x7f", "/\x1b")
        self.assert_all_denied(connection, [["echo", path] for path in bad])
        self.assert_all_denied(connection, [["echo", "-s", "http://h:1" + path] for path in bad])
        self.assert_all_denied(connection, [["echo", "-s", url] for url in (
            "http://h:10/x", "http://h:1.evil/", "http://h:1@evil/", "http://h:/x", "https://h:1/x", "HTTP://h:1/x",
            " http://h:1/x")])
        shell = ("/a\n", "/a\0", "/foo;ls", "/a&b", "/a|b", "/<x", "/$x", "/`")
        self.assert_all_denied(connection, [["echo", path] for path in shell], "shell_metachar_in_argv")

    def test_attack_7_characters_that_cannot_be_seen_are_compared_as_bytes_and_escaped_in_the_log(self):
        node, connection = self.started(["echo", "admin"], ["echo", "caf\u00e9"])
        tricks = ("adm\u200bin", "\u202eadmin", "admin\u200d", "\u2066admin", "\ufeffadmin", "\u0430dmin", "cafe\u0301",
                  "admin\x7f",
                  "admin\x1b[2K", "admin\u2028", "\x9badmin")
        self.assert_all_denied(connection, [["echo", trick] for trick in tricks])
        self.assert_ok(connection.request(["echo", "caf\u00e9"]), "caf\u00e9\n".encode())
        denied = [r["argv"][1] for r in node.audit()
                  if r["event"] == "denial"]  # audit() refuses a line that is not printable
        self.assertEqual(denied, list(tricks))


class Surroundings(Case):
    def test_attack_8_nothing_of_the_daemons_environment_reaches_a_command(self):
        node = self.node(["env"], ["/bin/sh", "-c", "env"])
        names = ("LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT IFS BASH_ENV ENV PYTHONPATH PYTHONSTARTUP PERL5OPT PERL5LIB "
                 "NODE_OPTIONS RUBYOPT GCONV_PATH LOCPATH GIT_DIR GIT_SSH_COMMAND GIT_EXEC_PATH EDITOR PAGER SHELLOPTS "
                 "BASHOPTS PS4 BASH_FUNC_x%% BASH_FUNC_env%% http_proxy TMPDIR XDG_CONFIG_HOME "
                 "SSH_AUTH_SOCK CDPATH GLOBIGNORE").split()
        node.env = {name: "() { echo evil; }" if "FUNC" in name else f"/x0x/evil/{name}" for name in names}
        connection = self.connect(node.start())
        plain = {f"HOME={node.directory}", "LANG=C.UTF-8", "LC_ALL=C.UTF-8",
                 "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        self.assertEqual(set(connection.run(["env"]).stdout.decode().splitlines()), plain)
        shell = connection.run(["/bin/sh", "-c", "env"])
        own = {f"PWD={node.work}", "_=/usr/bin/env", "SHLVL=0", "OLDPWD"}
        self.assertEqual(set(shell.stdout.decode().splitlines()) - own, plain)
        self.assertEqual(shell.stderr, b"")

    def test_attack_9_nothing_of_the_daemons_own_state_reaches_a_command(self):
        node = self.node(["cat", "/proc/self/status"], ["ls", "/proc/self/fd"], ["cat", "/proc/self/stat"])
        opens = node.allow_script("(exec 9<>/dev/tty) 2>/dev/null && echo a terminal || echo none")
        fails = node.allow_script("exit 9")
        node.wrapper = [PYTHON, "-c", HOSTILE_PARENT]
        connection = self.connect(node.start())
        status = connection.run(["cat", "/proc/self/status"]).stdout.decode()
        status = dict(line.split(":\t", 1) for line in status.splitlines())
        self.assertEqual([int(status[key], 16) for key in ("SigBlk", "SigIgn", "SigCgt", "SigPnd", "ShdPnd")], [0] * 5)
        self.assertEqual((status["Umask"].strip(), status["NoNewPrivs"].strip()), ("0027", "1"))
        self.assertEqual(connection.run(["ls", "/proc/self/fd"]).stdout.split(), [b"0", b"1", b"2", b"3"])
        self.assertEqual(connection.run(["cat", "/proc/self/stat"]).stdout.split()[6], b"0")
        self.assert_ok(connection.request(opens), b"none\n")
        self.assertEqual(connection.run(fails).exit.code, 9)  # an ignored SIGCHLD does not lose it
        if AM_ROOT:  # others may not look at the daemon's descriptors
            held = {os.readlink(file) for file in pathlib.Path(f"/proc/{node.process.pid}/fd").iterdir()}
            self.assertFalse({"/etc/passwd", "/dev/ptmx", "/dev/pts/ptmx"} & held, held)  # nor does the daemon keep any

    def test_attack_9_a_daemon_without_standard_descriptors_gives_its_commands_good_ones(self):
        node = self.node(["ls", "/proc/self/fd"], ["cat"])
        node.wrapper = [PYTHON, "-c", "import os, sys\nos.closerange(0, 3)\nos.execv(sys.argv[1], sys.argv[1:])"]
        connection = self.connect(node.start())
        self.assertEqual(connection.run(["ls", "/proc/self/fd"]).stdout.split(), [b"0", b"1", b"2", b"3"])
        self.assert_ok(connection.request(["cat"], stdin=b"in"), b"in")


class Processes(Case):
    """The grandchild that keeps stdout open, the double fork and deaf ears are in ends_test.py."""

    @slow
    def test_attack_10_processes_that_run_away_faster_than_they_can_be_listed(self):
        node = self.node()
        argv = node.allow_python(RUNAWAY)
        connection = self.connect(node.start())
        session = connection.request(argv)
        session.wait_output(b"up")
        session.cancel()
        self.assertEqual(session.wait().signal, signal.SIGKILL)
        self.assertEqual(node.processes(but_enforcer=True), [])

    @slow
    def test_attack_10_a_fork_bomb(self):
        node = self.node(["true"])
        argv = node.allow_python(BOMB, limits={"processes": 400})
        connection = self.connect(node.start())
        session = connection.request(argv)
        session.wait_output(b".")
        self.assert_ok(connection.request(["true"]))
        session.cancel()
        self.assertEqual(session.wait().signal, signal.SIGKILL)
        self.assertEqual(node.processes(but_enforcer=True), [])
        self.assert_ok(connection.request(["true"]))

    def test_attack_11_300_megabytes_under_a_cap_of_a_kibibyte(self):
        node = self.node(["true"])
        node.exec.update(max_stdout_bytes=1024, max_stderr_bytes=1024, warn_stdout_bytes=0, warn_stderr_bytes=0)
        argv = node.allow(["head", "-c", "300000000", "/dev/zero"])
        connection = self.connect(node.start())
        connection.run(["true"])
        before = node.memory()
        session = connection.request(argv)
        most = 0
        while session.exit is None:
            most = max(most, node.memory())
            connection.sleep(0.05)
        self.assertEqual((session.exit.code, session.exit.stdout_bytes, len(session.stdout)), (0, 300000000, 1024))
        self.assertGreater(most, 0)
        self.assertLess(max(most, node.memory()) - before, 4 << 20)


if __name__ == "__main__":
    main()
