#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs of all kinds, in each of which one process, chosen at random among all of them, is killed, stopped, terminated or
hung up at a random moment. Each must end in time, with an exit code of the README or its starter's, name who was hit,
keep the rows that were printed and leave nothing: no process, file, shared memory or socket. Exit code 0 if all did, 1 if
one did not, 3 if no such job can be started here. A failed trial is printed with the options that repeat it.
"""
import argparse
import os
import pathlib
import random
import signal
import sys
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, help="how many (200; with --scenario 1)")
    parser.add_argument("--scenario", help="only of these, with commas between (all)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6), help="of the first trial; the next has the next")
    parser.add_argument("--program", default=SOURCE / "build/bin/tutti", type=pathlib.Path, help="tutti (build/bin/tutti)")
    asked = parser.parse_args()
    if not asked.program.exists():
        parser.error(f"--program: there is no '{asked.program}': build it (scripts/test), or name another")
    if asked.trials is None:
        asked.trials = 1 if asked.scenario else 200
    if asked.trials < 1:
        parser.error(f"--trials {asked.trials}: 1 or more")
    return parser, asked


def tell(trial, problems):
    print(f"{'FAILED' if problems else 'held'}: {trial}, exit codes {trial.codes}, {trial.seconds:.1f} s", *problems, sep="\n",
          flush=True)


def main():
    parser, asked = arguments()
    os.environ["TUTTI_PROGRAM"] = str(asked.program)
    import hit_jobs  # what these find depends on the program
    import hits

    names = asked.scenario.split(",") if asked.scenario else list(hit_jobs.ALL)
    for name in names:
        if name not in hit_jobs.ALL:
            parser.error(f"--scenario: unknown scenario '{name}': must be of {', '.join(hit_jobs.ALL)}")
    skipped = {name: why for name in names if (why := hit_jobs.ALL[name].why_not())}
    names = [name for name in names if name not in skipped]
    print(f"seed {asked.seed}" + "".join(f"; skipped {name}: {why}" for name, why in skipped.items()), flush=True)
    if not names:
        return 3
    for number in [signal.SIGHUP, signal.SIGTERM]:  # `nohup`, or who starts this, would let jobs ignore them
        signal.signal(number, signal.SIG_DFL)
    begin = time.monotonic()
    trials = [hits.Trial(hit_jobs.ALL[names[seed % len(names)]], seed) for seed in range(asked.seed, asked.seed + asked.trials)]
    done = hits.perform(trials, tell)
    print("\n".join(hits.summary(done)))
    failed = [trial for trial, problems in done if problems]
    print(f"{len(done)} trials, {sum(not trial.was_late for trial, _ in done)} hit, {len(done) - len(failed)} held, {len(failed)} failed, "
          f"{time.monotonic() - begin:.0f} s")
    for trial in failed:
        print(f"  suites/command_line/random_hits.py --seed {trial.seed} --scenario {trial.job.name}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
