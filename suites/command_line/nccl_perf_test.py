# SPDX-License-Identifier: Apache-2.0
"""NCCL measured where there is no GPU, by doubles of CUDA and NCCL: `tutti run` and the drop-in programs."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import support

DOUBLES = pathlib.Path(os.environ["TUTTI_BUILD"]) / "doubles"
GPU = {"TUTTI_CUDART": str(DOUBLES / "libcudart.so"), "TUTTI_NCCL": str(DOUBLES / "libnccl.so")}
WITH_KERNELS = {**GPU, "TUTTI_TRANSPORTS": str(DOUBLES / "kernels")}
FOLDER = support.PROGRAM.parent
SWEEP = ["-b", "64", "-e", "4K", "-f", "8", "-n", "2"]
PROGRAMS = ["all_reduce_perf", "all_gather_perf", "broadcast_perf", "reduce_perf", "reduce_scatter_perf", "gather_perf",
            "scatter_perf"]
OUT_OF_PLACE_ONLY = ["alltoall_perf", "alltoallv_perf", "sendrecv_perf"]
OK, USAGE, ENVIRONMENT, WRONG = 0, 2, 3, 7


def perf(program, *arguments, starter=(), **environment):
    return subprocess.run([*starter, FOLDER / program, *arguments], capture_output=True, text=True, timeout=support.patience(60),
                          env={**os.environ, **GPU, **environment}, stdin=subprocess.DEVNULL)


def rows_of(text):
    """The fields of each row."""
    return [line.split() for line in text.splitlines() if line and not line.startswith("#")]


@unittest.skipUnless("nccl" in support.BUILT, "the backend nccl is not built")
class Run(unittest.TestCase):
    def test_results_on_gpus_are_verified_beside_those_of_cpu_ranks(self):
        with support.Run("run", "all_reduce", "broadcast", "all_to_all", "barrier", "--backends", "tutti,nccl", "--ranks", "2",
                         "--sizes", "8,64K", "--budget", "4s", "--csv", "{folder}/rows.csv", "--json", "{folder}/record.json",
                         environment=GPU) as one:
            result = one.wait(60)
            self.assertEqual(result.code, OK, result)
            rows = one.rows()[1]
            self.assertEqual(support.differences(rows, support.read_json(one.path / "record.json")["rows"]), [])
            self.assertEqual({(row["backend"], row["verdict"]) for row in rows}, {("tutti", "ok"), ("nccl", "ok")})
            self.assertEqual(len(rows), 14, rows)
            self.assertEqual({row["launch"] for row in rows}, {"1"}, "both are interleaved")
            self.assertEqual({(row["backend"], row["memory"]) for row in rows}, {("tutti", "host"), ("nccl", "gpu")})
            self.assertEqual({row["verified_by"] for row in rows}, {"host"}, "no kernel runs on a double")
            moved = [row for row in rows if row["collective"] != "barrier"]
            self.assertEqual({(row["backend"], row["limit_way"]) for row in moved}, {("tutti", "movements"), ("nccl", "copy")})
            self.assertTrue(all(float(row["limit_fraction"]) > 0 for row in moved), moved)
            self.assertNotIn("# ratio", result.out)
            self.assertIn("# different memory: buffers lie, those of nccl in a GPU's, those of tutti in the host's, so no ratio is "
                          "taken between them\n", result.out)

    def test_the_devices_limit_is_a_copy_there_of_what_a_rank_reads_and_writes(self):
        with support.Run("run", "all_reduce", "all_gather", "--backends", "nccl", "--ranks", "2", "--sizes", "64K", "--budget", "2s",
                         "--csv", "{folder}/rows.csv", "--samples", "{folder}/samples.csv",
                         environment={**GPU, "TUTTI_DOUBLE_LOG": "{folder}/log"}) as one:
            result = one.wait(60)
            self.assertEqual(result.code, OK, result)
            copies = {line for line in (one.path / "log").read_text().splitlines() if line.startswith("copy of")}
            self.assertEqual(copies, {"copy of 65536", "copy of 49152"}, "in and out together, a half of each")
            self.assertIn("all_gather/device_limit.none/", (one.path / "samples.csv").read_text())
            for row in one.rows()[1]:
                self.assertAlmostEqual(float(row["limit_fraction"]), float(row["limit_time"]) / float(row["time_median"]))

    def test_where_kernels_are_the_device_verifies_and_makes_triads(self):
        arguments = ["run", "all_reduce", "all_to_all", "--backends", "nccl,tutti", "--ranks", "2", "--sizes", "64K", "--budget", "3s",
                     "--csv", "{folder}/rows.csv"]
        with support.Run(*arguments, environment={**WITH_KERNELS, "TUTTI_DOUBLE_LOG": "{folder}/log"}) as one:
            result = one.wait(60)
            self.assertEqual(result.code, OK, result)
            lines = set((one.path / "log").read_text().splitlines())
            self.assertIn("comparison", lines)
            self.assertLessEqual({"copy of 65536", "triad of 43696"}, lines, "both are tried: a half, and a third, of 131072")
            for row in one.rows()[1]:
                self.assertEqual(row["verified_by"], "device" if row["backend"] == "nccl" else "host", row)
                self.assertIn(row["limit_way"], ["copy", "triad"] if row["backend"] == "nccl" else ["movements"], row)
        wrong = support.run("run", "all_reduce", "--backends", "nccl", "--ranks", "2", "--sizes", "4K", "--budget", "2s",
                            environment={**WITH_KERNELS, "TUTTI_DOUBLE_WRONG": "1"})
        self.assertEqual(wrong.code, 1, wrong)
        self.assertIn("1 wrong", wrong.out)

    @support.at_night
    def test_a_gate_compares_no_times_of_different_memory(self):
        result = support.run("gate", "--against", "nccl", "--ranks", "2", "--cell-time", "50ms", environment=GPU,
                             limit=120)
        self.assertNotEqual(result.code, OK, result)
        self.assertIn("their times are not compared", result.out)

    def test_what_is_wrong_is_seen(self):
        result = support.run("run", "all_reduce", "--backends", "nccl", "--ranks", "2", "--sizes", "4K", "--budget", "2s",
                             environment={**GPU, "TUTTI_DOUBLE_WRONG": "1"})
        self.assertEqual(result.code, 1, result)
        self.assertIn("wrong", result.out)

    def test_more_ranks_than_gpus_are_refused(self):
        result = support.run("run", "all_reduce", "--backends", "nccl", "--ranks", "3", "--sizes", "8", "--budget", "1s",
                             environment={**GPU, "TUTTI_DOUBLE_DEVICES": "2"})
        self.assertEqual(result.code, ENVIRONMENT, result)
        self.assertIn("GPU 2 is out of range: 0 to 1", result.err)

    def test_of_cold_caches_a_gpus_is_written_over_before_each_call(self):
        with support.Run("run", "all_reduce", "--backends", "nccl", "--ranks", "2", "--sizes", "8", "--cache", "cold", "--budget", "1s",
                         "--csv", "{folder}/rows.csv", environment={**GPU, "TUTTI_DOUBLE_LOG": "{folder}/log"}) as one:
            result = one.wait(60)
            self.assertEqual(result.code, OK, result)
            (row,) = one.rows()[1]
            self.assertEqual((row["verdict"], row["cache"]), ("ok", "cold"))
            lines = (one.path / "log").read_text().splitlines()
            twice_the_cache = lines.count(f"set of {2 << 20}")
            self.assertGreaterEqual(twice_the_cache, 2 * int(row["samples"]), "two ranks, each call")

    def test_sets_that_rotate_are_of_the_hosts_cache(self):
        result = support.run("run", "all_reduce", "--backends", "nccl", "--ranks", "2", "--sizes", "8", "--cache", "rotate",
                             "--budget", "1s", environment=GPU)
        self.assertEqual(result.code, ENVIRONMENT, result)
        self.assertIn("--cache rotate: its sets of buffers are as many as put each other out of the host's cache", result.err)
        self.assertIn("did you mean --cache cold", result.err)


@unittest.skipUnless("nccl" in support.BUILT, "the backend nccl is not built")
class Programs(unittest.TestCase):
    def test_who_verified_is_said(self):
        for environment, who in [({}, "host"), (WITH_KERNELS, "device")]:
            with tempfile.TemporaryDirectory(prefix="tutti-test-") as folder:
                result = perf("all_reduce_perf", *SWEEP, "-g", "2", "-c", "2", "--csv", f"{folder}/rows.csv", "--json",
                              f"{folder}/record.json", **environment)
                self.assertEqual(result.returncode, OK, result)
                rows = support.read_json(pathlib.Path(folder, "record.json"))["rows"]
                self.assertTrue(rows, result)
                self.assertEqual({(row["memory"], row["verified_by"]) for row in rows}, {("gpu", who)})
        result = perf("all_reduce_perf", *SWEEP, "-g", "2", TUTTI_DOUBLE_WRONG="1", **{"TUTTI_TRANSPORTS": WITH_KERNELS["TUTTI_TRANSPORTS"]})
        self.assertEqual(result.returncode, WRONG, result)

    def test_where_there_is_a_gpu_nccl_is_measured(self):
        for program in PROGRAMS:
            with self.subTest(program):
                result = perf(program, *SWEEP, "-g", "2", "-c", "2")
                self.assertEqual(result.returncode, OK, result)
                self.assertIn("# Backend: NCCL 2.28.9, 2 ranks in 1 process", result.stdout)
                self.assertIn("device  1 [0000:01:00] Double 1", result.stdout)
                rows = rows_of(result.stdout)
                self.assertEqual(len(rows), 3, result.stdout)
                for row in rows:
                    self.assertEqual((row[8], row[12]), ("0", "0"), row)
                    self.assertGreater(float(row[5]), 0, row)

    def test_what_nccl_has_not_in_place_is_left_out_there(self):
        for program in OUT_OF_PLACE_ONLY:
            with self.subTest(program):
                result = perf(program, *SWEEP, "-g", "3")
                self.assertEqual(result.returncode, OK, result)
                self.assertIn("# NCCL has this not in place", result.stdout)
                for row in rows_of(result.stdout):
                    self.assertEqual(row[-8:-4][3], "0", row)
                    self.assertEqual(row[-4:], ["0.00", "0.00", "0.00", "N/A"], row)

    def test_threads_and_processes_and_registered_buffers(self):
        result = perf("all_reduce_perf", *SWEEP, "-t", "2", "-g", "2", "-R", "1", "-z", "1", "-a", "3")
        self.assertEqual(result.returncode, OK, result)
        self.assertIn("4 ranks in 1 process", result.stdout)
        if shutil.which("mpirun") is None:
            return
        result = perf("all_reduce_perf", *SWEEP, "-g", "2",
                      starter=["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "2"])
        self.assertEqual(result.returncode, OK, result)
        self.assertIn("4 ranks in 2 processes", result.stdout)
        self.assertEqual(len(rows_of(result.stdout)), 3, result.stdout)

    def test_tutti_is_measured_where_it_is_asked_for_and_where_there_is_no_gpu(self):
        result = perf("all_reduce_perf", *SWEEP, "-g", "2", "--backend", "tutti", "-G", "20")
        self.assertIn("# Backend: tutti, 2 ranks", result.stdout)
        self.assertIn("# -G 20 has no meaning on CPU ranks: left aside", result.stdout)
        result = perf("all_reduce_perf", *SWEEP, "-g", "2", TUTTI_DOUBLE_DRIVER="0")
        self.assertEqual(result.returncode, OK, result)
        self.assertIn("# Backend: tutti, 2 ranks", result.stdout)
        result = perf("all_reduce_perf", *SWEEP, "--backend", "nccl", TUTTI_DOUBLE_DRIVER="0")
        self.assertEqual((result.returncode, result.stdout), (ENVIRONMENT, ""), result)
        self.assertIn("backend nccl: no NVIDIA driver is loaded", result.stderr)

    def test_where_there_is_a_gpu_a_note_says_why_nccl_is_not_measured(self):
        note = "# CPU ranks of tutti are measured, since NCCL cannot be: backend nccl: "
        for environment, why in (
                ({"TUTTI_NCCL": "/nowhere"}, "TUTTI_NCCL names /nowhere, which cannot be loaded: "),
                ({"TUTTI_DOUBLE_DRIVER": "11040"}, "the NVIDIA driver is too old: it has CUDA 11.4, "),
                ({"TUTTI_CUDART": "/nowhere"}, "TUTTI_CUDART names /nowhere, which cannot be loaded: ")):
            with self.subTest(environment):
                result = perf("all_reduce_perf", *SWEEP, "-g", "2", **environment)
                self.assertEqual((result.returncode, result.stderr), (OK, ""), result)
                self.assertIn("# Backend: tutti, 2 ranks", result.stdout)
                self.assertEqual(result.stdout.count(note + why), 1, result.stdout)
        for words, environment in ((["--backend", "tutti"], {}), (["--device", "host"], {}), ([], {"TUTTI_DOUBLE_DRIVER": "0"})):
            with self.subTest(words=words, environment=environment):
                result = perf("all_reduce_perf", *SWEEP, "-g", "2", *words, **{"TUTTI_NCCL": "/nowhere", **environment})
                self.assertEqual(result.returncode, OK, result)
                self.assertNotIn("NCCL cannot be", result.stdout)

    def test_what_cannot_be_is_refused_by_name(self):
        for words, code, why in (
                (["-g", "9"], ENVIRONMENT, "9 ranks on this host, 1 for each GPU, and there are 8 GPUs: did you mean --ranks-per-gpu 2?"),
                (["-g", "2", "-G", "-1"], USAGE, "-G -1: must be a whole number from 0"),
                (["-g", "2", "-G", "20", "-z", "2"], USAGE, "-G 20 and -z 2: what a graph has captured is launched as a whole"),
                (["-g", "2", "-G", "20", "-I", "1"], USAGE, "-G 20 and -I 1: what a graph has captured has no times of its own"),
                (["-g", "2", "-I", "1", "-m", "4", "-K", "2"], USAGE, "-K 2 skips the times of all 2 groups of -m 4: did you mean '-K 1'?"),
                (["-g", "2", "-R", "3"], USAGE, "-R 3: must be 0, 1 (registered buffers) or 2 (symmetric windows)"),
                (["-g", "2", "-x", "3"], USAGE, "-x 3: must be 0 (the default), 1 (efficiency) or 2 (zero CTAs)"),
                (["-g", "2", "-y", "2"], USAGE, "-y 2: must be 0 or 1"),
                (["-g", "2", "-D", "1"], USAGE, "-D 1: NCCL's device API is not measured"),
                (["-g", "2", "-V", "4"], USAGE, "-V 4: NCCL's device API is not measured"),
                (["--backend", "ncll"], USAGE, "unknown backend 'ncll': did you mean 'nccl'?"),
                (["--backend", "tutti", "--ranks-per-gpu", "2"], USAGE, "--ranks-per-gpu 2: has no meaning on CPU ranks")):
            with self.subTest(words):
                result = perf("all_reduce_perf", *SWEEP, *words)
                self.assertEqual(result.returncode, code, result)
                self.assertIn(why, result.stderr)

    def test_records_say_which_gpu_and_which_nccl(self):
        with tempfile.TemporaryDirectory(prefix="tutti-test-") as folder:
            path = pathlib.Path(folder, "record.json")
            result = perf("all_reduce_perf", *SWEEP, "-g", "2", "--json", path, NCCL_TESTS_DEVICE="3")
            self.assertEqual(result.returncode, OK, result)
            record = support.read_json(path)
        self.assertEqual({row["gpu"] for row in record["rows"]}, {"Double 3"})
        library = json.loads(record["versions"]["nccl"])
        self.assertEqual((library["version"], library["path"]), ("2.28.9", GPU["TUTTI_NCCL"]))

    def test_ranks_share_a_gpu_where_nccl_knows_that(self):
        words = ["all_reduce_perf", *SWEEP, "-g", "4", "--ranks-per-gpu", "2"]
        result = perf(*words, TUTTI_DOUBLE_DEVICES="2", TUTTI_DOUBLE_NCCL="23000")
        self.assertEqual(result.returncode, OK, result)
        lines = [line for line in result.stdout.splitlines() if " Group  0 Pid " in line]
        self.assertEqual([line.split(" device ")[1].split()[0] for line in lines], ["0", "0", "1", "1"])
        result = perf(*words, TUTTI_DOUBLE_DEVICES="2", TUTTI_DOUBLE_NCCL="22907")
        self.assertEqual((result.returncode, result.stdout), (ENVIRONMENT, ""), result)
        self.assertIn("--ranks-per-gpu 2: NCCL 2.29.7 has one rank on each GPU: 2.30 is the first with more", result.stderr)

    def test_wrong_data_is_counted(self):
        result = perf("all_reduce_perf", *SWEEP, "-g", "2", TUTTI_DOUBLE_WRONG="1")
        self.assertEqual(result.returncode, WRONG, result)


if __name__ == "__main__":
    unittest.main()
