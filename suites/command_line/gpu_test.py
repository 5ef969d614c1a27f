# SPDX-License-Identifier: Apache-2.0
"""ci/gpu, what is run where there is a GPU: here on doubles, and with programs that end as they are told."""
import os
import pathlib
import subprocess
import tempfile
import unittest

import support

SCRIPT = support.SOURCE / "ci/gpu"
DOUBLES = pathlib.Path(os.environ["TUTTI_BUILD"]) / "doubles"
USAGE = 2
NO_GPU = 3
ON_GPUS_ONLY = ["nvidia_smi", "memcheck", "initcheck", "synccheck", "racecheck"]


@support.at_night
class Gpu(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tutti-gpu-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.out = self.folder / "out"

    def gpu(self, *words):
        return subprocess.run([SCRIPT, *words], capture_output=True, text=True, timeout=support.patience(240), check=False)

    def on_doubles(self, *words):
        return self.gpu("--double", "--small", "--doubles", DOUBLES, "--out", self.out, *words)

    def fake_programs(self, **texts):
        """A folder of programs that do nothing, or what `texts` says."""
        folder = self.folder / "bin"
        folder.mkdir()
        for name in ["tutti", "gpu_unit", "all_reduce_perf"]:
            (folder / name).write_text(f"#!/bin/sh\n{texts.get(name, 'exit 0')}\n")
            (folder / name).chmod(0o755)
        return folder

    @unittest.skipUnless((DOUBLES / "libnccl.so").exists(), "the doubles of CUDA and NCCL are not built")
    def test_everything_runs_on_doubles(self):
        result = self.on_doubles("--bin", support.PROGRAM.parent)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result)
        self.assertEqual(result.stdout.splitlines()[-1], "gpu: 23 of 28 steps passed, 5 skipped (no GPU: --double)")
        lines = (self.out / "summary.txt").read_text().splitlines()
        self.assertEqual([line.split()[3] for line in lines if line.startswith("skipped")], ON_GPUS_ONLY)
        self.assertEqual((self.out / "verdict.txt").read_text(), result.stdout.splitlines()[-1] + "\n")
        logs = sorted(path.name for path in self.out.glob("*.log"))
        self.assertEqual(len(logs), 28)
        self.assertEqual(len(list(self.out.glob("*.code"))), 23)
        checked = (self.out / "05-check_blocks.log").read_text()
        self.assertRegex(checked, r"(?m)^\$ .*tutti check .* --device host$")
        self.assertRegex(checked, r"(?m)^# check: \d+ cases as blocks, \d+ ok, 0 wrong")
        self.assertRegex((self.out / "19-run_nccl.log").read_text(), r"(?m) nccl .* ok$")
        for name, said in [("16-bandwidth", r"limit_fraction: [0-9.e-]+ in the worst of \d+ rows, at least 0.85 asked of a GPU"),
                           ("17-latency", r"8 bytes on 8 ranks: [0-9.]+ us a call, at most 8 asked of a GPU"),
                           ("21-nccl_alone", r"limit_fraction: [0-9.e-]+ in the worst of \d+ rows, at least 0.98 asked of a GPU")]:
            self.assertRegex((self.out / f"{name}.log").read_text(), rf"(?m)^gpu: {said}$")

    def test_a_step_that_fails_is_named_and_the_others_run(self):
        programs = self.fake_programs(tutti='[ $1 = doctor ] && { echo broken; exit 4; }; exit 0', gpu_unit="exit 0")
        result = self.on_doubles("--bin", programs, "doctor", "gpu_unit", "racecheck")
        self.assertEqual(result.returncode, 1, result)
        self.assertRegex(result.stdout, r"(?m)^failed +\d+ s  doctor +exit code 4: broken$")
        self.assertEqual(result.stdout.splitlines()[-1],
                         "gpu: 1 of 3 steps passed, 1 failed (doctor), 1 skipped (no GPU: --double)")
        self.assertEqual((self.out / "01-doctor.code").read_text(), "4\n")

    def test_a_program_that_is_not_there_is_a_step_that_failed(self):
        programs = self.fake_programs()
        (programs / "gpu_unit").unlink()
        result = self.on_doubles("--bin", programs, "gpu_unit", "doctor")
        self.assertEqual(result.returncode, 1, result)
        self.assertRegex(result.stdout, r"(?m)^failed +\d+ s  gpu_unit +cannot be started: .*/gpu_unit")
        self.assertEqual(result.stdout.splitlines()[-1], "gpu: 1 of 2 steps passed, 1 failed (gpu_unit)")

    def test_a_step_that_does_not_end_is_ended(self):
        programs = self.fake_programs(tutti='echo $$ >"$0.pid"; exec sleep 1000')
        result = self.on_doubles("--bin", programs, "--seconds", "1", "doctor")
        self.assertEqual(result.returncode, 1, result)
        self.assertRegex(result.stdout, r"(?m)^failed +\d+ s  doctor +not ended in 1 s$")
        self.assertNotIn(int((programs / "tutti.pid").read_text()), [one.pid for one in support.processes()])

    def test_too_many_blocks_have_to_be_refused(self):
        programs = self.fake_programs()
        result = self.on_doubles("--bin", programs, "too_many_blocks")
        self.assertEqual(result.returncode, 1, result)
        self.assertIn("expected exit code 3, and 2056 thread blocks beside what there is room for; got 0", result.stdout)

    @unittest.skipIf(list(pathlib.Path("/dev").glob("nvidia[0-9]*")) or pathlib.Path("/dev/dxg").exists(), "there is a GPU")
    def test_without_a_gpu_nothing_runs(self):
        result = self.gpu("--bin", self.fake_programs(), "--out", self.out)
        self.assertEqual(result.returncode, NO_GPU, result)
        self.assertEqual(result.stdout.splitlines()[-1], "gpu: 0 of 28 steps passed, 28 skipped (no GPU)")

    def test_mistakes(self):
        for words, reason in [([], "--out DIR is needed"), (["--out"], "--out needs a value"),
                              (["--seconds", "0"], "--seconds '0'"), (["--oot", "x"], "unknown option '--oot'"),
                              (["--out", self.out, "docter"], "unknown step 'docter': must be of doctor "),
                              (["--out", self.out, "--bin", "/nowhere"], "there is no program '/nowhere/tutti'"),
                              (["--out", "/proc/no", "--bin", support.PROGRAM.parent], "no file can be written in '/proc/no'"),
                              (["--double", "--out", self.out, "--bin", support.PROGRAM.parent, "--doubles", "/nowhere"],
                               "there is no '/nowhere/libcudart.so'")]:
            result = self.gpu(*words)
            self.assertEqual((result.returncode, result.stdout), (USAGE, ""), result)
            self.assertIn("gpu: ", result.stderr)
            self.assertIn(reason, result.stderr)
            self.assertIn("usage: gpu ", result.stderr)


if __name__ == "__main__":
    unittest.main()
