# SPDX-License-Identifier: Apache-2.0
"""`tutti check --backends`: the correctness of systems that are not tutti's."""
import os
import pathlib
import unittest

import support

TOYS = {"TUTTI_BACKENDS": str(pathlib.Path(os.environ["TUTTI_BUILD"]) / "toy_backends")}


class CheckBackends(unittest.TestCase):
    def check(self, *arguments):
        return support.run("check", "all_reduce", "--dtypes", "float,int32", "--ops", "sum", *arguments, environment=TOYS)

    def test_a_right_one_without_groups(self):
        result = self.check("--backends", "toy", "--ranks", "2,5")
        self.assertEqual(result.code, 0, result)
        self.assertRegex(result.out, r"(?m)^# check: (\d+) cases as processes, [1-9]\d* ok, 0 wrong, \d+ neither, 0 not run; \d")
        self.assertRegex(result.out, r"(?m)^# skipped: \d+ x toy: the toy adds up floats only$")

    def test_a_rank_that_is_a_call_ahead_is_seen(self):
        result = self.check("--backends", "toy_in_a_hurry", "--ranks", "8")
        self.assertEqual(result.code, 1, result)
        self.assertRegex(result.out, r"(?m)^wrong  all_reduce/toy_in_a_hurry\.none/")
        self.assertRegex(result.out, r"with a call on other data right (before|behind) it")
        self.assertNotIn("every plan proved", result.out)

    def test_a_case_by_its_id(self):
        result = self.check("--backends", "toy", "--ranks", "2")
        one = "all_reduce/toy.none/shm/float/sum/P2.processes/none/4092B/out/private/isolated"
        result = support.run("check", "--case", one, environment=TOYS)
        self.assertEqual(result.code, 0, result)
        self.assertIn("# check: 1 case as processes, 1 ok, 0 wrong, ", result.out)

    def test_tutti_beside_it(self):
        result = self.check("--backends", "tutti,toy", "--ranks", "2", "--algorithms", "ring")
        self.assertEqual(result.code, 0, result)
        self.assertIn("; every plan proved before it ran; ", result.out)

    def test_what_has_no_meaning(self):
        for words, names in [(["--backends", "toy", "--algorithms", "ring"], ["--algorithms", "'toy'"]),
                             (["--backends", "tyo"], ["--backends", "'tyo'", "did you mean 'toy'?"]),
                             (["--backends", "toy", "--faults", "all"], ["--backends", "--faults"])]:
            result = self.check(*words)
            self.assertEqual((result.code, result.out), (2, ""), result)
            for name in names:
                self.assertIn(name, result.err)


if __name__ == "__main__":
    unittest.main()
