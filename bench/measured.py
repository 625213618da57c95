"""Reads results of Google Benchmark whose benchmarks are named workload/allocator/argument."""

import json
import math
import re
import statistics
from collections import namedtuple

# What Google Benchmark adds to a name that the benchmark did not choose.
SUFFIX = re.compile(r"/(manual_time|real_time|process_time"
                    r"|(repeats|threads|min_time|min_warmup_time|iterations):[^/]*)")
NANOSECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
COUNTERS = ("device_allocations", "held_bytes", "peak_bytes", "hit_rate", "peak_live_bytes",
            "held_per_peak_live", "held_per_live", "utilisation", "request_failed", "out_of_time",
            "worst_gap_us", "p999_gap_us", "gaps", "whole_ns")

Key = namedtuple("Key", "workload allocator argument")


class Unusable(Exception):
    """The input cannot be used; the message says why in one sentence."""


class Result:
    """The median of one benchmark in ns, its spread as a share of the median, and its counters:
    each one's largest and smallest value over the repetitions, since one bad one must show.
    Aggregates have no such values; of them both are the median."""

    def __init__(self, median=None, spread=None, counters=None, smallest=None, error=None):
        self.median = median
        self.spread = spread
        self.counters = counters or {}
        self.smallest = smallest or self.counters
        self.error = error


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
        return Result(statistics.median(times), spread_of(times), counters_of(repetitions, max),
                      counters_of(repetitions, min))
    return from_aggregates({run["aggregate_name"]: run for run in runs})


def from_aggregates(aggregates):
    median = aggregates["median"]
    cv = aggregates.get("cv")
    spread = finite(cv["real_time"]) if cv else None
    return Result(nanoseconds(median), spread, counters_of([median], max))


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


def counters_of(runs, choose):
    return {name: choose(finite(run[name]) for run in runs)
            for name in COUNTERS if all(name in run for run in runs)}
