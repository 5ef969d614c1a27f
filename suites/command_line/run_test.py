# SPDX-License-Identifier: Apache-2.0
"""What users do with `tutti run` and its neighbours, and what they get: table, CSV, JSON, exit codes."""
import json
import math
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import support

HEADER = ("case,collective,backend,algorithm,transport,buffers,ranks,dtype,op,root,placement,bytes,count,cadence,"
          "launch,launches,samples,time_median,time_ci_low,time_ci_high,time_min,time_p95,time_p99,time_max,algbw,busbw,"
          "limit_fraction,verdict,wrong,slowest_rank,line_ns").split(",")
COLLECTIVES = ["broadcast", "reduce", "all_reduce", "gather", "all_gather", "scatter", "reduce_scatter", "all_to_all",
               "barrier", "sendrecv"]
PREFIXES = ["scan", "exscan"]
PAIRS = ["pingpong", "bandwidth", "bibandwidth", "message_rate"]
V_FORMS = ["gather_v", "all_gather_v", "scatter_v", "reduce_scatter_v", "all_to_all_v"]
BUS_FACTOR = {"all_reduce": lambda p: 2 * (p - 1) / p, **dict.fromkeys(["broadcast", "reduce", "sendrecv"], lambda p: 1),
              **dict.fromkeys(["gather", "all_gather", "scatter", "reduce_scatter", "all_to_all"], lambda p: (p - 1) / p)}
KNOWN_REFERENCES = ["openmpi", "mpich", "gloo", "oneccl"]  # and nccl, which needs a GPU
FILES = ["--csv", "{folder}/rows.csv", "--json", "{folder}/record.json"]


def cell_of(row):
    """The case without its backend and algorithm."""
    return row["case"].replace(f"/{row['backend']}.{row['algorithm']}/", "/")


def table_lines(out):
    return [line for line in out.splitlines() if line.strip() and not line.startswith("#")]


class Sweep(unittest.TestCase):
    """A helper: one small run and its rows, which must agree between CSV and JSON."""

    def sweep(self, *arguments, code=0, limit=60):
        named = [] if {"--backends", "--case"} & set(arguments) else ["--backends", ",".join(support.SYSTEMS)]
        with support.Run("run", *arguments, *named, *FILES) as one:
            result = one.wait(limit)
            self.assertEqual(result.code, code, result)
            self.assertEqual(one.left_behind(), [])
            _, rows = one.rows()
            self.assertEqual(support.differences(rows, support.read_json(one.path / "record.json")["rows"]), [])
            return result, rows

    def assert_all_ok(self, rows, result):
        self.assertTrue(rows, result)
        self.assertEqual({row["verdict"] for row in rows}, {"ok"}, result)


@support.needs_openmpi
class Interleaved(unittest.TestCase):
    """One sweep over everything, own and Open MPI; each test reads another part of what came out."""

    @classmethod
    def setUpClass(cls):
        before = support.shared_memory()
        cls.run_ = support.Run("run", "all", "--backends", "tutti,openmpi", "--ranks", "2", "--sizes", "8:64K:x8",
                               "--budget", "16s", *FILES)  # less gives too few samples for an interval, beside other tests
        cls.addClassCleanup(cls.run_.__exit__)
        cls.result = cls.run_.wait(90)
        cls.left = cls.run_.left_behind() + sorted(support.abandoned_shared_memory(before))
        cls.header, cls.rows = cls.run_.rows()
        cls.record = support.read_json(cls.run_.path / "record.json")  # the schema holds

    def test_every_result_is_right(self):
        self.assertEqual(self.result.code, 0, self.result)
        self.assertEqual({row["verdict"] for row in self.rows}, {"ok"}, self.result)
        self.assertEqual({row["wrong"] for row in self.rows}, {"0"})
        self.assertEqual(self.left, [])

    def test_both_backends_in_every_cell(self):
        cells = {}
        for row in self.rows:
            cells.setdefault(cell_of(row), []).append(row["backend"])
        self.assertEqual(len(cells), 5 * len(BUS_FACTOR) + 1)  # five sizes of each with data, and the barrier
        for cell, backends in cells.items():
            self.assertEqual(sorted(backends), ["openmpi", "tutti"], cell)
        for collective in BUS_FACTOR:
            sizes = {int(row["bytes"]) for row in self.rows if row["collective"] == collective}
            self.assertEqual(sizes, {8 * 8**i for i in range(5)})

    def test_header_is_the_one_that_scripts_rely_on(self):
        self.assertEqual(self.header[:len(HEADER)], HEADER)
        self.assertEqual(len(set(self.header)), len(self.header))

    def test_csv_equals_json(self):
        self.assertEqual(support.differences(self.rows, self.record["rows"]), [])

    def test_identifiers_say_what_the_columns_say(self):
        self.assertEqual(len({row["case"] for row in self.rows}), len(self.rows))
        for row in self.rows:
            root = f"root{row['root']}" if row["root"] else "none"
            parts = [row["collective"], f"{row['backend']}.{row['algorithm']}", row["transport"], row["dtype"],
                     row["op"], f"P{row['ranks']}.{row['ranks_as']}", root, f"{row['bytes']}B", row["placement"], row["buffers"],
                     row["cadence"]]
            self.assertEqual(row["case"], "/".join(parts))
            self.assertEqual(row["algorithm"] == "none", row["backend"] == "openmpi", row)
            self.assertEqual((row["ranks"], row["launch"], row["launches"]), ("2", "1", "1"))

    def test_bandwidths_follow_from_bytes_and_time(self):
        for row in self.rows:
            if row["collective"] == "barrier":
                self.assertEqual((row["algbw"], row["busbw"], row["bytes"]), ("", "", "0"))
                continue
            algorithm = int(row["bytes"]) / float(row["time_median"]) * 1e-3
            bus = algorithm * BUS_FACTOR[row["collective"]](int(row["ranks"]))
            self.assertTrue(math.isclose(float(row["algbw"]), algorithm, rel_tol=1e-3), row)
            self.assertTrue(math.isclose(float(row["busbw"]), bus, rel_tol=1e-3), row)

    def test_times_are_in_order(self):
        for row in self.rows:
            self.assertGreater(int(row["samples"]), 0, row)
            if row["time_ci_low"] == "":
                self.assertIn("noisy", row["marks"], row)
            low, median, high = (float(row[name] or row["time_median"]) for name in ["time_ci_low", "time_median", "time_ci_high"])
            self.assertTrue(0 < float(row["time_min"]) <= low <= median <= high <= float(row["time_max"]), row)
            later = [float(row[name]) for name in ["time_median", "time_p95", "time_p99", "time_max"] if row[name]]
            self.assertEqual(later, sorted(later), row)
            self.assertIn(int(row["slowest_rank"]), range(2))
            self.assertGreater(float(row["line_ns"]), 0)

    def test_every_cell_that_moves_data_has_a_limit_of_its_own(self):
        for row in self.rows:
            if row["collective"] == "barrier":
                self.assertEqual((row["limit_time"], row["limit_fraction"]), ("", ""), row)
                continue
            self.assertGreater(float(row["limit_time"]), 0, row)
            share = float(row["limit_time"]) / float(row["time_median"])
            self.assertTrue(math.isclose(float(row["limit_fraction"]), share, rel_tol=1e-4), row)
        limits = {}
        for row in self.rows:
            limits.setdefault((row["collective"], row["bytes"]), set()).add(row["limit_time"])
        self.assertEqual({cell: len(times) for cell, times in limits.items() if len(times) != 1}, {})

    def test_table_has_a_line_per_cell(self):
        lines = table_lines(self.result.out)
        shown = [(line.split()[0], line.split()[1], line.split()[2]) for line in lines]
        own = [(row["bytes"], row["count"], row["algorithm"]) for row in self.rows if row["backend"] == "tutti"]
        self.assertEqual(shown, own, self.result)
        self.assertTrue(all(line.split().count("ok") == 2 for line in lines), self.result)
        self.assertIn("# 92 rows in 46 cells: 92 ok, 0 wrong", self.result.out)

    def test_record_tells_how_to_repeat_it(self):
        self.assertEqual(self.record["command"].split()[1:6], ["run", "all", "--backends", "tutti,openmpi", "--ranks"])
        self.assertEqual(self.record["seed"], "1")
        self.assertIn("openmpi", self.record["versions"])
        self.assertIn("Open MPI", self.record["versions"]["openmpi"])
        self.assertEqual(list(self.record["measurement"]), ["clock_read_ns", "clock_tick_ns", *[f"first_call_us.P2.{name}" for name in sorted({row["backend"] for row in self.rows})],
                          "floor_us.P2", "in_time_ns.P2", "init_s.P2"])
        self.assertGreater(float(self.record["measurement"]["init_s.P2"]), 0)
        self.assertRegex(self.result.out, r"# init \(P=2\): \S+ s from the start of the processes until all was open; first call: ")

    def test_an_identifier_selects_its_case(self):
        chosen = {(row["collective"], row["backend"]): row["case"] for row in self.rows}
        self.assertEqual(len(chosen), 2 * (len(BUS_FACTOR) + 1))
        for (_, backend), identifier in chosen.items():
            with self.subTest(identifier), support.Run("run", "--case", identifier, *FILES, "--budget", "50ms") as one:
                result = one.wait(60)
                self.assertEqual(result.code, 0, result)
                self.assertEqual([(row["case"], row["verdict"]) for row in one.rows()[1]], [(identifier, "ok")])
            if backend == "tutti":
                result = support.run("check", "--case", identifier)
                self.assertEqual(result.code, 0, result)
                self.assertIn("1 case as processes, 1 ok", result.out)


