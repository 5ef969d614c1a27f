#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: accept_trials.py --program TUTTI [--trials N] [--seed N] [--machines LIST] [--kinds LIST] [--budget SECONDS] [--minutes N] [--keep FOLDER]

`tutti accept` on machines made of network namespaces, each behind a cable of 100 Mbit/s, with a fault that a seed draws: which node
or pair it names, its class, exit code and exclusion file, that the pairs of the others are measured, and that nothing stays. Also
how often it ended within the range that --list printed: a healthy run within it, one with a fault within twice its upper end.
A run that its budget ended before it was late says nothing of its forecast.

  --trials N       (default: 10)
  --seed N         of the first trial; the next ones count on (default: 1)
  --machines LIST  numbers of machines, of which each trial draws one (default: 4,6)
  --kinds LIST     the kinds of faults to draw from, see below (default: all; a quarter of the trials has none)
  --budget N       seconds of one acceptance, and twice as many if there are two cables (default: 600)
  --minutes N      no trial begins later than that (default: no limit)
  --keep FOLDER    what each acceptance wrote: text, JSON and lines

A kind: none; nic, nic-out, nic-in: a cable that is slow both ways or one way; link: one that is slow to one machine only; hung: two
machines that do not reach each other; dead: a cable that is cut while pairs play; busy: a machine with a part of a core; build:
another build; mtu: another MTU; agent: one that fails. rail-nic, rail-hung, rail-absent: each machine has two cables, and the fault
is on the second.

A trial is wrong if a part that is well was blamed, or a fault that is not of speed was not named in its time. A fault of speed that
was not found, and a run that its budget ended, are not decided: on a busy machine they may be.

The end is a table by kind. The share of the right trials is judged from twenty on, and that of the forecasts of either sort, which are
of healthy runs and of those with a fault, from ten on.

Exit code:
  1    a trial is wrong; or fewer than 80 % are right; or fewer than 90 % of the forecasts of a sort held. A line says which
  6    fewer than 80 % of fewer than twenty trials are right, and none is wrong
  0    else
  130  it was interrupted: the table is of the trials so far
  3    no namespace can be made, and nothing has failed before
  2    usage
"""
import argparse
import collections
import dataclasses
import itertools
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import namespaces

RATE = 100        # Mbit/s of a cable
SECOND = "cable2"  # the interface of each machine that has two
RAILS = ["10.77.0.0/24", "10.78.0.0/24"]
NOBODY = "02:00:00:00:00:01"  # a hardware address that no interface has
OTHER_MTU = 1400
QUOTA, PERIOD = 2, 10         # ms of a core: what a busy machine has, of each period; others share half a core or less
HEALTHY = 0.25                # of the trials
CLEARS = 30                   # s after the end, in which all processes are gone
TIMEOUT = 20                  # s, of a test
LATE = 120                    # s beyond the budget, after which a run hangs
UNTIL_CUT = 8                 # s from the first rank on a machine until its cable is cut
RIGHT, NOT_DECIDED = "right", "not decided"  # verdicts of a trial; every other one says what is wrong
LEAST_RIGHT, JUDGED_TRIALS = 80, 20          # % of the trials, and how many there are at least if that is judged
LEAST_ON_TIME, JUDGED_FORECASTS = 90, 10     # % of the forecasts, likewise
FAILED, SKIPPED, UNDECIDED = 1, 3, 6         # exit codes of this script


class Kind:
    """What is to be found: the class, the exit code, and who is to blame."""

    def __init__(self, what, code, nodes=1, of_speed=False, rail=False, excludes=True):
        self.what, self.code, self.nodes, self.of_speed, self.rail, self.excludes = what, code, nodes, of_speed, rail, excludes


KINDS = {
    "none": Kind(None, 0, nodes=0),
    "nic": Kind(["nic"], 4, of_speed=True),
    "nic-out": Kind(["nic-out"], 4, of_speed=True),
    "nic-in": Kind(["nic-in"], 4, of_speed=True),
    "link": Kind(["link"], 4, nodes=2, of_speed=True, excludes=False),
    "busy": Kind(["node", "nic"], 4, of_speed=True),
    "hung": Kind(["hung"], 5, nodes=2, excludes=False),  # both work with others
    "dead": Kind(["dead"], 5),
    "build": Kind(None, 3),
    "agent": Kind(None, 3),
    "mtu": Kind(None, 0, excludes=False),
    "rail-nic": Kind(["nic"], 4, of_speed=True, rail=True),
    "rail-hung": Kind(["hung"], 5, nodes=2, rail=True, excludes=False),
    "rail-absent": Kind(["dead"], 3, rail=True),
}
OPEN_CODES = [0, 3, 6]  # exit codes of a fault of speed, or if the budget was over: not seen, out of time, undecided
HEALTHY_KINDS = ["none", "mtu"]  # by their forecasts


def traffic(where, words):
    subprocess.run(where.enter("tc", *words.split()), check=True, capture_output=True)


def can_shape():
    """Whether this kernel limits what a cable carries."""
    made = subprocess.run(["unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "root", "handle", "1:", "htb"], capture_output=True)
    return made.returncode == 0


def shape(share):
    """A bucket of few packets: what it lets through at once is little of a message."""
    return f"rate {RATE * (1 - share):.2f}mbit burst 6k cburst 6k quantum 1514"


class Quota:
    """A control group whose processes have a part of a core. Raises OSError if none can be made."""

    def __init__(self):
        is_old = pathlib.Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us").exists()
        self.folder = pathlib.Path("/sys/fs/cgroup/cpu" if is_old else "/sys/fs/cgroup") / f"tutti-trial-{os.getpid()}"
        self.folder.mkdir()
        try:
            if is_old:
                (self.folder / "cpu.cfs_period_us").write_text(str(1000 * PERIOD))
                (self.folder / "cpu.cfs_quota_us").write_text(str(1000 * QUOTA))
            else:
                (self.folder / "cpu.max").write_text(f"{1000 * QUOTA} {1000 * PERIOD}")
        except OSError:
            self.folder.rmdir()
            raise

    def remove(self):
        for _ in range(100):
            try:
                self.folder.rmdir()
                return
            except OSError:
                time.sleep(0.05)  # its last process is about to be gone


def can_limit_cores():
    try:
        Quota().remove()
        return True
    except OSError:
        return False


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What is judged of a trial."""

    kind: str
    verdict: str
    seconds: float
    forecast: tuple  # s: the least and the most that --list printed
    is_cut_off: bool = False  # its budget ended it

    def is_healthy(self):
        return self.kind in HEALTHY_KINDS

    def is_on_time(self):
        """None if nobody knows: it was cut off before it was late."""
        least, most = self.forecast if self.is_healthy() else (0, 2 * self.forecast[1])
        if self.is_cut_off and self.seconds <= most:
            return None
        return least <= self.seconds <= most


