# SPDX-License-Identifier: Apache-2.0
"""Ranks that are killed or stopped at random moments: the job ends in time and with exit code 5, the rank is named,
finished rows are kept, and nothing is left.

The moments come from a generator whose seed is printed; TUTTI_TEST_SEED repeats a run. kill_ranks.py does hundreds.
"""
import os
import pathlib
import pickle
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import support
from joined_test import Joined
from machines_test import Agents
from trials import BOTH, CRASH, KILL, KILL_LIMIT, OWN, STOP, STOP_LIMIT, check_end, complaint_of, end_of, perform, sweep

TRIALS = 4  # of each kind, under own spawn and under mpirun each; suites/nightly/run has thousands
SEED = int(os.environ.get("TUTTI_TEST_SEED", random.SystemRandom().randrange(2**32)))


def setUpModule():
    print(f"TUTTI_TEST_SEED={SEED}", flush=True)


class Random(unittest.TestCase):
    def perform(self, kind, backends):
        trials, found = perform(kind, backends, TRIALS, SEED)
        print(f"{self.id()}: longest from the signal to the end {max(trial.seconds for trial in trials):.2f} s")
        self.assertEqual(found, [], "\n".join([f"TUTTI_TEST_SEED={SEED}", *found]))
        self.assertTrue(any(trial.rows > 0 for trial in trials), "no trial had a finished row to lose")

    def test_killed_under_own_spawn(self):
        self.perform(KILL, OWN)

    @support.needs_openmpi
    def test_killed_under_mpirun(self):
        self.perform(KILL, BOTH)

    def test_stopped_under_own_spawn(self):
        self.perform(STOP, OWN)

    @support.needs_openmpi
    def test_stopped_under_mpirun(self):
        self.perform(STOP, BOTH)


# A sweep of own collectives in which a rank can hang.
HANGS = ["run", "all_reduce", "--backends", OWN, "--sizes", "1M:64M:+512K", "--check", "none", "--no-limit", "--budget", "100s",
         "--timeout", "1s", "--csv", "{folder}/rows.csv"]


def flight_record(folder, rank):
    return pickle.loads((folder / f"tutti_rank_{rank}").read_bytes())


def ranks_with_stacks(text):
    """Of the paragraphs of stacks.txt those that have a frame."""
    paragraphs = [paragraph.splitlines() for paragraph in text.split("\n\n")]
    return sorted(rank for ranks, *lines in paragraphs if any(line.startswith("  #0 ") for line in lines)
                  for rank in re.findall(r"\d+", ranks))


class Flight(unittest.TestCase):
    """What the files of a --flight folder have."""

    def has_last_calls(self, record):
        """Of a rank of three that hang in a sweep of all_reduce."""
        self.assertEqual(record["pg_config"]["0"]["ranks"], "[0, 1, 2]")
        entries = record["entries"]
        self.assertEqual({entry["profiling_name"] for entry in entries} - {"nccl:barrier"}, {"nccl:all_reduce"})
        numbers = [entry["collective_seq_id"] for entry in entries]
        self.assertEqual(numbers, list(range(numbers[0], numbers[0] + len(numbers))))
        self.assertEqual([entry["record_id"] for entry in entries], list(range(len(entries))))
        states = [entry["state"] for entry in entries]
        self.assertEqual(states, sorted(states), "those that are not complete come last")


