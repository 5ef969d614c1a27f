# SPDX-License-Identifier: Apache-2.0
"""What inputs are made of, what a row says of them, and how exact and reproducible results are."""
import re
import unittest

import support

FILES = ["--csv", "{folder}/rows.csv", "--json", "{folder}/rows.json"]
ACCURACY = re.compile(r"^#   tutti\.(\w+): error ([0-9.e+-]+) ulp at most, ([0-9.e+-]+) on average"
                      r"(; same bits on all ranks: yes)?; on all repeats: yes$", re.MULTILINE)


class Values(unittest.TestCase):
    def rows_of(self, *arguments):
        files = FILES if arguments[0] == "run" else FILES[:2]
        with support.Run(*arguments, *files) as one:
            result = one.wait(60)
            self.assertEqual(result.code, 0, result)
            return result, support.read_csv(one.path / "rows.csv")[1]

    def test_a_check_covers_special_values_and_every_rank_of_narrow_floats(self):
        _, rows = self.rows_of("check", "all_reduce", "--algorithms", "one_shot,ring", "--ops", "sum", "--dtypes",
                               "f8e5m2,bfloat16,int32", "--ranks", "17", "--ranks-as", "tasks")
        seen = {row["dtype"]: row["checked_on"] for row in rows if int(row["count"]) == 1023}
        self.assertEqual(seen, {"f8e5m2": "every; 2 passes of 15 ranks; special values too", "int32": "every",
                                "bfloat16": "every; special values too"})
        self.assertEqual({row["checked_on"] for row in rows if int(row["count"]) != 1023}, {"every; 2 passes of 15 ranks"})

    def test_all_inputs_of_a_check_can_be_random_or_special(self):
        for values in ("random", "special"):
            result, rows = self.rows_of("check", "all_reduce", "reduce_scatter_v", "broadcast", "--values", values, "--ops",
                                        "sum,avg,prod,max,premul_sum", "--ranks", "1,3", "--ranks-as", "tasks")
            self.assertEqual({row["checked_on"] for row in rows}, {f"every; {values} values"})
            self.assertEqual({row["verdict"] for row in rows}, {"ok"}, result)

    def test_a_run_says_how_exact_and_reproducible_sums_are(self):
        result, rows = self.rows_of("run", "all_reduce", "reduce", "broadcast", "--backends", "tutti", "--ranks", "3",
                                    "--sizes", "4K", "--dtypes", "float,int32,half", "--accuracy", "--budget", "4s")
        for row in rows:
            is_summed = row["collective"] != "broadcast" and row["dtype"] != "int32"
            self.assertEqual(row["verdict"], "ok", row)
            self.assertEqual(row["same_on_repeats"], "yes" if is_summed else "", row)
            self.assertEqual(row["same_on_ranks"], "yes" if is_summed and row["collective"] == "all_reduce" else "", row)
            self.assertEqual(is_summed, row["error_ulp"] != "", row)
            if is_summed:
                self.assertLess(0, float(row["error_ulp_mean"]), row)
                self.assertLess(float(row["error_ulp_mean"]), float(row["error_ulp"]), row)
        self.assertEqual(len(ACCURACY.findall(result.out)), 4, result)

    def test_without_a_check_nothing_is_said(self):
        result, rows = self.rows_of("run", "all_reduce", "--backends", "tutti", "--ranks", "2", "--sizes", "64", "--check",
                                    "none", "--accuracy", "--budget", "1s")
        self.assertEqual({row["error_ulp"] + row["same_on_ranks"] + row["same_on_repeats"] for row in rows}, {""})
        self.assertEqual(ACCURACY.findall(result.out), [])

    def test_what_is_timed_can_be_random_values(self):
        _, rows = self.rows_of("run", "all_reduce", "--ranks", "2", "--sizes", "64K", "--values", "random", "--budget", "2s")
        self.assertEqual({(row["checked_on"], row["verdict"]) for row in rows}, {("timed; random values", "ok")})

    def test_other_values_are_refused(self):
        for command in ("run", "check"):
            result = support.run(command, "--values", "randon")
            self.assertEqual(result.code, 2, result)
            for name in ("--values", "'randon'", "'random'"):
                self.assertIn(name, result.err)


if __name__ == "__main__":
    unittest.main()
