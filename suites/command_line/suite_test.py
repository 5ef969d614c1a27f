# SPDX-License-Identifier: Apache-2.0
"""`tutti run --suite` and `--list`, and the progress of a run."""
import pathlib
import re
import tempfile
import unittest

import support


class Suite(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="tutti-suite-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)

    def suite(self, text):
        path = self.folder / "suite.toml"
        path.write_text(text)
        return path

    def listed(self, *arguments):
        """The cells that --list prints, and its last line."""
        result = support.run("run", *arguments, "--backends", "tutti", "--list")
        self.assertEqual(result.code, 0, result.err)
        lines = result.out.splitlines()
        return [line.split()[0] for line in lines if not line.startswith("#")], lines[-1]

    def test_what_is_listed_is_what_runs(self):
        path = self.suite('[[sweep]]\ncollectives = ["all_reduce", "barrier"]\nsizes = ["8", "1K"]\n'
                          '[[sweep]]\ncollectives = "all_reduce"\nsizes = "8"\ndtypes = "int32"\n')
        cells, last = self.listed("--suite", path)
        self.assertEqual(len(cells), 4)
        self.assertRegex(last, r"# 4 cells, 4 cases, one launch: about .* s, at most .* s")
        rows = self.folder / "rows.csv"
        ran = support.run("run", "--suite", path, "--backends", "tutti", "--budget", "500ms", "--csv", rows,
                          "--quiet")
        self.assertEqual(ran.code, 0, ran.err)
        self.assertEqual(sorted(re.sub(r"/tutti\.[a-z_]+", "", row["case"])
                                for row in support.read_csv(rows)[1]), sorted(cells))

    def test_the_command_line_wins(self):
        path = self.suite('[[sweep]]\ncollectives = ["all_reduce", "broadcast"]\nsizes = ["8", "1K"]\n')
        self.assertEqual([cell.split("/")[6] for cell in self.listed("--suite", path, "--sizes", "64K")[0]], ["65536B"] * 2)
        self.assertEqual({cell.split("/")[0] for cell in self.listed("broadcast", "--suite", path)[0]}, {"broadcast"})
        self.assertEqual({cell.split("/")[2] for cell in self.listed("--suite", path, "--dtypes", "double")[0]}, {"double"})

    def test_named_cells_and_no_cell_twice(self):
        cell = "all_reduce/shm/float/sum/P2.processes/none/8B/out/private/isolated"
        path = self.suite(f'cells = ["{cell}"]\n[[sweep]]\ncollectives = "all_reduce"\nsizes = "8"\nranks = 2\n')
        self.assertEqual(self.listed("--suite", path)[0].count(cell), 1)
        refused = support.run("run", "--suite", path, "--sizes", "64", "--list")
        self.assertEqual(refused.code, 2)
        self.assertIn("--sizes", refused.err)

    def test_listing_runs_nothing(self):
        rows = self.folder / "none.csv"
        self.listed("all_reduce", "--csv", rows)
        self.assertFalse(rows.exists())

    def test_a_budget_is_the_estimate(self):
        self.assertIn("at most 7 s, the budget", self.listed("all_reduce", "--sizes", "8", "--budget", "7s")[1])

    def test_the_suites_of_the_project(self):
        for name, least in [("quick.toml", 20), ("long.toml", 200), ("gate.toml", 30)]:
            cells, _ = self.listed("--suite", support.SOURCE / "suites" / name)
            self.assertGreater(len(cells), least)
            self.assertEqual(len(set(cells)), len(cells))

    def test_bad_input(self):
        for text, words in [("", "it has no cells"), ('[[sweep]]\nsize = "8"\n', "line 2: unknown key 'size': did you mean 'sizes'?"),
                            ('[[sweep]]\nsizes = "8x"\n', "line 1: sizes"), ("[[sweep]\n", "line 1"),
                            ('[[sweep]]\nranks-as = "threads"\n[[sweep]]\nsizes = "8"\n', "ranks of one kind")]:
            with self.subTest(text):
                result = support.run("run", "--suite", self.suite(text), "--ranks", "2", "--backends", "tutti", "--list")
                self.assertEqual(result.code, 2, result.out)
                self.assertIn("suite.toml", result.err)
                self.assertIn(words, result.err)
        result = support.run("run", "--suite", self.folder / "nowhere.toml")
        self.assertEqual(result.code, 2)
        self.assertIn("nowhere.toml", result.err)
        result = support.run("run", "--suite", self.suite("[[sweep]]\n"), "--case", "x")
        self.assertEqual(result.code, 2)


class Progress(unittest.TestCase):
    def test_without_a_terminal_a_short_run_has_one_line(self):
        result = support.run("run", "all_reduce", "--backends", "tutti", "--ranks", "2", "--sizes", "8,64,512", "--budget", "1s")
        lines = [line for line in result.err.splitlines() if line.startswith("[")]
        self.assertEqual(len(lines), 1, result.err)
        self.assertRegex(lines[0], r"^\[1/3\] all_reduce 8 P=2, about 0|^\[1/3\] all_reduce 8 P=2")


if __name__ == "__main__":
    unittest.main()