class Special(Flight):
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

    def stands_still(self, *words, **how):
        """A stop is not noticed while the launcher handles what has come. So there are two stops in a trial, and three trials."""
        for left in [2, 1, 0]:
            try:
                return self.stands_still_once(*words, **how)
            except AssertionError as why:
                if left == 0:
                    raise
                print(f"{self.id()}: once more: {str(why)[:300]}", file=sys.stderr, flush=True)

    def stands_still_once(self, *words, program=support.PROGRAM, start=()):
        """All of a job is stopped, once for longer than --timeout, and continued: it goes on, and rows say so."""
        words = [*start, "run", "all_reduce", "--sizes", "8:1M:x2", "--budget", "12s", "--timeout", "3s", *words, "--csv", "{folder}/rows.csv"]
        with support.Run(*words, program=program) as run:
            run.wait_for_rows(1)
            for seconds in [5, 2]:
                time.sleep(0.3)
                pids = run.living()
                for number in [signal.SIGSTOP, signal.SIGCONT]:
                    for pid in pids:
                        os.kill(pid, number)
                    if number == signal.SIGSTOP:
                        time.sleep(seconds)
            result, seconds = end_of(run, 40)
            self.assertIsNotNone(result, f"still there after {seconds} s\n{run.texts()}")
            self.assertEqual(result.code, 0, result)
            self.assertNotRegex(result.err, r"(?m)^tutti: ")
            rows = run.rows()[1]
            stopped = [row for row in rows if "stopped" in row["disturbed"].split("; ")]
            self.assertIn(len({row["bytes"] for row in stopped}), [1, 2], rows)
            self.assertRegex(result.out, r"(?s)# disturbed while they were measured: .*\bstopped\b")

    def test_a_whole_job_that_stands_still_goes_on(self):
        for words in [["--ranks-as", "processes"], ["--ranks-as", "threads"], ["--ranks-as", "tasks"]]:
            with self.subTest(words):
                self.stands_still("--backends", OWN, "--ranks", 2, *words)

    @support.at_night
    def test_a_whole_job_of_references_that_stands_still_goes_on(self):
        self.stands_still("--backends", "all", "--ranks", 2)

    @support.at_night
    def test_a_whole_job_between_hosts_that_stands_still_goes_on(self):
        self.stands_still("--backends", OWN, "--ranks", 2, "--transports", "tcp")

    @support.needs_openmpi
    def test_a_whole_job_of_mpirun_that_stands_still_goes_on(self):
        self.stands_still("--backends", OWN, program="mpirun.openmpi", start=["--allow-run-as-root", "--oversubscribe", "-np", 2, support.PROGRAM])

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
        result = self.stopped()
        named = re.search(r"\n  rank 0 .* operation \d+ \((all_reduce/\S+/isolated)\)", result.err)
        self.assertIsNotNone(named, result)
        again = support.run("run", "--case", named[1], "--budget", "200ms", "--require")
        self.assertEqual(again.code, 0, again)

    def test_a_rank_that_stands_still_is_reported_with_all_others(self):
        """Once, by the launcher: where each rank is, and where each communicator."""
        for _ in range(8):  # between two operations nobody waits in one
            with support.Run("run", "all_reduce", "--backends", OWN, "--ranks", 3, "--sizes", "1M:64M:+512K",
                             "--cadence", "streaming", "--check", "none", "--no-limit", "--budget", "100s", "--timeout", "1s", "--csv",
                             "{folder}/rows.csv") as run:
                pids = run.wait_for_ranks(3)
                run.wait_for_rows(1)
                time.sleep(0.2)
                os.kill(pids[1], signal.SIGSTOP)
                result, seconds = end_of(run, STOP_LIMIT)
            self.assertIsNotNone(result, f"still there after {seconds} s")
            self.assertEqual(result.code, CRASH, result)
            for rank, pid in pids.items():
                self.assertEqual(result.err.count(f"\n  rank {rank} (pid {pid}): "), 1, result)
            self.assertIn(f"\n  rank 1 (pid {pids[1]}): stopped (state T), ", result.err)
            if "; its communicator " in result.err:
                break
        self.assertRegex(result.err, r"\n  rank [02] \(pid \d+\): in operation \d+ \(all_reduce/\S+/streaming\) for 1\.\d s; its "
                                     r"communicator has completed operation \d+ \(all_reduce \w+ of \d+ float, sum.*\), is in "
                                     r"operation \d+ \(.*\), step \d+ of \d+: waits for .* rank \d")

    def flight(self, folder):
        """What each rank's file has, once one of three is stopped in a sweep of own collectives."""
        with support.Run(*HANGS, "--ranks", 3, "--flight", folder) as run:
            pids = run.wait_for_ranks(3)
            run.wait_for_rows(1)
            os.kill(pids[1], signal.SIGSTOP)
            result, seconds = end_of(run, STOP_LIMIT)
        self.assertIsNotNone(result, f"still there after {seconds} s")
        self.assertEqual(result.code, CRASH, result)
        self.assertIn(f"# the last operations of 3 ranks are in '{folder}': python3 -m torch", result.err)
        if shutil.which("eu-stack"):
            self.assertIn(f"# the stacks of 3 processes are in '{folder}/stacks.txt'\n", result.err)
            stacks = (folder / "stacks.txt").read_text()
            self.assertEqual(ranks_with_stacks(stacks), ["0", "1", "2"], stacks)
        return [flight_record(folder, rank) for rank in range(3)]

    def test_the_last_operations_are_written_for_fr_trace(self):
        with tempfile.TemporaryDirectory(prefix="tutti-flight-") as parent:
            files = self.flight(pathlib.Path(parent) / "made" / "here")
        for record in files:
            self.has_last_calls(record)

    @support.at_night
    def test_fr_trace_reads_them(self):
        probe = [sys.executable, "-c", "import torch.distributed.flight_recorder.fr_trace"]
        if subprocess.run(probe, capture_output=True).returncode != 0:
            self.skipTest("there is no torch with torch.distributed.flight_recorder")
        with tempfile.TemporaryDirectory(prefix="tutti-flight-") as parent:
            folder = pathlib.Path(parent) / "flight"
            self.flight(folder)
            done = subprocess.run([*probe[:1], "-m", "torch.distributed.flight_recorder.fr_trace", folder, "--prefix",
                                   "tutti_rank_"], capture_output=True, text=True, timeout=support.patience(120))
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("collective: nccl:all_reduce", done.stdout + done.stderr)

    def test_the_one_process_of_threads_and_tasks(self):
        for ranks_as in ["threads", "tasks"]:
            with self.subTest(ranks_as), sweep(OWN, 3, "--ranks-as", ranks_as) as run:
                pid = run.wait_for_ranks(1)[0]
                time.sleep(0.3)
                run.note_memory()
                os.kill(pid, signal.SIGKILL)
                result, seconds = end_of(run, KILL_LIMIT)
                self.assertIsNotNone(result, f"still there after {seconds} s\n{run.texts()}")
                self.assertEqual(check_end(run, result, 0, pid, KILL.words), [], result)

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


