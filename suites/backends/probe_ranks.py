#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Starts the ranks of backend_probe (probe.cc) where no mpirun does, with a directory to meet in.
    probe_ranks.py RANKS PROGRAM [ARGUMENT...]
Exits 1 unless every rank exits 0. ctest has the deadline."""
import os
import subprocess
import sys
import tempfile


def main():
    ranks, command = int(sys.argv[1]), sys.argv[2:]
    with tempfile.TemporaryDirectory(prefix="tutti-probe-") as folder:
        common = {"PROBE_DIRECTORY": folder, "PMI_SIZE": str(ranks)}
        started = [subprocess.Popen(command, env=os.environ | common | {"PMI_RANK": str(rank)}) for rank in range(ranks)]
        codes = [process.wait() for process in started]
    print(f"exit codes: {codes}")
    return 0 if codes == [0] * ranks else 1


if __name__ == "__main__":
    sys.exit(main())
