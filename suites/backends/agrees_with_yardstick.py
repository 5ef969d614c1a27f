#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds what tutti measures of Open MPI against an independent program (mpi_yardstick.cc). Both run in turn, again and
again; a cell's ratio is that of the best median of each, because a launch may find its two cores near or far from each
other (`line_ns`), which changes small cells two- to threefold. Exit code 0 where the median cell agrees within --within,
1 where it does not.
"""
import argparse
import csv
import pathlib
import statistics
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
COLLECTIVES = ["all_reduce", "broadcast", "all_gather", "all_to_all"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", default=SOURCE / "build/bin", type=pathlib.Path, help="where tutti is (build/bin)")
    parser.add_argument("--sizes", default="4096,16384,65536,262144,1048576", help="bytes, separated by commas")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--turns", type=int, default=8, help="of each program (8)")
    parser.add_argument("--within", type=float, default=0.10, help="of the median cell (0.10)")
    asked = parser.parse_args()
    for program in ["tutti", "mpi_yardstick"]:
        if not (asked.bin / program).exists():
            parser.error(f"--bin: there is no '{asked.bin / program}': build it (scripts/test), or name another folder")
    return asked


def by_tutti(asked):
    with tempfile.TemporaryDirectory() as folder:
        rows = pathlib.Path(folder, "rows.csv")
        subprocess.run([asked.bin / "tutti", "run", *COLLECTIVES, "--backends", "openmpi", "--ranks", str(asked.ranks),
                        "--sizes", asked.sizes, "--budget", "6s", "--no-limit", "--csv", rows],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return {(row["collective"], int(row["bytes"])): float(row["time_median"])
                for row in csv.DictReader(rows.open())}


def by_yardstick(asked):
    done = subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "core", "-np",
                           str(asked.ranks), asked.bin / "mpi_yardstick", *asked.sizes.split(",")],
                          check=True, capture_output=True, text=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    return {(collective, int(size)): float(median) for collective, size, median in lines}


def main():
    asked = arguments()
    ours, theirs = {}, {}
    for turn in range(asked.turns):
        pair = [(by_tutti, ours), (by_yardstick, theirs)]
        for measure, results in pair if turn % 2 == 0 else reversed(pair):
            for cell, median in measure(asked).items():
                results.setdefault(cell, []).append(median)
    ratios = []
    print(f"# {'collective':<12} {'bytes':>9} {'tutti (us)':>12} {'yardstick':>12} {'ratio':>7}")
    for cell in sorted(ours):
        mine, other = min(ours[cell]), min(theirs[cell])
        ratios.append(mine / other)
        print(f"  {cell[0]:<12} {cell[1]:>9} {mine:>12.2f} {other:>12.2f} {ratios[-1]:>7.3f}")
    median = statistics.median(ratios)
    print(f"# median cell of {len(ratios)}: {median:.3f}; asked: within {asked.within:g} of 1")
    return 0 if abs(median - 1) <= asked.within else 1


if __name__ == "__main__":
    sys.exit(main())
