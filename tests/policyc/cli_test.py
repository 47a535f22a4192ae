"""x0x-policyc as people use it: compile, decompile, inspect, explain, replay. cli_test.py PROGRAM SOURCE_ROOT"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
AGENT, MACHINE = "ab" * 32, "cd" * 32
POLICY = f"""
[policy]
name = "cli"
version = 5
expires = 2100-01-01T00:00:00Z

[exec]
enabled = true

[[exec.allow]]
description = "ops"
agent_id = "{AGENT}"
machine_id = "{MACHINE}"

[[exec.allow.commands]]
argv = ["uptime"]

[[exec.allow.commands]]
argv = ["kill", "<INT>"]
"""


def run(*arguments, stdin="", env=None):
    return subprocess.run([PROGRAM, *map(str, arguments)], input=stdin, capture_output=True, text=True, timeout=280,
                          env={**os.environ, **(env or {})})


class Cli(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.dir = pathlib.Path(directory.name)
        self.key, self.pub = self.dir / "k.key", self.dir / "k.pub"
        self.policy, self.table = self.dir / "p.toml", self.dir / "p.x0xp"
        self.policy.write_text(POLICY)
        self.assertEqual(run("keygen", "-p", self.pub, "-s", self.key, "--no-password").returncode, 0)

    def compile(self, *options, policy=None, out=None):
        return run("compile", policy or self.policy, "-o", out or self.table, "--key", self.key, *options)

    def explain(self, policy, *argv, options=()):
        return run("explain", policy, "--agent", AGENT, "--machine", MACHINE, *options, "--", *argv)

    def test_a_negative_version_is_not_the_highest_one(self):
        for version in ("-1", "0", "00", "0x7", "1e3", "+5", " 5", "", "9223372036854775808", "18446744073709551616"):
            refused = self.compile("--policy-version", version)
            self.assertEqual((refused.returncode, self.table.exists()), (2, False), version)
            self.assertIn("is not a whole number from 1 to 9223372036854775807", refused.stderr)
        self.assertEqual(self.explain(self.policy, "uptime", options=("--stdin-bytes", "-1")).returncode, 2)
        self.assertEqual(self.explain(self.policy, "uptime", options=("--timeout", "4294968")).returncode, 2)

    def test_what_cannot_be_asked_is_no_denial(self):
        self.assertEqual(self.compile().returncode, 0)
        table = bytearray(self.table.read_bytes())
        cut = self.dir / "cut.x0xp"
        cut.write_bytes(table[:300])
        table[20] |= 4
        damaged = self.dir / "damaged.x0xp"
        damaged.write_bytes(table)
        for policy, fault in ((cut, "bad_magic"), (damaged, "bad_flags"), ("/dev/zero", "larger than")):
            asked = self.explain(policy, "uptime")
            self.assertEqual(asked.returncode, 2, asked.stderr)
            self.assertIn(fault, asked.stderr)
        for command in ("inspect", "decompile"):
            self.assertEqual(run(command, damaged).returncode, 1)

    def test_an_answer_that_does_not_arrive_is_no_success(self):
        self.assertEqual(self.compile().returncode, 0)
        for arguments in (("inspect", self.table), ("decompile", self.table), ("verify", self.table, "--trust", self.pub),
                          ("check", "--format", "json", self.policy), ("replay", self.policy, self.log({"argv": ["uptime"]})),
                          ("explain", self.policy, "--agent", AGENT, "--machine", MACHINE, "--", "uptime"), ("--help",)):
            with open("/dev/full", "w") as full:
                done = subprocess.run([PROGRAM, *map(str, arguments)], stdout=full, stderr=subprocess.PIPE, text=True)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn("cannot write to standard output", done.stderr)

    def test_a_dash_is_not_taken_for_the_name_of_an_output(self):
        refused = self.compile(out="-")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("`-` is not the name of a file", refused.stderr)

    def log(self, *requests):
        path = self.dir / "log.jsonl"
        path.write_text("".join(json.dumps({"agent_id": AGENT, "machine_id": MACHINE, **r}) + "\n" for r in requests))
        return path

    def test_an_event_of_another_type_does_not_spoil_a_request(self):
        replayed = run("replay", self.policy, self.log({"argv": ["uptime"], "event": 5}))
        self.assertEqual((replayed.returncode, replayed.stdout.count("allow")), (0, 1), replayed.stderr)

    def test_a_line_without_end_is_not_kept(self):
        path = self.log({"argv": ["uptime"]}, {"argv": ["x" * (17 << 20)]}, {"argv": ["uptime"]})
        replayed = run("replay", self.policy, path)
        self.assertEqual((replayed.returncode, replayed.stdout.count("allow")), (1, 2))
        self.assertIn("line 2: too long", replayed.stderr)

    def test_a_file_name_cannot_play_with_the_terminal(self):
        odd = self.dir / "\x1b[31mx\n"
        pair = ("--agent", AGENT, "--machine", MACHINE)
        for done in (run("check", odd), run("explain", odd, *pair, "--", "uptime"), self.compile(out=odd / "x"),
                     self.compile(out=odd), run("check", "--format", odd), run("inspect", str(odd) + "x"),
                     run("keygen", "-p", odd, "-s", self.dir / "x", "--no-password")):
            self.assertNotIn("\x1b", done.stdout + done.stderr)
            self.assertIn("\\u{1b}[31mx\\u{a}", done.stdout + done.stderr)

    def test_a_table_that_no_policy_file_can_say_is_not_decompiled(self):
        self.assertEqual(self.compile().returncode, 0)
        table = bytearray(self.table.read_bytes())
        table[48:56] = b"\xff" * 8  # max_stdout_bytes
        self.table.write_bytes(table)
        self.assertEqual(self.explain(self.table, "uptime").returncode, 0)
        refused = run("decompile", self.table)
        self.assertEqual((refused.returncode, refused.stdout), (1, ""))
        self.assertIn("no policy file says the same as this table: this number is too large", refused.stderr)

    def test_a_policy_that_crowds_the_index_does_not_hide_the_problems_of_the_next(self):
        policies = ROOT / "corpus/policies"
        checked = run("check", "--format", "json", policies / "fail_crowded_index.toml", policies / "fail_empty_argv.toml")
        self.assertEqual(checked.returncode, 1)
        self.assertEqual([d["code"] for d in json.loads(checked.stdout)["diagnostics"]], ["E062", "E017"])

    def test_the_same_policy_gives_the_same_bytes(self):
        self.assertEqual(self.compile().returncode, 0)
        first = self.table.read_bytes()
        self.assertEqual(self.compile().returncode, 0)
        self.assertEqual(self.table.read_bytes(), first)
        self.assertEqual([p.name for p in self.dir.iterdir() if p.name.startswith("p.x0xp")], ["p.x0xp"])

    def test_decompile_then_compile_gives_the_same_payload(self):
        for sample in sorted((ROOT / "corpus/policies").glob("ok_*.toml")):
            with self.subTest(sample.name):
                options = []
                text = sample.read_text()
                if "\nversion" not in text:
                    options += ["--policy-version", "1"]
                if "\nexpires" not in text:
                    options += ["--no-expiry"]
                out = self.dir / (sample.stem + ".x0xp")
                made = self.compile(*options, policy=sample, out=out)
                self.assertEqual(made.returncode, 0, made.stderr)
                again = self.dir / (sample.stem + ".toml")
                self.assertEqual(run("decompile", out, "-o", again).returncode, 0)
                back = self.dir / (sample.stem + "_again.x0xp")
                expiry = [] if "\nexpires" in text else ["--no-expiry"]
                made = self.compile(*expiry, policy=again, out=back)
                self.assertEqual(made.returncode, 0, made.stderr)
                self.assertEqual(back.read_bytes(), out.read_bytes())

    def test_golden_dumps_of_the_samples(self):
        for sample in sorted((ROOT / "corpus/policies").glob("ok_*.toml")):
            with self.subTest(sample.name):
                text = sample.read_text()
                options = ([] if "\nversion" in text else ["--policy-version", "1"]) + \
                          ([] if "\nexpires" in text else ["--no-expiry"])
                out = self.dir / "t.x0xp"
                out.unlink(missing_ok=True)
                self.assertEqual(self.compile(*options, policy=sample, out=out).returncode, 0)
                dump = run("inspect", out).stdout
                dump = "\n".join(line for line in dump.split("\n") if not line.startswith("signature by"))
                golden = ROOT / "corpus/golden" / (sample.stem + ".dump")
                if os.environ.get("X0X_UPDATE_GOLDEN"):
                    golden.parent.mkdir(exist_ok=True)
                    golden.write_text(dump)
                self.assertEqual(dump, golden.read_text())

    def test_a_table_of_a_higher_version_is_not_overwritten(self):
        self.assertEqual(self.compile().returncode, 0)
        before = self.table.read_bytes()
        self.policy.write_text(POLICY.replace("version = 5", "version = 4"))
        refused = self.compile()
        self.assertEqual(refused.returncode, 1)
        self.assertIn("version 5", refused.stderr)
        self.assertEqual(self.table.read_bytes(), before)
        self.assertEqual(self.compile("--force").returncode, 0)
        self.assertNotEqual(self.table.read_bytes(), before)

    def test_the_same_version_with_other_content_is_pointed_out(self):
        self.assertEqual(self.compile().returncode, 0)
        self.policy.write_text(POLICY.replace("uptime", "whoami"))
        made = self.compile()
        self.assertEqual(made.returncode, 0)
        self.assertIn("other content", made.stderr)

    def test_a_file_that_is_no_table_is_not_overwritten(self):
        refused = self.compile(out=self.policy)
        self.assertEqual(refused.returncode, 1)
        self.assertEqual(self.policy.read_text(), POLICY)

    def test_version_and_expiry_must_be_said(self):
        self.policy.write_text(POLICY.replace("version = 5\n", ""))
        self.assertIn("--policy-version", self.compile().stderr)
        self.assertEqual(self.compile("--policy-version", "9").returncode, 0)
        self.policy.write_text(POLICY.replace("expires = 2100-01-01T00:00:00Z\n", ""))
        refused = self.compile("--force")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--no-expiry", refused.stderr)
        self.assertEqual(self.compile("--force", "--no-expiry").returncode, 0)
        self.assertEqual(self.compile("--force", "--expires-in", "soon").returncode, 2)

    def test_expires_in_counts_from_source_date_epoch(self):
        self.policy.write_text(POLICY.replace("expires = 2100-01-01T00:00:00Z\n", ""))
        made = run("compile", self.policy, "-o", self.table, "--key", self.key, "--expires-in", "1d",
                   env={"SOURCE_DATE_EPOCH": "4000000000"})
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertEqual(json.loads(run("inspect", self.table, "--format", "json").stdout)["policy"]["expires"],
                         "2096-10-03T07:06:40Z")

    def test_no_expiry_does_not_drop_an_expiry(self):
        self.assertEqual(self.compile("--no-expiry").returncode, 2)

    def test_a_failed_example_fails_the_compile_at_its_place(self):
        self.policy.write_text(POLICY + 'deny = [["kill", "7"]]\n')
        failed = self.compile()
        self.assertEqual(failed.returncode, 1)
        self.assertIn("p.toml:20:9: error[E060]", failed.stderr)
        self.assertFalse(self.table.exists())
        self.assertEqual(run("check", self.policy).returncode, 1)

    def test_strict_fails_on_warnings(self):
        self.policy.write_text(POLICY + '\n[[exec.allow.commands]]\nargv = ["uptime"]\n')
        self.assertEqual(self.compile().returncode, 0)
        self.assertEqual(self.compile("--strict").returncode, 1)

    def test_output_problems_are_one_line_and_status_2(self):
        for out in (self.dir / "missing" / "t.x0xp", self.dir):
            refused = self.compile(out=out)
            self.assertEqual(refused.returncode, 2)
            self.assertEqual(refused.stderr.count("\n"), 1, refused.stderr)
        self.assertEqual(run("compile", self.dir / "none.toml", "-o", self.table, "--key", self.key).returncode, 2)

    def test_explain_says_the_same_of_source_and_table(self):
        self.assertEqual(self.compile().returncode, 0)
        for argv, status in ((["uptime"], 0), (["kill", "7"], 0), (["kill", "0"], 1), (["rm"], 1), (["kill", "7;"], 1)):
            answers = []
            for policy in (self.policy, self.table):
                answer = self.explain(policy, *argv, options=["--format", "json"])
                self.assertEqual(answer.returncode, status)
                document = json.loads(answer.stdout)
                for part in ("rule", "nearest"):
                    if document[part]:
                        self.assertEqual(document[part].pop("line") is None, policy == self.table)
                answers.append(document)
            self.assertEqual(answers[0], answers[1])

    def test_explain_at_a_time_outside_the_window(self):
        late = self.explain(self.policy, "uptime", options=["--at", "2100-01-01T00:00:00Z", "--format", "json"])
        self.assertEqual(json.loads(late.stdout)["reason"], "exec_disabled")
        self.assertEqual(late.returncode, 1)

    def test_explain_refuses_bad_ids_and_broken_policies(self):
        self.assertEqual(run("explain", self.policy, "--agent", "xyz", "--machine", MACHINE, "--", "ls").returncode, 2)
        self.policy.write_text("[exec\n")
        broken = self.explain(self.policy, "uptime")
        self.assertEqual(broken.returncode, 2)
        self.assertIn("error[E003]", broken.stderr)

    def test_explain_reads_a_pipe(self):
        shown = subprocess.run(["bash", "-c", f'"{PROGRAM}" explain <(cat "{self.policy}") --agent {AGENT} --machine {MACHINE} -- uptime'],
                               capture_output=True, text=True, timeout=60)
        self.assertEqual(shown.returncode, 0, shown.stderr)

    def test_inspect_and_decompile_refuse_what_is_no_table(self):
        for command in ("inspect", "decompile"):
            refused = run(command, self.policy)
            self.assertEqual(refused.returncode, 1)
            self.assertIn("bad_magic", refused.stderr)

    def test_replay_decides_every_request_of_a_log(self):
        lines = [{"event": "request", "agent_id": AGENT, "machine_id": MACHINE, "argv": ["uptime"]},
                 {"event": "started", "request_id": "x", "pid": 1},
                 {"event": "request", "agent_id": AGENT, "machine_id": MACHINE, "argv": ["kill", "0"]},
                 {"event": "denial", "agent_id": AGENT.upper(), "machine_id": MACHINE, "argv": ["kill", "3"], "reason": "argv_not_allowed"}]
        log = "\n".join(map(json.dumps, lines)) + "\n"
        answer = run("replay", self.policy, "-", stdin=log)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        decided = [json.loads(line) for line in answer.stdout.splitlines()]
        self.assertEqual([(d["log_line"], d["decision"], d["reason"]) for d in decided],
                         [(1, "allow", None), (3, "deny", "argv_not_allowed"), (4, "allow", None)])
        self.assertIn("2 decided otherwise than logged", answer.stderr)
        self.assertEqual(set(decided[0]), {"log_line", "decision", "reason", "rule", "matched_acl", "max_duration_secs"})

    def test_replay_names_malformed_lines_and_goes_on(self):
        good = json.dumps({"agent_id": AGENT, "machine_id": MACHINE, "argv": ["uptime"]})
        bad = ["{", '{"agent_id":"x","machine_id":"y","argv":[]}', "[]",
               json.dumps({"agent_id": AGENT, "machine_id": MACHINE, "argv": [1]})]
        answer = run("replay", self.policy, "-", stdin="\n".join(bad + [good]) + "\n")
        self.assertEqual(answer.returncode, 1)
        self.assertEqual(len(answer.stdout.splitlines()), 1)
        for number in range(1, 5):
            self.assertIn(f"line {number}:", answer.stderr)

    def test_replay_of_a_hundred_thousand_lines(self):
        line = json.dumps({"agent_id": AGENT, "machine_id": MACHINE, "argv": ["kill", "12"]}) + "\n"
        answer = run("replay", self.policy, "-", stdin=line * 100_000)
        self.assertEqual(answer.returncode, 0)
        self.assertEqual(answer.stdout.count('"decision":"allow"'), 100_000)

    def test_usage_errors_are_status_2_and_help_is_0(self):
        self.assertEqual(run().returncode, 2)
        self.assertEqual(run("compil").returncode, 2)
        self.assertIn("did you mean `compile`?", run("compil").stderr)
        self.assertEqual(run("check").returncode, 2)
        self.assertIn("(see `x0x-policyc check --help`)", run("check").stderr)
        self.assertIn("xml not in {human,json,sarif,github}", run("check", "--format", "xml", self.policy).stderr)
        for command in ("check", "compile", "keygen", "sign", "verify", "inspect", "decompile", "explain", "replay"):
            shown = run(command, "--help")
            self.assertEqual(shown.returncode, 0)
            self.assertIn("Example", shown.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
