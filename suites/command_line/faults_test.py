# SPDX-License-Identifier: Apache-2.0
"""Ranks that are killed or stopped at random moments: the job ends in time and with exit code 5, the rank is named,
finished rows are kept, and nothing is left.

The moments come from a generator whose seed is printed; TUTTI_TEST_SEED repeats a run.
"""
import concurrent.futures
import os
import random
import re
import signal
import subprocess
import time
import unittest

import support

CRASH = 5
TRIALS = 20
AT_ONCE = 2  # jobs; more on as many cores would make the cores the subject
STOPPED_AT_ONCE = 4  # they wait most of the time
KILL_LIMIT = 2.0
TIMEOUT = 2
STOP_LIMIT = TIMEOUT + 5.0
LAST_MOMENT = 0.8  # s after the ranks are there, or after the first row: start-up, the first cells, later ones

SEED = int(os.environ.get("TUTTI_TEST_SEED", random.SystemRandom().randrange(2**32)))
OWN, BOTH = "tutti", "tutti,openmpi"


def setUpModule():
    print(f"TUTTI_TEST_SEED={SEED}", flush=True)


def sweep(backends, ranks, *more):
    """One that goes on for much longer than any trial, with a row every 50 ms."""
    return support.Run("run", "all_reduce", "broadcast", "--backends", backends, "--ranks", ranks,
                       "--sizes", "8:64K:+64", "--budget", "100s", "--timeout", f"{TIMEOUT}s", "--csv", "{folder}/rows.csv", "--json",
                       "{folder}/record.json", *more)


def end_of(run, limit):
    """(Result or None, seconds) of a run in which something has just happened, and which is to end within `limit`."""
    limit = support.patience(limit)
    begin = time.monotonic()
    try:
        result = run.wait(limit)
    except subprocess.TimeoutExpired:
        return None, time.monotonic() - begin
    return result, time.monotonic() - begin


def complaint_of(result):
    """The launcher's last words, without progress and log."""
    return "\n".join(line for line in result.err.splitlines() if line.startswith("tutti: "))


def check_end(run, result, rank, pid, words):
    """What is wrong about the end of `run`, in words: exit code, name, files, leftovers."""
    problems = []
    if result.code != CRASH:
        problems.append(f"exit code {result.code}")
    if not re.search(rf"^tutti: rank {rank} \(pid {pid}\) .*{words}", complaint_of(result)):
        problems.append(f"rank {rank} (pid {pid}), '{words}', is not what is blamed: {complaint_of(result)!r}")
    try:
        _, rows = run.rows()
        problems += support.differences(rows, support.read_json(run.path / "record.json")["rows"])
        if any(row["verdict"] != "ok" for row in rows):
            problems.append(f"verdicts {sorted({row['verdict'] for row in rows})}")
        run.finished_rows = len(rows)
    except Exception as failure:  # whatever the file holds is the finding
        problems.append(f"{type(failure).__name__}: {failure}")
    return problems + run.left_behind()


class Trial:
    """One rank, one signal, one moment."""

    def __init__(self, generator, backends, number):
        self.backends = backends
        self.ranks = generator.choice([2, 3])
        self.rank = generator.randrange(self.ranks)
        self.moment = generator.uniform(0, LAST_MOMENT)
        self.has_rows = generator.choice([False, True])
        self.number = number
        self.rows = 0
        self.seconds = 0.0

    def __str__(self):
        since = "the first row" if self.has_rows else "the start"
        return f"trial {self.number}: rank {self.rank} of {self.ranks}, {self.moment:.3f} s after {since}, {self.backends}"

    def perform(self, signal_number, limit, words):
        """What went wrong, in words."""
        with sweep(self.backends, self.ranks) as run:
            run.finished_rows = 0
            pid = run.wait_for_ranks(self.ranks)[self.rank]
            if self.has_rows:
                run.wait_for_rows(1)
            time.sleep(self.moment)
            run.note_memory()
            os.kill(pid, signal_number)
            result, self.seconds = end_of(run, limit)
            if result is None:
                return [f"{self}: still there {self.seconds:.2f} s after the signal\n{run.texts()}"]
            problems = check_end(run, result, self.rank, pid, words)
            self.rows = run.finished_rows
            return [f"{self}: {problem}" for problem in problems] + ([f"{result}"] if problems else [])


class Random(unittest.TestCase):
    def perform(self, backends, signal_number, limit, words, at_once):
        generator = random.Random(f"{SEED} {backends} {signal_number}")
        trials = [Trial(generator, backends, number) for number in range(TRIALS)]
        before = support.shared_memory()
        with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
            problems = [pool.submit(trial.perform, signal_number, limit, words) for trial in trials]
        found = [line for future in problems for line in future.result()]
        print(f"{self.id()}: longest from the signal to the end {max(trial.seconds for trial in trials):.2f} s")
        self.assertEqual(found, [], "\n".join([f"TUTTI_TEST_SEED={SEED}", *found]))
        self.assertEqual(support.abandoned_shared_memory(before), set())
        self.assertTrue(any(trial.rows > 0 for trial in trials), "no trial had a finished row to lose")


class Killed(Random):
    WORDS = r"was killed by signal 9"

    def test_under_own_spawn(self):
        self.perform(OWN, signal.SIGKILL, KILL_LIMIT, self.WORDS, AT_ONCE)

    @support.needs_openmpi
    def test_under_mpirun(self):
        self.perform(BOTH, signal.SIGKILL, KILL_LIMIT, self.WORDS, AT_ONCE)


