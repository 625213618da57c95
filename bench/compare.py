#!/usr/bin/env python3
"""Prints pagesift's benchmark results side by side.

Reads one JSON file of Google Benchmark, with repetitions or aggregates, whose benchmarks are named
workload/allocator/argument. Exit status: 0, or 1 where a bar of --check fails, or 2 where the input
or the command line cannot be used.
"""

import argparse
import fnmatch
import json
import re
import signal
import sys

from bars import read_bars
from measured import Key, Unusable, read_results

BEGIN_MARK = "<!-- benchmarks:begin -->"
END_MARK = "<!-- benchmarks:end -->"

# ---------------------------------------------------------------------------- comparing

def ratio(results, key, baseline):
    """The median of `key` over that of `baseline` in the same row; None where one is missing."""
    mine, theirs = results.get(key), results.get(key._replace(allocator=baseline))
    if not mine or not theirs or not mine.median or not theirs.median:
        return None
    return mine.median / theirs.median


def rows_of(results):
    """The rows, (workload, argument), by workload and then by the argument's size."""
    return sorted({(key.workload, key.argument) for key in results},
                  key=lambda row: (row[0], argument_order(row[1])))


def argument_order(argument):
    """Sorts 256B before 4KiB before 800MB, and float_1000 before float_10000000."""
    units = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "MB": 10**6}
    match = re.fullmatch(r"(.*?)(\d+)([A-Za-z]*)", argument)
    if not match:
        return (argument, 0)
    word, number, unit = match.groups()
    return (word, int(number) * units.get(unit, 1))


def allocators_of(results):
    names = sorted({key.allocator for key in results})
    return sorted(names, key=lambda name: name != "pagesift")


def only_wanted(results, patterns):
    """The results whose workload/argument fits one of the patterns; all, where there is none."""
    if not patterns:
        return results
    wanted = {key: result for key, result in results.items()
              if any(fnmatch.fnmatchcase(f"{key.workload}/{key.argument}", p) for p in patterns)}
    if not wanted:
        raise Unusable(f"no benchmark fits {' '.join(patterns)}")
    return wanted


# ---------------------------------------------------------------------------- bars

def check(results, bars):
    """Prints what fails; the exit status."""
    failures = [failure for bar in bars for failure in bar.failures(results)]
    for failure in failures:
        print(f"FAILED {failure}")
    print(f"{len(bars)} bars, {len(failures)} failures")
    return 1 if failures else 0


# ---------------------------------------------------------------------------- writing

def time_text(nanos):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanos >= size:
            return f"{nanos / size:#.3g}".rstrip(".") + f" {unit}"
    return f"{nanos:#.3g}".rstrip(".") + " ns"


def cell(results, key, baseline, with_spread):
    result = results.get(key)
    if result is None:
        return ""
    if result.error is not None:
        return "failed"
    notes = []
    if with_spread and result.spread is not None:
        notes.append(f"±{100 * result.spread:.0f}%")
    times = ratio(results, key, baseline)
    if times is not None and key.allocator != baseline:
        notes.append(f"×{times:.2f}" if times >= 0.1 else f"×{times:.2g}")
    return time_text(result.median) + (f" ({', '.join(notes)})" if notes else "")


def counter_table(results, counter):
    """A table of one counter, of each benchmark the largest over its repetitions."""
    def text(result):
        return f"{result.counters[counter]:.4g}" if result and counter in result.counters else ""

    counted = {key: result for key, result in results.items() if counter in result.counters}
    if not counted:
        raise Unusable(f"no benchmark has the counter {counter}")
    allocators = allocators_of(counted)
    return [["workload", "argument"] + allocators] + [
        [*row, *(text(counted.get(Key(row[0], name, row[1]))) for name in allocators)]
        for row in rows_of(counted)]


def table(results, baseline, with_spread):
    """The header and the rows, as lists of strings."""
    allocators = allocators_of(results)
    lines = [["workload", "argument"] + allocators]
    for workload, argument in rows_of(results):
        lines.append([workload, argument] + [
            cell(results, Key(workload, name, argument), baseline, with_spread)
            for name in allocators])
    return lines


def text_table(lines):
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(line, widths)).rstrip() for line in lines)


