"""A decision does not cost more when the policy grows: instructions counted by callgrind. cost_test.py PROGRAM"""

import re
import subprocess
import sys
import tempfile

LIMIT = 1.5
FUNCTION = "x0x::decide(x0x::BlobView const&, x0x::Request const&, unsigned long)"
program = sys.argv[1]


def instructions(table):
    counted = subprocess.run(["valgrind", "--tool=callgrind", f"--toggle-collect={FUNCTION}", "--callgrind-out-file=/dev/null",
                              program, "run", table], capture_output=True, text=True, timeout=280)
    if counted.returncode != 0:
        sys.exit(f"{table}: exit status {counted.returncode}\n{counted.stderr}")
    decisions = int(re.search(r"(\d+) decisions", counted.stdout).group(1))
    return int(re.search(r"Collected : (\d+)", counted.stderr).group(1)) / decisions


with tempfile.TemporaryDirectory() as directory:
    subprocess.run([program, "make", directory], check=True, timeout=120)
    small = instructions(f"{directory}/small.x0xp")
    failed = small < 100  # a decision takes more than that: the counter did not count
    print(f"1 pair, 17 commands:            {small:8.1f} instructions a decision")
    for name, label in (("commands", "1 pair, 100,000 commands:"), ("pairs", "10,000 pairs, 10 commands each:")):
        count = instructions(f"{directory}/{name}.x0xp")
        failed |= count > small * LIMIT
        print(f"{label:31} {count:8.1f} instructions a decision, {count / small:.2f} times as many (at most {LIMIT})")
sys.exit(1 if failed else 0)
