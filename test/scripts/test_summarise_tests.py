import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import summarise_tests  # noqa: E402

PASSED = '<testcase name="good" status="run"><system-out/></testcase>'
FAILED = ('<testcase name="bad" status="fail"><failure message=""/>'
          '<system-out>first\nlast</system-out></testcase>')
SKIPPED = ('<testcase name="far" status="notrun">'
           '<skipped message="SKIP_RETURN_CODE=77"/></testcase>')
NOT_BUILT = ('<testcase name="absent" status="notrun">'
             '<skipped message="Unable to find executable: absent"/></testcase>')


class SummariseTests(unittest.TestCase):
    def summarise(self, *files):
        """The lines printed and the exit code for JUnit files with these test cases."""
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for number, cases in enumerate(files):
                path = Path(folder) / f"{number}.xml"
                path.write_text(f"<testsuite>{''.join(cases)}</testsuite>")
                paths.append(str(path))
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                code = summarise_tests.main(paths)
        return printed.getvalue().splitlines(), code

    def test_files_are_summed(self):
        lines, code = self.summarise([PASSED, SKIPPED], [PASSED, PASSED])
        self.assertEqual(lines, ["3 passed, 0 failed, 1 skipped"])
        self.assertEqual(code, 0)

    def test_a_failed_test_is_shown_and_fails(self):
        lines, code = self.summarise([PASSED, FAILED])
        self.assertIn("failed: bad", lines[0])
        self.assertEqual(lines[1:3], ["    first", "    last"])
        self.assertEqual(lines[-1], "1 passed, 1 failed, 0 skipped")
        self.assertEqual(code, 1)

    def test_a_program_that_was_not_built_is_no_skipped_test(self):
        lines, code = self.summarise([PASSED, NOT_BUILT])
        self.assertEqual(lines[-1], "1 passed, 1 failed, 0 skipped")
        self.assertEqual(code, 1)

    def test_no_test_that_ran_fails(self):
        self.assertEqual(self.summarise([]), (["0 passed, 0 failed, 0 skipped"], 1))
        self.assertEqual(self.summarise([SKIPPED]), (["0 passed, 0 failed, 1 skipped"], 1))


if __name__ == "__main__":
    unittest.main()