class Trial:
    """One acceptance. `verdict` is RIGHT, NOT_DECIDED or what is wrong."""

    def __init__(self, asked, seed):
        draw = random.Random(seed)
        self.asked, self.seed = asked, seed
        self.number = draw.choice(asked.machines)
        faults = [kind for kind in asked.kinds if kind != "none"]
        is_healthy = not faults or "none" in asked.kinds and draw.random() < HEALTHY
        self.name = "none" if is_healthy else draw.choice(faults)
        self.kind = KINDS[self.name]
        # The launcher is on the first machine: a fault that ends it would be another test.
        self.first, self.second = draw.sample(range(1, self.number), 2)
        self.share = draw.choice([0.3, 0.4, 0.5])
        self.budget = asked.budget * (2 if self.kind.rail else 1)  # each pair plays on both cables
        self.quota = None
        self.verdict, self.sentence, self.seconds, self.forecast, self.is_cut_off = "", "", 0.0, (0.0, 0.0), False

    def title(self):
        who = {0: "", 1: f" at machine {self.first}", 2: f" between machines {self.first} and {self.second}"}[self.kind.nodes]
        slower = f" by {100 * self.share:.0f} %" if self.kind.of_speed and self.name != "busy" else ""
        return f"{self.name}{who} of {self.number}{slower}"

    def outcome(self):
        return Outcome(self.name, self.verdict, self.seconds, self.forecast, self.is_cut_off)

    def perform(self):
        try:
            with namespaces.Machines(self.number) as machines, tempfile.TemporaryDirectory(prefix="tutti-trials-") as folder:
                self.machines, self.folder = machines, pathlib.Path(folder)
                self.lay_cables()
                self.put_in()
                self.run()
        finally:
            if self.quota:
                self.quota.remove()

    # ---- the machines and their fault

    def lay_cables(self):
        """A second cable, if the kind is of rails. What a machine sends is limited at its own end, what it receives at the switch."""
        if self.kind.rail:
            self.lay_second_cables()
        for i, machine in enumerate(self.machines.all):
            cables = [(machine, self.machines.CABLE), (self.machines.switch, f"port{i}")]
            if self.kind.rail:
                cables += [(machine, SECOND), (self.machines.switch, f"second{i}")]
            for where, device in cables:
                where.run("ip", "link", "set", device, "gso_max_segs", "1")  # a packet at a time, as a wire has it
                traffic(where, f"qdisc add dev {device} root handle 1: htb default 10")
                traffic(where, f"class add dev {device} parent 1: classid 1:10 htb {shape(0)}")

    def lay_second_cables(self):
        switch = self.machines.switch
        switch.run("ip", "link", "add", "switch2", "type", "bridge")
        switch.run("ip", "link", "set", "switch2", "up")
        for i, machine in enumerate(self.machines.all):
            machine.run("ip", "link", "add", SECOND, "type", "veth", "peer", "name", f"second{i}", "netns", str(switch.holder.pid))
            switch.run("ip", "link", "set", f"second{i}", "master", "switch2", "up")
            if self.name != "rail-absent" or i != self.first:
                machine.run("ip", "address", "add", self.on_rail(machine) + "/24", "dev", SECOND)
            machine.run("ip", "link", "set", SECOND, "up")

    def on_rail(self, machine):
        return machine.address.replace("10.77.", "10.78.") if self.kind.rail else machine.address

    def put_in(self):
        first, second = self.machines.all[self.first], self.machines.all[self.second]
        cable, port = (SECOND, "second") if self.kind.rail else (self.machines.CABLE, "port")
        if self.name in ("nic", "nic-out", "rail-nic"):
            traffic(first, f"class change dev {cable} parent 1: classid 1:10 htb {shape(self.share)}")
        if self.name in ("nic", "nic-in", "rail-nic"):
            traffic(self.machines.switch, f"class change dev {port}{self.first} parent 1: classid 1:10 htb {shape(self.share)}")
        for one, other in ((first, second), (second, first)):
            if self.name == "link":
                traffic(one, f"class add dev {cable} parent 1: classid 1:20 htb {shape(self.share)}")
                traffic(one, f"filter add dev {cable} protocol ip parent 1: prio 1 u32 match ip dst {other.address}/32 flowid 1:20")
            if self.name in ("hung", "rail-hung"):
                one.run("ip", "neighbour", "replace", self.on_rail(other), "lladdr", NOBODY, "dev", cable, "nud", "permanent")
        if self.name == "mtu":
            first.run("ip", "link", "set", cable, "mtu", OTHER_MTU)
        if self.name == "busy":
            self.quota = Quota()
            self.change_agent(first, f"holder={first.holder.pid}; echo $$ >{self.quota.folder}/cgroup.procs")
        if self.name == "agent":
            self.change_agent(first, f"echo 'no route to {first.name}' >&2; exit 255")
        if self.name == "build":
            self.change_agent(first, f"holder={first.holder.pid}; shift 2; set -- host {self.other_build()} \"$@\"")

    def change_agent(self, machine, commands):
        text = self.machines.agent.read_text()
        changed = text.replace(f"holder={machine.holder.pid} ;;", f"{commands} ;;")
        assert changed != text, "the agent has another text"
        self.machines.agent.write_text(changed)

    def other_build(self):
        program = self.asked.program.read_bytes()
        text = subprocess.run([self.asked.program, "--version"], capture_output=True, check=True).stdout
        commit = re.search(rb"commit (\S+?)\)", text)[1]
        other = self.folder / "tutti"
        other.write_bytes(program.replace(commit, commit[::-1]))
        other.chmod(0o755)
        return other

    # ---- the acceptance

    def command(self, *words):
        stages = "inventory,alone,pairs" if self.name == "busy" else "inventory,pairs"  # alone: a slow node is told from a slow NIC
        rails = ["--rails", ",".join(RAILS)] if self.kind.rail else []
        return self.machines.all[0].enter(self.asked.program, "accept", *self.machines.options(1), "--message-size", "32K", "--stages",
                                          stages, "--margin", "15%", "--timeout", f"{TIMEOUT}s", *rails, *words)

    def run(self):
        listed = subprocess.run(self.command("--list"), capture_output=True, text=True, timeout=LATE, check=True).stdout
        least, least_unit, most, most_unit = re.search(r"([\d.]+) (s|min) to ([\d.]+) (s|min)\. \^C", listed).groups()
        in_seconds = {"s": 1, "min": 60}
        self.forecast = float(least) * in_seconds[least_unit], float(most) * in_seconds[most_unit]
        files = {name: self.folder / name for name in ("json", "lines", "x")}
        begin = time.monotonic()
        process = subprocess.Popen(self.command("--budget", f"{self.budget}s", "--json", files["json"], "--lines", files["lines"],
                                                "--exclude", files["x"]), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self.name == "dead":
            self.cut_cable(process)
        try:
            out, err = process.communicate(timeout=self.budget + LATE)
        finally:
            process.kill()
        self.seconds = time.monotonic() - begin
        if self.asked.keep:
            self.keep(out, err)
        self.sentence = out.splitlines()[1] if len(out.splitlines()) > 1 else err.strip()
        document = json.loads(files["json"].read_text())
        self.is_cut_off = document["is_interrupted"]
        self.verdict = self.judged(process.returncode, document)
        if self.verdict == RIGHT:
            self.verdict = self.judged_files(files, document) or RIGHT
        if self.name == "dead":
            self.machines.all[self.first].run("ip", "link", "set", self.machines.CABLE, "up")
        if left := self.machines.left(CLEARS):
            self.verdict = f"it left {left}"

    def keep(self, out, err):
        folder = self.asked.keep / f"seed{self.seed}"
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("json", "lines"):
            (folder / name).write_text((self.folder / name).read_text())
        (folder / "out").write_text(out + err)

    def cut_cable(self, process):
        machine = self.machines.all[self.first]
        while process.poll() is None and not machine.processes():
            time.sleep(0.05)
        try:
            process.wait(UNTIL_CUT)
        except subprocess.TimeoutExpired:
            machine.run("ip", "link", "set", self.machines.CABLE, "down")

    # ---- what it found

    def guilty(self):
        return {self.machines.all[node].name for node in (self.first, self.second)[:self.kind.nodes]}

    def judged(self, code, document):
        names = self.guilty()
        failed = [finding for finding in document["findings"] if finding["verdict"] == "FAIL"]
        blamed = {name for finding in failed for name in finding["nodes"]}
        sentences = "; ".join(finding["sentence"] for finding in failed)
        if not blamed <= names:
            return f"it blames {sorted(blamed - names)}: {sentences}"
        if self.kind.rail and any(finding["rail"] != RAILS[1] for finding in failed):
            return f"it does not blame the second rail: {sentences}"
        if code != self.kind.code:
            is_open = code in OPEN_CODES and (self.kind.of_speed or document["is_interrupted"])
            return NOT_DECIDED if is_open else f"exit code {code}"
        if self.kind.what is None:
            return self.judged_note(document)
        named = {(finding["class"], *sorted(finding["nodes"])) for finding in document["findings"] if finding["verdict"] in ("FAIL", "ERROR")}
        return RIGHT if named in [{(what, *sorted(names))} for what in self.kind.what] else f"it names {sorted(named)}"

    def judged_note(self, document):
        """Of a fault that no test of a pair shows."""
        verdicts = {node["node"]: node["verdict"] for node in document["nodes"]}
        errors = {name for name, verdict in verdicts.items() if verdict == "ERROR"}
        wanted = self.guilty() if self.name in ("build", "agent") else set()
        if errors != wanted:
            return f"ERROR of {sorted(errors)}"
        noted = [note["what"] for note in document["inventory"] if note["what"].startswith(f"MTU differs: ")]
        is_named = any(f"{OTHER_MTU} on {self.machines.all[self.first].name}" in note for note in noted)
        return RIGHT if is_named == (self.name == "mtu") else f"its inventory says of the MTU: {noted}"

    def judged_files(self, files, document):
        """What is wrong with them, if anything is."""
        names = [machine.name for machine in self.machines.all]
        hosts = {line for line in files["x"].with_name("x.exclude.hosts").read_text().splitlines() if not line.startswith("#")}
        wanted = set(names) - (self.guilty() if self.kind.excludes else set())
        if hosts != wanted and not (document["is_interrupted"] and hosts <= wanted):
            return f"its hostfile has {sorted(hosts)}"
        tests = [json.loads(line) for line in files["lines"].read_text().splitlines()]
        measured = {frozenset(test["group"]) for test in tests if test.get("ending") == "measured" and test["cell"].startswith("bandwidth/")}
        well = [name for name in names if name not in self.guilty()]
        missing = [pair for pair in itertools.combinations(well, 2) if frozenset(pair) not in measured]
        return f"no test of {missing}" if missing and not document["is_interrupted"] else ""


# ---- what all of them say


def counts(outcomes):
    """How many were right, not decided and wrong."""
    verdicts = collections.Counter(outcome.verdict for outcome in outcomes)
    return verdicts[RIGHT], verdicts[NOT_DECIDED], len(outcomes) - verdicts[RIGHT] - verdicts[NOT_DECIDED]


def on_time(outcomes):
    """How many were on time, and of how many that is known."""
    known = [outcome.is_on_time() for outcome in outcomes if outcome.is_on_time() is not None]
    return sum(known), len(known)


def forecasts(outcomes):
    """How many were on time, of how many, and in words of which, with and without a fault."""
    healthy = [outcome for outcome in outcomes if outcome.is_healthy()]
    faulty = [outcome for outcome in outcomes if not outcome.is_healthy()]
    return [(*on_time(healthy), "healthy runs ended within the range"),
            (*on_time(faulty), "with a fault within twice its upper end")]


def table(outcomes):
    """By kind, and of all."""
    lines = [f"# {'kind':<12} {'trials':>6} {'right':>6} {'not decided':>12} {'wrong':>6} {'on time':>10}"]
    rows = collections.defaultdict(list)
    for outcome in outcomes:
        rows[outcome.kind].append(outcome)
    for kind in (kind for kind in KINDS if kind in rows):
        right, still_open, wrong = counts(rows[kind])
        within, known = on_time(rows[kind])
        lines.append(f"# {kind:<12} {len(rows[kind]):>6} {right:>6} {still_open:>12} {wrong:>6} {f'{within} of {known}':>10}")
    lines.append("# forecasts: " + ", ".join(f"{within} of {known} {which}" for within, known, which in forecasts(outcomes)))
    right, still_open, wrong = counts(outcomes)
    lines.append(f"# {len(outcomes)} trials: {right} right, {still_open} not decided, {wrong} wrong")
    return "\n".join(lines)


def judge(outcomes):
    """The exit code, and a line for each reason why it is not 0."""
    number = len(outcomes)
    right, _, wrong = counts(outcomes)
    failures, doubts = [], []
    if wrong > 0:
        failures.append(f"{wrong} of {number} trials are wrong")
    if number == 0 or 100 * right < LEAST_RIGHT * number:
        text = f"{right} of {number} trials are decided and right, fewer than {LEAST_RIGHT} %"
        (doubts if number < JUDGED_TRIALS else failures).append(text)
    for within, known, which in forecasts(outcomes):
        if known >= JUDGED_FORECASTS and 100 * within < LEAST_ON_TIME * known:
            failures.append(f"{within} of {known} {which}, fewer than {LEAST_ON_TIME} %")
    if failures:
        return FAILED, [f"# failed: {text}" for text in failures]
    return UNDECIDED if doubts else 0, [f"# undecided: {text}" for text in doubts]


def arguments():
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[0].removeprefix("usage: "), add_help=False)
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--machines", type=lambda text: [int(number) for number in text.split(",")], default=[4, 6])
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=list(KINDS))
    parser.add_argument("--budget", type=int, default=600)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    asked = parser.parse_args()
    for kind in asked.kinds:
        if kind not in KINDS:
            parser.error(f"--kinds: no kind '{kind}' (one of: {' '.join(KINDS)})")
    for number in asked.machines:
        if not 3 <= number <= 32:
            parser.error(f"--machines: {number} is not from 3 to 32")
    asked.program = asked.program.resolve()
    return asked


