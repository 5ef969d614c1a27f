# SPDX-License-Identifier: Apache-2.0
"""A kind of rank that only this folder knows: two ranks of each thread. Collectives run and are measured with it, and
what else of the tree names it stays within 4 files."""
import pathlib
import unittest

import support

FOLDER = pathlib.Path(__file__).resolve().parent
USAGE = 2
MOST_FILES_OUTSIDE = 4


def files_that_name(word):
    """Text files of the tree, outside this folder and what is built or recorded."""
    found = []
    for root in ["impl", "harness", "src", "suites", "scripts", "ci"]:
        for path in (support.SOURCE / root).rglob("*"):
            if path.is_file() and FOLDER not in path.parents and word in path.read_bytes().lower():
                found.append(str(path.relative_to(support.SOURCE)))
    return found


class Duets(unittest.TestCase):
    def test_collectives_are_measured_and_right(self):
        files = ["--csv", "{folder}/rows.csv"]
        with support.Run("run", "all_reduce", "broadcast", "all_to_all", "barrier", "--backends", "tutti", "--ranks", "4,5",
                         "--ranks-as", "duets", "--sizes", "8,64K", "--budget", "2s", *files) as run:
            result = run.wait(60)
            self.assertEqual(result.code, 0, result)
            _, rows = run.rows()
        self.assertEqual({(row["ranks_as"], row["verdict"]) for row in rows}, {("duets", "ok")}, result)
        self.assertEqual({row["collective"] for row in rows}, {"all_reduce", "broadcast", "all_to_all", "barrier"}, result)
        self.assertTrue(all(f"/P{row['ranks']}.duets/" in row["case"] for row in rows), rows)
        self.assertTrue(all(float(row["time_median"]) > 0 for row in rows), rows)

    def test_every_algorithm_is_right(self):
        result = support.run("check", "all_reduce", "all_gather", "scan", "--ranks", "3", "--ranks-as", "duets", "--dtypes", "int32",
                             limit=90)
        self.assertEqual(result.code, 0, result)
        self.assertIn("as duets", result.out)

    def test_a_cell_of_it_is_named_by_its_case_id(self):
        case = "all_reduce/tutti.ring/local/float/sum/P3.duets/none/4096B/out/private/isolated"
        result = support.run("run", "--case", case, "--budget", "1s")
        self.assertEqual(result.code, 0, result)

    def test_what_does_not_fit_it_is_refused_by_its_traits(self):
        lanes = support.run("run", "all_reduce", "--ranks", "2", "--ranks-as", "duets", "--lanes", "2")
        self.assertEqual(lanes.code, USAGE, lanes)
        self.assertIn("--lanes: '2' has no meaning with --ranks-as duets, whose ranks are no thread blocks", lanes.err)
        hosts = support.run("run", "all_reduce", "--ranks", "2", "--ranks-as", "duets", "--hosts", "a,b")
        self.assertEqual(hosts.code, USAGE, hosts)
        self.assertIn("with duets: did you mean --ranks-as processes?", hosts.err)
        wrong = support.run("run", "all_reduce", "--ranks-as", "duet")
        self.assertEqual(wrong.code, USAGE, wrong)
        self.assertIn("did you mean 'duets'?", wrong.err)

    def test_it_comes_in_by_its_folder(self):
        outside = files_that_name(b"duets")
        self.assertLessEqual(len(outside), MOST_FILES_OUTSIDE, outside)
        self.assertIn("harness/cases/ranks_as.h", outside)  # so the search does see files


if __name__ == "__main__":
    unittest.main()
