#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: accept_kills.py --program TUTTI [--trials N] [--seed N] [--hosts N] [--kinds LIST]

`tutti accept` on hosts that an agent pretends on this machine. One process is killed (SIGKILL) at a drawn moment: the launcher, or
an agent, a host process or a rank of a drawn host. The acceptance must end in time, blame that host alone, keep what was measured
and leave nothing. --resume must then go on to a verdict; where the acceptance had ended by itself, to the same one.

  --trials N     (default: 100)
  --seed N       of the first trial; the next ones count on (default: 1)
  --hosts N      from 3 to 26 (default: 3)
  --kinds LIST   of launcher, agent, host, rank (default: all)

Exit code: 0 if all trials held, else 1; 2 usage. A failed trial is printed with the seed that repeats it.
"""
import argparse
import json
import os
import pathlib
import random
import re
import string
import sys
import tempfile
import time

KINDS = ["launcher", "agent", "host", "rank"]
CRASH, SLOW, UNTESTED, UNDECIDED, OK = 5, 4, 3, 6, 0
KILLED = -9
# A process of its own beside the host process, as ssh is. The last one that is started says in its environment where it is.
AGENT = """#!/bin/sh
NODE=$1
export NODE
shift
"$@"
exit $?
"""
LATEST = 12  # s after the start at which a kill comes: some two thirds of an acceptance of three hosts
ENDS = 500   # s: eight visits of repeats, where hosts share cores
CLEARS = 20  # s after the launcher's death, in which hosts notice it


def options(agent, hosts):
    return ["accept", "--hosts", ",".join(hosts), "--agent", agent, "--interface", "127.0.0.1", "--stages", "pairs", "--margin", "50%",
            "--message-size", "64K"]


def victim_of(support, run, kind, host):
    """Its pid, if it is there now."""
    if kind == "launcher":
        return run.process.pid
    for pid in run.living():
        command = support.command_of(pid)
        if support.environment_of(pid).get("NODE") == host and (
                command[1:] == [kind] if kind in ("host", "rank") else "host" in command[2:] and command[1:2] == [str(run.agent)]):
            return pid
        if kind == "agent" and command[1:3] == [str(run.agent), host]:
            return pid
    return None


def blamed(document):
    return {name for finding in document["findings"] if finding["verdict"] == "FAIL" for name in finding["nodes"]}


def tests_of(path):
    """What is whole of the journal: its lines of tests."""
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return [line for line in lines[1:] if "group" in json.loads(line)]


def sentence(out):
    """The verdict's, without how long the result is valid."""
    return next((line for line in out.splitlines() if line.startswith("# tutti accept:")), out)


