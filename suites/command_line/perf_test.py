# SPDX-License-Identifier: Apache-2.0
"""The drop-in programs: the table of nccl-tests to the column, the flags, the scripts that read it, and the ways in
which other people's launchers start ranks."""
import csv
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import uuid

import support

FOLDER = support.PROGRAM.parent
FOREIGN = re.compile(r"^(RANK|WORLD_SIZE|LOCAL_|MASTER_|OMPI_|PMIX|PMI_|SLURM_|NCCL_TESTS_|TUTTI_LAUNCH)")
CLEAN = {name: value for name, value in os.environ.items() if not FOREIGN.match(name)}
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe"]
needs_mpirun = unittest.skipUnless(shutil.which("mpirun"), "there is no mpirun")

PROGRAMS = ["all_reduce_perf", "all_gather_perf", "broadcast_perf", "reduce_perf", "reduce_scatter_perf",
            "alltoall_perf", "alltoallv_perf", "gather_perf", "scatter_perf", "sendrecv_perf"]
WHOLE = ["all_reduce_perf", "broadcast_perf", "reduce_perf", "sendrecv_perf"]
SHOWING_OPS = ["all_reduce_perf", "reduce_perf", "reduce_scatter_perf", "sendrecv_perf"]
ROOTED = ["broadcast_perf", "reduce_perf", "gather_perf", "scatter_perf"]
SWEEP = ["-b", "8", "-e", "1M", "-f", "4", "-c", "1", "-n", "3"]
# (size, count) of SWEEP in float, by hand: what is not divided, and blocks of a multiple of 16 bytes on 2 and 3 ranks.
WHOLE_SIZES = [(8, 2), (32, 8), (128, 32), (512, 128), (2048, 512), (8192, 2048), (32768, 8192), (131072, 32768),
               (524288, 131072)]
DIVIDED_SIZES = {
    2: [(0, 0), (32, 4), (128, 16), (512, 64), (2048, 256), (8192, 1024), (32768, 4096), (131072, 16384),
        (524288, 65536)],
    3: [(0, 0), (0, 0), (96, 8), (480, 40), (2016, 168), (8160, 680), (32736, 2728), (131040, 10920),
        (524256, 43688)],
}
# By hand from the contract; times and bandwidths are masked, `~` stands for the rest of a line of the machine's own.
GOLDEN = """\
# tutti ~
# Collective test starting: reduce_scatter_perf
# nThread 1 nGpus 3 minBytes 64 maxBytes 1024 step: 4(factor) warmup iters: 1 iters: 2 agg iters: 1 validation: 1 graph: 0 unalign: 0
# Backend: tutti, ~
#
# Using devices
#  Rank  0 Group  0 Pid ~
#  Rank  1 Group  0 Pid ~
#  Rank  2 Group  0 Pid ~
#
#                                                              out-of-place                       in-place          
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong 
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         
          48             4     float     max      -1  .......  ......  ......       0  .......  ......  ......       0
         240            20     float     max      -1  .......  ......  ......       0  .......  ......  ......       0
        1008            84     float     max      -1  .......  ......  ......       0  .......  ......  ......       0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : ~
#
# Collective test concluded: reduce_scatter_perf
#

"""
NUMBERS = [slice(54, 61), slice(63, 69), slice(71, 77), slice(87, 94), slice(96, 102), slice(104, 110)]


def perf(program, *words, limit=60, environment=None):
    """The Result of a run without a foreign launcher's variables."""
    begin = time.monotonic()
    done = subprocess.run([str(FOLDER / program), *words], env={**CLEAN, **(environment or {})}, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=support.patience(limit))
    return support.Result(done.returncode, done.stdout, done.stderr, time.monotonic() - begin)


def under_mpirun(ranks, program, *words, limit=60):
    done = subprocess.run([*MPIRUN, "-np", str(ranks), str(FOLDER / program), *words], env=CLEAN, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=support.patience(limit))
    return support.Result(done.returncode, done.stdout, done.stderr, 0)


def rows(text):
    return [line.split() for line in text.splitlines() if line and not line.startswith("#")]


def masked(text):
    """Numbers that are measured as dots, right where the contract has them; the machine's own words as ~."""
    lines = []
    for line in text.splitlines():
        if line and not line.startswith("#"):
            for at in NUMBERS:
                if not re.fullmatch(r" *[0-9.e+-]+", line[at]):
                    return f"{line!r} has no number at {at}"
                line = line[:at.start] + "." * (at.stop - at.start) + line[at.stop:]
        line = re.sub(r"^(# tutti |# Backend: tutti, |#  Rank  \d Group  0 Pid |# Avg bus bandwidth    : ).*", r"\1~", line)
        lines.append(line)
    return "\n".join(lines) + "\n"


