# SPDX-License-Identifier: Apache-2.0
"""`tutti explain`: what a newcomer reads, for every collective and algorithm."""
import json
import re
import unittest

import support

WIDEST = 120

WINDOWS = ["bandwidth", "bibandwidth", "message_rate"]


class Explain(unittest.TestCase):
    def explain(self, *arguments):
        result = support.run("explain", *arguments)
        self.assertEqual((result.code, result.err), (0, ""), result)
        last = result.out.rstrip().splitlines()[-1]
        self.assertRegex(last, r"^verified: .*; ok$", result)
        for line in result.out.splitlines():
            self.assertLessEqual(len(line), WIDEST, line)
        return result.out

    def outputs(self, page):
        """Rank -> the numbers of its output, from the last table of inputs and outputs."""
        table = page.split("\nAfter\n")[1]
        start = table.splitlines()[1].index("output")
        found = {}
        for rank, line in re.findall(r"(?m)^  rank (\d+) (.*)$", table.split("\nall_reduce is")[0]):
            found[int(rank)] = re.findall(r"[\d.]+", line[start - 9:])
        return found

    def test_every_algorithm_on_every_number_of_ranks(self):
        algorithms = json.loads(support.run("list", "--json").out)["algorithms"]
        self.assertGreaterEqual(len(algorithms), 14)
        for item in algorithms:
            least = 2 if item["collective"] in WINDOWS else 1  # a window needs a pair
            for ranks in [n for n in [1, 2, 3, 8] if n >= least] if item["collective"] != "barrier" else [3]:
                with self.subTest(**item, ranks=ranks):
                    page = self.explain(item["collective"], "--algorithm", item["name"], "--ranks", ranks)
                    self.assertIn(f"Steps of the algorithm {item['name']}", page)

    def test_v_forms_show_a_block_without_numbers_and_a_gap(self):
        for collective in ["gather_v", "all_gather_v", "scatter_v", "reduce_scatter_v", "all_to_all_v"]:
            for ranks in [1, 2, 4, 8]:
                with self.subTest(collective, ranks=ranks):
                    page = self.explain(collective, "--ranks", ranks)
                    table = page.split("\nAfter\n")[1]
                    self.assertIn("_", table)
                    if ranks > 1:
                        self.assertRegex(table, r" -( |\n)")
        page = self.explain("gather_v", "--ranks", "4", "--root", "1", "--algorithm", "linear")
        self.assertEqual(self.outputs(page)[1], list("123456"))

    def test_a_scan_gives_each_rank_the_sum_so_far(self):
        self.assertEqual(self.outputs(self.explain("scan", "--ranks", "4", "--algorithm", "chain")),
                         {0: ["1"], 1: ["3"], 2: ["6"], 3: ["10"]})
        self.assertEqual(self.outputs(self.explain("exscan", "--ranks", "4", "--algorithm", "chain")),
                         {0: [], 1: ["1"], 2: ["3"], 3: ["6"]})

    def test_the_tutorials_numbers(self):
        self.assertEqual(set(self.outputs(self.explain("reduce", "--ranks", "4"))[0]), {"4"})
        self.assertEqual(self.outputs(self.explain("scatter", "--ranks", "4")),
                         {0: ["1"], 1: ["2"], 2: ["3"], 3: ["4"]})
        self.assertEqual(self.outputs(self.explain("gather", "--ranks", "4"))[0], ["1", "2", "3", "4"])
        self.assertEqual(self.outputs(self.explain("all_gather", "--ranks", "2")), {0: list("1234"), 1: list("1234")})
        self.assertEqual(self.outputs(self.explain("broadcast", "--ranks", "2")), {0: ["1", "2"], 1: ["1", "2"]})
        self.assertEqual(self.outputs(self.explain("reduce_scatter", "--ranks", "3")),
                         {0: ["6", "12"], 1: ["14", "56"], 2: ["36", "288"]})

    def test_all_reduce_is_shown_to_be_reduce_scatter_and_all_gather(self):
        page = self.explain("all_reduce", "--ranks", "4")
        self.assertIn("  rank 1      5  6  7  8    32                      28 32 36 40\n", page)
        self.assertIn("Equal, bit for bit, to what all_reduce gave.", page)

    def test_ranks_that_sleep_leave_a_barrier_together(self):
        page = self.explain("barrier", "--ranks", "4")
        times = [(float(enters), float(leaves)) for enters, leaves in
                 re.findall(r"(?m)^  rank \d +([\d.]+) ms +([\d.]+) ms", page)]
        self.assertEqual(len(times), 4, page)
        self.assertEqual(sorted(times), times)
        for rank, (enters, _) in enumerate(times):
            self.assertGreaterEqual(enters, 100 * rank)
        self.assertGreaterEqual(min(leaves for _, leaves in times), max(enters for enters, _ in times))
        self.assertTrue(self.explain("barrier", "--ranks", "1").startswith("barrier on 1 rank\n"))

    def test_root_op_and_dtype(self):
        page = self.explain("reduce", "--root", "2", "--op", "prod", "--dtype", "int64", "--ranks", "3")
        self.assertIn("reduce on 3 ranks, int64 prod, root 2", page)
        self.assertEqual({rank: set(values) for rank, values in self.outputs(page).items()}, {0: set(), 1: set(), 2: {"1"}})
        self.assertEqual(self.outputs(self.explain("all_reduce", "--op", "avg", "--ranks", "2")),
                         {0: ["2", "3"], 1: ["2", "3"]})

    def test_mistakes_are_named(self):
        for arguments, names in [
            (["all_reduc"], ["'all_reduc'", "'all_reduce'"]),
            ([], ["COLLECTIVE"]),
            (["all_reduce", "--ranks", "9"], ["--ranks", "'9'", "1 to 8"]),
            (["all_reduce", "--ranks", "x"], ["--ranks", "'x'", "1 to 8"]),
            (["all_reduce", "--algorithm", "rnig"], ["--algorithm", "'rnig'", "'ring'"]),
            (["broadcast", "--root", "4"], ["--root", "'4'", "0 to 3"]),
            (["all_reduce", "--root", "1"], ["--root", "all_reduce has no root"]),
            (["broadcast", "--op", "max"], ["--op", "broadcast has no op"]),
            (["barrier", "--dtype", "int8"], ["--dtype", "barrier has no dtype"]),
            (["all_reduce", "--dtype", "flaot"], ["--dtype", "'flaot'", "'float'"]),
            (["all_reduce", "--op", "band"], ["--op", "band", "integers"]),
            (["all_reduce", "--op", "prod", "--ranks", "8"], ["'double'"]),
            (["all_reduce", "--algorithms", "ring"], ["--algorithms", "--algorithm"]),
        ]:
            with self.subTest(" ".join(arguments)):
                result = support.run("explain", *arguments, limit=20)
                self.assertEqual((result.code, result.out), (2, ""), result)
                self.assertLessEqual(len(result.err.splitlines()), 5, result)
                for name in names:
                    self.assertIn(name, result.err, result)


if __name__ == "__main__":
    unittest.main()
