import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import check_self_contained  # noqa: E402

# Put together here, so that this file itself names nothing outside, nor looks as if it did.
OUTSIDE = [
    "read /" + "root/notes.txt",
    "include(/" + "work/project/x.cmake)",
    "see `/" + "home/somebody/data`",
    "as in ../" + "../notes/design.md",
    "pip install -i https://" + "pypi." + "org/simple",
    "deb http://" + "deb." + "debian." + "org/debian bookworm main",
]
INSIDE = [
    "from /usr/local/cuda*",
    "build/" + "work/output",
    "${PREFIX}/" + "root/x",
    "../include/pagesift/pool/pool.hpp",
    "packages of Debian, and of PyPI",
]


class CheckSelfContained(unittest.TestCase):
    def test_what_is_outside_is_found_with_its_line(self):
        for line in OUTSIDE:
            self.assertEqual(check_self_contained.faults_in("first\n" + line, depth=1), [(2, line)])

    def test_what_is_inside_is_let_be(self):
        for line in INSIDE:
            self.assertEqual(check_self_contained.faults_in(line, depth=1), [])


if __name__ == "__main__":
    unittest.main()
