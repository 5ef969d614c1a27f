# SPDX-License-Identifier: Apache-2.0
"""What befalls machines of a job, the cable between them and their doors: some of the trials that cut_hosts.py makes."""
import unittest

import host_kinds
import host_trials

TRIALS = 20
SEED = 27


class Cuts(unittest.TestCase):
    def test_each_ends_in_time_with_the_right_name_and_leaves_nothing(self):
        why_not = host_trials.can_cut()
        kinds = tuple(kind for kind in host_kinds.KINDS if why_not is None or not kind.needs_cable)
        self.assertEqual(host_trials.perform(host_trials.draw(TRIALS, SEED, kinds)), [])
        if why_not:
            self.skipTest(f"the other trials passed, but not those that cut a cable: {why_not}")


if __name__ == "__main__":
    unittest.main()
