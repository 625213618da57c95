#!/usr/bin/env python3
"""Compares the instructions of one allocate and deallocate with the committed figures.

Each figure is counted by valgrind's callgrind, exactly and without a clock: the program runs once
with N pairs and once with 2 N, and what the second run has more, divided by N, is one pair. What
starting and ending cost cancels out. Everything is counted that the thread executes for the pair:
the pool, the locks of the C library, and the calls into the backend. On the host these are nothing;
on the simulated device who the stream is takes a lock, a look-up and an entry in its book each time
it is asked, so that figure moves with the number of calls more than with the pool's own work.

Exits with 0 where each figure is within 5 % of the committed one, 1 where one is not, whether more
or less, and 77 where there is nothing to compare: no valgrind, or no figures for this compiler.
"""
import argparse
import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PAIRS = 2000
SLACK = 0.05
SKIPPED = 77

# What is counted: a figure's name, and the arguments of hot_pair.
FIGURES = {
    "host 4 KiB": ("host", 4 << 10),
    "host 64 MiB": ("host", 64 << 20),
    "simulated 4 KiB": ("simulated", 4 << 10),
    "simulated 64 MiB": ("simulated", 64 << 20),
}


def instructions(command):
    """Instructions that `command` executes, as callgrind counts them."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind.out"
        run = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", *command],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        found = re.search(r"^totals: (\d+)$", out.read_text() if out.exists() else "", re.M)
    if run.returncode != 0 or found is None:
        sys.exit(f"valgrind did not count '{shlex.join(command)}':\n{run.stdout}")
    return int(found[1])


def count(program, backend, size):
    """Instructions of one pair."""
    runs = [instructions([program, backend, str(size), str(pairs)])
            for pairs in (PAIRS, 2 * PAIRS)]
    return round((runs[1] - runs[0]) / PAIRS, 1)


def judge(name, counted, committed):
    """One line about a figure, and whether it is as it should be."""
    if committed is None:
        return f"{name}: {counted} instructions for each pair, none committed", False
    change = counted / committed - 1
    line = (f"{name}: {counted} instructions for each pair, {committed} committed, "
            f"{100 * change:+.1f} %")
    if change > SLACK:
        return f"{line}: more than the {100 * SLACK:.0f} % allowed", False
    if change < -SLACK:
        return f"{line}: better; commit the new figure", False
    return line, True


def compare(key, counted, figures, update_command):
    """Prints each figure and returns the exit code."""
    committed = figures.get(key)
    if committed is None:
        print(f"skipped: no figures are committed for {key}; these are: {json.dumps(counted)}")
        print(f"To commit them: {update_command}")
        return SKIPPED
    results = [judge(name, value, committed.get(name)) for name, value in counted.items()]
    for line, _ in results:
        print(line)
    if all(good for _, good in results):
        return 0
    print(f"To commit the new figures: {update_command}")
    return 1


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True, help="hot_pair, built as it is to be counted")
    parser.add_argument("--counts", required=True, type=Path, help="file of committed figures")
    parser.add_argument("--key", required=True, help="compiler, version, architecture, build type")
    parser.add_argument("--update", action="store_true", help="write the figures to --counts")
    return parser.parse_args(arguments)


def main(arguments):
    options = parse(arguments)
    if shutil.which("valgrind") is None:
        print("skipped: there is no valgrind to count instructions with")
        return SKIPPED
    figures = json.loads(options.counts.read_text()) if options.counts.exists() else {}
    counted = {name: count(options.program, *what) for name, what in FIGURES.items()}
    if options.update:
        figures[options.key] = counted
        options.counts.write_text(json.dumps(figures, indent=2, sort_keys=True) + "\n")
        print(f"{options.counts}: {options.key}: {json.dumps(counted)}")
        return 0
    update_command = shlex.join(["python3", __file__, *arguments, "--update"])
    return compare(options.key, counted, figures, update_command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
