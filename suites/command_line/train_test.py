# SPDX-License-Identifier: Apache-2.0
"""`tutti train`: every way of adding up gradients learns the same as a serial run, and what goes wrong is told."""
import json
import os
import pathlib
import signal
import struct
import tempfile
import time
import unittest

import support

CRASH = 5
WAYS = ["per-parameter", "buckets", "overlapped", "ring"]
SHORT = ["--images", 192, "--epochs", 1, "--backends", "tutti"]


def idx(folder, name, magic, sizes, data):
    (pathlib.Path(folder) / name).write_bytes(struct.pack(f">{1 + len(sizes)}I", magic, *sizes) + data)


def mnist(folder, images=24, held_out=8):
    """A few images of random shades, in MNIST's files."""
    for stem, count in [("train", images), ("t10k", held_out)]:
        idx(folder, f"{stem}-images-idx3-ubyte", 0x803, [count, 28, 28], os.urandom(count * 784))
        idx(folder, f"{stem}-labels-idx1-ubyte", 0x801, [count], bytes(i % 10 for i in range(count)))


class Trained(unittest.TestCase):
    def rows(self, *arguments, code=0):
        with support.Run("train", *arguments, "--csv", "{folder}/rows.csv", "--json", "{folder}/a.json", "--html",
                         "{folder}/a.html") as one:
            result = one.wait(60)
            self.assertEqual((result.code, result.err), (code, ""), result)
            self.page = (one.path / "a.html").read_text()
            self.json = json.loads((one.path / "a.json").read_text())
            return one.rows()[1], result.out

    def test_every_way_has_the_bits_of_the_serial_run_and_learns(self):
        rows, out = self.rows("--ranks", 2, "--images", 512, "--epochs", 2, "--batch", 32, "--backends", "tutti")
        self.assertEqual([row["gradients"] for row in rows], WAYS)
        self.assertEqual({row["verdict"] for row in rows}, {"ok"})
        self.assertEqual({(row["steps"], row["serial_bits"], row["needs_bits"]) for row in rows}, {("32", "32", "yes")})
        self.assertEqual(len({row["parameters"] for row in rows}), 1, "the same network, bit for bit")
        first, last = map(float, rows[0]["epoch_losses"].split())
        self.assertLess(last, first)
        self.assertEqual({row["calls"] for row in rows if row["gradients"] == "per-parameter"}, {"8"})
        self.assertIn("# 4 trainings: 4 ok, 0 wrong, 0 skipped", out)
        self.assertEqual(self.page.count("<path fill=\"none\""), 4)
        self.assertEqual([len(row["losses"]) for row in self.json["rows"]], [32] * 4)

    def test_ranks_on_several_hosts_are_judged_by_the_algorithm_that_runs_there(self):
        rows, out = self.rows("--ranks", 3, "--transports", "tcp", *SHORT, "--algorithms", "auto,two_shot", "--gradients", "buckets")
        chosen, refused = rows
        self.assertEqual((chosen["verdict"], chosen["wrong"]), ("ok", "0"))
        self.assertNotIn("shot", chosen["algorithm"], "it reads the memory of other ranks")
        self.assertEqual(refused["verdict"], "skipped")
        self.assertIn("which touches memory of other hosts", out)

    def test_other_orders_are_within_the_bound_and_ranks_may_be_threads(self):
        rows, _ = self.rows("--ranks", 4, "--ranks-as", "threads", *SHORT, "--algorithms",
                            "one_shot,two_shot,ring,recursive_doubling", "--gradients", "buckets,ring")
        of = {row["algorithm"]: row for row in rows}
        for name in ["one_shot", "two_shot"]:
            self.assertEqual((of[name]["needs_bits"], of[name]["serial_bits"]), ("yes", of[name]["steps"]))
        for name in ["ring", "recursive_doubling", "-"]:
            self.assertEqual((of[name]["needs_bits"], of[name]["verdict"]), ("no", "ok"))
            self.assertLess(int(of[name]["serial_bits"]), int(of[name]["steps"]))
            self.assertTrue(0 < float(of[name]["of_bound"]) <= 1)

    def test_a_trace_of_the_calls(self):
        with support.Run("train", "--ranks", 2, *SHORT, "--gradients", "overlapped", "--record", "{folder}/t.csv") as one:
            result = one.wait(60)
            self.assertEqual(result.code, 0, result)
            head, *lines = (one.path / "t.csv").read_text().splitlines()
        self.assertEqual(head, "step,group,operation,dtype,op,bytes,peer_bytes,gap_us")
        steps = [line.split(",") for line in lines]
        self.assertEqual([step[:7] for step in steps[:3]],
                         [["0", "", "all_reduce", "float", "sum", size, ""] for size in ["2040", "64000", "21320"]])
        self.assertEqual({step[0] for step in steps}, {"0", "1", "2"})

    def test_a_trace_replays(self):
        for way in ["overlapped", "ring"]:
            with self.subTest(way), support.Run("train", "--ranks", 2, *SHORT, "--gradients", way, "--record",
                                                "{folder}/t.csv") as one:
                result = one.wait(60)
                self.assertEqual(result.code, 0, result)
                with support.Run("run", "--trace", one.path / "t.csv", "--ranks", 2, "--backends", "tutti", "--gaps",
                                 "off", "--iterations", 5, "--csv", "{folder}/rows.csv") as replay:
                    result = replay.wait(60)
                    self.assertEqual(result.code, 0, result)
                    self.assertEqual([(row["step"], row["verdict"]) for row in replay.rows()[1]],
                                     [(step, "ok") for step in ["0", "1", "2", "whole"]])

    def test_the_users_images(self):
        with tempfile.TemporaryDirectory(prefix="tutti-test-") as folder:
            mnist(folder)
            rows, out = self.rows("--data", folder, "--ranks", 2, "--batch", 8, "--backends", "tutti", "--gradients", "ring")
            self.assertEqual([(row["learned"], row["verdict"]) for row in rows], [("24", "ok")])


