#!/usr/bin/env python3
"""Runs a program of tests under compute-sanitizer's memcheck: memcheck.py PROGRAM [ARGUMENT...]

Ends as the program does, with 1 where the tool finds a wrong access, and with 77 where there is no
GPU or no compute-sanitizer.
"""

import subprocess
import sys

from test_announced import find_sanitizer

SKIPPED = 77
WRONG_ACCESS = 1


def main():
    program = sys.argv[1:]
    sanitizer = find_sanitizer()
    if sanitizer is None:
        print("skipped: there is no compute-sanitizer")
        return SKIPPED
    if subprocess.run([*program, "--count"], check=False).returncode == SKIPPED:
        return SKIPPED
    # The pool finds out by errors of the driver what it can do: those are no mistakes.
    command = [sanitizer, "--tool", "memcheck", "--report-api-errors", "no",
               "--error-exitcode", str(WRONG_ACCESS), *program]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
