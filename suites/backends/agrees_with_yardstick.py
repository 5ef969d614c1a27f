#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds what tutti measures of Open MPI against an independent program (mpi_yardstick.cc). Both run in turn, again and
again. A launch may find its two cores near or far from each other (`line_ns`), which changes small cells two- to
threefold. So a median of each in one state are a pair, and a cell's ratio is the median of its pairs' ratios. Exit code
0 where the median cell agrees within --within, 1 where it does not, or where no cell has a pair.
"""
import argparse
import csv
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
COLLECTIVES = ["all_reduce", "broadcast", "all_gather", "all_to_all"]
ONE_STATE = 1.5  # of two line_ns, which the two programs measure in their own ways


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", default=SOURCE / "build/bin", type=pathlib.Path, help="where tutti is (build/bin)")
    parser.add_argument("--sizes", default="4096,16384,65536,262144,1048576", help="bytes, separated by commas")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--turns", type=int, default=12, help="of each program (12)")
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
        return {(row["collective"], int(row["bytes"])): (float(row["time_median"]), float(row["line_ns"]))
                for row in csv.DictReader(rows.open())}


def by_yardstick(asked):
    done = subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "core", "-np",
                           str(asked.ranks), asked.bin / "mpi_yardstick", *asked.sizes.split(",")],
                          check=True, capture_output=True, text=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    return {(collective, int(size)): (float(median), float(line_ns)) for collective, size, median, line_ns in lines}


def pairs(ours, theirs):
    """[(median, median)] of launches in one state, each in one pair at most, those with the nearest line_ns first."""
    def apart(a, b):
        return abs(math.log(ours[a][1] / theirs[b][1]))

    found, mine, other = [], set(), set()
    for a, b in sorted(((a, b) for a in range(len(ours)) for b in range(len(theirs))), key=lambda pair: apart(*pair)):
        if apart(a, b) <= math.log(ONE_STATE) and a not in mine and b not in other:
            mine.add(a)
            other.add(b)
            found.append((ours[a][0], theirs[b][0]))
    return found


def main():
    asked = arguments()
    ours, theirs = {}, {}
    for turn in range(asked.turns):
        pair = [(by_tutti, ours), (by_yardstick, theirs)]
        for measure, results in pair if turn % 2 == 0 else reversed(pair):
            for cell, median in measure(asked).items():
                results.setdefault(cell, []).append(median)
    ratios = []
    print(f"# {'collective':<12} {'bytes':>9} {'pairs':>6} {'tutti (us)':>12} {'yardstick':>12} {'ratio':>7}")
    for cell in sorted(ours):
        alike = pairs(ours[cell], theirs[cell])
        if not alike:
            print(f"  {cell[0]:<12} {cell[1]:>9} {0:>6}   no two launches in one state")
            continue
        ratios.append(statistics.median(mine / other for mine, other in alike))
        mine, other = (statistics.median(side) for side in zip(*alike))
        print(f"  {cell[0]:<12} {cell[1]:>9} {len(alike):>6} {mine:>12.2f} {other:>12.2f} {ratios[-1]:>7.3f}")
    if not ratios:
        return 1
    median = statistics.median(ratios)
    print(f"# median cell of {len(ratios)}: {median:.3f}; asked: within {asked.within:g} of 1")
    return 0 if abs(median - 1) <= asked.within else 1


if __name__ == "__main__":
    sys.exit(main())
