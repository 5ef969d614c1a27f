# SPDX-License-Identifier: Apache-2.0
"""The jobs that random hits (hits.py) fall on, a class for each: how it starts, and how it may end."""
import contextlib
import functools
import pathlib
import re
import shutil
import signal
import socket
import tempfile
import time
import uuid

import hits
import host_trials
import namespaces
import support
from hits import CRASH, ENVIRONMENT, INTERRUPTED, TIMEOUT

FILES = ["--csv", "{folder}/rows.csv", "--json", "{folder}/record.json"]
BUDGET = 3  # s that a run measures
SWEEP = ["run", "all_reduce", "broadcast", "--sizes", "8:16K:x4", "--budget", f"{BUDGET}s", "--no-limit", "--timeout", f"{TIMEOUT}s"]
CHECK = ["check", "all_reduce", "broadcast", "--ranks", "2:4", "--dtypes", "float,int32", "--ops", "sum", "--timeout", f"{TIMEOUT}s"]
SOAK = ["check", "soak", "--ranks", "3", "--operations", "6000", "--timeout", f"{TIMEOUT}s"]
MPIRUN = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np", "3"]
HYDRA = ["mpiexec.hydra", "-np", "3"]
GATE_SUITE = '[[sweep]]\ncollectives = "all_reduce"\nsizes = ["64K"]\nranks = 2\n'


class Job:
    """A job, for a `with`. This one is a program of tutti that starts its ranks itself."""

    name = "run"
    words = [*SWEEP, "--ranks", "3", "--backends", "tutti", *FILES]
    span = BUDGET + 0.5  # s from the start in which the hit falls
    lasts = BUDGET + 5  # s that the job takes if nothing happens
    held = hits.HELD
    left_within = hits.LEFT_WITHIN
    files = ("stdout", "stderr", "tmp", "rows.csv", "record.json")
    is_endless = False  # the trial ends it, if a hit did not
    kills_launcher = False  # a starter may kill the process that writes the files

    def __init__(self, generator):
        self.generator = generator
        self.runs = []
        self.found = []  # during the trial
        self.stack = contextlib.ExitStack()

    @classmethod
    def why_not(cls):
        """None, or why there is no such job here."""
        return None

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stack.close()
            raise
        return self

    def __exit__(self, *_):
        self.stack.close()

    def start(self):
        self.add(support.Run(*self.words))

    def add(self, run):
        self.runs.append(self.stack.enter_context(run))

    def launchers(self):
        return {run.process.pid for run in self.runs}

    def living(self):
        return [pid for run in self.runs for pid in run.living()]

    def awaited(self, _):
        """The runs that end whatever is stopped."""
        return self.runs

    def holds(self, target):
        """Whether the job cannot end while the process is stopped."""
        return target.role == "launcher"

    def is_left_stopped(self, target):
        """The job has ended, and the process is there and stopped."""
        if target.role != "agent":
            self.found.append(f"{target} is left, stopped")

    def left(self):
        return []

    def ends_within(self, seconds):
        end = time.monotonic() + seconds
        while any(run.process.poll() is None for run in self.runs) and time.monotonic() < end:
            time.sleep(0.05)
        return all(run.process.poll() is not None for run in self.runs)

    def still_there(self):
        there = [f"{target}" for target in (hits.target_of(pid, self.launchers()) for pid in self.living()) if target]
        return f"processes: {', '.join(there)}\n" + "\n".join(run.texts() for run in self.runs)

    def problems(self, trial, results):
        (result,) = results
        found = self.found + self.wrong_code(trial, result) + self.wrong_rows(trial, result)
        return found

    def wrong_code(self, trial, result):
        if trial.was_late:
            return hits.check_code(result.code, {0})
        if trial.target.role == "launcher":
            return self.wrong_end_of_launcher(trial, result)
        found = hits.check_code(result.code, {0, ENVIRONMENT, CRASH})
        if result.code != 0:
            found += hits.check_blame(result.err, *self.blamed(trial.target, trial.signal))
        return found

    def wrong_end_of_launcher(self, trial, result):
        number = trial.signal
        if number == signal.SIGSTOP:
            return hits.check_code(result.code, {0, CRASH})
        own = set() if number == signal.SIGKILL else {INTERRUPTED}
        return hits.check_code(result.code, {-number, 0, *own})  # 0: it was about to end

    def blamed(self, target, number):
        """Patterns, of which one is in stderr."""
        words = hits.words_of(number)
        if target.role == "rank":
            name = rf"rank {target.number}(?: on \S+)?(?: \(pid {target.pid}\))?\b"
            unknown = rf"a rank that had not said which \(pid {target.pid}\)"
            return [rf"(?:{name}|{unknown}).*(?:{words})"]
        if target.role in ("host", "agent"):
            return [r"host \S+ \(ranks? \d.*\) is lost: ", r"rank \d+ on \S+ "]
        if target.role == "starter":
            return [rf"(?:mpirun|mpiexec|hydra|orted|pid {target.pid}).*(?:{words}|exited with code)", r"rank \d+ \(pid \d+\)", r"the launcher \(pid "]
        return [rf"(?:{words})"]

    def wrong_rows(self, trial, result):
        (run,) = self.runs
        # Who is interrupted while references are tried has opened no file yet.
        has_record = result.code in (0, CRASH) or (result.code == INTERRUPTED and (run.path / "rows.csv").exists())
        return hits.check_rows(run, has_record)


