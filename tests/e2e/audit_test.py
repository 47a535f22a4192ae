"""The audit log of a running enforcer: full disks, files that change under it, crashes, rotation, hostile argv, and whether
every line is what schema/audit.schema.json says. That the chain holds is asked of `x0x-policyc audit verify`."""

import collections
import datetime
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import threading
import unittest
import uuid

import jsonschema

import wire
from harness import AGENT, AM_ROOT, MACHINE, POLICYC, ROOT, Case, main, read_audit, run, slow, wait_until

SCHEMA = json.loads((ROOT / "schema/audit.schema.json").read_text())
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)
WAIT = "while [ ! -e $HOME/desk/go ]; do sleep 0.02; done"


def verify(*logs, options=()):
    done = run(POLICYC, "audit", "verify", *logs, "--format", "json", *options)
    return done.returncode, json.loads(done.stdout)


def names(records):
    return [record["event"] for record in records]


class AuditCase(Case):
    def assert_intact(self, *logs):
        status, found = verify(*logs)
        self.assertEqual((status, found["breaks"]), (0, []))
        return found

    def assert_schema(self, log):
        for line in pathlib.Path(log).read_bytes().splitlines():
            if not line.endswith(b"~"):
                VALIDATOR.validate(json.loads(line))

    def assert_degraded(self, connection, degraded=True):
        wait_until(lambda: connection.diagnostics()["audit_degraded"] == degraded)


class Degraded(AuditCase):
    """While nothing can be written nothing new runs; afterwards nothing is missing."""

    def test_denied_while_full_then_recovered_with_nothing_lost(self):
        node, connection = self.started(["echo", "<INT>"])
        self.assert_ok(connection.run(["echo", "1"]))
        node.limit_file_size(node.log.stat().st_size + 30)  # a part of a record still fits
        first = connection.run(["echo", "2"])
        self.assert_denied(first, "exec_disabled")
        self.assert_degraded(connection)
        for _ in range(5):
            self.assert_denied(connection.run(["echo", "3"]), "exec_disabled")
        self.assert_denied(connection.run(["rm"]), "argv_not_allowed")
        self.assertGreater(connection.diagnostics()["totals"]["audit_write_failures"], 0)
        self.assertEqual(node.audit_of(first), [])

        node.limit_file_size(None)
        recovered = node.wait_for_audit("audit_recovered")
        self.assertEqual(recovered["unrecorded"], 6)
        self.assertEqual(names(node.audit_of(first)), ["request", "denial"])
        self.assert_degraded(connection, False)
        self.assert_ok(connection.run(["echo", "4"]))
        node.stop()
        self.assert_intact(node.log)
        self.assert_schema(node.log)
        self.assertNotIn(b"~", node.log.read_bytes())  # the record that was cut off was finished, not repeated

    def test_an_exit_waits_for_its_record(self):
        node = self.node()
        argv = node.allow_script(WAIT)
        node.start()
        connection = self.connect(node)
        session = connection.request(argv)
        session.wait_started()
        node.limit_file_size(node.log.stat().st_size)
        (node.work / "go").touch()
        wait_until(lambda: not node.processes(but_enforcer=True))
        self.assert_degraded(connection)
        connection.sleep(0.5)
        self.assertIsNone(session.exit, "told before it was on record")
        node.limit_file_size(None)
        self.assert_ok(session)
        self.assertEqual(names(node.audit_of(session)), ["request", "started", "exit"])

    def test_killed_while_degraded_leaves_a_log_that_verifies(self):
        node, connection = self.started(["echo", "<INT>"])
        node.limit_file_size(node.log.stat().st_size + 100)
        self.assert_denied(connection.run(["echo", "1"]), "exec_disabled")
        node.kill()
        torn = node.log.read_bytes().rsplit(b"\n", 1)[1]
        self.assertEqual(len(torn), 100)
        self.assertEqual(self.assert_intact(node.log)["unfinished_bytes"], 100)
        node.start(compile=False)
        self.assertEqual(node.audit()[-1]["torn_bytes"], 101)
        self.assertEqual(self.assert_intact(node.log)["torn_lines"], 1)


