# SPDX-License-Identifier: Apache-2.0
"""The drop-in programs with NCCL, flag by flag: what each does to the table and to the JSON of -J. A row per flag; each row
says what is asked for and what must be so."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import support
from nccl_flags_test import GPU, OK, USAGE, WRONG, mpirun, rows_of

CRASH = 5
PLAIN = ["-b", "1K", "-e", "4K", "-f", "4", "-n", "3", "-g", "2"]
HEADER = "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong "
CONFIG = {"nthreads", "ngpus", "minimum_bytes", "maximum_bytes", "warmup_iters", "iterations", "aggregated_iterations", "validation",
          "graph", "blocking_collectives", "per_iter_timing", "per_iter_skip", "parallel_init", "devices"}
PER_ITERATION = {"skipped_iterations", "min_us", "max_us", "avg_us", "p50_us", "p95_us", "p99_us", "stdev_us", "cv_pct", "times_us"}


class Run:
    """A program that has run on the doubles: its text, its rows and what it wrote with -J."""

    def __init__(self, *words, program="all_reduce_perf", starter=(), **environment):
        with tempfile.TemporaryDirectory(prefix="tutti-test-") as folder:
            path, log = pathlib.Path(folder, "x.json"), pathlib.Path(folder, "log")
            result = subprocess.run([*starter, support.PROGRAM.parent / program, *words, "-J", str(path)], capture_output=True,
                                    text=True, timeout=support.patience(60), stdin=subprocess.DEVNULL,
                                    env={**os.environ, **GPU, "TUTTI_DOUBLE_LOG": str(log), **environment})
            self.code, self.out, self.err = result.returncode, result.stdout, result.stderr
            self.rows = rows_of(self.out)
            self.json = json.loads(path.read_text()) if path.exists() else None
            self.asked = log.read_text().splitlines() if log.exists() else []
        self.config = (self.json or {}).get("config", {})
        self.results = (self.json or {}).get("results", [])

    def sizes(self):
        return [int(row[0]) for row in self.rows]

    def column(self, number):
        return [row[number] for row in self.rows]


def holds(text):
    return lambda run: re.search(text, run.out) is not None


def asks(line):
    """Of the doubles."""
    return lambda run: line in run.asked


def config(**values):
    return lambda run: {name: run.config.get(name) for name in values} == values


def every(*checks):
    return lambda run: all(check(run) for check in checks)


OPS = ["sum", "prod", "max", "min", "avg", "mulsum"]
DTYPES = ["int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "float", "double", "bfloat16", "f8e4m3", "f8e5m2"]

# What is asked for beside PLAIN, and what must be so. Later words win.
FLAGS = [
    ("nothing", [], every(lambda run: run.sizes() == [1024, 4096], lambda run: all(len(row) == 13 for row in run.rows),
                          lambda run: HEADER in run.out.splitlines(), config(graph=0, validation=1, step_factor=4, nthreads=1),
                          lambda run: run.json["version"] == 3 and run.json["nccl_version"] == 22809,
                          lambda run: [row["size"] for row in run.results] == [1024, 4096],
                          lambda run: {row["root"] for row in run.results} == {"    -1"})),
    ("-t and -g", ["-t", "2"], every(config(nthreads=2, ngpus=2), holds("nThread 2 nGpus 2 "), holds("# +Rank +3 .* device +3 "),
                                     lambda run: len(run.config["devices"]) == 4)),
    ("-b and -e", ["-b", "512", "-e", "2K"], lambda run: run.sizes() == [512, 2048]),
    ("-i", ["-b", "1K", "-e", "3K", "-f", "1", "-i", "1K"], every(lambda run: run.sizes() == [1024, 2048, 3072],
                                                                  config(step_bytes=1024), holds(r"step: 1024\(bytes\)"))),
    ("-f", ["-f", "2"], every(lambda run: run.sizes() == [1024, 2048, 4096], config(step_factor=2))),
    ("-n", ["-n", "5"], every(config(iterations=5), holds(" iters: 5 "), lambda run: run.results[0]["actual_iterations"] == 5)),
    ("-w", ["-w", "3"], every(config(warmup_iters=3), holds("warmup iters: 3 "))),
    ("-w 0", ["-w", "0"], config(warmup_iters=0)),
    ("-m", ["-m", "4"], every(config(aggregated_iterations=4), holds("agg iters: 4 "))),
    ("-N", ["-N", "2"], lambda run: run.sizes() == [1024, 4096] * 2),
    ("-c 0", ["-c", "0"], every(config(validation=0), lambda run: run.column(8) + run.column(12) == ["N/A"] * 4,
                                lambda run: {row["out_of_place"]["nwrong"] for row in run.results} == {None},
                                lambda run: len(run.out.splitlines()[-8]) in (117, 118))),
    ("-c", ["-c", "3"], every(config(validation=3), lambda run: run.column(8) + run.column(12) == ["0"] * 4,
                              lambda run: {row["in_place"]["nwrong"] for row in run.results} == {0.0})),
    ("-o all", ["-o", "all"], lambda run: run.column(3) == [op for op in OPS for _ in range(2)]),
    ("-d all", ["-d", "all", "-e", "1K"], lambda run: run.column(2) == DTYPES),
    ("-z 1", ["-z", "1"], every(config(blocking_collectives="true"), holds("# Blocking Enabled"))),
    ("-z 2", ["-z", "2"], config(blocking_collectives="true")),
    ("-z 3", ["-z", "3"], config(blocking_collectives="true")),
    ("-G", ["-G", "2"], every(config(graph=2), holds(" graph: 2 "))),
    ("-C", ["-C", "1"], every(holds("cputime   algbw"), lambda run: set(run.results[0]["out_of_place"]) == {"cpu_time", "alg_bw",
                                                                                                         "bus_bw", "nwrong"})),
    ("-a", ["-a", "3"], lambda run: len(run.rows) == 2),  # which time it is: suites/unit/perf/average_test.cc
    ("-R 1", ["-R", "1"], asks("registration")),
    ("-R 2", ["-R", "2"], asks("window")),
    ("-x", ["-x", "1"], asks("rank on device 1, policy 1")),
    ("-D 0", ["-D", "0"], lambda run: len(run.rows) == 2),
    ("-V 16", ["-V", "16"], lambda run: len(run.rows) == 2),
    ("-p", ["-p", "1"], every(holds("# -p 1 is left aside"), config(parallel_init="false"))),
    ("-y", ["-y", "1"], holds("# -y 1 is left aside: operations have streams of their own")),
    ("-T", ["-T", "30"], lambda run: len(run.rows) == 2),
    ("-S", ["-S", "1"], lambda run: all(len(row) == 15 and re.fullmatch(r"[\d-]{10}", row[13]) for row in run.rows)),
    ("-M", ["-M", "1"], holds(r"# GPU memory usage     : Initialization \d+\.\d\d MiB \| User-Allocated 0\.01 MiB \| Collective")),
    ("-u", ["-u", "3"], holds("unalign: 3")),
    ("-I", ["-I", "1"], every(lambda run: all(len(row) == 21 for row in run.rows), config(per_iter_timing="true"),
                              lambda run: set(run.results[0]["out_of_place_per_iter"]) == PER_ITERATION,
                              lambda run: len(run.results[0]["in_place_per_iter"]["times_us"]) == 3)),
    ("-K", ["-I", "1", "-K", "2"], every(config(per_iter_skip=2),
                                         lambda run: len(run.results[0]["in_place_per_iter"]["times_us"]) == 1)),
]
# The same for variables.
VARIABLES = [
    ({"NCCL_TESTS_MIN_BW": "0.000001"}, OK, holds("# Avg bus bandwidth    : [0-9.e-]+ OK")),
    ({"NCCL_TESTS_MIN_BW": "1000000"}, WRONG, holds("# Avg bus bandwidth    : [0-9.e-]+ FAILED")),
    ({"NCCL_TESTS_DEVICE": "3"}, OK, holds("# +Rank +1 .* device +4 ")),
    ({"NCCL_TESTS_SPLIT": "MOD 2"}, OK, holds("1 group: processes are split, not their threads")),
    ({"NCCL_TESTS_SPLIT_MASK": "0x1"}, OK, holds("NCCL_TESTS_SPLIT_MASK=0x1: 1 group")),
]
REFUSED = [
    (["-D", "1"], "-D 1: NCCL's device API is not measured"), (["-V", "4"], "-V 4: NCCL's device API is not measured"),
    (["-G", "2", "-z", "3"], "-G 2 and -z 3"), (["-G", "2", "-I", "1"], "-G 2 and -I 1"), (["-q", "1"], "unknown flag '-q'"),
    (["-d", "floot"], "did you mean 'float'"), (["-o", "summ"], "did you mean 'sum'"), (["-b", "1T"], "did you mean '1024G'"),
    (["-b", "8K", "-e", "4K"], "is more than -e"), (["-f", "1.5"], "did you mean '2'"), (["-z", "4"], "from 0 to 3"),
]


@unittest.skipUnless("nccl" in support.BUILT, "the backend nccl is not built")
class Contract(unittest.TestCase):
    def test_each_flag(self):
        for name, words, check in FLAGS:
            with self.subTest(name):
                run = Run(*PLAIN, *words)
                self.assertEqual(run.code, OK, run.err)
                self.assertIn("# Backend: NCCL 2.28.9", run.out)
                self.assertIn("# Out of bounds values : 0 OK", run.out)
                self.assertTrue(check(run), f"{run.out}\n{run.json}")
                self.assertLessEqual(CONFIG, set(run.config), run.config)
                self.assertEqual([row["size"] for row in run.results], run.sizes())
                head = run.out[:run.out.index("# Out of bounds")]
                self.assertNotIn("bandwidth", head)
                self.assertNotIn("FAILED", head)

    def test_each_flag_has_a_row(self):
        covered = {word for _, words, _ in FLAGS for word in [*PLAIN, *words] if re.fullmatch("-[A-Za-z]", word)}
        self.assertEqual(covered | {"-r", "-J"}, {f"-{letter}" for letter in "gtnwmzGCaRDVcNTJSMuIKdorbefipyx"})

    def test_roots(self):
        for root, shown in (("1", ["1", "1"]), ("-1", ["0", "0", "1", "1"])):
            for program in ("broadcast_perf", "reduce_perf", "gather_perf", "scatter_perf"):
                with self.subTest(program=program, root=root):
                    run = Run(*PLAIN, "-r", root, program=program)
                    self.assertEqual((run.code, run.column(4)), (OK, shown), run.err)

    def test_each_variable(self):
        for environment, code, check in VARIABLES:
            with self.subTest(environment):
                run = Run(*PLAIN, **environment)
                self.assertEqual(run.code, code, run.err)
                self.assertTrue(check(run), run.out)

    def test_alltoallv_moves_what_the_variables_say(self):
        with tempfile.TemporaryDirectory(prefix="tutti-test-") as folder:
            matrix = pathlib.Path(folder, "matrix")
            matrix.write_text("0 1024\n512 256\n")
            run = Run("-b", "2K", "-e", "2K", "-g", "2", program="alltoallv_perf", NCCL_TESTS_ALLTOALLV_MATRIX_FILE=str(matrix),
                      NCCL_TESTS_ALLTOALLV_PRINT_SUMMARY="1")
            self.assertEqual((run.code, run.column(0), run.column(1)), (OK, ["1280"], ["0"]), run.err + run.out)
        run = Run(*PLAIN, program="alltoallv_perf", NCCL_TESTS_ALLTOALLV_SPREAD="0")
        self.assertEqual((run.code, run.column(0)), (OK, ["1024", "4096"]), run.err)

    def test_what_is_wrong_is_refused(self):
        for words, why in REFUSED:
            with self.subTest(words):
                run = Run(*PLAIN, *words)
                self.assertEqual((run.code, run.out, run.json), (USAGE, "", None), run.err)
                self.assertIn(why, run.err)

    def test_an_operation_that_does_not_end_is_given_up_at_the_deadline(self):
        run = Run(*PLAIN, "-T", "1", TUTTI_DOUBLE_HANG="9")
        self.assertEqual(run.code, CRASH, run.err)
        self.assertIn("all 2 ranks hang in operation", run.err)

    def test_what_does_not_fit_a_gpu_is_left_out(self):
        run = Run("-b", "1K", "-e", "2G", "-f", "2097152", "-g", "1", "-n", "1", "-w", "0")
        self.assertEqual((run.code, run.sizes()), (OK, [1024]), run.err)
        self.assertIn("# Reducing maxBytes to ", run.out)
        self.assertIn("those of a GPU have to lie in its memory", run.out)

    @unittest.skipIf(shutil.which("mpirun") is None, "there is no mpirun")
    def test_single_times_of_each_process(self):
        run = Run(*PLAIN, "-I", "1", starter=mpirun(2))
        self.assertEqual(run.code, OK, run.err)
        times = run.results[0]["out_of_place_per_iter"]
        self.assertEqual([len(process) for process in times["per_process_max_times_us"]], [3, 3])
        self.assertEqual([max(pair) for pair in zip(*times["per_process_max_times_us"])], times["times_us"])


if __name__ == "__main__":
    unittest.main()
