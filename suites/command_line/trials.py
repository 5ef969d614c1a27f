# SPDX-License-Identifier: Apache-2.0
"""Trials: one rank of a sweep is killed or stopped at a random moment; what is wrong about the end, in words."""
import concurrent.futures
import dataclasses
import os
import random
import re
import signal
import subprocess
import time

import support

CRASH = 5
KILL_LIMIT = 2.0
TIMEOUT = 1
STOP_LIMIT = TIMEOUT + 5.0
LAST_MOMENT = 0.8  # s after the ranks are there, or after the first row: start-up, the first cells, later ones

OWN, BOTH = "tutti", "tutti,openmpi"


def sweep(backends, ranks, *more, timeout=TIMEOUT):
    """One that goes on for much longer than any trial, with a row every 50 ms."""
    return support.Run("run", "all_reduce", "broadcast", "--backends", backends, "--ranks", ranks,
                       "--sizes", "8:64K:+64", "--budget", "100s", "--timeout", f"{timeout}s", "--csv", "{folder}/rows.csv", "--json",
                       "{folder}/record.json", *more)


def end_of(run, limit):
    """(Result or None, seconds) of a run in which something has just happened, and which is to end within `limit`."""
    begin = time.monotonic()
    try:
        result = run.wait(limit)
    except subprocess.TimeoutExpired:
        return None, time.monotonic() - begin
    return result, time.monotonic() - begin


def complaint_of(result):
    """The launcher's last words, without progress and log."""
    return "\n".join(line for line in result.err.splitlines() if line.startswith("tutti: "))


def finished_lines(run):
    """The CSV as far as it stands: whole lines."""
    path = run.path / "rows.csv"
    text = path.read_text() if path.exists() else ""
    return text[:text.rfind("\n") + 1]


def check_end(run, result, rank, pid, words, kept="", knows_pid=True):
    """What is wrong about the end of `run`, in words, if rank `rank` is to blame. Where the program may not know the rank's
    pid yet, its number is enough."""
    name = rf"rank {rank} \(pid {pid}\)" if knows_pid else rf"rank {rank}(?: \(pid {pid}\)|(?! \(pid))"
    return check_blame(run, result, rf"{name} .*{words}", kept) + run.left_behind()


def check_blame(run, result, blame, kept="", code=CRASH):
    """The same of the exit code, what is blamed, as a pattern, the files, and whether the CSV begins with what was `kept` of
    it before."""
    problems = []
    if result.code != code:
        problems.append(f"exit code {result.code}")
    if not re.search(rf"^tutti: {blame}", complaint_of(result)):
        problems.append(f"not '{blame}' is what is blamed: {complaint_of(result)!r}")
    return problems + check_files(run, kept)


def check_files(run, kept=""):
    problems = []
    try:
        _, rows = run.rows()
        if not finished_lines(run).startswith(kept):
            problems.append(f"the CSV does not begin with the {kept.count(chr(10))} lines that it had")
        problems += support.differences(rows, support.read_json(run.path / "record.json")["rows"])
        if any(row["verdict"] != "ok" for row in rows):
            problems.append(f"verdicts {sorted({row['verdict'] for row in rows})}")
    except Exception as failure:  # whatever the file holds is the finding
        problems.append(f"{type(failure).__name__}: {failure}")
    return problems


class Trial:
    """One rank, one signal, one moment."""

    def __init__(self, generator, backends, number):
        self.backends = backends
        self.ranks = generator.choice([2, 3])
        self.rank = generator.randrange(self.ranks)
        self.moment = generator.uniform(0, LAST_MOMENT)
        self.has_rows = number % 2 == 0  # of few trials some too
        self.number = number
        self.rows = 0  # that were there to lose
        self.seconds = 0.0

    def __str__(self):
        since = "the first row" if self.has_rows else "the start"
        return f"trial {self.number}: rank {self.rank} of {self.ranks}, {self.moment:.3f} s after {since}, {self.backends}"

    def perform(self, kind):
        """What went wrong, in words."""
        with sweep(self.backends, self.ranks) as run:
            pid = run.wait_for_ranks(self.ranks)[self.rank]
            if self.has_rows:
                run.wait_for_rows(1)
            time.sleep(self.moment)
            run.note_memory()
            kept = finished_lines(run)
            os.kill(pid, kind.signal)
            result, self.seconds = end_of(run, kind.limit)
            if result is None:
                return [f"{self}: still there {self.seconds:.2f} s after the signal\n{run.texts()}"]
            has_row = kept.count("\n") > 1  # beside the heading
            knows_pid = self.backends == OWN or has_row  # under mpirun a rank tells its pid when it has started
            problems = check_end(run, result, self.rank, pid, kind.words, kept, knows_pid)
            self.rows = max(0, kept.count("\n") - 1)
            return [f"{self}: {problem}" for problem in problems] + ([f"{result}"] if problems else [])


@dataclasses.dataclass
class Kind:
    """What is done to a rank, and what the program has to say of it."""

    signal: int
    limit: float  # s from the signal to the end
    words: str
    at_once: int  # jobs; more would make the cores the subject


KILL = Kind(signal.SIGKILL, KILL_LIMIT, r"was killed by signal 9", at_once=2)
STOP = Kind(signal.SIGSTOP, STOP_LIMIT, r"is stopped \(state T\)", at_once=8)  # they wait most of the time


def perform(kind, backends, number, seed):
    """The trials, ended, and what went wrong, in words."""
    generator = random.Random(f"{seed} {backends} {kind.signal}")
    trials = [Trial(generator, backends, i) for i in range(number)]
    before = support.shared_memory()
    with concurrent.futures.ThreadPoolExecutor(kind.at_once) as pool:
        problems = list(pool.map(lambda trial: trial.perform(kind), trials))
    found = [line for lines in problems for line in lines]
    found += [f"abandoned: /dev/shm/{name}" for name in support.abandoned_shared_memory(before)]
    return trials, found
