# SPDX-License-Identifier: Apache-2.0
"""Ten of PyTorch's own tests, and at night all that need no GPU: suites/judges/torch.py."""
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

import support

JUDGE = pathlib.Path(__file__).resolve().parents[1] / "judges/torch.py"
TEN = ["test_DistributedDataParallelCPU", "test_gather_object", "test_all_reduce_coalesced_sum",
       "test_all_to_all_single_unequal_split", "test_barrier_timeout_global", "test_batch_isend_irecv_gloo_tags",
       "test_monitored_barrier_gloo", "test_scatter_complex", "test_send_recv_any_source_autograd_profiler",
       "test_sparse_all_reduce_sum"]

LONG = "test_barrier_full_group"  # ranks sleep, and the others wait for them


def children_of(pid):
    """Ids of those of its first thread."""
    try:
        return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


class Judge(support.TestCase):
    def judge(self, *words, python=sys.executable, module=support.MODULE):
        done = subprocess.run([sys.executable, "-B", JUDGE, "--python", python, "--module", module, *words],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_ten_tests_pass(self):
        said = self.judge("--ranks", "2", "--systems", "tutti-as-gloo,tutti-as-mpi", *TEN)
        self.assertIn("2 ranks, tutti-as-gloo: 9 pass, 0 fail, 1 skip", said)
        self.assertIn("2 ranks, tutti-as-mpi: 1 pass, 0 fail, 0 skip", said)

    @support.at_night
    def test_what_passes_with_gloo_passes(self):
        self.judge("--ranks", "2,3,4")

    @support.at_night
    @support.with_torch_2
    def test_what_passes_with_gloo_passes_with_torch_2(self):
        module = next(support.TORCH2.parents[1].glob("lib/python3*/site-packages"))
        self.judge("--ranks", "3", python=support.TORCH2, module=module)

    def test_a_rank_that_is_killed_in_one_of_them_is_named(self):
        """The others end in time, so that the test does, and leave nothing."""
        command = [sys.executable, "-B", JUDGE, "--python", sys.executable, "--module", support.MODULE, "--ranks", "3", "--systems",
                   "tutti", LONG]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as judge:
            end = time.monotonic() + support.patience(60)
            while len(ranks := [rank for worker in children_of(judge.pid) for rank in children_of(worker)]) < 3:
                self.assertLess(time.monotonic(), end, "the judge starts no ranks")
                time.sleep(0.02)
            time.sleep(0.7)  # they have met, and sleep in turns
            os.kill(sorted(ranks)[1], signal.SIGKILL)
            said, _ = judge.communicate(timeout=support.patience(30))
        self.assertEqual(judge.returncode, 1, said)
        self.assertIn(f"fails: {LONG} on 3 ranks", said)
        self.assertRegex(said, rf"tutti: RuntimeError: tutti:\w+: rank 1 failed: its process \(pid {sorted(ranks)[1]}\) has ended")
        for rank in ranks:
            self.assertFalse(pathlib.Path(f"/proc/{rank}").exists(), f"rank {rank} still runs")


if __name__ == "__main__":
    unittest.main()