class Disk(AuditCase):
    """A file system of our own around the log; it needs a mount namespace, which an ordinary user has with a user namespace."""

    def mounted(self, options, argvs, prepare=":"):
        node = self.node(*argvs)
        disk = node.work / "disk"
        disk.mkdir()
        node.exec["audit_log_path"] = disk / "exec.log"
        unshare = ["unshare", "--mount"] + ([] if AM_ROOT else ["--map-root-user"])
        if subprocess.run([*unshare, "mount", "-t", "tmpfs", "none", disk], capture_output=True).returncode != 0:
            self.skipTest("no mount namespaces here")
        node.wrapper = [*unshare, "sh", "-c", f'd=$1; shift; mount -t tmpfs -o {options} none "$d" && {prepare} && exec "$@"',
                        "sh", disk]
        return node, disk

    def seen(self, node, disk):
        return pathlib.Path(f"/proc/{node.process.pid}/root{disk}")

    def test_disk_full(self):
        node, disk = self.mounted("size=64k", [["echo", "<INT>"]])
        node.start()
        connection = self.connect(node)
        self.assert_ok(connection.run(["echo", "1"]))
        inside = self.seen(node, disk)
        with open(inside / "filler", "wb", buffering=0) as filler, self.assertRaises(OSError):
            while True:
                filler.write(b"x" * 4096)
        asked = []
        while not connection.diagnostics()["audit_degraded"]:  # until what is left of the last page is full
            asked.append(connection.request(["echo", "7"]))
            wait_until(lambda: asked[-1].exit or connection.diagnostics()["audit_degraded"])
        self.assert_denied(connection.run(["echo", "8"]), "exec_disabled")
        os.unlink(inside / "filler")
        self.assert_degraded(connection, False)
        self.assert_ok(connection.run(["echo", "9"]))
        ran = [session for session in asked if session.wait().denial is None]
        records = read_audit([inside / "exec.log"])
        self.assertEqual(names(records).count("exit"), len(ran) + 2)
        self.assertEqual(names(records).count("request"), len(asked) + 2)
        self.assertEqual(names(records).count("audit_recovered"), 1)
        self.assert_intact(inside / "exec.log")

    def test_a_read_only_file_system_is_refused(self):
        node, disk = self.mounted("size=64k", [["echo", "<INT>"]], prepare='touch "$d/exec.log" && mount -o remount,bind,ro "$d"')
        node.compile()
        done = node.refuse()
        self.assertEqual(done.returncode, 1)
        self.assertIn("audit_not_writable", done.stderr)


