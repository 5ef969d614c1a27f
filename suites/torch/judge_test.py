# SPDX-License-Identifier: Apache-2.0
"""Ten of PyTorch's own tests, and at night all that need no GPU: suites/judges/torch.py."""
import pathlib
import subprocess
import sys
import unittest

import support

JUDGE = pathlib.Path(__file__).resolve().parents[1] / "judges/torch.py"
TEN = ["test_DistributedDataParallelCPU", "test_gather_object", "test_all_reduce_coalesced_sum",
       "test_all_to_all_single_unequal_split", "test_barrier_timeout_global", "test_batch_isend_irecv_gloo_tags",
       "test_monitored_barrier_gloo", "test_scatter_complex", "test_send_recv_any_source_autograd_profiler",
       "test_sparse_all_reduce_sum"]


class Judge(support.TestCase):
    def judge(self, *words):
        done = subprocess.run([sys.executable, "-B", JUDGE, "--python", sys.executable, "--module", support.MODULE, *words],
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


if __name__ == "__main__":
    unittest.main()
