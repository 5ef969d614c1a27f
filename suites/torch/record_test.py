# SPDX-License-Identifier: Apache-2.0
"""TUTTI_TORCH_RECORD: the calls of a program, as a trace that tutti run replays."""
import os
import pathlib
import subprocess
import sys
import time
import unittest

import support

HEADER = "step,group,operation,dtype,op,bytes,peer_bytes,gap_us"


class Record(support.TestCase):
    def record(self, ranks):
        folder = pathlib.Path(self.folder())
        done = support.python(support.FOLDER / "record.py", ranks, folder, TUTTI_TORCH_RECORD=str(folder / "calls.csv"))
        self.assertEqual(done.returncode, 0, done.stdout)
        return folder / "calls.csv"

    def test_calls_of_all_ranks_with_their_steps(self):
        header, *lines = self.record(2).read_text().splitlines()
        self.assertEqual(header, HEADER)
        self.assertEqual([line.rpartition(",")[0] for line in lines], [
            "forward,,all_gather_v,float,,,4;8",
            "forward,,all_to_all,float,,32,",
            "3,,all_reduce,bfloat16,max,12,",
            "3,,broadcast,int64,,16,",
            "3,,reduce_scatter,float,sum,16,",
            "3,,gather,float,,16,",
            "3,,barrier,,,,",
            "forward-2,,all_reduce,float,sum,0,",
        ])
        for line in lines:
            self.assertGreaterEqual(float(line.rpartition(",")[2]), 0)

    @unittest.skipUnless("TUTTI_PROGRAM" in os.environ, "tutti is not built")
    def test_a_trace_replays(self):
        for ranks in 2, 3:
            with self.subTest(ranks=ranks):
                done = subprocess.run([os.environ["TUTTI_PROGRAM"], "run", "--trace", self.record(ranks), "--ranks", str(ranks),
                                       "--backends", "tutti", "--gaps", "off", "--iterations", "5"], stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=support.patience(60))
                self.assertEqual(done.returncode, 0, done.stdout)
                self.assertIn("4 ok, 0 wrong", done.stdout)

    def test_a_file_that_cannot_be_written_is_named(self):
        done = support.python(support.FOLDER / "record.py", 2, self.folder(), TUTTI_TORCH_RECORD="/nowhere/calls.csv")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("TUTTI_TORCH_RECORD: cannot write '/nowhere/calls.csv'", done.stdout)

    def test_two_first_groups_do_not_write_into_one_file(self):
        file = pathlib.Path(self.folder(), "calls.csv")

        def code(name):
            return ("import torch.distributed as dist, tutti_torch; dist.init_process_group('tutti', "
                    f"init_method='file://{file.parent}/{name}', rank=0, world_size=1); input()")
        with subprocess.Popen([sys.executable, "-c", code("one")], stdin=subprocess.PIPE, text=True,
                              env=support.environment(TUTTI_TORCH_RECORD=str(file))) as first:
            end = time.monotonic() + support.patience(30)
            while not file.exists() or HEADER not in file.read_text():
                self.assertLess(time.monotonic(), end, "the first group writes nothing")
                time.sleep(0.02)
            done = support.python("-c", code("other"), TUTTI_TORCH_RECORD=str(file))
            first.communicate("\n")
        self.assertEqual((first.returncode, done.returncode), (0, 1), done.stdout)
        self.assertIn(f"'{file}' is being written by rank 0 of another first group", done.stdout)
        self.assertEqual(file.read_text(), HEADER + "\n")

    def test_a_name_of_a_step_that_is_none_is_refused(self):
        done = support.python("-c", "import tutti_torch; tutti_torch.step('a,b')")
        self.assertIn("ValueError: step: 'a,b' is no name", done.stdout)


class Devices(support.TestCase):
    def test_a_tensor_elsewhere_is_refused_with_what_to_write(self):
        """One of the device meta, for there it takes no GPU: the text is made of the device's name."""
        code = ("import torch, torch.distributed as dist, tutti_torch; dist.init_process_group('tutti', "
                f"init_method='file://{self.folder()}/meeting', rank=0, world_size=1); "
                "dist.distributed_c10d._get_default_group().allreduce_coalesced([torch.empty(2, device='meta')])")
        done = support.python("-c", code)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("all_reduce: a tensor on meta", done.stdout)
        self.assertIn("pass tensor.cpu()", done.stdout)


if __name__ == "__main__":
    unittest.main()
