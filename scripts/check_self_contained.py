#!/usr/bin/env python3
"""Checks that tracked files name nothing that somebody who clones the project does not have.

That is: folders of one machine, paths that leave the project, hosts of package registries.
Prints each line that does, and exits with 1 where there is one.
"""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUTSIDE = [re.compile(pattern) for pattern in (
    r"(?<![\w.}])/(?:work|root|home|mnt|srv|Users)/",
    r"\b(?:deb|archive|security|snapshot)\.(?:debian|ubuntu)\.(?:org|com)\b",
    r"\b(?:pypi|pythonhosted|npmjs|crates)\.(?:org|io|com)\b",
)]


UPWARD = re.compile(r"(?<![\w./])(?:\.\./)+(?=\w)")


def leaves_project(line, depth):
    """Whether a relative path in `line` of a file `depth` folders down ends outside the project."""
    return any(path.group().count("..") > depth for path in UPWARD.finditer(line))


def faults_in(text, depth=0):
    """The numbers and lines of `text` that name something outside."""
    return [(number, line) for number, line in enumerate(text.splitlines(), start=1)
            if leaves_project(line, depth) or any(pattern.search(line) for pattern in OUTSIDE)]


def tracked_files():
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, text=True,
                           stdout=subprocess.PIPE).stdout
    return [ROOT / name for name in names.split("\0") if name]


def main():
    faulty = False
    for path in tracked_files():
        try:
            text = path.read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue  # not text, or removed and not yet committed
        for number, line in faults_in(text, len(path.relative_to(ROOT).parents) - 1):
            faulty = True
            print(f"{path.relative_to(ROOT)}:{number}: names something outside: {line.strip()}")
    return 1 if faulty else 0


if __name__ == "__main__":
    sys.exit(main())
