# SPDX-License-Identifier: Apache-2.0
"""Ranks that are processes with a GPU each (`--transports cuda`): on the double of CUDA, whose processes open each other's
memory, and on threads that stand for GPUs. What is refused, and what is left when a rank is killed."""
import json
import os
import pathlib
import signal
import unittest

import support
from trials import CRASH, KILL_LIMIT

USAGE, ENVIRONMENT = 2, 3
DOUBLES = pathlib.Path(os.environ["TUTTI_BUILD"]) / "doubles"
GPUS = {"TUTTI_CUDART": str(DOUBLES / "libcudart.so"), "TUTTI_TRANSPORTS": str(DOUBLES / "kernels"), "TUTTI_DOUBLE_DEVICES": "3"}
HAS_DOUBLES = pathlib.Path(GPUS["TUTTI_TRANSPORTS"]).exists()
EACH = ["--transports", "cuda"]
TEAMS = [*EACH, "--device", "host"]
FILES = ["--csv", "{folder}/rows.csv", "--json", "{folder}/record.json"]
LITTLE = ["--dtypes", "int32", "--ops", "sum"]


@unittest.skipUnless(HAS_DOUBLES, "no double of CUDA is built")
class OnGpus(unittest.TestCase):
    def test_rows_and_what_the_processes_do_to_each_other(self):
        before = support.shared_memory()
        with support.Run("run", "all_reduce", "barrier", *EACH, "--backends", "tutti", "--ranks", "2", "--sizes", "8,4096", "--budget",
                         "4s", *FILES, environment={**GPUS, "TUTTI_DOUBLE_LOG": "{folder}/log"}) as run:
            result = run.wait(60)
            self.assertEqual(result.code, 0, result)
            self.assertEqual([left for left in run.left_behind() if not left.endswith("log")], [])
            _, rows = run.rows()
            self.assertEqual(support.differences(rows, support.read_json(run.path / "record.json")["rows"]), [])
            log = (run.path / "log").read_text().splitlines()
        self.assertEqual([(row["transport"], row["ranks_as"], row["verdict"]) for row in rows], [("cuda", "processes", "ok")] * 3)
        self.assertEqual({row["memory"] for row in rows if row["collective"] == "all_reduce"}, {"gpu"})
        self.assertEqual({row["marks"].split("; ")[-1] for row in rows if row["collective"] == "all_reduce"}, {"from the cost formula"})
        self.assertEqual(sorted(line for line in log if line.startswith("opened")), ["opened 0 on 1", "opened 1 on 0"])
        for owner, other in [(0, 1), (1, 0)]:
            self.assertLess(log.index(f"closed {owner} on {other}"), log.index(f"freed {owner}"), "it was freed while it was open")
        self.assertEqual(support.abandoned_shared_memory(before), set())

    def test_collectives_are_right(self):
        with support.Run("check", "all_reduce", "all_gather", "broadcast", "pingpong", "all_to_all_v", "barrier", *EACH, "--ranks", "3",
                         *LITTLE, "--csv", "{folder}/rows.csv", environment=GPUS) as run:
            result = run.wait(200)
            self.assertEqual(result.code, 0, result)
            rows = [row for row in run.rows()[1] if row["buffers"] != "shared"]
        self.assertGreater(len(rows), 100)
        self.assertEqual({row["verdict"] for row in rows}, {"ok"})

    def refused(self, said, *words, **settings):
        ranks = words or ["--ranks", "2"]
        result = support.run("run", "all_reduce", *EACH, "--backends", "tutti", "--sizes", "8", *ranks, environment={**GPUS, **settings})
        self.assertEqual(result.code, ENVIRONMENT, result)
        self.assertIn(said, result.err)

    def test_two_processes_on_one_gpu(self):
        self.refused("rank 0 and rank 1 are processes on one GPU, 0000:00:00.0", TUTTI_DOUBLE_PLACES="1")
        self.refused("--ranks-as blocks runs several ranks on one GPU", TUTTI_DOUBLE_PLACES="1")
        self.refused("GPU 3 is out of range: this process has 3 GPUs (CUDA_VISIBLE_DEVICES is", "--ranks", "4")
        self.refused("each process takes one of its own; --ranks-as blocks runs several ranks on one GPU", TUTTI_DOUBLE_DEVICES="1")

    def test_gpus_that_cannot_open_each_others_memory(self):
        self.refused("(Double 0) cannot address the memory of GPU 0000:01:00.0, where other ranks lie", TUTTI_DOUBLE_PEERS="0")
        self.refused("cannot open memory of another process on GPU 0000:01:00.0: cudaIpcOpenMemHandle failed", TUTTI_DOUBLE_OFFERS="0")

    def test_why_it_cannot_be_used_is_said_by_the_list_and_before_anything_starts(self):
        for said, settings in [("no NVIDIA driver is loaded", {"TUTTI_DOUBLE_DRIVER": "0"}),
                               ("the NVIDIA driver is too old", {"TUTTI_DOUBLE_DRIVER": "11040"}),
                               ("the NVIDIA driver has no GPU for this process", {"TUTTI_DOUBLE_DEVICES": "0"}),
                               ("TUTTI_CUDART names /nowhere.so, which cannot be loaded", {"TUTTI_CUDART": "/nowhere.so"}),
                               ("this build has no kernels", {"TUTTI_TRANSPORTS": "/nowhere"})]:
            listed = support.run("list", "--json", environment={**GPUS, **settings})
            row, = [row for row in json.loads(listed.out)["transports"] if row["name"] == "cuda"]
            self.assertFalse(row["available"])
            self.assertIn(said, row["note"])
            self.refused("tutti: transport cuda: ", **settings)
            self.refused(said, **settings)
        listed = support.run("list", "--json", environment=GPUS)
        row, = [row for row in json.loads(listed.out)["transports"] if row["name"] == "cuda"]
        self.assertEqual((row["available"], row["serves"]), (True, ["processes"]))
        self.assertRegex(row["note"], "; 3 GPUs$")

    def test_a_rank_that_is_killed_is_named_and_nothing_is_left(self):
        before = support.shared_memory()
        with support.Run("run", "all_reduce", *EACH, "--backends", "tutti", "--ranks", "2", "--sizes", "8:64K:+64", "--budget", "100s", *FILES,
                         environment=GPUS) as run:
            pid = run.wait_for_ranks(2)[1]
            run.note_memory()
            run.wait_for_rows(2)
            os.kill(pid, signal.SIGKILL)
            result = run.wait(KILL_LIMIT)
            self.assertEqual(result.code, CRASH, result)
            self.assertRegex(result.err, rf"(?m)^tutti: rank \d \(pid {pid}\) .*was killed by signal 9")
            self.assertEqual({row["verdict"] for row in run.rows()[1]}, {"ok"}, result)
            self.assertEqual(run.left_behind(), [], result)
        self.assertEqual(support.abandoned_shared_memory(before), set())