class Prefixes(Sweep):
    @support.needs_openmpi
    def test_own_and_open_mpi_out_of_and_in_place(self):
        result, rows = self.sweep(*PREFIXES, "--backends", "tutti,openmpi", "--ranks", "3", "--sizes", "8,6000",
                                  "--dtypes", "int32,double", "--ops", "sum,min", "--placement", "out,in", "--budget", "4s")
        self.assert_all_ok(rows, result)
        self.assertEqual({(row["collective"], row["backend"], row["bytes"], row["dtype"], row["op"], row["placement"])
                          for row in rows},
                         {(collective, backend, size, dtype, op, placement)
                          for collective in PREFIXES for backend in ["tutti", "openmpi"] for size in ["8", "6000"]
                          for dtype in ["int32", "double"] for op in ["sum", "min"] for placement in ["out", "in"]})
        for row in rows:
            bandwidth = int(row["bytes"]) / float(row["time_median"]) * 1e-3
            self.assertTrue(math.isclose(float(row["busbw"]), bandwidth, rel_tol=1e-3), row)
            self.assertEqual(row["limit_time"] == "", (row["collective"], row["placement"]) == ("exscan", "in"), row)

    @support.needs_openmpi
    def test_of_two_nonblocking_calls_the_overlap_is_measured(self):
        result, rows = self.sweep(*PREFIXES, "--backends", "tutti,openmpi", "--ranks", "2", "--sizes", "64K",
                                  "--overlap", "4", "--budget", "2s")
        self.assert_all_ok(rows, result)
        self.assertEqual(len(rows), 4, result)
        self.assertTrue(any(row["overlap"] for row in rows), rows)  # a rank may come late to each round

    def test_avg_is_left_out_of_all_ops_and_counted(self):
        result, rows = self.sweep(*PREFIXES, "--backends", "tutti", "--ranks", "2", "--sizes", "64", "--ops", "all",
                                  "--budget", "1s")
        self.assert_all_ok(rows, result)
        self.assertEqual({row["op"] for row in rows}, {"sum", "prod", "min", "max", "premul_sum"})
        for collective in PREFIXES:
            self.assertIn(f"# left out: 1 x {collective} has no avg: nothing says by what the sum over some of the "
                          "ranks is divided", result.out)

    def test_an_estimate_of_sizes_that_nothing_holds(self):
        """4 EiB and 64 MiB are both too large for their time to be told by their bytes."""
        said = [support.run("run", "all_reduce", "--backends", "tutti", "--ranks", "2", "--sizes", size, "--list")
                for size in ["64M", "4611686018427387904"]]
        estimates = [re.search(r"about .*", one.out + one.err) for one in said]
        self.assertTrue(all(estimates), said)
        self.assertEqual(estimates[0].group(), estimates[1].group())
        self.assertNotIn("about 0 s", estimates[0].group())

    def test_check_and_prove_every_algorithm(self):
        result = support.run("prove", *PREFIXES, "--ranks", "1:6")
        self.assertEqual(result.code, 0, result)
        self.assertIn("# prove: 48 schedules", result.out)
        self.assertIn(", 0 refuted", result.out)
        for ranks_as in ["processes", "threads", "tasks"]:
            result = support.run("check", *PREFIXES, "--ranks", "3", "--ranks-as", ranks_as)
            self.assertEqual(result.code, 0, result)
            cases, fine = re.search(rf"# check: (\d+) cases as {ranks_as}, (\d+) ok, 0 wrong", result.out).groups()
            self.assertEqual(cases, fine, result)
            self.assertGreater(int(cases), 8 * 28)  # counts, placements and buffers of eight algorithms


class Samples(Sweep):
    def test_a_row_has_the_iterations_that_were_asked_for(self):
        for number in [1, 7, 50]:
            result, rows = self.sweep("all_reduce", "barrier", "--ranks", "2", "--sizes", "8,64K", "--backends", "tutti",
                                      "--iterations", number)
            self.assert_all_ok(rows, result)
            self.assertEqual([row["samples"] for row in rows], [str(number)] * 3)
            self.assertNotIn("fewer iterations", result.out)

    def test_fewer_iterations_than_were_asked_for_are_told(self):
        result, rows = self.sweep("all_reduce", "--ranks", "2", "--sizes", "64", "--backends", "tutti", "--no-limit",
                                  "--iterations", "1000000", "--budget", "200ms")
        self.assertLess(int(rows[0]["samples"]), 1000000)
        self.assertIn("fewer iterations", rows[0]["marks"])
        told = f"{rows[0]['samples']} of 1000000 iterations: there was no time for more"
        self.assertEqual(rows[0]["reason"], told)
        self.assertIn(told, result.out)
        self.assertIn("# fewer iterations: 1 row ", result.out)

    def test_times_over_the_ranks_are_told_where_they_are_asked_for(self):
        names = ["rank_time_min", "rank_time_mean", "rank_time_max"]
        words = ["all_reduce", "--ranks", "3", "--sizes", "8,64K", "--backends", "tutti", "--budget", "500ms"]
        result, rows = self.sweep(*words, "--over-ranks")
        for row in rows:
            least, mean, most = [float(row[name]) for name in names]
            self.assertTrue(0 < least <= mean <= most, row)
        self.assertEqual(len(re.findall(r"over the ranks \S+ us the fastest, \S+ in the mean, \S+ the slowest", result.out)), 2)
        result, rows = self.sweep(*words)
        self.assertEqual({row[name] for row in rows for name in names}, {""})
        self.assertNotIn("over the ranks", result.out)


class Budget(Sweep):
    def test_what_cannot_be_begun_in_it_is_skipped(self):
        result, rows = self.sweep("all_reduce", "--sizes", "8,8M:128M:x2,16", "--ranks", "2", "--backends", "tutti",
                                  "--no-limit", "--budget", "20ms")
        by_bytes = {int(row["bytes"]): row for row in rows}
        self.assertEqual(len(rows), 7)
        for size in [8, 16]:
            self.assertEqual(by_bytes[size]["verdict"], "ok", by_bytes[size])
        self.assertEqual(by_bytes[128 << 20]["verdict"], "skipped")
        self.assertTrue(by_bytes[128 << 20]["reason"].startswith("--budget: "), by_bytes)
        self.assertRegex(result.out, r"# skipped: \d x tutti: --budget: it was over before this cell could begin")


