"""Tests of compare.py on small made-up results."""

import contextlib
import copy
import io
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import bars as bars_module  # noqa: E402  (after the path to it)
import compare  # noqa: E402

CONTEXT = {"date": "2026-11-30T10:00:00+00:00", "gpu": "NVIDIA Test", "driver": "1.2.3",
           "cuda": "13.0", "commit": "abc", "command": "./pagesift_bench_cuda"}


def repetition(name, time, unit="us", **more):
    return {"name": name, "run_name": name, "run_type": "iteration", "real_time": time,
            "cpu_time": time, "time_unit": unit, **more}


def aggregate(name, kind, time, unit="us", **more):
    return {"name": f"{name}_{kind}", "run_name": name, "run_type": "aggregate",
            "aggregate_name": kind, "real_time": time, "time_unit": unit, **more}


def sample():
    """pagesift takes 40 us where cuda_malloc takes 100 us and thrust_pool 50 us."""
    runs = []
    for name, times in (("pagesift", (38, 40, 300)), ("cuda_malloc", (99, 100, 101)),
                        ("thrust_pool", (50, 50, 50))):
        for time in times:
            runs.append(repetition(f"thrust_square/{name}/float_1000/manual_time", time,
                                   device_allocations=0.0))
    return {"context": CONTEXT, "benchmarks": runs}


class CompareTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, content):
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    def run_on(self, results, *arguments):
        """Exit status, output and error output of the script for `results`."""
        path = results if isinstance(results, str) else self.write("results.json", results)
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = compare.main([path, *arguments])
        return status, out.getvalue(), err.getvalue()

    def ratios(self, results, *arguments):
        status, out, _ = self.run_on(results, "--json", *arguments)
        self.assertEqual(status, 0)
        return {r["allocator"]: r for r in json.loads(out)["results"]}

    def check(self, results, *bars):
        return self.run_on(results, "--check", self.write("bars.json", {"bars": list(bars)}))


class Reading(CompareTest):
    def test_a_median_is_not_moved_by_one_slow_repetition(self):
        self.assertEqual(self.ratios(sample())["pagesift"]["median_ns"], 40_000)

    def test_spread_is_the_interquartile_range_over_the_median(self):
        self.assertAlmostEqual(self.ratios(sample())["cuda_malloc"]["spread"], 0.01)

    def test_ratios_are_to_the_chosen_baseline(self):
        self.assertAlmostEqual(self.ratios(sample())["pagesift"]["ratio"], 0.4)
        to_pool = self.ratios(sample(), "--baseline", "thrust_pool")
        self.assertAlmostEqual(to_pool["pagesift"]["ratio"], 0.8)

    def test_times_of_different_units_are_compared_in_one_unit(self):
        results = {"context": CONTEXT, "benchmarks": [
            repetition("random/pagesift/1MiB", 500, "ns"),
            repetition("random/cuda_malloc/1MiB", 1, "us")]}
        self.assertAlmostEqual(self.ratios(results)["pagesift"]["ratio"], 0.5)

    def test_aggregates_alone_are_enough(self):
        name = "hot_pair/pagesift/4KiB/real_time"
        results = {"context": CONTEXT, "benchmarks": [
            aggregate(name, "mean", 9), aggregate(name, "median", 8), aggregate(name, "cv", 0.05),
            aggregate("hot_pair/malloc/4KiB/real_time", "median", 16)]}
        ratios = self.ratios(results)
        self.assertEqual(ratios["pagesift"]["median_ns"], 8_000)
        self.assertEqual(ratios["pagesift"]["spread"], 0.05)
        self.assertEqual(ratios["pagesift"]["ratio"], 0.5)

    def test_what_google_benchmark_appends_to_a_name_is_no_part_of_it(self):
        results = {"context": CONTEXT, "benchmarks": [
            repetition("w/pagesift/1/min_time:0.050/repeats:3/manual_time/threads:4", 1)]}
        self.assertEqual(self.ratios(results)["pagesift"]["argument"], "1")

    def test_an_aggregate_that_is_not_a_number_does_not_matter(self):
        results = sample()
        results["benchmarks"].append(aggregate("thrust_square/pagesift/float_1000/manual_time",
                                               "cv", 0.1, device_allocations=float("nan")))
        self.assertEqual(self.ratios(results)["pagesift"]["counters"]["device_allocations"], 0)


