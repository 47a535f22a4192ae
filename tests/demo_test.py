"""The demo runs and leaves nothing behind, and the README shows its real output. demo_test.py SOURCE_ROOT BUILD_ROOT"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT, BUILD = pathlib.Path(sys.argv[1]), sys.argv[2]


def shape(line):
    """Ids are shortened in the README."""
    return re.sub(r"\b(abab|cdcd)[0-9a-f]{60}\b", r"\1…", line)


class Demo(unittest.TestCase):
    def test_it_runs_as_told_and_leaves_nothing_behind(self):
        with tempfile.TemporaryDirectory() as scratch:
            ran = subprocess.run(["bash", ROOT / "tests/demo.sh", BUILD], env={**os.environ, "TMPDIR": scratch}, timeout=110,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.assertEqual(ran.returncode, 0, ran.stdout)
            self.assertEqual(os.listdir(scratch), [])
        said = [shape(line) for line in ran.stdout.splitlines()]
        shown = [line for block in re.findall(r"^```\n(\$.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
                 for line in block.splitlines()]
        self.assertGreater(len(shown), 15)
        for line in shown:
            self.assertIn(line, said)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
