"""bench/report.py: what is met, missed and not measured, and that every page says so. report_test.py SOURCE_ROOT"""

import pathlib
import sys
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(sys.argv.pop(1))
sys.path.append(str(ROOT / "bench"))

import report

FACTS = {"commit": "abc", "date": "2026-01-01", "processor": "one"}


class Report(unittest.TestCase):
    def verdict(self, goal, *samples):
        return report.row("part", "what", "peer", goal, list(samples))["verdict"]

    def test_the_median_decides_and_the_goal_itself_is_met(self):
        self.assertEqual(self.verdict(("at least", 2), 1, 2, 9), report.MET)
        self.assertEqual(self.verdict(("at least", 2), 1, 1.99, 9), report.MISSED)
        self.assertEqual(self.verdict(("at most", 2), 1, 2, 9), report.MET)
        self.assertEqual(self.verdict(("at most", 2), 1, 2.01, 9), report.MISSED)

    def test_without_samples_nothing_is_met(self):
        self.assertEqual(self.verdict(("at most", 2)), report.NOT_MEASURED)

    def test_without_a_goal_nothing_is_met_or_missed(self):
        self.assertEqual(self.verdict(None, 1, 2, 3), report.TOLD)

    def test_the_spread_is_the_middle_half(self):
        row = report.row("part", "what", "peer", ("at most", 9), [1, 2, 3, 4, 5, 6, 7])
        self.assertEqual((row["low"], row["median"], row["high"]), (2, 4, 6))

    def test_every_page_shows_what_was_missed_and_what_was_not_measured(self):
        rows = [report.row("part", "fast <one>", "peer", ("at least", 2), [3, 3, 3, 3]),
                report.row("part", "slow one", "peer", ("at least", 2), [1, 1, 1, 1]),
                report.row("part", "absent one", "peer", ("at least", 2), reason="no peer"),
                report.row("part", "told one", "peer", None, [1])]
        table = report.table(rows)
        self.assertRegex(table, r"slow one .*MISSED")
        self.assertIn("not measured: absent one against peer: no peer", table)
        page = report.document({"rows": rows, "machine": FACTS, "command": "./dev bench"}, "## Found\n")
        self.assertIn("1 goals met, 1 missed, 1 not measured", page)
        self.assertRegex(page, r"\| slow one .*\| \*\*missed\*\* \|")
        self.assertIn("\n\n* Not measured: absent one against peer: no peer.\n\nMachine:\n\n* processor: one\n", page)
        chart = xml.etree.ElementTree.fromstring(report.chart(rows))
        shown = [node.text for node in chart.iter("{http://www.w3.org/2000/svg}text")]
        self.assertIn("fast <one> / peer", shown)
        self.assertNotIn("absent one / peer", shown)

    def test_a_run_that_measured_nothing_has_a_chart_without_bars(self):
        rows = [report.row("part", "absent one", "peer", ("at least", 2), reason="no peer")]
        chart = xml.etree.ElementTree.fromstring(report.chart(rows))
        self.assertEqual(len(list(chart.iter("{http://www.w3.org/2000/svg}rect"))), 1)

    def test_the_machine_says_who_went_first(self):
        self.assertEqual(report.machine("/", True)["priority"], "real-time for both sides")
        self.assertIn("share the machine", report.machine("/", False)["priority"])


if __name__ == "__main__":
    unittest.main()