class Threads(Job):
    name = "run_threads"
    words = [*SWEEP, "--ranks", "2", "--ranks-as", "threads", *FILES]

    def blamed(self, target, number):
        if target.role == "rank":  # one process has all ranks
            return [rf"(?:rank \d|ranks|process|pid {target.pid}).*(?:{hits.words_of(number)})"]
        return super().blamed(target, number)


class Tcp(Job):
    name = "run_tcp"
    words = [*SWEEP, "--ranks", "4", "--transports", "tcp", "--pretend-hosts", "2", *FILES]


class OpenMpi(Job):
    name = "run_openmpi"
    reference = "openmpi"
    span = BUDGET + 1
    lasts = BUDGET + 8

    @property
    def words(self):
        return [*SWEEP, "--ranks", "2", "--backends", f"tutti,{self.reference}", *FILES]

    @classmethod
    def why_not(cls):
        return None if cls.reference in support.REFERENCES else f"the backend {cls.reference} is not built"


class Mpich(OpenMpi):
    name, reference = "run_mpich", "mpich"


class Gloo(OpenMpi):
    name, reference = "run_gloo", "gloo"


class Check(Job):
    name = "check"
    span, lasts = 2.5, 10
    words = [*CHECK, "--csv", "{folder}/rows.csv"]

    def wrong_rows(self, trial, result):
        return hits.check_rows(self.runs[0], False)


class Soak(Check):
    name = "soak"
    words = SOAK


class Gate(Job):
    """Of a build against itself. Its children are programs of both, each with ranks of its own."""

    name = "gate"
    span, lasts = 4, 60
    files = (*Job.files, "suite.toml")

    def start(self):
        with tempfile.NamedTemporaryFile("w", suffix=".toml", dir=self.stack.enter_context(tempfile.TemporaryDirectory()),
                                         delete=False) as suite:
            suite.write(GATE_SUITE)
        self.add(support.Run("gate", "--against", support.PROGRAM.parent, "--suite", suite.name, "--cell-time", "20ms", "--timeout",
                             f"{TIMEOUT}s", *FILES))

    def wrong_code(self, trial, result):
        if trial.was_late:
            return hits.check_code(result.code, {0, 6})
        if trial.target.role == "launcher":
            return super().wrong_code(trial, result)
        found = hits.check_code(result.code, {0, 1, ENVIRONMENT, 4, CRASH, 6})
        if result.code in (1, 4):
            found.append(f"exit code {result.code} for a build against itself")
        if result.code == CRASH:
            ends = {signal.SIGKILL: r"signal 9\b|\b137\b", signal.SIGTERM: r"signal 15\b|\b143\b|\b130\b", signal.SIGHUP: r"signal 1\b|\b129\b|\b130\b",
                    signal.SIGSTOP: r"stopped|did not end within"}
            found += hits.check_blame(result.out + result.err, ends[trial.signal])
        return found

    def wrong_end_of_launcher(self, trial, result):
        if trial.signal == signal.SIGSTOP:
            return hits.check_code(result.code, {0, CRASH, 6})
        return [] if result.code == 6 else super().wrong_end_of_launcher(trial, result)

    def wrong_rows(self, trial, result):
        return []


