#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Collectives on real buffers beyond 2^31 and 2^32 bytes, verified to the last element: minutes, and gigabytes.

Not part of scripts/test, which proves the same offsets without memory (suites/unit/impl/prove/offsets_test.cc). Each line
says what memory it needs; what this machine does not have free is skipped, and told. `--most 8G` takes no more than that.

    suites/nightly/large.py [--most BYTES] [--program build/bin/tutti]
"""
import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time

MIB = 1 << 20
GIB = 1 << 30
ABOVE_31 = 2056 * MIB  # per rank: above 2^31 bytes, and of int8 elements as many
ABOVE_32 = 4104 * MIB
RANKS = 2
TIMEOUT = "600s"
# collective, bytes of the larger buffer of a rank, dtype, placement, further options
CELLS = [("broadcast", ABOVE_31, "int8", "in", []),
         ("all_reduce", ABOVE_31, "int8", "in", []),
         ("all_reduce", ABOVE_31, "float", "in", []),
         ("all_gather", ABOVE_31, "int8", "in", []),
         ("reduce_scatter", ABOVE_31, "int8", "in", []),
         ("all_to_all", ABOVE_31, "int8", "in", []),
         ("all_gather_v", ABOVE_31, "int8", "in", ["--counts", "one-heavy"]),
         ("broadcast", ABOVE_32, "int8", "in", []),
         ("all_reduce", ABOVE_32, "int8", "in", []),
         ("all_reduce", ABOVE_31, "int8", "out", []),
         ("all_gather", ABOVE_32, "int8", "in", []),
         ("all_to_all", ABOVE_32, "float", "out", [])]


def need(size, placement):
    """Bytes of all ranks' buffers, and a little for everything else."""
    return RANKS * size * (1 if placement == "in" else 2) + GIB // 4


def available():
    """Bytes that can be had without swapping: of the machine, and of the control group where that has a limit."""
    with open("/proc/meminfo", encoding="ascii") as file:
        free = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in file if line.endswith("kB\n")}["MemAvailable"]
    try:
        with open("/sys/fs/cgroup/memory.max", encoding="ascii") as limit, \
                open("/sys/fs/cgroup/memory.current", encoding="ascii") as used:
            text = limit.read().strip()
            return free if text == "max" else min(free, int(text) - int(used.read()))
    except OSError:
        return free


def parse_bytes(text):
    factor = {"K": 1 << 10, "M": MIB, "G": GIB}.get(text[-1:].upper())
    return int(text[:-1]) * factor if factor else int(text)


def run(program, cell, csv_path):
    """None where the cell came out right, else what went wrong."""
    collective, size, dtype, placement, options = cell
    command = [program, "run", collective, "--backends", "tutti", "--ranks", str(RANKS), "--ranks-as", "threads", "--sizes",
               str(size), "--dtypes", dtype, "--placement", placement, "--no-limit", "--budget", "1s",
               "--timeout", TIMEOUT, "--require", "--csv", csv_path, *options]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    with open(csv_path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    right = [row for row in rows if row["verdict"] == "ok" and int(row["bytes"]) > (1 << 31)]
    if result.returncode == 0 and rows and right == rows:
        return None
    return f"exit code {result.returncode}: {' '.join(command)}\n{result.stdout}{result.stderr}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=parse_bytes, help="bytes that a cell may take at most, such as 8G")
    parser.add_argument("--program", default="build/bin/tutti")
    arguments = parser.parse_args()
    if not os.access(arguments.program, os.X_OK):
        sys.exit(f"{arguments.program}: no such program; build it, or name it with --program")
    done = skipped = failed = 0
    for cell in CELLS:
        collective, size, dtype, placement, _ = cell
        name = f"{collective} {dtype}, {size} bytes, {placement}, {RANKS} ranks"
        needs, has = need(size, placement), available()
        has = min(has, arguments.most) if arguments.most else has
        if needs > has:
            print(f"skipped  {name}: needs {needs / GIB:.1f} GiB, {has / GIB:.1f} GiB are to be had", flush=True)
            skipped += 1
            continue
        begin = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            wrong = run(arguments.program, cell, os.path.join(folder, "rows.csv"))
        print(f"{'failed ' if wrong else 'ok     '}  {name}: {needs / GIB:.1f} GiB, {time.monotonic() - begin:.0f} s",
              flush=True)
        if wrong:
            print(wrong)
        done += 1
        failed += 1 if wrong else 0
    print(f"# {done} run, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
