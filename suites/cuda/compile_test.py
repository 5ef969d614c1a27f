# SPDX-License-Identifier: Apache-2.0
"""What compile.py finds wrong in what a compiler says, in literals; and what it says to wrong words. Needs no nvcc."""
import pathlib
import subprocess
import sys
import unittest

import compile as device

FOLDER = pathlib.Path(__file__).resolve().parent
GOOD = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z10reduce_sumP8BFloat16' for 'sm_90'
ptxas info    : Function properties for _Z10reduce_sumP8BFloat16
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 24 registers, used 0 barriers
ptxas info    : Compiling entry function '_Z8fill_sumv' for 'sm_90'
ptxas info    : Function properties for _Z8fill_sumv
    16 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, used 0 barriers
"""
PTX = """.visible .entry _Z10reduce_sumP8BFloat16(
	add.rn.f32 	%f3, %f1, %f2;
	// no fma.rn.f32 here
"""


def compile_with(*words):
    return subprocess.run([sys.executable, FOLDER / "compile.py", *words], capture_output=True, text=True, timeout=60)


class Faults(unittest.TestCase):
    def test_none_in_what_is_right(self):
        self.assertEqual(device.faults_of(GOOD, PTX), [])
        self.assertEqual(device.kernels_of(GOOD), [("reduce_sum", 24, 0, 0), ("fill_sum", 12, 16, 0)])

    def test_a_spill(self):
        said = GOOD.replace("16 bytes stack frame, 0 bytes spill stores, 0", "16 bytes stack frame, 8 bytes spill stores, 12")
        self.assertEqual(device.faults_of(said, PTX), ["fill_sum spills 20 bytes"])

    def test_a_warning(self):
        said = GOOD + "ptxas warning : Stack size cannot be determined\n"
        self.assertEqual(device.faults_of(said, PTX), ["ptxas warning : Stack size cannot be determined"])

    def test_a_fused_multiply_add_with_and_without_a_predicate(self):
        for line in ["fma.rn.f32 \t%f4, %f1, %f2, %f3;", "@%p1 fma.rn.f64 \t%f4, %f1, %f2, %f3;"]:
            self.assertEqual(device.faults_of(GOOD, f"{PTX}\t{line}\n"),
                             [f"a fused multiply-add in _Z10reduce_sumP8BFloat16: {line}"])

    def test_what_the_driver_may_fuse(self):
        self.assertEqual(device.faults_of(GOOD, PTX.replace("add.rn.f32", "add.f32") + "\tmul.f32 \t%f4, %f1, %f2;\n"),
                         ["2 additions and products without .rn in _Z10reduce_sumP8BFloat16: the driver may fuse them"])

    def test_what_must_be_there_and_is_not(self):
        needs = device.SOURCES["kernels"].needs
        right = PTX + "".join(f"\t{start}.{scope}.b64 \t%rd1, %rd2;\n" for scope in ["gpu", "sys"]
                              for start in ["ld.acquire", "@%p1 st.release"])
        self.assertEqual(device.faults_of(GOOD, right, needs), [])
        for words, start in [("acquire.gpu", "ld.acquire.gpu"), ("acquire.sys", "ld.acquire.sys"),
                             ("release.gpu", "st.release.gpu"), ("release.sys", "st.release.sys")]:
            self.assertEqual(device.faults_of(GOOD, right.replace(words, "relaxed"), needs), [f"there is no {start} in the PTX"])

    def test_a_kernel_of_ranks_as_blocks_is_named_by_its_op(self):
        for number, op in [(0, "sum"), (8, "premul_sum"), (9, "none")]:
            name = f"_ZN5tutti4cuda59_GLOBAL__N__7a_10_kernels_cu_1e10collectiveI6__halfLNS_2OpE{number}EEEvNS_11DeviceWorldE"
            said = GOOD.replace("_Z8fill_sumv", name)
            self.assertEqual(device.kernels_of(said)[1][0], f"collective_{op}")

    def test_so_is_one_of_the_verifier(self):
        for number, kernel, op in [(0, "4fill", "sum"), (9, "7compare", "none")]:
            name = f"_ZN5tutti7harness6verify3gpu43_GLOBAL__N__740f3248{kernel}IfLNS_2OpE{number}EEEvNS1_8FillWorkE"
            said = GOOD.replace("_Z8fill_sumv", name)
            self.assertEqual(device.kernels_of(said)[1][0], f"{kernel[1:]}_{op}")

    def test_no_kernel_at_all(self):
        self.assertEqual(device.faults_of("", PTX), ["ptxas told of no kernel"])


class Words(unittest.TestCase):
    def test_every_dtype_is_known(self):
        self.assertEqual(len(device.dtypes()), 12)
        self.assertEqual(device.dtypes()["bfloat16"], "bf16")

    def test_an_unknown_dtype_is_told_with_the_nearest(self):
        process = compile_with("--dtypes", "float,bfloat61")
        self.assertEqual(process.returncode, 2)
        self.assertIn("unknown dtype 'bfloat61': did you mean 'bfloat16'?", process.stderr)

    def test_an_unknown_source_is_told_with_the_nearest(self):
        process = compile_with("--sources", "kernel")
        self.assertEqual(process.returncode, 2)
        self.assertIn("unknown source 'kernel': did you mean 'kernels'?", process.stderr)

    def test_what_is_linked_is_kernels_and_was_configured(self):
        for words, reason in [(["--sources", "text", "--link"], "--link: kernels must be among --sources"),
                              (["--link", "--generated", "/nowhere"], "there is no transport_build.h in '/nowhere'")]:
            process = compile_with(*words)
            self.assertEqual(process.returncode, 2)
            self.assertIn(reason, process.stderr)

    def test_an_architecture_is_sm_and_a_number(self):
        process = compile_with("--architectures", "hopper")
        self.assertEqual(process.returncode, 2)
        self.assertIn("'hopper': must be sm_ and a number", process.stderr)

    def test_without_nvcc_it_is_skipped(self):
        process = compile_with("--nvcc", "no_such_nvcc")
        self.assertEqual(process.returncode, 3)
        self.assertIn("skipped: there is no no_such_nvcc here", process.stdout)


if __name__ == "__main__":
    unittest.main()
