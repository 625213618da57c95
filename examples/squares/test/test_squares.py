"""Tries squares from outside: test_squares.py PROGRAM. Exit status 77: there is no GPU for it."""

import json
import os
import pathlib
import pty
import resource
import subprocess
import sys
import tempfile
import unittest

PROGRAM = ""
ON_GPU = False
MIB = 2**20


def squares(*arguments, address_space=None, **more):
    """Runs the program, with at most `address_space` bytes of addresses where that is given."""
    def limit():
        if address_space is not None:
            resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))
    return subprocess.run([PROGRAM, *map(str, arguments)], text=True, check=False, timeout=250,
                          stdout=subprocess.PIPE, preexec_fn=limit,
                          stderr=more.pop("stderr", subprocess.PIPE), **more)


class Jobs(unittest.TestCase):
    def results(self, *arguments):
        """The JSON of a run, by allocator."""
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "squares.json"
            done = squares(*arguments, "--json", file)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            return {run["allocator"]: run for run in json.loads(file.read_text())["runs"]}

    @staticmethod
    def allocations(run):
        """Device allocations of each call, by job."""
        return {job["name"]: [call["device_allocations"] for call in job["calls"]]
                for job in run["jobs"]}

    def test_both_jobs_pass_with_both_allocators(self):
        done = squares("--n", 100_003)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        expected = ["1", "2", "3"] + [f"iter {i} passed" for i in range(1, 6)]
        lines = [line for line in done.stdout.splitlines() if line in expected]
        self.assertEqual(lines, 2 * expected)

    def test_with_the_pool_only_the_first_call_reaches_the_device(self):
        run = self.results("--n", 1_000_003)["pool"]
        fresh, in_place = (self.allocations(run)[job] for job in ("fresh buffers", "in place"))
        self.assertGreater(fresh[0], 0)
        self.assertEqual(fresh[1:] + in_place, 7 * [0])
        self.assertGreater(run["memory"]["hits"], 0)

    def test_by_default_each_fresh_buffer_reaches_the_device(self):
        run = self.results("--n", 1_000_003)["default"]
        self.assertEqual(self.allocations(run)["fresh buffers"], [2, 2, 2])
        self.assertEqual(run["memory"]["backend_allocations"], 7)

    def test_nothing_is_in_use_afterwards_and_the_sums_agree(self):
        for run in self.results("--n", 100_003).values():
            memory = run["memory"]
            self.assertEqual(memory["in_use"], 0)
            self.assertEqual(memory["held"], memory["in_use"] + memory["idle"])
            self.assertGreaterEqual(memory["peak_in_use"], 2 * 8 * 100_003)
            self.assertGreaterEqual(memory["peak_held"], memory["peak_in_use"])

    def test_one_allocator_and_other_rounds_can_be_chosen(self):
        for name in ("pool", "default"):
            runs = self.results("--n", 1, "--rounds", 2, "--allocator", name)
            self.assertEqual(list(runs), [name])
            self.assertEqual(len(self.allocations(runs[name])["in place"]), 2)

    def test_a_terminal_sees_a_bar(self):
        terminal, end = pty.openpty()
        done = squares("--n", 1000, stderr=end)
        os.close(end)
        shown = os.read(terminal, 65536).decode()
        os.close(terminal)
        self.assertEqual(done.returncode, 0)
        self.assertIn("] 1 of 16: default, fresh buffers, call 2", shown)
        self.assertNotIn("[", done.stdout)

    def test_help_names_every_option(self):
        done = squares("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for option in ("--n", "--rounds", "--allocator", "--memory-limit", "--json"):
            self.assertIn(option, done.stdout)


class Shortage(unittest.TestCase):
    def assert_failed(self, done, pattern):
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr.splitlines()[-1], pattern)

    def assert_given_back(self, done):
        self.assertIn("0 bytes of device memory are in use", done.stderr)

    def test_a_pool_too_small_for_the_first_buffer_says_so_with_its_numbers(self):
        done = squares("--n", 1_000_003, "--allocator", "pool", "--memory-limit", 2 * MIB)
        self.assert_failed(done, r"^squares: pagesift: out of (device|host) memory: requested "
                                 r"8000024 bytes; held 0, in use 0, idle 0, limit 2097152")
        self.assert_given_back(done)

    def test_a_pool_too_small_for_the_second_buffer_gives_the_first_back(self):
        done = squares("--n", 1_000_003, "--allocator", "pool", "--memory-limit", 10 * MIB)
        self.assert_failed(done, r"out of (device|host) memory: requested 8000024 bytes; "
                                 r"held [1-9]\d*, in use [1-9]")
        self.assert_given_back(done)

    def test_arrays_the_host_cannot_have_are_a_shortage_of_the_host(self):
        for n in (10**14, 2**60 - 1):
            done = squares("--n", n)
            self.assert_failed(done, "^squares: too little host memory: ")
            self.assertEqual(done.stderr.count("\n"), 1)

    def test_an_array_the_host_refuses_is_a_shortage_of_the_host(self):
        if ON_GPU:
            self.skipTest("CUDA needs more addresses than the test allows")
        done = squares("--n", 50_000_000, address_space=600 * MIB)
        self.assert_failed(done, "^squares: too little host memory: the host refuses an array")

    def test_a_refused_device_buffer_is_never_a_shortage_of_the_host_arrays(self):
        if ON_GPU:
            self.skipTest("CUDA needs more addresses than the test allows")
        for allocator, pattern in (
                ("default", "^squares: too little device memory: Thrust's default allocator has "
                            "not got 400000000 bytes"),
                ("pool", "^squares: pagesift: out of host memory: requested 400000000 bytes")):
            done = squares("--n", 50_000_000, "--allocator", allocator,
                           address_space=1100 * MIB)
            self.assert_failed(done, pattern)
            self.assert_given_back(done)


class BadInput(unittest.TestCase):
    def assert_refused(self, code, *arguments):
        done = squares(*arguments)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        self.assertRegex(done.stderr, r"\Asquares: [^\n]+\n\Z")

    def test_numbers_that_cannot_be_meant(self):
        for value in ("-1", "0", "3e30", "1.5", "ten", "", "99999999999999999999999", "0x10"):
            for option in ("--n", "--rounds", "--memory-limit"):
                with self.subTest(option=option, value=value):
                    self.assert_refused(2, option, value)

    def test_a_pool_smaller_than_one_page(self):
        self.assert_refused(2, "--memory-limit", 2 * MIB - 1)

    def test_unknown_words(self):
        self.assert_refused(2, "--allocator", "malloc")
        self.assert_refused(2, "--speed")
        self.assert_refused(2, "extra")

    def test_an_option_without_its_value(self):
        self.assert_refused(2, "--n")

    def test_a_file_that_cannot_be_written_is_found_before_the_work(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assert_refused(1, "--json", pathlib.Path(folder) / "none" / "squares.json")
            self.assert_refused(1, "--json", folder)


def main():
    global PROGRAM, ON_GPU
    PROGRAM = sys.argv.pop(1)
    ON_GPU = PROGRAM.endswith("_cuda")
    if ON_GPU and "no GPU can be used" in squares("--n", 1).stderr:
        print("there is no GPU here")
        sys.exit(77)
    unittest.main()


if __name__ == "__main__":
    main()
