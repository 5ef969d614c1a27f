# SPDX-License-Identifier: Apache-2.0
"""Two hosts, which are network namespaces, with two ranks each, started by torchrun on both."""
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

import support

COMMAND_LINE = support.FOLDER.parent / "command_line"
TRAIN = support.FOLDER.parent / "training/train.py"
sys.path.append(str(COMMAND_LINE))
import namespaces  # noqa: E402

RANKS = 2  # on each
# Of torch 1.13 with Python 3.11 the options have no default that works.
OPTIONS = ["--nnodes", "2", "--nproc_per_node", str(RANKS), "--redirects", "9:1", "--tee", "9:1", "--max_restarts", "0"]
PORT = 29500  # of a network where nobody else is


def command_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return []


def rank_of(pid):
    try:
        environment = dict(word.split("=", 1) for word in pathlib.Path(f"/proc/{pid}/environ").read_text().split("\0") if "=" in word)
        return int(environment.get("RANK", -1))
    except OSError:
        return -1


@support.at_night
class Hosts(support.TestCase):
    def setUp(self):
        self.machines = self.enterContext(namespaces.Machines(2))

    def start(self, *words):
        """torchrun on each host; what they say goes to files, whose paths it returns beside the processes."""
        started = []
        for number, machine in enumerate(self.machines.all):
            said = self.machines.folder / f"said.{number}"
            run = ["-m", "torch.distributed.run", *OPTIONS, "--node_rank", str(number), "--master_addr",
                   self.machines.all[0].address, "--master_port", str(PORT), "--log_dir", f"{self.machines.folder}/log.{number}"]
            with open(said, "w", encoding="utf-8") as file:
                process = subprocess.Popen(machine.enter(sys.executable, "-B", *run, *words), stdin=subprocess.DEVNULL, stdout=file,
                                           stderr=subprocess.STDOUT, env=support.environment())
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            started.append((process, said))
        return started

    def ends(self, started, seconds):
        """All that was said, and each exit code; nothing may be left on the hosts."""
        for process, said in started:
            try:
                process.wait(support.patience(seconds))
            except subprocess.TimeoutExpired:
                self.fail(f"no end after {support.patience(seconds):.0f} s: {said.read_text()}")
        self.assertEqual(self.machines.left(support.patience(5)), [])
        return [process.returncode for process, _ in started], [said.read_text() for _, said in started]

    def test_training(self):
        for words in [[], ["--ddp"]]:
            codes, said = self.ends(self.start(TRAIN, "tutti", "--images", "256", "--epochs", "2", *words), 120)
            self.assertEqual(codes, [0, 0], said)
            self.assertIn("4 ranks with tutti: one network", said[0])

    def test_a_rank_that_is_killed_is_named_on_both(self):
        started = self.start(TRAIN, "tutti", "--images", "64", "--epochs", "100000")
        end = time.monotonic() + support.patience(60)
        while "epoch 2:" not in started[0][1].read_text():
            self.assertLess(time.monotonic(), end, started[0][1].read_text())
            time.sleep(0.1)
        pids = {rank_of(pid): pid for machine in self.machines.all for pid in machine.processes()
                if str(TRAIN) in command_of(pid) and "torch.distributed.run" not in command_of(pid)}
        os.kill(pids[3], signal.SIGKILL)
        codes, said = self.ends(started, 60)
        self.assertNotIn(0, codes, said)
        for host in said:
            self.assertRegex(host, rf"RuntimeError: tutti:all_reduce: .*rank 3 .*{pids[3]}")


if __name__ == "__main__":
    unittest.main()
