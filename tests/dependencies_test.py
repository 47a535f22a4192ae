"""The rooms depend on each other in one direction: schema <- enforcer <- everything else."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
MAY_INCLUDE = {
    "schema": set(),
    "enforcer": {"enforcer", "schema"},
    "policyc": {"policyc", "enforcer", "schema", "grammar"},
    "client": {"client", "enforcer", "schema"},
}
# The compiler and the client use the reader, the decider and the codecs, never what touches the operating system.
PRIVATE = {"server", "session", "spawn", "supervisor", "audit", "sandbox", "tree", "policy_file"}

failures = []
for room, allowed in MAY_INCLUDE.items():
    files = [*(ROOT / room).rglob("*.cpp"), *(ROOT / room).rglob("*.hpp")]
    if not files:
        failures.append(f"{room}/ holds no code")
    for file in files:
        for target in re.findall(r'^#include "([^"]+)"', file.read_text(), flags=re.M):
            other, name = target.split("/")[0], pathlib.Path(target).stem
            where = f"{file.relative_to(ROOT)} includes {target}"
            if "/" in target and other not in allowed:
                failures.append(where)
            if room in ("policyc", "client") and other == "enforcer" and name in PRIVATE:
                failures.append(where)
    if room == "schema":
        failures += [f"{f.relative_to(ROOT)} holds a function" for f in files if re.search(r"\)\s*(const\s*)?\{", f.read_text())]

print("\n".join(failures) or "every arrow points the right way")
sys.exit(1 if failures else 0)
