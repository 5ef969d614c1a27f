# SPDX-License-Identifier: Apache-2.0
"""The drop-in programs with ranks as thread blocks: on threads of the host, and on the double of CUDA; graphs of both."""
import collections
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import support

DOUBLES = pathlib.Path(os.environ["TUTTI_BUILD"]) / "doubles"
FOLDER = support.PROGRAM.parent
PROGRAMS = ["all_reduce_perf", "all_gather_perf", "broadcast_perf", "reduce_perf", "reduce_scatter_perf", "gather_perf", "scatter_perf",
            "alltoall_perf", "alltoallv_perf", "sendrecv_perf", "hypercube_perf"]
HOST = ["--backend", "tutti", "--device", "host"]
TWO_GPUS = {"TUTTI_CUDART": str(DOUBLES / "libcudart.so"), "TUTTI_TRANSPORTS": str(DOUBLES / "kernels"), "TUTTI_DOUBLE_DEVICES": "2"}
ONE = ["-b", "4K", "-e", "4K", "-n", "4"]
OK, USAGE, ENVIRONMENT, WRONG = 0, 2, 3, 7
PLACEMENTS = 2


def perf(program, *words, starter=(), **environment):
    """The process as it ended, and how often each line was asked of the doubles."""
    with tempfile.TemporaryDirectory(prefix="tutti-test-") as folder:
        log = pathlib.Path(folder, "log")
        result = subprocess.run([*starter, FOLDER / program, *words], capture_output=True, text=True, timeout=support.patience(120),
                                stdin=subprocess.DEVNULL, env={**os.environ, "TUTTI_DOUBLE_LOG": str(log), **environment})
        return result, collections.Counter(log.read_text().splitlines() if log.exists() else [])


def rows_of(text):
    return [line.split() for line in text.splitlines() if line and not line.startswith("#")]


def wrong_of(row):
    return row[-5], row[-1]


