# SPDX-License-Identifier: Apache-2.0
"""What rows and `tutti doctor` say of GPUs: their own clock, their model, and what disturbs them. Doubles of CUDA, NCCL and
NVML stand for a machine that has some."""
import csv
import json
import os
import pathlib
import tempfile
import unittest

import support

DOUBLES = pathlib.Path(os.environ["TUTTI_BUILD"]) / "doubles"
GPU = {"TUTTI_CUDART": str(DOUBLES / "libcudart.so"), "TUTTI_NCCL": str(DOUBLES / "libnccl.so"),
       "TUTTI_NVML": str(DOUBLES / "libnvml.so")}
HEAT, IDLE = "64", "1"
OK, SLOWER = 0, 4


def rows_of(*words, **environment):
    with support.Run("run", *words, "--ranks", "2", "--csv", "{folder}/rows.csv", environment={**GPU, **environment}) as one:
        result = one.wait(60)
        assert result.code == OK, result
        return one.rows()[1]


@unittest.skipUnless("nccl" in support.BUILT, "the backend nccl is not built")
class Rows(unittest.TestCase):
    def test_the_time_by_the_gpus_clock_stands_beside_the_hosts(self):
        for cadence in ("isolated", "streaming"):
            rows = rows_of("all_reduce", "barrier", "--backends", "tutti,nccl", "--sizes", "4K", "--budget", "2s",
                           "--cadence", cadence, TUTTI_DOUBLE_LATE_US="2000")
            for row in rows:
                with self.subTest(row["case"]):
                    if row["backend"] == "tutti":
                        self.assertEqual((row["time_on_gpu"], row["gpu"]), ("", ""), row)
                        continue
                    self.assertEqual(row["gpu"], "Double 0")
                    # Each operation begins up to 2 ms late: most of what the host sees is on the stream.
                    self.assertGreater(float(row["time_on_gpu"]), 200, row)
                    self.assertLess(float(row["time_on_gpu"]), 1.1 * float(row["time_max"]), row)

    def test_what_disturbs_a_gpu_is_told(self):
        for environment, word in (({"TUTTI_DOUBLE_THROTTLE": HEAT}, "gpu_throttled"), ({"TUTTI_DOUBLE_ECC": "1"}, "gpu_ecc"),
                                  ({"TUTTI_DOUBLE_OTHERS": "1"}, "gpu_shared")):
            with self.subTest(word):
                (row,) = rows_of("all_reduce", "--backends", "nccl", "--sizes", "8", "--budget", "300ms", **environment)
                seen = row["disturbed"].split("; ")
                self.assertEqual([one for one in seen if one.startswith("gpu_")], [word], row)

    @unittest.skipUnless((DOUBLES / "kernels").exists(), "no double of the kernels is built")
    def test_what_disturbs_any_gpu_that_has_ranks_is_told(self):
        words = ["all_reduce", "--ranks-as", "blocks", "--backends", "tutti", "--sizes", "8", "--budget", "300ms"]
        on_blocks = {"TUTTI_TRANSPORTS": str(DOUBLES / "kernels"), "TUTTI_DOUBLE_ECC": "1"}
        for gpus, seen in (("1", False), ("2", True)):  # the errors are GPU 1's
            (row,) = rows_of(*words, "--gpus", gpus, **on_blocks)
            self.assertEqual("gpu_ecc" in row["disturbed"].split("; "), seen, row)

    def test_what_disturbs_none_is_not(self):
        for environment in ({"TUTTI_DOUBLE_THROTTLE": IDLE}, {"TUTTI_NVML": "/nowhere"}):
            (row,) = rows_of("all_reduce", "--backends", "nccl", "--sizes", "8", "--budget", "300ms", **environment)
            self.assertNotIn("gpu_", row["disturbed"])

    def test_rows_of_another_gpu_are_not_compared(self):
        with tempfile.TemporaryDirectory(prefix="tutti-test-") as folder:
            first, second = pathlib.Path(folder, "first.csv"), pathlib.Path(folder, "second.csv")
            run = support.run("run", "all_reduce", "--backends", "nccl", "--sizes", "8", "--ranks", 2, "--budget", "1s", "--csv", first,
                              environment=GPU)
            self.assertEqual(run.code, OK, run)
            second.write_text(first.read_text().replace("Double 0", "Double 9"))
            result = support.run("compare", first, second)
            self.assertIn("it was measured under GPU Double 0, and under GPU Double 9", result.out + result.err)
            self.assertNotIn("measured under", support.run("compare", first, first).out)

    def test_a_baseline_of_a_gpu_is_none_without_it(self):
        with tempfile.TemporaryDirectory(prefix="tutti-test-") as folder:
            path = pathlib.Path(folder, "baseline.csv")
            first = support.run("run", "all_reduce", "--sizes", "64", "--ranks", 2, "--ranks-as", "tasks", "--budget", "200ms",
                                "--csv", path)
            self.assertEqual(first.code, OK, first)
            with path.open() as file:
                rows = list(csv.DictReader(file))
            with path.open("w", newline="") as file:
                writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
                writer.writeheader()
                writer.writerows({**row, "gpu": "Double 9"} for row in rows)
            suite = pathlib.Path(folder, "suite.toml")
            suite.write_text("cells = ['all_reduce/local/float/sum/P2.tasks/none/64B/out/private/isolated']\n")
            for environment, here in (({}, "there is none"), (GPU, "'Double 0'")):
                result = support.run("gate", "--baseline", path, "--suite", suite, "--cell-time", "20ms", environment=environment)
                self.assertIn(f"the baseline is of another GPU: 'Double 9', here {here}", result.out + result.err)


