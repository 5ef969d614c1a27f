# SPDX-License-Identifier: Apache-2.0
"""Random hits: one process of a job, chosen at random among all of them, gets a signal at a random moment. A trial returns
what is wrong about the end, in words. The jobs are in hit_jobs.py.
"""
import collections
import concurrent.futures
import dataclasses
import os
import pathlib
import random
import re
import signal
import subprocess
import threading
import time

import host_trials
import support

SIGNALS = [signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGHUP]
USAGE, ENVIRONMENT, CRASH, INTERRUPTED = 2, 3, 5, 130
TIMEOUT = 4  # s, --timeout of all jobs
MARGIN = 20  # s, for a job to end beside the time that it measures and its timeout
LEFT_WITHIN = 4.0  # s from the end to the last process
HELD = TIMEOUT + 2.0  # s for which a process is stopped whose stop ends nothing
AT_ONCE = 3  # trials
FOREIGN = re.compile(r"^(mpirun|mpiexec|orterun|orted|prterun|prted|hydra_pmi_proxy)")
AGENT = re.compile(r"^(sh|dash|bash|agent|setsid|nsenter|env)$")
PERF = re.compile(r"_perf$")


@dataclasses.dataclass
class Target:
    """A process of the job, and what it is there: launcher, rank, host, starter, agent, child, python, or the first
    process of a job that somebody else has started, which is its launcher."""

    pid: int
    role: str
    number: int = -1  # of a rank
    words: str = ""
    is_far: bool = False  # a host that an agent has started

    def __str__(self):
        program, _, options = self.words.partition(" ")
        return f"{self.role}{f' {self.number}' if self.number >= 0 else ''} (pid {self.pid}: {pathlib.Path(program).name} {options[:40]})"


def rank_in(environment):
    """The rank that a starter has given, or -1."""
    for name in [*support.RANK_VARIABLES, "RANK"]:
        if environment.get(name, "").isdigit():
            return int(environment[name])
    return -1


def has_agent(pid):
    """Whether somebody else than tutti has started the process."""
    parent = next((one.parent for one in support.processes() if one.pid == pid), 0)
    command = support.command_of(parent)
    return bool(command) and pathlib.Path(command[0]).name != "tutti"


def target_of(pid, launchers):
    """The Target of a process, or None if it has ended. `launchers` are processes that the trial itself has started."""
    command = support.command_of(pid)
    if not command:
        return None
    name, words = pathlib.Path(command[0]).name, " ".join(command)
    number = rank_in(support.environment_of(pid))
    if FOREIGN.match(name):
        return Target(pid, "starter", words=words)
    if name == "tutti" and command[1:] == ["rank"]:
        return Target(pid, "rank", number, words)
    if name == "tutti" and command[1:2] == ["host"]:
        return Target(pid, "host", words=words, is_far=has_agent(pid))
    if name == "tutti" and number >= 0:
        return Target(pid, "first", number, words)
    if pid in launchers:
        return Target(pid, "launcher", words=words)
    if name.startswith("python"):
        return Target(pid, "python", words=words)
    if AGENT.match(name):
        return Target(pid, "agent", words=words)
    return Target(pid, "child", number, words)


def is_stopped(pid):
    return any(process.pid == pid and process.state in "Tt" for process in support.processes())


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


class Trial:
    """One seed of one job. `Job` is a class of hit_jobs.py."""

    def __init__(self, job, seed):
        self.seed = seed
        generator = random.Random(f"{seed} {job.name}")
        self.signal = generator.choice(SIGNALS)
        self.moment = generator.random()
        self.choice = generator.random()
        self.job = job(generator)
        self.target = None
        self.seconds = 0.0
        self.codes = []
        self.was_late = False
        self.was_ended = False  # by the trial

    def __str__(self):
        return (f"--seed {self.seed} --scenario {self.job.name}: {self.signal.name} to {self.target or 'nobody'} "
                f"{self.moment * self.job.span:.2f} s after the start")

    def perform(self):
        """What went wrong, in words."""
        try:
            with self.job:
                return [f"{self}: {problem}" for problem in self.problems()]
        except Exception as failure:  # a job that cannot even be looked at is a finding
            return [f"{self}: {type(failure).__name__}: {failure}"]

    def problems(self):
        job = self.job
        begin = time.monotonic()
        time.sleep(self.moment * job.span)
        self.target = self.choose()
        for run in job.runs:
            run.note_memory()
        hit = time.monotonic()
        if self.target is None or not send(self.target.pid, self.signal):
            self.was_late = True
        elif self.signal == signal.SIGSTOP and job.holds(self.target):
            time.sleep(job.held)
            send(self.target.pid, signal.SIGCONT)
            self.was_ended = job.is_endless
        if job.is_endless and self.target and self.target.role == "starter":
            self.was_ended |= not job.ends_within(job.held)  # a proxy may ignore it
        if self.was_ended or (self.was_late and job.is_endless):
            for run in job.runs:
                run.process.terminate()
        results = self.ends(begin)
        self.seconds = time.monotonic() - hit
        if results is None:
            return [f"still there {self.seconds:.1f} s after the signal; {job.still_there()}"]
        self.codes = [result.code for result in results]
        found = job.problems(self, results)
        found += self.left()
        return found + [str(result) for result in results] if found else []

    def choose(self):
        targets = [target for target in (target_of(pid, self.job.launchers()) for pid in self.job.living()) if target]
        targets.sort(key=lambda one: (one.role, one.number, one.pid))
        return targets[int(self.choice * len(targets))] if targets else None

    def ends(self, begin):
        """The Result of each run; None if one is there for too long."""
        limit = self.job.lasts + TIMEOUT + MARGIN
        results = []
        for run in self.job.awaited(self):
            try:
                results.append(run.wait(max(0.1, begin + limit - time.monotonic())))
            except subprocess.TimeoutExpired:
                return None
        if self.signal == signal.SIGSTOP and self.target and is_stopped(self.target.pid):
            self.job.is_left_stopped(self.target)
            send(self.target.pid, signal.SIGCONT)  # a stopped agent, or a rank of another starter, cannot end before
        for run in self.job.runs[len(results):]:
            run.wait(MARGIN)
        return results

    def left(self):
        found = []
        for run in self.job.runs:
            found += [line for line in host_trials.left_in(run, self.job.left_within) if not self.is_of_starter(line)]
            found += self.files_left(run.path)
        return found + self.job.left()

    def is_of_starter(self, line):
        """Whether somebody's mpirun, which was hit, has left it."""
        return self.job.kills_launcher and self.target and self.target.role == "starter" and re.match(r"file \S+/tmp/ompi\.", line)

    def files_left(self, folder):
        """A process that is killed while it writes a file may leave what it writes aside."""
        is_killed = self.signal == signal.SIGKILL and self.target and self.target.role in ("launcher", "first")
        is_aside = re.compile(r"^\.tutti-\w{16}\.part$" if is_killed or self.job.kills_launcher else "$.")
        return [f"file {path.name} is left" for path in folder.iterdir()
                if path.name not in self.job.files and not is_aside.match(path.name)]


