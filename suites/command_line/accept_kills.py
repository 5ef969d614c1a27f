#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: accept_kills.py --program TUTTI [--trials N] [--seed N] [--hosts N] [--kinds LIST]

`tutti accept` on hosts that an agent pretends on this machine. One process is killed (SIGKILL) at a drawn moment: the launcher, or
an agent, a host process or a rank of a drawn host. The acceptance must end in time, blame that host alone, keep what was measured
and leave nothing. --resume must then go on to a verdict; where the acceptance had ended by itself, to the same one. Of a launcher
that was killed, to that of a whole run of the same cluster, which is played once: exit code, first word, exclusion files. In half
of the clusters whose launcher is killed, one more host does not come.

No fault here is of speed, but hosts that share cores may be slow by turns. A whole run that finds a slow part is played again. A
trial is undecided if --resume leaves it open whether a part is slow, or finds one that it does not find again from the same lines.

  --trials N     (default: 100)
  --seed N       of the first trial; the next ones count on (default: 1)
  --hosts N      from 3 to 26 (default: 3)
  --kinds LIST   of launcher, agent, host, rank (default: all)

Exit code: 1 if a trial failed; 6 if more than a fifth are undecided; else 0; 2 usage. A trial that failed is printed with the seed
that repeats it.
"""
import argparse
import dataclasses
import json
import os
import pathlib
import random
import re
import shutil
import string
import sys
import tempfile
import time

KINDS = ["launcher", "agent", "host", "rank"]
CRASH, SLOW, UNTESTED, UNDECIDED, OK = 5, 4, 3, 6, 0
KILLED = -9
ABSENT = "absent"  # the host that does not come
OF_ENDS = ["wrong", "dead", "hung", "either", "job"]  # classes of tests that did not end well; the others are of speed
WHOLE_RUNS = 3       # of a cluster, at most, until one finds no slow part
MOST_UNDECIDED = 20  # % of the trials
# A process of its own beside the host process, as ssh is. The last one that is started says in its environment where it is.
AGENT = f"""#!/bin/sh
NODE=$1
export NODE
shift
if [ "$NODE" = {ABSENT} ]; then echo "no route to $NODE"; exit 255; fi
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


