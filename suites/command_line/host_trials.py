# SPDX-License-Identifier: Apache-2.0
"""Trials: something befalls a job on several machines, or strangers call on it, at a random moment; what is wrong about
the end, in words. All machines are pretended, at 127.0.0.1, but where the cable between two is the subject: these are
network namespaces.
"""
import collections
import concurrent.futures
import json
import pathlib
import random
import re
import resource
import tempfile
import time
import unittest

import namespaces
import support
import trials

UNREACHABLE = 3
AT_ONCE = 3
LAST_MOMENT = 0.8  # s after the ranks are there, or after the first row
SILENCE = 3.0  # s after which a machine that says nothing is lost, with all TIMEOUTS
LAUNCHER_SILENCE = 10.0  # s after which a machine gives its launcher up
TIMEOUTS = ["1s", "2s", "6s"]
LEFT_WITHIN = 3.0  # s from the end to the last process of a machine that could be told

EXECS = 'exec "$@"'  # an agent that becomes the command,
STAYS = '"$@"'       # one that stays beside it, as ssh does.
# One that hands the machine what the trial says in place of the launcher's invitation. It waits for that.
TOLD = """
read -r line
echo "$line" > {folder}/$host.part && mv {folder}/$host.part {folder}/$host.said
turn=0
while [ ! -e {folder}/$host.told ]; do sleep 0.02; turn=$((turn + 1)); [ $turn -lt 1500 ] || exit 1; done
exec 3<&0
mkfifo {folder}/$host.input
cat {folder}/$host.told - <&3 >{folder}/$host.input &
"$@" <{folder}/$host.input
code=$?
kill $! 2>/dev/null
exit $code"""

# A row every 50 ms or so for much longer than any trial, and what ends by itself soon.
ENDLESS = ["run", "all_reduce", "broadcast", "--sizes", "8:64K:+64", "--budget", "100s", "--no-limit"]
SHORT = ["run", "all_reduce", "barrier", "--sizes", "8,64K", "--budget", "800ms", "--no-limit"]
FILES = ["--csv", "{folder}/rows.csv", "--json", "{folder}/record.json", "--quiet"]


class Job(support.Run):
    """A job on `hosts`, name -> ranks, with an agent whose text this is, at 127.0.0.1."""

    def __init__(self, hosts, words, agent=EXECS, files=FILES):
        self.agents = tempfile.TemporaryDirectory(prefix="tutti-agent-")
        self.talk = pathlib.Path(self.agents.name)
        path = self.talk / "agent"
        path.write_text(f"#!/bin/sh\nhost=$1; shift\n{agent.replace('{folder}', str(self.talk))}\n")
        path.chmod(0o755)
        self.hosts = hosts
        self.start([*words, *files], path)

    def start(self, words, agent):
        super().__init__(*words, "--agent", agent, "--interface", "127.0.0.1",
                         "--hosts", ",".join(f"{name}:{ranks}" for name, ranks in self.hosts.items()))

    def __exit__(self, *_):
        super().__exit__(*_)
        self.agents.cleanup()

    def ranks_of(self, name):
        names = list(self.hosts)
        first = sum(self.hosts[one] for one in names[:names.index(name)])
        return range(first, first + self.hosts[name])

    def processes_of(self, name, ranks):
        """The process that the launcher has on a machine, and its ranks; `ranks` are the pids of all."""
        mine = [ranks[rank] for rank in self.ranks_of(name)]
        parents = {process.pid: process.parent for process in support.processes()}
        return [parents[mine[0]], *mine]

    def said_to(self, name, limit=20):
        """The invitation that the launcher has for a machine whose agent is TOLD."""
        end = time.monotonic() + support.patience(limit)
        while not (self.talk / f"{name}.said").exists():
            if time.monotonic() > end:
                raise AssertionError(f"{name} was not invited within {limit} s\n{self.texts()}")
            time.sleep(0.005)
        return json.loads((self.talk / f"{name}.said").read_text())

    def tell(self, name, invitation):
        (self.talk / f"{name}.part").write_text(json.dumps(invitation) + "\n")
        (self.talk / f"{name}.part").rename(self.talk / f"{name}.told")

    def name_pattern(self, name):
        """What the launcher calls a machine that is lost, one of its ranks, or who another rank has waited for."""
        ranks = self.ranks_of(name)
        who = f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {ranks[0]} to {ranks[-1]}"
        one = "|".join(map(str, ranks))
        missed = rf"rank \d+ on \w+: rank (?:{one}) (?:did not come to |on host \d+ (?:went|failed))"
        return rf"(?:host {name} \({who}\) is lost: |rank (?:{one}) on {name} \(pid \d+\) |{missed})"