class OnTeams(unittest.TestCase):
    """Threads of each process stand for its GPU: what is told of it lies in files that the others open."""

    @support.at_night
    def test_collectives_are_right(self):
        result = support.run("check", "all_reduce", "reduce_scatter", "all_to_all", "scan", "gather_v", "barrier", *TEAMS, "--ranks", "2,3",
                             *LITTLE, "--lanes", "2", limit=200)
        self.assertEqual(result.code, 0, result)
        self.assertRegex(result.out, r"(?m)^# check: \d+ cases as processes, \d{2,} ok, 0 wrong, \d+ neither, 0 not run")

    def test_faults_are_found(self):
        result = support.run("check", "all_reduce", "broadcast", "all_to_all_v", "--faults", "all", "--ranks", "3", *TEAMS,
                             limit=200)
        self.assertEqual(result.code, 0, result)
        self.assertRegex(result.out, r"(?m)^# faults: .* as processes, seed 1: \d{2,} caught .*, 0 missed,")

    def test_rows_say_what_stood_for_the_gpu(self):
        with support.Run("run", "all_reduce", *TEAMS, "--backends", "tutti", "--ranks", "2", "--sizes", "8", "--budget", "1s", "--lanes", "2",
                         *FILES) as run:
            result = run.wait(60)
            self.assertEqual(result.code, 0, result)
            row, = run.rows()[1]
        self.assertEqual([row[name] for name in ["verdict", "transport", "device", "lanes", "memory"]], ["ok", "cuda", "host", "2", "host"])

    def test_what_has_no_meaning(self):
        result = support.run("run", "all_reduce", *TEAMS, "--ranks", "2", "--gpus", "2")
        self.assertEqual(result.code, USAGE, result)
        self.assertIn("--gpus: '2' of ranks that have a GPU each: did you mean --ranks 2?", result.err)
        result = support.run("run", "all_reduce", "--ranks", "2", "--device", "host")
        self.assertEqual(result.code, USAGE, result)
        result = support.run("run", "all_reduce", *EACH, "--ranks-as", "threads", "--ranks", "2")
        self.assertEqual(result.code, USAGE, result)
        self.assertIn("transport 'cuda' with threads: did you mean 'local'?", result.err)
        result = support.run("check", "soak", *TEAMS, "--ranks", "2", "--operations", "10")
        self.assertEqual(result.code, ENVIRONMENT, result)
        self.assertIn("a soak sends between single ranks, which processes with a GPU each cannot", result.err)


if __name__ == "__main__":
    unittest.main()
