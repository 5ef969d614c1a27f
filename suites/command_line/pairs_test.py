# SPDX-License-Identifier: Apache-2.0
"""Point to point: windows of messages and pairs of ranks, as `tutti run`, `check` and `prove` have them."""
import itertools
import json

import run_test
import support

WINDOWED = ["bandwidth", "bibandwidth", "message_rate"]


def number(row, column):
    return float(row[column])


class Pairs(run_test.Sweep):
    def test_a_window_is_verified_and_its_bandwidth_is_that_of_all_messages(self):
        bus_factor = {"bandwidth": 1, "bibandwidth": 2, "message_rate": 2}  # of four ranks
        result, rows = self.sweep(*WINDOWED, "--backends", "tutti", "--ranks", "4", "--sizes", "8,4K", "--window", "1,5",
                                  "--algorithms", "all", "--buffers", "private,shared", "--budget", "2s")
        self.assert_all_ok(rows, result)
        self.assertEqual(sorted((row["collective"], row["algorithm"], row["buffers"], row["bytes"], row["window"]) for row in rows),
                         sorted(itertools.product(WINDOWED, ["channel", "direct"], ["private", "shared"], ["8", "4096"], ["1", "5"])))
        for row in rows:
            window, seconds = int(row["window"]), number(row, "time_median") * 1e-6
            self.assertIn(f"/{row['bytes']}B.window{window}/", row["case"])
            self.assertAlmostEqual(number(row, "algbw"), window * int(row["bytes"]) / seconds / 1e9, delta=1e-6 * number(row, "algbw"))
            self.assertAlmostEqual(number(row, "busbw"), bus_factor[row["collective"]] * number(row, "algbw"), delta=1e-6 * number(row, "busbw"))
            messages = window * 2 * (2 if row["collective"] == "bibandwidth" else 1)
            self.assertAlmostEqual(number(row, "message_rate"), messages / seconds, delta=1e-6 * messages / seconds)
            self.assertEqual(row["pair"], "" if row["collective"] == "message_rate" else "neighbours")
        self.assertIn(", window 5, ", result.out)
        self.assertRegex(result.out, r"(?m)^#   tutti\.channel: \S+ messages/s; \S+ us each \(time / 5\)$")

    def test_the_usual_window_is_64_and_an_id_brings_a_row_back(self):
        _, rows = self.sweep("bandwidth", "--backends", "tutti", "--ranks", "2", "--sizes", "64", "--budget", "200ms")
        self.assertEqual(rows[0]["case"], "bandwidth/tutti.channel/shm/float/none/P2.processes/none/64B.window64/out/private/isolated")
        _, again = self.sweep("--case", rows[0]["case"].replace("window64", "window7"), "--budget", "200ms")
        self.assertEqual([(row["window"], row["verdict"]) for row in again], [("7", "ok")])

    def test_all_pairs_are_a_row_each(self):
        for collective in ["pingpong", "bandwidth", "bibandwidth"]:
            result, rows = self.sweep(collective, "--backends", "tutti", "--ranks", "4", "--sizes", "64", "--pairs", "all",
                                      "--ranks-as", "threads", "--budget", "1s")
            self.assert_all_ok(rows, result)
            self.assertEqual([row["pair"] for row in rows], ["0-1", "0-2", "0-3", "1-2", "1-3", "2-3"])
            for row in rows:
                self.assertIn(f"/P4.threads/pair{row['pair']}/64B", row["case"])
            self.assertIn("pair 0-3, ", result.out)
        _, again = self.sweep("--case", rows[4]["case"], "--budget", "200ms")
        self.assertEqual([(row["pair"], row["verdict"]) for row in again], [("1-3", "ok")])

    def test_pairs_that_are_named_and_the_neighbours(self):
        result, rows = self.sweep("pingpong", "message_rate", "--backends", "tutti", "--ranks", "2,3", "--sizes", "64",
                                  "--pairs", "neighbours,0-2", "--budget", "1s")
        self.assert_all_ok(rows, result)
        self.assertEqual([(row["collective"], row["ranks"], row["pair"]) for row in rows],
                         [("pingpong", "2", "neighbours"), ("message_rate", "2", ""),
                          ("pingpong", "3", "neighbours"), ("pingpong", "3", "0-2"), ("message_rate", "3", "")])
        self.assertIn("# left out: 1 x pair 0-2 on 2 ranks", result.out)

    def test_one_rank_is_no_pair(self):
        result, rows = self.sweep("bandwidth", "--backends", "tutti", "--ranks", "1,2", "--sizes", "64", "--budget", "200ms")
        self.assertEqual([row["ranks"] for row in rows], ["2"])
        self.assertIn("# left out: 1 x bandwidth on 1 rank", result.out)

    @support.needs_openmpi
    def test_open_mpi_sends_the_same_windows_to_the_same_pairs(self):
        result, rows = self.sweep("pingpong", *WINDOWED, "--backends", "tutti,openmpi", "--ranks", "3", "--sizes", "8,64K",
                                  "--window", "3", "--pairs", "neighbours,0-2", "--budget", "3s", limit=90)
        self.assert_all_ok(rows, result)
        self.assertEqual(len(rows), 2 * 2 * (3 * 2 + 1))
        self.assertEqual({row["backend"] for row in rows}, {"tutti", "openmpi"})

    @support.needs_openmpi
    def test_what_mpi_has_not_is_skipped_with_its_reason(self):
        _, rows = self.sweep("bibandwidth", "--backends", "tutti,openmpi", "--ranks", "2", "--sizes", "64", "--placement",
                             "in", "--budget", "300ms")
        verdicts = {row["backend"]: (row["verdict"], row["reason"]) for row in rows}
        self.assertEqual(verdicts["tutti"], ("ok", ""))
        self.assertEqual(verdicts["openmpi"][0], "skipped")
        self.assertIn("bibandwidth in place", verdicts["openmpi"][1])

    def test_the_median_of_launches_has_its_rate(self):
        result, rows = self.sweep("message_rate", "--backends", "tutti", "--ranks", "2", "--sizes", "0,64", "--launches", "2",
                                  "--budget", "4s")
        self.assert_all_ok(rows, result)
        self.assertEqual(len(rows), 4)
        for row in rows:
            self.assertEqual(row["algbw"] == "", row["bytes"] == "0")
            self.assertGreater(number(row, "message_rate"), 0)
        self.assertEqual(result.out.count("messages/s"), 2)

    def test_check_and_prove_take_them(self):
        result = support.run("check", "pingpong", *WINDOWED, "--ranks", "1,2,3,5", "--ranks-as", "tasks", "--dtypes", "float,int8")
        self.assertEqual(result.code, 0, result)
        self.assertIn("# left out: 2 x bandwidth on 1 rank", result.out)
        result = support.run("prove", "pingpong", *WINDOWED, "--ranks", "1:9")
        self.assertEqual(result.code, 0, result)
        self.assertIn(" 0 refuted", result.out)

    def test_a_lost_and_a_late_message_are_found(self):
        result = support.run("check", *WINDOWED, "--faults", "dropped_message,late_write,swapped_blocks", "--ranks-as", "tasks")
        self.assertEqual(result.code, 0, result)
        self.assertIn("caught", result.out)

    def test_none_is_in_all(self):
        listed = json.loads(support.run("list", "--json").out)["collectives"]
        for name in WINDOWED:
            self.assertIn(name, listed)
        _, rows = self.sweep("all", "--backends", "tutti", "--ranks", "2", "--sizes", "64", "--budget", "500ms")
        self.assertFalse({row["collective"] for row in rows} & set(WINDOWED))

    def test_explain_shows_every_message_and_needs_a_pair(self):
        result = support.run("explain", "bandwidth", "--ranks", "3")
        self.assertEqual(result.code, 0, result)
        self.assertIn("The letters name the blocks, one for each message.", result.out)
        self.assertIn("read block c of my input", result.out)
        result = support.run("explain", "bandwidth", "--ranks", "1")
        self.assertEqual(result.code, 2, result)
        self.assertIn("bandwidth on 1 rank has no pair", result.err)

    def test_what_is_no_window_and_no_pair_is_refused(self):
        for words, names in [(["bandwidth", "--window", "0"], ["--window", "'0'", "1 to 1024", "did you mean '1'"]),
                             (["bandwidth", "--window", "1025"], ["'1025'", "1 to 1024", "did you mean '1024'"]),
                             (["bandwidth", "--window", "many"], ["'many'", "1 to 1024"]),
                             (["all_reduce", "--window", "8"], ["--window", "all_reduce", "has no window"]),
                             (["pingpong", "--pairs", "3-0"], ["'3-0'", "did you mean '0-3'"]),
                             (["pingpong", "--pairs", "1-1"], ["'1-1'", "'1-2'"]),
                             (["pingpong", "--pairs", "some"], ["'some'", "neighbours, all", "'0-1'"]),
                             (["pingpong", "--pairs", "0-5", "--ranks", "2"], ["'0-5'", "did you mean '0-1'"]),
                             (["message_rate", "--pairs", "0-1"], ["--pairs", "message_rate"]),
                             (["bandwidth", "--ranks", "1"], ["1 rank", "did you mean '2'"]),
                             (["--case", "bandwidth/tutti.direct/shm/float/none/P2.processes/none/64B/out/private/isolated"],
                              ["'64B'", "1048576B.window64"]),
                             (["--case", "pingpong/tutti.direct/shm/float/none/P2.processes/pair0-2/64B/out/private/isolated"],
                              ["'pair0-2'", "'pair0-1'"])]:
            result = support.run("run", *words)
            self.assertEqual(result.code, 2, result)
            for name in names:
                self.assertIn(name, result.err)
            self.assertEqual(result.out, "")
