#!/usr/bin/env python3
"""Sums up JUnit files that CTest wrote: shows the tests that failed, then counts.

The last line is "N passed, N failed, N skipped". Exits with 1 where a test failed or none ran.
"""
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter

SHOWN_LINES = 40


def outcome(test):
    """A test counts as skipped only where it said so itself, by its exit code or its output."""
    if test.get("status") == "run":
        return "passed"
    skipped = test.find("skipped")
    if skipped is not None and skipped.get("message", "").startswith("SKIP_"):
        return "skipped"
    return "failed"


def show_failure(test, path):
    """The test's name, and the end of what it printed."""
    print(f"failed: {test.get('name')} ({path})")
    for line in (test.findtext("system-out") or "").strip().splitlines()[-SHOWN_LINES:]:
        print(f"    {line}")


def summarise(paths):
    counts = Counter()
    for path in paths:
        for test in ElementTree.parse(path).getroot().iter("testcase"):
            result = outcome(test)
            counts[result] += 1
            if result == "failed":
                show_failure(test, path)
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return counts


def main(paths):
    if not paths:
        sys.exit("usage: summarise_tests.py FILE...")
    counts = summarise(paths)
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