class Trial:
    def __init__(self, support, agent, seed, kinds, hosts):
        draw = random.Random(seed)
        self.support, self.agent, self.seed = support, agent, seed
        self.hosts = list(string.ascii_lowercase[:hosts])
        self.kind, self.host, self.moment = draw.choice(kinds), draw.choice(self.hosts), draw.uniform(0.05, LATEST)
        self.problems, self.note = [], ""

    def expect(self, holds, what):
        if not holds:
            self.problems.append(what)

    def hit(self, run):
        """Whether it was hit: an acceptance that is over cannot be."""
        end = time.monotonic() + self.moment
        while time.monotonic() < end:
            if run.process.poll() is not None:
                return False
            time.sleep(0.01)
        end = time.monotonic() + ENDS
        while run.process.poll() is None and time.monotonic() < end:
            if pid := victim_of(self.support, run, self.kind, self.host):
                try:
                    os.kill(pid, 9)
                    return True
                except ProcessLookupError:
                    pass
            time.sleep(0.002)
        return False

    def perform(self):
        with tempfile.TemporaryDirectory(prefix="tutti-kills-") as folder:
            lines = pathlib.Path(folder) / "lines"
            first = pathlib.Path(folder) / "first.json"
            with self.support.Run(*options(self.agent, self.hosts), "--lines", lines, "--json", first) as run:
                run.agent = self.agent
                was_hit = self.hit(run)
                result = run.wait(ENDS)
                ended = self.kind != "launcher" or not was_hit
                left, end = run.left_behind(), time.monotonic() + self.support.patience(CLEARS)
                while left and not ended and time.monotonic() < end:
                    left = run.left_behind()
                self.expect(not left, f"left behind: {left}")
            self.expect(result.code in ([OK, UNTESTED, SLOW, CRASH, UNDECIDED] if ended else [KILLED]), f"exit code {result.code}: {result.err}")
            if ended:
                self.judge_blame(json.loads(first.read_text()), was_hit)
            kept = tests_of(lines)
            self.judge_resumed(pathlib.Path(folder), lines, kept, result if ended else None)
            self.note = f"{'hit' if was_hit else 'not hit'}, exit code {result.code}, {len(kept)} tests kept; {sentence(result.out)}"

    def judge_blame(self, document, was_hit):
        # Hosts that share a machine may be slow by turns: only what ended tests is judged.
        ends = {name for finding in document["findings"] if finding["verdict"] == "FAIL" and finding["class"] in ("dead", "hung", "failed")
                for name in finding["nodes"]}
        self.expect(was_hit or not ends, f"{sorted(ends)} are blamed, and no process was killed")
        # A rank that is killed ends one test of its pair; tests after it end well.
        self.expect(not ends or self.host in ends, f"{sorted(ends)} are blamed, and {self.host} was hit")
        self.expect(self.kind == "rank" or ends <= {self.host}, f"{sorted(ends)} are blamed, and only {self.host} was hit")

    def judge_resumed(self, folder, lines, kept, ended):
        if not lines.exists() or not lines.read_text().endswith("\n") and lines.read_text().count("\n") == 0:
            return  # it was killed before it had written the plan
        path = folder / "resumed.json"
        with self.support.Run(*options(self.agent, self.hosts), "--resume", lines, "--json", path) as run:
            result = run.wait(ENDS)
            self.expect(not run.left_behind(), f"left behind by --resume: {run.left_now()}")
        self.expect(result.code in [OK, UNTESTED, SLOW, CRASH, UNDECIDED], f"--resume: exit code {result.code}: {result.err}")
        self.expect(tests_of(lines)[:len(kept)] == kept, "--resume has changed what was measured")
        self.expect(not kept or re.search(r"# [\d,]+ tests are taken from ", result.out), f"--resume: {result.out[:300]}")
        if ended is not None:
            self.expect((result.code, sentence(result.out)) == (ended.code, sentence(ended.out)),
                        f"--resume: exit code {result.code}, {sentence(result.out)}")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[0].removeprefix("usage: "), add_help=False)
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hosts", type=int, default=3)
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=KINDS)
    asked = parser.parse_args()
    for kind in asked.kinds:
        if kind not in KINDS:
            parser.error(f"--kinds: no kind '{kind}' (one of: {' '.join(KINDS)})")
    if not 3 <= asked.hosts <= 26:
        parser.error(f"--hosts {asked.hosts}: from 3 to 26")
    os.environ["TUTTI_PROGRAM"] = str(asked.program.resolve())
    import support  # it looks for the program

    held = 0
    with tempfile.TemporaryDirectory(prefix="tutti-agents-") as folder:
        agent = pathlib.Path(folder) / "agent"
        agent.write_text(AGENT)
        agent.chmod(0o755)
        for seed in range(asked.seed, asked.seed + asked.trials):
            trial = Trial(support, agent, seed, asked.kinds, asked.hosts)
            trial.perform()
            held += not trial.problems
            print(f"{'FAILED' if trial.problems else 'held'}: seed {seed}: {trial.kind} of {trial.host} after {trial.moment:.2f} s: {trial.note}",
                  *trial.problems, sep="\n  ", flush=True)
    print(f"# {asked.trials} trials: {held} held, {asked.trials - held} failed")
    return 0 if held == asked.trials else 1


if __name__ == "__main__":
    sys.exit(main())
