# SPDX-License-Identifier: Apache-2.0
"""What the drop-in programs' flags do with NCCL, as doubles of CUDA and NCCL were asked: a line for each request."""
import collections
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import support

DOUBLES = pathlib.Path(os.environ["TUTTI_BUILD"]) / "doubles"
GPU = {"TUTTI_CUDART": str(DOUBLES / "libcudart.so"), "TUTTI_NCCL": str(DOUBLES / "libnccl.so")}
OK, USAGE, ENVIRONMENT, CRASH, WRONG = 0, 2, 3, 5, 7

# One size, two ranks, four operations: what stands in the log is easily counted.
ONE = ["-b", "4K", "-e", "4K", "-n", "4", "-g", "2"]
PLACEMENTS, RANKS = 2, 2
# Of a row, beside its loops: warm-up and, of each placement, the operation before it; in place the check.
APART = RANKS * (1 + 2 + 1)


class Asked(collections.Counter):
    """How often each line was logged."""


def perf(*words, program="all_reduce_perf", starter=(), **environment):
    """The process as it ended, and what was asked of the doubles."""
    with tempfile.TemporaryDirectory(prefix="tutti-test-") as folder:
        log = pathlib.Path(folder, "log")
        result = subprocess.run([*starter, support.PROGRAM.parent / program, *words], capture_output=True, text=True,
                                timeout=support.patience(60), stdin=subprocess.DEVNULL,
                                env={**os.environ, **GPU, "TUTTI_DOUBLE_LOG": str(log), **environment})
        return result, Asked(log.read_text().splitlines() if log.exists() else [])


def mpirun(processes):
    return ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", str(processes)]


OLD = {"TUTTI_NCCL": str(DOUBLES / "libnccl_old.so"), "TUTTI_DOUBLE_NCCL": "21805"}


def rows_of(text):
    return [line.split() for line in text.splitlines() if line and not line.startswith("#")]


@unittest.skipUnless("nccl" in support.BUILT, "the backend nccl is not built")
class Graphs(unittest.TestCase):
    def test_the_loop_is_captured_once_and_launched(self):
        result, asked = perf(*ONE, "-G", "3")
        self.assertEqual(result.returncode, OK, result)
        self.assertIn(" graph: 3 ", result.stdout)
        self.assertEqual(asked["graph of 4"], PLACEMENTS * RANKS)
        self.assertEqual(asked["graph of 1"], RANKS, "in place a further operation is checked, as a graph of its own")
        self.assertEqual(asked["launch"], (3 * PLACEMENTS + 1) * RANKS)
        self.assertEqual(asked["calls 1"], APART + 4 * PLACEMENTS * RANKS, "what is captured is called once")
        (row,) = rows_of(result.stdout)
        self.assertEqual((row[8], row[12]), ("0", "0"))

    def test_the_time_is_that_of_one_operation(self):
        """Each of 4 operations begins up to 20 ms late, and so do 40: the sum of them would be far above 20 ms."""
        result, _ = perf(*ONE, "-G", "10", TUTTI_DOUBLE_LATE_US="20000")
        (row,) = rows_of(result.stdout)
        for time in (float(row[5]), float(row[9])):
            self.assertGreater(time, 100, row)
            self.assertLess(time, 150000, row)

    def test_what_the_launches_leave_is_what_is_checked(self):
        result, _ = perf(*ONE, "-G", "3", TUTTI_DOUBLE_LAUNCHES="0")
        self.assertEqual(result.returncode, WRONG, result)
        (row,) = rows_of(result.stdout)
        self.assertEqual(row[8], "2048", "out of place nothing was written since the poison")
        self.assertNotEqual(row[12], "0", "in place the further operation is a graph, too")

    def test_communicators_that_do_not_block_are_captured_too(self):
        result, asked = perf(*ONE, "-G", "2", "-m", "3", "-o", "mulsum", NCCL_COMM_BLOCKING="0")
        self.assertEqual(result.returncode, OK, result)
        self.assertEqual(asked["graph of 4"], PLACEMENTS * RANKS)
        self.assertEqual(asked["calls 3"], 4 * PLACEMENTS * RANKS)

    def test_rows_have_a_sample_for_each_launch(self):
        result, _ = perf(*ONE, "-G", "5", "--csv", "-")
        rows = [line.split(",") for line in result.stdout.splitlines()]
        samples = rows[0].index("samples")
        self.assertEqual([row[samples] for row in rows[1:]], ["5", "5"])


