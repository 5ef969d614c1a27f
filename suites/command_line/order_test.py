# SPDX-License-Identifier: Apache-2.0
"""`--ranks-as tasks --seed N`: ranks take their steps in an order that the seed draws, the same each time."""
import re
import unittest

import support

TASKS = ["--ranks", "3", "--ranks-as", "tasks"]


class Order(unittest.TestCase):
    def order(self, *arguments):
        """Steps and trace that the run tells; None where ranks take turns."""
        result = support.run("check", *arguments)
        self.assertEqual(result.code, 0, result)
        found = re.search(r"drawn from seed (\d+)(?:,|:) (\d+) steps, trace ([0-9a-f]{16})", result.out)
        return found and found.groups()

    def test_a_check_takes_the_same_steps_for_the_same_seed(self):
        case = ["all_reduce", "--algorithms", "ring,two_shot", "--dtypes", "float", "--ops", "sum", *TASKS]
        first = self.order(*case, "--seed", "7")
        self.assertEqual(first[0], "7")
        self.assertGreater(int(first[1]), 100)
        self.assertEqual(self.order(*case, "--seed", "7"), first)
        self.assertNotEqual(self.order(*case, "--seed", "8")[2], first[2])
        self.assertIsNone(self.order(*case), "without a seed ranks take turns")

    def test_a_case_by_its_id_takes_the_same_steps(self):
        case = ["--case", "all_reduce/tutti.ring/local/float/sum/P3.tasks/none/4092B/out/private/isolated"]
        self.assertEqual(self.order(*case, "--seed", "5"), self.order(*case, "--seed", "5"))

    def test_ranks_that_told_counts_late_are_not_taken_for_stuck(self):
        """All others stand still until they are told, and who tells does nothing else in that step."""
        case = "all_reduce/tutti.ring/fake/float/sum/P4.tasks/none/4128840B/out/private/isolated"
        for seed in ["1", "7"]:
            self.assertTrue(self.order("--case", case, "--pretend-hosts", "2", "--seed", seed))

    def test_a_soak_takes_the_same_steps_for_the_same_seed(self):
        soak = ["soak", *TASKS, "--operations", "200"]
        first = self.order(*soak, "--seed", "7")
        self.assertGreater(int(first[1]), 100)
        self.assertEqual(self.order(*soak, "--seed", "7"), first)
        self.assertIsNone(self.order(*soak), "without a seed ranks take turns")

    def test_other_kinds_of_ranks_have_no_order_that_is_drawn(self):
        self.assertIsNone(self.order("barrier", "--ranks", "2", "--ranks-as", "threads", "--seed", "7"))


if __name__ == "__main__":
    unittest.main()
