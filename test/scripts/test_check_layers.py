import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import check_layers  # noqa: E402


class CheckLayers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.write("core/bytes.hpp")
        self.write("pool/pool.hpp", "core/bytes.hpp")
        self.write("pagesift.hpp", "pool/pool.hpp")

    def write(self, header, *included):
        path = self.root / header
        path.parent.mkdir(exist_ok=True)
        path.write_text("#include <cstddef>\n"
                        + "".join(f"#include <pagesift/{name}>\n" for name in included))

    def test_includes_that_go_down_are_right(self):
        self.assertEqual(check_layers.check(self.root), [])

    def test_an_upward_include_is_found(self):
        self.write("core/bytes.hpp", "pool/options.hpp")
        self.write("pool/options.hpp")
        self.assertEqual(check_layers.check(self.root),
                         ["core/bytes.hpp includes pool/options.hpp, which stands above it"])

    def test_an_include_of_the_umbrella_is_found(self):
        self.write("pool/options.hpp", "pagesift.hpp")
        self.assertEqual(check_layers.check(self.root),
                         ["pool/options.hpp includes pagesift.hpp, which stands above it"])

    def test_a_circle_within_a_layer_is_found(self):
        self.write("pool/a.hpp", "pool/b.hpp")
        self.write("pool/b.hpp", "pool/c.hpp")
        self.write("pool/c.hpp", "pool/a.hpp")
        self.assertEqual(check_layers.check(self.root),
                         ["a circle: pool/a.hpp -> pool/b.hpp -> pool/c.hpp -> pool/a.hpp"])

    def test_a_header_that_includes_itself_is_found(self):
        self.write("pool/a.hpp", "pool/a.hpp")
        self.assertEqual(check_layers.check(self.root), ["a circle: pool/a.hpp -> pool/a.hpp"])

    def test_an_unknown_layer_is_found(self):
        self.write("util/a.hpp")
        self.assertEqual(check_layers.check(self.root), ["there is no layer util"])

    def test_an_include_of_nothing_is_found(self):
        self.write("pool/a.hpp", "core/none.hpp")
        self.assertEqual(check_layers.check(self.root),
                         ["pool/a.hpp includes core/none.hpp, which does not exist"])

    def test_no_header_at_all_is_a_fault(self):
        self.assertNotEqual(check_layers.check(self.root / "nothing"), [])


if __name__ == "__main__":
    unittest.main()