@unittest.skipUnless("nccl" in support.BUILT, "the backend nccl is not built")
class Deadlines(unittest.TestCase):
    """Each operation begins up to 0.3 s late, so that 8 take longer than the deadline of one, and none does."""
    LOOP = ["-b", "64", "-e", "64", "-g", "2", "-w", "0", "-c", "0", "-T", "1"]

    @support.at_night
    def test_a_loop_may_take_longer_than_the_deadline_of_an_operation(self):
        for words in (["-n", "8"], ["-n", "8", "-G", "1"], ["-n", "1", "-G", "8"], ["-n", "4", "-m", "2", "-I", "1"]):
            with self.subTest(words):
                result, _ = perf(*self.LOOP, *words, TUTTI_DOUBLE_LATE_US="300000")
                self.assertEqual(result.returncode, OK, result)

    def test_an_operation_that_does_not_end_is_told_wherever_it_is(self):
        for words in (["-n", "20"], ["-n", "2", "-G", "2"]):
            with self.subTest(words):
                result, _ = perf(*self.LOOP, *words, TUTTI_DOUBLE_HANG="5")
                self.assertEqual(result.returncode, CRASH, result)
                self.assertIn("all 2 ranks hang in operation", result.stderr)


@unittest.skipUnless("nccl" in support.BUILT, "the backend nccl is not built")
class Comparing(unittest.TestCase):
    def test_what_is_posted_in_another_way_is_not_compared(self):
        with tempfile.TemporaryDirectory(prefix="tutti-test-") as folder:
            def record(name, *words):
                for kind in ("csv", "json"):
                    result, _ = perf(*ONE, *words, f"--{kind}", f"{folder}/{name}.{kind}")
                    self.assertEqual(result.returncode, OK, result)

            record("plain")
            record("again")
            record("buffers", "-R", "1")  # whose ids are those of windows
            for name, usual, flags, difference in (("graph", "plain", ["-G", "3"], "operations of a graph"),
                                                   ("groups", "plain", ["-m", "8"], "groups of 8 operations"),
                                                   ("windows", "buffers", ["-R", "2"], "registered windows")):
                record(name, *flags)
                for kind in ("csv", "json"):
                    with self.subTest(name, kind=kind):
                        result = support.run("compare", f"{folder}/{usual}.{kind}", f"{folder}/{name}.{kind}")
                        self.assertIn(f"it was measured under GPU Double 0, and under {difference}, GPU Double 0", result.out)
            result = support.run("compare", f"{folder}/plain.csv", f"{folder}/again.csv")
            self.assertNotIn("it was measured under", result.out + result.err)


@unittest.skipUnless("nccl" in support.BUILT, "the backend nccl is not built")
class Groups(unittest.TestCase):
    def test_operations_of_m_are_one_group(self):
        for program in ("all_reduce_perf", "broadcast_perf", "reduce_scatter_perf"):
            with self.subTest(program):
                result, asked = perf(*ONE, "-m", "5", program=program)
                self.assertEqual(result.returncode, OK, result)
                self.assertEqual((asked["calls 5"], asked["calls 1"]), (4 * PLACEMENTS * RANKS, APART))

    def test_those_of_one_rank_are_too(self):
        result, asked = perf("-b", "4K", "-e", "4K", "-n", "4", "-g", "1", "-m", "5")
        self.assertEqual(result.returncode, OK, result)
        self.assertEqual(asked["calls 5"], 4 * PLACEMENTS)

    def test_on_cpu_ranks_they_follow_each_other(self):
        result, asked = perf(*ONE, "-m", "5", "--backend", "tutti")
        self.assertEqual((result.returncode, asked), (OK, {}), result)