class FlightOfHosts(Agents, Joined, Flight):
    """After a hang of ranks on two hosts, each host tells of its own ranks."""

    def after_a_hang(self, folder, victim, code=CRASH, meanwhile=lambda run: None, **options):
        """What is printed once the process that `victim` finds is stopped."""
        with self.on("a:2,b:1", *HANGS, "--flight", folder, **options) as run:
            ranks = run.wait_for_ranks(3)
            run.wait_for_rows(1)
            run.note_memory()
            os.kill(victim(run, ranks), signal.SIGSTOP)
            meanwhile(run)
            result, seconds = end_of(run, 30)
            self.assertIsNotNone(result, f"still there after {seconds} s\n{run.texts()}")
            self.assertEqual(result.code, code, result)
            self.nothing_is_left(run)
        return result.err

    def test_the_last_operations_of_both_are_written(self):
        with tempfile.TemporaryDirectory(prefix="tutti-flight-") as parent:
            folder = pathlib.Path(parent) / "flight"
            printed = self.after_a_hang(folder, lambda run, ranks: ranks[2])
            self.assertRegex(printed, r"rank 2 on b \(pid \d+\) is stopped \(state T\)")
            self.assertIn(f"# the last operations of 3 ranks are in '{folder}': python3 -m torch.distributed.flight_recorder.fr_trace "
                          f"{folder} --prefix tutti_rank_\n", printed)
            self.assertNotIn("# without the last operations", printed)
            for rank in range(3):
                self.has_last_calls(flight_record(folder, rank))
            if shutil.which("eu-stack"):
                self.assertIn(f"# the stacks of 3 processes are in '{folder}/stacks.txt'\n", printed)
                stacks = (folder / "stacks.txt").read_text()
                self.assertEqual(ranks_with_stacks(stacks), ["0", "1", "2"], stacks)

    def test_an_interrupt_ends_it_while_stacks_are_read(self):
        with tempfile.TemporaryDirectory(prefix="tutti-flight-") as parent:
            begun, reader = pathlib.Path(parent) / "begun", pathlib.Path(parent) / "eu-stack"
            reader.write_text(f"#!/bin/sh\n: > {begun}\nexec sleep 60\n")
            reader.chmod(0o755)

            def interrupt(run):
                end = time.monotonic() + support.patience(20)
                while not begun.exists() and time.monotonic() < end:
                    time.sleep(0.01)
                run.process.send_signal(signal.SIGINT)

            printed = self.after_a_hang(pathlib.Path(parent) / "flight", lambda run, ranks: ranks[2], code=130, meanwhile=interrupt,
                                        environment={"PATH": f"{parent}:{os.environ['PATH']}"})
        self.assertRegex(printed, r"(?m)^tutti: interrupted by signal 2 \(Interrupt\)$")

    def test_ranks_of_a_starter_are_refused(self):
        result, = self.ends(self.start([2], "run", "barrier", "--flight", "{folder}/flight", only=[0]))
        self.assertEqual(result.code, 2, result)
        self.assertRegex(result.err, r"(?m)^tutti: --flight: ranks have to be started by tutti, and .+ has started these$")

    @support.at_night
    def test_a_host_that_does_not_answer_is_named_and_its_ranks_have_no_file(self):
        with tempfile.TemporaryDirectory(prefix="tutti-flight-") as parent:
            folder = pathlib.Path(parent)
            (folder / "tutti_rank_2").write_text("of an older job\n")
            printed = self.after_a_hang(folder, lambda run, ranks: self.machine(run, 1))
            self.assertRegex(printed, r"(?m)# without the last operations of host b \(rank 2\): it has (not answered within|said nothing for) "
                                      r"\d+\.\d s$")
            self.assertIn(f"# the last operations of 2 of 3 ranks are in '{folder}': python3 -m torch.distributed.flight_recorder.fr_trace "
                          f"{folder} --prefix tutti_rank_ --allow-incomplete-ranks\n", printed)
            self.assertFalse((folder / "tutti_rank_2").exists())
            for rank in range(2):
                self.has_last_calls(flight_record(folder, rank))
            if shutil.which("eu-stack"):
                self.assertIn(f"# the stacks of 2 of 3 processes are in '{folder}/stacks.txt'\n", printed)
                stacks = (folder / "stacks.txt").read_text()
                self.assertEqual(ranks_with_stacks(stacks), ["0", "1"], stacks)
                self.assertIn("rank 2\nnot read: its host has not told it\n", stacks)


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