def check_rows(run, needs_record, folder=None):
    """What is wrong about the rows of a run: the CSV has whole lines and all rows that were printed, the JSON is valid and
    the same. They are in the folder of the run, or in this one."""
    found = []
    path, record = (folder or run.path) / "rows.csv", (folder or run.path) / "record.json"
    printed = len(re.findall(r"(?m)^ +\d+ .* (?:ok|wrong|unchecked|skipped|error)$", (run.path / "stdout").read_text()))
    try:
        rows = support.read_csv(path)[1] if path.exists() and path.read_text() else []
        if printed > len(rows):
            found.append(f"{printed} rows were printed, {len(rows)} are in the CSV")
        if not {row["verdict"] for row in rows} <= {"ok", "skipped"}:
            found.append(f"verdicts {sorted({row['verdict'] for row in rows})}")
        if record.exists() and record.read_text():
            found += support.differences(rows, support.read_json(record)["rows"])
        elif needs_record:
            found.append("there is no JSON")
    except Exception as failure:  # whatever the file holds is the finding
        found.append(f"{type(failure).__name__}: {failure}")
    return found


def check_code(code, expected):
    return [] if code in expected else [f"exit code {code}, not one of {sorted(expected)}"]


def check_blame(text, *patterns):
    """Any of the patterns is enough."""
    return [] if any(re.search(pattern, text) for pattern in patterns) else [f"not '{patterns[0]}' is what is blamed"]


def words_of(number):
    """What is said of a rank that has got the signal."""
    return r"is stopped|stopped \(state T\)" if number == signal.SIGSTOP else rf"was killed by signal {int(number)}\b"


class SharedMemory:
    """What trials leave in /dev/shm. Several run at a time, so each thing is told once, by the first that sees it. The
    folder of a launcher that was killed is removed by the next job, so it counts at the end."""

    OF_LAUNCHER = re.compile(r"tutti-\d+-\w{6}$")

    def __init__(self):
        self._known = support.shared_memory()
        self._lock = threading.Lock()

    def abandoned(self):
        with self._lock:
            left = {name for name in support.abandoned_shared_memory(self._known) if not self.OF_LAUNCHER.match(name)}
            self._known |= left
            return sorted(left)

    def abandoned_by_all(self):
        support.run("run", "barrier", "--backends", "tutti", "--ranks", "2", "--budget", "100ms")
        return sorted(support.abandoned_shared_memory(self._known))


def perform(trials, tell=lambda trial, problems: None):
    """Performs the trials: (trial, what went wrong) of each. `tell` is called after each one."""
    memory = SharedMemory()

    def one(trial):
        problems = trial.perform()
        problems += [f"{trial}: abandoned: /dev/shm/{name}" for name in memory.abandoned()]
        tell(trial, problems)
        return trial, problems

    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        done = list(pool.map(one, trials))
    done[-1][1].extend(f"abandoned by one of the trials: /dev/shm/{name}" for name in memory.abandoned_by_all())
    return done


def summary(done):
    """A line for each scenario."""
    by_name = collections.OrderedDict()
    for trial, problems in done:
        by_name.setdefault(trial.job.name, []).append((trial, problems))
    lines = [f"{'scenario':<16} trials  hit  held  longest  signals, roles and exit codes"]
    for name, some in by_name.items():
        hit = [trial for trial, _ in some if not trial.was_late]
        kinds = collections.Counter(f"{trial.signal.name[3:]} {trial.target.role}->{','.join(map(str, trial.codes)) or '-'}" for trial in hit)
        lines.append(f"{name:<16} {len(some):>6} {len(hit):>4} {sum(not problems for _, problems in some):>5} "
                     f"{max(trial.seconds for trial, _ in some):>6.1f} s  {', '.join(f'{kind} x{count}' for kind, count in sorted(kinds.items()))}")
    return lines
