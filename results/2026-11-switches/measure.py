#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What rate of switches changes a time by more than its interval: run as root, on two cores or more.

    nice -n -20 results/2026-11-switches/measure.py build/bin/tutti > switches.txt

A process per core wakes up at a rate, with a real-time priority, so that it takes the rank's core each time. A run with
it stands beside one without, in either order. Pairs in one state of the machine (line_ns) count. A line per run, then per
rate the median change of the time, beside the half of the interval that one run reports.
"""
import csv
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

RATES = [300, 500, 1000, 2000, 4000, 8000]  # per second and core
SIZES = ["8", "64K", "1M"]
ROUNDS = int(os.environ.get("ROUNDS", "8"))
SECONDS = 0.8  # longer than a run takes


def disturb(core, rate):
    """A child that takes `core` so often."""
    pid = os.fork()
    if pid:
        return pid
    os.sched_setaffinity(0, [core])
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        time.sleep(1 / rate)
    os._exit(0)


def run(program, rate, cores, size):
    """The row, and the core time that one wake took, in us."""
    with tempfile.TemporaryDirectory() as folder:
        busy = [disturb(core, rate) for core in cores] if rate else []
        subprocess.run([program, "run", "all_reduce", "--backends", "tutti", "--ranks", str(len(cores)), "--sizes", size,
                        "--budget", "600ms", "--no-limit", "--csv", f"{folder}/rows.csv"],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        used = 0.0
        for pid in busy:
            usage = os.wait4(pid, 0)[2]
            used += usage.ru_utime + usage.ru_stime
        with open(f"{folder}/rows.csv") as file:
            row = next(csv.DictReader(file))
    return row, 1e6 * used / (SECONDS * rate * len(cores)) if rate else 0.0


def main():
    program, cores = sys.argv[1], sorted(os.sched_getaffinity(0))[:2]
    found, pairs = {}, 0
    for _ in range(ROUNDS):
        for size in SIZES:
            for rate in random.sample(RATES, len(RATES)):
                pair = {one: run(program, one, cores, size) for one in random.sample([0, rate], 2)}
                for one, (row, _) in sorted(pair.items()):
                    print(f"{size:>4} rate {one:>5}  median {row['time_median'] or '-':>9.9} us  low "
                          f"{row['time_ci_low'] or '-':>9.9}  high {row['time_ci_high'] or '-':>9.9}  line "
                          f"{row['line_ns'] or '-':>5.5} ns  {row['disturbed']}  {row['marks']}", flush=True)
                quiet, taken = pair[0][0], pair[rate][0]
                if not all(row[name] for row in (quiet, taken) for name in ("time_ci_low", "time_ci_high", "line_ns")):
                    continue
                pairs += 1
                if not 2 / 3 < float(taken["line_ns"]) / float(quiet["line_ns"]) < 1.5:
                    continue
                low, median, high = (float(quiet[name]) for name in ("time_ci_low", "time_median", "time_ci_high"))
                change = float(taken["time_median"]) / median - 1
                half = max(high - median, median - low) / median
                found.setdefault((size, rate), []).append((change, half, pair[rate][1]))
    print(f"\n{pairs} pairs with a time\nsize  rate  pairs  us/wake   change (quartiles)             half interval")
    for size, rate in sorted(found, key=lambda one: (SIZES.index(one[0]), one[1])):
        changes, halves, each = zip(*found[size, rate])
        low, middle, high = statistics.quantiles(changes, n=4) if len(changes) > 1 else (changes[0],) * 3
        print(f"{size:>4} {rate:>5} {len(changes):>6} {statistics.median(each):>8.1f} {100 * middle:>8.1f} % "
              f"({100 * low:.1f} to {100 * high:.1f} %)  {100 * statistics.median(halves):>8.1f} %")


main()