def word(out):
    """The one that the sentence begins with; one without a word is of nodes that passed."""
    found = re.match(r"# tutti accept: (?:([A-Z]+)|\d+ nodes passed)", sentence(out))
    return (found[1] or "passed") if found else "no verdict"


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What an acceptance says, without what differs from run to run."""

    code: int
    word: str
    hosts: frozenset     # of the hostfile
    excluded: frozenset  # of the option for Slurm
    slow: frozenset      # those that are slow, or may be

    @classmethod
    def of(cls, result, document, prefix):
        """`document` is the JSON, `prefix` that of the exclusion files. A file that is not there has no nodes."""
        def lines(suffix):
            path = pathlib.Path(f"{prefix}.exclude.{suffix}")
            return path.read_text().splitlines() if path.exists() else []

        hosts = frozenset(line for line in lines("hosts") if not line.startswith("#"))
        option = "".join(lines("slurm")[:1]).removeprefix("--exclude=")
        of_speed = [finding for finding in document.get("findings", [])
                    if finding["verdict"] != "ERROR" and finding["class"] not in OF_ENDS]
        slow = frozenset(name for finding in of_speed for name in finding["nodes"])
        return cls(result.code, word(result.out), hosts, frozenset(filter(None, option.split(","))), slow)

    def __str__(self):
        return (f"exit code {self.code}, {self.word}, hostfile: {','.join(sorted(self.hosts)) or 'none'}, "
                f"excluded: {','.join(sorted(self.excluded)) or 'none'}")

    def is_same(self, other):
        return (self.code, self.word, self.hosts, self.excluded) == (other.code, other.word, other.hosts, other.excluded)

    def differs_by_speed(self, whole):
        """Whether slow parts alone make it another verdict than `whole`, which has none."""
        codes = [whole.code, SLOW] + ([UNDECIDED] if whole.code == OK else [])  # a host that is not there is graver
        return (bool(self.slow) and self.code in codes and whole.hosts - self.slow <= self.hosts <= whole.hosts and
                whole.excluded <= self.excluded <= whole.excluded | self.slow)


class WholeRuns:
    """Verdicts of runs that nothing interrupts, one of each cluster."""

    def __init__(self, support, agent):
        self.support, self.agent, self.verdicts = support, agent, {}

    def verdict(self, hosts):
        """None if each run of this cluster found a slow part."""
        key = tuple(hosts)
        if key not in self.verdicts:
            verdicts = []
            while len(verdicts) < WHOLE_RUNS and (not verdicts or verdicts[-1].slow):
                verdicts.append(accepted(self.support, self.agent, hosts)[1])
                print(f"# whole run of {','.join(hosts)}: {verdicts[-1]}", flush=True)
            self.verdicts[key] = None if verdicts[-1].slow else verdicts[-1]
        return self.verdicts[key]


def accepted(support, agent, hosts, *words):
    """(Result, Verdict, what it left) of an acceptance that nothing interrupts."""
    with tempfile.TemporaryDirectory(prefix="tutti-kills-") as folder:
        path, prefix = pathlib.Path(folder) / "json", pathlib.Path(folder) / "x"
        with support.Run(*options(agent, hosts), "--json", path, "--exclude", prefix, *words) as run:
            result = run.wait(ENDS)
            left = run.left_behind()
        document = json.loads(path.read_text()) if path.exists() else {}
        return result, Verdict.of(result, document, prefix), left


class Trial:
    def __init__(self, support, agent, seed, kinds, hosts, whole_runs):
        draw = random.Random(seed)
        self.support, self.agent, self.seed, self.whole_runs = support, agent, seed, whole_runs
        self.hosts = list(string.ascii_lowercase[:hosts])
        self.kind, self.host, self.moment = draw.choice(kinds), draw.choice(self.hosts), draw.uniform(0.05, LATEST)
        if self.kind == "launcher" and draw.random() < 0.5:
            self.hosts.append(ABSENT)
        self.problems, self.doubt, self.note = [], "", ""

    def status(self):
        return "FAILED" if self.problems else "undecided" if self.doubt else "held"

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
        again = folder / "again"
        shutil.copyfile(lines, again)
        result, verdict = self.resume(lines)
        self.expect(tests_of(lines)[:len(kept)] == kept, "--resume has changed what was measured")
        self.expect(not kept or re.search(r"# [\d,]+ tests are taken from ", result.out), f"--resume: {result.out[:300]}")
        if ended is not None:
            self.expect((result.code, sentence(result.out)) == (ended.code, sentence(ended.out)),
                        f"--resume: exit code {result.code}, {sentence(result.out)}")
        else:
            self.judge_verdict(verdict, again)

    def resume(self, lines):
        result, verdict, left = accepted(self.support, self.agent, self.hosts, "--resume", lines)
        self.expect(not left, f"left behind by --resume: {left}")
        self.expect(result.code in [OK, UNTESTED, SLOW, CRASH, UNDECIDED], f"--resume: exit code {result.code}: {result.err}")
        return result, verdict

    def judge_verdict(self, verdict, lines):
        """By that of a whole run. `lines` are as the killed launcher left them."""
        whole = self.whole_runs.verdict(self.hosts)
        if whole is None:
            self.doubt = f"each of {WHOLE_RUNS} whole runs found a slow part"
            return
        both = f"--resume: {verdict}; a whole run: {whole}"
        if verdict.is_same(whole):
            return
        if not verdict.differs_by_speed(whole):
            self.problems.append(both)
        elif verdict.code == SLOW and (once_more := self.resume(lines)[1]).code == SLOW:
            self.problems.append(f"{both}; --resume once more: {once_more}")
        else:
            self.doubt = both


def exit_code(statuses):
    if "FAILED" in statuses:
        return 1
    return UNDECIDED if 100 * statuses.count("undecided") > MOST_UNDECIDED * len(statuses) else 0


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

    statuses = []
    with tempfile.TemporaryDirectory(prefix="tutti-agents-") as folder:
        agent = pathlib.Path(folder) / "agent"
        agent.write_text(AGENT)
        agent.chmod(0o755)
        whole_runs = WholeRuns(support, agent)
        for seed in range(asked.seed, asked.seed + asked.trials):
            trial = Trial(support, agent, seed, asked.kinds, asked.hosts, whole_runs)
            trial.perform()
            statuses.append(trial.status())
            print(f"{trial.status()}: seed {seed}: {trial.kind} of {trial.host} after {trial.moment:.2f} s: {trial.note}",
                  *trial.problems, *filter(None, [trial.doubt]), sep="\n  ", flush=True)
    counts = ", ".join(f"{statuses.count(name)} {name}" for name in ["held", "undecided"])
    print(f"# {asked.trials} trials: {counts}, {statuses.count('FAILED')} failed")
    return exit_code(statuses)


if __name__ == "__main__":
    sys.exit(main())
