# SPDX-License-Identifier: Apache-2.0
"""The ways by which ranks of torch start and meet."""
import pathlib
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
    def assertSums(self, *words, **more):
        done = support.python(*words, **more)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(done.stdout.count("sum 3.0"), 2, done.stdout)

    def test_spawn_with_each_url(self):
        self.assertSums(START, f"file://{self.folder()}/meeting")
        self.assertSums(START, f"tcp://127.0.0.1:{free_port()}")
        self.assertSums(START, "env://", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))

    def test_torchrun(self):
        """Its store outlives a group, and the next one meets there too."""
        output = pathlib.Path(self.folder(), "sum")
        done = support.python("-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2",
                              "--redirects", "9:1", "--tee", "9:1", START, OUTPUT=str(output))
        self.assertEqual(done.returncode, 0, done.stdout)
        for rank in range(2):
            self.assertEqual(output.with_suffix(f".{rank}").read_text(), "sum 3.0\n")

    def test_an_address_where_nobody_listens_is_torchs_own_error(self):
        code = ("import datetime, torch.distributed as dist, tutti_torch; dist.init_process_group('tutti', "
                f"init_method='tcp://127.0.0.1:{free_port()}', rank=1, world_size=2, timeout=datetime.timedelta(seconds=1))")
        begin = time.monotonic()
        done = support.python("-c", code)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertRegex(done.stdout, "(?i)(socket|connect)")
        self.assertLess(time.monotonic() - begin, support.patience(30))

    def test_a_rank_that_never_comes_is_named(self):
        """torch itself waits for nobody: its store is there, and the group says who is missing."""
        code = ("import datetime, torch.distributed as dist, tutti_torch; dist.init_process_group('tutti', "
                f"init_method='file://{self.folder()}/meeting', rank=0, world_size=3, timeout=datetime.timedelta(seconds=1))")
        done = support.python("-c", code)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("ranks 1, 2 of 3 did not come within 1 s", done.stdout)

    def test_an_import_says_for_which_torch_it_is(self):
        done = support.python("-c", "import torch, tutti_torch; print(tutti_torch.torch_version); import tutti_torch")
        self.assertEqual((done.returncode, done.stdout[:1]), (0, "1" if done.stdout.startswith("1") else "2"), done.stdout)


if __name__ == "__main__":
    unittest.main()