class OnTheHost(unittest.TestCase):
    def test_graphs_of_all_programs_are_right(self):
        for program in PROGRAMS:
            for devices in ["1", "4"]:
                with self.subTest(program, ranks_per_device=devices):
                    result, _ = perf(program, "-b", "64", "-e", "4K", "-f", "8", "-n", "3", "-c", "2", "-g", "4", "--ranks-per-gpu", devices,
                                     *HOST, "-G", "3")
                    self.assertEqual((result.returncode, result.stderr), (OK, ""), result)
                    self.assertIn(" graph: 3 ", result.stdout)
                    rows = rows_of(result.stdout)
                    self.assertEqual(len(rows), 3, result.stdout)
                    self.assertEqual({wrong_of(row) for row in rows}, {("0", "0")}, result.stdout)

    def test_what_ran_is_said(self):
        result, _ = perf("all_reduce_perf", *ONE, "-g", "3", "--ranks-per-gpu", "2", *HOST, "-R", "1")
        self.assertEqual(result.returncode, OK, result)
        self.assertIn("# Backend: tutti, 3 ranks in 1 process, thread blocks of 2 sets of threads of the host\n", result.stdout)
        self.assertIn("# -R 1 has no meaning for thread blocks: left aside\n", result.stdout)
        self.assertIn(": the tests of nccl-tests on threads as thread blocks\n", result.stdout)
        self.assertRegex(result.stdout, r"(?m)^#  Rank  2 .* device  1 \[0000:00:00\]")

    def test_rows_say_it_too_and_have_one_sample_of_a_graph(self):
        for words, samples in [([], "4"), (["-G", "2"], "1")]:
            with tempfile.TemporaryDirectory(prefix="tutti-test-") as folder:
                result, _ = perf("all_reduce_perf", *ONE, "-g", "2", *HOST, *words, "--csv", f"{folder}/rows.csv", "--json",
                                 f"{folder}/record.json")
                self.assertEqual(result.returncode, OK, result)
                rows = support.read_json(pathlib.Path(folder, "record.json"))["rows"]
            self.assertEqual(len(rows), PLACEMENTS)
            for row in rows:
                self.assertIn("/P2.blocks/", row["case"])
                self.assertEqual((row["ranks_as"], row["device"], row["verdict"], row["samples"], row["marks"]),
                                 ("blocks", "host", "ok", samples, "from the cost formula"), row)

    def test_blocks_of_a_rank_are_as_many_as_asked_for(self):
        for lanes in ("3", "5"):
            with self.subTest(lanes), tempfile.TemporaryDirectory(prefix="tutti-test-") as folder:
                record = pathlib.Path(folder, "record.json")
                result, _ = perf("all_reduce_perf", *ONE, "-g", "2", *HOST, "--lanes", lanes, "--json", str(record))
                self.assertEqual(result.returncode, OK, result)
                self.assertIn(f"2 ranks in 1 process, thread blocks ({lanes} a rank) of 2 sets of threads of the host\n", result.stdout)
                written = support.read_json(record)
                self.assertEqual({row["lanes"] for row in written["rows"]}, {lanes})
                self.assertIn(f"--device host --lanes {lanes} --json", written["command"])

    def test_all_types_and_ops_by_packets_and_beyond(self):
        result, _ = perf("all_reduce_perf", "-b", "256", "-e", "4K", "-f", "4", "-n", "2", "-w", "0", "-g", "2", "-d", "all", "-o", "all", *HOST,
                         "-G", "1")
        self.assertEqual(result.returncode, OK, result)
        self.assertEqual({wrong_of(row) for row in rows_of(result.stdout)}, {("0", "0")}, result.stdout)

    def test_mistakes(self):
        for words, code, why in (
                (["-g", "2", "--device", "host", "--backend", "nccl"], USAGE,
                 "--device host: has no meaning with --backend nccl, whose ranks are no thread blocks: did you mean --backend tutti?"),
                (["--device", "hots"], USAGE, "--device: unknown device 'hots': did you mean 'host'? (one of: gpu host)"),
                (["-g", "2", *HOST, "-D", "1"], USAGE, "-D 1: NCCL's device API is not measured"),
                (["-g", "2", *HOST, "-V", "4"], USAGE, "-V 4: NCCL's device API is not measured"),
                (["-g", "2", "--lanes", "2"], USAGE, "--lanes 2: has no meaning without --device gpu or --device host, whose ranks are thread blocks"),
                (["-g", "2", *HOST, "--lanes", "65"], USAGE, "--lanes: '65' must be a whole number from 1 to 64"),
                (["-g", "2", *HOST, "--lanes", "0"], USAGE, "--lanes: '0' must be a whole number from 1 to 64"),
                (["-g", "2", *HOST, "-G", "-1"], USAGE, "-G -1: must be a whole number from 0"),
                (["-g", "2", *HOST, "-G", "20", "-z", "2"], USAGE, "-G 20 and -z 2: what a graph has captured is launched as a whole"),
                (["-g", "2", *HOST, "-G", "20", "-I", "1"], USAGE, "-G 20 and -I 1: what a graph has captured has no times of its own"),
                (["-g", "1024", "-t", "2", *HOST, "--ranks-per-gpu", "1024"], ENVIRONMENT, "of the host: at most ")):
            with self.subTest(words):
                result, _ = perf("all_reduce_perf", *ONE, *words)
                self.assertEqual(result.returncode, code, result)
                self.assertIn(why, result.stderr)
                self.assertEqual(rows_of(result.stdout), [])

    @unittest.skipIf(shutil.which("mpirun") is None, "no mpirun is there")
    def test_several_processes_are_refused(self):
        result, _ = perf("all_reduce_perf", *ONE, *HOST, starter=["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "2"])
        self.assertEqual(result.returncode, USAGE, result)
        self.assertIn("--device host: thread blocks are the ranks of one process, and these are 2: did you mean -g 2?", result.stderr)

    @unittest.skipIf(pathlib.Path("/dev/nvidia0").exists(), "there is a GPU")
    def test_without_a_gpu_one_line_says_why(self):
        result, _ = perf("all_reduce_perf", *ONE, "--device", "gpu", TUTTI_CUDART="/nowhere/libcudart.so")
        self.assertEqual((result.returncode, rows_of(result.stdout)), (ENVIRONMENT, []), result)
        self.assertRegex(result.stderr, r"^all_reduce_perf: .*--device host runs thread blocks as threads of the host\n$")


@unittest.skipUnless((DOUBLES / "kernels").exists(), "no double of CUDA is built")
class OnGpus(unittest.TestCase):
    GPU = ["--backend", "tutti", "--device", "gpu"]

    def test_the_loop_is_captured_once_on_each_gpu_and_launched(self):
        result, asked = perf("all_reduce_perf", *ONE, "-g", "4", "--ranks-per-gpu", "2", *self.GPU, "-G", "3", **TWO_GPUS)
        self.assertEqual(result.returncode, OK, result)
        self.assertIn("# Backend: tutti, 4 ranks in 1 process, thread blocks of 2 GPUs\n", result.stdout)
        self.assertIn("device  1 [0000:01:00] Double 1\n", result.stdout)
        (row,) = rows_of(result.stdout)
        self.assertEqual(wrong_of(row), ("0", "0"))
        # In place a further operation is checked, as a graph of its own.
        for gpu in (0, 1):
            self.assertEqual(asked[f"captured blocks on {gpu}: 2"], PLACEMENTS + 1)  # four short calls share a launch
            self.assertEqual(asked[f"blocks on {gpu}: 2"], 1 + PLACEMENTS, "warm-up, and the untimed operations")
        self.assertEqual((asked["graph of 4"], asked["graph of 1"]), (0, 2 * (PLACEMENTS + 1)))
        self.assertEqual(asked["launch"], 2 * (3 * PLACEMENTS + 1))

    def test_what_the_launches_leave_is_what_is_checked(self):
        result, _ = perf("all_reduce_perf", *ONE, "-g", "2", *self.GPU, "-G", "3", TUTTI_DOUBLE_LAUNCHES="0", **TWO_GPUS)
        self.assertEqual(result.returncode, WRONG, result)
        (row,) = rows_of(result.stdout)
        self.assertNotIn("0", wrong_of(row), "neither loop nor check has written")

    def test_memory_is_that_of_the_gpu_that_has_most(self):
        result, _ = perf("all_reduce_perf", "-b", "1M", "-e", "1M", "-n", "1", "-g", "2", "--ranks-per-gpu", "2", "-M", "1", *self.GPU, **TWO_GPUS)
        self.assertEqual(result.returncode, OK, result)
        taken = re.search(r"\n# GPU memory usage     : Initialization (\d+\.\d\d) MiB \| User-Allocated (\d+\.\d\d) MiB", result.stdout)
        self.assertIsNotNone(taken, result.stdout)
        self.assertGreater(float(taken[1]), 0, "scratch of the ranks")
        self.assertEqual(taken[2], "4.00", "two ranks with two buffers each")
        result, _ = perf("all_reduce_perf", *ONE, "-g", "2", "-M", "1", *HOST)
        self.assertIn("\n# CPU memory usage     : ", result.stdout)

    def test_the_first_gpu_is_chosen_by_hiding_others(self):
        result, _ = perf("all_reduce_perf", *ONE, "-g", "1", *self.GPU, NCCL_TESTS_DEVICE="1", **TWO_GPUS)
        self.assertEqual((result.returncode, result.stdout), (USAGE, ""), result)
        self.assertIn("NCCL_TESTS_DEVICE=1: thread blocks have the GPUs from 0 on: leave it out, or hide GPUs by CUDA_VISIBLE_DEVICES",
                      result.stderr)
        result, _ = perf("all_reduce_perf", *ONE, "-g", "1", *self.GPU, NCCL_TESTS_DEVICE="0", **TWO_GPUS)
        self.assertEqual(result.returncode, OK, result)
        result, _ = perf("all_reduce_perf", *ONE, "-g", "2", *HOST, NCCL_TESTS_DEVICE="1", **TWO_GPUS)
        self.assertEqual(result.returncode, OK, result)
        self.assertIn("# NCCL_TESTS_DEVICE=1 has no meaning on CPUs: left aside\n", result.stdout)

    def test_more_than_there_are_is_refused_with_the_numbers(self):
        result, _ = perf("all_reduce_perf", *ONE, "-g", "6", *self.GPU, **TWO_GPUS)
        self.assertEqual(result.returncode, ENVIRONMENT, result)
        self.assertIn("6 ranks on this host, 1 for each GPU, and there are 2 GPUs: did you mean --ranks-per-gpu 3?", result.stderr)


if __name__ == "__main__":
    unittest.main()
