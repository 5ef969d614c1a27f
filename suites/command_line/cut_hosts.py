#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs on several machines to which something happens at a random moment: a machine is killed or stopped, the cable
between two is cut in both directions or in one, a connection takes a byte at a time or brings rubbish; or strangers call
on it. Each must end in time with the right exit code, name the machine that went, keep its rows and leave nothing behind;
strangers must change nothing. Exit code 0 where all did, 1 where one did not.
"""
import argparse
import os
import pathlib
import random
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=300, help="how many (300)")
    parser.add_argument("--kinds", help="only of these kinds, with commas between (all)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32), help="of kinds, places and moments")
    parser.add_argument("--program", default=SOURCE / "build/bin/tutti", type=pathlib.Path, help="tutti (build/bin/tutti)")
    asked = parser.parse_args()
    if not asked.program.exists():
        parser.error(f"--program: there is no '{asked.program}': build it (scripts/test), or name another")
    if asked.trials < 1:
        parser.error(f"--trials {asked.trials}: 1 or more")
    return parser, asked


def main():
    parser, asked = arguments()
    os.environ["TUTTI_PROGRAM"] = str(asked.program)
    import host_kinds  # what these find depends on the program
    import host_trials

    kinds = {kind.__name__: kind for kind in host_kinds.KINDS}
    if asked.kinds:
        for name in asked.kinds.split(","):
            if name not in kinds:
                parser.error(f"--kinds: unknown kind '{name}': must be of {', '.join(kinds)}")
        kinds = {name: kinds[name] for name in asked.kinds.split(",")}
    why_not = host_trials.can_cut()
    skipped = [name for name, kind in kinds.items() if kind.needs_cable] if why_not else []
    print(f"seed {asked.seed}" + (f"; skipped {', '.join(skipped)}: {why_not}" if skipped else ""))
    kinds = {name: kind for name, kind in kinds.items() if name not in skipped}
    if not kinds:
        return 3
    # Few trials of each share of a night have every kind together: seeds of shares follow each other (nightly/shares.py).
    drawn = host_trials.draw(asked.trials, asked.seed, tuple(kinds.values()), asked.seed - 1)
    problems = host_trials.perform(drawn)
    for kind, some in host_trials.by_kind(drawn).items():
        mine = sum(f"{one}: " in problem for one in some for problem in problems)
        print(f"{kind.__name__:<12} {len(some):>4} trials, {mine} problems, longest {max(one.seconds for one in some):.2f} s "
              f"(limit {kind.limit:g} s), {sum(one.rows > 0 for one in some)} with rows to lose")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
