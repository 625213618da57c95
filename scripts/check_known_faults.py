#!/usr/bin/env python3
"""Checks that every test that docs/known-faults.md names is in the file that it is said to be in.

The last cell of each row of the page's table names tests: a file in backquotes, a colon, and the
sentences of its tests, each between asterisks. Prints what is not there, and exits with 1 then.

usage: check_known_faults.py [PROJECT]     (this project by default)
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = Path("docs") / "known-faults.md"
FILE = re.compile(r"`([^`]+)`:")
SENTENCE = re.compile(r"\*([^*]+)\*")
TEST_CASE = re.compile(r'\bTEST_CASE(?:_TEMPLATE)?(?:_DEFINE)?\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)')
QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
PYTHON_TEST = re.compile(r"^\s*def (test_\w+)", re.MULTILINE)


def tests_in(path):
    """Patterns for the names of a file's tests: its own, or for a program that is a test as a whole
    the sentences that the CMakeLists.txt beside it has."""
    text = path.read_text(encoding="utf-8")
    names = ["".join(QUOTED.findall(literals)).replace('\\"', '"')
             for literals in TEST_CASE.findall(text)]
    names += PYTHON_TEST.findall(text)
    lists = path.parent / "CMakeLists.txt"
    if not names and lists.exists():
        text = lists.read_text(encoding="utf-8")
        names = QUOTED.findall(text) if path.name in text else []
    return [re.compile(re.sub(r"\\\$\\\{\w+\\\}", r"\\w+", re.escape(name))) for name in names]


def references(cell):
    """The files that a cell names, each with the sentences that follow it."""
    files = list(FILE.finditer(cell))
    ends = [match.start() for match in files[1:]] + [len(cell)]
    return [(match.group(1), SENTENCE.findall(cell[match.end():end]))
            for match, end in zip(files, ends)]


def faults_of(cell, root):
    named = references(cell)
    if not named:
        yield "names no test"
    for name, sentences in named:
        if not sentences:
            yield f"names no test of {name}"
        path = root / name
        if not path.is_file():
            yield f"there is no {name}"
            continue
        known = tests_in(path)
        for sentence in sentences:
            if not any(pattern.fullmatch(sentence) for pattern in known):
                yield f"{name} has no test \"{sentence}\""


def rows(page):
    """The numbers and cells of the rows of all tables, without their heads."""
    lines = page.splitlines()
    for number, line in enumerate(lines, start=1):
        is_row = line.startswith("|") and not re.match(r"^\|[\s|:-]+\|$", line)
        is_head = number < len(lines) and re.match(r"^\|[\s|:-]+\|$", lines[number])
        if is_row and not is_head:
            yield number, [cell.strip() for cell in line.strip().strip("|").split("|")]


def check(root):
    """What is wrong, a sentence each."""
    page = (root / PAGE).read_text(encoding="utf-8")
    found = list(rows(page))
    faults = [] if found else [f"{PAGE} has no table"]
    return faults + [f"{PAGE}:{number}: {fault}"
                     for number, cells in found for fault in faults_of(cells[-1], root)]


def main():
    faults = check(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
