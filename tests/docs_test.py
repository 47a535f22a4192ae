"""What the Markdown files refer to exists: docs_test.py SOURCE_ROOT

Links and their anchors, tests named by the threat model, faults and steps in the operator's guide."""

import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv[1])
PAGES = sorted(p for folder in (".", "docs", "corpus", "fuzz", "bench", "deploy") for p in (ROOT / folder).glob("*.md"))
REFERENCE = re.compile(r"`(tests/[^`]+)`: (.+?)(?: \|)?$", re.M)


def prose(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)


def anchor(heading):
    """As GitHub makes them."""
    return re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).replace(" ", "-")


def tests_in(path):
    text = path.read_text()
    if path.suffix == ".py":
        return set(re.findall(r"^ +def (test_\w+)", text, re.M))
    names = re.findall(r'TEST_CASE\(((?:\s*"(?:[^"\\]|\\.)*")+)', text)
    return {re.sub(r"\\(.)", r"\1", "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', name))) for name in names}


def names_in(table):
    """The names in the first column of a Markdown table."""
    return [name for row in re.findall(r"^\| (`.*?) \|", table, re.M) for name in re.findall(r"`(\w+)`", row)]


class Documents(unittest.TestCase):
    def test_relative_links_and_their_anchors_resolve(self):
        checked = 0
        for page in PAGES:
            for target in re.findall(r"\]\(([^)]+)\)", prose(page.read_text())):
                if "://" in target:
                    continue
                with self.subTest(f"{page.relative_to(ROOT)}: {target}"):
                    path, _, fragment = target.partition("#")
                    file = page.parent / path if path else page
                    self.assertTrue(file.exists())
                    if fragment:
                        headings = re.findall(r"^#+ (.*)$", prose(file.read_text()), re.M)
                        self.assertIn(fragment, map(anchor, headings))
                    checked += 1
        self.assertGreater(checked, 20)

    def test_tests_named_by_the_threat_model_exist(self):
        text = (ROOT / "docs/threat-model.md").read_text()
        references = REFERENCE.findall(text)
        self.assertEqual(len(references), text.count("`tests/") - text.count("`tests/docs_test.py`"))
        for file, name in references:
            with self.subTest(f"{file}: {name}"):
                self.assertIn(name, tests_in(ROOT / file))

    def test_every_promise_names_a_test(self):
        text = (ROOT / "docs/threat-model.md").read_text()
        promises = re.split(r"^\d+\. ", text.split("## What is promised")[1].split("## What is not")[0], flags=re.M)[1:]
        self.assertGreater(len(promises), 10)
        for promise in promises:
            with self.subTest(promise.split(".")[0]):
                self.assertRegex(promise, REFERENCE)

    def test_the_operators_guide_has_every_fault_once(self):
        guide = (ROOT / "docs/operating.md").read_text().split("## What each refusal means")[1]
        faults, steps = guide.split("### When a command cannot be started")
        declared = re.findall(r"\bF\((\w+),", (ROOT / "schema/faults.hpp").read_text())
        self.assertEqual(sorted(names_in(faults)), sorted(set(declared) - {"none"}))
        source = re.search(r"kSpawnStepNames\[\] = \{(.*?)\}", (ROOT / "schema/audit_format.hpp").read_text(), re.S)
        self.assertEqual(sorted(names_in(steps)), sorted(set(re.findall(r'"(\w+)"', source.group(1))) - {"none"}))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