class Doctor(unittest.TestCase):
    def document(self, **environment):
        return json.loads(support.run("doctor", "--json", environment={**GPU, **environment}).out)

    def test_gpus_are_described(self):
        machine = self.document(TUTTI_DOUBLE_DEVICES="2")["machine"]
        self.assertIsNone(machine["gpus_unseen"])
        self.assertEqual(machine["gpus_seen"][1], {"name": "Double 1", "clock_mhz": 1200, "most_clock_mhz": 1980, "slowed_down_by": "",
                                                   "ecc_errors": 0, "processes": []})
        self.assertIn("Double 0 at 1200 of 1980 MHz", support.run("doctor", environment=GPU).out)

    def test_what_would_spoil_a_measurement_is_found(self):
        found = {one["name"]: one for one in self.document(TUTTI_DOUBLE_DEVICES="2", TUTTI_DOUBLE_THROTTLE=HEAT, TUTTI_DOUBLE_ECC="1",
                                                           TUTTI_DOUBLE_OTHERS="1")["findings"]}
        self.assertEqual(found["gpu_throttled"]["what"], "GPU 0 is slowed down: heat")
        self.assertEqual(found["gpu_ecc"]["what"], "GPU 1 has had 1 memory errors that could not be corrected")
        self.assertEqual(found["gpu_shared"]["severity"], "spoils")
        names = {one["name"] for one in self.document(TUTTI_DOUBLE_THROTTLE=IDLE)["findings"]}
        self.assertFalse(names & {"gpu_throttled", "gpu_ecc", "gpu_shared"})

    def test_why_none_can_be_used_is_one_sentence(self):
        for environment, why in (({"TUTTI_DOUBLE_DRIVER": "0"}, "no NVIDIA driver is loaded"),
                                 ({"TUTTI_DOUBLE_DRIVER": "11000"}, "the NVIDIA driver is too old: it has CUDA 11.0"),
                                 ({"TUTTI_DOUBLE_DEVICES": "0"}, "the NVIDIA driver has no GPU for this process"),
                                 ({"TUTTI_CUDART": "/nowhere"}, "TUTTI_CUDART names /nowhere, which cannot be loaded")):
            with self.subTest(why):
                self.assertIn(why, self.document(**environment)["machine"]["no_cuda"])
                text = " ".join(support.run("doctor", environment={**GPU, **environment}).out.split())
                self.assertIn(f"; none to run on: {why}", text)
        self.assertIsNone(self.document()["machine"]["no_cuda"])

    def test_a_library_that_cannot_be_used_is_not_to_be_built_again(self):
        found = {one["name"]: one for one in self.document(TUTTI_NCCL="/nowhere")["findings"]}
        self.assertIn("TUTTI_NCCL names /nowhere, which cannot be loaded", found["backend"]["why"])
        self.assertTrue(found["backend"]["advice"].startswith("what the reason says; "), found["backend"])

    def test_why_none_is_seen_is_one_sentence(self):
        for environment, why in (({"TUTTI_NVML": "/nowhere"}, "TUTTI_NVML names /nowhere, which cannot be loaded"),
                                 ({"TUTTI_NVML": GPU["TUTTI_CUDART"]}, "libcudart.so has no nvmlInit_v2"),
                                 ({"TUTTI_DOUBLE_NVML": "9"}, "libnvml.so does not start: Driver Not Loaded"),
                                 ({"TUTTI_DOUBLE_DEVICES": "0"}, "NVML knows no GPU that this process may use")):
            with self.subTest(why):
                machine = self.document(**environment)["machine"]
                self.assertEqual(machine["gpus_seen"], [])
                self.assertIn(why, machine["gpus_unseen"])
        if not pathlib.Path("/dev/nvidiactl").exists():
            self.assertIn("no libnvidia-ml.so.1 in the loader's path", support.run("doctor", environment={"TUTTI_NVML": ""}).out)


if __name__ == "__main__":
    unittest.main()
