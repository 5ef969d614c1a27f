# SPDX-License-Identifier: Apache-2.0
"""The ways by which ranks of torch start and meet."""
import socket
import time
import unittest

import support

START = support.FOLDER / "start.py"


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Starts(support.TestCase):
    def assertSums(self, groups, *words, **more):
        done = support.python(*words, **more)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(done.stdout.count("sum 3.0"), 2 * groups, done.stdout)

    @support.at_night
    def test_spawn_with_tcp(self):
        self.assertSums(1, START, f"tcp://127.0.0.1:{free_port()}")

    def test_spawn_with_env(self):
        self.assertSums(1, START, "env://", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))

    def test_a_store_outlives_its_group_and_the_next_one_meets_there(self):
        self.assertSums(3, START, f"file://{self.folder()}/meeting", f"{self.folder()}/store")

    def test_torchrun(self):
        # Of torch 1.13 with Python 3.11 the options have no default that works.
        options = ["--nproc_per_node", "2", "--redirects", "9:1", "--tee", "9:1"]
        self.assertSums(1, "-m", "torch.distributed.run", "--standalone", *options, START)

    def test_an_address_where_nobody_listens_is_torchs_own_error(self):
        code = ("import datetime, torch.distributed as dist, tutti_torch; dist.init_process_group('tutti', "
                f"init_method='tcp://127.0.0.1:{free_port()}', rank=1, world_size=2, timeout=datetime.timedelta(seconds=1))")
        begin = time.monotonic()
        done = support.python("-c", code)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertRegex(done.stdout, "(?i)(socket|connect)")
        self.assertLess(time.monotonic() - begin, support.patience(30))

    def test_a_wrong_master_is_named(self):
        code = ("import datetime, torch.distributed as dist, tutti_torch; "
                "dist.init_process_group('tutti', timeout=datetime.timedelta(seconds=1))")
        done = support.python("-c", code, RANK="1", WORLD_SIZE="2", MASTER_ADDR="no.such.host.invalid", MASTER_PORT="29333")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("no.such.host.invalid", done.stdout)

    def test_a_rank_that_never_comes_is_named(self):
        """torch itself waits for nobody: its store is there, and the group says who is missing."""
        code = ("import datetime, torch.distributed as dist, tutti_torch; dist.init_process_group('tutti', "
                f"init_method='file://{self.folder()}/meeting', rank=0, world_size=3, timeout=datetime.timedelta(seconds=1))")
        done = support.python("-c", code)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("ranks 1, 2 of 3 did not come within 1 s", done.stdout)

    def test_an_import_says_for_which_torch_it_is(self):
        done = support.python("-c", "import torch, tutti_torch; print(torch.__version__.startswith(tutti_torch.torch_version))")
        self.assertEqual(done.stdout, "True\n")


if __name__ == "__main__":
    unittest.main()
