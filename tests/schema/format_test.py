"""docs/format.md, schema/blob_format.hpp and schema/x0xp.ksy say the same about every field."""

import pathlib
import re
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECTIONS = ("Header", "Pair", "Shape", "Template", "Pattern", "Entry", "Rule", "Options")  # headings, structs, Kaitai types
CPP_SIZE = {"char": 1, "std::uint8_t": 1, "std::uint32_t": 4, "std::uint64_t": 8, "TextRef": 8}
KSY_SIZE = {"u1": 1, "u4": 4, "u8": 8, "text": 8}
failures = []


def check(condition, message):
    if not condition:
        failures.append(message)


def struct_fields(name):
    """[(name, size)] of a struct of schema/blob_format.hpp, with its members' members."""
    fields = []
    body = re.search(rf"^struct {name} {{\n(.*?)^}};", header, re.M | re.S)[1]
    for kind, field, count in re.findall(r"^ +([\w:]+) (\w+)(?:\[(\w+)\])?(?: = \w+)?;", body, re.M):
        if kind == "Caps":
            fields += struct_fields(kind)
        else:
            fields.append((field, CPP_SIZE[kind] * int(constants.get(count[1:], count) if count else 1)))
    return fields


def document_fields(heading):
    """[(offset, size, name)] of the table under a heading of docs/format.md."""
    text = (ROOT / "docs/format.md").read_text()
    body = re.split(r"^#+ ", text.split(f"### {heading}\n", 1)[1], maxsplit=1, flags=re.M)[0]
    rows = re.findall(r"^\| (\d+) \| (\w+) \| \w+ \| (\w+) \|", body, flags=re.M)
    return [(int(offset), size, name) for offset, size, name in rows]


header = (ROOT / "schema/blob_format.hpp").read_text()
constants = dict(re.findall(r"constexpr [\w:]+ k(\w+) = (\w+);", header))
kaitai = yaml.safe_load((ROOT / "schema/x0xp.ksy").read_text())

for heading in SECTIONS:
    fields = document_fields(heading)
    check(len(fields) > 1, f"{heading}: no table in docs/format.md")
    end = 0
    for offset, size, name in fields:
        check(offset == end, f"{heading}.{name}: a gap or overlap at offset {offset}")
        end = offset + int(size)
    check(struct_fields(heading) == [(name, int(size)) for _, size, name in fields], f"{heading}: schema/blob_format.hpp differs")
    if heading == "Header":
        check(constants["HeaderBytes"] == str(end), f"kHeaderBytes is not {end}")
    described = []
    for field in kaitai["types"][heading.lower()]["seq"]:
        size = field.get("size") or (len(field["contents"]) if "contents" in field else KSY_SIZE[field["type"]])
        described.append((field["id"], int(size)))
    check(described == [(name, int(size)) for _, size, name in fields], f"{heading}: schema/x0xp.ksy differs")

text = (ROOT / "docs/format.md").read_text()
for name in ("HashFirst", "HashLength"):
    check(constants[name] in text, f"k{name} is not in docs/format.md")
for name in ("MaxShapes", "MaxProbes", "MaxArgc"):
    check(f" {constants[name]}" in text, f"k{name} is not in docs/format.md")
order = re.findall(r"^\| (\w+) \| (?:\d|\w+_bytes)", text.split("## The payload\n", 1)[1].split("###", 1)[0], flags=re.M)
check(order == [section["id"] for section in kaitai["types"]["payload"]["seq"]], "sections are in another order in schema/x0xp.ksy")
faults = set(re.findall(r"F\((\w+),", (ROOT / "schema/faults.hpp").read_text()))
for name in re.findall(r"\*([a-z_]+_[a-z_]+|truncated)\*", text):
    check(name in faults, f"docs/format.md names a fault that does not exist: {name}")

for failure in failures:
    print(failure)
print(f"{len(failures)} differences")
sys.exit(1 if failures else 0)