def main():
    asked = arguments()
    if "busy" in asked.kinds and not can_limit_cores():
        asked.kinds.remove("busy")
        print("# kind busy is left out: no control group can be made that limits cores", flush=True)
    # A shell lets what it starts behind the scenes ignore SIGINT.
    for number in [signal.SIGINT, signal.SIGTERM]:
        signal.signal(number, signal.default_int_handler)
    outcomes, end, is_skipped = [], time.monotonic() + 60 * asked.minutes, False
    try:
        for seed in range(asked.seed, asked.seed + asked.trials):
            if time.monotonic() > end:
                break
            trial = Trial(asked, seed)
            trial.perform()
            outcomes.append(trial.outcome())
            least, most = trial.forecast
            print(f"seed {seed}: {trial.title()}: {trial.verdict}, {trial.seconds:.0f} s (forecast {least:.0f} to {most:.0f}). "
                  f"{trial.sentence}", flush=True)
    except unittest.SkipTest as why:
        print(why, file=sys.stderr)
        is_skipped = True
    except KeyboardInterrupt:
        print(table(outcomes))
        return 130
    code, reasons = judge(outcomes)
    print(table(outcomes), *reasons, sep="\n")
    return SKIPPED if is_skipped and code != FAILED else code


if __name__ == "__main__":
    sys.exit(main())
