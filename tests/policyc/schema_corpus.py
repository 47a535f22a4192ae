"""Every ok_ policy of the corpus is valid under the JSON Schema, and the schema flags the mistakes an editor should."""

import datetime
import json
import pathlib
import sys
import tomllib

import jsonschema

# What the schema alone cannot see: TOML's own errors, how values relate, and what is only known after compiling.
BEYOND_THE_SCHEMA = {
    "E001", "E002", "E003", "E004", "E005", "E013", "E030", "E043", "E045", "E046", "E047", "E048", "E060", "E061", "E062",
}


def plain(value):
    """TOML as JSON would have it: date-times are strings."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    return value


def expected_codes(text):
    header = next(line for line in text.splitlines() if line.startswith("# expect: "))
    return [item.split()[0] for item in header.removeprefix("# expect: ").split(",")]


def main():
    schema = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    failures = []
    counts = {"accepted": 0, "flagged": 0}
    for path in sorted(pathlib.Path(sys.argv[2]).glob("*.toml")):
        text = path.read_bytes().decode("utf-8", errors="replace")
        codes = expected_codes(text)
        if path.name.startswith("fail_") and BEYOND_THE_SCHEMA & set(codes):
            continue
        errors = list(validator.iter_errors(plain(tomllib.loads(text.removeprefix("\ufeff")))))
        if path.name.startswith("fail_"):
            counts["flagged"] += 1
            if not errors:
                failures.append(f"{path.name}: the schema does not flag it")
        else:
            counts["accepted"] += 1
            failures += [f"{path.name}: {error.json_path}: {error.message}" for error in errors]
    print(counts)
    print("\n".join(failures))
    return 1 if failures or 0 in counts.values() else 0


sys.exit(main())