def markdown_table(lines):
    rule = ["---", "---"] + ["--:"] * (len(lines[0]) - 2)
    return "\n".join("| " + " | ".join(line) + " |" for line in [lines[0], rule] + lines[1:])


def machine_text(context):
    names = ("gpu", "driver", "cuda", "thrust", "commit", "date")
    return ", ".join(f"{name} {context[name]}" for name in names if context.get(name))


def as_json(context, results, baseline):
    return json.dumps({
        "context": context,
        "baseline": baseline,
        "results": [{
            "workload": key.workload, "allocator": key.allocator, "argument": key.argument,
            "median_ns": result.median, "spread": result.spread,
            "ratio": ratio(results, key, baseline), "counters": result.counters,
            "error": result.error,
        } for key, result in results.items()],
    }, indent=2)


def readme_section(context, results, baseline):
    date = str(context.get("date", "unknown"))[:10]
    about = (f"{context.get('gpu', 'unknown GPU')}, driver {context.get('driver', 'unknown')}, "
             f"CUDA {context.get('cuda', 'unknown')}, {date}, "
             f"commit {context.get('commit', 'unknown')}.\n"
             f"Medians of host time; × is the ratio to {baseline}.\n"
             f"Command: `{context.get('command', 'unknown')}`")
    return f"{BEGIN_MARK}\n{about}\n\n{markdown_table(table(results, baseline, False))}\n{END_MARK}"


def write_readme(path, section):
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if text.count(BEGIN_MARK) != 1 or text.count(END_MARK) != 1:
            raise Unusable(f"{path}: needs the lines {BEGIN_MARK} and {END_MARK}, once each")
        before, rest = text.split(BEGIN_MARK)
        if END_MARK not in rest:
            raise Unusable(f"{path}: {END_MARK} stands before {BEGIN_MARK}")
        after = rest.split(END_MARK)[1]
        with open(path, "w", encoding="utf-8") as file:
            file.write(before + section + after)
    except OSError as error:
        raise Unusable(f"{path}: cannot be rewritten: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise Unusable(f"{path}: is not text in UTF-8") from error


# ---------------------------------------------------------------------------- command line

def parse_arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("results", metavar="RESULTS.json", help="a JSON file of Google Benchmark")
    parser.add_argument("--baseline", help="the allocator that ratios are taken to (default: "
                        "cuda_malloc, or malloc where that is not in the results)")
    parser.add_argument("--only", nargs="+", metavar="WORKLOAD/ARGUMENT", default=[],
                        help="the rows to show, with * for anything; all by default")
    parser.add_argument("--counter", help="print this counter instead of the times")
    parser.add_argument("--json", action="store_true", help="print the ratios as JSON")
    parser.add_argument("--check", metavar="BARS.json", help="exit with 1 where a bar fails")
    parser.add_argument("--readme", metavar="README.md",
                        help=f"rewrite the table between {BEGIN_MARK} and {END_MARK}")
    return parser.parse_args(argv)


def choose_baseline(asked, results):
    names = {key.allocator for key in results}
    if asked is None:
        return "cuda_malloc" if "cuda_malloc" in names else "malloc"
    if asked not in names:
        raise Unusable(f"--baseline {asked}: not in the results, which have "
                       f"{', '.join(sorted(names))}")
    return asked


def run(arguments):
    context, results = read_results(arguments.results)
    baseline = choose_baseline(arguments.baseline, results)
    shown = only_wanted(results, arguments.only)
    bars = read_bars(arguments.check) if arguments.check else None
    if arguments.readme:
        write_readme(arguments.readme, readme_section(context, shown, baseline))
    if arguments.json:
        print(as_json(context, shown, baseline))
    elif arguments.counter:
        print(text_table(counter_table(shown, arguments.counter)))
    elif not arguments.readme and not bars:
        print(machine_text(context))
        print(f"medians, spread (interquartile range), ratio to {baseline}\n")
        print(text_table(table(shown, baseline, True)))
    return check(results, bars) if bars else 0


def main(argv=None):
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # quiet where the reader of the output stops
    try:
        return run(parse_arguments(argv))
    except Unusable as error:
        print(f"compare.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
