# SPDX-License-Identifier: Apache-2.0
"""What goes on for long leaves nothing behind: groups that are made and destroyed, and members that fork."""
import json
import unittest

import lasting
import support

KIB_A_TURN = 4  # what torch itself and its store keep, for each group that there was


class Lasting(support.TestCase):
    ENVIRONMENT = {}

    def assertLasts(self, case, times, seconds):
        done = support.python(support.FOLDER / "lasting.py", "tutti", self.folder(), case, times, seconds=seconds,
                              **self.ENVIRONMENT)
        self.assertEqual(done.returncode, 0, done.stdout)
        said = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        self.assertEqual(len(said), lasting.RANKS, done.stdout)
        for rank in said:
            before, after = rank["before"], rank["after"]
            self.assertLess(after["KiB"] - before["KiB"], 1024 + KIB_A_TURN * times, rank)
            self.assertEqual((after["descriptors"], after["worlds"]), (before["descriptors"], 1), rank)
            self.assertLessEqual(after["mappings"] - before["mappings"], 16, rank)
            self.assertLessEqual(after["threads"] - before["threads"], 2, rank)  # helpers, where there were none yet

    def test_groups_that_are_destroyed_leave_nothing(self):
        self.assertLasts("groups", 50, 60)

    @support.at_night
    def test_a_thousand_groups_leave_nothing(self):
        self.assertLasts("groups", 1000, 200)

    @support.at_night
    def test_forks_of_a_member_leave_nothing(self):
        self.assertLasts("forks", 1000, 200)

    @support.at_night
    def test_processes_that_load_data_leave_nothing(self):
        self.assertLasts("loaders", 100, 200)


if __name__ == "__main__":
    unittest.main()
