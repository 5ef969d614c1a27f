# SPDX-License-Identifier: Apache-2.0
"""`tutti draw`: pictures of schedules, in the terminal and as SVG."""
import collections
import json
import pathlib
import re
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

import support

TEXT = "{http://www.w3.org/2000/svg}text"
RECT = "{http://www.w3.org/2000/svg}rect"


class Draw(unittest.TestCase):
    def draw(self, *arguments):
        result = support.run("draw", *arguments)
        self.assertEqual((result.code, result.err), (0, ""), result)
        return result.out

    def texts(self, *arguments):
        """What is written in the picture."""
        return [element.text or "" for element in ElementTree.fromstring(self.draw(*arguments, "--svg", "-")).iter(TEXT)]

    def test_every_algorithm_fits_80_columns_and_is_a_picture(self):
        algorithms = json.loads(support.run("list", "--json").out)["algorithms"]
        self.assertGreater(len(algorithms), 50)
        for item in algorithms:
            with self.subTest(**item):
                arguments = [item["collective"], "--algorithm", item["name"], "--ranks", "6"]
                page = self.draw(*arguments)
                self.assertTrue(page.startswith(f"{item['collective']} {item['name']} on 6 ranks"), page)
                self.assertLessEqual(max(map(len, page.splitlines())), 80)
                for rank in range(6):
                    self.assertRegex(page, rf"(?m)^rank {rank}\b")
                written = self.texts(*arguments)
                for rank in range(6):
                    self.assertIn(f"rank {rank}", written)

    def test_a_ring_shows_where_each_sum_goes(self):
        page = self.draw("all_reduce", "--algorithm", "ring", "--ranks", "4")
        self.assertRegex(page, r"rank 0   \.\.\.\. .*a\* b\* c\* d\*\n         a:0>1  d:0,3>1  c:0,2,3>1  b\*>1")
        written = self.texts("all_reduce", "--algorithm", "ring", "--ranks", "4")
        self.assertEqual(written.count("round 6"), 1)
        self.assertIn("d 0+3", written)
        self.assertIn("\u03a3d", written)

    def test_root_hosts_and_counts(self):
        self.assertRegex(self.draw("broadcast", "--algorithm", "knomial", "--ranks", "3", "--root", "2"), r"(?m)^rank 2   data")
        self.assertIn("host 1", self.texts("all_reduce", "--algorithm", "two_level", "--ranks", "6", "--hosts", "2"))
        self.assertRegex(self.draw("all_gather", "--algorithm", "two_level", "--ranks", "4", "--hosts", "2"), r"(?m)^host 1\nrank 2")
        nested = ["broadcast", "--algorithm", "nested", "--ranks", "5", "--ranks-per-cache", "2"]
        self.assertIn("cache 2", self.texts(*nested))
        self.assertRegex(self.draw(*nested), r"broadcast nested on 5 ranks, 3 caches, root 0(.|\n)*\ncache 2\nrank 4")
        self.assertIn("Blocks of 200, 0, 200, 0 elements (zeros).",
                      " ".join(self.draw("gather_v", "--ranks", "4", "--counts", "zeros").split()))

    def widths(self, *arguments):
        """How many boxes have which width."""
        boxes = [element for element in ElementTree.fromstring(self.draw(*arguments, "--svg", "-")).iter(RECT)
                 if element.get("height") == "20"]
        return collections.Counter(float(box.get("width")) for box in boxes)

    def test_counts_are_lengths_of_boxes(self):
        arguments = ["all_gather_v", "--algorithm", "halving", "--ranks", "4", "--counts"]
        ramp = self.widths(*arguments, "ramp")  # an input, and an output of 4 ranks after each of 2 rounds
        self.assertEqual([ramp[width] for width in [20, 40, 60, 80]], [9] * 4, ramp)
        zeros = self.widths(*arguments, "zeros")
        self.assertEqual((zeros[100], sum(zeros.values())), (18, 18), zeros)
        written = self.texts(*arguments, "ramp")
        for text in ["a: 40", "c, d: 280", "A box is as long as its block. On an arrow: how many elements it carries."]:
            self.assertIn(text, written)
        self.assertIn("An upright line: a block without elements.", " ".join(self.texts(*arguments, "zeros")))
        self.assertEqual(len(self.widths("all_gather_v", "--algorithm", "halving", "--ranks", "4")), 1)
        page = self.draw("gather_v", "--algorithm", "linear", "--ranks", "4", "--counts", "ramp")
        self.assertRegex(page, r"(?m)^rank 0 .*  aa bbbbb ccccccc dddddddddd$")

    def test_many_ranks_are_an_overview(self):
        written = self.texts("all_reduce", "--algorithm", "halving", "--ranks", "4096")
        self.assertIn("1024-2047", written)
        self.assertIn("round 24", written)
        page = self.draw("all_to_all", "--algorithm", "pairwise", "--ranks", "4096")
        self.assertIn("64 of the 4096 ranks", page)
        self.assertLessEqual(max(map(len, page.splitlines())), 80)

    def test_a_gallery_of_all(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name, "new")
            self.draw("all", "--svg", folder)
            page = (folder / "index.html").read_text()
            shown = re.findall(r'src="([^"]*)"', page)
            self.assertEqual(sorted(shown), sorted(str(path.relative_to(folder)) for path in folder.glob("*/*.svg")))
            self.assertEqual((folder / "all_reduce/ring.svg").read_bytes(),
                             (support.SOURCE / "impl/algorithms/all_reduce/ring.svg").read_bytes())

    def test_mistakes_name_the_value_and_what_is_right(self):
        for arguments, words in [
                (["all_reduce", "--algorithm", "rign"], ["'rign'", "did you mean 'ring'?"]),
                (["all_reduce", "--ranks", "0"], ["--ranks", "'0'", "1 to 100000"]),
                (["bandwidth", "--ranks", "1"], ["--ranks", "'1'", "2 to 100000"]),
                (["broadcast", "--ranks", "4", "--root", "4"], ["--root", "'4'", "0 to 3"]),
                (["all_reduce", "--root", "1"], ["all_reduce has no root"]),
                (["all_gather", "--counts", "ramp"], ["all_gather has no counts"]),
                (["all_gather_v", "--counts", "rmap"], ["--counts", "'rmap'", "'ramp'"]),
                (["all_reduce", "--ranks", "6", "--hosts", "4"], ["'4' hosts", "divisors of 6", "'3'"]),
                (["all"], ["--svg DIR"]),
                (["all", "--ranks", "4", "--svg", "x"], ["--ranks"]),
                (["all_reduce", "--svg", "/nowhere/x.svg"], ["'/nowhere/x.svg'"])]:
            with self.subTest(arguments):
                result = support.run("draw", *arguments)
                self.assertEqual((result.code, result.out), (2, ""), result)
                for word in words:
                    self.assertIn(word, result.err)


if __name__ == "__main__":
    unittest.main()
