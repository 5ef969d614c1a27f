# SPDX-License-Identifier: Apache-2.0
"""TUTTI_TORCH_SHARED=1: torch's tensors lie in memory that ranks share. Calls do the same, wherever a tensor lies."""
import unittest

import lasting_test
import support


class Shared(support.TestCase):
    def mapped(self, ranks, case, shared="1"):
        done = support.python(support.FOLDER / "shared.py", ranks, self.folder(), case, TUTTI_TORCH_SHARED=shared)
        self.assertEqual(done.returncode, 0, done.stdout)
        return sorted(line for line in done.stdout.splitlines() if line.startswith("mapped"))

    def test_calls_are_right_wherever_tensors_lie(self):
        for ranks in (2, 3):
            self.assertEqual(self.mapped(ranks, "everywhere"), [f"mapped {ranks}"] * ranks)

    def test_without_the_variable_nothing_is_shared(self):
        self.assertEqual(self.mapped(2, "everywhere", "0"), ["mapped 0"] * 2)

    def test_where_one_rank_has_none_nothing_is_shared(self):
        self.assertEqual(self.mapped(2, "differing"), ["mapped 0", "mapped 1"])

    def test_a_child_of_a_member_has_a_copy(self):
        self.assertEqual(self.mapped(2, "fork"), ["mapped 2"] * 2)

    def test_an_unknown_value_is_refused(self):
        done = support.python("-c", "import torch, tutti_torch", TUTTI_TORCH_SHARED="yes")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("TUTTI_TORCH_SHARED: 'yes' is neither 0 nor 1", done.stdout)

    def test_a_rank_that_is_killed_in_a_call_is_named(self):
        done = support.python(support.FOLDER / "errors.py", 2, folder := self.folder(), "killed_busy", TUTTI_TORCH_SHARED="1")
        self.assertEqual(done.returncode, 0, done.stdout)
        with open(f"{folder}/killed_busy/0.json", encoding="utf-8") as met:
            self.assertIn("rank 1", met.read())


class LastingWhereItIsShared(lasting_test.Lasting):
    ENVIRONMENT = {"TUTTI_TORCH_SHARED": "1"}


if __name__ == "__main__":
    unittest.main()