class VForms(Sweep):
    @support.needs_openmpi
    def test_own_and_open_mpi_with_uneven_counts(self):
        result, rows = self.sweep(*V_FORMS, "--backends", "tutti,openmpi", "--ranks", "3", "--counts", "ramp",
                                  "--sizes", "48,6000", "--budget", "1s")
        self.assert_all_ok(rows, result)
        self.assertEqual({(row["collective"], row["backend"], row["bytes"], row["count"], row["counts"]) for row in rows},
                         {(form, backend, str(size), str(size // 4 // 2), "ramp")
                          for form in V_FORMS for backend in ["tutti", "openmpi"] for size in [48, 6000]})
        for row in rows:
            self.assertIn(f"/{row['bytes']}B.ramp/", row["case"])
        self.assertIn("ramp counts", result.out)

    def test_all_leaves_them_out_and_equal_counts_are_not_named(self):
        result, rows = self.sweep("all_gather_v", "--backends", "tutti", "--ranks", "2", "--sizes", "64",
                                  "--counts", "equal,zeros", "--budget", "300ms")
        self.assert_all_ok(rows, result)
        self.assertEqual([row["case"].split("/")[7] for row in rows], ["64B", "64B.zeros"])
        self.assertEqual([row["counts"] for row in rows], ["equal", "zeros"])

    def test_traffic_of_a_mixture_of_experts_by_seed(self):
        result, rows = self.sweep("all_to_all_v", "--backends", "tutti", "--ranks", "2,4", "--sizes", "4K",
                                  "--counts", "zipf,rotating,burst,empty", "--seed", "5", "--ranks-as", "threads",
                                  "--iterations", "30", "--budget", "20s")
        self.assert_all_ok(rows, result)
        names = ["zipf", "rotating", "burst", "empty"]
        self.assertEqual([(row["ranks"], row["counts"], row["case"].split("/")[7]) for row in rows],
                         [(ranks, f"{name}-seed5", f"4096B.{name}-seed5") for ranks in ["2", "4"] for name in names])
        for row, count in zip(rows, [1024 * 2 / 3, 1024 * 3 / 4, 2048 * 64 / 67]):  # the largest, of 1024 in each row
            self.assertAlmostEqual(int(row["count"]), count, delta=1.01)
        self.assertEqual(support.run("check", "--case", rows[3]["case"]).code, 0)

    def test_traffic_of_a_mixture_of_experts_is_checked_in_all_v_forms(self):
        result = support.run("check", *V_FORMS, "all_to_all_v", "--counts", "zipf,rotating,burst,empty", "--ranks", "1,2,4",
                             "--ranks-as", "tasks", "--dtypes", "float", "--ops", "sum", limit=120)
        self.assertEqual(result.code, 0, result)
        self.assertRegex(result.out, r"# check: (\d+) cases as tasks, \1 ok, 0 wrong, 0 neither, 0 not run")

    def test_traffic_of_experts_in_place_and_a_misspelt_one_are_refused(self):
        result = support.run("run", "all_to_all_v", "--ranks", "2", "--placement", "in", "--counts", "zipf", "--list")
        self.assertIn("in place all_to_all_v sends what it receives: counts 'zipf' do not", result.out)
        wrong = support.run("run", "all_to_all_v", "--counts", "zpif")
        self.assertEqual(wrong.code, 2, wrong)
        for part in ["'zpif'", "equal ramp one-heavy zeros random zipf rotating burst empty", "did you mean 'zipf'?"]:
            self.assertIn(part, wrong.err)

    def test_counts_of_a_file_and_the_case_it_makes(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        counts = pathlib.Path(folder.name) / "counts.txt"
        counts.write_text("1 2\n3 4\n")
        with support.Run("run", "all_to_all_v", "gather_v", "--backends", "tutti", "--ranks", "2", "--counts", counts,
                         "--budget", "300ms", *FILES) as one:
            result = one.wait(60)
            self.assertEqual(result.code, 0, result)
            _, rows = one.rows()
            self.assertEqual([(row["collective"], row["bytes"], row["count"], row["verdict"]) for row in rows],
                             [("all_to_all_v", "28", "4", "ok")])
            self.assertIn("# left out: 1 x a file of 4 counts: gather_v on 2 ranks needs 2", result.out)
            again = support.run("check", "--case", rows[0]["case"], "--counts", counts)
            self.assertEqual(again.code, 0, again)
            without = support.run("check", "--case", rows[0]["case"])
            self.assertEqual(without.code, 2, without)
            self.assertIn("--counts FILE", without.err)

    def test_counts_of_a_file_may_be_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            counts = pathlib.Path(folder) / "bytes.txt"
            counts.write_text("8 16\n24 32\n")
            words = ["--backends", "tutti", "--ranks", "2", "--counts", counts, "--counts-unit", "bytes"]
            result, rows = self.sweep("all_to_all_v", *words, "--dtypes", "float,double", "--budget", "300ms")
            self.assert_all_ok(rows, result)
            self.assertEqual([(row["dtype"], row["bytes"], row["count"]) for row in rows],
                             [("float", "56", "8"), ("double", "56", "4")])
            again, same = self.sweep("--case", rows[1]["case"], "--counts", counts, "--counts-unit", "bytes",
                                     "--budget", "300ms")
            self.assert_all_ok(same, again)
            self.assertEqual(same[0]["case"], rows[1]["case"])
            result, rows = self.sweep("all_to_all_v", *words, "--dtypes", "all", "--budget", "300ms")
            self.assert_all_ok(rows, result)
            counts.write_text("4 4\n4 4\n")
            result, rows = self.sweep("all_to_all_v", *words, "--dtypes", "all", "--budget", "300ms")
            self.assert_all_ok(rows, result)
            self.assertNotIn("double", {row["dtype"] for row in rows})
            self.assertIn("# left out: 1 x counts: 4 bytes are no multiple of the 8 of a double", result.out)

    def test_the_command_that_repeats_a_case_names_the_file_of_its_counts(self):
        with tempfile.TemporaryDirectory() as folder:
            counts = pathlib.Path(folder) / "of two,blocks.txt"
            counts.write_text("4000000 4000000\n")  # takes long enough to be killed in the midst of it
            with support.Run("check", "gather_v", "--ranks", "2", "--ranks-as", "tasks", "--dtypes", "float", "--seed",
                             "3", "--counts", counts) as one:
                ranks = one.wait_for_ranks(1)
                while "[1/" not in one.texts() and one.process.poll() is None:
                    time.sleep(0.01)
                os.kill(ranks[0], signal.SIGKILL)
                late = one.wait(60)
            self.assertEqual(late.code, 5, late)
            repeat = re.search(r"(?m)^  to repeat it: tutti (check --case gather_v/.*)$", late.out)
            self.assertIsNotNone(repeat, late)
            again = support.run(*shlex.split(repeat[1]))
            self.assertEqual(again.code, 0, again)


class Options(Sweep):
    def test_one_rank(self):
        result, rows = self.sweep("all", "--ranks", "1", "--sizes", "8,4K", "--budget", "300ms")
        self.assert_all_ok(rows, result)
        self.assertEqual({row["ranks"] for row in rows}, {"1"})
        self.assertEqual({row["collective"] for row in rows}, set(COLLECTIVES))

    def test_threads(self):
        result, rows = self.sweep("all", "--backends", "tutti", "--ranks", "3", "--ranks-as", "threads",
                                  "--sizes", "8,4K", "--budget", "300ms")
        self.assert_all_ok(rows, result)
        self.assertEqual({(row["ranks_as"], row["transport"]) for row in rows}, {("threads", "local")})
        self.assertEqual(len(rows), 2 * len(BUS_FACTOR) + 1)

    def test_several_numbers_of_ranks(self):
        result, rows = self.sweep("barrier", "--backends", "tutti", "--ranks", "1:3", "--budget", "300ms")
        self.assert_all_ok(rows, result)
        self.assertEqual([row["ranks"] for row in rows], ["1", "2", "3"])
        self.assertEqual([(row["launch"], row["launches"]) for row in rows], [("1", "3"), ("2", "3"), ("3", "3")])
        for ranks in [1, 2, 3]:
            self.assertRegex(result.out, rf"(?m)^# floor: .*\d us \(P={ranks}\)")

    def test_a_backend_is_held_against_itself(self):
        result, rows = self.sweep("all_reduce", "--backends", "tutti,tutti", "--ranks", "2", "--sizes", "8,4K",
                                  "--launches", "6", "--budget", "2s")
        self.assert_all_ok(rows, result)
        self.assertEqual([row["backend"] for row in rows].count("tutti:2"), 12)
        self.assertEqual(len(rows), 24)
        self.assertRegex(result.out, r"(?m)^# ratio, time of tutti / time of tutti:2: (geometric mean [\d.]+ over [12],|2 left out)")
        self.assertEqual(len(re.findall(r"; tutti\.\w+ / tutti:2\.\w+ [\d.]+ \([\d.]+ to [\d.]+\)\n", result.out)), 2)
        self.assertRegex(result.out, r"(?m)^# a backend against itself: the interval of the ratio contains 1 in \d of 2 ")
        twin = next(row["case"] for row in rows if row["backend"] == "tutti:2")
        again, alone = self.sweep("--case", twin, "--budget", "300ms")
        self.assertEqual([row["case"] for row in alone], [twin], again.out)

    def test_launches_repeat_the_sweep_in_other_orders(self):
        arguments = ["all_reduce", "barrier", "--backends", "tutti", "--ranks", "1,2", "--sizes", "8,64,512,4K",
                     "--launches", "3", "--budget", "1s"]
        result, rows = self.sweep(*arguments)
        self.assert_all_ok(rows, result)
        self.assertEqual({row["launches"] for row in rows}, {"6"})  # of each number of ranks three
        cases = {}
        for row in rows:
            cases.setdefault(row["case"], []).append(int(row["launch"]))
        self.assertEqual(len(cases), 10)
        for case, launches in cases.items():
            self.assertEqual(launches, [1, 3, 5] if "/P1." in case else [2, 4, 6], case)
        orders = {tuple(row["case"] for row in rows if row["launch"] == launch) for launch in "246"}
        self.assertEqual(len(orders), 3, "seed 1 has three orders of five cells")
        self.assertEqual([order for order in orders if sorted(order) != sorted(min(orders))], [])
        self.assertEqual(len(table_lines(result.out)), 10)
        self.assertIn("an interval over launches needs at least 6", result.out)
        spread = re.findall(r"(?m)^#   (\S+): tutti\.\S+ [\d.]+ / [\d.-]+$", result.out)
        self.assertEqual(len(set(spread)), 5, "the cells whose launches lie furthest apart")
        self.assertLessEqual(set(spread), {re.sub("/[^/]*", "", case, count=1) for case in cases})
        self.assertRegex(result.out, r"(?m)^#   and 5 with less between launches")
        again = self.sweep(*arguments)[1]
        self.assertEqual([row["case"] for row in again], [row["case"] for row in rows])

    def test_what_ranks_are_bound_to_is_recorded(self):
        allowed = sorted(os.sched_getaffinity(0))
        for ranks_as in ["processes", "threads"]:
            for bind, expected in [("core", [[allowed[0]]]), ("none", [allowed]), (None, [[allowed[0]]])]:
                with support.Run("run", "barrier", "--backends", "tutti", "--ranks", "1", "--ranks-as", ranks_as,
                                 "--budget", "200ms", "--json", "{folder}/record.json",
                                 *(["--bind", bind] if bind else [])) as one:
                    result = one.wait(30)
                    self.assertEqual(result.code, 0, result)
                    bound = support.read_json(one.path / "record.json")["bound"]
                    self.assertEqual(bound, {"P1": [[str(core) for core in mask] for mask in expected]})

    @unittest.skipUnless(os.path.exists("/sys/devices/system/node/node0/cpulist"), "the kernel shows no NUMA nodes")
    @support.needs_openmpi
    def test_ranks_are_bound_to_nodes_under_mpirun_too(self):
        with support.Run("run", "barrier", "--backends", "tutti,openmpi", "--ranks", "2", "--bind", "numa", "--budget",
                         "1s", "--json", "{folder}/record.json") as one:
            self.assertEqual(one.wait(30).code, 0)
            masks = support.read_json(one.path / "record.json")["bound"]["P2"]
            self.assertEqual(len(masks), 2)
            self.assertEqual(masks[0][0], str(min(os.sched_getaffinity(0))))

    def test_more_ranks_than_cores_are_told(self):
        cores = len(os.sched_getaffinity(0))
        noun = "core" if cores == 1 else "cores"
        for ranks_as, ranks, told in [("processes", [cores, cores + 1], 1), ("threads", [cores + 1, cores + 2], 1),
                                      ("threads", [cores], 0), ("tasks", [cores + 1], 0)]:
            result = support.run("run", "barrier", "--backends", "tutti", "--ranks", ",".join(map(str, ranks)),
                                 "--ranks-as", ranks_as, "--budget", "300ms")
            self.assertEqual(result.code, 0, result)
            more = ", ".join(str(number) for number in ranks if number > cores)
            self.assertEqual(result.out.count(f"# measured with {more} ranks on {cores} {noun}: "), told, result)
            self.assertEqual(result.out.count("# measured with"), told, result)

    def test_a_cell_that_does_not_fit_the_memory_is_skipped_and_the_others_run(self):
        for buffers in ["private", "shared"]:
            result, rows = self.sweep("all_reduce", "--backends", "tutti", "--ranks", "2", "--sizes", "8,64T",
                                      "--buffers", buffers, "--budget", "300ms")
            self.assertEqual([(row["bytes"], row["verdict"]) for row in rows],
                             [("8", "ok"), (str(64 << 40), "skipped")], result)
            self.assertRegex(rows[1]["reason"], r"^the buffers of this cell take .* GiB.*; .* are left of the .* of the ")

    @support.needs_openmpi
    def test_a_reference_is_skipped_with_tasks_and_says_why(self):
        result, rows = self.sweep("all_reduce", "barrier", "--backends", "tutti,openmpi", "--ranks", "4", "--ranks-as",
                                  "tasks", "--sizes", "64", "--budget", "300ms")
        verdicts = {(row["collective"], row["backend"]): row["verdict"] for row in rows}
        self.assertEqual(verdicts, {("all_reduce", "tutti"): "ok", ("barrier", "tutti"): "ok",
                                    ("all_reduce", "openmpi"): "skipped", ("barrier", "openmpi"): "skipped"})
        for row in rows:
            if row["verdict"] == "skipped":
                self.assertIn("processes", row["reason"])
                self.assertEqual((row["samples"], row["time_median"], row["wrong"]), ("0", "", ""))
                self.assertIn(row["reason"], result.out)

    @support.needs_openmpi
    def test_only_skipped_rows_are_an_error_where_a_result_is_required(self):
        arguments = ["barrier", "--backends", "openmpi", "--ranks", "2", "--ranks-as", "threads"]
        self.sweep(*arguments, code=0)
        self.sweep(*arguments, "--require", code=3)
        self.sweep("barrier", "--backends", "tutti", "--ranks", "2", "--budget", "500ms", "--require", code=0)

    def test_placements(self):
        result, rows = self.sweep(*BUS_FACTOR, "--backends", "tutti", "--ranks", "2", "--sizes", "1K", "--placement",
                                  "in,out", "--budget", "300ms")
        self.assert_all_ok(rows, result)
        placements = sorted((row["collective"], row["placement"]) for row in rows)
        self.assertEqual(placements, [(name, place) for name in sorted(BUS_FACTOR) for place in ["in", "out"]])

    def test_broadcast_is_in_place_unless_told_otherwise(self):
        _, rows = self.sweep("broadcast", "all_reduce", "--backends", "tutti", "--ranks", "2", "--sizes", "8",
                             "--budget", "300ms")
        self.assertEqual([row["placement"] for row in rows], ["in", "out"])

    def test_shared_buffers(self):
        result, rows = self.sweep("all", "--backends", "tutti", "--ranks", "2", "--sizes", "8,64K", "--buffers",
                                  "private,shared", "--budget", "300ms")
        self.assert_all_ok(rows, result)
        self.assertEqual([row["buffers"] for row in rows].count("shared"), 2 * len(BUS_FACTOR))
        self.assertEqual([row["buffers"] for row in rows].count("private"), 2 * len(BUS_FACTOR))

    def test_all_algorithms(self):
        result, rows = self.sweep("all", *PAIRS, *PREFIXES, "--backends", "tutti", "--ranks", "2", "--sizes", "1K", "--algorithms",
                                  "all", "--budget", "300ms")
        self.assert_all_ok(rows, result)
        listed = json.loads(support.run("list", "--json").out)["algorithms"]
        self.assertEqual(sorted((row["collective"], row["algorithm"]) for row in rows),
                         sorted((item["collective"], item["name"]) for item in listed))

    def test_an_algorithm_that_not_every_collective_has_is_left_out_and_counted(self):
        result, rows = self.sweep("all", "--backends", "tutti", "--ranks", "2", "--sizes", "8,64",
                                  "--algorithms", "ring", "--budget", "300ms")
        self.assert_all_ok(rows, result)
        self.assertEqual({(row["collective"], row["algorithm"]) for row in rows}, {(name, "ring") for name in ["all_reduce", "all_gather", "reduce_scatter"]})
        self.assertIn("# left out: 2 x broadcast has no algorithm ring", result.out)

    def test_all_dtypes_and_ops(self):
        result, rows = self.sweep("all_reduce", "broadcast", "--backends", "tutti", "--ranks", "2", "--sizes", "256",
                                  "--dtypes", "all", "--ops", "all", "--budget", "300ms")
        self.assert_all_ok(rows, result)
        everything = json.loads(support.run("list", "--json").out)
        bits = {"band", "bor", "bxor"}  # of integers only
        of_all = [dtype for dtype in everything["dtypes"] if dtype not in everything["dtypes_beside_all"]]
        wanted = {("all_reduce", dtype, op) for dtype in of_all for op in everything["ops"]
                  if "int" in dtype or op not in bits}
        self.assertEqual(len([case for case in wanted if case[2] in bits]), 18)
        wanted |= {("broadcast", dtype, "none") for dtype in of_all}
        self.assertEqual({(row["collective"], row["dtype"], row["op"]) for row in rows}, wanted)

    def test_streaming_samples_are_loops_of_every_backend(self):
        _, rows = self.sweep("all_reduce", "barrier", "--ranks", "2", "--sizes", "8,4K", "--placement", "out,in",
                             "--cadence", "streaming", "--budget", "300ms")
        for row in rows:
            self.assertEqual((row["cadence"], row["verdict"]), ("streaming", "ok"), row)
            self.assertTrue(row["case"].endswith("/streaming"), row)
            self.assertGreaterEqual(int(row["operations"]), 4, row)
            self.assertEqual(row["checked_on"], "timed" if row["placement"] == "out" else "further", row)
        self.assertEqual(len({row["backend"] for row in rows}), len(support.SYSTEMS))
        _, again = self.sweep("--case", rows[0]["case"], "--budget", "300ms")
        self.assertEqual([row["case"] for row in again], [rows[0]["case"]])

    def test_what_is_verified_can_be_chosen(self):
        for which, checked_on, verdict in (("every", {"every timed", "every further"}, "ok"),
                                           ("none", {""}, "unchecked")):
            result, rows = self.sweep("all_reduce", "barrier", "--ranks", "2", "--sizes", "8,64K", "--placement", "out,in",
                                      "--cadence", "streaming", "--check", which, "--budget", "300ms")
            self.assertEqual({row["verdict"] for row in rows}, {verdict}, rows)
            self.assertEqual({row["checked_on"] for row in rows}, checked_on, rows)
            self.assertIn(f"{len(rows)} {verdict}", result.out)

    def test_buffers_can_be_out_of_the_caches(self):
        # To rotate, every call reads a part of twice the cache. Where that is large, a budget is enough for one cell.
        for state, buffers in (("hot", "private,shared"), ("cold", "private,shared"), ("rotate", "private"), ("rotate", "shared")):
            collectives = ["all_reduce"] if state == "rotate" else ["broadcast", "all_reduce", "barrier"]
            sizes = "64K" if state == "rotate" else "8,64K"
            result, rows = self.sweep(*collectives, "--ranks", "2", "--sizes", sizes, "--cache", state, "--buffers", buffers,
                                      "--budget", f"{support.patience(1):.0f}s")
            self.assertEqual({row["buffer_sets"] for row in rows}, {"16"} if state == "rotate" else {""}, rows)
            self.assertEqual({(row["cache"], row["verdict"]) for row in rows}, {(state, "ok")}, result)
            self.assertEqual(f"# measured with cache {state}\n" in result.out, state != "hot", result)

    def test_ranks_come_together_as_asked(self):
        for sync in ("roundtime", "dissemination", "library"):
            for ranks_as, ranks in (("processes", "3"), ("threads", "2"), ("tasks", "3")):
                with support.Run("run", "all_reduce", "barrier", "--ranks", ranks, "--ranks-as", ranks_as, "--sizes", "8",
                                 "--sync", sync, "--backends", ",".join(support.SYSTEMS), "--budget", "300ms", "--samples", "{folder}/samples.csv", *FILES) as one:
                    result = one.wait(60)
                    _, rows = one.rows()
                    _, samples = support.read_csv(one.path / "samples.csv")
                    facts = support.read_json(one.path / "record.json")["measurement"]
                rows = [row for row in rows if row["verdict"] != "skipped"]  # a reference runs as processes only
                after = {"." + row["backend"] for row in rows} if sync == "library" else {""}
                self.assertEqual({key for key in facts if key.startswith("floor_us")},
                                 {f"floor_us.P{ranks}{whose}" for whose in after})
                for row in rows:
                    floor = float(facts[f"floor_us.P{ranks}" + (f".{row['backend']}" if sync == "library" else "")])
                    self.assertEqual("near floor" in row["marks"], 0 < float(row["time_median"] or 0) < 5 * floor, row)
                self.assertRegex(result.out, r"(?m)^# clock: readings differ by \d+ ns or more, one takes \d+ ns$")
                self.assertEqual({(row["sync"], row["verdict"]) for row in rows}, {(sync, "ok")}, result)
                self.assertEqual(len(rows), 4 if support.HAS_OPENMPI and ranks_as == "processes" else 2)
                self.assertEqual({s["late_us"] == "" for s in samples}, {sync != "roundtime"})
                for row in rows:
                    mine = [s for s in samples if s["case"] == row["case"]]
                    self.assertEqual(row["invalid_share"] == "", sync != "roundtime", row)
                    if sync == "roundtime" and ranks_as != "threads":  # no state of the machine is looked at
                        invalid = [s for s in mine if s["valid"] == "0"]
                        self.assertTrue(math.isclose(len(invalid) / len(mine), float(row["invalid_share"])), row)
                        late = [float(s["late_us"]) * 1e3 > float(facts[f"in_time_ns.P{ranks}"]) * 0.999 for s in invalid]
                        self.assertTrue(all(late), invalid)
                    counted = [s for s in mine if s["valid"] == "1"]
                    self.assertEqual(len(counted), int(row["samples"]))
                    skews = sorted(float(s["skew_us"]) for s in counted)
                    if skews:
                        self.assertLessEqual(skews[0], float(row["arrival_skew"]) * 1.0001)
                        self.assertLessEqual(float(row["arrival_skew"]), skews[-1] * 1.0001)

    def test_overlap_with_computation_is_measured(self):
        for ranks_as in ("processes", "threads"):
            result, rows = self.sweep("all_reduce", "broadcast", "barrier", "--ranks", "2", "--ranks-as", ranks_as,
                                      "--sizes", "64,256K", "--overlap", "8", "--budget", "2s")
            rows = [row for row in rows if row["verdict"] != "skipped"]
            self.assertEqual({row["verdict"] for row in rows}, {"ok"}, result)
            backends = 2 if support.HAS_OPENMPI and ranks_as == "processes" else 1
            self.assertEqual(len(rows), 5 * backends)
            for row in rows:
                if row["collective"] == "barrier" or not row["time_median"]:
                    self.assertEqual(row["overlap"], "", row)
                    self.assertEqual(row["overlap_calls"], "" if row["collective"] == "barrier" else "8", row)
                    continue
                if not row["overlap"]:  # a rank came late to each round
                    continue
                self.assertEqual(row["overlap_calls"], "8")
                pure, computing = float(row["time_pure"]), float(row["time_computing"])
                for share, both in (("overlap", "time_overlapped"), ("overlap_called", "time_overlapped_called")):
                    wanted = (pure + computing - float(row[both])) / min(pure, computing)
                    self.assertTrue(math.isclose(float(row[share]), 100 * max(0, min(1, wanted)), abs_tol=1e-6), row)
            self.assertTrue(any(row["overlap"] for row in rows), rows)

    def test_what_disturbed_a_cell_is_told(self):
        cores = sorted(os.sched_getaffinity(0))[:2]
        busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"],
                                 preexec_fn=lambda: os.sched_setaffinity(0, cores)) for _ in range(2 * len(cores))]
        try:
            result, rows = self.sweep("all_reduce", "--backends", "tutti", "--ranks", str(len(cores)), "--sizes", "8,1M",
                                      "--budget", "1500ms")
        finally:
            for process in busy:
                process.kill()
                process.wait()
        self.assertIn("load", {word for row in rows for word in row["disturbed"].split("; ")}, rows)
        self.assertIn("# disturbed while they were measured: ", result.out)

    def test_late_ranks_are_injected(self):
        with support.Run("run", "all_reduce", "--backends", "tutti", "--ranks", "2", "--sizes", "8", "--skew", "2ms",
                         "--budget", "1s", "--samples", "{folder}/samples.csv", *FILES) as one:
            result = one.wait(60)
            _, rows = one.rows()
            _, samples = support.read_csv(one.path / "samples.csv")
        self.assertEqual({(row["skew"], row["verdict"], row["limit_time"]) for row in rows}, {("2000", "ok", "")}, result)
        late = [sample for sample in samples if float(sample["skew_us"]) > 1800]
        self.assertGreater(len(late), len(samples) / 2, "the others may have been held up too, but not most of the time")
        self.assertEqual({sample["arrived_last"] for sample in late}, {"0", "1"})
        row, of_row = rows[0], [s for s in samples if s["case"] == rows[0]["case"] and s["valid"] == "1"]
        fastest = min(float(s["last_arrival_us"]) for s in of_row)
        self.assertTrue(math.isclose(fastest, float(row["time_min"]), rel_tol=1e-4, abs_tol=1e-3), row)

    def test_buffers_begin_where_they_are_asked_to(self):
        for backend in ("tutti", "openmpi"):
            with support.Run("run", "all_reduce", "barrier", "--backends", backend, "--ranks", "2", "--sizes", "64",
                             "--misalign", "12", "--budget", "1s", *FILES) as one:
                result = one.wait(60)
                _, rows = one.rows()
            self.assertEqual([(row["collective"], row["misalign"], row["verdict"]) for row in rows],
                             [("all_reduce", "12", "ok"), ("barrier", "", "ok")], result)
            self.assertIn("# measured with buffers 12 bytes after a cache line", result.out)
        for words, why in ((["--misalign", "64"], "'64' is not a number of bytes: a whole number from 0 to 63"),
                           (["--misalign", "6"], "--misalign: 6 is no multiple of the 4 bytes of float: did you mean 8?"),
                           (["--misalign", "62"], "did you mean 60?"),
                           (["--misalign", "4", "--dtypes", "half,double"], "the 8 bytes of double: did you mean 8?"),
                           (["--misalign", "2", "--dtypes", "float,double"], "of double: did you mean 8?"),
                           (["--misalign", "9", "--dtypes", "double"], "of double: did you mean 8?")):
            refused = support.run("run", "all_reduce", *words)
            self.assertEqual(refused.code, 2, refused)
            self.assertIn(why, refused.err)

    def test_every_sample_is_written_and_makes_up_the_rows(self):
        with support.Run("run", "all_reduce", "barrier", "--backends", "tutti", "--ranks", "3", "--sizes", "8,64K",
                         "--budget", "1s", "--launches", "2", "--samples", "{folder}/samples.csv", *FILES) as one:
            result = one.wait(60)
            self.assertEqual(result.code, 0, result)
            _, rows = one.rows()
            header, samples = support.read_csv(one.path / "samples.csv")
        self.assertEqual(header, "case launch index valid global_us last_arrival_us skew_us arrived_last finished_last "
                                 "rank_us late_us block why starter rank_arrived_us".split())
        for row in rows:
            mine = [s for s in samples if (s["case"], s["launch"]) == (row["case"], row["launch"])]
            self.assertEqual([int(s["index"]) for s in mine], list(range(len(mine))))
            blocks = [int(s["block"]) for s in mine]
            self.assertEqual(sorted(set(blocks)), list(range(blocks[-1] + 1)))
            self.assertEqual(blocks, sorted(blocks))
            valid = [float(s["global_us"]) for s in mine if s["valid"] == "1"]
            self.assertEqual(len(valid), int(row["samples"]), row)
            self.assertTrue(math.isclose(min(valid), float(row["time_min"]), rel_tol=1e-4), row)
            self.assertTrue(math.isclose(max(valid), float(row["time_max"]), rel_tol=1e-4), row)
            for s in mine:
                self.assertIn((s["valid"], s["why"]), [("1", ""), ("0", "late"), ("0", "state")])
                ranks = [float(value) for value in s["rank_us"].split()]
                self.assertEqual(len(ranks), 3)
                self.assertLessEqual(max(ranks), float(s["global_us"]) * 1.0001)
                arrived = [float(value) for value in s["rank_arrived_us"].split()]
                self.assertEqual((len(arrived), min(arrived), max(arrived)), (3, 0, float(s["skew_us"])), s)
                self.assertEqual(arrived[int(s["arrived_last"])], max(arrived), s)
                self.assertTrue(math.isclose(float(s["last_arrival_us"]) + float(s["skew_us"]), float(s["global_us"]),
                                             rel_tol=1e-4, abs_tol=1e-3), s)
                self.assertTrue({s["arrived_last"], s["finished_last"]} <= {"0", "1", "2"}, s)
        self.assertEqual(len({s["launch"] for s in samples}), 2)

    def test_the_limit_has_samples_and_can_be_left_out(self):
        _, rows = self.sweep("all_gather_v", "all_to_all", "--backends", "tutti", "--ranks", "3", "--sizes", "64K",
                             "--counts", "ramp", "--placement", "out,in", "--ranks-as", "threads", "--budget", "300ms")
        self.assertEqual([row["limit_time"] != "" for row in rows], [True, True, True, False], rows)
        with support.Run("run", "all_reduce", "--backends", "tutti", "--ranks", "2", "--sizes", "64", "--budget", "300ms",
                         "--samples", "{folder}/samples.csv") as one:
            self.assertEqual(one.wait(60).code, 0)
            _, samples = support.read_csv(one.path / "samples.csv")
        self.assertEqual({s["case"].split("/")[1].split(".")[0] for s in samples}, {"tutti", "limit"})
        _, rows = self.sweep("all_reduce", "--backends", "tutti", "--ranks", "2", "--sizes", "64", "--budget", "300ms",
                             "--no-limit")
        self.assertEqual([(row["limit_time"], row["limit_fraction"]) for row in rows], [("", "")])

    def test_all_roots(self):
        result, rows = self.sweep("broadcast", "--backends", "tutti", "--ranks", "2,3", "--roots", "all",
                                  "--sizes", "8", "--budget", "300ms")
        self.assert_all_ok(rows, result)
        self.assertEqual([(row["ranks"], row["root"]) for row in rows],
                         [("2", "0"), ("2", "1"), ("3", "0"), ("3", "1"), ("3", "2")])

    def test_a_root_is_left_out_where_it_does_not_fit(self):
        result, rows = self.sweep("broadcast", "--backends", "tutti", "--ranks", "2,3", "--roots", "2", "--sizes", "8",
                                  "--budget", "300ms")
        self.assertEqual([row["ranks"] for row in rows], ["3"], result)
        self.assertIn("# left out: 1 x root 2 on 2 ranks", result.out)

    def test_fewer_elements_than_ranks_are_one_per_block_and_merged(self):
        _, rows = self.sweep("all_to_all", "--backends", "tutti", "--ranks", "3", "--sizes", "0:12:+4",
                             "--budget", "300ms")
        self.assertEqual([(row["bytes"], row["count"]) for row in rows][-1], ("12", "1"))
        self.assertEqual(len({row["case"] for row in rows}), len(rows))


class Others(unittest.TestCase):
    def test_the_recorded_command_is_what_a_shell_reads_back(self):
        for name in ["it's here", "$HOME", "a`b", "plain-name.csv", "two  words", "'"]:
            with support.Run("run", "barrier", "--backends", "tutti", "--ranks", "1", "--budget", "100ms",
                             "--json", "{folder}/record.json", "--csv", "{folder}/" + name) as one:
                self.assertEqual(one.wait(30).code, 0)
                words = shlex.split(support.read_json(one.path / "record.json")["command"])
                self.assertEqual(words[-1], f"{one.path}/{name}")
                self.assertEqual(words[1:3], ["run", "barrier"])

    def test_help_shows_an_example_with_options_that_exist(self):
        for command in ["run", "check", "prove", "explain", "draw", "simulate", "accept", "list", "doctor"]:
            with self.subTest(command):
                result = support.run(command, "--help")
                self.assertEqual((result.code, result.err), (0, ""), result)
                options, _, example = result.out.partition(f"Example: tutti {command} ")
                self.assertNotEqual(example, "", result)
                for option in re.findall(r"--[a-z-]+", example):  # of a long example in several lines
                    self.assertRegex(options, rf"(?m)^\s+{option}\b")
        result = support.run("--help")
        self.assertEqual(result.code, 0, result)
        for command in ["run", "check", "prove", "explain", "draw", "simulate", "accept", "list", "doctor"]:
            self.assertRegex(result.out, rf"(?m)^\s+{command}\b")
        self.assertNotRegex(result.out, r"(?m)^\s+rank\b")  # what the launcher starts is for nobody else

    def test_version(self):
        result = support.run("--version")
        self.assertEqual(result.code, 0, result)
        self.assertRegex(result.out, r"^tutti \d+\.\d+\.\d+ \(commit [0-9a-z]+.*\), built with GCC \d+.*; "
                                     r"transports local shm tcp fake cuda\n$")

    def test_list_names_the_algorithm_of_every_file(self):
        folder = support.SOURCE / "impl/algorithms"
        files = sorted((path.parent.name, path.stem) for path in folder.glob("*/*.cc"))
        result = support.run("list", "--json")
        self.assertEqual(result.code, 0, result)
        everything = json.loads(result.out)
        self.assertEqual(sorted((item["collective"], item["name"]) for item in everything["algorithms"]), files)
        self.assertEqual(everything["collectives"], COLLECTIVES + PAIRS + V_FORMS + PREFIXES)
        available = {item["name"]: item["available"] for item in everything["backends"]}
        self.assertIn(available.pop("nccl"), [False, True])
        self.assertEqual(available, {"tutti": True} | {name: name in support.REFERENCES for name in KNOWN_REFERENCES})
        text = support.run("list").out
        for item in everything["algorithms"]:
            self.assertRegex(text, rf"(?m)^\s+{item['collective']}\s+{item['name']}\s+\S")

    def test_check_and_prove(self):
        """What they print; suites/conformance has them check and prove many numbers of ranks."""
        for ranks_as in ["processes", "threads", "tasks"]:
            result = support.run("check", "broadcast", "barrier", "--ranks", "2,3", "--ranks-as", ranks_as)
            self.assertEqual(result.code, 0, result)
            cases, fine = re.search(rf"# check: (\d+) cases as {ranks_as}, (\d+) ok, 0 wrong", result.out).groups()
            self.assertEqual(cases, fine, result)
        result = support.run("prove", "all_reduce", "--ranks", "1:8")
        self.assertEqual(result.code, 0, result)
        self.assertRegex(result.out, r"# prove: \d+ schedules, \d+ sets of plans proved, 0 refuted")

    def test_of_many_ranks_one_is_proved_and_stands_for_all(self):
        algorithms = ["halving", "one_shot", "recursive_doubling", "two_shot"]
        result = support.run("prove", "all_reduce", "--algorithms", ",".join(algorithms), "--ranks", "4096")
        self.assertEqual((result.code, result.err), (0, ""), result)
        for algorithm in algorithms:
            order, stable = ("no", "no") if algorithm == "halving" else ("yes", "(yes|no)")
            self.assertRegex(result.out, rf"(?m)^  all_reduce +{algorithm} +1 +2 +0 +[1-]  {order} +yes +yes +{stable}$")
        self.assertRegex(result.out, r"(?m)^# on more than 128 ranks: the steps in units, .*; [1-9]\d* plans of \d+ ranks refine their steps$")
        self.assertIn("\n#   1 schedule: one rank stands for all, by exclusive or\n#   3 schedules: one rank stands for all, by rotation\n"
                      "# prove: 4 schedules, ", result.out)

    def test_many_ranks_without_one_for_all_take_moments_too(self):
        """Sets of thousands of ranks, P of them, as wholes; and a column that stands for all."""
        result = support.run("prove", "scan", "reduce", "--algorithms", "direct,one_shot", "--ranks", "16384")
        self.assertEqual((result.code, result.err), (0, ""), result)
        self.assertIn("\n#   9 schedules: every rank was executed\n#   1 schedule: one rank stands for all, by columns\n", result.out)
        for algorithm in ["reduce +direct +4 +8", "scan +direct +1 +2", "scan +one_shot +1 +2"]:
            self.assertRegex(result.out, rf"(?m)^  {algorithm} +0 +-  yes +yes +(yes|no) +yes$")

    @support.at_night
    def test_a_refutation_is_repeated_on_the_fewest_ranks_that_have_it(self):
        """Bruck's units do not fit a number of 32 bits from so many ranks on."""
        result = support.run("prove", "all_to_all", "--algorithms", "bruck", "--ranks", "65536")
        self.assertEqual((result.code, result.err), (1, ""), result)
        fault = "out of place, in units:\n  rank 0 step {}: a destination has the units {{start {}, "
        self.assertIn("refuted: all_to_all bruck on 65536 ranks, root 0, "
                      + fault.format(34, 65535), result.out)
        self.assertIn("the smallest with the same fault: all_to_all bruck on 46342 ranks, root 0, "
                      + fault.format(44, 46341).replace("\n", "\n  "), result.out)

    def test_check_writes_its_rows(self):
        with support.Run("check", "barrier", "--ranks", "2", "--csv", "{folder}/rows.csv") as one:
            result = one.wait(30)
            self.assertEqual(result.code, 0, result)
            header, rows = one.rows()
            self.assertEqual(header[:len(HEADER)], HEADER)
            self.assertTrue(rows and all(row["verdict"] == "ok" for row in rows), rows)


@support.needs_openmpi
class Lazy(Sweep):
    """Backends that do nothing in most of the operations that are timed: fast, and wrong."""

    def wrong(self, backend, sizes, *options):
        """What was printed, and the record."""
        arguments = ["run", "all_reduce", "all_to_all", "--backends", f"tutti,{backend}", "--ranks", "2", "--sizes", sizes,
                     "--budget", "6s", *options, *FILES]  # several samples of each, on a busy machine too
        directory = {"TUTTI_BACKENDS": os.environ["TUTTI_LAZY_BACKENDS"]}
        with support.Run(*arguments, environment=directory) as one:
            result = one.wait(60)
            self.assertEqual(result.code, 1, result)
            verdicts = {(row["collective"], row["bytes"], row["backend"]): row["verdict"] for row in one.rows()[1]}
            self.assertEqual(len(verdicts), 4 * len(sizes.split(",")), result)
            for (_, _, name), verdict in verdicts.items():
                self.assertEqual(verdict, "ok" if name == "tutti" else "wrong", result)
            self.assertIn("nothing was written", result.out)
            return result, support.read_json(one.path / "record.json")

    def works_now_and_then(self, backend):
        _, record = self.wrong(backend, "8,4K,64K")
        self.assertEqual(json.loads(record["versions"][backend]), {"text": 'Open MPI, now and "then"'})
        self.assertEqual(json.loads(record["versions"]["tutti"])["library"], "tutti")
        self.assertIn("floor_us.P2", record["measurement"])
        self.assertTrue(record["finished"])

    def test_who_works_in_the_discarded_calls_only_is_wrong(self):
        self.works_now_and_then("lazy_in_samples")

    def test_who_also_works_in_the_first_sample_is_wrong(self):
        self.works_now_and_then("lazy_after_one_sample")

    def test_who_does_nothing_where_the_input_is_what_it_was_is_wrong(self):
        self.wrong("lazy_on_old_data", "4K")
        result, _ = self.wrong("lazy_on_old_data", "4K,64K")
        self.assertIn("still hold the poison: they were not written", result.out)  # of 64K some places are poisoned


class Stragglers(Sweep):
    def record(self, *words, environment=None):
        """What was printed, and what the record has of its two ranks."""
        with support.Run("run", "all_reduce", "--ranks", "2", "--sizes", "8", *words, *FILES,
                         environment=environment) as one:
            result = one.wait(60)
            self.assertEqual(result.code, 0, result)
            return result, support.read_json(one.path / "record.json")["ranks"]["P2"]

    @support.needs_openmpi
    def test_a_rank_whose_calls_return_late_is_named(self):
        result, ranks = self.record("--backends", "slow_rank", "--iterations", "24", "--no-limit",
                                    environment={"TUTTI_BACKENDS": os.environ["TUTTI_LAZY_BACKENDS"]})
        self.assertRegex(result.out, r"# straggler, P=2: rank 1 on \S+ ended last in \d+ of \d+ samples")
        self.assertEqual([(one["rank"], one["ends_late"]) for one in ranks], [("1", True), ("0", False)], ranks)
        self.assertGreater(float(ranks[0]["own_ratio"]), 1)

    def test_of_healthy_ranks_none_is_named_and_the_table_is_printed_on_request(self):
        words = ["--backends", "tutti", "--budget", "500ms"]
        result, ranks = self.record(*words)
        self.assertNotIn("straggler", result.out)
        self.assertNotIn("# ranks of P=2", result.out)
        self.assertEqual({one["rank"] for one in ranks}, {"0", "1"}, ranks)
        self.assertFalse(any(one["comes_late"] or one["ends_late"] for one in ranks), ranks)
        result, _ = self.record(*words, "--over-ranks")
        self.assertRegex(result.out, r"# ranks of P=2 over all cells, worst first: \d+ samples\n#  rank  host ")

    def test_ranks_as_tasks_come_in_turn_and_none_is_judged(self):
        with support.Run("run", "all_reduce", "--ranks", "2", "--ranks-as", "tasks", "--sizes", "8", "--backends", "tutti",
                         "--budget", "300ms", *FILES) as one:
            self.assertEqual(one.wait(60).code, 0)
            self.assertEqual(support.read_json(one.path / "record.json")["ranks"], {})


@support.needs_openmpi
class Asleep(unittest.TestCase):
    def test_the_case_that_hangs_is_named_not_the_one_beside_it(self):
        result = support.run("run", "all_reduce", "--backends", "tutti,asleep", "--algorithms", "one_shot,two_shot", "--ranks", "2",
                             "--sizes", "8,1K", "--no-limit", "--timeout", "1s", "--budget", "10s",
                             environment={"TUTTI_BACKENDS": os.environ["TUTTI_LAZY_BACKENDS"]}, limit=30)
        self.assertEqual(result.code, 5, result)
        named = set(re.findall(r"all_reduce/\S+/isolated", result.err))
        self.assertEqual(named, {"all_reduce/asleep.none/shm/float/sum/P2.processes/none/8B/out/private/isolated"}, result)


LONG = ["--ranks", "2", "--sizes", "8:1M:x2", "--budget", "30s", *FILES]


class Interrupted(unittest.TestCase):
    def interrupted(self, *arguments, signal_number=signal.SIGINT):
        with support.Run("run", *arguments, *LONG) as one:
            one.wait_for_ranks(2)
            one.note_memory()
            end = time.monotonic() + support.patience(20)
            while len((one.path / "rows.csv").read_text().splitlines()) < 3 and time.monotonic() < end:
                time.sleep(0.02)
            one.process.send_signal(signal_number)
            result = one.wait(5)
            self.assertEqual(result.code, 130, result)
            self.assertIn("interrupted", result.err)
            said = [line for line in result.err.splitlines() if line and not line.startswith("[")]  # but progress
            self.assertEqual(len(said), 1, result)
            _, rows = one.rows()
            self.assertGreaterEqual(len(rows), 2, result)
            self.assertTrue(all(row["verdict"] == "ok" for row in rows), rows)
            record = support.read_json(one.path / "record.json")
            self.assertEqual(support.differences(rows, record["rows"]), [])
            self.assertFalse(record["finished"])
            self.assertEqual(one.left_behind(), [])

    def test_processes(self):
        self.interrupted("all_reduce", "--backends", "tutti")

    def test_terminated(self):
        self.interrupted("all_reduce", "--backends", "tutti", signal_number=signal.SIGTERM)

    def test_several_launches(self):
        self.interrupted("all_reduce", "--backends", "tutti", "--launches", "5")

    @support.needs_openmpi
    def test_mpirun(self):
        before = support.shared_memory()
        self.interrupted("all_reduce", "--backends", "tutti,openmpi")
        self.assertEqual(support.abandoned_shared_memory(before), set())


class Together(unittest.TestCase):
    def test_two_sweeps_at_once_do_not_disturb_each_other(self):
        backends = "tutti,openmpi" if support.HAS_OPENMPI else "tutti"
        arguments = ["run", "all", "--backends", backends, "--ranks", "2", "--budget", "1s", *FILES, "--sizes"]
        with support.Run(*arguments, "8,1K") as one, support.Run(*arguments, "16,2K") as other:
            for run, sizes in [(one, {"0", "8", "1024"}), (other, {"0", "16", "2048"})]:
                result = run.wait(60)
                self.assertEqual(result.code, 0, result)
                _, rows = run.rows()
                self.assertEqual({row["bytes"] for row in rows}, sizes)
                self.assertEqual({row["verdict"] for row in rows}, {"ok"})
                self.assertEqual({row["backend"] for row in rows}, set(backends.split(",")))
                self.assertEqual(support.differences(rows, support.read_json(run.path / "record.json")["rows"]), [])
                self.assertEqual(run.left_behind(), [])


if __name__ == "__main__":
    unittest.main()
