# SPDX-License-Identifier: Apache-2.0
"""Busy threads beside the ranks: where they are, when they end, and what a row, the table, a comparison and the gate make of them."""
import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

import support
from machines_test import Agents

SMALL = ["run", "all_reduce", "--ranks", "2", "--sizes", "64", "--no-limit", "--backends"]
FEW = [*SMALL, "tutti", "--iterations", "16"]
LONG = [*SMALL, "tutti", "--iterations", "1000000", "--budget"]


def crowd_of(pid):
    """Thread -> the cores that it may run on, of the process's threads that are a crowd."""
    found = {}
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError):
            if (task / "comm").read_text() == "tutti_crowd\n":
                found[int(task.name)] = os.sched_getaffinity(int(task.name))
    return found


class Crowd(Agents):
    def measure(self, *arguments):
        with support.Run(*arguments, "--csv", "{folder}/rows.csv", "--json", "{folder}/run.json") as one:
            result = one.wait(60)
            self.assertEqual(result.code, 0, result)
            self.assertEqual(one.left_behind(), [])
            return result, one.rows()[1], support.read_json(one.path / "run.json")["rows"], (one.path / "rows.csv").read_text()

    def wait_for_crowd(self, run, number):
        """Its threads by process, once there are so many."""
        end = time.monotonic() + support.patience(30)
        while time.monotonic() < end and run.process.poll() is None:
            found = {pid: crowd for pid in run.living() if (crowd := crowd_of(pid))}
            if sum(map(len, found.values())) == number:
                return found
            time.sleep(0.01)
        raise AssertionError(f"{number} threads were not there: {found}\n{run.texts()}")

    def test_it_is_a_condition_of_the_row_the_table_and_comparisons(self):
        result, rows, of_json, crowded = self.measure(*FEW, "--crowd", "3")
        self.assertEqual([(row["verdict"], row["crowd"]) for row in rows], [("ok", "3")], result)
        self.assertEqual([row["crowd"] for row in of_json], ["3"])
        self.assertIn("# measured with 3 busy threads beside the ranks\n", result.out)
        for words in ([], ["--crowd", "0"]):
            result, usual_rows, of_json, usual = self.measure(*FEW, *words)
            self.assertEqual([(row["case"], row["crowd"]) for row in usual_rows], [(rows[0]["case"], "")])
            self.assertEqual([row["crowd"] for row in of_json], [None])
            self.assertNotIn("busy threads", result.out)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            (path / "crowded.csv").write_text(crowded)
            (path / "usual.csv").write_text(usual)
            compared = support.run("compare", path / "usual.csv", path / "crowded.csv")
            self.assertEqual(compared.code, 3, compared)
            self.assertIn("under usual conditions, and under 3 busy threads beside the ranks", compared.out)
            (path / "suite.toml").write_text('cells = ["all_reduce/shm/float/sum/P2.processes/none/64B/out/private/isolated"]\n')
            gated = support.run("gate", "--baseline", path / "crowded.csv", "--suite", path / "suite.toml", "--cell-time", "20ms")
            self.assertEqual(gated.code, 3, gated)
            self.assertIn("with crowd '3 threads', a gate measures with 'none'", gated.out)

    def test_a_row_is_repeated_by_its_case(self):
        _, rows, _, _ = self.measure(*FEW, "--crowd", "2")
        _, again, _, _ = self.measure("run", "--case", rows[0]["case"], "--crowd", "2", "--no-limit", "--iterations", "16")
        self.assertEqual([(row["case"], row["crowd"], row["verdict"]) for row in again], [(rows[0]["case"], "2", "ok")])

    def test_its_threads_are_in_one_process_on_the_cores_of_the_ranks(self):
        for kind in ("processes", "threads", "tasks"):
            with self.subTest(kind), support.Run(*LONG, "60s", "--ranks-as", kind, "--crowd", "5") as run:
                ranks = run.wait_for_ranks(2 if kind == "processes" else 1)
                found = self.wait_for_crowd(run, 5)
                self.assertEqual(list(found), [ranks[0]])
                if kind != "threads":  # whose main thread is no rank
                    cores = set.union(*(os.sched_getaffinity(pid) for pid in ranks.values()))
                    self.assertEqual(list(found[ranks[0]].values()), [cores] * 5)
                run.process.terminate()
                run.wait(20)
                self.assertEqual(run.left_behind(), [])

    @support.needs_openmpi
    def test_there_is_one_beside_the_ranks_of_a_library(self):
        with support.Run(*SMALL, "openmpi", "--iterations", "1000000", "--budget", "60s", "--crowd", "2") as run:
            ranks = run.wait_for_ranks(2)
            self.assertEqual(list(self.wait_for_crowd(run, 2)), [ranks[0]])

    def test_every_host_has_one(self):
        with self.on("a:2,b:1", "run", "all_reduce", "--sizes", "64", "--no-limit", "--iterations", "1000000", "--budget", "60s",
                     "--crowd", "3") as run:
            found = self.wait_for_crowd(run, 6)
            ranks = run.wait_for_ranks(3)
            self.assertEqual({pid: len(threads) for pid, threads in found.items()}, {ranks[0]: 3, ranks[2]: 3})

    def test_nothing_outlives_the_launcher(self):
        with support.Run(*LONG, "60s", "--crowd", "4") as run:
            self.wait_for_crowd(run, 4)
            run.note_memory()
            run.process.kill()
            run.process.wait()
            self.assertEqual([line for line in run.left_behind() if line.startswith("process ")], [])

    def test_the_load_of_others_is_told_nevertheless(self):
        cores = sorted(os.sched_getaffinity(0))[:2]
        busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"],
                                 preexec_fn=lambda: os.sched_setaffinity(0, cores)) for _ in range(2 * len(cores))]
        try:
            _, rows, _, _ = self.measure(*LONG, "1500ms", "--crowd", "1")
        finally:
            for process in busy:
                process.kill()
                process.wait()
        self.assertIn("load", rows[0]["disturbed"])

    def test_numbers_that_are_none(self):
        for value, nearest in (("65", "64"), ("-1", "0"), ("two", "0"), ("1.5", "0"), ("99999999999", "64")):
            result = support.run(*FEW, "--crowd", value)
            self.assertEqual(result.code, 2, result)
            self.assertIn(f"--crowd: '{value}' is not a number of busy threads: a whole number from 0 to 64: did you mean '{nearest}'?",
                          result.err)


if __name__ == "__main__":
    unittest.main()
