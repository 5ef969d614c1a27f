# SPDX-License-Identifier: Apache-2.0
"""What users do with the reference oneccl, whose ranks tutti starts itself. It is built if scripts/setup --with oneccl was run."""
import json
import os
import signal
import unittest

import support

FILES = ["--csv", "{folder}/rows.csv", "--json", "{folder}/record.json"]
MORE = ["pingpong", "bandwidth", "bibandwidth", "message_rate", "scan", "exscan"]
MISSING = {"scan", "exscan", "reduce_scatter_v"}
OVERWRITES = {"all_to_all", "all_to_all_v", "sendrecv", "bibandwidth"}


def reason_of(row):
    """Why oneCCL skips the row's cell; empty: it does not."""
    name = row["collective"]
    if name in MISSING:
        return f"oneCCL has no {name}"
    if name in OVERWRITES and row["placement"] == "in":
        return f"oneCCL has no {name} in place: messages would arrive in what is still to be sent"
    if name == "broadcast" and row["placement"] == "out":
        return "oneCCL's broadcast has one buffer: there is no broadcast out of place"
    return ""


@support.needs("oneccl")
class Sweep(unittest.TestCase):
    def sweep(self, *arguments):
        """Rows and record of a sweep that leaves nothing behind, and of which each row is ok or skipped for its reason."""
        with support.Run("run", *arguments, "--iterations", "3", *FILES) as one:
            result = one.wait(120)
            self.assertEqual(result.code, 0, result)
            self.assertEqual(one.left_behind(), [])
            rows = one.rows()[1]
            for row in rows:
                reason = reason_of(row) if row["backend"] == "oneccl" else ""
                self.assertEqual(row["verdict"], "skipped" if reason else "ok", row)
                self.assertEqual(row["reason"] if reason else "", reason, row)
            return rows, support.read_json(one.path / "record.json")

    def test_it_stands_beside_the_own_collectives_in_one_launch(self):
        rows, record = self.sweep("all", *MORE, "--backends", "tutti,oneccl", "--ranks", "2", "--sizes", "8,64K")
        self.assertEqual({row["starter"] for row in rows}, {"spawn"})
        library = json.loads(record["versions"]["oneccl"])
        self.assertEqual((library["library"], library["transport"]), ("oneCCL", "ofi:tcp"))

    def test_in_place_on_an_odd_number_of_ranks_and_blocks_of_several_lengths(self):
        rows, _ = self.sweep("all", *MORE, "gather_v", "all_gather_v", "scatter_v", "reduce_scatter_v", "all_to_all_v", "--backends",
                             "oneccl", "--ranks", "1,3", "--sizes", "64,64K", "--placement", "in,out", "--counts", "ramp,zeros")
        self.assertEqual({row["ranks"] for row in rows}, {"1", "3"})

    @support.at_night
    def test_its_arithmetic_is_right(self):
        with support.Run("run", "all_reduce", "reduce", "reduce_scatter", "--backends", "oneccl", "--ranks", "3", "--sizes", "1K",
                         "--dtypes", "all", "--ops", "sum,prod,min,max", "--iterations", "3", *FILES) as one:
            result = one.wait(300)
            rows = one.rows()[1]
        self.assertEqual(result.code, 0, result)
        refused = {"oneCCL has no arithmetic for f8e4m3", "oneCCL has no arithmetic for f8e5m2", "oneCCL has no arithmetic for bool"}
        self.assertEqual({row["reason"] for row in rows if row["verdict"] == "skipped"} - refused, set())

    def test_settings_are_systems_of_their_own(self):
        rows, _ = self.sweep("all_reduce", "--backends", "oneccl,oneccl{ALLREDUCE=ring}", "--ranks", "2", "--sizes", "64K")
        self.assertEqual([row["backend"] for row in rows], ["oneccl", "oneccl{ALLREDUCE=ring}"])

    def test_a_rank_that_is_killed_is_named_and_nothing_is_left(self):
        with support.Run("run", "all_reduce", "--backends", "oneccl", "--ranks", "2", "--sizes", "8", "--iterations", "1000000",
                         "--no-limit", *FILES) as one:
            rank = one.wait_for_ranks(2)[1]
            os.kill(rank, signal.SIGKILL)
            result = one.wait(20)
            self.assertEqual(result.code, 5, result)
            self.assertRegex(result.err, r"tutti: rank 1 \(pid \d+\) was killed by signal 9")
            self.assertEqual(one.left_behind(), [])


if __name__ == "__main__":
    unittest.main()
