#!/usr/bin/env python3
"""Breaks each invariant of test/mutations/mutations.json on purpose, and sees its test go red.

Each entry names an invariant, the lines of a header that keep it, what they become, and the test
that is to notice. Headers are changed in a scratch copy; that one test is compiled and run; a
static assertion that fails is a test, too. A test that stays green, or that is red on the unchanged
headers, is a failure of this script.

usage: check_mutations.py [--jobs N] [--only WORDS] [--table FILE]
"""

import argparse
import concurrent.futures
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = ROOT / "test" / "mutations" / "mutations.json"
FLAGS = ["-std=c++17", "-O1", "-w", "-pthread"]
SECONDS = 120  # an endless loop is red, too


def run(command, seconds):
    """Returns the exit code and the output; a program that does not end counts as failed."""
    try:
        done = subprocess.run(command, cwd=ROOT, timeout=seconds, text=True, errors="replace",
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except subprocess.TimeoutExpired:
        return 1, f"did not end within {seconds} s"
    return done.returncode, done.stdout


def build(mutation, include, program, main_object):
    command = ["c++", *FLAGS, f"-I{include}", f"-I{ROOT / 'test' / 'pool'}"]
    command += [f"-D{definition}" for definition in mutation.get("definitions", [])]
    command += [str(ROOT / mutation["test"]), str(main_object), "-o", str(program)]
    return run(command, 600)


def first_failure(output):
    """The name of the first test case that failed, as doctest prints it."""
    for line in output.splitlines():
        if line.startswith("TEST CASE:"):
            return line.removeprefix("TEST CASE:").strip()
    return output.strip().splitlines()[-1][:90] if output.strip() else "ended by a signal"


def check(mutation, main_object):
    """Returns what the mutated headers led to: "red", "green" or "broken", and by which test."""
    with tempfile.TemporaryDirectory() as folder:
        include = pathlib.Path(folder) / "include"
        shutil.copytree(ROOT / "include", include)
        header = include.parent / mutation["file"]
        text = header.read_text()
        if text.count(mutation["before"]) != 1:
            return "broken", "its lines are not there exactly once"
        header.write_text(text.replace(mutation["before"], mutation["after"]))
        program = pathlib.Path(folder) / "test"
        code, output = build(mutation, include, program, main_object)
        if code != 0:
            errors = [line for line in output.splitlines() if "error: " in line] or ["no compiler"]
            noticed = "static assertion failed" in errors[0]
            return "red" if noticed else "broken", errors[0].split("error: ")[-1][:120]
        case = [f"-tc={mutation['case']}"] if "case" in mutation else []
        code, output = run([str(program), *case], SECONDS)
        return ("green", "") if code == 0 else ("red", first_failure(output))


def table(results):
    lines = ["| invariant | file | test that notices |", "|---|---|---|"]
    for mutation, (_, by) in results:
        cell = by.replace("|", "/")
        lines.append(f"| {mutation['invariant']} | `{mutation['file'].removeprefix('include/')}` "
                     f"| `{mutation['test']}`: {cell} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="invariants that contain these words")
    parser.add_argument("--table", type=pathlib.Path, help="write the results there as Markdown")
    asked = parser.parse_args()
    mutations = [m for m in json.loads(LIST.read_text()) if asked.only in m["invariant"]]
    if not mutations:
        sys.exit("No mutation has those words.")
    with tempfile.TemporaryDirectory() as folder:
        main_object = pathlib.Path(folder) / "main.o"
        code, output = run(["c++", *FLAGS, "-c", "test/main.cpp", "-o", str(main_object)], 300)
        if code != 0:
            sys.exit(output)
        results = []
        with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
            outcomes = pool.map(lambda m: check(m, main_object), mutations)
            for mutation, outcome in zip(mutations, outcomes):
                results.append((mutation, outcome))
                print(f"{outcome[0]:6} {mutation['invariant']}: {outcome[1]}", flush=True)
    if asked.table:
        asked.table.write_text(table(results))
    unnoticed = [m["invariant"] for m, outcome in results if outcome[0] != "red"]
    print(f"{len(results) - len(unnoticed)} of {len(results)} mutations were noticed")
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
