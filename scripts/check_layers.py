#!/usr/bin/env python3
"""Checks that the headers under a folder include only what stands below them, and in no circle.

usage: check_layers.py [FOLDER]     (include/pagesift of this project by default)
"""
import re
import sys
from pathlib import Path

LAYERS = ["core", "backend", "back", "exchange", "front", "pool", "adapters"]
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


def layer_of(header):
    """The place of a header such as core/bytes.hpp; those in no folder stand above all layers."""
    folder, slash, _ = header.partition("/")
    return LAYERS.index(folder) if slash else len(LAYERS)


def read_includes(root):
    """Maps each header to the project's headers it includes, all named as seen from `root`."""
    includes = {}
    for path in sorted(root.rglob("*")):
        if path.suffix not in (".hpp", ".cuh"):
            continue
        named = INCLUDE.findall(path.read_text(encoding="utf-8"))
        own = [name[len("pagesift/"):] for name in named if name.startswith("pagesift/")]
        includes[path.relative_to(root).as_posix()] = own
    return includes


def unknown_layers(includes):
    folders = {header.partition("/")[0] for header in includes if "/" in header}
    return [f"there is no layer {folder}" for folder in sorted(folders.difference(LAYERS))]


def upward_includes(includes):
    return [f"{header} includes {included}, which stands above it"
            for header, named in includes.items() for included in named
            if layer_of(included) > layer_of(header)]


def missing_includes(includes):
    return [f"{header} includes {included}, which does not exist"
            for header, named in includes.items() for included in named
            if included not in includes]


def circles(includes):
    """One message per circle that a walk over all headers comes upon."""
    found, done = [], set()

    def walk(header, way):
        if header in way:
            found.append("a circle: " + " -> ".join(way[way.index(header):] + [header]))
        elif header not in done:
            for included in includes.get(header, []):
                walk(included, way + [header])
            done.add(header)

    for header in includes:
        walk(header, [])
    return found


def check(root):
    includes = read_includes(root)
    if not includes:
        return [f"{root}: there is no header"]
    unusable = unknown_layers(includes) + missing_includes(includes)
    return unusable or upward_includes(includes) + circles(includes)


def main(arguments):
    here = Path(__file__).resolve().parent.parent / "include" / "pagesift"
    faults = check(Path(arguments[0]) if arguments else here)
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