class Files(AuditCase):
    """What is done to the file, before the start and under a running enforcer."""

    def refused(self, node, fault):
        node.compile()
        for more in ((), ("--check",)):
            done = node.refuse(*more)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"x0x-enforcer: {node.log}: {fault}: ", done.stderr)

    def test_a_symlinked_log_is_refused(self):
        node = self.node(["echo", "<INT>"])
        (node.directory / "exec.log.real").touch()
        node.log.symlink_to("exec.log.real")
        self.refused(node, "audit_not_writable")

    def test_a_directory_is_refused(self):
        node = self.node(["echo", "<INT>"])
        node.log.mkdir()
        self.refused(node, "audit_not_writable")

    @unittest.skipIf(AM_ROOT, "root may write to any file")
    def test_a_read_only_log_is_refused(self):
        node = self.node(["echo", "<INT>"])
        node.log.touch(0o400)
        self.refused(node, "audit_not_writable")

    def test_somebody_elses_file_is_not_continued(self):
        node = self.node(["echo", "<INT>"])
        node.log.write_text("a letter\n{}\n")
        node.compile()
        done = node.refuse()
        self.assertIn("audit_not_ours", done.stderr)
        self.assertEqual(node.log.read_text(), "a letter\n{}\n")

    def test_a_file_of_text_is_not_continued(self):
        node = self.node(["echo", "<INT>"])
        node.log.write_text("a letter\n")
        node.compile()
        try:
            done = node.refuse(timeout=5)
        except subprocess.TimeoutExpired:
            node.socket.unlink()
            self.fail("it has started")
        self.assertIn("audit_not_ours", done.stderr)

    def test_a_torn_last_line_is_closed_and_told_of(self):
        node, connection = self.started(["echo", "<INT>"])
        self.assert_ok(connection.run(["echo", "1"]))
        node.stop()
        before = node.log.read_bytes()
        for cut in (1, 2, 40, 150):  # the newline, the brace, and more
            node.log.write_bytes(before[:-cut])
            status, found = verify(node.log)
            self.assertEqual((status, found["unfinished_bytes"]), (0, len(before[:-cut]) - before[:-cut].rfind(b"\n") - 1))
            node.start(compile=False)
            node.stop()
            after = node.log.read_bytes()
            self.assertTrue(after.startswith(before[:-cut] + b"~\n"), "nothing is deleted")
            found = self.assert_intact(node.log)
            self.assertEqual(found["torn_lines"], 1)
            self.assert_schema(node.log)

    def replaced(self, put):
        node, connection = self.started(["echo", "<INT>"])
        self.assert_ok(connection.run(["echo", "1"]))
        moved = node.directory / "exec.log.moved"
        node.log.rename(moved)
        put(node.log)
        self.assert_ok(connection.run(["echo", "2"]))
        node.signal(signal.SIGHUP)
        wait_until(lambda: "going on in the old file" in node.read_errors())
        self.assert_ok(connection.run(["echo", "3"]))
        self.assertEqual(names(read_audit([moved])).count("exit"), 3)
        node.log.unlink()
        node.signal(signal.SIGHUP)
        wait_until(lambda: node.log.exists() and node.log.stat().st_size)
        self.assert_ok(connection.run(["echo", "4"]))
        node.stop()
        found = self.assert_intact(node.log, moved)
        self.assertEqual(found["files"], [str(moved), str(node.log)])
        return node.read_errors()

    def test_replaced_by_a_file_that_is_not_a_log(self):
        self.assertIn("does not end in a record of this program", self.replaced(lambda log: log.write_text("{}\n")))

    def test_replaced_by_a_symlink(self):
        self.assertIn("cannot be opened or written", self.replaced(lambda log: log.symlink_to("policy.x0xp")))

    def test_a_deleted_log_is_no_log(self):
        node, connection = self.started(["echo", "<INT>"])
        node.log.unlink()
        try:
            self.assert_denied(connection.run(["echo", "1"]), "exec_disabled")
        finally:
            node.signal(signal.SIGHUP)

    def test_rotation_under_load(self):
        node = self.node(["echo", "<INT>"])
        node.exec.update(max_concurrent_per_agent=20, max_concurrent_total=20)
        node.start()
        done, stop = collections.Counter(), threading.Event()

        def ask():
            with node.connect() as connection:
                while not stop.is_set():
                    done[connection.run(["echo", "1"]).exit.denial] += 1
        askers = [threading.Thread(target=ask) for _ in range(3)]
        for asker in askers:
            asker.start()
        try:
            files = []
            for number in range(5):
                enough = sum(done.values()) + 5
                wait_until(lambda: sum(done.values()) >= enough)
                files.append(node.directory / f"exec.log.{number}")
                node.log.rename(files[-1])
                node.signal(signal.SIGHUP)
                wait_until(node.log.exists)
        finally:
            stop.set()
            for asker in askers:
                asker.join()
        node.stop()
        files.append(node.log)
        shuffled = random.sample(files, len(files))
        found = self.assert_intact(*shuffled)
        self.assertEqual(found["files"], [str(file) for file in files])
        records = read_audit(files)
        self.assertEqual(names(records).count("exit"), done[None])
        self.assertEqual(names(records).count("log_reopened"), 5)
        status, found = verify(*files[:2], *files[3:])
        self.assertEqual((status, [b["kind"] for b in found["breaks"]]), (1, ["file_missing"]))


