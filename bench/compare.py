#!/usr/bin/env python3
"""Prints pagesift's benchmark results side by side.

Reads one JSON file of Google Benchmark, with repetitions or aggregates, whose benchmarks are named
workload/allocator/argument. Exit status: 0, or 1 where a bar of --check fails, or 2 where the input
or the command line cannot be used.
"""

import argparse
import fnmatch
import json
import math
import re
import signal
import statistics
import sys
from collections import namedtuple

BEGIN_MARK = "<!-- benchmarks:begin -->"
END_MARK = "<!-- benchmarks:end -->"

# What Google Benchmark adds to a name that the benchmark did not choose.
SUFFIX = re.compile(r"/(manual_time|real_time|process_time"
                    r"|(repeats|threads|min_time|min_warmup_time|iterations):[^/]*)")
NANOSECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
COUNTERS = ("device_allocations", "held_bytes", "peak_bytes", "hit_rate")

Key = namedtuple("Key", "workload allocator argument")


class Unusable(Exception):
    """The input cannot be used; the message says why in one sentence."""


class Result:
    """The median of one benchmark in ns, its spread as a share of the median, and its counters."""

    def __init__(self, median=None, spread=None, counters=None, error=None):
        self.median = median
        self.spread = spread
        self.counters = counters or {}
        self.error = error


# ---------------------------------------------------------------------------- reading

def read_json(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except OSError as error:
        raise Unusable(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise Unusable(f"{path}: is not text in UTF-8") from error
    except json.JSONDecodeError as error:
        raise Unusable(f"{path}: is not JSON: {error.msg} in line {error.lineno}") from error


def read_results(path):
    """The context and the results by key, in the order of the file."""
    document = read_json(path)
    try:
        context, runs = document["context"], document["benchmarks"]
        groups = {}
        for run in runs:
            groups.setdefault(key_of(run["run_name"]), []).append(run)
        results = {key: summarise(group) for key, group in groups.items()}
        context = dict(context)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Unusable(f"{path}: is not a result of these benchmarks: {describe(error)}") from error
    if not results:
        raise Unusable(f"{path}: holds no benchmark")
    return context, results


def describe(error):
    return f"no {error}" if isinstance(error, KeyError) else str(error)


def key_of(run_name):
    parts = SUFFIX.sub("", run_name).split("/")
    if len(parts) != 3:
        raise ValueError(f"'{run_name}' is not named workload/allocator/argument")
    return Key(*parts)


def summarise(runs):
    """One result from the repetitions of a benchmark or, where they are not there, aggregates."""
    repetitions = [run for run in runs if run.get("run_type", "iteration") == "iteration"]
    errors = [run.get("error_message", "") for run in repetitions if run.get("error_occurred")]
    if errors:
        return Result(error=errors[0] or "an error without a message")
    if repetitions:
        times = [nanoseconds(run) for run in repetitions]
        return Result(statistics.median(times), spread_of(times), counters_of(repetitions))
    return from_aggregates({run["aggregate_name"]: run for run in runs})


def from_aggregates(aggregates):
    median = aggregates["median"]
    cv = aggregates.get("cv")
    spread = finite(cv["real_time"]) if cv else None
    return Result(nanoseconds(median), spread, counters_of([median]))


def nanoseconds(run):
    return finite(run["real_time"]) * NANOSECONDS[run["time_unit"]]


def finite(value):
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"{value!r} is not a number")
    return float(value)


def spread_of(times):
    """The interquartile range as a share of the median; None for a single repetition."""
    if len(times) < 2 or statistics.median(times) == 0:
        return None
    quartiles = statistics.quantiles(times, n=4, method="inclusive")
    return (quartiles[2] - quartiles[0]) / statistics.median(times)


def counters_of(runs):
    """Each counter's largest value over the repetitions: one bad repetition must show. Aggregates
    have no such value; of them this is the median."""
    return {name: max(finite(run[name]) for run in runs)
            for name in COUNTERS if all(name in run for run in runs)}


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

def read_bars(path):
    document = read_json(path)
    try:
        bars = [Bar(entry) for entry in document["bars"]]
    except (KeyError, TypeError, ValueError) as error:
        raise Unusable(f"{path}: is not a list of bars: {describe(error)}") from error
    if not bars:
        raise Unusable(f"{path}: holds no bar")
    return bars


class Bar:
    """An upper bound: of a ratio of times to a baseline, or of a counter."""

    FIELDS = {"workload", "allocator", "argument", "at_most", "baseline", "counter"}

    def __init__(self, entry):
        unknown = set(entry) - self.FIELDS
        if unknown:
            raise ValueError(f"a bar has no field '{sorted(unknown)[0]}'")
        if ("baseline" in entry) == ("counter" in entry):
            raise ValueError("a bar has either a baseline or a counter")
        self.pattern = Key(entry["workload"], entry["allocator"], entry["argument"])
        self.at_most = finite(entry["at_most"])
        self.baseline = entry.get("baseline")
        self.counter = entry.get("counter")

    def covers(self, key):
        return all(fnmatch.fnmatchcase(have, want) for have, want in zip(key, self.pattern))

    def failures(self, results):
        """One sentence for each benchmark that misses the bar."""
        keys = [key for key in results if self.covers(key)]
        if not keys:
            return [f"{'/'.join(self.pattern)}: no such benchmark in the results"]
        return [failure for key in keys for failure in [self.failure(results, key)] if failure]

    def failure(self, results, key):
        name = "/".join(key)
        if results[key].error:
            return f"{name}: failed with: {results[key].error}"
        what = f"time over {self.baseline}'s" if self.baseline else self.counter
        value = (ratio(results, key, self.baseline) if self.baseline
                 else results[key].counters.get(self.counter))
        if value is None:
            return f"{name}: no {what} in the results"
        if value <= self.at_most:
            return None
        return (f"{name}: {what} is {value:.4g}, {value - self.at_most:.4g} above the bar of "
                f"{self.at_most:g}")


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
