# SPDX-License-Identifier: Apache-2.0
"""The page of `tutti accept`, drawn by the program from pretended clusters: what is on it at 8, 64, 512 and 1,024 nodes, and with rails."""
import os
import pathlib
import subprocess
import tempfile
import unittest

from page_test import Reader

FAULT = '[[fault]]\nwhat = "{}"\nnode = "{}"\nshare = "40%"\n'


class AcceptPage(unittest.TestCase):
    def page(self, cluster):
        with tempfile.TemporaryDirectory(prefix="tutti-page-") as folder:
            file, page = pathlib.Path(folder) / "cluster.toml", pathlib.Path(folder) / "page.html"
            file.write_text(cluster)
            result = subprocess.run([os.environ["TUTTI_PROGRAM"], "accept", "--pretend", file, "--html", page, "--quiet"], capture_output=True,
                                    text=True, check=False)
            self.assertTrue(page.exists(), result.stderr)
            return Reader(page.read_text())

    def figures(self, page):
        return [attributes["id"] for tag, attributes in page.tags if tag == "figure"]

    def test_a_suspect_has_its_tests_over_time(self):
        page = self.page("nodes = 64\nseed = 3\n" + FAULT.format("nic-out", "node5"))
        self.assertEqual(self.figures(page)[:2], ["matrix", "time-0"])
        [label] = [label for label in page.labels if " tests of node5 in the order of time" in label]
        self.assertRegex(label, r"^\d+ tests of node5 .* the first pass in 8 windows, then \d+ visits of repeats\. Their median is ")
        self.assertIn("Suspects over time", page.headings)

    def test_a_healthy_cluster_has_no_suspect(self):
        page = self.page("nodes = 8\n")
        self.assertEqual(self.figures(page), ["matrix"])
        self.assertNotIn("Suspects over time", page.headings)

    def test_many_nodes_have_cells_of_leaves(self):
        page = self.page("nodes = 512\nleaf = 32\n" + FAULT.format("nic-out", "node5"))
        self.assertEqual(self.figures(page), ["matrix", "time-0"])
        self.assertRegex(page.labels[0], r"^A square of 16 leaves by as many, with a mark for each of 512 nodes beside it\. ")

    def test_a_thousand_nodes_have_a_page_whose_excluded_ones_have_their_reasons(self):
        page = self.page("nodes = 1024\nleaf = 32\n" + FAULT.format("nic-out", "node5") + FAULT.format("nic-in", "node700"))
        self.assertEqual(self.figures(page)[0], "matrix")
        self.assertIn("node5: nic-out", page.text)
        self.assertIn("node700: nic-in", page.text)
        self.assertIn("Links of node5 and node700 are UNTESTED: what is slow there hides them.", page.text)

    def test_each_rail_has_a_matrix_and_a_line_of_each_node(self):
        page = self.page('nodes = 8\nrails = ["ib0", "ib1"]\n' + FAULT.format("nic-out", "node5") + 'rail = "ib1"\n')
        self.assertEqual(self.figures(page), ["matrix-0", "matrix-1", "time-0"])
        self.assertIn("node5 on rail ib1: its tests over time", page.text)
        lines = [row[:4] for row in page.rows if row[:1] == ["node5"]]
        self.assertEqual(lines, [["node5", "ib1", lines[0][2], "FAIL"], ["node5", "ib0", lines[0][2], "PASS"]])


if __name__ == "__main__":
    unittest.main()
