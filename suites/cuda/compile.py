#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: compile.py [--sources LIST] [--dtypes LIST] [--architectures LIST] [--link] [--generated FOLDER] [--nvcc NVCC]
       [--jobs N]

Compiles device code as it must be compiled for the bits to be those of the CPU: without contraction. There must be no
warning, no spilled register and no fused multiply-add. The kernels wait for each other, so they must load with acquire
and store with release. Needs no GPU.

  --sources LIST        text: the arithmetic and the inputs (device_text.cu); kernels: what ranks as thread blocks run
                        (impl/device/cuda/kernels.cu); verify: what fills and compares (harness/verify/cuda/kernels.cu)
                        (default: all)
  --dtypes LIST         of the dtype table, comma-separated (default: all)
  --architectures LIST  (default: sm_80,sm_90,sm_100)
  --link                also links the kernels with device.cu, and those of verify with runner.cu, into an object for each
                        architecture, loads it and looks for tutti_device and tutti_device_verifier; dtypes that are not
                        asked for have no kernels in it
  --generated FOLDER    of transport_build.h and runner_build.h, which the build made; --link reads them (default:
                        build/generated of this checkout)
  --nvcc NVCC           the compiler (default: nvcc, else that of $CUDA_HOME or /usr/local/cuda)
  --jobs N              compilers at a time (default: a half of the cores)

