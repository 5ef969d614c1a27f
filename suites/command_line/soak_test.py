# SPDX-License-Identifier: Apache-2.0
"""`tutti check soak`: one mix on all kinds of ranks, and ranks that are killed while operations run in groups."""
import os
import pathlib
import re
import shlex
import signal
import time
import unittest

import support

CRASH = 5
KILL_LIMIT = 2.0
SEED = 3
FOREVER = 10_000_000


def has_group(pid):
    """Whether the process has mapped the memory of a group."""
    try:
        return "memfd:tutti-group" in pathlib.Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return False


class Soak(unittest.TestCase):
    def test_one_seed_is_one_mix_on_all_kinds_of_ranks(self):
        mixes = set()
        for ranks_as in ["processes", "threads", "tasks"]:
            result = support.run("check", "soak", "--ranks", "3", "--ranks-as", ranks_as, "--seed", SEED,
                                 "--operations", "400")
            self.assertEqual((result.code, result.err), (0, ""), result)
            command, mix, verified, wrong, barriers = re.match(
                r"(tutti check soak .*): mix (\w{16}), (\d+) results verified, (\d+) wrong, (\d+) barriers? judged, 0 not run\n",
                result.out).groups()
            self.assertEqual(command, f"tutti check soak --ranks 3 --ranks-as {ranks_as} --seed {SEED} --operations 400")
            self.assertGreater(int(verified), 400)
            self.assertEqual(int(wrong), 0)
            self.assertGreater(int(barriers), 0)
            depth, = re.findall(r"(?m)^  up to (\d+) operations? in flight on one rank", result.out)
            self.assertTrue(20 <= int(depth) <= 32, result)
            same = re.search(r"(\d+) and (\d+) descriptors, (\d+) and (\d+) processes, (\d+) and (\d+) mappings of "
                             r"shared memory; new in /dev/shm: nothing; in the ranks: \+0 descriptors, \+0 mappings",
                             result.out)
            self.assertIsNotNone(same, result)
            self.assertEqual(same.groups()[::2], same.groups()[1::2], result)
            mixes.add(mix)
        self.assertEqual(len(mixes), 1, mixes)

    def killed(self, ranks_as, processes, victim):
        before = support.shared_memory()
        with support.Run("check", "soak", "--ranks", "3", "--ranks-as", ranks_as, "--seed", SEED, "--operations",
                         FOREVER) as run:
            pid = run.wait_for_ranks(processes)[victim]
            end = time.monotonic() + support.patience(10)
            while ranks_as == "processes" and not has_group(pid) and time.monotonic() < end:
                time.sleep(0.002)
            time.sleep(0.2)  # half of the operations are on groups, and many are in flight at any time
            run.note_memory()
            os.kill(pid, signal.SIGKILL)
            begin = time.monotonic()
            result = run.wait(KILL_LIMIT)
            seconds = time.monotonic() - begin
            self.assertEqual(result.code, CRASH, result)
            self.assertRegex(result.err, rf"(?m)^tutti: rank {victim} \(pid {pid}\) .*was killed by signal 9", result)
            self.assertEqual(run.left_behind(), [], result)
            repeat = re.search(r"(?m)^  to repeat it: (tutti check soak .*)$", result.out)
            self.assertIsNotNone(repeat, result)
        self.assertEqual(support.abandoned_shared_memory(before), set())
        print(f"{ranks_as}: {seconds:.2f} s from the signal to the end")
        return shlex.split(repeat[1])[1:]

    def test_a_rank_that_is_killed_while_groups_are_busy(self):
        for victim in [0, 2]:
            with self.subTest(victim):
                command = self.killed("processes", 3, victim)
        self.assertEqual(command[-1], str(FOREVER))
        again = support.run(*command[:-1], "60")  # the same mix, less of it
        self.assertEqual(again.code, 0, again)

    def test_the_one_process_of_threads_or_tasks(self):
        for ranks_as in ["threads", "tasks"]:
            with self.subTest(ranks_as):
                self.killed(ranks_as, 1, 0)


if __name__ == "__main__":
    unittest.main()
