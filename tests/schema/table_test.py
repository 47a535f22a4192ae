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


FIRST, LENGTH = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F


def words(data):
    return [int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data), 8)]


def hash_of(seed, data):
    h, padded = seed ^ len(data) * LENGTH % 2**64, data.ljust(16, b"\0")
    parts = [padded[at : at + 16] for at in range(0, len(padded) - 16, 16)] + [padded[-16:]]
    for v, w in map(words, parts):
        h = fold(v ^ FIRST, w ^ h)
    return h


def hash_of_pair(key):
    return fold((FIRST + sum(words(key[:32]))) % 2**64, (LENGTH + sum(words(key[32:]))) % 2**64)


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

    def pieces(self, pattern):
        return self.p.pieces[pattern.pieces : pattern.pieces + pattern.piece_bytes]

    def shape_of(self, number):
        return next(s for s in self.p.shapes if s.first_pattern <= number < s.first_pattern + s.pattern_count)

    def tokens(self, shape, pieces):
        """Each token's fixed bytes, and the template that goes on from there: [bytes, None or its piece_bytes]."""
        tokens, at = [[token, None] for token in pieces[:-1].split(b"\0")], 0
        for t in self.p.templates[shape.first_template :][: shape.template_count]:
            at -= t.after + 1
            tokens[at][1] = t.piece_bytes
            assert len(tokens[at][0]) == t.piece_bytes
        return tokens

    def argv(self, i):
        number, argv = self.p.rules[i].pattern, []
        for token, template in self.tokens(self.shape_of(number), self.pieces(self.p.patterns[number])):
            argv.append(token if template is None else token[:-1] + b"<URL_PATH>" if template else b"<INT>")
        return [token.decode() for token in argv]

    def hash_of_pattern(self, shape, pattern):
        runs = [b""]
        for token, template in self.tokens(shape, self.pieces(pattern)):
            runs[-1] += token if template is not None else token + b"\0"
            if template is not None:
                runs.append(b"")
        h = 0
        for run in reversed(runs):
            h = hash_of(h, run) if run else h
        return h

    def check_group(self, group, hashes, texts):
        """Sorted by tag, then by bytes, and each record says where one slot begins."""
        tags = [h >> 32 for h in hashes]
        assert [record.tag for record in group] == tags
        keys = list(zip(tags, texts))
        assert keys == sorted(set(keys))
        for i, record in enumerate(group):
            assert record.start == sum(tag * len(group) >> 32 < i for tag in tags)

    def check_index(self):
        keys = [pair.key for pair in self.p.pairs]
        self.check_group(self.p.pairs, map(hash_of_pair, keys), keys)
        for shape in self.p.shapes:
            group = self.p.patterns[shape.first_pattern :][: shape.pattern_count]
            self.check_group(group, [self.hash_of_pattern(shape, p) for p in group], map(self.pieces, group))
        for i, pattern in enumerate(self.p.patterns):
            assert pattern.rule == min(number for number, rule in enumerate(self.p.rules) if rule.pattern == i)


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
                self.assertEqual(table.next_text, len(table.p.texts))
                table.check_index()

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
            self.check_options(table, [p.rules[i] for i in rules], wanted["commands"])

    def check_options(self, table, rules, commands):
        for rule, command in zip(rules, commands):
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
