# SPDX-License-Identifier: Apache-2.0
"""What users see when one rank goes wrong: an exception on every rank that lives, which names that rank and what each
called, in time."""
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import torch

import errors
import support


class Errors(support.TestCase):
    RANKS = 2

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="tutti-torch-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.done = support.python(support.FOLDER / "errors.py", cls.RANKS, cls.folder.name, *errors.CASES, seconds=120)

    def met(self, case):
        """{rank: what it met}, and the process ids of all."""
        self.assertEqual(self.done.returncode, 0, self.done.stdout)
        folder = pathlib.Path(self.folder.name, case)
        found = {rank: json.loads((folder / f"{rank}.json").read_text()) for rank in range(self.RANKS)
                 if (folder / f"{rank}.json").exists()}
        return found, {int(rank): pid for rank, pid in json.loads((folder / "pids.json").read_text()).items()}

    def assertToldEverywhere(self, case, *words, but=(), told_by=None):
        """Every rank meets a RuntimeError with all the words, of which {pid} is rank 1's."""
        found, pids = self.met(case)
        self.assertEqual(sorted(found), [rank for rank in range(self.RANKS) if rank not in but], case)
        for rank, met in found.items():
            if told_by is not None and rank not in told_by:
                continue
            self.assertEqual(met["type"], "RuntimeError", f"{case}, rank {rank}: {met}")
            for word in words:
                self.assertIn(word.replace("{pid}", str(pids[1])), met["text"], f"{case}, rank {rank}")
        return found

    def test_a_rank_that_is_killed_is_named_with_its_process(self):
        self.assertToldEverywhere("killed", "tutti:all_reduce", "rank 1", "{pid}", but=[1])

    def test_a_rank_that_is_killed_in_the_middle_of_a_call_is_named(self):
        self.assertToldEverywhere("killed_busy", "tutti:all_reduce", "rank 1", "{pid}", but=[1])

    def test_a_rank_that_is_killed_before_a_group_meets_is_named(self):
        found = self.assertToldEverywhere("killed_before_a_group", "rank 1", "{pid}", but=[1])
        self.assertLess(max(met["seconds"] for met in found.values()), support.patience(2))

    def test_a_rank_that_is_killed_in_training_is_named(self):
        self.assertToldEverywhere("killed_training", "rank 1", "{pid}", but=[1])

    def test_a_rank_that_is_killed_is_named_where_a_callback_is_waited_for(self):
        self.assertToldEverywhere("killed_under_a_callback", "tutti:all_reduce", "rank 1", "{pid}", but=[1])

    def test_a_rank_that_is_killed_disturbs_no_group_without_it(self):
        found, _ = self.met("killed_elsewhere")
        self.assertEqual({rank: met["text"] for rank, met in found.items()}, {rank: "" for rank in range(self.RANKS) if rank != 1})

    def test_a_rank_that_is_stopped_is_told_at_the_deadline(self):
        for case in ["stopped", "stopped_training"]:
            self.assertToldEverywhere(case, "tutti:all_reduce", "rank 1", "gave up", but=[1])

    def test_a_rank_that_does_not_come_is_told_at_the_deadline(self):
        found = self.assertToldEverywhere("absent", "rank 1", told_by=[0])
        self.assertGreaterEqual(found[0]["seconds"], errors.TIMEOUT)

    def test_a_rank_that_exits_is_named(self):
        self.assertToldEverywhere("exited", "rank 1", "{pid}", but=[1])

    def test_a_rank_that_has_destroyed_its_group_is_named(self):
        self.assertToldEverywhere("left", "rank 1", told_by=[0])

    def test_calls_that_differ_are_told_to_all_with_both(self):
        self.assertToldEverywhere("sizes", "rank 1", "count", "10", "15")
        self.assertToldEverywhere("dtypes", "rank 1", "float", "int32")
        self.assertToldEverywhere("operations", "rank 1", "sum", "max")
        self.assertToldEverywhere("calls", "rank 1", "all_reduce", "barrier")
        self.assertToldEverywhere("roots", "rank 1", "root 0", "root 1")
        self.assertToldEverywhere("lists", "rank 1", "2", "3")

    def test_a_message_of_another_length_is_told_with_both(self):
        self.assertToldEverywhere("message_sizes", "4", "8", "rank 0", told_by=[1])

    def test_a_receive_that_nobody_sends_to_is_told_at_the_deadline(self):
        self.assertToldEverywhere("no_sender", "tutti:recv", "rank 1", told_by=[0])

    def test_a_group_that_was_destroyed_is_told_who_has_left(self):
        self.assertToldEverywhere("destroyed", "rank 1", "left", told_by=[0])

    def test_without_a_group_torch_says_so(self):
        found, _ = self.met("destroyed_here")
        for met in found.values():
            self.assertIn("Default process group has not been initialized", met["text"])

    def test_what_cannot_be_is_refused_by_the_call(self):
        if torch.__version__.startswith("1."):  # torch 2 itself refuses it
            self.assertToldEverywhere("sparse_broadcast", "tutti:broadcast", "Sparse", "tensor.to_dense()")
        self.assertToldEverywhere("bits_of_floats", "ReduceOp.BAND", "Float")
        self.assertToldEverywhere("two_in_one", "tensor.clone()")
        self.assertToldEverywhere("short_list", f"a list of {self.RANKS - 1} tensors", f"{self.RANKS} ranks")

    def test_a_wait_with_a_limit_ends_and_the_call_goes_on(self):
        self.assertToldEverywhere("short_wait", "not done after 100 ms", told_by=[0])