class Printing(CompareTest):
    def test_the_table_has_medians_spread_and_ratios(self):
        status, out, _ = self.run_on(sample())
        self.assertEqual(status, 0)
        self.assertIn("NVIDIA Test", out)
        self.assertRegex(out, r"thrust_square +float_1000 +40\.0 us \(±\d+%, ×0\.40\)")

    def test_only_the_wanted_rows_are_shown(self):
        results = sample()
        results["benchmarks"].append(repetition("hot_pair/pagesift/4KiB", 1))
        _, out, _ = self.run_on(results, "--only", "hot_*")
        self.assertIn("hot_pair", out)
        self.assertNotIn("thrust_square", out)

    def test_a_counter_is_shown_with_its_largest_value(self):
        results = sample()
        results["benchmarks"][1]["device_allocations"] = 0.5
        results["benchmarks"].append(repetition("hot_pair/pagesift/4KiB", 1))
        status, out, _ = self.run_on(results, "--counter", "device_allocations")
        self.assertEqual(status, 0)
        self.assertRegex(out, r"thrust_square +float_1000 +0\.5 +0 +0\n")
        self.assertNotIn("hot_pair", out)

    def test_a_benchmark_that_failed_is_shown_as_failed(self):
        results = sample()
        for run in results["benchmarks"][:3]:
            run.update(error_occurred=True, error_message="std::bad_alloc")
        status, out, _ = self.run_on(results)
        self.assertEqual(status, 0)
        self.assertIn("failed", out)

    def test_arguments_are_in_the_order_of_their_size(self):
        names = ["256B", "4KiB", "100MiB", "800MB"]
        results = {"context": CONTEXT, "benchmarks": [
            repetition(f"hot_pair/pagesift/{name}", 1) for name in reversed(names)]}
        _, out, _ = self.run_on(results)
        self.assertEqual([line.split()[1] for line in out.splitlines() if "hot_pair" in line],
                         names)


