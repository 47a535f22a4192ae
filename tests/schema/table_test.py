"""A reader made from schema/x0xp.ksy and docs/format.md alone finds in real tables what was compiled into them.

It shares no code with the compiler. The layout comes from the Kaitai description, which a small interpreter below
follows; the meaning, the order of texts and the index come from the document. table_test.py PROGRAM SOURCE_ROOT
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
from types import SimpleNamespace

import yaml

PROGRAM, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
KSY = yaml.safe_load((ROOT / "schema/x0xp.ksy").read_text())
POLICIES = sorted((ROOT / "corpus/policies").glob("ok_*.toml")) + sorted((ROOT / "corpus/policies").glob("warn_*.toml"))
NONE = 0xFFFFFFFF
NUMBERS = {"u1": 1, "u4": 4, "u8": 8}


class Stream:
    def __init__(self, data):
        self.data, self.at, self.size = data, 0, len(data)

    def take(self, size):
        assert self.at + size <= self.size, "the table ends too early"
        self.at += size
        return self.data[self.at - size : self.at]


def value(expression, scope):
    return expression if isinstance(expression, int) else eval(expression, {}, dict(vars(scope)))


def read_one(field, stream, scope):
    if "contents" in field:
        data = stream.take(len(field["contents"]))
        assert data == field["contents"].encode(), field["id"]
        return data
    kind = field.get("type")
    if kind in NUMBERS:
        return int.from_bytes(stream.take(NUMBERS[kind]), "little")
    if kind is None or kind == "str":
        return stream.take(value(field["size"], scope))
    return read_type(KSY["types"][kind], Stream(stream.take(value(field["size"], scope))) if "size" in field else stream)


def read_type(description, stream):
    scope = SimpleNamespace(_io=stream)
    for name, instance in description.get("instances", {}).items():
        if "value" in instance:
            setattr(scope, name, value(instance["value"], scope))
        else:
            setattr(scope, name, read_one(instance, Stream(stream.data[value(instance["pos"], scope) :]), scope))
    for field in description["seq"]:
        count = value(field["repeat-expr"], scope) if "repeat" in field else None
        parsed = [read_one(field, stream, scope) for _ in range(1 if count is None else count)]
        setattr(scope, field["id"], parsed[0] if count is None else parsed)
    return scope


def fold(a, b):
    return (a * b) % 2**64 ^ (a * b) >> 64


def hash_of(seed, data):
    number = lambda part: int.from_bytes(part, "little")
    h, left = seed ^ len(data) * 0xC2B2AE3D27D4EB4F % 2**64, data
    while len(left) > 16:
        h, left = fold(number(left[:8]) ^ 0x9E3779B97F4A7C15, number(left[8:16]) ^ h), left[16:]
    v = number(left[:8]) if len(data) >= 8 and len(left) > 8 else 0
    w = number(data[-8:]) if len(data) >= 8 else int.from_bytes(data, "big")
    return fold(v ^ 0x9E3779B97F4A7C15, w ^ h)


class Table:
    def __init__(self, data):
        self.file = read_type(KSY, Stream(data))
        self.p = self.file.payload
        assert self.p._io.at == self.p._io.size and self.file._io.at == len(data) - 16, "bytes are left over"
        self.next_text = 0

    def text(self, ref):
        """The next text of the fixed order."""
        if ref.offset == NONE:
            return None
        assert ref.offset == self.next_text
        self.next_text += ref.length + 1
        assert self.p.texts[self.next_text - 1] == 0
        return self.p.texts[ref.offset : ref.offset + ref.length]

    def texts(self, refs):
        return [self.text(ref) for ref in refs]

    def pieces(self, i):
        ends = [rule.pieces for rule in self.p.rules] + [len(self.p.pieces)]
        return self.p.pieces[ends[i] : ends[i + 1]]

    def templates(self, shape):
        return {t.token: t.piece_bytes for t in self.p.templates[shape.first_template :][: shape.template_count]}

    def argv(self, i):
        shape = self.p.shapes[self.p.rules[i].shape]
        tokens, templates = self.pieces(i)[:-1].split(b"\0"), self.templates(shape)
        assert len(tokens) == shape.argc and all(len(tokens[t]) == size for t, size in templates.items())
        for t, size in templates.items():
            tokens[t] = tokens[t][:-1] + b"<URL_PATH>" if size else b"<INT>"
        return [token.decode() for token in tokens]

    def rule_hash(self, i):
        number = self.p.rules[i].shape
        runs, templates = [b""], self.templates(self.p.shapes[number])
        for t, piece in enumerate(self.pieces(i)[:-1].split(b"\0")):
            runs[-1] += piece
            if t in templates:
                runs.append(b"")
            else:
                runs[-1] += b"\0"
        h = number
        for run in reversed(runs):
            h = hash_of(h, run) if run else h
        return h

    def slots(self):
        pairs, rules = self.p.pairs, self.p.rules
        size = 1
        while size < 2 * (len(pairs) + len(rules)):
            size *= 2
        slots, met = [(0, 0)] * size, set()
        for i in range(len(pairs) + len(rules)):
            if i >= len(pairs):
                key = rules[i - len(pairs)].shape, self.pieces(i - len(pairs))
                h = self.rule_hash(i - len(pairs))
            else:
                key, h = pairs[i].key, hash_of(0x243F6A8885A308D3, pairs[i].key)
            if key in met:
                continue
            met.add(key)
            home = h % size
            while slots[home] != (0, 0):
                home = (home + 1) % size
            slots[home] = h >> 32, i + 1
        return slots


class RealTables(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.dir = pathlib.Path(directory.name)
        self.run_program("keygen", "-p", self.dir / "k.pub", "-s", self.dir / "k.key", "--no-password")

    def run_program(self, *arguments):
        done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=250)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def compiled(self, policy):
        table = self.dir / (policy.stem + ".x0xp")
        expiry = [] if "\nexpires" in policy.read_text() else ["--no-expiry"]
        self.run_program("compile", policy, "-o", table, "--key", self.dir / "k.key", "--policy-version", 9, *expiry)
        return Table(table.read_bytes()), json.loads(self.run_program("inspect", table, "--format", "json"))

    def test_the_examples_of_the_hash(self):
        text = (ROOT / "docs/format.md").read_text()
        for word in ("ls", "systemctl"):
            self.assertIn(f'`hash(0, "{word}")` is `{hash_of(0, word.encode()):#x}`', text)

    def test_what_was_compiled_is_read(self):
        self.assertGreater(len(POLICIES), 10)
        for policy in POLICIES:
            with self.subTest(policy.name):
                table, said = self.compiled(policy)
                self.check_header(table, said)
                self.check_entries(table, said)
                self.check_options(table, said)
                self.assertEqual(table.next_text, len(table.p.texts))
                self.assertEqual([(s.tag, s.number) for s in table.p.slots], table.slots())

    def check_header(self, table, said):
        h = table.p.header
        decoded = lambda text: text if text is None else text.decode()
        self.assertEqual((h.format_version, h.policy_version, h.flags), (1, 9, int(said["exec"]["enabled"])))
        for name in ("max_stdout_bytes", "max_stderr_bytes", "max_stdin_bytes", "max_duration_secs", "warn_stdout_bytes",
                     "warn_stderr_bytes", "warn_duration_secs", "max_concurrent_per_agent", "max_concurrent_total"):
            self.assertEqual(getattr(h, name), said["exec"][name])
        self.assertEqual(decoded(table.text(h.name)), said["policy"].get("name"))
        for name in ("default_cwd", "audit_log_path", "audit_tasklist_id"):
            self.assertEqual(decoded(table.text(getattr(h, name))), said["exec"].get(name))
        audience = [decoded(name) for name in table.texts(table.p.items[: h.audience_count])]
        self.assertEqual(audience, sorted(said["policy"].get("audience", [])))

    def check_entries(self, table, said):
        p, entries = table.p, said["exec"].get("allow", [])
        self.assertEqual(len(p.entries), len(entries))
        for number, (entry, wanted) in enumerate(zip(p.entries, entries)):
            self.assertEqual(p.pairs[entry.pair].key.hex(), wanted["agent_id"] + wanted["machine_id"])
            self.assertEqual(entry.max_duration_secs, wanted.get("max_duration_secs", 0))
            description = table.text(entry.description)
            self.assertEqual(description and description.decode(), wanted.get("description"))
            rules = [i for i, rule in enumerate(p.rules) if rule.entry == number]
            self.assertEqual(rules[0], entry.first_rule)
            self.assertEqual([table.argv(i) for i in rules], [command["argv"] for command in wanted["commands"]])
        for shape in (p.shapes[rule.shape] for rule in p.rules):
            self.assertEqual(p.shapes[p.rules[shape.first_rule].shape], shape)

    def check_options(self, table, said):
        commands = [command for entry in said["exec"].get("allow", []) for command in entry["commands"]]
        for rule, command in zip(table.p.rules, commands):
            self.assertEqual(rule.options == NONE, list(command) == ["argv"])
            if rule.options == NONE:
                continue
            o, limits = table.p.options[rule.options], command.get("limits", {})
            flags = [command.get("stdin") is False, command.get("network") is False, command.get("audit") == "hash",
                     "sha256" in command, "writable" in command]
            self.assertEqual(o.flags, sum(1 << bit for bit, flag in enumerate(flags) if flag))
            self.assertEqual(o.sha256.hex(), command.get("sha256", "00" * 32))
            for name in ("exe", "reason", "cwd"):
                text = table.text(getattr(o, name))
                self.assertEqual(text and text.decode(), command.get(name))
            for name in ("max_duration_secs", "max_stdout_bytes", "max_stderr_bytes", "max_stdin_bytes"):
                self.assertEqual(getattr(o, name), command.get(name, 0))
            for name in ("cpu_secs", "memory_bytes", "file_bytes", "open_files", "processes"):
                self.assertEqual(getattr(o, "limit_" + name), limits.get(name, 0))
            counts = (o.env_count, o.writable_count, o.allow_count, o.deny_count)
            items = iter(table.texts(table.p.items[o.first_item :][: sum(counts)]))
            env, writable, allow, deny = ([next(items) for _ in range(count)] for count in counts)
            self.assertEqual([e.decode() for e in env], sorted(f"{k}={v}" for k, v in command.get("env", {}).items()))
            self.assertEqual([w.decode() for w in writable], sorted(command.get("writable", [])))
            for examples, name in ((allow, "allow"), (deny, "deny")):
                argvs = ["".join(token + "\0" for token in argv) for argv in command.get(name, [])]
                self.assertEqual([e.decode() for e in examples], sorted(argvs))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