class Job:
    """Ranks that a script starts as torchrun would: a process each, with RANK, WORLD_SIZE and a meeting of its own."""

    def __init__(self, ranks, *words, program="all_reduce_perf", port=None, missing=(), **variables):
        port = port or str(uuid.uuid4())
        self.processes = {}
        for rank in set(range(ranks)) - set(missing):
            own = {"RANK": rank, "WORLD_SIZE": ranks, "LOCAL_RANK": rank, "MASTER_ADDR": "127.0.0.1",
                   "MASTER_PORT": port, **variables}
            self.processes[rank] = subprocess.Popen(
                [str(FOLDER / program), *words], env={**CLEAN, **{name: str(value) for name, value in own.items()}},
                text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def results(self, limit=60):
        """By rank; a rank that does not end in time is killed and reported as such."""
        end = time.monotonic() + support.patience(limit)
        found = {}
        for rank, process in self.processes.items():
            try:
                out, err = process.communicate(timeout=max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                out, err = process.communicate()
                err += f"\nrank {rank} did not end"
            found[rank] = support.Result(process.returncode, out, err, 0)
        return found

    def wait_for_rows(self, number=3):
        """Until rank 0 has printed so many rows."""
        text = ""
        while text.count("\n ") < number:
            line = self.processes[0].stdout.readline()
            if not line:
                raise AssertionError(f"rank 0 ended early: {text}{self.processes[0].stderr.read()}")
            text += line


class Table(unittest.TestCase):
    def test_is_the_contracts_to_the_column(self):
        done = perf("reduce_scatter_perf", "-b", "64", "-e", "1K", "-f", "4", "-n", "2", "-o", "max", "-g", "3")
        self.assertEqual(done.code, 0, done)
        self.assertEqual(masked(done.out), GOLDEN)
        self.assertEqual(done.err, "")

    def test_every_program_has_the_contracts_sizes_and_counts(self):
        for program in PROGRAMS:
            for ranks in (2, 3):
                with self.subTest(program=program, ranks=ranks):
                    done = perf(program, *SWEEP, "-g", str(ranks))
                    self.assertEqual(done.code, 0, done)
                    table = rows(done.out)
                    expected = WHOLE_SIZES if program in WHOLE else DIVIDED_SIZES[ranks]
                    self.assertEqual([(int(row[0]), int(row[1])) for row in table], expected)
                    for row in table:
                        self.assertEqual(len(row), 13, row)
                        self.assertEqual(row[2:5], ["float", "sum" if program in SHOWING_OPS else "none",
                                                    "0" if program in ROOTED else "-1"])
                        self.assertEqual((row[8], row[12]), ("0", "0"), row)
                    for line in done.out.splitlines():
                        if line and not line.startswith("#"):
                            self.assertEqual(len(line), 118, line)

    def test_hypercube_has_no_redop_and_counts_what_a_rank_receives(self):
        done = perf("hypercube_perf", *SWEEP, "-g", "4")
        self.assertEqual(done.code, 0, done)
        table = rows(done.out)
        self.assertEqual([(int(row[0]), int(row[1])) for row in table][-1], (524288, 32768))
        for row in table:
            self.assertEqual(len(row), 12, row)
            self.assertEqual((row[3], row[7], row[11]), ("-1", "0", "0"))
        size, took, algbw, busbw = int(table[-1][0]), *map(float, table[-1][4:7])
        self.assertAlmostEqual(algbw, size * 3 / 4 / took / 1e3, delta=0.02 + algbw * 0.02)
        self.assertEqual(algbw, busbw)

    def test_hypercube_has_no_row_where_ranks_are_no_power_of_two(self):
        done = perf("hypercube_perf", *SWEEP, "-g", "3")
        self.assertEqual((done.code, rows(done.out)), (3, []), done)
        self.assertRegex(done.out, r"(?m)^# hypercube needs a power of two")
        self.assertIn("\n# Nothing was measured: no row\n", done.out)
        self.assertEqual(done.err, "hypercube_perf: nothing was measured: the table has no row and says why\n")
        self.assertNotRegex(done.out, r"\bOK\b|nan")

    def test_sizes_that_do_not_fit_are_no_success(self):
        for program in PROGRAMS:
            for sizes, names in [(("-b", "65536G", "-e", "65536G"), ["70368744177664"]), (("-b", "32768G", "-e", "65536G", "-f", "2"), ["35184372088832"])]:
                with self.subTest(program, sizes=sizes), support.tempfile.TemporaryDirectory() as folder:
                    done = perf(program, *sizes, "-g", "2", "-n", "1", "-J", f"{folder}/x.json")
                    self.assertEqual((done.code, done.out), (3, ""), done)
                    for words in [f"{program}: sizes from ", "are skipped, which are all: their buffers do not fit: at most ", " are left of the ", *names]:
                        self.assertIn(words, done.err)
                    self.assertFalse(pathlib.Path(folder, "x.json").exists())

    def test_not_checked_is_said_one_column_short(self):
        done = perf("all_reduce_perf", "-b", "8", "-e", "8", "-c", "0", "-n", "2")
        row = next(line for line in done.out.splitlines() if line.startswith(" "))
        self.assertEqual((row[77:85], row[110:]), ("     N/A", "    N/A"), done)
        self.assertEqual(len(row), 117)

    def test_one_rank_is_told_why_its_busbw_is_0(self):
        for program in PROGRAMS + ["hypercube_perf"]:
            for ranks in ("1", "2"):
                with self.subTest(program=program, ranks=ranks):
                    done = perf(program, "-b", "1M", "-e", "1M", "-n", "2", "-g", ranks)
                    at = 6 if program == "hypercube_perf" else 7
                    is_zero = ranks == "1" and program not in ("broadcast_perf", "reduce_perf", "sendrecv_perf")
                    if is_zero:
                        self.assertEqual(rows(done.out)[0][at], "0.00", done)
                    before = done.out[:done.out.index("# Using devices")]
                    self.assertEqual("\n# busbw is 0: " in before, is_zero, done)
                    self.assertNotIn("bandwidth", done.out[:done.out.index("# Avg bus bandwidth")])

    def recorded(self, program, *words):
        """The result, and the rows that `--csv` and `--json` get, which are the same."""
        with support.tempfile.TemporaryDirectory() as folder:
            done = perf(program, *words, "--csv", f"{folder}/x.csv", "--json", f"{folder}/x.json")
            self.assertEqual(done.code, 0, done)
            found = support.read_csv(f"{folder}/x.csv")[1]
            record = support.read_json(f"{folder}/x.json")
            self.assertEqual(support.differences(found, record["rows"]), [])
            self.assertRegex(" ".join(record["measurement"]), r"^first_call_us\.P\d+\.tutti init_s\.P\d+$")
            for number, ranks in record["ranks"].items():
                self.assertEqual(number, f"P{len(ranks)}")
                self.assertEqual(sorted(int(one["rank"]) for one in ranks), list(range(len(ranks))))
                self.assertGreater(int(ranks[0]["samples"]), 0)
            return done, found

    def test_where_a_narrow_float_cannot_add_all_ranks_every_rank_is_checked_in_passes(self):
        words = ["-b", "16", "-e", "16", "-n", "2", "-d", "f8e5m2"]
        note = "# Validation of f8e5m2 sums: 2 passes of 15 ranks, 17 cannot be added exactly\n"
        done, found = self.recorded("all_reduce_perf", *words, "-t", "17")
        self.assertEqual(done.out.count(note), 1, done)
        self.assertEqual([(row["placement"], row["checked_on"], row["verdict"]) for row in found],
                         [("out", "timed; 2 passes of 15 ranks", "ok"), ("in", "further; 2 passes of 15 ranks", "ok")])
        for program, more in (("all_reduce_perf", ["-t", "15"]), ("all_reduce_perf", ["-t", "17", "-c", "0"]),
                              ("all_reduce_perf", ["-t", "17", "-o", "max"]), ("all_gather_perf", ["-t", "17"])):
            self.assertNotIn("Validation of", perf(program, *words, *more).out, (program, more))

    def test_records_say_how_exact_and_reproducible_sums_are(self):
        words = ["-b", "4K", "-e", "4K", "-n", "2", "-g", "3"]
        for program, more, is_summed in (("all_reduce_perf", ["-d", "half"], True), ("reduce_perf", [], True),
                                         ("all_reduce_perf", ["-d", "int32"], False), ("broadcast_perf", [], False),
                                         ("all_reduce_perf", ["-c", "0"], False)):
            for row in self.recorded(program, *words, *more)[1]:
                self.assertEqual(row["same_on_repeats"], "yes" if is_summed else "", row)
                self.assertEqual(row["same_on_ranks"], "yes" if is_summed and program == "all_reduce_perf" else "", row)
                self.assertEqual(row["error_ulp"] != "", is_summed, row)
                if is_summed:
                    self.assertLess(0, float(row["error_ulp"]), row)

    def test_bandwidths_follow_from_size_and_time(self):
        factor = {"all_reduce_perf": 4 / 3, "broadcast_perf": 1, "reduce_perf": 1, "sendrecv_perf": 1}
        for program in PROGRAMS:
            for row in rows(perf(program, "-b", "1M", "-e", "1M", "-g", "3", "-n", "2").out):
                size, took, algbw, busbw = int(row[0]), float(row[5]), float(row[6]), float(row[7])
                self.assertAlmostEqual(algbw, size / took / 1e3, delta=0.02 + algbw * 0.02, msg=(program, row))
                self.assertAlmostEqual(busbw, algbw * factor.get(program, 2 / 3), delta=0.02, msg=(program, row))

    def test_all_dtypes_and_ops(self):
        done = perf("all_reduce_perf", "-b", "1K", "-e", "1K", "-d", "all", "-o", "all", "-n", "2", "-g", "2")
        pairs = {(row[2], row[3]) for row in rows(done.out)}
        dtypes = "int8 uint8 int32 uint32 int64 uint64 half float double bfloat16 f8e4m3 f8e5m2".split()
        self.assertLessEqual({(dtype, op) for dtype in dtypes for op in "sum prod max min avg".split()}, pairs, done)
        of_int8 = [row[3] for row in rows(done.out) if row[2] == "int8"]
        self.assertEqual(of_int8, "sum prod max min avg mulsum".split(), "the order of nccl-tests")
        self.assertTrue(all(row[8] == row[12] == "0" for row in rows(done.out)), done)

    def test_roots(self):
        for root in ("-1", "all"):
            table = rows(perf("broadcast_perf", "-b", "64", "-e", "64", "-g", "3", "-n", "2", "-r", root).out)
            self.assertEqual([row[4] for row in table], ["0", "1", "2"])
        self.assertEqual(rows(perf("gather_perf", "-b", "64", "-e", "64", "-g", "3", "-r", "2").out)[0][4], "2")

    def test_more_columns_where_asked_for(self):
        stamped = perf("all_reduce_perf", "-b", "8", "-e", "8", "-S", "1", "-n", "2")
        self.assertRegex(stamped.out, r"\n {11}8.{106}  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\n")
        each = perf("all_reduce_perf", "-b", "8", "-e", "8", "-I", "1", "-K", "1", "-n", "5", "-g", "2")
        self.assertEqual(len(rows(each.out)[0]), 21, each)
        self.assertIn("i_min    i_max    i_p99    i_cv%", each.out)
        self.assertEqual(each.out.count("     (us)     (us)     (us)      (%)"), 2, each)
        self.assertIn("cputime", perf("all_reduce_perf", "-b", "8", "-e", "8", "-C", "1").out)

    def test_every_way_to_wait_and_to_average(self):
        for flags in (["-z", "1"], ["-z", "2"], ["-z", "3"], ["-a", "0"], ["-a", "2"], ["-a", "3"], ["-m", "3"],
                      ["-u", "1"], ["-w", "0"], ["-c", "3"], ["-i", "512", "-f", "1"], ["-p", "1", "-t", "2", "-g", "1"]):
            done = perf("alltoall_perf", "-b", "512", "-e", "1K", "-f", "2", "-g", "2", "-n", "3", *flags)
            self.assertEqual([row[8] for row in rows(done.out)], ["0", "0"], (flags, done))

    def test_cycles_repeat_the_sweep(self):
        done = perf("all_reduce_perf", "-b", "8", "-e", "16", "-f", "2", "-N", "3", "-n", "2")
        self.assertEqual([row[0] for row in rows(done.out)], ["8", "16"] * 3)


class Traffic(unittest.TestCase):
    """alltoallv: how much each rank sends to each other."""

    # Bytes; fractions, and what is over a multiple of 16, are cut. Rank 0 sends 1056, rank 1 receives 1024.
    MATRIX = "64 1000 0\n\n16 40 200.5\n320 0 8\n"

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(support.tempfile.TemporaryDirectory()))

    def matrix(self, text=MATRIX):
        (self.folder / "matrix").write_text(text)
        return {"NCCL_TESTS_ALLTOALLV_MATRIX_FILE": str(self.folder / "matrix")}

    def moved(self, *words, environment=None):
        """(size, count) of all rows, which are right, and rank -> (bytes sent, bytes received) of the last one."""
        variables = {"NCCL_TESTS_ALLTOALLV_PRINT_SUMMARY": "1", **(environment or {})}
        done = perf("alltoallv_perf", *words, "-n", "3", environment=variables)
        self.assertEqual((done.code, done.err), (0, ""), done)
        for row in rows(done.out):
            self.assertEqual((len(row), row[2:5], row[8], row[12]), (13, ["float", "none", "-1"], "0", "0"), done)
        self.assertIn("# In place every pair exchanges the mean", done.out)
        line = r"(?m)^#   rank=(\d+) send_bytes=(\d+) recv_bytes=(\d+) alg_bw=\S+ bus_bw=\S+$"
        ranks = {int(rank): (int(sent), int(received)) for rank, sent, received in re.findall(line, done.out)}
        return [(int(row[0]), int(row[1])) for row in rows(done.out)], ranks

    def test_shares_grow_with_the_distance(self):
        # Of 1024 bytes 0, 1/6, 2/6 and 3/6: 0, 160, 336 and 512.
        self.assertEqual(self.moved("-b", "1K", "-e", "1K", "-g", "4"),
                         ([(1008, 64)], dict.fromkeys(range(4), (1008, 1008))))
        self.assertEqual(self.moved("-b", "1K", "-e", "1K", "-g", "1"), ([(1024, 256)], {0: (1024, 1024)}))

    def test_spread_blends_them_with_equal_ones(self):
        # Half of it: 128, 128 + 85, 128 + 170 and 128 + 256.
        for spread, size in (("0", 1024), ("0.5", 128 + 208 + 288 + 384), ("1", 1008)):
            variables = {"NCCL_TESTS_ALLTOALLV_SPREAD": spread}
            found, _ = self.moved("-b", "1K", "-e", "1K", "-g", "4", environment=variables)
            self.assertEqual(found, [(size, 64)], spread)

    def test_a_matrix_says_all(self):
        words = ["-b", "4K", "-e", "4K", "-g", "3"]
        self.assertEqual(self.moved(*words, environment=self.matrix()),
                         ([(1056, 0)], {0: (1056, 400), 1: (240, 1024), 2: (320, 192)}))
        twice = {**self.matrix(), "NCCL_TESTS_ALLTOALLV_MATRIX_SCALE": "2"}
        self.assertEqual(self.moved(*words, environment=twice),
                         ([(2128, 0)], {0: (2128, 800), 1: (512, 2080), 2: (656, 416)}))
        self.assertEqual(self.moved("-b", "1056", "-e", "1056", "-g", "2", environment=self.matrix()),
                         ([(1056, 0)], {0: (1056, 80), 1: (48, 1024)}), "the first two ranks of three")

    def test_in_place_exchanges_the_mean_of_a_pairs_counts(self):
        file = str(self.folder / "x.csv")
        done = perf("alltoallv_perf", "-b", "4K", "-e", "4K", "-g", "3", "-n", "3", "-d", "all", "--csv", file,
                    environment=self.matrix())
        self.assertEqual(done.code, 0, done)
        found = support.read_csv(file)[1]
        # Rank 0 keeps 64 bytes and exchanges (992 + 16) / 2 and (0 + 320) / 2.
        self.assertEqual({(row["placement"], row["bytes"], row["verdict"], row["checked_on"]) for row in found},
                         {("out", "1056", "ok", "timed"), ("in", "728", "ok", "further")})
        self.assertEqual(len(found), 24)

    def test_counts_are_named_as_those_of_a_file_that_holds_them(self):
        perf("alltoallv_perf", "-b", "64", "-e", "64", "-g", "2", "-n", "3", "--csv", f"{self.folder}/x.csv")
        (self.folder / "counts").write_text("0 16 16 0")
        done = support.run("run", "all_to_all_v", "--backends", "tutti", "--ranks", "2", "--counts",
                           f"{self.folder}/counts", "--csv", f"{self.folder}/y.csv")
        self.assertEqual(done.code, 0, done)
        names = [{row["case"].split("/")[7] for row in support.read_csv(f"{self.folder}/{name}.csv")[1]} for name in "xy"]
        self.assertEqual(names[0], names[1])
        self.assertRegex(names[0].pop(), r"^64B\.file-[0-9a-f]{8}$")

    def test_bandwidth_follows_from_what_the_busiest_rank_moves(self):
        text = "0 900000 0\n300000 0 0\n0 0 0\n"
        row = rows(perf("alltoallv_perf", "-g", "3", "-n", "2", environment=self.matrix(text)).out)[0]
        for at, size in ((5, 900000), (9, 600000)):
            took, algbw, busbw = map(float, row[at:at + 3])
            self.assertAlmostEqual(algbw, size / took / 1e3, delta=0.02 + algbw * 0.02, msg=row)
            self.assertAlmostEqual(busbw, algbw * 2 / 3, delta=0.02, msg=row)

    def refused(self, environment, *words, names):
        done = perf("alltoallv_perf", "-g", "3", *words, environment=environment, limit=10)
        self.assertEqual((done.code, done.out), (2, ""), done)
        self.assertEqual(len(done.err.splitlines()), 1, done)
        for name in names:
            self.assertIn(name, done.err)

    def test_what_is_wrong_is_one_error(self):
        for text, names in (("", ["no numbers"]), ("1 2 3\n4 5\n", ["line 2", "2 numbers", "has 3"]),
                            ("1 2 3\n4 5 6\n", ["2 rows of 3", "square"]), ("1 2\n3 4\n", ["one of 2 ranks", "are 3"]),
                            ("1 2 3\n\n4 x 6\n7 8 9", ["line 3", "'x'"]), ("1 -2 3\n4 5 6\n7 8 9", ["line 1", "'-2'"]),
                            ("1 2 nan\n", ["'nan'"]), ("1 2 1e30\n", ["'1e30'"])):
            self.refused(self.matrix(text), names=names)
        self.refused({"NCCL_TESTS_ALLTOALLV_MATRIX_FILE": "/nowhere/x"}, names=["'/nowhere/x'"])
        self.refused(self.matrix(), "-b", "1K", "-e", "2K", "-f", "2", names=["-b 1024", "'-b 2048'"])
        self.refused(self.matrix(), "-b", "1K", "-e", "1K", names=["-e 1024", "1056 bytes", "'-b 1056 -e 1056'"])
        for name, value in (("SPREAD", "1.5"), ("SPREAD", "much"), ("MATRIX_SCALE", "-1"), ("PRINT_SUMMARY", "yes")):
            self.refused({f"NCCL_TESTS_ALLTOALLV_{name}": value}, names=[f"_{name} is '{value}'"])

    def test_processes_that_were_told_otherwise_are_no_job(self):
        port = str(uuid.uuid4())
        jobs = [Job(2, "-b", "64", "-e", "64", program="alltoallv_perf", port=port, missing=(other,),
                    NCCL_TESTS_ALLTOALLV_SPREAD=spread) for other, spread in ((1, "0"), (0, "1"))]
        for job in jobs:
            for result in job.results(30).values():
                self.assertEqual(result.code, 2, result)
                self.assertIn("spread 0", result.err)


class Flags(unittest.TestCase):
    def refused(self, *words, names, program="all_reduce_perf"):
        done = perf(program, *words, limit=10)
        self.assertEqual((done.code, done.out), (2, ""), done)
        self.assertEqual(len(done.err.splitlines()), 1, done)
        for name in names:
            self.assertIn(name, done.err)

    def test_what_is_wrong_is_one_error_that_names_the_right_one(self):
        self.refused("-o", "sun", names=["-o", "'sun'", "'sum'"])
        self.refused("-d", "hafl", names=["-d", "'hafl'", "'half'"])
        self.refused("--qq", names=["'--qq'"])
        self.refused("-q", "1", names=["'-q'"])
        self.refused("--minbyts", "8", names=["'--minbyts'", "'--minbytes'"])
        self.refused("-b", "1T", names=["-b", "'1T'", "'1024G'"])
        self.refused("-b", "8x", names=["-b", "'8x'"])
        self.refused("-f", "1.5", names=["-f", "'1.5'", "'2'"])
        self.refused("-b", "4M", "-e", "1M", names=["-b", "-e"])
        self.refused("-b", "0", "-e", "8", "-f", "2", names=["-b 0", "-f 2"])
        self.refused("-n", "0", names=["-n", "'0'"])
        self.refused("-n", names=["-n"])
        self.refused("-n", "65536", "-m", "65536", names=["-n 65536", "-m 65536", "4294967296", "'-m 32767'"])
        self.refused("-n", "5", "-I", "1", "-K", "5", names=["-K 5", "'-K 4'"])
        self.refused("-z", "4", names=["-z", "0 to 3"])
        self.refused("-J", "x.txt", names=["-J", "x.txt.json"])
        self.refused("stray", names=["'stray'"])
        self.refused("-r", "3", "-g", "3", names=["-r", "0 to 2"], program="broadcast_perf")
        self.refused("--csv", "/nowhere/x.csv", names=["/nowhere/x.csv"])
        self.refused("--csv", "rows", "--json", "./rows", names=["--csv", "--json", "'rows'", "'rows.json'"])

    def test_long_names_and_fractions_of_units(self):
        done = perf("all_reduce_perf", "--minbytes=0.5K", "--maxbytes", "1k", "--stepfactor", "2", "--iters", "2")
        self.assertEqual([row[0] for row in rows(done.out)], ["512", "1024"], done)

    def test_the_shortest_abbreviations_are_theirs_in_spite_of_our_names(self):
        done = perf("all_reduce_perf", "-b", "8", "-e", "8", "--b", "1", "--l", "1")
        self.assertEqual(done.code, 0, done)
        self.assertIn("# Blocking Enabled: mode 1\n", done.out)
        self.assertIn("# -R 1 has no meaning on CPU ranks", done.out)

    def test_flags_of_gpus_are_left_aside_with_a_line(self):
        words = [word for letter in "GRDVxyp" for word in (f"-{letter}", "1")]
        done = perf("all_reduce_perf", "-b", "8", "-e", "8", *words)
        self.assertEqual(done.code, 0, done)
        for letter in "GRDVxyp":
            self.assertRegex(done.out, rf"(?m)^# -{letter} 1 has no meaning")

    def test_help_names_all_flags(self):
        done = perf("all_reduce_perf", "--help")
        self.assertEqual(done.code, 0, done)
        for letter in "befigtnwcdormazGCNTJSRMuIK":
            self.assertIn(f"  -{letter}, --", done.out)
        for name in ("backend", "device", "ranks-per-gpu", "lanes", "csv", "json", "version"):
            self.assertIn(f"      --{name} ", done.out)

    def test_help_lists_types_ops_variables_and_exit_codes(self):
        for program in ("all_reduce_perf", "alltoallv_perf"):
            done = perf(program, "-h")
            self.assertEqual(done.code, 0, done)
            dtypes = "int8 uint8 int32 uint32 int64 uint64 half float double bfloat16 f8e4m3 f8e5m2"
            self.assertIn(f"\nTypes: {dtypes}, all\nOps: sum prod max min avg mulsum, all\n", done.out)
            for word in ("NCCL_TESTS_MIN_BW:", "NCCL_TESTS_SPLIT:", "NCCL_TESTS_SPLIT_MASK"):
                self.assertIn(word, done.out)
            codes = done.out[done.out.index("\nExit codes: "):]
            self.assertEqual(re.findall(r"(?<=[:;])\s(\d)\b", codes), ["0", "2", "3", "5", "7"], done)

    def test_least_bandwidth_has_a_slack_of_a_tenth(self):
        words = ["-b", "1M", "-e", "1M", "-g", "2", "-n", "2"]
        for least, code, word in (("1e9", 7, "FAILED"), ("0", 0, "OK"), ("1e-9", 0, "OK")):
            done = perf("all_reduce_perf", *words, environment={"NCCL_TESTS_MIN_BW": least})
            self.assertEqual(done.code, code, done)
            self.assertRegex(done.out, rf"(?m)^# Avg bus bandwidth    : [0-9.e+-]+ {word}$")
        done = perf("all_reduce_perf", *words, environment={"NCCL_TESTS_MIN_BW": "fast"})
        self.assertEqual(done.code, 2, done)

    def test_files(self):
        with support.tempfile.TemporaryDirectory() as folder:
            words = ["-b", "64", "-e", "1K", "-f", "4", "-g", "2", "-n", "6", "-I", "1"]
            files = [f"{folder}/x.csv", f"{folder}/x.json", f"{folder}/nccl.json"]
            for _ in range(2):
                done = perf("all_reduce_perf", *words, "--csv", files[0], "--json", files[1], "-J", files[2])
                self.assertEqual(done.code, 0, done)
            _, found = support.read_csv(files[0])
            self.assertEqual(support.differences(found, support.read_json(files[1])["rows"]), [])
            self.assertEqual([(row["bytes"], row["placement"], row["checked_on"]) for row in found],
                             [(size, placement, on) for size in ("64", "256", "1024")
                              for placement, on in (("out", "timed"), ("in", "further"))])
            self.assertTrue(all(row["samples"] == "6" and row["cadence"] == "streaming" for row in found), found)
            self.assertTrue(pathlib.Path(files[2] + ".0").exists(), "an existing file is kept")
            record = json.loads(pathlib.Path(files[2]).read_text())
            self.assertEqual(record["version"], 3)
            self.assertEqual(len(record["config"]["devices"]), 2)
            self.assertEqual([row["size"] for row in record["results"]], [64, 256, 1024])
            self.assertEqual(record["results"][0]["root"], "    -1")
            self.assertEqual(len(record["results"][0]["in_place_per_iter"]["times_us"]), 6)
            self.assertEqual(record["out_of_bounds"], {"count": 0, "okay": "true"})
            self.assertEqual(record["average_bus_bandwidth"]["okay"], "unchecked")
            self.assertNotIn("per_process_max_times_us", record["results"][0]["in_place_per_iter"], "one process")

    def test_compatible_json_has_the_times_of_each_process(self):
        with support.tempfile.TemporaryDirectory() as folder:
            job = Job(3, "-b", "64", "-e", "64", "-n", "6", "-I", "1", "-K", "2", "-t", "2", "-J", f"{folder}/x.json")
            self.assertEqual({result.code for result in job.results().values()}, {0})
            row = json.loads(pathlib.Path(folder, "x.json").read_text())["results"][0]
        for placement in ("out_of_place_per_iter", "in_place_per_iter"):
            times = row[placement]["per_process_max_times_us"]
            self.assertEqual([len(one) for one in times], [4] * 3, row)
            self.assertEqual([max(each) for each in zip(*times)], row[placement]["times_us"], row)

    def test_compatible_json_of_no_row_has_no_number_as_average(self):
        with support.tempfile.TemporaryDirectory() as folder:
            done = perf("hypercube_perf", "-g", "3", "-J", f"{folder}/x.json")
            self.assertEqual(done.code, 3, done)
            record = json.loads(pathlib.Path(folder, "x.json").read_text())
        self.assertEqual(record["results"], [])
        self.assertEqual(record["average_bus_bandwidth"], {"bandwidth": None, "okay": "unchecked"})
        self.assertEqual(record["out_of_bounds"], {"count": 0, "okay": "unchecked"})


class Output(unittest.TestCase):
    """Rows that nobody can read end the program: it would run on, for ever with -N 0."""

    WORDS = ["-b", "8", "-e", "8", "-g", "2", "-n", "2", "-N", "0"]

    def check(self, process, why, limit=30):
        try:
            process.wait(timeout=support.patience(limit))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            self.fail("it runs on")
        self.assertEqual((process.returncode, process.stderr.read()),
                         (2, f"all_reduce_perf: the output cannot be written: {why}\n"))

    def start(self, *words, **options):
        process = subprocess.Popen([str(FOLDER / "all_reduce_perf"), *self.WORDS, *words], env=CLEAN, text=True,
                                   stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, **options)
        self.addCleanup(process.stderr.close)
        return process

    def test_a_reader_that_goes_away(self):
        with support.tempfile.TemporaryDirectory() as folder:
            process = self.start("--csv", f"{folder}/x.csv", stdout=subprocess.PIPE)
            while not process.stdout.readline().startswith(" "):
                pass
            process.stdout.close()
            self.check(process, "Broken pipe")
            self.assertGreaterEqual(len(support.read_csv(f"{folder}/x.csv")[1]), 2, "what was measured is kept")

    def test_no_room(self):
        with open("/dev/full", "w") as full:
            self.check(self.start(stdout=full), "No space left on device")

    def test_a_closed_stream(self):
        self.check(self.start(preexec_fn=lambda: os.close(1)), "Bad file descriptor")

    def test_help_that_nobody_reads(self):
        with open("/dev/full", "w") as full:
            self.check(self.start("--help", stdout=full), "No space left on device")

    def test_all_ranks_end(self):
        job = Job(3, "-b", "8", "-e", "8", "-N", "0", "-n", "2")
        job.wait_for_rows()
        job.processes[0].stdout.close()
        first = job.processes.pop(0)
        self.addCleanup(first.stderr.close)
        self.check(first, "Broken pipe")
        for result in job.results(20).values():
            self.assertEqual(result.code, 2, result)
            self.assertEqual(result.err, "all_reduce_perf: the output cannot be written: Broken pipe\n")

    def test_errors_that_nobody_can_read_have_their_exit_code(self):
        done = subprocess.run([str(FOLDER / "all_reduce_perf"), "--qq"], env=CLEAN, stdout=subprocess.DEVNULL,
                              preexec_fn=lambda: os.close(2), timeout=support.patience(20))
        self.assertEqual(done.returncode, 2)


class Rccl(unittest.TestCase):
    """-Z json or csv with -x FILE, as rccl-tests has them: by its readers' own demands (ranks = nodes x ranksPerNode)."""
    WORDS = ["-b", "64", "-e", "256", "-f", "4", "-g", "2", "-n", "2", "-N", "2"]

    def test_json(self):
        with tempfile.TemporaryDirectory() as folder:
            done = perf("alltoall_perf", *self.WORDS, "-Z", "json", "-x", f"{folder}/o.json")
            self.assertEqual(done.code, 0, done)
            records = json.loads(pathlib.Path(folder, "o.json").read_text())
        self.assertEqual([(one["numCycle"], one["size"], one["inPlace"]) for one in records],
                         [(cycle, size, place) for cycle in (0, 1) for size in (64, 256) for place in (0, 1)])
        for one in records:
            self.assertEqual((one["name"], one["nodes"], one["ranks"], one["ranksPerNode"], one["gpusPerRank"], one["type"], one["redop"],
                              one["wrong"]), ("AlltoAll", 1, 1, 1, 2, "float", "none", 0))
            self.assertGreater(one["time"], 0)
            self.assertGreaterEqual(one["algBw"], one["busBw"])

    def test_csv(self):
        with tempfile.TemporaryDirectory() as folder:
            done = perf("all_reduce_perf", *self.WORDS, "-c", "0", "-Z", "csv", "-x", f"{folder}/o.csv")
            self.assertEqual(done.code, 0, done)
            with open(f"{folder}/o.csv") as file:
                found = list(csv.DictReader(file))
        self.assertEqual(len(found), 8)
        self.assertEqual({(one["collective"], one["ranks"], one["redop"], one["#wrong"]) for one in found}, {("AllReduce", "1", "sum", "N/A")})

    def test_mistakes(self):
        for words, names in [(["-Z", "jsn", "-x", "o"], ["-Z", "'jsn'", "'json'"]), (["-Z", "json"], ["-Z json -x FILE"]),
                             (["-x", "o.json"], ["-x", "'o.json'", "-Z json"])]:
            done = perf("all_reduce_perf", *words)
            self.assertEqual(done.code, 2, done)
            for name in names:
                self.assertIn(name, done.err)


class Readers(unittest.TestCase):
    """What scripts in the field do with the text, in a few lines each."""

    @classmethod
    def setUpClass(cls):
        cls.done = perf("all_reduce_perf", "-b", "1K", "-e", "4M", "-f", "4", "-g", "2")
        cls.lines = cls.done.out.splitlines()

    def test_by_header_tokens_from_the_right(self):
        begin = max(i for i, line in enumerate(self.lines) if "out-of-place" in line)
        end = max(i for i, line in enumerate(self.lines) if "Out of bounds values" in line)
        header = next(line for line in self.lines[begin:end] if "time" in line and "busbw" in line).split()
        data = [line.split() for line in self.lines[begin:end] if line.strip()[0].isdigit()]
        self.assertEqual(len(data), 7)
        for name in ("size", "time", "algbw", "busbw"):
            at = header.index(name) - len(header)
            self.assertTrue(all(float(row[at]) >= 0 for row in data))
        self.assertEqual([int(row[header.index("size") - len(header)]) for row in data][0], 1024)

    def test_by_the_first_line_with_the_word(self):
        first = next(line for line in self.lines if "bandwidth" in line)
        float(first.split()[5])
        self.assertFalse([line for line in self.lines if "FAILED" in line])

    def test_by_thirteen_tokens_and_float(self):
        data = [line.split() for line in self.lines]
        data = [row for row in data if len(row) == 13 and row[2] == "float"]
        self.assertEqual(len(data), 7)
        self.assertTrue(all(float(row[9]) > 0 and float(row[11]) >= 0 for row in data))
        self.assertTrue(all(row[12] == "N/A" or int(row[12]) == 0 for row in data))

    def test_by_the_average_line(self):
        line = next(line for line in self.lines if "# Avg bus bandwidth" in line)
        value = float(line.split(":")[1].split()[0])
        self.assertTrue(re.search(r"# Avg bus bandwidth\s*:\s*(\d+)", line))
        self.assertEqual(float(line.split()[-1]), value)
        mean = [float(row[at]) for row in rows(self.done.out) for at in (7, 11)]
        self.assertAlmostEqual(value, sum(mean) / len(mean), delta=0.02)

    def test_by_one_expression_over_the_row(self):
        number = r"([0-9]+(?:\.[0-9]+)?)"
        row = re.compile(r"^\s*(\d+)\s+(\d+)\s+(float|double|int|half)\s+(sum|prod|max|min|none)\s+(-?\d+)"
                         + (rf"\s+{number}" * 3 + r"\s+(\d+|N/A)") * 2 + r"\s*$")
        self.assertEqual(sum(1 for line in self.lines if row.match(line)), 7)
        self.assertTrue(re.search("out-of-place.*in-place", self.done.out))
        self.assertTrue(re.search("size.*count.*type.*redop", self.done.out))

    def test_by_nodes_devices_and_literals(self):
        devices = [line for line in self.lines if "Rank" in line and "device" in line]
        self.assertEqual(len(devices), 2)
        self.assertEqual({line.split(" on ")[1].split()[0] for line in devices}, {os.uname().nodename})
        self.assertTrue(all(re.search(r"device +\d+ \[0000:00:00\] \S", line) for line in devices))
        self.assertIn("float     sum", self.done.out)
        self.assertFalse(re.search("Test NCCL failure|Test failure", self.done.out))
        self.assertEqual([line for line in self.lines if re.match(r"^\s+[0-9]", line)][0].split()[-1], "0")


class Groups(unittest.TestCase):
    """NCCL_TESTS_SPLIT: the processes are shared out into groups that run at the same time."""

    WORDS = ["-b", "64", "-e", "1K", "-f", "4", "-n", "3"]

    def split(self, processes, *words, program="all_gather_perf", code=0, **variables):
        """Result of rank 0, and the group of every rank as the table has it."""
        variables = {f"NCCL_TESTS_{name}": value for name, value in variables.items()}
        results = Job(processes, *words, program=program, **variables).results()
        for rank, result in results.items():
            self.assertEqual(result.code, code, result)
            if rank != 0:
                self.assertEqual(result.out, "", "rank 0 reports")
        return results[0], [int(group) for group in re.findall(r"(?m)^#  Rank +\d+ Group +(\d+) ", results[0].out)]

    def test_by_arithmetic_on_the_number_of_the_process(self):
        for variables, groups in (({"SPLIT": "MOD 2"}, [0, 1, 0, 1]), ({"SPLIT": "%2"}, [0, 1, 0, 1]),
                                  ({"SPLIT": "div 0x2"}, [0, 0, 1, 1]), ({"SPLIT": " / 2 "}, [0, 0, 1, 1]),
                                  ({"SPLIT": "AND 0b1"}, [0, 1, 0, 1]), ({"SPLIT": "&0x2"}, [0, 0, 2, 2]),
                                  ({"SPLIT": "OR 2"}, [2, 3, 2, 3]), ({"SPLIT": "|0x1"}, [1, 1, 3, 3]),
                                  ({"SPLIT_MASK": "0x1"}, [0, 1, 0, 1]), ({"SPLIT_MASK": "2"}, [0, 0, 2, 2]),
                                  ({"SPLIT_MASK": "0x2", "SPLIT": "MOD 2"}, [0, 0, 2, 2])):
            with self.subTest(variables):
                done, found = self.split(4, *self.WORDS, **variables)
                self.assertEqual(found, groups, done)
                self.assertNotIn("bandwidth", done.out[:done.out.index("# Avg bus bandwidth")])
                # Blocks of two ranks, not of four; every group's results are checked.
                self.assertEqual([(row[0], row[1], row[8], row[12]) for row in rows(done.out)],
                                 [("64", "8", "0", "0"), ("256", "32", "0", "0"), ("1024", "128", "0", "0")], done)
                name, value = next(iter(variables.items()))
                self.assertIn(f"\n# NCCL_TESTS_{name}={value}: 2 groups of 2 ranks; rows are those of group {groups[0]},",
                              done.out)

    def test_busbw_is_that_of_a_group(self):
        done, _ = self.split(4, "-b", "1M", "-e", "1M", "-n", "3", program="all_reduce_perf", SPLIT="MOD 2")
        algbw, busbw = map(float, rows(done.out)[0][6:8])
        self.assertAlmostEqual(algbw, busbw, delta=0.011, msg=done)  # 2 (n - 1) / n, with n = 2

    def test_every_program_and_threads_of_a_process_stay_together(self):
        for program in PROGRAMS + ["hypercube_perf"]:
            with self.subTest(program):
                done, found = self.split(3, *self.WORDS, "-g", "2", program=program, SPLIT="MOD 3")
                self.assertEqual(found, [0, 0, 1, 1, 2, 2], done)
                self.assertEqual({(row[-5], row[-1]) for row in rows(done.out)}, {("0", "0")}, done)
                self.assertEqual(len(rows(done.out)), 3, done)

    def test_one_group_is_told(self):
        for processes, variables, word in ((2, {"SPLIT_MASK": "0x0"}, "these 2 are in one"),
                                           (1, {"SPLIT": "MOD 2"}, "there is 1")):
            done, found = self.split(processes, *self.WORDS, "-t", "2", **variables)
            self.assertEqual(set(found), {0})
            self.assertRegex(done.out, rf"(?m)^# NCCL_TESTS_SPLIT.*: 1 group: processes are split, .* {word}$")
        self.assertNotIn("SPLIT", self.split(2, *self.WORDS, SPLIT="", SPLIT_MASK="")[0].out)

    def test_groups_of_different_sizes(self):
        with support.tempfile.TemporaryDirectory() as folder:
            done, found = self.split(3, "-b", "256", "-e", "256", "-g", "2", "-n", "2", "--csv", f"{folder}/x.csv",
                                     "--json", f"{folder}/x.json", program="reduce_perf", SPLIT="DIV 2")
            self.assertEqual(found, [0, 0, 0, 0, 1, 1], done)
            self.assertIn(": 2 groups of 2 to 4 ranks; ", done.out)
            table = support.read_csv(f"{folder}/x.csv")[1]
            self.assertEqual({(row["ranks"], row["verdict"], row["same_on_repeats"]) for row in table},
                             {("4", "ok", "yes")})
            command = support.read_json(f"{folder}/x.json")["command"]
            self.assertTrue(command.startswith("NCCL_TESTS_SPLIT='DIV 2' "), command)
            done, _ = self.split(3, "-b", "256", "-e", "256", "-g", "2", "-n", "2", "--csv", f"{folder}/x.csv",
                                 program="all_reduce_perf", SPLIT="DIV 2")
            self.assertEqual({row["same_on_ranks"] for row in support.read_csv(f"{folder}/x.csv")[1]}, {"yes"}, done)

    def test_roots_are_those_that_every_group_has(self):
        words = ["-b", "64", "-e", "64", "-n", "2", "-r"]
        done, _ = self.split(5, *words, "-1", program="broadcast_perf", SPLIT="DIV 3")
        self.assertEqual([row[4] for row in rows(done.out)], ["0", "1"], done)
        self.assertIn(", and roots below 2\n", done.out)
        done, _ = self.split(5, *words, "2", program="broadcast_perf", code=2, SPLIT="DIV 3")
        self.assertIn("-r: root 2 of 2 ranks: roots are 0 to 1", done.err)

    def test_hypercube_needs_a_power_of_two_in_every_group(self):
        done, _ = self.split(4, *self.WORDS, program="hypercube_perf", code=3, SPLIT="DIV 3")
        self.assertEqual(rows(done.out), [], done)
        self.assertIn("\n# hypercube needs a power of two of ranks, these are 1 and 3: no row\n", done.out)

    def test_all_groups_check_as_often_as_the_one_that_needs_most(self):
        done, _ = self.split(3, "-b", "16", "-e", "16", "-n", "2", "-t", "8", "-d", "f8e5m2",
                             program="all_reduce_perf", SPLIT="DIV 2")
        self.assertIn("# Validation of f8e5m2 sums: 2 passes of 15 ranks, 16 cannot", done.out)
        self.assertEqual([(row[8], row[12]) for row in rows(done.out)], [("0", "0")], done)

    def test_a_matrix_is_that_of_each_group(self):
        with support.tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "matrix").write_text("0 64 16\n32 0 16\n16 16 0\n")
            done, _ = self.split(3, "-b", "256", "-e", "256", "-n", "2", program="alltoallv_perf", SPLIT="DIV 2",
                                 ALLTOALLV_MATRIX_FILE=f"{folder}/matrix")
        self.assertEqual([(row[0], row[8], row[12]) for row in rows(done.out)], [("64", "0", "0")], done)

    def test_what_is_wrong_is_one_error(self):
        for name, value, words in (("SPLIT", "XOR 1", ["AND, OR, MOD or DIV", "'MOD 2'"]), ("SPLIT", "2", ["AND, OR"]),
                                   ("SPLIT", "MOD 0", ["from 1 to", "'MOD 2'"]), ("SPLIT", "/0", ["from 1 to"]),
                                   ("SPLIT", "MOD", ["after MOD"]), ("SPLIT", "AND x", ["after AND", "from 0 to"]),
                                   ("SPLIT", "AND 010", ["decimal, 0x or 0b"]), ("SPLIT", "OR 1 2", ["after OR"]),
                                   ("SPLIT", "MOD -2", ["from 1 to"]), ("SPLIT", "AND 0x80000000", ["2147483647"]),
                                   ("SPLIT_MASK", "0xg", ["hexadecimal", "0x0 to 0x7fffffff"])):
            done = perf("all_reduce_perf", environment={f"NCCL_TESTS_{name}": value}, limit=10)
            self.assertEqual((done.code, done.out, len(done.err.splitlines())), (2, "", 1), done)
            for word in [f"NCCL_TESTS_{name} is '{value}'", *words]:
                self.assertIn(word, done.err)

    def test_processes_that_were_told_otherwise_are_no_job(self):
        port = str(uuid.uuid4())
        jobs = [Job(2, "-b", "64", "-e", "64", port=port, missing=(other,), NCCL_TESTS_SPLIT=split)
                for other, split in ((1, "MOD 2"), (0, "DIV 2"))]
        for job in jobs:
            for result in job.results(30).values():
                self.assertEqual(result.code, 2, result)
                self.assertIn("NCCL_TESTS_SPLIT=MOD 2", result.err)

    def test_whoever_is_stopped_is_named(self):
        job = Job(4, "-b", "8", "-e", "64K", "-f", "8", "-N", "0", "-T", "1", NCCL_TESTS_SPLIT="MOD 2")
        job.wait_for_rows()
        os.kill(job.processes[3].pid, signal.SIGSTOP)
        out, err = job.processes[0].communicate(timeout=support.patience(20))
        os.kill(job.processes[3].pid, signal.SIGCONT)
        self.assertEqual(job.processes.pop(0).returncode, 5, err)
        self.assertIn(f"rank 3 (pid {job.processes[3].pid}) is stopped", err)
        for result in job.results(20).values():
            self.assertEqual(result.code, 5, result)