class Bars(CompareTest):
    BAR = {"workload": "thrust_*", "argument": "*", "allocator": "pagesift"}

    def test_a_bar_that_holds_passes(self):
        status, out, _ = self.check(sample(), {**self.BAR, "baseline": "cuda_malloc",
                                               "at_most": 0.4})
        self.assertEqual((status, out), (0, "1 bars, 0 failures\n"))

    def test_a_bar_that_fails_says_which_and_by_how_much(self):
        status, out, _ = self.check(sample(), {**self.BAR, "baseline": "cuda_malloc",
                                               "at_most": 0.3})
        self.assertEqual(status, 1)
        self.assertIn("thrust_square/pagesift/float_1000: time over cuda_malloc's is 0.4, "
                      "0.1 above the bar of 0.3", out)

    def test_one_repetition_with_a_device_allocation_fails_its_bar(self):
        results = sample()
        results["benchmarks"][1]["device_allocations"] = 0.001
        bar = {**self.BAR, "counter": "device_allocations", "at_most": 0}
        self.assertEqual(self.check(sample(), bar)[0], 0)
        self.assertEqual(self.check(results, bar)[0], 1)

    def test_a_bar_without_results_fails(self):
        status, out, _ = self.check(sample(), {**self.BAR, "workload": "random",
                                               "baseline": "cuda_malloc", "at_most": 1})
        self.assertEqual(status, 1)
        self.assertIn("no such benchmark", out)

    def test_a_bar_whose_baseline_has_no_result_fails(self):
        results = sample()
        for run in results["benchmarks"][3:6]:
            run.update(error_occurred=True, error_message="std::bad_alloc")
        status, out, _ = self.check(results, {**self.BAR, "baseline": "cuda_malloc", "at_most": 1})
        self.assertEqual(status, 1)
        self.assertIn("no time over cuda_malloc's", out)

    def test_a_benchmark_that_failed_fails_its_bar_with_its_message(self):
        results = sample()
        results["benchmarks"][0].update(error_occurred=True, error_message="out of device memory")
        status, out, _ = self.check(results, {**self.BAR, "baseline": "cuda_malloc", "at_most": 1})
        self.assertEqual(status, 1)
        self.assertIn("out of device memory", out)

    def test_the_fastest_of_several_is_what_the_time_is_compared_with(self):
        bar = {**self.BAR, "fastest_of": ["cuda_*", "thrust_pool"]}
        self.assertEqual(self.check(sample(), {**bar, "at_most": 0.8})[0], 0)
        status, out, _ = self.check(sample(), {**bar, "at_most": 0.7})
        self.assertEqual(status, 1)
        self.assertIn("time over the least of cuda_* thrust_pool is 0.8", out)

    def test_the_fastest_of_all_is_another_allocator(self):
        status, out, _ = self.check(sample(), {**self.BAR, "fastest_of": "*", "at_most": 0.7})
        self.assertEqual(status, 1)
        self.assertIn("is 0.8", out)

    def test_a_set_of_allocators_has_a_name(self):
        bars = {"sets": {"peers": ["cuda_malloc"]},
                "bars": [{**self.BAR, "fastest_of": "peers", "at_most": 0.4}]}
        self.assertEqual(self.run_on(sample(), "--check", self.write("bars.json", bars))[0], 0)

    def test_an_allocator_to_compare_with_that_was_not_built_fails_the_bar(self):
        bar = {**self.BAR, "fastest_of": ["cuda_malloc", "rmm_*"], "at_most": 1}
        status, out, _ = self.check(sample(), bar)
        self.assertEqual(status, 1)
        self.assertIn("no rmm_* to compare with in the results", out)

    def test_one_of_several_may_have_failed(self):
        results = sample()
        results["benchmarks"][6].update(error_occurred=True, error_message="std::bad_alloc")
        bar = {**self.BAR, "fastest_of": ["cuda_malloc", "thrust_pool"], "at_most": 0.4}
        self.assertEqual(self.check(results, bar)[0], 0)

    def test_only_those_that_reach_a_counter_are_compared_with(self):
        results = sample()
        for run, reached in zip(results["benchmarks"], (1, 1, 1, .95, .9, .91, .95, .89, .95)):
            run["utilisation"] = reached
        bar = {**self.BAR, "fastest_of": "*", "at_most": 0.4}
        reaching = {"counter": "utilisation", "at_least": 0.9}
        self.assertEqual(self.check(results, bar)[0], 1)
        self.assertEqual(self.check(results, {**bar, "reaching": reaching})[0], 0)

    def test_where_nobody_reaches_the_counter_the_bar_holds(self):
        reaching = {"counter": "utilisation", "at_least": 0.9}
        bar = {**self.BAR, "fastest_of": "*", "reaching": reaching, "at_most": 0.001}
        self.assertEqual(self.check(sample(), bar)[0], 0)

    def test_the_largest_time_over_the_smallest_of_all_arguments_is_bounded(self):
        results = {"context": CONTEXT, "benchmarks": [
            repetition(f"hot_pair/{allocator}/{argument}", time) for allocator, argument, time in
            (("pagesift", "1B", 10), ("pagesift", "2B", 15), ("pagesift", "4B", 12), ("b", "1B", 1))]}
        bar = {"workload": "hot_pair", "allocator": "pagesift", "argument": "*", "flat": True}
        self.assertEqual(self.check(results, {**bar, "at_most": 1.5}), (0, "1 bars, 0 failures\n", ""))
        status, out, _ = self.check(results, {**bar, "at_most": 1.4})
        self.assertEqual((status, out.count("FAILED")), (1, 1))
        self.assertIn("time over the smallest of all arguments is 1.5, 0.1 above", out)

    def test_a_time_is_compared_with_that_at_another_argument(self):
        results = {"context": CONTEXT, "benchmarks": [
            repetition("threads/pagesift/1", 60), repetition("threads/pagesift/16", 10)]}
        bar = {"workload": "threads", "allocator": "pagesift", "argument": "16",
               "argument_baseline": "1"}
        self.assertEqual(self.check(results, {**bar, "at_most": 0.17})[0], 0)
        self.assertEqual(self.check(results, {**bar, "at_most": 0.16})[0], 1)

    def test_a_counter_may_have_to_be_reached_in_every_repetition(self):
        results = sample()
        for run, reached in zip(results["benchmarks"], (0.99, 0.97, 0.99)):
            run["utilisation"] = reached
        bar = {**self.BAR, "counter": "utilisation"}
        self.assertEqual(self.check(results, {**bar, "at_least": 0.97})[0], 0)
        status, out, _ = self.check(results, {**bar, "at_least": 0.98})
        self.assertEqual(status, 1)
        self.assertIn("utilisation is 0.97, 0.01 below the bar of 0.98", out)

    def test_counters_are_compared_like_times(self):
        results = sample()
        for run, gap in zip(results["benchmarks"], (50, 60, 50, 900, 1000, 900)):
            run["worst_gap_us"] = gap
        bar = {**self.BAR, "counter": "worst_gap_us", "baseline": "cuda_malloc"}
        self.assertEqual(self.check(results, {**bar, "at_most": 0.06})[0], 0)
        status, out, _ = self.check(results, {**bar, "at_most": 0.05})
        self.assertEqual(status, 1)
        self.assertIn("worst_gap_us over cuda_malloc's is 0.06", out)

    def test_a_bar_may_name_several_workloads(self):
        bar = {**self.BAR, "workload": ["random", "thrust_square"], "counter": "device_allocations"}
        self.assertEqual(self.check(sample(), {**bar, "at_most": 0})[0], 0)
        self.assertEqual(self.check(sample(), {**bar, "at_most": -1})[0], 1)

    def test_the_committed_bars_can_be_read(self):
        bars = bars_module.read_bars(str(pathlib.Path(compare.__file__).parent / "bars.json"))
        self.assertGreater(len(bars), 0)


