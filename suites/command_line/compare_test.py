# SPDX-License-Identifier: Apache-2.0
"""`tutti compare`: verdicts of two results, the exit code, and what cannot be compared."""
import csv
import pathlib
import tempfile
import unittest

import support


class Compare(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="tutti-compare-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.first = cls.folder / "first.csv"
        ran = support.run("run", "all_reduce,broadcast", "--backends", "tutti", "--sizes", "64K,1M", "--ranks", "2",
                          "--launches", "6", "--budget", "3s", "--csv", cls.first, "--quiet")
        assert ran.code == 0, ran.err
        # Its times are replaced by ones that no load of the machine changes: launches lie 0.2 % apart.
        cls.first = cls.changed("first.fixed.csv", cls.fixed)

    @staticmethod
    def fixed(row):
        """The row with a time that depends on its size and launch alone."""
        time = int(row["bytes"]) / 1000 * (1 + 0.002 * int(row["launch"]))
        return {**row, "time_median": repr(time), "time_ci_low": repr(time), "time_ci_high": repr(time), "line_ns": "90",
                "disturbed": ""}

    @classmethod
    def changed(cls, name, change):
        """A copy in which `change` was applied to each row as a dictionary; rows of None are left out."""
        with cls.first.open() as file:
            reader = csv.DictReader(file)
            rows = [row for row in map(change, reader) if row is not None]
        path = cls.folder / name
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, reader.fieldnames, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        return path

    def found(self, second, *arguments, code=0):
        """The judged cells by their case, and the output."""
        path = self.folder / "found.json"
        result = support.run("compare", self.first, second, "--json", path, *arguments)
        self.assertEqual(result.code, code, result.err)
        document = support.verdicts_of(path.read_text())
        self.assertEqual(sum(document["counts"].values()), len(document["cells"]))
        for cell in document["cells"]:
            self.assertIn(cell["cell"], result.out)
        return {cell["cell"]: cell for cell in document["cells"]}

    @staticmethod
    def times(row, factor, size=None):
        """The row with other times, as another run has them."""
        if size is None or row["bytes"] == str(size):
            for name in ("time_median", "time_ci_low", "time_ci_high"):
                row[name] = repr(float(row[name]) * factor) if row[name] else ""
        row["timestamp"] = "2030-01-01T00:00:00Z"
        return row

    def test_with_itself_all_is_same(self):
        cells = self.found(self.first, "--fail-on", "slower")
        self.assertEqual(len(cells), 4)
        for cell in cells.values():
            self.assertEqual((cell["verdict"], cell["ratio"]), ("same", 1.0))

    def test_slower_where_it_is_slower(self):
        second = self.changed("slower.csv", lambda row: self.times(row, 2.0, 1 << 20))
        for cell, found in self.found(second, "--fail-on", "slower", code=4).items():
            is_slower = "/1048576B/" in cell
            self.assertEqual(found["verdict"] == "slower", is_slower, cell)
            self.assertAlmostEqual(found["ratio"], 2.0 if is_slower else 1.0)
            self.assertLessEqual(found["low"], found["ratio"])
            self.assertGreaterEqual(found["high"], found["ratio"])
        self.found(second)  # without --fail-on the exit code is 0

    def test_faster_the_other_way(self):
        second = self.changed("faster.csv", lambda row: self.times(row, 0.5, 1 << 20))
        verdicts = {cell: found["verdict"] for cell, found in self.found(second).items()}
        self.assertEqual([cell for cell, verdict in verdicts.items() if verdict == "faster"],
                         [cell for cell in verdicts if "/1048576B/" in cell])

    def test_few_launches_are_undecided(self):
        second = self.changed("few.csv", lambda row: self.times(row, 1.0) if row["launch"] == "1" else None)
        for found in self.found(second).values():
            self.assertEqual(found["verdict"], "undecided")
            self.assertIn("--launches", found["reason"])

    def test_what_is_not_comparable_and_why(self):
        def change(row, **fields):
            return self.times({**row, **fields}, 1.0)

        for name, fields, words in [("state.csv", {"line_ns": "900"}, "round trip of a cache line"),
                                    ("cold.csv", {"cache": "cold"}, "cold"),
                                    ("wrong.csv", {"verdict": "wrong", "reason": "rank 1 differs"}, "rank 1 differs"),
                                    ("unchecked.csv", {"verdict": "unchecked"}, "not verified")]:
            second = self.changed(name, lambda row, fields=fields: change(row, **fields))
            with self.subTest(name):
                for found in self.found(second, code=3).values():
                    self.assertEqual(found["verdict"], "not comparable")
                    self.assertIn(words, found["reason"])
                    self.assertIsNone(found["ratio"])

    def test_what_one_side_has_not(self):
        second = self.changed("half.csv", lambda row: row if row["collective"] == "broadcast" else None)
        for cell, found in self.found(second).items():
            self.assertEqual(found["verdict"], "same" if cell.startswith("broadcast") else "not comparable")
            self.assertEqual("does not have it" in found["reason"], cell.startswith("all_reduce"))

    def test_nothing_compared_never_passes(self):
        renamed = self.changed("renamed.csv", lambda row: {**row, "case": row["case"].replace("/float/", "/double/"), "dtype": "double"})
        wrong = self.changed("all_wrong.csv", lambda row: {**row, "verdict": "wrong", "time_median": ""})
        for second, words, code in [(renamed, [], 3), (renamed, ["--fail-on", "slower"], 3), (wrong, [], 3),
                                    (wrong, ["--fail-on", "slower"], 3), (wrong, ["--fail-on", "slower,wrong"], 1)]:
            with self.subTest(second.name, words=words):
                result = support.run("compare", self.first, second, *words)
                self.assertEqual(result.code, code, result)
                self.assertIn("nothing was compared: no cell of" if code == 3 else "--fail-on wrong: 4 cells of", result.err)

    def test_what_a_comparison_fails_on(self):
        def some(change):
            """Changes the cells of broadcast alone."""
            return lambda row: change(row) if row["collective"] == "broadcast" else row

        sides = {"wrong": (some(lambda row: {**row, "verdict": "wrong" if row["launch"] == "2" else row["verdict"]}), 1),
                 "missing": (some(lambda row: None), 3),
                 "skipped": (some(lambda row: {**row, "verdict": "skipped", "reason": "no room"}), 3),
                 "slower": (some(lambda row: self.times(row, 3.0)), 4)}
        for name, (change, code) in sides.items():
            second = self.changed(f"some_{name}.csv", change)
            lost = "missing" if name == "skipped" else name
            for words in ["slower", "wrong", "missing", "slower,wrong,missing"]:
                with self.subTest(name, words=words):
                    fails = lost in words.split(",") or (name == "wrong" and words == "missing")
                    result = support.run("compare", self.first, second, "--fail-on", words)
                    expected = 0 if not fails else 3 if words == "missing" else code
                    self.assertEqual(result.code, expected, result)
                    self.assertEqual(f"--fail-on {'missing' if words == 'missing' else lost}: 2 cells of '{second}'" in result.err, fails, result)
            self.assertEqual(support.run("compare", self.first, second).code, 0)
        added = self.changed("fewer.csv", lambda row: row if row["collective"] == "broadcast" else None)
        self.assertEqual(support.run("compare", added, self.first, "--fail-on", "slower,wrong,missing").code, 0, "B has more")

    def test_another_algorithm_is_told(self):
        def change(row):
            row["case"] = row["case"].replace(f"tutti.{row['algorithm']}", "tutti.other")
            return self.times({**row, "algorithm": "other"}, 1.0)

        for found in self.found(self.changed("algorithm.csv", change)).values():
            self.assertIn("algorithm other", found["reason"])
            self.assertIsNotNone(found["ratio"])

    def test_bad_input(self):
        for arguments, words in [((self.first, self.folder / "none.csv"), "none.csv"),
                                 ((self.first,), "B is required"), ((self.first, self.first, "--fail-on", "faster"), "'faster': must be one or more of wrong, slower, missing"),
                                 ((self.first, self.first, "--fail-on", "slower,wrogn"), "did you mean 'wrong'?"),
                                 ((self.first, self.first, "--fail-on", ","), "''"),
                                 ((self.first, self.first, "--json", self.first), "first.fixed.csv")]:
            result = support.run("compare", *arguments)
            with self.subTest(words):
                self.assertEqual(result.code, 2)
                self.assertIn(words, result.err)
        samples = self.folder / "empty.csv"
        samples.write_text(self.first.read_text().splitlines()[0] + "\n")
        self.assertIn("no rows", support.run("compare", self.first, samples).err)


if __name__ == "__main__":
    unittest.main()
