#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds a backend against itself: `tutti run --backends tutti,tutti` over several launches. Nothing differs between the
two, so the 95 % interval of the ratio should contain 1 in nearly every cell. Where it does not, the machine or the
measurement is not to be believed. Exit code 0 where it does in at least --least of the cells, 1 where not. """
import argparse
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
COLLECTIVES = ["all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter", "gather", "scatter", "all_to_all"]
LEAST_LAUNCHES = 6  # fewer have no interval


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", default=SOURCE / "build/bin", type=pathlib.Path, help="where tutti is (build/bin)")
    parser.add_argument("--backend", default="tutti", help="the one that is held against itself (tutti)")
    parser.add_argument("--sizes", default="64,4096,65536,1048576", help="bytes, separated by commas")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--launches", type=int, default=8)
    parser.add_argument("--budget", default="4m", help="for all launches together (4m)")
    parser.add_argument("--least", type=float, default=0.93, help="share of the cells (0.93)")
    asked = parser.parse_args()
    if not (asked.bin / "tutti").exists():
        parser.error(f"--bin: there is no '{asked.bin / 'tutti'}': build it (scripts/test), or name another folder")
    if asked.launches < LEAST_LAUNCHES:
        parser.error(f"--launches {asked.launches}: an interval needs at least {LEAST_LAUNCHES}")
    return asked


def main():
    asked = arguments()
    done = subprocess.run([asked.bin / "tutti", "run", *COLLECTIVES, "--backends", f"{asked.backend},{asked.backend}",
                           "--ranks", str(asked.ranks), "--sizes", asked.sizes, "--launches", str(asked.launches),
                           "--budget", asked.budget, "--no-limit"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        sys.stderr.write(done.stderr)
        print(f"# tutti ended with exit code {done.returncode}")
        return 1
    found = re.search(r"^# a backend against itself: .* contains 1 in (\d+) of (\d+) cells", done.stdout, re.MULTILINE)
    if not found:
        print("# no cell has an interval: too few launches have a time")
        return 1
    for line in done.stdout.splitlines():
        if re.match("#   .*; .* / ", line):
            print(line)
    alike, cells = map(int, found.groups())
    print(f"# the interval of the ratio contains 1 in {alike} of {cells} cells ({alike / cells:.1%}); asked: {asked.least:.1%}")
    return 0 if alike >= asked.least * cells else 1


if __name__ == "__main__":
    sys.exit(main())
