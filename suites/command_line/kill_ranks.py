#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills and stops a random rank of a sweep at a random moment, again and again, half of the trials under the program's
own spawn and half under the mpirun that it starts. Exit code 0 where every job ended in time, by the clock and however
busy the machine is. Each must end with exit code 5, name the right rank, keep its rows and leave nothing behind. Exit
code 1 where one did not.
"""
import argparse
import os
import pathlib
import random
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=500, help="trials with SIGKILL (500)")
    parser.add_argument("--stops", type=int, default=100, help="trials with SIGSTOP (100)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32), help="of ranks and moments")
    parser.add_argument("--program", default=SOURCE / "build/bin/tutti", type=pathlib.Path, help="tutti (build/bin/tutti)")
    asked = parser.parse_args()
    if not asked.program.exists():
        parser.error(f"--program: there is no '{asked.program}': build it (scripts/test), or name another")
    if asked.kills < 0 or asked.stops < 0:
        parser.error(f"--kills {asked.kills} --stops {asked.stops}: 0 or more")
    return asked


def main():
    asked = arguments()
    os.environ["TUTTI_PROGRAM"] = str(asked.program)
    import support  # what it finds depends on the program
    import trials

    launchers = [trials.OWN, trials.BOTH] if support.HAS_OPENMPI else [trials.OWN]
    print(f"seed {asked.seed}" + ("" if support.HAS_OPENMPI else "; no Open MPI here: own spawn only"))
    every_problem = []
    for name, kind, number in [("killed", trials.KILL, asked.kills), ("stopped", trials.STOP, asked.stops)]:
        for i, backends in enumerate(launchers):
            share = (number + i) // len(launchers)
            if share == 0:
                continue
            done, problems = trials.perform(kind, backends, share, asked.seed)
            problems += [f"{trial}: it took {trial.seconds:.2f} s from the signal to the end" for trial in done
                         if trial.seconds > kind.limit]
            every_problem += problems
            longest = max(trial.seconds for trial in done)
            with_rows = sum(trial.rows > 0 for trial in done)
            print(f"{name:<8} {'mpirun' if backends == trials.BOTH else 'own spawn':<9} {share:>4} trials, "
                  f"{len(problems)} problems, longest from the signal to the end {longest:.2f} s "
                  f"(limit {kind.limit:g} s), {with_rows} with rows to lose", flush=True)
    for problem in every_problem:
        print(problem)
    return 1 if every_problem else 0


if __name__ == "__main__":
    sys.exit(main())