Prints for each source, dtype and architecture its verdict, and for each kernel its registers. Exit code: 0, 1 where
something is wrong, 3 where there is no nvcc, 2 usage.
"""
import argparse
import collections
import concurrent.futures
import ctypes
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
CUDA = ROOT / "impl/device/cuda"
VERIFY = ROOT / "harness/verify/cuda"
Source = collections.namedtuple("Source", "file macro needs")
SOURCES = {"text": Source(FOLDER / "device_text.cu", "TUTTI_DEVICE_DTYPE", []),
           "kernels": Source(CUDA / "kernels.cu", "TUTTI_KERNEL_DTYPE", ["ld.acquire.gpu", "ld.acquire.sys", "st.release.gpu", "st.release.sys"]),
           "verify": Source(VERIFY / "kernels.cu", "TUTTI_KERNEL_DTYPE", [])}
# What libtutti_device_cuda.so takes of impl (impl/device/cuda/CMakeLists.txt).
PARTS = [ROOT / "impl/types" / name for name in ["status.cc", "tables.cc", "names.cc", "printable.cc"]]
ARCHITECTURES = ["sm_80", "sm_90", "sm_100"]
# fmt 9 forgets some of its own constexpr under nvcc unless told.
OPTIONS = ["-std=c++20", f"-I{ROOT}", "-DFMT_USE_CONSTEXPR=1", "--fmad=false",
           "-Werror", "all-warnings", "-Xcompiler", "-fPIC"]
PATIENCE = 300  # s, for one compilation
NO_COMPILER = 3


def dtypes():
    """The enumerator of every dtype that a GPU has, by its name."""
    table = (ROOT / "impl/types/dtype.h").read_text().partition("#define TUTTI_DTYPES_BY_NAME")[0]
    rows = re.findall(r'^ *X\((\w+), [\w:]+, "(\w+)"\)', table, re.MULTILINE)
    return {name: enumerator for enumerator, name in rows}


def ops():
    """The enumerators of the op table, and that of a call without an op."""
    return [*re.findall(r"^ *X\((\w+), \"\w+\", \w+\)", (ROOT / "impl/types/op.h").read_text(), re.MULTILINE), "none"]


def kernels_of(said):
    """(name, registers, bytes of stack, bytes spilled) of each kernel in what ptxas said."""
    found, name, stack, spilled = [], None, 0, 0
    for line in said.splitlines():
        if match := re.search(r"Compiling entry function '(\w+)'", line):
            name, stack, spilled = match[1], 0, 0
            if mangled := re.match(r"_Z(\d+)(\w+)", name):
                name = mangled[2][:int(mangled[1])]
            elif mangled := re.match(r"_ZN.*\d(collective|fill|compare)I.*LNS_2OpE(\d+)E", name):
                name = f"{mangled[1]}_{ops()[int(mangled[2])]}"
        elif match := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            stack, spilled = int(match[1]), int(match[2]) + int(match[3])
        elif match := re.search(r"Used (\d+) registers", line):
            found.append((name, int(match[1]), stack, spilled))
    return found


def faults_of(said, ptx, needs=()):
    """What is wrong, a sentence each, with what nvcc said and the code that it made for the driver, which must have
    instructions that begin as `needs` says."""
    kernels = kernels_of(said)
    wrong = [] if kernels else ["ptxas told of no kernel"]
    wrong += [f"{name} spills {spilled} bytes" for name, _, _, spilled in kernels if spilled]
    wrong += [line.strip() for line in said.splitlines() if re.search(r"\bwarning\b", line)]
    entry, may_fuse = "?", {}
    for line in ptx.splitlines():
        if match := re.search(r"\.entry (\w+)", line):
            entry = match[1]
        elif re.match(r"\s*(@!?%\w+\s+)?fma\.", line):
            wrong.append(f"a fused multiply-add in {entry}: {line.strip()}")
        elif re.match(r"\s*(@!?%\w+\s+)?(add|sub|mul)\.(ftz\.)?(sat\.)?(f|bf)\d", line):
            may_fuse[entry] = may_fuse.get(entry, 0) + 1
    wrong += [f"{count} additions and products without .rn in {entry}: the driver may fuse them"
              for entry, count in may_fuse.items()]
    wrong += [f"there is no {start} in the PTX" for start in needs
              if not re.search(rf"^\s*(@!?%\w+\s+)?{re.escape(start)}\.", ptx, re.MULTILINE)]
    return wrong


def run(nvcc, *words):
    """(what nvcc said, what is wrong: at most one sentence)."""
    try:
        process = subprocess.run([nvcc, *OPTIONS, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                 timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return "", [f"nvcc has not ended in {PATIENCE} s"]
    return process.stdout, [f"nvcc ended with {process.returncode}"] if process.returncode else []


def code_for(architecture):
    return f"-gencode=arch=compute_{architecture.removeprefix('sm_')},code={architecture}"


def compiled(nvcc, cell, enumerator, objects):
    """(what is wrong, kernels, seconds, what nvcc said) of a source, dtype and architecture, whose object goes to
    `objects`."""
    kind, name, architecture = cell
    source = SOURCES[kind]
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tutti-cuda-") as folder:
        said, wrong = run(nvcc, "-Xptxas", "-v", "-c", f"-D{source.macro}={enumerator}", code_for(architecture), "--keep",
                          f"--keep-dir={folder}", str(source.file), "-o", f"{objects}/{'.'.join(cell)}.o")
        if wrong:
            return wrong, [], time.monotonic() - begin, said
        ptx = [path.read_text() for path in pathlib.Path(folder).glob("*.ptx")]
    wrong = faults_of(said, "\n".join(ptx), source.needs) if ptx else ["nvcc kept no PTX"]
    return wrong, kernels_of(said), time.monotonic() - begin, said


class Opener(ctypes.Structure):
    """impl/device/opener.h."""

    _fields_ = [("number", ctypes.c_uint64), ("built_for", ctypes.c_char_p), ("open", ctypes.c_void_p)]


class RunnerOpener(ctypes.Structure):
    """harness/verify/device_opener.h."""

    _fields_ = [("number", ctypes.c_uint64), ("open", ctypes.c_void_p)]


ENTRIES = {"kernels": ("tutti_device", Opener), "verify": ("tutti_device_verifier", RunnerOpener)}


def linked(nvcc, asked, architecture, objects, known):
    """(what is wrong, seconds, what nvcc said) of an object for ranks as blocks with the kernels of the dtypes asked for."""
    begin = time.monotonic()
    kinds = [kind for kind in ENTRIES if kind in asked.sources]
    others = [enumerator for name, enumerator in known.items() if name not in asked.dtypes]
    rows = pathlib.Path(objects, "rows.cc")
    rows.write_text("\n".join(
        ['#include "impl/device/cuda/kernels.h"', '#include "harness/verify/cuda/kernels.h"', "namespace tutti::cuda {",
         *(f"const KernelRow k_kernels_{enumerator};" for enumerator in others),
         "}", "namespace tutti::harness::verify::gpu {",
         *(f"const KernelRow k_verify_{enumerator};" for enumerator in others if "verify" in kinds), "}\n"]))
    sources = [CUDA / "device.cu", rows, *PARTS, *([VERIFY / "runner.cu"] if "verify" in kinds else [])]
    target = f"{objects}/libtutti_device_cuda.{architecture}.so"
    said, wrong = run(nvcc, "-shared", f"-I{asked.generated}", code_for(architecture), "-cudart", "static",
                      *(f"{objects}/{kind}.{name}.{architecture}.o" for kind in kinds for name in asked.dtypes),
                      *map(str, sources), "-lfmt", "-Xlinker", "-zdefs", "-o", target)
    if not wrong:
        try:
            loaded = ctypes.CDLL(target, mode=os.RTLD_NOW | os.RTLD_LOCAL)
            for name, form in map(ENTRIES.get, kinds):
                entry = getattr(loaded, name)
                entry.restype = ctypes.POINTER(form)
                opener = entry().contents
                if not all(getattr(opener, field) for field, _ in form._fields_):
                    wrong = [f"{name} says no program that it was built for, or opens nothing"]
        except (OSError, AttributeError) as failure:
            wrong = [f"the object does not load: {failure}"]
    return wrong, time.monotonic() - begin, said


def arguments(known):
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[0].removeprefix("usage: "), add_help=False)
    parser.add_argument("--sources", default=",".join(SOURCES))
    parser.add_argument("--dtypes", default=",".join(known))
    parser.add_argument("--architectures", default=",".join(ARCHITECTURES))
    parser.add_argument("--link", action="store_true")
    parser.add_argument("--generated", type=pathlib.Path, default=ROOT / "build/generated")
    parser.add_argument("--nvcc")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) // 2))
    parser.add_argument("--help", action="store_true")
    asked = parser.parse_args()
    if asked.help:
        print(__doc__, end="")
        sys.exit(0)
    asked.sources, asked.dtypes = asked.sources.split(","), asked.dtypes.split(",")
    asked.architectures = asked.architectures.split(",")
    for option, words, what, right in [("--sources", asked.sources, "source", SOURCES), ("--dtypes", asked.dtypes, "dtype", known)]:
        for word in words:
            if word not in right:
                nearest = difflib.get_close_matches(word, right, 1)
                meant = f"did you mean '{nearest[0]}'? " if nearest else ""
                parser.error(f"{option}: unknown {what} '{word}': {meant}(one of: {' '.join(right)})")
    if asked.link and "kernels" not in asked.sources:
        parser.error("--link: kernels must be among --sources, for they are linked")
    for header in ["transport_build.h", "runner_build.h"]:
        if asked.link and not (asked.generated / header).exists():
            parser.error(f"--generated: there is no {header} in '{asked.generated}': configure (cmake --preset release)")
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
    cells = [(kind, name, architecture) for kind in asked.sources for name in asked.dtypes
             for architecture in asked.architectures]
    are_right = True

    def tell(wrong, what, rest, said):
        nonlocal are_right
        are_right &= not wrong
        print(f"{'WRONG' if wrong else 'ok':<6}{what:<28}{rest}", flush=True)
        print("".join(f"  {sentence}\n" for sentence in wrong) + said, end="")

    with tempfile.TemporaryDirectory(prefix="tutti-cuda-") as objects, concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
        results = pool.map(lambda cell: compiled(nvcc, cell, known[cell[1]], objects), cells)
        for cell, (wrong, kernels, seconds, said) in zip(cells, results):
            most = max((registers for _, registers, _, _ in kernels), default=0)
            tell(wrong, " ".join(cell), f"{len(kernels):>3} kernels, at most {most:>3} registers, {seconds:.1f} s",
                 said if wrong and not kernels else "")
            for kernel, registers, stack, _ in kernels:
                print(f"        {kernel:<22} {registers:>3} registers, {stack} bytes of stack")
        if asked.link and are_right:
            names = " and ".join(name for kind, (name, _) in ENTRIES.items() if kind in asked.sources)
            for architecture in asked.architectures:
                wrong, seconds, said = linked(nvcc, asked, architecture, objects, known)
                tell(wrong, f"object {architecture}", f"  loads, has {names}, {seconds:.1f} s" if not wrong else "",
                     said if wrong else "")
    return 0 if are_right else 1


if __name__ == "__main__":
    sys.exit(main())
