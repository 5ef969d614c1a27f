# SPDX-License-Identifier: Apache-2.0
"""`tutti accept` on machines made of network namespaces, with two of the faults of accept_trials.py. The others are played at
night: they take minutes."""
import argparse
import unittest
import unittest.mock

import accept_trials
import support


class OnMachines(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not accept_trials.can_shape():
            raise unittest.SkipTest("no cable can be limited here: tc, htb")

    def finds(self, kind, seconds):
        """It ends by its budget: by then the fault is named, its exit code is the gravest, and the others' pairs are kept."""
        asked = argparse.Namespace(program=support.PROGRAM, machines=[4], kinds=[kind], budget=round(support.patience(seconds) / 2), keep=None)
        trial = accept_trials.Trial(asked, 1)
        with unittest.mock.patch.object(accept_trials, "TIMEOUT", 8):
            trial.perform()
        self.assertEqual(trial.verdict, "right", f"{trial.title()}: {trial.sentence}")

    def test_a_pair_that_hangs(self):
        self.finds("hung", 40)

    def test_a_host_whose_agent_fails(self):
        self.finds("agent", 8)


if __name__ == "__main__":
    unittest.main()