@functools.lru_cache
def a_result():
    """A JSON that a run has written."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tutti-hits-"))
    path = folder / "result.json"
    result = support.run("run", "all_reduce", "--backends", "tutti", "--ranks", "2", "--sizes", "8:1K:x8", "--budget", "300ms",
                         "--no-limit", "--json", path)
    if result.code != 0:
        raise AssertionError(f"no result to report: {result}")
    return path


class Report(Job):
    name = "report"
    span, lasts = 1.8, 260  # a Python that is stopped is given four minutes
    files = ("stdout", "stderr", "tmp", "page.html")

    def start(self):
        result = a_result()
        self.add(support.Run("report", result, "--html", "{folder}/page.html"))

    def wrong_code(self, trial, result):
        if trial.was_late or trial.target.role == "launcher":
            return super().wrong_code(trial, result)
        if trial.signal == signal.SIGSTOP:
            found = hits.check_code(result.code, {0, CRASH})
            return found + (hits.check_blame(result.err, r"is stopped \(state T\)") if result.code else [])
        found = hits.check_code(result.code, {0, ENVIRONMENT})
        if result.code != 0:
            # The Python that is asked for its packages is another one: what is said is that it has none.
            found += hits.check_blame(result.err, rf"exit code {128 + trial.signal}\b|signal {int(trial.signal)}\b|matplotlib")
        return found

    def wrong_rows(self, trial, result):
        page = self.runs[0].path / "page.html"
        if page.exists() and page.read_text() and not page.read_text().rstrip().endswith("</html>"):
            return ["the page is not complete"]
        return ["there is no page"] if result.code == 0 and not page.exists() else []


class Started(Job):
    """Somebody's starter, and a program of which it starts three. Its exit codes are its own."""

    kills_launcher = True

    def start(self):
        self.add(support.Run(*self.starter[1:], *self.command(), program=shutil.which(self.starter[0])))

    def command(self):
        return [support.PROGRAM, *SWEEP, *FILES]

    @classmethod
    def why_not(cls):
        return None if shutil.which(cls.starter[0]) else f"there is no `{cls.starter[0]}`"

    def holds(self, target):
        return target.role in ("starter", "first")

    def is_left_stopped(self, target):
        pass  # who has started it did not kill it

    def wrong_code(self, trial, result):
        if trial.was_late:
            return [] if self.is_endless else hits.check_code(result.code, {0})
        if trial.target.role == "starter":
            return []
        if result.code == 0:
            return hits.check_blame(result.out, r"# \d+ rows in \d+ cells: ")
        return self.wrong_name(trial, result)

    def wrong_name(self, trial, result):
        if trial.target.role == "first" and re.search(r"interrupted by signal", result.err):
            return []
        rank, pid = trial.target.number, trial.target.pid
        return hits.check_blame(result.out + result.err, rf"rank {rank} \(pid {pid}\)", rf"rank {rank}\b.*signal {int(trial.signal)}\b",
                                self.loss(pid), *self.foreign_words(trial))

    @staticmethod
    def loss(pid):
        """What the other ranks say where the process that has joined as the first is gone."""
        return rf"the first rank's process of this host \(pid {pid}\) ended without a word"

    def foreign_words(self, trial):
        return [rf"process rank {trial.target.number} with PID .* exited on signal {int(trial.signal)}"]

    def wrong_rows(self, trial, result):
        return hits.check_rows(self.runs[0], False)


class JoinedOpenMpi(Started):
    name, starter = "joined_openmpi", MPIRUN


class JoinedMpich(Started):
    """Hydra ends all as soon as one has died: what the others say may be lost."""

    name, starter = "joined_mpich", HYDRA

    def foreign_words(self, trial):
        return [r"BAD TERMINATION", rf"PID {trial.target.pid} RUNNING AT"]


