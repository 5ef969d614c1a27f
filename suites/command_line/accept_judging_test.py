# SPDX-License-Identifier: Apache-2.0
"""What accept_trials.py makes of the outcomes of its trials: its exit code, its reasons and its table."""
import unittest

import accept_trials
from accept_trials import NOT_DECIDED, RIGHT, Outcome

FORECAST = (10, 60)  # s
BLAMES = "it blames ['n2']: n2 is slow"


def outcome(kind="nic", verdict=RIGHT, seconds=30, is_cut_off=False):
    return Outcome(kind, verdict, seconds, FORECAST, is_cut_off)


class Judging(unittest.TestCase):
    def ends(self, outcomes, code, *reasons):
        self.assertEqual(accept_trials.judge(outcomes), (code, list(reasons)))

    def test_one_that_is_wrong_fails_whatever_the_others_are(self):
        self.ends([outcome(verdict=BLAMES)], 1, "# failed: 1 of 1 trials are wrong")
        self.ends([outcome()] * 99 + [outcome(verdict=BLAMES)], 1, "# failed: 1 of 100 trials are wrong")
        self.ends([outcome(verdict="exit code 0")] + [outcome(verdict=NOT_DECIDED)] * 3, 1, "# failed: 1 of 4 trials are wrong")
        self.ends([outcome()] * 15 + [outcome(verdict=BLAMES)] * 5, 1, "# failed: 5 of 20 trials are wrong",
                  "# failed: 15 of 20 trials are decided and right, fewer than 80 %")

    def test_a_single_trial_is_right_or_undecided(self):
        self.ends([outcome("agent", seconds=1)], 0)
        self.ends([outcome("agent", NOT_DECIDED)], 6, "# undecided: 0 of 1 trials are decided and right, fewer than 80 %")

    def test_no_trial_is_undecided(self):
        self.ends([], 6, "# undecided: 0 of 0 trials are decided and right, fewer than 80 %")

    def test_of_twenty_sixteen_are_right(self):
        self.ends([outcome()] * 16 + [outcome(verdict=NOT_DECIDED)] * 4, 0)
        self.ends([outcome()] * 15 + [outcome(verdict=NOT_DECIDED)] * 5, 1,
                  "# failed: 15 of 20 trials are decided and right, fewer than 80 %")
        self.ends([outcome()] * 15 + [outcome(verdict=NOT_DECIDED)] * 4, 6,
                  "# undecided: 15 of 19 trials are decided and right, fewer than 80 %")
        self.ends([outcome()] * 79 + [outcome(verdict=NOT_DECIDED)] * 21, 1,
                  "# failed: 79 of 100 trials are decided and right, fewer than 80 %")
        self.ends([outcome()] * 80 + [outcome(verdict=NOT_DECIDED)] * 20, 0)

    def test_a_healthy_run_ends_within_the_range(self):
        for kind in ["none", "mtu"]:
            for seconds, is_on_time in [(9.9, False), (10, True), (60, True), (60.1, False)]:
                self.assertIs(outcome(kind, seconds=seconds).is_on_time(), is_on_time, (kind, seconds))

    def test_a_run_with_a_fault_ends_within_twice_the_upper_end(self):
        for seconds, is_on_time in [(0.1, True), (60.1, True), (120, True), (120.1, False)]:
            self.assertIs(outcome("hung", seconds=seconds).is_on_time(), is_on_time, seconds)

    def test_a_run_that_its_budget_ended_is_late_or_says_nothing(self):
        for kind, seconds, is_on_time in [("none", 60, None), ("none", 60.1, False), ("nic", 120, None), ("nic", 120.1, False)]:
            self.assertIs(outcome(kind, seconds=seconds, is_cut_off=True).is_on_time(), is_on_time, (kind, seconds))

    def test_nine_of_ten_forecasts_hold_of_either_sort(self):
        for kind, late, which in [("none", 61, "healthy runs ended within the range"),
                                  ("nic", 121, "with a fault within twice its upper end")]:
            good, bad = outcome(kind), outcome(kind, seconds=late)
            self.ends([good] * 9 + [bad], 0)
            self.ends([good] * 8 + [bad] * 2, 1, f"# failed: 8 of 10 {which}, fewer than 90 %")
            self.ends([good] * 17 + [bad] * 2, 1, f"# failed: 17 of 19 {which}, fewer than 90 %")
            self.ends([good] * 18 + [bad] * 2, 0)
            self.ends([bad] * 9, 0)  # too few to be judged
            self.ends([bad] * 9 + [outcome(kind, is_cut_off=True)] * 9, 0)

    def test_forecasts_of_one_sort_do_not_make_up_for_the_other(self):
        self.ends([outcome("none")] * 90 + [outcome(seconds=121)] * 10, 1,
                  "# failed: 0 of 10 with a fault within twice its upper end, fewer than 90 %")
        self.ends([outcome("none", seconds=5)] * 9 + [outcome(seconds=121)] * 9, 0)

    def test_the_table_has_a_row_of_each_kind_that_was_drawn(self):
        outcomes = [outcome("nic"), outcome("nic", NOT_DECIDED, 100, True), outcome("nic", BLAMES, 121), outcome("none", seconds=5)]
        self.assertEqual(accept_trials.table(outcomes).splitlines(),
                         ["# kind         trials  right  not decided  wrong    on time",
                          "# none              1      1            0      0     0 of 1",
                          "# nic               3      1            1      1     1 of 2",
                          "# forecasts: 0 of 1 healthy runs ended within the range, 1 of 2 with a fault within twice its upper end",
                          "# 4 trials: 2 right, 1 not decided, 1 wrong"])


if __name__ == "__main__":
    unittest.main()
