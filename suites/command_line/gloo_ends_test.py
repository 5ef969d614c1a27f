# SPDX-License-Identifier: Apache-2.0
"""What ranks of Gloo leave, and who is named when one of them is killed. It runs alone: what others leave meanwhile, and
what they take of the cores, is no part of it."""
import os
import re
import signal
import unittest

import support
import trials
from gloo_test import GATHER_V


@support.needs("gloo")
class Soak(unittest.TestCase):
    def test_many_calls_in_flight_on_many_groups_are_right(self):
        before = support.shared_memory()
        result = support.run("check", "soak", "--backends", "tutti,gloo", "--ranks", "3", "--seed", "7", "--operations", "1000",
                             limit=120)
        self.assertEqual(result.code, 0, result)
        lines = re.findall(r"mix (\w+), (\d+) results verified, (\d+) wrong, \d+ barriers? judged, (\d+) not run",
                           result.out)
        (own_mix, own_verified, own_wrong, own_not_run), (mix, verified, wrong, not_run) = lines
        self.assertEqual((own_mix, own_wrong, own_not_run), (mix, "0", "0"))
        self.assertEqual((wrong, int(verified) + int(not_run)), ("0", int(own_verified)))
        reasons = {reason: int(count) for count, reason in re.findall(r"(?m)^  not run: (\d+) x (.*)$", result.out)}
        self.assertEqual(sum(reasons.values()), int(not_run))
        for expected in ["Gloo has no avg", "Gloo has no scan", "Gloo has no arithmetic for bfloat16", GATHER_V]:
            self.assertIn(expected, reasons)
        self.assertEqual(sorted(support.abandoned_shared_memory(before)), [])


@support.needs("gloo")
class DeathOfARank(unittest.TestCase):
    def test_the_rank_that_was_killed_is_named_not_those_that_lost_it(self):
        before = support.shared_memory()
        for ranks, rank in [(2, 0), (3, 2)]:
            with self.subTest(ranks=ranks, rank=rank), trials.sweep("gloo", ranks, timeout=20) as run:
                pid = run.wait_for_ranks(ranks)[rank]
                run.wait_for_rows(1)
                run.note_memory()
                kept = trials.finished_lines(run)
                os.kill(pid, signal.SIGKILL)
                result, _ = trials.end_of(run, 15)
                self.assertIsNotNone(result, run.texts())
                self.assertEqual(trials.check_end(run, result, rank, pid, trials.KILL.words, kept), [], result)
        self.assertEqual(sorted(support.abandoned_shared_memory(before)), [])


if __name__ == "__main__":
    unittest.main()
