"""Runs the benchmark program given first, shortly, and looks at what its workloads report.

Exit status 77 where the program finds no GPU: the test is then skipped.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1) if len(sys.argv) > 1 else None
NO_GPU = "no GPU can be used"


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False)


def results_of(pattern):
    """The repetitions of the benchmarks whose names fit, by workload/allocator."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "results.json"
        done = run(f"--benchmark_filter={pattern}", "--benchmark_repetitions=1",
                   "--benchmark_min_time=0.001", f"--benchmark_out={path}")
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        found = {}
        for result in json.loads(path.read_text())["benchmarks"]:
            if result["run_type"] == "iteration":
                found.setdefault("/".join(result["name"].split("/")[:2]), []).append(result)
        return found


class ProgramTest(unittest.TestCase):
    def benchmarks(self, pattern):
        """Of each benchmark that did not fail, all repetitions; pagesift's must not fail."""
        good = {}
        for name, runs in results_of(pattern).items():
            if "/pagesift" in name:
                self.assertEqual([r["error_message"] for r in runs if "error_message" in r], [])
            if not any("error_message" in r for r in runs):
                good[name] = runs
        self.assertGreaterEqual(len(good), 2)
        return good


class Workloads(ProgramTest):
    def test_a_pool_told_what_to_reserve_holds_it_and_asks_for_nothing_more(self):
        for result in self.benchmarks("^random/.*/64MiB")["random/pagesift"]:
            self.assertEqual(result["device_allocations"], 0)
            self.assertGreaterEqual(result["held_bytes"], 8e9)

    def test_a_cold_pool_holds_at_least_what_is_in_use(self):
        for name, runs in self.benchmarks("^random_cold/.*/64MiB").items():
            for result in runs:
                with self.subTest(name=name):
                    self.assertGreaterEqual(result["held_per_peak_live"], 1)
                    self.assertGreater(result["peak_live_bytes"], 1e9)

    def test_a_cold_replay_is_made_once_by_each_allocator(self):
        for runs in self.benchmarks("^random_cold/.*/64MiB").values():
            self.assertEqual({r["iterations"] for r in runs}, {runs[0]["iterations"]})
            self.assertGreater(len(runs), 1)

    def test_utilisation_is_a_share_of_the_device(self):
        for name, runs in self.benchmarks("^utilisation/.*/64KiB_1GiB").items():
            for result in runs:
                with self.subTest(name=name):
                    self.assertGreater(result["utilisation"], 0.3)
                    self.assertLessEqual(result["utilisation"], 1)
                    if result["utilisation"] < 0.99 and not result["out_of_time"]:
                        self.assertEqual(result["request_failed"], 1)

    def test_the_smallest_sizes_reach_their_goal_and_tell_what_is_held_for_it(self):
        for result in self.benchmarks("^utilisation/.*/4KiB_4MiB")["utilisation/pagesift"]:
            self.assertEqual((result["request_failed"], result["out_of_time"]), (0, 0))
            self.assertGreaterEqual(result["held_per_live"], 1)
            self.assertNotIn("utilisation", result)

    def test_no_gap_is_longer_than_the_longest_nor_shorter_than_the_work(self):
        for name, runs in self.benchmarks("^stall/").items():
            for result in runs:
                with self.subTest(name=name):
                    self.assertGreaterEqual(result["gaps"], 2000)
                    self.assertGreaterEqual(result["p999_gap_us"], 9)
                    self.assertGreaterEqual(result["worst_gap_us"], result["p999_gap_us"])

    def test_what_does_not_run_is_left_out_with_a_reason(self):
        listed = run("--benchmark_list_tests").stdout.split()
        context = run("--benchmark_filter=^hot_pair/pagesift/256B", "--benchmark_min_time=0.001",
                      "--benchmark_repetitions=1").stderr
        for workload in ("random", "random_cold", "utilisation", "stall", "cross_stream"):
            for allocator in ("pagesift", "thrust_pool", "fixed_block"):
                runs = any(line.startswith(f"{workload}/{allocator}/") for line in listed)
                reason = f"left out: {workload}/{allocator}: " in context
                self.assertNotEqual(runs, reason, f"{workload}/{allocator}")


SAMPLE = pathlib.Path(__file__).resolve().parent.parent / "traces" / "thrust_counts.csv"


class Replay(ProgramTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, text):
        path = self.folder / "trace.csv"
        path.write_text(text)
        return path

    def replay(self, path):
        """The repetitions of pagesift's replay of the file."""
        out = self.folder / "results.json"
        done = run(f"--trace={path}", "--benchmark_filter=^replay/pagesift/",
                   "--benchmark_repetitions=1", "--benchmark_min_time=0.001",
                   f"--benchmark_out={out}")
        self.assertEqual(done.returncode, 0, done.stderr)
        runs = json.loads(out.read_text())["benchmarks"]
        self.assertNotIn("error_message", runs[0])
        self.assertEqual(runs[0]["name"].split("/")[2], path.stem)
        return runs

    def test_a_recorded_trace_can_be_replayed(self):
        for result in self.replay(SAMPLE):
            self.assertEqual(result["device_allocations"], 0)

    def test_a_replay_is_whole_and_frees_at_the_end_what_the_trace_left(self):
        path = self.write("op,id,bytes,stream\nallocate,a,100,0\nallocate,b,200,7\n\n")
        for result in self.replay(path):
            self.assertEqual(result["trace_operations"], 4)
            self.assertEqual(result["iterations"] % 4, 0)

    def test_a_log_of_rmm_can_be_replayed(self):
        self.replay(self.write("Thread,Time,Action,Pointer,Size,Stream\n"
                               "1,10:00:00:000001,allocate,0x7f00,4096,0x0\n"
                               "1,10:00:00:000002,allocate failure,(nil),99999999999999,0x0\n"
                               "2,10:00:00:000003,allocate,0x7f10,100,0x55\n"
                               "1,10:00:00:000004,free,0x7f00,4096,0x55\n"
                               "1,10:00:00:000005,allocate,0x7f00,8192,0x0\n"))

    def assert_refused(self, path, message):
        done = run(f"--trace={path}", "--benchmark_filter=^replay/")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn(message, done.stderr)

    def test_a_file_that_cannot_be_used_is_refused_in_one_sentence(self):
        header = "op,id,bytes,stream\n"
        first = header + "allocate,a,1,0\n"
        for text, message in (
                ("", "the file is empty"),
                (header, "holds no request"),
                ("op,id,stream\n", "line 1: the header has no column 'bytes'"),
                (first + "grow,a,1,0\n", "line 3: 'grow' is neither allocate nor free"),
                (header + "allocate,a,many,0\n", "line 2: 'many' is not a number of bytes"),
                (header + "allocate,a,12x,0\n", "line 2: '12x' is not a number of bytes"),
                (header + "allocate,a,-1,0\n", "line 2: '-1' is not a number of bytes"),
                (header + "allocate,a,99999999999999999999,0\n", "is not a number of bytes"),
                (header + "allocate,a\n", "line 2: it has 2 fields, fewer than the header"),
                (header + "free,a,1,0\n", "line 2: block 'a' is not in use"),
                (first + "allocate,a,1,0\n", "line 3: block 'a' is in use already")):
            with self.subTest(message=message):
                self.assert_refused(self.write(text), message)

    def test_a_file_that_is_not_there_is_refused(self):
        self.assert_refused(self.folder / "none.csv", "cannot be opened")


if __name__ == "__main__":
    if NO_GPU in run("--benchmark_filter=^none$").stderr:
        print(NO_GPU)
        sys.exit(77)
    unittest.main()