class Stopped(Random):
    WORDS = r"is stopped \(state T\)"

    def test_under_own_spawn(self):
        self.perform(OWN, signal.SIGSTOP, STOP_LIMIT, self.WORDS, STOPPED_AT_ONCE)

    @support.needs_openmpi
    def test_under_mpirun(self):
        self.perform(BOTH, signal.SIGSTOP, STOP_LIMIT, self.WORDS, STOPPED_AT_ONCE)


class Special(unittest.TestCase):
    """Moments and victims that a random choice seldom meets."""

    def killed_at_once(self, backends):
        for rank in [0, 1]:
            with self.subTest(rank), sweep(backends, 2) as run:
                end = time.monotonic() + 30
                while rank not in (ranks := run.ranks()) and time.monotonic() < end:
                    pass  # the earliest moment at which it can be seen
                os.kill(ranks[rank], signal.SIGKILL)
                result, seconds = end_of(run, KILL_LIMIT)
                self.assertIsNotNone(result, f"still there after {seconds} s\n{run.texts()}")
                self.assertEqual(result.code, CRASH, result)
                self.assertRegex(complaint_of(result), rf"^tutti: rank {rank}\b.* was killed by signal 9", result)
                rows = run.rows()[1]  # none, but where this process was late and cells were measured before the kill
                self.assertEqual({row["verdict"] for row in rows} - {"ok"}, set(), result)
                self.assertEqual(support.differences(rows, support.read_json(run.path / "record.json")["rows"]), [])
                self.assertEqual(run.left_behind(), [])

    def test_killed_during_the_start(self):
        self.killed_at_once(OWN)

    @support.needs_openmpi
    def test_killed_during_the_start_under_mpirun(self):
        before = support.shared_memory()
        self.killed_at_once(BOTH)
        self.assertEqual(support.abandoned_shared_memory(before), set())

    def stopped(self):
        """What is said when both ranks are stopped in the middle of a sweep: the launcher alone is left to tell."""
        with sweep(OWN, 2) as run:
            pids = run.wait_for_ranks(2)
            run.wait_for_rows(2)
            for pid in pids.values():
                os.kill(pid, signal.SIGSTOP)
            result, seconds = end_of(run, STOP_LIMIT)
            self.assertIsNotNone(result, f"still there after {seconds} s\n{run.texts()}")
            self.assertEqual(result.code, CRASH, result)
            return result

    def test_the_case_that_is_named_can_be_run_again(self):
        for _ in range(5):  # between two operations no case is named
            result = self.stopped()
            named = re.search(r"all_reduce/\S+/isolated", complaint_of(result))
            if named:
                break
        self.assertIsNotNone(named, result)
        again = support.run("run", "--case", named[0], "--budget", "200ms", "--require")
        self.assertEqual(again.code, 0, again)

    def test_the_one_process_of_threads_and_tasks(self):
        for ranks_as in ["threads", "tasks"]:
            with self.subTest(ranks_as), sweep(OWN, 3, "--ranks-as", ranks_as) as run:
                pid = run.wait_for_ranks(1)[0]
                time.sleep(0.3)
                run.note_memory()
                os.kill(pid, signal.SIGKILL)
                result, seconds = end_of(run, KILL_LIMIT)
                self.assertIsNotNone(result, f"still there after {seconds} s\n{run.texts()}")
                self.assertEqual(check_end(run, result, 0, pid, Killed.WORDS), [], result)

    @support.needs_openmpi
    def test_mpirun_itself(self):
        before = support.shared_memory()
        with sweep("openmpi", 2) as run:
            ranks = run.wait_for_ranks(2)
            time.sleep(0.3)
            run.note_memory()
            (mpirun,) = set(run.living()) - set(ranks.values()) - {run.process.pid}
            os.kill(mpirun, signal.SIGKILL)
            result, seconds = end_of(run, KILL_LIMIT)
            self.assertIsNotNone(result, f"still there after {seconds} s\n{run.texts()}")
            self.assertEqual(result.code, CRASH, result)
            self.assertRegex(complaint_of(result), rf"mpirun \(pid {mpirun}\) was killed by signal 9")
            self.assertEqual(run.left_behind(), [])
        self.assertEqual(support.abandoned_shared_memory(before), set())


class LauncherKilled(unittest.TestCase):
    def killed(self, backends, ranks, *more):
        with sweep(backends, ranks, *more) as run:
            pids = run.wait_for_ranks(1 if more else ranks)
            time.sleep(0.5)
            run.note_memory()
            folder = support.environment_of(pids[0])["TMPDIR"]
            run.process.kill()
            run.process.wait()
            end = time.monotonic() + support.patience(3)
            while run.left_behind() and time.monotonic() < end:
                time.sleep(0.01)
            self.assertEqual(run.left_behind(), [])
            _, rows = run.rows()
            self.assertEqual(support.read_json(run.path / "record.json")["schema_version"], "1")
            self.assertTrue(all(row["verdict"] == "ok" for row in rows), rows)
            return folder

    def test_no_rank_survives(self):
        self.killed(OWN, 2)

    def test_no_thread_survives(self):
        self.killed(OWN, 3, "--ranks-as", "threads")

    @support.needs_openmpi
    def test_nothing_survives_under_mpirun_and_the_next_launch_removes_its_files(self):
        folder = self.killed(BOTH, 2)
        self.assertTrue(folder.startswith("/dev/shm/tutti-") or not os.path.exists(folder), folder)
        result = support.run("run", "barrier", "--backends", "openmpi", "--ranks", "2", "--budget", "500ms")
        self.assertEqual(result.code, 0, result)
        self.assertFalse(os.path.exists(folder), folder)


if __name__ == "__main__":
    unittest.main()