class Launch(unittest.TestCase):
    def check_silent(self, results):
        for rank, result in results.items():
            self.assertEqual(result.code, 0, result)
            self.assertEqual(result.err, "")
            if rank != 0:
                self.assertEqual(result.out, "", "rank 0 reports, the others print nothing")

    @needs_mpirun
    def test_devices_threads_and_processes_agree_on_the_sizes(self):
        for program in ("all_reduce_perf", "all_gather_perf", "alltoallv_perf"):
            tables = [perf(program, *SWEEP, "-g", "3"), perf(program, *SWEEP, "-t", "3"),
                      under_mpirun(3, program, *SWEEP)]
            for done in tables:
                self.assertEqual(done.code, 0, done)
                self.assertEqual([row[:5] for row in rows(done.out)], [row[:5] for row in rows(tables[0].out)])
                self.assertEqual(done.out.count("#  Rank"), 3, "one run of three ranks")
                self.assertTrue(all(row[8] == row[12] == "0" for row in rows(done.out)), done)

    @needs_mpirun
    def test_threads_and_devices_multiply_under_mpirun(self):
        done = under_mpirun(2, "alltoall_perf", "-b", "1K", "-e", "1K", "-t", "2", "-g", "2", "-n", "2")
        self.assertEqual(done.code, 0, done)
        self.assertEqual(done.out.count("#  Rank"), 8, done)
        self.assertIn("8 ranks in 2 processes over shm", done.out)

    @needs_mpirun
    def test_a_mistake_is_told_once(self):
        for program, words, said in (("all_reduce_perf", ["-o", "sun"], "unknown op 'sun'"),
                                     ("broadcast_perf", ["-r", "7"], "root 7 of 3 ranks")):
            done = under_mpirun(3, program, *words)
            self.assertEqual(done.code, 2, done)
            self.assertEqual(done.err.count(said), 1, done)

    @needs_mpirun
    def test_what_starts_its_ranks_itself_joins_no_job(self):
        done = under_mpirun(3, "tutti", "explain", "all_reduce")
        self.assertEqual(done.code, 2, done)
        self.assertIn("joins no job", done.err)
        self.assertEqual(done.out, "")

    def test_as_torchrun_would(self):
        self.check_silent(Job(3, "-b", "8", "-e", "64K", "-f", "8", "-n", "3").results())

    def test_two_jobs_at_once_do_not_meet(self):
        jobs = [Job(2, "-b", "8", "-e", "8", "-n", "2"), Job(3, "-b", "8", "-e", "8", "-n", "2")]
        for job, ranks in zip(jobs, (2, 3)):
            results = job.results()
            self.check_silent(results)
            pids = {process.pid for process in job.processes.values()}
            shown = {int(pid) for pid in re.findall(r"Pid +(\d+)", results[0].out)}
            self.assertEqual((shown, len(shown)), (pids, ranks))

    def test_as_srun_would(self):
        job = Job(0)
        step = {"SLURM_JOB_ID": uuid.uuid4(), "SLURM_STEP_ID": 0, "SLURM_STEP_NUM_TASKS": 2, "SLURM_STEP_NUM_NODES": 1}
        for rank in range(2):
            own = {**CLEAN, **{name: str(value) for name, value in step.items()}, "SLURM_PROCID": str(rank)}
            job.processes[rank] = subprocess.Popen([str(FOLDER / "broadcast_perf"), "-b", "8", "-e", "8"], env=own,
                                                   text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.check_silent(job.results())

    def test_contradictions_and_parts_are_errors(self):
        for variables, names in (({"RANK": "1"}, ["RANK", "WORLD_SIZE"]),
                                 ({"WORLD_SIZE": "3"}, ["RANK", "WORLD_SIZE"]),
                                 ({"RANK": "3", "WORLD_SIZE": "3"}, ["RANK is 3", "0 to 2"]),
                                 ({"RANK": "-1", "WORLD_SIZE": "3"}, ["RANK is '-1'"]),
                                 ({"RANK": "0", "WORLD_SIZE": "3"}, ["MASTER_ADDR"]),
                                 ({"RANK": "0", "WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1",
                                   "OMPI_COMM_WORLD_SIZE": "2"}, ["RANK is 0", "OMPI_COMM_WORLD_RANK is 1"])):
            done = perf("all_reduce_perf", environment=variables, limit=10)
            self.assertEqual((done.code, done.out), (2, ""), done)
            for name in names:
                self.assertIn(name, done.err)

    def test_a_rank_that_never_comes_is_named_at_the_deadline(self):
        for missing, word in (((1,), "rank 1 of 3 did not come"), ((0,), "rank 0 of 3 did not come")):
            for rank, result in Job(3, "-T", "1", missing=missing).results(30).items():
                self.assertEqual(result.code, 5, result)
                self.assertIn(word, result.err, rank)

    def test_ranks_that_were_told_otherwise_are_no_job(self):
        port = str(uuid.uuid4())
        jobs = [Job(2, "-b", "8", "-e", "8", port=port, missing=(1,)),
                Job(2, "-b", "16", "-e", "16", port=port, missing=(0,))]
        for job in jobs:
            for result in job.results(30).values():
                self.assertEqual(result.code, 2, result)
                self.assertIn("rank 1", result.err)

    def test_whoever_is_killed_is_named_by_the_others(self):
        for victim in range(3):
            job = Job(3, "-b", "8", "-e", "64K", "-f", "8", "-N", "0")
            job.wait_for_rows()
            job.processes[victim].kill()
            results = job.results(20)
            for rank in set(range(3)) - {victim}:
                self.assertEqual(results[rank].code, 5, results[rank])
                self.assertIn(f"rank {victim} (pid {job.processes[victim].pid})", results[rank].err)

    def stopped(self):
        """What rank 0 says when rank 1 is stopped in the middle of its rows."""
        job = Job(2, "-b", "8", "-e", "64K", "-f", "8", "-N", "0", "-T", "1")
        job.wait_for_rows()
        os.kill(job.processes[1].pid, signal.SIGSTOP)
        out, err = job.processes[0].communicate(timeout=support.patience(20))
        os.kill(job.processes[1].pid, signal.SIGCONT)
        self.assertEqual(job.processes[0].returncode, 5, err)
        self.assertIn(f"rank 1 (pid {job.processes[1].pid}) is stopped", err)
        self.assertEqual(job.results(20)[1].code, 5)
        return err

    def test_whoever_is_stopped_is_named_at_the_deadline(self):
        for _ in range(8):  # between two operations nobody waits in one
            err = self.stopped()
            if "its communicator" in err:
                break
        self.assertRegex(err, r"\n  rank 0 \(pid \d+\): in operation \d+ \(all_reduce/tutti\.\S+/\d+B/\S+\) for \d+\.\d s; "
                              r"its communicator .*, is in operation \d+ \(all_reduce .*\), step \d+ of \d+: waits for .*rank 1")

    def test_nothing_is_left(self):
        before = support.shared_memory()
        self.check_silent(Job(3, "-b", "8", "-e", "8", "-n", "2").results())
        self.assertEqual(support.abandoned_shared_memory(before), set())
        self.assertNotIn("tutti-meeting", pathlib.Path("/proc/net/unix").read_text())


if __name__ == "__main__":
    unittest.main()
