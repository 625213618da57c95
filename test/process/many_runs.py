#!/usr/bin/env python3
"""Runs a program many times and ends with the first exit code that is not 0.

usage: many_runs.py RUNS PROGRAM [ARGUMENT...]
"""
import subprocess
import sys


def main():
    runs, program = int(sys.argv[1]), sys.argv[2:]
    for run in range(1, runs + 1):
        code = subprocess.run(program, timeout=120, check=False).returncode
        if code != 0:
            print(f"run {run} of {runs} ended with {code}")
            return code if code > 0 else 128 - code
    print(f"{runs} of {runs} runs ended with 0")
    return 0


if __name__ == "__main__":
    sys.exit(main())