class DropIn(Started):
    name, starter = "drop_in_openmpi", MPIRUN
    is_endless = True

    def command(self):
        return [support.PROGRAM.parent / "all_reduce_perf", "-b", "8", "-e", "64K", "-f", "4", "-n", "100", "-N", "0", "-T", str(TIMEOUT)]

    def wrong_rows(self, trial, result):
        return []


class DropInMpich(DropIn, JoinedMpich):
    name, starter = "drop_in_mpich", HYDRA


class ByHand(Started):
    """Each process is started by itself, with its rank in the environment."""

    name, starter = "joined_by_hand", ["sh"]
    ranks = 3

    def start(self):
        self.folder = pathlib.Path(self.stack.enter_context(tempfile.TemporaryDirectory(prefix="tutti-hits-")))
        with contextlib.closing(socket.socket()) as one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
        for rank in range(self.ranks):
            environment = {"RANK": str(rank), "WORLD_SIZE": str(self.ranks), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(self.ranks),
                           "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
            program, *words = self.command()
            self.add(support.Run(*words, program=program, environment=environment))

    def launchers(self):
        return set()

    def command(self):
        return [word if word is support.PROGRAM else word.replace("{folder}", str(self.folder)) for word in super().command()]

    def awaited(self, trial):
        is_stopped = trial.signal == signal.SIGSTOP and trial.target and not self.holds(trial.target)
        hit = [run for run in self.runs if is_stopped and run.process.pid == trial.target.pid]
        others = [run for run in self.runs if run not in hit]
        self.runs = [*others, *hit]  # `ends` waits for the rest once it goes on
        return others

    def problems(self, trial, results):
        found = list(self.found)
        if trial.was_late and not self.is_endless:
            return [problem for result in results for problem in hits.check_code(result.code, {0})]
        if trial.was_late or trial.was_ended:
            return found
        codes = {result.code for result in results}
        if codes == {0}:
            return found + hits.check_rows(self.runs[0], False, self.folder)
        number = trial.signal
        found += [problem for result in results for problem in hits.check_code(result.code, {0, ENVIRONMENT, CRASH, INTERRUPTED, -number})]
        text = "\n".join(result.out + result.err for result in results)
        found += hits.check_blame(text, rf"rank {trial.target.number} \(pid {trial.target.pid}\)", rf"rank {trial.target.number}\b",
                                  r"interrupted by signal", self.loss(trial.target.pid))
        found += hits.check_rows(self.runs[0], False, self.folder)
        return found + trial.files_left(self.folder)


class DropInByHand(ByHand):
    name = "drop_in_by_hand"
    is_endless = True

    def command(self):
        return DropIn.command(self)


class Hosts(Job):
    """Machines that are network namespaces."""

    name = "hosts_run"
    job_words = SWEEP
    outputs = host_trials.FILES
    per_machine = 2
    held = host_trials.LAUNCHER_SILENCE + 2
    left_within = host_trials.LAUNCHER_SILENCE + 5
    lasts = BUDGET + 8

    @classmethod
    def why_not(cls):
        return host_trials.can_cut()

    def is_left_stopped(self, target):
        if not target.is_far:  # on another machine nobody reaches what is stopped: it ends when it goes on
            super().is_left_stopped(target)

    def start(self):
        self.machines = self.stack.enter_context(namespaces.Machines(2))
        self.add(host_trials.JobApart(self.machines, self.per_machine, list(self.job_words), self.outputs))

    def left(self):
        return self.machines.left()


class HostsCheck(Hosts):
    name = "hosts_check"
    span = 1.5
    job_words = ["check", "all_reduce", "broadcast", "all_gather", "--dtypes", "float,int32,double", "--ops", "sum", "--timeout", f"{TIMEOUT}s"]
    outputs = ["--csv", "{folder}/rows.csv"]

    def wrong_rows(self, trial, result):
        return hits.check_rows(self.runs[0], False)


ALL = {job.name: job for job in [Job, Threads, Tcp, OpenMpi, Mpich, Gloo, Check, Soak, Gate, Report, JoinedOpenMpi, JoinedMpich, ByHand,
                                 DropIn, DropInMpich, DropInByHand, Hosts, HostsCheck]}