@unittest.skipUnless("nccl" in support.BUILT, "the backend nccl is not built")
class Registration(unittest.TestCase):
    def test_buffers_are_registered_for_each_rank(self):
        result, asked = perf(*ONE, "-R", "1")
        self.assertEqual(result.returncode, OK, result)
        # Warm-up and out of place two buffers, in place one.
        self.assertEqual((asked["registration"], asked["window"]), (5 * RANKS, 0))

    def test_windows_are_made_by_all_ranks_together(self):
        """The double refuses other memory than NCCL's own, and windows that are not of one size."""
        for program in ("all_reduce_perf", "gather_perf", "scatter_perf", "alltoallv_perf"):
            with self.subTest(program):
                result, asked = perf("-b", "5K", "-e", "5K", "-g", "4", "-R", "2", "-u", "3", "-c", "2", program=program)
                self.assertEqual(result.returncode, OK, result)
                in_place = 0 if program == "alltoallv_perf" else 1
                self.assertEqual((asked["registration"], asked["window"]), (0, 4 * (2 + 2 + in_place)))

    @unittest.skipIf(shutil.which("mpirun") is None, "there is no mpirun")
    def test_windows_of_several_processes(self):
        result, asked = perf("-b", "4K", "-e", "4K", "-g", "2", "-R", "2", starter=mpirun(2))
        self.assertEqual(result.returncode, OK, result)
        self.assertEqual(asked["window"], 4 * 5)

    def test_what_a_version_lacks_is_named(self):
        result, _ = perf(*ONE, "-R", "2", **OLD)
        self.assertEqual((result.returncode, result.stdout), (ENVIRONMENT, ""), result)
        self.assertIn("-R 2: NCCL 2.18.5 has no symmetric windows: 2.27 is the first; -R 1 registers buffers", result.stderr)
        result, _ = perf(*ONE, "-R", "1", **OLD)
        self.assertEqual(result.returncode, ENVIRONMENT, result)
        self.assertIn("NCCL 2.18.5 registers no buffers: 2.19 is the first", result.stderr)
        result, _ = perf(*ONE, "-R", "2", NCCL_WIN_ENABLE="0")
        self.assertEqual(result.returncode, ENVIRONMENT, result)
        self.assertIn("NCCL makes no symmetric window of", result.stderr)


@unittest.skipUnless("nccl" in support.BUILT, "the backend nccl is not built")
@unittest.skipIf(shutil.which("mpirun") is None, "there is no mpirun")
class Splits(unittest.TestCase):
    def test_processes_are_dealt_out_with_all_their_ranks(self):
        """The groups of 4 ranks of 8, each with devices of its own, sum up their own values."""
        for setting, colours in (({"NCCL_TESTS_SPLIT": "MOD 2"}, (0, 1)), ({"NCCL_TESTS_SPLIT": "/ 2"}, (0, 1)),
                                 ({"NCCL_TESTS_SPLIT_MASK": "0x2", "NCCL_TESTS_SPLIT": "MOD 2"}, (0, 2))):
            with self.subTest(setting):
                result, asked = perf(*ONE, "-c", "2", starter=mpirun(4), **setting)
                self.assertEqual(result.returncode, OK, result)
                self.assertEqual([asked[f"split by colour {colour}"] for colour in colours], [4, 4], asked)
                self.assertIn("2 groups of 4 ranks; rows are those of group 0", result.stdout)
                (row,) = rows_of(result.stdout)
                self.assertEqual((row[8], row[12]), ("0", "0"), row)

    def test_groups_of_several_sizes_with_graphs_and_windows(self):
        for words in (["-G", "2", "-m", "2"], ["-R", "2"], ["-R", "1", "-z", "1"]):
            for program in ("all_reduce_perf", "reduce_perf"):
                with self.subTest(words=words, program=program):
                    result, _ = perf("-b", "64", "-e", "4K", "-f", "64", *words, "-r", "-1", program=program, starter=mpirun(3),
                                     NCCL_TESTS_SPLIT="MOD 2")
                    self.assertEqual(result.returncode, OK, result)
                    self.assertIn("2 groups of 1 to 2 ranks", result.stdout)
                    self.assertIn("# Out of bounds values : 0 OK", result.stdout)

    def test_what_one_group_gets_wrong_counts(self):
        result, _ = perf(*ONE, starter=mpirun(2), NCCL_TESTS_SPLIT="MOD 2", TUTTI_DOUBLE_WRONG="1")
        self.assertEqual(result.returncode, WRONG, result)


