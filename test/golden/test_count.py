"""count.py with a valgrind that counts what it is told to."""
import contextlib
import io
import json
import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))
import count  # noqa: E402

# Start-up of 1,000,000 instructions; each pair costs what COST says, and the large block 10 more.
FAKE_VALGRIND = """#!/bin/sh
[ -n "$COST" ] || { echo "valgrind is broken"; exit 1; }
out=${2#--callgrind-out-file=}
pair=$COST
[ "$5" -lt 1000000 ] || pair=$((COST + 10))
echo "totals: $((1000000 + pair * $6))" >"$out"
"""
KEY = "GNU 1.2.3 x86_64 Release"


class CountTests(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.counts = self.folder / "counts.json"
        valgrind = self.folder / "valgrind"
        valgrind.write_text(FAKE_VALGRIND)
        valgrind.chmod(0o755)

    def run_count(self, cost, *more, path=None):
        """What is printed and the exit code where each pair costs `cost` instructions."""
        environment = {"COST": str(cost), "PATH": path or f"{self.folder}:{os.environ['PATH']}"}
        printed = io.StringIO()
        with mock.patch.dict(os.environ, environment), contextlib.redirect_stdout(printed):
            code = count.main(["--program", "hot_pair", "--counts", str(self.counts),
                               "--key", KEY, *more])
        return printed.getvalue(), code

    def test_start_up_is_not_counted(self):
        _, code = self.run_count(300, "--update")
        self.assertEqual(code, 0)
        self.assertEqual(json.loads(self.counts.read_text())[KEY], {
            "host 4 KiB": 300, "host 64 MiB": 310,
            "simulated 4 KiB": 300, "simulated 64 MiB": 310})

    def test_an_update_keeps_the_figures_of_other_compilers(self):
        self.counts.write_text('{"other": {"host 4 KiB": 1}}')
        self.run_count(300, "--update")
        self.assertEqual(json.loads(self.counts.read_text())["other"], {"host 4 KiB": 1})

    def test_a_count_within_the_slack_passes(self):
        self.run_count(300, "--update")
        for cost in (286, 300, 314):
            self.assertEqual(self.run_count(cost)[1], 0, cost)

    def test_more_instructions_fail(self):
        self.run_count(300, "--update")
        printed, code = self.run_count(330)
        self.assertEqual(code, 1)
        self.assertIn("host 4 KiB: 330.0 instructions for each pair, 300.0 committed, +10.0 %",
                      printed)
        self.assertIn("more than the 5 % allowed", printed)

    def test_fewer_instructions_fail_until_the_figure_is_committed(self):
        self.run_count(300, "--update")
        printed, code = self.run_count(270)
        self.assertEqual(code, 1)
        self.assertIn("better; commit the new figure", printed)
        self.assertIn("--update", printed)
        self.run_count(270, "--update")
        self.assertEqual(self.run_count(270)[1], 0)

    def test_a_figure_that_was_never_committed_fails(self):
        self.counts.write_text(json.dumps({KEY: {"host 4 KiB": 300}}))
        printed, code = self.run_count(300)
        self.assertEqual(code, 1)
        self.assertIn("host 64 MiB: 310.0 instructions for each pair, none committed", printed)

    def test_an_unknown_compiler_is_skipped_and_its_figures_are_said(self):
        printed, code = self.run_count(300)
        self.assertEqual(code, 77)
        self.assertIn(f"no figures are committed for {KEY}", printed)
        self.assertIn('"host 4 KiB": 300.0', printed)
        self.assertIn("--update", printed)

    def test_without_valgrind_it_is_skipped(self):
        printed, code = self.run_count(300, path="/nowhere")
        self.assertEqual(code, 77)
        self.assertIn("no valgrind", printed)

    def test_a_run_that_valgrind_could_not_count_fails(self):
        with self.assertRaisesRegex(SystemExit, "valgrind is broken"):
            self.run_count("")


if __name__ == "__main__":
    unittest.main()