class Records(AuditCase):
    def test_a_description_of_any_length_has_its_record_and_the_chain_goes_on(self):
        node = self.node()
        node.entry(description="\x7f" * 5_000_000)  # six bytes each in the log, more than all records that may wait
        node.allow(["echo", "<INT>"])
        for _ in range(2):
            node.start()
            connection = self.connect(node)
            self.assert_ok(connection.run(["echo", "1"]))
            self.assertFalse(connection.diagnostics()["audit_degraded"])
            node.stop()
        self.assert_intact(node.log)
        said = [record["matched_acl"] for record in node.audit() if record["event"] == "request"]
        self.assertEqual([len(text) for text in said], [65536] * 2)

    def test_hostile_argv_is_one_printable_line_that_says_it_all(self):
        tokens = ["a\nb", "\r\n{\"seq\":0}", "\"quoted\\", "\x1b[2J\x1b]0;title\x07", "\u202eevil", "\u2028", "\x7f\x01", "é🦀"]
        node = self.node(["echo", "\x1b[31m\"red\"\\"])
        node.start()
        connection = self.connect(node)
        self.assert_ok(connection.run(["echo", "\x1b[31m\"red\"\\"]))
        for token in tokens:
            self.assertIsNotNone(connection.run(["echo", token]).exit.denial)
        node.stop()
        for line in node.log.read_bytes().splitlines():
            self.assertTrue(all(0x20 <= byte < 0x7f for byte in line), line)
        asked = [record["argv"][1] for record in node.audit() if record["event"] in ("request", "denial")]
        self.assertEqual(asked, ["\x1b[31m\"red\"\\", *tokens])
        self.assert_intact(node.log)
        self.assert_schema(node.log)

    def test_a_hashed_argv_is_nowhere_in_the_log(self):
        node = self.node()
        node.allow(["echo", "hunter2"], audit="hash")
        node.start()
        connection = self.connect(node)
        session = connection.run(["echo", "hunter2"])
        self.assert_ok(session, b"hunter2\n")
        node.stop()
        record = node.audit_of(session)[0]
        self.assertNotIn("argv", record)
        self.assertEqual(record["argv_blake2b"], hashlib.blake2b(b"echo\0hunter2\0", digest_size=32).hexdigest())
        self.assertNotIn(b"hunter2", node.log.read_bytes())
        self.assert_schema(node.log)

    @unittest.skipIf(shutil.which("strace") is None, "strace is not installed")
    def test_one_fdatasync_serves_many_records(self):
        node = self.node(["echo", "<INT>"])
        trace = node.work / "trace"
        node.wrapper = ["strace", "-D", "-o", trace, "-e", "trace=fdatasync", "-e", "signal=none"]
        node.env["ASAN_OPTIONS"] = "detect_leaks=0"  # leaks cannot be looked for while being traced
        try:
            node.start()
        except AssertionError as error:
            self.skipTest(f"nothing can be traced here: {error}")
        connection = self.connect(node)
        self.assert_ok(connection.run(["echo", "1"]))
        before = trace.read_text().count("fdatasync(")
        self.assertGreater(before, 0)
        messages = b""
        sessions = [connection.expect(wire.Address(AGENT, MACHINE, uuid.uuid4()))
                    for _ in range(40)]
        for session in sessions:
            messages += wire.exec_message(AGENT, MACHINE, wire.request_frame(session.address.request_id, ["rm"]))
        connection.send(messages)
        for session in sessions:
            self.assert_denied(session, "argv_not_allowed")
        self.assertEqual(names(node.audit()).count("denial"), 40)
        self.assertLess(trace.read_text().count("fdatasync(") - before, 10)

    def test_replay_reads_a_real_log(self):
        node = self.node(["echo", "<INT>"], ["true"])
        node.start()
        connection = self.connect(node)
        for argv in (["echo", "1"], ["true"], ["rm"], ["echo", "x"], ["echo", "a;b"]):
            connection.run(argv)
        node.kill()
        with open(node.log, "ab") as log:
            log.write(b'{"seq":')
        node.start(compile=False)
        node.stop()
        done = run(POLICYC, "replay", node.policy_file, node.log)
        self.assertEqual(done.returncode, 0, done.stderr)
        again = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([line["decision"] for line in again], ["allow", "allow", "deny", "deny", "deny"])
        self.assertEqual(again[4]["reason"], "shell_metachar_in_argv")
        self.assertIn("2 allowed, 3 denied, 0 decided otherwise than logged", done.stderr)

    def test_verify_has_three_exit_statuses(self):
        node, connection = self.started(["echo", "<INT>"])
        self.assert_ok(connection.run(["echo", "1"]))
        node.stop()
        done = run(POLICYC, "audit", "verify", node.log)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        head = re.search(r"^  head +([0-9a-f]{64})$", done.stdout, re.M)[1]
        self.assertEqual(run(POLICYC, "audit", "verify", node.log, "--head", head, "--min-seq", "4").returncode, 0)
        self.assertEqual(run(POLICYC, "audit", "verify", node.log, "--min-seq", "5").returncode, 1)
        node.log.write_bytes(node.log.read_bytes().replace(b'"echo","1"', b'"echo","2"'))
        done = run(POLICYC, "audit", "verify", node.log)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn(f"{node.log}:2: line_changed: ", done.stderr)
        for arguments in (["verify"], [], ["verify", node.log, "--head", "12"], ["verify", node.directory / "none"]):
            self.assertEqual(run(POLICYC, "audit", *arguments).returncode, 2, arguments)

    @slow
    def test_every_event_there_is_looks_as_the_schema_says(self):
        node = self.node(["echo", "<INT>"])
        big = node.allow(["head", "-c", "<INT>", "/dev/zero"], max_stdout_bytes=1000)
        node.allow(["/no/such/program"])
        node.allow(["false"], audit="hash")
        node.allow(["sleep", "<INT>"])
        node.start()
        connection = self.connect(node)
        connection.run([*big[:2], "5000", big[3]])
        connection.run(["/no/such/program"])
        connection.run(["false"])
        connection.run(["rm", "x" * 70000])
        connection.run([])
        sleeper = connection.request(["sleep", "100"])
        sleeper.wait_started()
        sleeper.cancel()
        sleeper.wait()
        with node.connect() as garbler:
            garbler.send(wire.message(b"\x09"))
            garbler.wait_closed()
        node.limit_file_size(node.log.stat().st_size)
        connection.run(["rm"])
        node.limit_file_size(None)
        node.wait_for_audit("audit_recovered")
        node.signal(signal.SIGHUP)
        node.wait_for_audit("log_reopened")
        node.stop()
        node.policy.update(version=2, expires=datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=8))
        node.start()
        connection = self.connect(node)
        wait_until(lambda: not connection.diagnostics()["enabled"])
        node.wait_for_audit("policy_expired")
        node.stop()
        self.assert_schema(node.log)
        self.assert_intact(node.log)
        written = set(names(node.audit()))
        self.assertEqual(written, {event["properties"]["event"]["const"] for event in SCHEMA["oneOf"]})

    def test_the_schema_is_strict(self):
        node, connection = self.started(["echo", "<INT>"])
        self.assert_ok(connection.run(["echo", "1"]))
        self.assert_denied(connection.run(["rm"]), "argv_not_allowed")
        node.stop()
        for record in node.audit():
            VALIDATOR.validate(record)
            for key in record:
                if key != "argv":
                    self.assertFalse(VALIDATOR.is_valid({k: v for k, v in record.items() if k != key}), (record, key))
            self.assertFalse(VALIDATOR.is_valid({**record, "more": 1}))
            self.assertFalse(VALIDATOR.is_valid({**record, "event": "unheard_of"}))

    def test_the_schema_knows_the_words_of_the_wire(self):
        events = {event["title"]: event["properties"] for event in SCHEMA["oneOf"]}
        self.assertEqual(events["warning"]["kind"]["enum"], wire.WARNINGS)
        self.assertEqual(events["denial"]["reason"]["enum"], wire.DENIALS)

    def test_the_document_names_every_field_event_and_break(self):
        text = (ROOT / "docs/audit.md").read_text()
        words = {field for event in SCHEMA["oneOf"] for field in event["properties"]}
        words |= {event["title"] for event in SCHEMA["oneOf"]}
        breaks = re.search(r"#define X0X_AUDIT_BREAKS.*?\n\n", (ROOT / "policyc/audit_chain.hpp").read_text(), re.S)[0]
        words |= set(re.findall(r"B\((\w+)\)", breaks))
        self.assertGreater(len(words), 40)
        self.assertEqual({word for word in words if f"`{word}`" not in text}, set())

    def test_every_line_shown_in_the_document_is_a_line(self):
        lines = re.findall(r'^\{"seq".*\}$', (ROOT / "docs/audit.md").read_text(), re.M)
        self.assertGreater(len(lines), 3)
        for line in lines:
            VALIDATOR.validate(json.loads(line))


if __name__ == "__main__":
    main()
