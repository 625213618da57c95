"""Has compute-sanitizer judge accesses to pooled blocks: test_announced.py PROGRAM SOURCE.

Exit status 77 where there is no GPU or no compute-sanitizer that listens to NVTX by itself.
"""

import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

PROGRAM = ""
SOURCE = ""
SANITIZER = None
MARK = "the line that a tool must name"


def find_sanitizer():
    """The newest there is: on PATH, else in a CUDA Toolkit."""
    found = shutil.which("compute-sanitizer")
    homes = [os.environ.get("CUDA_HOME", ""), "/usr/local/cuda", *glob.glob("/usr/local/cuda-*")]
    for home in homes:
        for place in ("bin", "compute-sanitizer"):
            candidate = pathlib.Path(home, place, "compute-sanitizer")
            if found is None and home and os.access(candidate, os.X_OK) and candidate.is_file():
                found = str(candidate)
    return found


def judge(which):
    """What the tool says of one way to run the program, and how many errors it counts."""
    done = subprocess.run([SANITIZER, "--tool", "memcheck", "--nvtx", "yes", PROGRAM, which],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          timeout=250)
    summary = re.search(r"ERROR SUMMARY: (\d+) error", done.stdout)
    if summary is None:
        raise AssertionError("no summary of errors:\n" + done.stdout)
    return done.stdout, int(summary.group(1))


class Announced(unittest.TestCase):
    def check_reported(self, which):
        text, errors = judge(which)
        self.assertGreaterEqual(errors, 1, text)
        self.assertIn("Invalid __global__ write of size 1 bytes", text)
        lines = pathlib.Path(SOURCE).read_text(encoding="utf-8").splitlines()
        line = next(i for i, words in enumerate(lines, 1) if MARK in words)
        self.assertIn(f"{pathlib.Path(SOURCE).name}:{line}", text)

    def test_accesses_to_blocks_in_use_are_no_errors(self):
        text, errors = judge("inside")
        self.assertEqual(errors, 0, text)

    def test_an_access_between_two_blocks_is_reported_at_its_line(self):
        self.check_reported("between")

    def test_an_access_to_a_freed_block_is_reported_at_its_line(self):
        self.check_reported("freed")


if __name__ == "__main__":
    PROGRAM, SOURCE = sys.argv[1:3]
    SANITIZER = find_sanitizer()
    if SANITIZER is None:
        print("skipped: there is no compute-sanitizer")
        sys.exit(77)
    if subprocess.run([PROGRAM, "inside"], check=False).returncode == 77:
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
