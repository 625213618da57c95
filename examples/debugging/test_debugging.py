"""Makes each mistake with and without checks: test_debugging.py PROGRAM."""

import os
import signal
import subprocess
import sys
import unittest

PROGRAM = ""
REPORTS = {
    "overrun": "something wrote behind the end of 0x",
    "wrong_size": "was freed with a size of 999 bytes; the block has 1000 bytes",
    "double_free": "was freed twice; the block has 1000 bytes",
    "use_after_free": "8 bytes are wrong, the first at offset 0; the block has 1000 bytes",
}


def make(mistake, checks):
    environment = {**os.environ, "PAGESIFT_CHECKS": checks}
    return subprocess.run([PROGRAM, mistake], env=environment, capture_output=True, text=True,
                          check=False, timeout=60)


class Debugging(unittest.TestCase):
    def test_each_mistake_is_reported_and_ends_the_program(self):
        for mistake, words in REPORTS.items():
            with self.subTest(mistake=mistake):
                done = make(mistake, "full")
                self.assertEqual(done.returncode, -signal.SIGABRT)
                self.assertEqual(done.stderr.count("pagesift: "), 1)
                self.assertIn(words, done.stderr)
                self.assertIn("noticed at:", done.stderr)
                self.assertNotIn("done", done.stdout)

    def test_call_stacks_name_the_functions_of_the_program(self):
        text = make("double_free", "full").stderr
        self.assertIn("(main+", text)
        self.assertIn("pagesift::basic_pool<pagesift::host_backend>::", text)

    def test_a_leak_is_reported_and_the_program_goes_on(self):
        done = make("leak", "full")
        self.assertEqual((done.returncode, done.stdout), (0, "done\n"))
        self.assertIn("is still in use; the block has 1000 bytes", done.stderr)

    def test_right_use_is_not_reported(self):
        done = make("none", "full")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "done\n", ""))

    def test_without_full_checks_nothing_is_said(self):
        for mistake in ("leak", "overrun", "wrong_size", "double_free"):
            with self.subTest(mistake=mistake):
                done = make(mistake, "standard")
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "done\n", ""))

    def test_checks_that_do_not_exist_are_refused(self):
        done = make("none", "everything")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "pagesift: the environment variable PAGESIFT_CHECKS must be "
                                      "one of standard, trusted, full, got everything\n")


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=2)