@unittest.skipUnless("nccl" in support.BUILT, "the backend nccl is not built")
class Places(unittest.TestCase):
    def test_the_first_gpu_is_the_one_that_the_variable_names(self):
        result, asked = perf(*ONE, NCCL_TESTS_DEVICE="5")
        self.assertEqual(result.returncode, OK, result)
        self.assertIn("device  6 [0000:06:00] Double 6", result.stdout)
        self.assertEqual([asked[f"rank on device {device}, policy 0"] for device in (5, 6)], [1, 1], asked)
        for value, why in (("7", "there is 1 GPU from GPU 7 on"), ("8", "NCCL_TESTS_DEVICE is '8': it must be a number from 0 to 7")):
            result, _ = perf(*ONE, NCCL_TESTS_DEVICE=value)
            self.assertIn(why, result.stderr)
            self.assertNotEqual(result.returncode, OK, result)

    @unittest.skipIf(shutil.which("mpirun") is None, "there is no mpirun")
    def test_processes_have_their_gpus_by_their_numbers(self):
        result, _ = perf(*ONE, starter=mpirun(2), NCCL_TESTS_DEVICE="1")
        self.assertEqual(result.returncode, USAGE, result)
        self.assertIn("NCCL_TESTS_DEVICE=1: 2 processes have their GPUs by their own numbers", result.stderr)

    def test_the_policy_is_told(self):
        result, asked = perf(*ONE, "-x", "2")
        self.assertEqual((result.returncode, asked["rank on device 1, policy 2"]), (OK, 1), result)
        result, _ = perf(*ONE, "-x", "2", TUTTI_DOUBLE_NCCL="22703")
        self.assertEqual(result.returncode, ENVIRONMENT, result)
        self.assertIn("-x 2: NCCL 2.27.3 has no such policy: 2.28 is the first", result.stderr)

    def test_hypercube_is_tuttis(self):
        result, asked = perf(*ONE, program="hypercube_perf")
        self.assertEqual((result.returncode, asked), (OK, {}), result)
        self.assertIn("# Backend: tutti, 2 ranks", result.stdout)
        result, _ = perf(*ONE, "--backend", "nccl", program="hypercube_perf")
        self.assertEqual(result.returncode, USAGE, result)
        self.assertIn("NCCL has no hypercube", result.stderr)


@unittest.skipUnless("nccl" in support.BUILT, "the backend nccl is not built")
class Times(unittest.TestCase):
    """Each call of the doubles begins some milliseconds late; who posts it does not wait for that."""
    LATE = "50000"
    POSTED = 10000  # us: much longer than to post an operation, and much shorter than to wait for one

    def test_without_blocking_the_host_posts_all_at_once(self):
        result, _ = perf(*ONE, "-C", "1", TUTTI_DOUBLE_LATE_US=self.LATE)
        self.assertIn("cputime", result.stdout)
        (row,) = rows_of(result.stdout)
        posting = float(row[5])
        moved = 4096 / float(row[6]) / 1e3 if float(row[6]) > 0 else None
        self.assertLess(posting, self.POSTED, "the time to post an operation")
        self.assertTrue(moved is None or moved > posting, "the bandwidth is that of the whole time")

    def test_each_operation_is_waited_for_where_that_is_asked_for(self):
        for mode in ("1", "2", "3"):
            with self.subTest(mode):
                result, _ = perf(*ONE, "-C", "1", "-z", mode, TUTTI_DOUBLE_LATE_US=self.LATE)
                self.assertEqual(result.returncode, OK, result)
                (row,) = rows_of(result.stdout)
                self.assertGreater(float(row[5]) + float(row[9]), 1000, "posting then waits for the last one")

    def test_single_operations_are_timed_on_the_stream(self):
        """Reading the clock after each operation would make the loop wait for each of them."""
        result, _ = perf(*ONE, "-I", "1", "-C", "1", TUTTI_DOUBLE_LATE_US=self.LATE)
        self.assertEqual(result.returncode, OK, result)
        (row,) = rows_of(result.stdout)
        self.assertEqual(len(row), 21, row)
        self.assertLess(float(row[5]), self.POSTED, "the time to post an operation")
        self.assertGreater(float(row[10]), 1000, "the longest operation, by events")


if __name__ == "__main__":
    unittest.main()