class Readme(CompareTest):
    def test_only_what_stands_between_the_marks_is_rewritten(self):
        readme = self.write("README.md", f"before\n{compare.BEGIN_MARK}\nold\n"
                                         f"{compare.END_MARK}\nafter\n")
        self.assertEqual(self.run_on(sample(), "--readme", readme)[0], 0)
        text = pathlib.Path(readme).read_text()
        self.assertTrue(text.startswith(f"before\n{compare.BEGIN_MARK}\n"))
        self.assertTrue(text.endswith(f"{compare.END_MARK}\nafter\n"))
        self.assertNotIn("old", text)
        for part in ("NVIDIA Test", "1.2.3", "2026-11-30", "./pagesift_bench_cuda", "×0.40"):
            self.assertIn(part, text)

    def test_rewriting_twice_changes_nothing_more(self):
        readme = self.write("README.md", f"{compare.BEGIN_MARK}\n{compare.END_MARK}\n")
        self.run_on(sample(), "--readme", readme)
        once = pathlib.Path(readme).read_text()
        self.run_on(sample(), "--readme", readme)
        self.assertEqual(pathlib.Path(readme).read_text(), once)


class UnusableInput(CompareTest):
    def assert_unusable(self, results, message, *arguments):
        status, out, err = self.run_on(results, *arguments)
        self.assertEqual((status, out), (2, ""))
        self.assertEqual(err.count("\n"), 1)
        self.assertIn(message, err)

    def test_a_missing_file(self):
        self.assert_unusable(str(self.folder / "none.json"), "No such file")

    def test_a_file_that_is_not_json(self):
        self.assert_unusable(self.write("x.json", "{,"), "is not JSON")

    def test_a_file_that_is_not_text(self):
        path = self.folder / "x.json"
        path.write_bytes(b"\xff\xfe\x00")
        self.assert_unusable(str(path), "not text")

    def test_json_of_something_else(self):
        for document in ([], {}, {"context": {}}, 3, {"context": {}, "benchmarks": 3},
                         {"context": {}, "benchmarks": [{}]}, {"context": {}, "benchmarks": []}):
            with self.subTest(document=document):
                self.assert_unusable(document, "results.json")

    def test_a_benchmark_with_another_kind_of_name(self):
        self.assert_unusable({"context": {}, "benchmarks": [repetition("BM_memcpy/32", 1)]},
                             "workload/allocator/argument")

    def test_a_time_that_is_no_number_or_has_no_known_unit(self):
        for field, value in (("real_time", "fast"), ("real_time", None), ("time_unit", "weeks")):
            results = copy.deepcopy(sample())
            results["benchmarks"][0][field] = value
            with self.subTest(field=field, value=value):
                self.assert_unusable(results, "results.json")

    def test_an_unknown_baseline(self):
        self.assert_unusable(sample(), "not in the results", "--baseline", "jemalloc")

    def test_a_counter_that_is_not_there(self):
        self.assert_unusable(sample(), "no benchmark has the counter", "--counter", "hits")

    def test_rows_that_are_not_there(self):
        self.assert_unusable(sample(), "no benchmark fits", "--only", "sort/*")

    def test_bars_that_cannot_be_meant(self):
        good = {**Bars.BAR, "baseline": "cuda_malloc", "at_most": 1}
        for bars in ({}, {"bars": []}, {"bars": [{**good, "atmost": 1}]},
                     {"bars": [{**good, "at_most": "x"}]}, {"bars": [3]}, [],
                     {"bars": [{**good, "fastest_of": "*"}]}, {"bars": [{**good, "at_least": 1}]},
                     {"bars": [{**Bars.BAR, "at_most": 1}]}, {"bars": [{**good, "workload": 3}]},
                     {"bars": [{**good, "workload": []}]},
                     {"bars": [{**Bars.BAR, "fastest_of": 3, "at_most": 1}]},
                     {"bars": [{**good, "reaching": {"counter": "x", "at_least": 1}}]},
                     {"bars": [{**Bars.BAR, "fastest_of": "*", "at_most": 1,
                                "reaching": {"counter": "x"}}]}):
            with self.subTest(bars=bars):
                self.assert_unusable(sample(), "bars.json", "--check",
                                     self.write("bars.json", bars))

    def test_a_readme_without_marks(self):
        readme = self.write("README.md", "text\n")
        self.assert_unusable(sample(), "README.md", "--readme", readme)
        self.assertEqual(pathlib.Path(readme).read_text(), "text\n")

    def test_a_readme_that_is_not_there(self):
        self.assert_unusable(sample(), "README.md", "--readme", str(self.folder / "README.md"))


if __name__ == "__main__":
    unittest.main()