class JobApart(Job):
    """So many ranks on each of `machines`, which are apart (namespaces.py). The launcher is on the first."""

    def __init__(self, machines, ranks, words, files=FILES):
        self.machines, self.per_machine = machines, ranks
        super().__init__({machine.name: ranks for machine in machines.all}, words, f'exec {machines.agent} $host "$@"', files)

    def start(self, words, agent):
        program, *rest = self.machines.all[0].enter(support.PROGRAM, *words, *self.machines.options(self.per_machine, agent))
        support.Run.__init__(self, *rest, program=program)


def left_in(run, limit):
    """What is left behind after so many seconds, in words."""
    end = time.monotonic() + support.patience(limit)
    while (left := run.left_behind()) and time.monotonic() < end:
        time.sleep(0.05)
    return left


def door_of(invitation):
    host, port = invitation["address"].rsplit(":", 1)
    return host, int(port)


class Trial:
    """One seed: what happens, where, when. `perform` says what went wrong, in words."""

    limit = 5.0  # s from what happens to the end
    at_least = 0.0
    needs_cable = False

    def __init__(self, number, generator):
        self.number = number
        self.seconds = 0.0
        self.rows = 0  # that were there to lose
        self.generator = random.Random(generator.getrandbits(64))
        self.ranks = self.generator.choice([1, 1, 2])
        self.moment = self.generator.uniform(0, LAST_MOMENT)
        self.has_rows = self.generator.random() < 0.6
        self.agent = self.generator.choice([EXECS, STAYS])
        self.timeout = self.generator.choice(TIMEOUTS)

    def __str__(self):
        since = "the first row" if self.has_rows else "the start"
        return f"trial {self.number}: {type(self).__name__}, {self.ranks} per machine, --timeout {self.timeout}, {self.moment:.3f} s after {since}{self.detail()}"

    def endless(self):
        return [*ENDLESS, "--timeout", self.timeout]

    def detail(self):
        return ""

    def hosts(self):
        return {"a": self.ranks, "b": self.ranks}

    def perform(self):
        try:
            return [f"{self}: {problem}" for problem in self.problems()]
        except AssertionError as failure:
            return [f"{self}: {failure}"]

    def ends(self, run, happen, blame, left_within=LEFT_WITHIN, code=trials.CRASH):
        """`happen` is called with the pids of the ranks, and ends the job; nothing is left after `left_within` seconds."""
        ranks = run.wait_for_ranks(sum(run.hosts.values()))
        if self.has_rows:
            run.wait_for_rows(1)
        time.sleep(self.moment)
        run.note_memory()
        kept = trials.finished_lines(run)
        self.rows = max(0, kept.count("\n") - 1)
        happen(ranks)
        result, self.seconds = trials.end_of(run, self.limit)
        if result is None:
            return [f"still there {self.seconds:.2f} s after it happened\n{run.texts()}"]
        problems = trials.check_blame(run, result, blame, kept, code)
        self.after_end()
        return problems + left_in(run, left_within) + ([str(result)] if problems else [])

    def after_end(self):
        pass

    def goes_on(self, run):
        """The job ends as if nothing had happened."""
        result, _ = trials.end_of(run, self.limit)
        self.seconds = time.monotonic() - run.begin
        if result is None:
            return [f"still there after {self.seconds:.2f} s\n{run.texts()}"]
        problems = [] if result.code == 0 else [f"exit code {result.code}"]
        problems += trials.check_files(run) + left_in(run, LEFT_WITHIN)
        return problems + ([str(result)] if problems else [])

    def is_refused(self, run, blame):
        """The job does not begin."""
        result, self.seconds = trials.end_of(run, self.limit)
        if result is None:
            return [f"still there after {self.seconds:.2f} s\n{run.texts()}"]
        problems = [] if result.code == UNREACHABLE else [f"exit code {result.code}"]
        if not re.search(rf"(?m)^tutti: {blame}", result.err):
            problems.append(f"not '{blame}' is what is blamed")
        return problems + left_in(run, LEFT_WITHIN) + ([str(result)] if problems else [])


def can_cut():
    """None, or why there is no cable here."""
    try:
        with namespaces.Machines(2):
            return None
    except unittest.SkipTest as failure:
        return str(failure)


def draw(number, seed, kinds, first=0):
    """The trials of a seed: each kind as often as any other one, or once more, from kind `first` on."""
    generator = random.Random(f"{seed} hosts")
    return [kinds[(first + i) % len(kinds)](i, generator) for i in range(number)]


def perform(drawn):
    """What went wrong in the trials, in words."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    before = support.shared_memory()
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        problems = list(pool.map(lambda trial: trial.perform(), drawn))
    found = [line for lines in problems for line in lines]
    return found + [f"abandoned: /dev/shm/{name}" for name in support.abandoned_shared_memory(before)]


def by_kind(drawn):
    """Kind -> its trials, in their order."""
    found = collections.OrderedDict()
    for trial in drawn:
        found.setdefault(type(trial), []).append(trial)
    return found