@support.at_night
class ErrorsOfThree(Errors):
    RANKS = 3


WAITS = """
import os, sys, time, datetime, torch, torch.distributed as dist, tutti_torch
rank = int(sys.argv[1])
dist.init_process_group("tutti", init_method=f"file://{sys.argv[2]}/meeting", rank=rank, world_size=2)
open(f"{sys.argv[2]}/ready.{rank}", "w")
if rank == 1:
    time.sleep(600)
%s
"""


TRAINS = """
import sys, torch, torch.distributed as dist, tutti_torch
rank = int(sys.argv[1])
dist.init_process_group("tutti", init_method=f"file://{sys.argv[2]}/meeting", rank=rank, world_size=2)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
open(f"{sys.argv[2]}/ready.{rank}", "w")
while True:
    model(torch.ones(4, 64)).sum().backward()
"""


class Interrupts(support.TestCase):
    def interrupted(self, code, which=(0,)):
        """How these ranks of two end, and what they say, when they are interrupted."""
        folder = self.folder()
        ranks = [subprocess.Popen([sys.executable, "-B", "-c", code, str(rank), folder], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=support.environment())
                 for rank in range(2)]
        try:
            end = time.monotonic() + support.patience(30)
            while not all(pathlib.Path(folder, f"ready.{rank}").exists() for rank in range(2)):
                self.assertLess(time.monotonic(), end, "the ranks do not meet")
                time.sleep(0.05)
            time.sleep(0.5)
            for rank in which:
                ranks[rank].send_signal(signal.SIGINT)
            said = [ranks[rank].communicate(timeout=support.patience(20))[0] for rank in which]
            return [(ranks[rank].returncode, text) for rank, text in zip(which, said)]
        finally:
            for rank in ranks:
                rank.kill()
                rank.wait()
                rank.stdout.close()

    def test_ctrl_c_ends_a_wait_as_python_ends(self):
        for waits in ["dist.all_reduce(torch.ones(4))", "dist.recv(torch.ones(4), src=1)", "dist.barrier()"]:
            [(code, said)] = self.interrupted(WAITS % waits)
            self.assertEqual(code, -signal.SIGINT, said)
            self.assertIn("KeyboardInterrupt", said)
            self.assertNotIn("terminate called", said)

    def test_a_handler_of_the_program_runs_meanwhile(self):
        handled = "import signal; signal.signal(signal.SIGINT, lambda *_: sys.exit(7))\ndist.barrier()"
        [(code, said)] = self.interrupted(WAITS % handled)
        self.assertEqual(code, 7, said)

    def test_ctrl_c_ends_training_on_all_ranks(self):
        """As a terminal sends it. Who is a moment later may meet the end of the other."""
        for code, said in self.interrupted(TRAINS, which=(0, 1)):
            self.assertIn(code, [-signal.SIGINT, 1], said)
            self.assertRegex(said, "KeyboardInterrupt|it has left the group|its process .* has ended")
            self.assertNotIn("terminate called", said)


if __name__ == "__main__":
    unittest.main()
