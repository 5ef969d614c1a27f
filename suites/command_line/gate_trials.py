#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often is the gate wrong on this machine? `tutti gate` compares a build with a copy of itself again and again. As
the copy is, all but exit code 0 and 6 (undecided) is a false alarm. Then a script in the place of the other build takes
a known share off the times of 1 MiB that it measured: a gate that finds nothing slower is a miss. The defaults take an hour and a half, or more where the machine has other work to do, and say the more
the less it has.

Exit code 0 where at most one of forty raised a false alarm, at least eighteen of twenty were caught, and no gate
failed; 1 where not. A gate that does not know, because the machine is too noisy, raises no alarm and catches nothing.
"""
import argparse
import collections
import dataclasses
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SAME, SLOWER, INVALID, UNDECIDED = 0, 4, 3, 6
MOST_SECONDS = 3600  # of one gate
BYTES_OF_SLOW_DOWN = "/1048576B"  # in a cell's id

# In the place of the other build: against one that is faster by a share, this one is slower by it.
FASTER = """#!{python}
import csv, os, subprocess, sys
words = sys.argv[1:]
if words[:1] != ["run"]:
    os.execv({program!r}, [{program!r}, *words])
code = subprocess.run([{program!r}, *words]).returncode
with open(words[words.index("--csv") + 1], "r+", encoding="utf-8", newline="") as file:
    rows = list(csv.DictReader(file))
    for row in rows:
        for name in ["time_median", "time_ci_low", "time_ci_high"]:
            if row["bytes"] == "1048576" and row[name]:
                row[name] = repr(float(row[name]) / {factor})
    file.seek(0)
    file.truncate()
    if rows:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\\n")
        writer.writeheader()
        writer.writerows(rows)
sys.exit(code)
"""


@dataclasses.dataclass
class Outcome:
    code: int
    verdicts: dict  # cell -> verdict
    text: str

    def slower(self):
        return [cell for cell, verdict in self.verdicts.items() if verdict == "slower"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--same", type=int, default=40, help="gates on identical builds (40)")
    parser.add_argument("--slowed", type=int, default=20, help="gates on a build that is slowed at 1 MiB (20)")
    parser.add_argument("--by", type=int, default=10, metavar="PERCENT", help="how much it is slowed (10)")
    parser.add_argument("--suite", default=SOURCE / "suites/gate_trials.toml", type=pathlib.Path,
                        help="the cells, some of them of 1 MiB (suites/gate_trials.toml)")
    parser.add_argument("--seed", type=int, default=1, help="of the first gate; the next has the next (1)")
    parser.add_argument("--program", default=SOURCE / "build/bin/tutti", type=pathlib.Path, help="tutti (build/bin/tutti)")
    parser.add_argument("--options", default="", help="further options of `tutti gate`, in one word")
    asked = parser.parse_args()
    for name, path in [("--program", asked.program), ("--suite", asked.suite)]:
        if not path.exists():
            parser.error(f"{name}: there is no '{path}'")
    if asked.same < 0 or asked.slowed < 0 or asked.same + asked.slowed == 0:
        parser.error(f"--same {asked.same} --slowed {asked.slowed}: 0 or more, and not both 0")
    return asked


def gate(asked, other, seed):
    """The Outcome of one gate against the build in `other`."""
    command = [asked.program, "gate", "--against", other, "--suite", asked.suite, "--seed", str(seed),
               *shlex.split(asked.options)]
    try:
        result = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        return Outcome(-1, {}, f"it did not end within {MOST_SECONDS} s")
    rows = re.findall(r"^  (\S+) .*?(too short|\w+)$", result.stdout, re.MULTILINE)
    return Outcome(result.returncode, dict(rows), result.stdout + result.stderr)


def series(asked, other, name, number, is_right):
    """So many gates: (how many were right, what was found of all cells, how many ended as no gate should)."""
    right, odd, verdicts = 0, 0, collections.Counter()
    for i in range(number):
        begin = time.monotonic()
        outcome = gate(asked, other, asked.seed + i)
        verdicts += collections.Counter(outcome.verdicts.values())
        right += is_right(outcome)
        is_odd = outcome.code not in (SAME, SLOWER, INVALID, UNDECIDED) or "missing" in outcome.verdicts.values()
        odd += is_odd
        counts = ", ".join(f"{count} {verdict}" for verdict, count in
                           collections.Counter(outcome.verdicts.values()).most_common())
        print(f"{name} {i + 1:>3} of {number}: seed {asked.seed + i}, exit code {outcome.code}, {counts or 'no cells'}, "
              f"{time.monotonic() - begin:.0f} s", flush=True)
        for cell in outcome.slower():
            print(f"    slower: {cell}", flush=True)
        if is_odd:
            print(re.sub("^", "    ", outcome.text.strip(), flags=re.MULTILINE), flush=True)
    return right, odd, verdicts


def main():
    asked = arguments()
    passed = True
    with tempfile.TemporaryDirectory(prefix="tutti-gate-trials-") as folder:
        shutil.copy2(asked.program, pathlib.Path(folder, "tutti"))
        quiet, odd, verdicts = series(asked, folder, "same", asked.same, lambda one: one.code in (SAME, UNDECIDED))
        alarms = asked.same - quiet
        if asked.same > 0:
            passed &= odd == 0 and alarms <= max(1, asked.same // 40)
            print(f"identical builds: {alarms} false alarms in {asked.same} gates ({odd} failed); cells: {dict(verdicts)}")

        def is_caught(one):
            return one.code == SLOWER and all(BYTES_OF_SLOW_DOWN in cell for cell in one.slower())
        program = pathlib.Path(folder, "faster", "tutti")
        program.parent.mkdir()
        program.write_text(FASTER.format(python=sys.executable, program=str(pathlib.Path(folder, "tutti")),
                                         factor=1 + asked.by / 100))
        program.chmod(0o755)
        caught, odd, verdicts = series(asked, program.parent, "slowed", asked.slowed, is_caught)
        if asked.slowed > 0:
            passed &= odd == 0 and caught * 20 >= asked.slowed * 18
            print(f"slowed by {asked.by} % at 1 MiB: {caught} of {asked.slowed} gates caught it and nothing else ({odd} failed); "
                  f"cells: {dict(verdicts)}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
