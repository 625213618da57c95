"""Bars: bounds of what the benchmarks measured, kept as data. See bars.json."""

import fnmatch
import math

from measured import Key, Unusable, describe, finite, read_json


def read_bars(path):
    document = read_json(path)
    try:
        sets = document.get("sets", {})
        bars = [Bar(entry, sets) for entry in document["bars"]]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Unusable(f"{path}: is not a list of bars: {describe(error)}") from error
    if not bars:
        raise Unusable(f"{path}: holds no bar")
    return bars


def patterns_of(value, sets=None):
    """One pattern, a list of them, or the name of a set of them."""
    value = (sets or {}).get(value, value) if isinstance(value, str) else value
    patterns = [value] if isinstance(value, str) else value
    if not isinstance(patterns, list) or not patterns or not all(
            isinstance(pattern, str) for pattern in patterns):
        raise ValueError(f"{value!r} is not a pattern or a list of patterns")
    return patterns


def fits(name, patterns):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


class Missing(Exception):
    """What a bar compares with is not in the results; the message names it."""


class Bar:
    """A bound of one value of each benchmark that the bar covers. The value is that of a `counter`,
    else the time; as it is, or over that of

    baseline           this allocator in the same row
    fastest_of         the least among these allocators in the same row, all of which must be there;
                       `reaching` leaves out those whose counter does not
    argument_baseline  the same allocator and workload with this argument

    or, with flat, the largest time over the smallest of all arguments that the bar covers."""

    COMPARISONS = ("baseline", "fastest_of", "argument_baseline", "flat")
    FIELDS = {"workload", "allocator", "argument", "at_most", "at_least", "counter", "reaching",
              *COMPARISONS}

    def __init__(self, entry, sets):
        unknown = set(entry) - self.FIELDS
        if unknown:
            raise ValueError(f"a bar has no field '{sorted(unknown)[0]}'")
        comparisons = [name for name in self.COMPARISONS if name in entry]
        if len(comparisons) > 1 or not (comparisons or "counter" in entry):
            raise ValueError("a bar has a counter or one of " + ", ".join(self.COMPARISONS))
        if ("at_most" in entry) == ("at_least" in entry):
            raise ValueError("a bar has either at_most or at_least")
        if "reaching" in entry and "fastest_of" not in entry:
            raise ValueError("only fastest_of goes with reaching")
        self.pattern = Key(*(patterns_of(entry[field]) for field in Key._fields))
        self.bound = finite(entry["at_most" if "at_most" in entry else "at_least"])
        self.is_upper = "at_most" in entry
        self.counter = entry.get("counter")
        self.comparison = comparisons[0] if comparisons else None
        self.other = entry[self.comparison] if comparisons else None
        if self.comparison == "fastest_of":
            self.other = patterns_of(self.other, sets)
        reaching = entry.get("reaching")
        self.reaching = reaching and (reaching["counter"], finite(reaching["at_least"]))

    def covers(self, key):
        return all(fits(have, want) for have, want in zip(key, self.pattern))

    def failures(self, results):
        """One sentence for each benchmark that misses the bar."""
        keys = [key for key in results if self.covers(key)]
        if not keys:
            name = "/".join("|".join(patterns) for patterns in self.pattern)
            return [f"{name}: no such benchmark in the results"]
        if self.comparison == "flat":
            keys = list({(key.workload, key.allocator): key for key in keys}.values())
        return [failure for key in keys for failure in [self.failure(results, key)] if failure]

    def failure(self, results, key):
        name = "/".join(key)
        if results[key].error:
            return f"{name}: failed with: {results[key].error}"
        what = self.counter or "time"
        try:
            value = self.value(results, key)
            if self.comparison and value is not None:
                value, what = self.compared(results, key, value)
        except Missing as error:
            return f"{name}: no {error} in the results"
        if value is None:
            return f"{name}: no {what} in the results"
        excess = value - self.bound if self.is_upper else self.bound - value
        if excess <= 0:
            return None
        side = "above" if self.is_upper else "below"
        return f"{name}: {what} is {value:.4g}, {excess:.4g} {side} the bar of {self.bound:g}"

    def value(self, results, key):
        """The bar's value of one benchmark; None where it has none."""
        result = results.get(key)
        if result is None:
            return None
        if self.counter is None:
            return result.median or None
        return (result.counters if self.is_upper else result.smallest).get(self.counter)

    def compared(self, results, key, value):
        """The value over what it is compared with, and what that is called."""
        what = self.counter or "time"
        if self.comparison == "baseline":
            called = f"{what} over {self.other}'s"
            least = self.value(results, key._replace(allocator=self.other))
        elif self.comparison == "argument_baseline":
            called = f"{what} over that at {self.other}"
            least = self.value(results, key._replace(argument=self.other))
        elif self.comparison == "flat":
            called = f"{what} over the smallest of all arguments"
            values = [self.value(results, other) for other in results
                      if self.covers(other) and other[:2] == key[:2]]
            least = None if None in values else min(values)
            value = None if least is None else max(values)
        else:
            called = f"{what} over the least of {' '.join(self.other)}"
            least = self.least_other(results, key)
        if not least:
            raise Missing(called)
        return value / least, called

    def least_other(self, results, key):
        """The least value among the other allocators of a row; inf, to which nothing comes close,
        where none reaches what it must reach."""
        rivals = [other for other in results
                  if other._replace(allocator="") == key._replace(allocator="")
                  and other.allocator != key.allocator and fits(other.allocator, self.other)]
        for pattern in self.other:
            if not any(fits(other.allocator, [pattern]) for other in rivals):
                raise Missing(f"{pattern} to compare with")
        good = [other for other in rivals if self.counts(results[other])]
        values = [value for value in (self.value(results, other) for other in good)
                  if value is not None]
        return min(values, default=math.inf if self.reaching else None)

    def counts(self, result):
        if not self.reaching:
            return True
        counter, at_least = self.reaching
        return not result.error and result.smallest.get(counter, -math.inf) >= at_least
