"""Runs the tests of a file, many at a time, and reports in the Test Anything Protocol, which Meson counts."""

import concurrent.futures
import os
import sys
import threading
import time
import traceback
import unittest


def slow(test):
    """Marks a test that waits long, so that it starts first and others run beside it."""
    test.slow = True
    return test


class Tap(unittest.TestResult):
    """One line for each test, when it ends."""

    def __init__(self):
        super().__init__()
        self.lock, self.count, self.bad, self.began = threading.Lock(), 0, 0, {}

    def startTest(self, test):
        self.began[test] = time.monotonic()

    def say(self, good, test, note="", text=""):
        with self.lock:
            self.count += 1
            self.bad += not good
            seconds = time.monotonic() - self.began.get(test, time.monotonic())
            name = test.id().removeprefix("__main__.")
            print(f"{'ok' if good else 'not ok'} {self.count} - {name} ({seconds:.1f} s){note}")
            for line in text.splitlines():
                print(f"# {line}")
            sys.stdout.flush()

    def addSuccess(self, test):
        self.say(True, test)

    def addFailure(self, test, err):
        self.say(False, test, text="".join(traceback.format_exception(*err)))

    addError = addExpectedFailure = addFailure  # a known fault is a fault

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.say(False, subtest, text="".join(traceback.format_exception(*err)))

    def addSkip(self, test, reason):
        self.say(True, test, f" # SKIP {reason}")

    def addUnexpectedSuccess(self, test):
        self.say(False, test, text="this was expected to fail and does not; remove the mark")


def flatten(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flatten(test)
        else:
            yield test


def main():
    """Runs the tests of the calling file, many at a time: they mostly wait. Arguments: parts of names to choose by."""
    tests = list(flatten(unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])))
    if len(sys.argv) > 1:
        tests = [test for test in tests if any(word in test.id() for word in sys.argv[1:])]
    tests.sort(key=lambda test: not getattr(getattr(test, test._testMethodName), "slow", False))
    result = Tap()
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("X0X_E2E_JOBS", 12))) as pool:
        list(pool.map(lambda test: test.run(result), tests))
    print(f"1..{result.count}")  # at the end: each part of a test that fails counts too
    sys.exit(1 if result.bad or not tests else 0)
