import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import check_known_faults  # noqa: E402

HEAD = "# Faults\n\nWords.\n\n| fault | seen in | kept out by |\n|---|---|---|\n"
SOURCE = """
TEST_CASE("a block waits, and is \\"quiet\\"") {}
TEST_CASE(
    "a name that is longer "
    "than a line") {}
TEST_CASE_TEMPLATE_DEFINE("a block of any kind", Kind, kinds) {}
"""


class CheckKnownFaults(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.write("test/pool/a.cpp", SOURCE)
        self.write("test/gpu/b.py", "class B:\n    def test_that_it_holds(self):\n        pass\n")
        self.write("test/process/c.cpp", "int main() {}\n")
        self.write("test/process/CMakeLists.txt", 'add_it(c c.cpp\n  "pools of ${memory} memory end")')

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def check(self, *cells):
        self.write("docs/known-faults.md",
                   HEAD + "".join(f"| it goes wrong | there | {cell} |\n" for cell in cells))
        return check_known_faults.check(self.root)

    def test_tests_that_are_there_are_found(self):
        self.assertEqual(self.check(
            "`test/pool/a.cpp`: *a name that is longer than a line*, *a block of any kind*, "
            "*a block waits, and is \"quiet\"*; "
            "`test/gpu/b.py`: *test_that_it_holds*",
            "`test/process/c.cpp`: *pools of host memory end*"), [])

    def test_a_test_that_is_not_there_is_found_with_its_line(self):
        self.assertEqual(self.check("`test/pool/a.cpp`: *a block of any kind*, *a block of no kind*"),
                         ['docs/known-faults.md:7: test/pool/a.cpp has no test "a block of no kind"'])

    def test_a_test_of_another_file_is_not_there(self):
        self.assertEqual(self.check("`test/gpu/b.py`: *a block of any kind*"),
                         ['docs/known-faults.md:7: test/gpu/b.py has no test "a block of any kind"'])

    def test_a_part_of_a_name_is_no_name(self):
        self.assertEqual(len(self.check("`test/pool/a.cpp`: *a block of any*")), 1)

    def test_a_file_that_is_not_there_is_found(self):
        self.assertEqual(self.check("`test/pool/gone.cpp`: *a block of any kind*"),
                         ["docs/known-faults.md:7: there is no test/pool/gone.cpp"])

    def test_a_program_has_only_the_sentences_that_are_said_of_it(self):
        self.write("test/process/d.cpp", "int main() {}\n")
        self.assertEqual(len(self.check("`test/process/c.cpp`: *pools of host memory begin*",
                                        "`test/process/d.cpp`: *pools of host memory end*")), 2)

    def test_a_row_without_a_test_is_found(self):
        self.assertEqual(self.check("trust us", "`test/pool/a.cpp`: it is well"),
                         ["docs/known-faults.md:7: names no test",
                          "docs/known-faults.md:8: names no test of test/pool/a.cpp"])

    def test_a_page_without_a_table_is_found(self):
        self.write("docs/known-faults.md", "# Faults\n")
        self.assertEqual(check_known_faults.check(self.root), ["docs/known-faults.md has no table"])


if __name__ == "__main__":
    unittest.main()
