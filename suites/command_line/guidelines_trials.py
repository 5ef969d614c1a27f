#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often is `tutti guidelines` wrong on this machine? A stand-in backend makes one of Open MPI's calls several times.

- violated: its all_reduce is made so often. It has to be slower than reduce and broadcast, and the exit code 4.
- sound: its broadcast is made so often, which a scatter does not need. No guideline of scatter may be violated.

usage: guidelines_trials.py [--program PROGRAM] [--trials N] [--times N] [--sizes LIST] [--ranks N]

A line for each trial, and one of all. Exit code: 0 where each trial gave what it had to, else 1; 3 without Open MPI.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SLOWER = 4


def trial(asked, slow_call, collective, guideline, folder):
    """(whether the exit code is that of a violation, the verdict of the guideline, its ratio and interval, others violated)."""
    found = pathlib.Path(folder) / "found.json"
    environment = {**os.environ, "TUTTI_BACKENDS": str(asked.backends), "TUTTI_SLOW_CALL": slow_call,
                   "TUTTI_SLOW_TIMES": str(asked.times)}
    command = [asked.program, "guidelines", collective, "--backends", "slow_call", "--ranks", str(asked.ranks), "--sizes", asked.sizes,
               "--fail", "--quiet", "--json", found]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    if ended.returncode not in (0, SLOWER):
        raise SystemExit(f"exit code {ended.returncode}: {ended.stderr}")
    cells = json.loads(found.read_text())["cells"]
    asked_for = [cell for cell in cells if cell["cell"].startswith(guideline + "/")]
    return ended.returncode == SLOWER, asked_for, [cell["cell"] for cell in cells if cell["verdict"] == "slower"]


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/bin/tutti")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--times", type=int, default=6)
    parser.add_argument("--sizes", default="64K")
    parser.add_argument("--ranks", type=int, default=2)
    asked = parser.parse_args()
    asked.backends = asked.program.absolute().parents[1] / "lazy_backends"
    if not (asked.backends / "libtutti_backend_slow_call.so").exists():
        print("skipped: the backend slow_call is not built, for Open MPI is missing")
        return 3
    right = {}
    for kind, slow_call, collective, guideline in [("violated", "all_reduce", "all_reduce", "all_reduce <= reduce+broadcast"),
                                                   ("sound", "broadcast", "scatter", "scatter <= broadcast")]:
        right[kind] = 0
        for number in range(1, asked.trials + 1):
            with tempfile.TemporaryDirectory() as folder:
                is_violation, cells, slower = trial(asked, slow_call, collective, guideline, folder)
            wanted = kind == "violated"
            is_right = is_violation == wanted and all((cell["verdict"] == "slower") == wanted for cell in cells)
            right[kind] += is_right
            numbers = "; ".join(f"{cell['bytes']} B {cell['verdict']}, ratio {cell['ratio']:.2f} ({cell['low']:.2f} to {cell['high']:.2f})"
                                for cell in cells if cell["ratio"] is not None)
            print(f"{'ok' if is_right else 'WRONG':<6} {kind} {number}: {guideline}: {numbers}; "
                  f"violated: {', '.join(slower) or 'none'}", flush=True)
    print(f"# violated on purpose: found in {right['violated']} of {asked.trials}; sound: none found in {right['sound']} of {asked.trials}")
    return 0 if all(count == asked.trials for count in right.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
