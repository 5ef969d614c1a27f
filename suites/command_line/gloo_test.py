# SPDX-License-Identifier: Apache-2.0
"""What users do with the reference gloo, whose ranks tutti starts itself, as those of its own collectives."""
import collections
import json
import pathlib
import re
import shutil
import tempfile
import unittest

import support

FILES = ["--csv", "{folder}/rows.csv", "--json", "{folder}/record.json"]
MORE = ["pingpong", "bandwidth", "bibandwidth", "message_rate", "scan", "exscan"]
V_FORMS = ["gather_v", "all_gather_v", "scatter_v", "reduce_scatter_v", "all_to_all_v"]
MISSING = {"reduce_scatter", "scan", "exscan", "scatter_v", "reduce_scatter_v"}
OVERWRITES = {"all_to_all", "sendrecv", "bibandwidth"}
# Of a right result, where others had the cores while its ranks were to begin together.
LATE = re.compile(r"no time: to each of \d+ samples? a rank came late, most often rank \d+|\d+ of \d+ iterations: to the others a rank came late")
GATHER_V = "Gloo is packaged without the header of its gatherv"


def reason_of(row):
    """Why Gloo skips the row's cell; empty: it does not."""
    name = row["collective"]
    if name in MISSING:
        return f"Gloo has no {name}"
    if name in OVERWRITES and row["placement"] == "in":
        return f"Gloo has no {name} in place: messages would arrive in what is still to be sent"
    return GATHER_V if name == "gather_v" else ""


@support.needs("gloo")
class Sweep(unittest.TestCase):
    def sweep(self, *arguments):
        """Rows and record of a sweep that leaves nothing behind. Each cell has its calls, however slow the machine is: of a
        budget the last cells may get nothing."""
        with support.Run("run", *arguments, "--iterations", "5", *FILES) as one:
            result = one.wait(120)
            self.assertEqual(result.code, 0, result)
            self.assertEqual(one.left_behind(), [])
            return one.rows()[1], support.read_json(one.path / "record.json")

    def check(self, rows):
        for row in rows:
            reason = reason_of(row) if row["backend"] == "gloo" else ""
            self.assertEqual(row["verdict"], "skipped" if reason else "ok", row)
            if reason or not LATE.fullmatch(row["reason"]):
                self.assertEqual(row["reason"], reason, row)

    def test_it_stands_beside_the_own_collectives_in_one_launch(self):
        rows, record = self.sweep("all", *MORE, "--backends", "tutti,gloo", "--ranks", "2", "--sizes", "8,64K")
        self.check(rows)
        launches = collections.Counter((row["collective"], row["backend"]) for row in rows)
        self.assertEqual(len(launches), 2 * 16)
        self.assertEqual({row["starter"] for row in rows}, {"spawn"})
        library = json.loads(record["versions"]["gloo"])
        self.assertEqual((library["library"], library["transport"], library["single_copy"]), ("Gloo", "tcp:lo", "none"))

    def test_in_place_in_shared_memory_on_an_odd_number_of_ranks(self):
        rows, _ = self.sweep("all", *MORE, "--backends", "gloo", "--ranks", "1,3", "--sizes", "64,64K", "--placement", "in",
                             "--buffers", "shared")
        self.check(rows)
        self.assertEqual({row["ranks"] for row in rows}, {"1", "3"})

    def test_blocks_of_several_lengths(self):
        rows, _ = self.sweep(*V_FORMS, "--backends", "gloo", "--ranks", "3", "--sizes", "8,64K", "--counts",
                             "ramp,one-heavy,zeros")
        self.check(rows)
        self.assertEqual({row["collective"] for row in rows}, set(V_FORMS))

    def test_blocks_with_gaps_are_skipped_by_all_ranks_together(self):
        rows, _ = self.sweep("all_gather_v", "all_to_all_v", "--backends", "gloo", "--ranks", "3", "--sizes", "8,64K",
                             "--counts", "random")
        self.assertEqual({(row["verdict"], row["reason"]) for row in rows},
                         {("skipped", "Gloo has no displacements: each block follows the one before it")})

    @support.at_night
    def test_its_arithmetic_is_right(self):
        rows, _ = self.sweep("all_reduce", "reduce", "--backends", "gloo", "--ranks", "3", "--sizes", "1K", "--dtypes", "all",
                             "--ops", "sum,prod,min,max")
        reasons = {f"Gloo has no arithmetic for {dtype}" for dtype in ["bfloat16", "f8e4m3", "f8e5m2"]}
        self.assertEqual({row["reason"] for row in rows if row["verdict"] == "skipped"}, reasons)
        right = collections.Counter(row["dtype"] for row in rows if row["verdict"] == "ok")
        integers = [f"{sign}int{bits}" for sign in ["", "u"] for bits in [8, 32, 64]]
        self.assertEqual(right, {dtype: 8 for dtype in [*integers, "half", "float", "double"]})

    def test_with_threads_it_is_skipped(self):
        rows, _ = self.sweep("barrier", "--backends", "tutti,gloo", "--ranks", "2", "--ranks-as", "threads")
        self.assertEqual({row["backend"]: row["verdict"] for row in rows}, {"tutti": "ok", "gloo": "skipped"})


@support.needs("gloo")
class Elsewhere(unittest.TestCase):
    def test_one_that_lies_elsewhere_is_tried_on_two_ranks_first(self):
        with tempfile.TemporaryDirectory(prefix="tutti-test-") as folder:
            shutil.copy(support.PROGRAM.parent / "libtutti_backend_gloo.so", folder)
            result = support.run("list", "--json", environment={"TUTTI_BACKENDS": folder})
            (row,) = [one for one in json.loads(result.out)["backends"] if one["name"] == "gloo"]
            self.assertTrue(row["available"], row)
            self.assertEqual(pathlib.Path(row["note"]).parent, pathlib.Path(folder))


@support.needs("gloo")
class Gate(unittest.TestCase):
    def gate(self, collectives):
        with tempfile.TemporaryDirectory(prefix="tutti-test-") as folder:
            suite = pathlib.Path(folder, "suite.toml")
            suite.write_text(f"[[sweep]]\ncollectives = {json.dumps(collectives)}\nsizes = ['64']\nranks = '2'\n")
            return support.run("gate", "--against", "gloo", "--suite", suite, "--cell-time", "10ms",
                               limit=120)

    def test_cells_are_compared(self):
        result = self.gate(["all_reduce", "broadcast"])
        self.assertIn("this build against gloo", result.out)
        # How fast it is is nobody's business here, nor whether the two ever saw one state of a busy machine.
        cells = re.findall(r"(?m)^  (?:all_reduce|broadcast)/.* (\d+) +(faster|same|slower|undecided|too short|invalid)\b", result.out)
        self.assertEqual(len(cells), 2, result)
        self.assertTrue(all(int(pairs) > 0 or verdict == "invalid" for pairs, verdict in cells), result)
        busy = any(verdict == "invalid" for _, verdict in cells)
        self.assertIn(result.code, [0, 3, 4, 6] if busy else [0, 4, 6], result)

    def test_a_cell_that_it_lacks_is_missing(self):
        result = self.gate(["reduce_scatter"])
        self.assertEqual(result.code, 3, result)
        self.assertIn("gloo: skipped: Gloo has no reduce_scatter", result.out)


if __name__ == "__main__":
    unittest.main()