class Refused(unittest.TestCase):
    def refused(self, *arguments, names, code=2):
        result = support.run("train", *arguments, limit=20)
        self.assertEqual((result.code, result.out), (code, ""), result)
        for name in names:
            self.assertIn(name, result.err)

    def test_options(self):
        self.refused("--gradients", "bukets", names=["--gradients", "'bukets'", "'buckets'"])
        self.refused("--gradients", "", names=["--gradients", "empty"])
        self.refused("--bucket-bytes", "1", names=["--bucket-bytes", "from 4 to 1G"])
        self.refused("--images", "0", names=["--images", "1 to 100000"])
        self.refused("--epochs", "1001", names=["--epochs", "'1000'"])
        self.refused("--rate", "fast", names=["--rate", "'fast'", "1e-06 to 10"])
        self.refused("--momentum", "1", names=["--momentum", "'0.999999'"])
        self.refused("--batch", "1", "--ranks", "2", names=["--batch", "2 ranks", "did you mean '2'?"])
        self.refused("--images", "1", "--ranks", "2", names=["--images", "2 ranks"])
        self.refused("--algorithms", "rign", names=["--algorithms", "'rign'", "'ring'"])
        self.refused("--ranks-as", "tasks", names=["--ranks-as", "tasks", "'threads'"])
        self.refused("--backends", "tutti,tutti", names=["--backends", "'tutti' once"])
        self.refused("--buffers", "private,shared", names=["--buffers", "one kind"])
        self.refused("--record", "x.csv", "--backends", "tutti", names=["--record", "--gradients"])
        self.refused("--csv", "same", "--record", "same", *SHORT, "--gradients", "ring", names=["--csv", "--record"])
        self.refused("--html", "/nowhere/x.html", *SHORT, names=["/nowhere/x.html"])

    def test_files_that_are_no_images(self):
        with tempfile.TemporaryDirectory(prefix="tutti-test-") as folder:
            of = lambda *names, code=2: self.refused("--data", folder, "--backends", "tutti", "--ranks", "2",
                                                     names=["--data", *names], code=code)
            of("train-images-idx3-ubyte", code=3)
            mnist(folder)
            idx(folder, "train-labels-idx1-ubyte", 0x801, [24], bytes([10] * 24))
            of("train-labels-idx1-ubyte", "label 0 is 10")
            idx(folder, "train-labels-idx1-ubyte", 0x801, [23], bytes(23))
            of("23 labels", "24 images")
            idx(folder, "train-images-idx3-ubyte", 0x803, [0xffffffff, 28, 28], bytes(784))
            of("4294967295 images", "1 to 100000")
            idx(folder, "train-images-idx3-ubyte", 0x803, [2, 28, 28], bytes(784))
            of("800 bytes", "1584")
            idx(folder, "train-images-idx3-ubyte", 0x1f8b0800, [2, 28, 28], bytes(784))
            of("magic number", "gunzip")
            (pathlib.Path(folder) / "train-images-idx3-ubyte").unlink()
            os.mkfifo(pathlib.Path(folder) / "train-images-idx3-ubyte")
            of("no regular file")


class Killed(unittest.TestCase):
    def test_the_rank_is_named_and_nothing_is_left(self):
        for victim in [0, 1]:
            with self.subTest(victim), support.Run("train", "--ranks", 2, "--epochs", 1000, "--backends", "tutti",
                                                   "--gradients", "overlapped") as one:
                pid = one.wait_for_ranks(2)[victim]
                time.sleep(0.3)  # at any moment of a step
                one.note_memory()
                os.kill(pid, signal.SIGKILL)
                result = one.wait(10)
                self.assertEqual(result.code, CRASH, result)
                self.assertRegex(result.err, rf"(?m)^tutti: rank {victim} \(pid {pid}\) .*was killed by signal 9")
                self.assertEqual(one.left_behind(), [], result)


if __name__ == "__main__":
    unittest.main()
