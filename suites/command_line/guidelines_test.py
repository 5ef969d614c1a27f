# SPDX-License-Identifier: Apache-2.0
"""`tutti guidelines`: what it finds, its files, its exit codes, and its mistakes."""
import os
import unittest
import xml.etree.ElementTree as ElementTree

import support

STAND_INS = {"TUTTI_BACKENDS": os.environ["TUTTI_LAZY_BACKENDS"]}
SLOWED = {**STAND_INS, "TUTTI_SLOW_CALL": "all_reduce", "TUTTI_SLOW_TIMES": "6"}
# Open MPI keeps it by far on any machine: a broadcast that is made six times is not needed for a scatter.
SOUND = {**STAND_INS, "TUTTI_SLOW_CALL": "broadcast", "TUTTI_SLOW_TIMES": "6"}


class Guidelines(unittest.TestCase):
    def compare(self, *arguments, code=0, environment=None, limit=60):
        with support.Run("guidelines", *arguments, environment=environment) as one:
            result = one.wait(limit)
            self.assertEqual(result.code, code, result)
            files = {path.name: path.read_text() for path in one.path.iterdir() if path.is_file()}
            return result, files

    def test_every_composition_gives_right_results(self):
        """Of an odd number of ranks and sizes that they divide, as threads and as tasks."""
        for ranks_as in ["threads", "tasks"]:
            _, files = self.compare("--backends", "tutti", "--ranks", "3", "--ranks-as", ranks_as, "--sizes", "24,12000",
                                    "--blocks", "8", "--budget", "4s", "--csv", "{folder}/rows.csv", "--json", "{folder}/found.json")
            found = support.verdicts_of(files["found.json"])
            self.assertEqual(found["kind"], "guidelines")
            self.assertNotIn("wrong", found["counts"])
            header, *lines = files["rows.csv"].splitlines()
            verdict, system = header.split(",").index("verdict"), header.split(",").index("backend")
            rows = [line.split(",") for line in lines]
            self.assertEqual({row[verdict] for row in rows}, {"ok"}, files["rows.csv"])
            self.assertEqual({row[system] for row in rows},
                             {"tutti", *(f"tutti:{name}" for name in
                                         ["reduce+broadcast", "reduce_scatter+all_gather", "halves", "gather+broadcast", "broadcast",
                                          "all_reduce", "reduce_scatter+gather", "all_gather", "scatter+all_gather", "reduce+scatter"])})
            self.assertEqual({cell["cell"].split("/")[0] for cell in found["cells"] if cell["bytes"] == 12000},
                             {"all_reduce <= reduce+broadcast", "all_reduce <= reduce_scatter+all_gather", "all_reduce <= halves",
                              "all_gather <= gather+broadcast", "scatter <= broadcast", "reduce <= all_reduce",
                              "reduce <= reduce_scatter+gather", "reduce <= halves", "gather <= all_gather",
                              "broadcast <= scatter+all_gather", "broadcast <= halves", "reduce_scatter <= reduce+scatter",
                              *(f"{name} <= larger" for name in ["broadcast", "reduce", "all_reduce", "gather", "all_gather",
                                                                 "scatter", "reduce_scatter", "all_to_all"])})

    @support.needs_openmpi
    def test_a_violation_is_found_and_confirmed(self):
        words = ["all_reduce", "--backends", "slow_call", "--ranks", "2", "--sizes", "64K", "--junit", "{folder}/found.xml",
                 "--json", "{folder}/found.json", "--summary", "{folder}/found.md"]
        result, files = self.compare(*words, "--fail", environment=SLOWED, code=4)
        found = {cell["cell"]: cell for cell in support.verdicts_of(files["found.json"])["cells"]}
        cell = found["all_reduce <= reduce+broadcast/slow_call/P2/65536B"]
        self.assertEqual(cell["verdict"], "slower", result)
        self.assertGreater(cell["low"], 1.1)
        self.assertRegex(cell["reason"], r"confirmed by \d+ pairs of fresh blocks, ratio ")
        self.assertIn("/slow_call.none/", cell["this_case"])
        self.assertIn("/slow_call:reduce+broadcast.none/", cell["other_case"])
        self.assertRegex(result.out, r"(?m)^# guidelines: native calls of slow_call against calls in their place$")
        self.assertRegex(result.out, r"(?m)^  all_reduce <= reduce\+broadcast/slow_call/P2/65536B .* slower$")
        self.assertRegex(result.out, r"(?m)^# violated: \d guidelines?$")
        suite = ElementTree.fromstring(files["found.xml"]).find("testsuite")
        self.assertEqual(suite.get("name"), "tutti guidelines")
        failed = [case.get("name") for case in suite if case.find("failure") is not None]
        self.assertIn("all_reduce <= reduce+broadcast/slow_call/P2/65536B", failed)
        self.assertIn("| **slower** | `all_reduce <= reduce+broadcast/slow_call/P2/65536B` |", files["found.md"])

    @support.needs_openmpi
    def test_none_is_found_of_a_sound_one(self):
        result, files = self.compare("scatter", "--backends", "slow_call", "--ranks", "2", "--sizes", "64K", "--fail",
                                     "--json", "{folder}/found.json", environment=SOUND)
        found = {cell["cell"]: cell["verdict"] for cell in support.verdicts_of(files["found.json"])["cells"]}
        self.assertEqual(found["scatter <= broadcast/slow_call/P2/65536B"], "faster", result)
        self.assertNotIn("slower", found.values())
        self.assertIn("# no guideline is violated\n", result.out)

    @support.needs_openmpi
    def test_a_wrong_result_is_no_time(self):
        result, _ = self.compare("reduce", "--ops", "min", "--backends", "max_for_min", "--ranks", "2", "--sizes", "4K",
                                 "--blocks", "8", environment=STAND_INS, code=1)
        self.assertRegex(result.out, r"(?m)^  reduce <= all_reduce/max_for_min/P2/4096B .* wrong$")

    def test_fewer_ranks_are_compared_with_more(self):
        result, _ = self.compare("all_reduce", "--backends", "tutti", "--ranks", "4,2", "--ranks-as", "threads", "--sizes", "64K",
                                 "--blocks", "8")
        self.assertRegex(result.out, r"(?m)^  all_reduce <= more ranks/tutti/P2/65536B ")

    def test_what_cannot_be_composed_is_counted(self):
        result, _ = self.compare("all_reduce", "--backends", "tutti", "--ranks", "3", "--ranks-as", "tasks", "--sizes", "20",
                                 "--blocks", "8")
        self.assertIn("# left out: 1 x 5 elements cannot be divided among 3 ranks, as its reduce_scatter does\n", result.out)
        self.assertIn("# left out: 1 x 5 elements have no halves\n", result.out)
        self.assertIn("# 2 cells: ", result.out)

    def test_a_list_runs_nothing(self):
        result, _ = self.compare("gather", "--backends", "tutti", "--ranks", "2", "--sizes", "8,64K", "--list")
        self.assertEqual([line.split("  ")[0] for line in result.out.splitlines()],
                         ["gather <= all_gather", "gather <= larger"] * 2 +
                         ["# 4 comparisons in 2 cells, at most 30 s each; what is slower is measured once more"])

    def test_a_case_of_a_composition_runs_by_its_id(self):
        name = "all_reduce/tutti:reduce+broadcast.none/local/float/sum/P2.threads/none/4096B/out/private/isolated"
        with support.Run("run", "--case", name, "--iterations", "20", "--csv", "{folder}/rows.csv") as one:
            result = one.wait(30)
            self.assertEqual(result.code, 0, result)
            rows = one.rows()[1]
        self.assertEqual([(row["case"], row["backend"], row["verdict"]) for row in rows], [(name, "tutti:reduce+broadcast", "ok")])

    def test_a_composition_beside_the_native_call(self):
        with support.Run("run", "all_reduce", "broadcast", "--backends", "tutti,tutti:reduce+broadcast", "--ranks", "2", "--ranks-as",
                         "threads", "--sizes", "4K", "--iterations", "20", "--csv", "{folder}/rows.csv") as one:
            result = one.wait(30)
            self.assertEqual(result.code, 0, result)
            self.assertEqual([(row["collective"], row["backend"]) for row in one.rows()[1]],
                             [("all_reduce", "tutti"), ("all_reduce", "tutti:reduce+broadcast"), ("broadcast", "tutti")])


if __name__ == "__main__":
    unittest.main()
