# SPDX-License-Identifier: Apache-2.0
"""What users do with `tutti check soak --backends`: the own collectives and Open MPI on the same mix."""
import os
import re
import unittest

import support

LINE = re.compile(r"mix (?P<mix>\w+), (?P<verified>\d+) results verified, (?P<wrong>\d+) wrong, \d+ barriers? judged, "
                  r"(?P<not_run>\d+) not run")
REASON = re.compile(r"^  not run: (\d+) x (.*)$", re.MULTILINE)


def soak(*arguments, operations=500, **options):
    return support.run("check", "soak", "--ranks", "4", "--seed", "7", "--operations", operations, *arguments, **options)


@support.needs_openmpi
class OfOpenMpi(unittest.TestCase):
    """One soak of both; each test reads another part of what came out."""

    @classmethod
    def setUpClass(cls):
        before = support.shared_memory()
        cls.result = soak("--backends", "tutti,openmpi")
        cls.left = sorted(support.abandoned_shared_memory(before))
        cls.lines = [{name: int(value, 16) if name == "mix" else int(value) for name, value in line.groupdict().items()}
                     for line in LINE.finditer(cls.result.out)]

    def test_both_are_right(self):
        self.assertEqual(self.result.code, 0, self.result)
        self.assertEqual([line["wrong"] for line in self.lines], [0, 0], self.result)
        self.assertEqual(self.left, [])

    def test_both_have_the_same_mix(self):
        own, reference = self.lines
        self.assertEqual(own["mix"], reference["mix"])
        self.assertEqual(own["not_run"], 0)
        self.assertEqual(own["verified"], reference["verified"] + reference["not_run"])
        self.assertGreater(reference["verified"], own["verified"] // 2, self.result)

    def test_what_mpi_lacks_is_counted_by_its_reason(self):
        reasons = {reason: int(count) for count, reason in REASON.findall(self.result.out)}
        self.assertEqual(sum(reasons.values()), self.lines[1]["not_run"], self.result)
        for expected in ["MPI has no avg", "MPI has no premul_sum", "MPI has no arithmetic for half",
                         "MPI has no arithmetic for bfloat16", "this MPI has no sound nonblocking sendrecv in place"]:
            self.assertIn(expected, reasons)

    def test_a_wrong_library_is_found_and_the_command_to_repeat_it_told(self):
        result = soak("--backends", "max_for_min", environment={"TUTTI_BACKENDS": os.environ["TUTTI_LAZY_BACKENDS"]})
        self.assertEqual(result.code, 1, result)
        self.assertRegex(result.out, r"wrong: rank \d: operation \d+ \(\w+ \w+ min ")
        self.assertIn("to repeat it: tutti check soak --backends max_for_min --ranks 4 --ranks-as processes --seed 7 "
                      "--operations 500", result.out)


class OfWhatCannotBe(unittest.TestCase):
    def test_an_unknown_backend_is_one_clear_error(self):
        result = soak("--backends", "opnmpi")
        self.assertEqual(result.code, 2, result)
        self.assertIn("--backends", result.err)
        self.assertIn("did you mean 'openmpi'?", result.err)

    @support.needs_openmpi
    def test_a_reference_runs_as_processes_only(self):
        result = soak("--backends", "openmpi", "--ranks-as", "threads")
        self.assertEqual(result.code, 2, result)
        self.assertIn("--ranks-as: openmpi runs with ranks as processes only, not as threads", result.err)


if __name__ == "__main__":
    unittest.main()
