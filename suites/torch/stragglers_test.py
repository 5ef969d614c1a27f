# SPDX-License-Identifier: Apache-2.0
"""tutti_torch.stragglers: the rank for which the others wait is named on all ranks."""
import json
import unittest

import support

RANKS = 3


class Stragglers(support.TestCase):
    def told(self, slow):
        done = support.python(support.FOLDER / "stragglers.py", RANKS, slow, self.folder())
        self.assertEqual(done.returncode, 0, done.stdout)
        return json.loads(done.stdout.splitlines()[-1])

    def test_the_rank_that_comes_late_is_named_on_all_ranks(self):
        for slow in [0, 2]:
            with self.subTest(slow=slow):
                told = self.told(slow)
                first, *others = told["found"]
                self.assertEqual(others, [first] * (RANKS - 1))
                self.assertEqual([one["rank"] for one in first if one["straggler"]], [slow])
                worst = first[0]
                self.assertEqual((worst["rank"], worst["calls"]), (slow, 160))
                self.assertGreaterEqual(worst["last"], 60)
                self.assertTrue(0.02 < worst["share"] < 1, worst)
                self.assertEqual(sorted(one["rank"] for one in first), list(range(RANKS)))

    def test_before_any_call_and_of_other_groups(self):
        told = self.told(-1)
        self.assertEqual(told["nothing"], [])
        self.assertEqual(told["alone"], [])
        self.assertIn("the group is of another backend", told["refused"])


if __name__ == "__main__":
    unittest.main()
