#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: simgrid.py --program TUTTI [--short]

What `tutti simulate` predicts beside what SimGrid SMPI simulates, on one machine: a switch, a rank on each node, 1 us and
1.25 GB/s for each of a message's two links. all_reduce by recursive doubling and around a ring, on 16 and 64 ranks.

From 1 MiB on both are within 1 %, below within 2 us. Exit code: 1 where they are not, 3 without SimGrid
(scripts/setup --with simgrid), otherwise 0.
"""
import argparse
import csv
import io
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).with_suffix(".c")
ALGORITHMS = {"recursive_doubling": "rdb", "ring": "lr"}  # ours, and SimGrid's name of the same
SIZES = [256, 16384, 1 << 20, 16 << 20]
LARGE = 1 << 20     # bytes
WITHIN = 0.01       # of SimGrid's time, from LARGE on
CONSTANT = 2.0      # us, below
SKIPPED = 3
# Messages never slow each other down but where they share a link, and computing takes no time: as in our model.
SETTINGS = ["network/model:CM02", "network/TCP-gamma:0", "network/crosstraffic:0", "smpi/simulate-computation:no"]

PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="n" suffix="" radical="0-{last}" speed="1Gf" bw="1.25GBps" lat="1us"/>
</platform>
"""
MACHINE = """name = "a switch of SimGrid's"
ranks_per_node = 1
[far]
latency = 2000
send = 0
receive = 0
wire = [[0, 0], [1000000, 800000]]
[node]
flag = 0
reduce = 0
copy = 0
read = 0
"""


def said(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit(f"simgrid.py: {' '.join(map(str, command))}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def simulated(folder, ranks, name):
    """{bytes: us}."""
    (folder / "platform.xml").write_text(PLATFORM.format(last=ranks - 1))
    (folder / "hosts").write_text("".join(f"n{rank}\n" for rank in range(ranks)))
    settings = [f"--cfg={setting}" for setting in [*SETTINGS, f"smpi/allreduce:{name}"]]
    lines = said(["smpirun", "-np", str(ranks), "-platform", "platform.xml", "-hostfile", "hosts", *settings, "--log=root.thres:critical",
                  "./program", *map(str, SIZES)], folder).splitlines()
    rows = [line.split(",") for line in lines if line.startswith(f"{ranks},")]
    return {int(size): float(us) for _, size, us in rows}


def predicted(program, folder, ranks, name):
    (folder / "machine.toml").write_text(MACHINE)
    text = said([program, "simulate", "all_reduce", "--algorithms", name, "--ranks", str(ranks), "--sizes", ",".join(map(str, SIZES)),
                 "--machine", "machine.toml", "--csv", "-"], folder)
    rows = csv.DictReader(io.StringIO("".join(line for line in text.splitlines(True) if not line.startswith("#"))))
    return {int(row["bytes"]): float(row["predicted_us"]) for row in rows}


def main():
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[0].removeprefix("usage: "))
    parser.add_argument("--program", required=True, type=pathlib.Path)
    parser.add_argument("--short", action="store_true")
    asked = parser.parse_args()
    if not shutil.which("smpicc") or not shutil.which("smpirun"):
        print("simgrid.py: skipped: there is no smpirun here: scripts/setup --with simgrid installs it")
        return SKIPPED
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="tutti-simgrid-") as name:
        folder = pathlib.Path(name)
        said(["smpicc", "-O2", SOURCE, "-o", "program"], folder)
        print(f"{'algorithm':<20} {'ranks':>5} {'bytes':>9} {'tutti (us)':>12} {'SimGrid (us)':>12} {'difference':>11}")
        for algorithm, theirs in ALGORITHMS.items():
            for ranks in [16] if asked.short else [16, 64]:
                ours, reference = predicted(asked.program.absolute(), folder, ranks, algorithm), simulated(folder, ranks, theirs)
                if sorted(ours) != SIZES or sorted(reference) != SIZES:
                    sys.exit(f"simgrid.py: {algorithm} on {ranks} ranks: sizes {sorted(ours)} and {sorted(reference)}, not {SIZES}")
                for size in SIZES:
                    apart = ours[size] - reference[size]
                    is_right = abs(apart) <= (WITHIN * reference[size] if size >= LARGE else CONSTANT)
                    wrong += not is_right
                    print(f"{algorithm:<20} {ranks:>5} {size:>9} {ours[size]:>12.2f} {reference[size]:>12.2f} {apart / reference[size]:>10.2%}"
                          f"{'' if is_right else '  too far'}")
    print(f"# {wrong} too far" if wrong else f"# all within {WITHIN:.0%} from {LARGE} bytes on, and within {CONSTANT} us below")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
