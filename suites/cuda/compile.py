#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: compile.py [--dtypes LIST] [--architectures LIST] [--nvcc NVCC] [--jobs N]

Compiles device_text.cu, the arithmetic and the inputs of a dtype, as it must be compiled for the bits to be those of the
CPU: without contraction. There must be no warning, no spilled register and no fused multiply-add. Needs no GPU.

  --dtypes LIST         of the dtype table, comma-separated (default: all)
  --architectures LIST  (default: sm_80,sm_90,sm_100)
  --nvcc NVCC           the compiler (default: nvcc, else that of $CUDA_HOME or /usr/local/cuda)
  --jobs N              compilers at a time (default: a half of the cores)

Prints for each dtype and architecture its verdict, and for each kernel its registers. Exit code: 0, 1 where something is
wrong, 3 where there is no nvcc, 2 usage.
"""
import argparse
import concurrent.futures
import difflib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
SOURCE = FOLDER / "device_text.cu"
ARCHITECTURES = ["sm_80", "sm_90", "sm_100"]
# fmt 9 forgets some of its own constexpr under nvcc unless told.
OPTIONS = ["-std=c++20", f"-I{ROOT}", "-DFMT_USE_CONSTEXPR=1", "--fmad=false",
           "-Werror", "all-warnings", "-Xptxas", "-v", "-c"]
PATIENCE = 300  # s, for one compilation
NO_COMPILER = 3


def dtypes():
    """The enumerator of every dtype, by its name."""
    rows = re.findall(r'^ *X\((\w+), [\w:]+, "(\w+)"\)', (ROOT / "impl/types/dtype.h").read_text(), re.MULTILINE)
    return {name: enumerator for enumerator, name in rows}


def kernels_of(said):
    """(name, registers, bytes of stack, bytes spilled) of each kernel in what ptxas said."""
    found, name, stack, spilled = [], None, 0, 0
    for line in said.splitlines():
        if match := re.search(r"Compiling entry function '(\w+)'", line):
            name, stack, spilled = match[1], 0, 0
            if mangled := re.match(r"_Z(\d+)(\w+)", name):
                name = mangled[2][:int(mangled[1])]
        elif match := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            stack, spilled = int(match[1]), int(match[2]) + int(match[3])
        elif match := re.search(r"Used (\d+) registers", line):
            found.append((name, int(match[1]), stack, spilled))
    return found


def faults_of(said, ptx):
    """What is wrong, a sentence each, with what nvcc said and the code that it made for the driver."""
    kernels = kernels_of(said)
    wrong = [] if kernels else ["ptxas told of no kernel"]
    wrong += [f"{name} spills {spilled} bytes" for name, _, _, spilled in kernels if spilled]
    wrong += [line.strip() for line in said.splitlines() if re.search(r"\bwarning\b", line)]
    entry = "?"
    for line in ptx.splitlines():
        if match := re.search(r"\.entry (\w+)", line):
            entry = match[1]
        elif re.match(r"\s*(@!?%\w+\s+)?fma\.", line):
            wrong.append(f"a fused multiply-add in {entry}: {line.strip()}")
    return wrong


def compiled(nvcc, name, enumerator, architecture):
    """(what is wrong, kernels, seconds, what nvcc said)."""
    number = architecture.removeprefix("sm_")
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tutti-cuda-") as folder:
        command = [nvcc, *OPTIONS, f"-DTUTTI_DEVICE_DTYPE={enumerator}",
                   f"-gencode=arch=compute_{number},code={architecture}", "--keep", f"--keep-dir={folder}",
                   str(SOURCE), "-o", f"{folder}/device_text.o"]
        try:
            process = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            return [f"nvcc has not ended in {PATIENCE} s"], [], time.monotonic() - begin, ""
        said = process.stdout
        if process.returncode != 0:
            return [f"nvcc ended with {process.returncode}"], [], time.monotonic() - begin, said
        ptx = [path.read_text() for path in pathlib.Path(folder).glob("*.ptx")]
    wrong = faults_of(said, "\n".join(ptx)) if ptx else ["nvcc kept no PTX"]
    return wrong, kernels_of(said), time.monotonic() - begin, said


def arguments(known):
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[0].removeprefix("usage: "), add_help=False)
    parser.add_argument("--dtypes", default=",".join(known))
    parser.add_argument("--architectures", default=",".join(ARCHITECTURES))
    parser.add_argument("--nvcc")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) // 2))
    parser.add_argument("--help", action="store_true")
    asked = parser.parse_args()
    if asked.help:
        print(__doc__, end="")
        sys.exit(0)
    asked.dtypes, asked.architectures = asked.dtypes.split(","), asked.architectures.split(",")
    for name in asked.dtypes:
        if name not in known:
            nearest = difflib.get_close_matches(name, known, 1)
            meant = f"did you mean '{nearest[0]}'? " if nearest else ""
            parser.error(f"--dtypes: unknown dtype '{name}': {meant}(one of: {' '.join(known)})")
    for architecture in asked.architectures:
        if not re.fullmatch(r"sm_\d+[a-z]?", architecture):
            parser.error(f"--architectures: '{architecture}': must be sm_ and a number, as sm_90")
    if asked.jobs < 1:
        parser.error(f"--jobs {asked.jobs}: must be 1 or more")
    return asked


def found_nvcc(asked):
    places = [asked] if asked else ["nvcc", f"{os.environ.get('CUDA_HOME', '')}/bin/nvcc", "/usr/local/cuda/bin/nvcc"]
    return next((path for path in map(shutil.which, places) if path), None)


def main():
    known = dtypes()
    asked = arguments(known)
    nvcc = found_nvcc(asked.nvcc)
    if nvcc is None:
        print(f"skipped: there is no {asked.nvcc or 'nvcc'} here, so no device code is compiled")
        return NO_COMPILER
    cells = [(name, architecture) for name in asked.dtypes for architecture in asked.architectures]
    are_right = True
    with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
        results = pool.map(lambda cell: compiled(nvcc, cell[0], known[cell[0]], cell[1]), cells)
        for (name, architecture), (wrong, kernels, seconds, said) in zip(cells, results):
            most = max((registers for _, registers, _, _ in kernels), default=0)
            print(f"{'WRONG' if wrong else 'ok':<6}{name:<10}{architecture:<8}{len(kernels):>3} kernels, at most {most:>3} "
                  f"registers, {seconds:.1f} s", flush=True)
            for kernel, registers, stack, _ in kernels:
                print(f"        {kernel:<20} {registers:>3} registers, {stack} bytes of stack")
            if wrong:
                are_right = False
                print("\n".join(f"  {sentence}" for sentence in wrong) if kernels else "\n".join([*wrong, said]))
    return 0 if are_right else 1


if __name__ == "__main__":
    sys.exit(main())
