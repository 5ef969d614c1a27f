# SPDX-License-Identifier: Apache-2.0
"""The reference nccl where there is no GPU: what users are told. Doubles of CUDA and NCCL stand for machines that have one."""
import json
import os
import pathlib
import tempfile
import unittest

import support

DOUBLES = pathlib.Path(os.environ["TUTTI_BUILD"]) / "doubles"
RUNTIME = str(DOUBLES / "libcudart.so")
NCCL = str(DOUBLES / "libnccl.so")
GPU = {"TUTTI_CUDART": RUNTIME, "TUTTI_NCCL": NCCL}
ENVIRONMENT = 3
LIMIT = ["--ranks", "2", "--budget", "300ms"]

# Each machine that has no GPU for NCCL, and what is said there.
REASONS = [
    ({"TUTTI_CUDART": "/nowhere/libcudart.so"}, "TUTTI_CUDART names /nowhere/libcudart.so, which cannot be loaded"),
    ({**GPU, "TUTTI_CUDART": str(DOUBLES / "libcudart_partial.so")}, f"{DOUBLES}/libcudart_partial.so has no cudaGraphLaunch"),
    ({**GPU, "TUTTI_DOUBLE_DRIVER": "0"}, f"no NVIDIA driver is loaded, so {RUNTIME} finds no GPU"),
    ({**GPU, "TUTTI_DOUBLE_DRIVER": "12080"}, f"the NVIDIA driver is too old: it has CUDA 12.8, and {RUNTIME} needs 13.0"),
    ({**GPU, "TUTTI_DOUBLE_DEVICES": "0", "CUDA_VISIBLE_DEVICES": "-1"},
     "the NVIDIA driver has no GPU for this process (CUDA_VISIBLE_DEVICES is '-1')"),
    ({**GPU, "TUTTI_NCCL": "/nowhere/libnccl.so.2"}, "TUTTI_NCCL names /nowhere/libnccl.so.2, which cannot be loaded"),
    ({**GPU, "TUTTI_DOUBLE_NCCL": "21701"}, f"NCCL 2.17.1 is too old ({NCCL})"),
    ({**GPU, "TUTTI_NCCL": str(DOUBLES / "libnccl_partial.so")}, f"{DOUBLES}/libnccl_partial.so, NCCL 2.28.9, has no ncclCommAbort"),
]


def listed(environment):
    result = support.run("list", "--json", environment=environment)
    (row,) = [one for one in json.loads(result.out)["backends"] if one["name"] == "nccl"]
    return row


@unittest.skipUnless("nccl" in support.BUILT, "the backend nccl is not built")
class WithoutAGpu(unittest.TestCase):
    def test_the_list_says_why_in_one_line(self):
        for environment, reason in REASONS:
            with self.subTest(reason):
                row = listed(environment)
                self.assertFalse(row["available"], row)
                self.assertIn(f"backend nccl: {reason}", row["note"])
                self.assertNotIn("\n", row["note"])

    def test_who_names_it_is_told_why(self):
        for environment, reason in [REASONS[0], REASONS[2]]:
            for ranks_as in ["processes", "threads"]:
                result = support.run("run", "barrier", "--backends", "tutti,nccl", *LIMIT, "--ranks-as", ranks_as,
                                     environment=environment)
                self.assertEqual((result.code, result.out), (ENVIRONMENT, ""), result)
                self.assertIn(f"tutti: backend nccl: {reason}", result.err)
        result = support.run("gate", "--against", "nccl", environment=REASONS[0][0])
        self.assertEqual(result.code, ENVIRONMENT, result)
        self.assertIn(REASONS[0][1], result.err)

    def test_who_does_not_name_it_is_told_only_where_a_gpu_is_hinted_at(self):
        for choice in [[], ["--backends", "all"]]:
            for ranks_as in ["processes", "threads"]:
                arguments = ["run", "barrier", *choice, *LIMIT, "--ranks-as", ranks_as]
                quiet = support.run(*arguments, environment=REASONS[2][0])
                self.assertEqual(quiet.code, 0, quiet)
                if not pathlib.Path("/dev/nvidiactl").exists():
                    self.assertNotIn("nccl", quiet.out + quiet.err)
                told = support.run(*arguments, environment=REASONS[6][0])
                self.assertEqual(told.code, 0, told)
                self.assertIn(f"# without nccl: backend nccl: {REASONS[6][1]}", told.err)
                self.assertNotIn("nccl", told.out)

    def test_doctor_says_nothing_where_nothing_hints_at_a_gpu(self):
        self.assertIn("nccl cannot be used", support.run("doctor", environment=REASONS[6][0]).out)
        if not pathlib.Path("/dev/nvidiactl").exists():
            self.assertNotIn("nccl", support.run("doctor", environment=REASONS[2][0]).out)


@unittest.skipUnless("nccl" in support.BUILT, "the backend nccl is not built")
class WithAGpu(unittest.TestCase):
    def test_it_is_listed(self):
        row = listed(GPU)
        self.assertTrue(row["available"], row)
        self.assertEqual(pathlib.Path(row["note"]), support.PROGRAM.parent / "libtutti_backend_nccl.so")

    def test_one_that_lies_elsewhere_is_tried_on_two_ranks_first(self):
        with tempfile.TemporaryDirectory(prefix="tutti-test-") as folder:
            os.symlink(support.PROGRAM.parent / "libtutti_backend_nccl.so", pathlib.Path(folder, "libtutti_backend_nccl.so"))
            self.assertTrue(listed({**GPU, "TUTTI_BACKENDS": folder})["available"])
            row = listed({**GPU, "TUTTI_BACKENDS": folder, "TUTTI_DOUBLE_DEVICES": "1"})
            self.assertFalse(row["available"], row)
            self.assertIn("rank 1 of 2 needs GPU 1 of this host, which has 1", row["note"])

    def test_its_ranks_meet(self):
        with support.Run("run", "all_reduce", "--backends", "tutti,nccl", *LIMIT, "--sizes", "8", "--csv", "{folder}/rows.csv",
                         "--json", "{folder}/record.json", environment=GPU) as one:
            result = one.wait(60)
            self.assertEqual(result.code, 0, result)
            self.assertEqual({row["backend"] for row in one.rows()[1]}, {"tutti", "nccl"})
            said = json.loads(support.read_json(one.path / "record.json")["versions"]["nccl"])
            self.assertEqual((said["library"], said["version"], said["path"]), ("NCCL", "2.28.9", NCCL))
            self.assertEqual(one.left_behind(), [])

    def test_its_settings_are_variables_of_its_ranks(self):
        with support.Run("run", "all_reduce", "--backends", "nccl,nccl{COMM_BLOCKING=0}", "--ranks", "2", "--sizes", "8", "--budget", "3s",
                         "--csv", "{folder}/rows.csv", environment=GPU) as one:
            one.wait_for_ranks(2)
            seen = set()
            while one.process.poll() is None and len(seen) < 2:
                seen |= {support.environment_of(pid).get("NCCL_COMM_BLOCKING") for pid in one.ranks().values()}
            result = one.wait(60)
            self.assertEqual(result.code, 0, result)
            self.assertEqual(seen, {None, "0"})
            self.assertEqual([(row["backend"], row["starter"], row["verdict"]) for row in one.rows()[1]],
                             [("nccl", "spawn", "ok"), ("nccl{COMM_BLOCKING=0}", "nccl{COMM_BLOCKING=0}", "ok")])


if __name__ == "__main__":
    unittest.main()
