# SPDX-License-Identifier: Apache-2.0
"""`tutti accept` on several hosts, through an agent that only runs the command: their processes stay while groups come
and go over them, a group that fails ends alone, a host that is lost is named, and nothing is left."""
import json
import os
import pathlib
import signal
import tempfile
import time
import unittest

import joined_test
import support

# The processes of a host say in their environment which one they are of.
AGENT = """#!/bin/sh
NODE=$1
export NODE
shift
if [ "$NODE" = absent ]; then echo "no route to $NODE"; exit 255; fi
exec "$@"
"""
CRASH = 5
INTERRUPTED = 130


class AcceptedHosts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="tutti-agents-")
        cls.addClassCleanup(folder.cleanup)
        cls.agent = pathlib.Path(folder.name) / "agent"
        cls.agent.write_text(AGENT)
        cls.agent.chmod(0o755)

    def on(self, hosts, *words, stages="pairs"):
        return support.Run("accept", "--hosts", hosts, "--agent", self.agent, "--interface", "127.0.0.1", "--stages", stages,
                           "--margin", "50%", "--lines", "{folder}/lines", *words)

    def processes(self, run, role):
        """Pids by host of the processes of this run: of "host", or of "rank"."""
        found = {}
        for pid in sorted(run.living(), reverse=True):  # what a process has forked looks like it for a moment
            if support.command_of(pid)[1:] == [role] and (node := support.environment_of(pid).get("NODE")):
                found[node] = pid
        return found

    def written(self, run):
        """What has been written of tests so far."""
        path = run.path / "lines"
        lines = path.read_text().split("\n")[:-1] if path.exists() else []
        return [line for line in map(json.loads, lines) if "group" in line]

    def until(self, run, what, holds, limit=60):
        end = time.monotonic() + support.patience(limit)
        while time.monotonic() < end and run.process.poll() is None:
            if value := holds():
                return value
            time.sleep(0.005)
        raise AssertionError(f"{what}: {self.written(run)}\n{run.texts()}")

    def after(self, run, plays):
        """Returns once so many plays are over."""
        self.until(run, f"{plays} plays", lambda: {line["play"] for line in self.written(run)} >= set(range(plays)))

    def ranks_of(self, run, node):
        """The rank on that host, and its partner's host, while both play."""
        def find():
            ranks = self.processes(run, "rank")
            return ranks if len(ranks) == 4 and node in ranks else None
        return self.until(run, f"ranks on all hosts, {node} among them", find)

    def stop(self, run):
        """^C, and what became of the run."""
        run.process.send_signal(signal.SIGINT)
        result = run.wait(20)
        self.assertEqual(run.left_behind(), [], result)
        return result

    def failed(self, run):
        return [line for line in self.written(run) if line["ending"] not in ("measured", "interrupted")]

    def test_the_processes_of_hosts_stay_and_disjoint_pairs_play_at_once(self):
        with self.on("a,b,c,d") as run:
            self.after(run, 1)
            first = self.processes(run, "host")
            self.assertEqual(sorted(first), ["a", "b", "c", "d"])
            self.after(run, 3)
            self.assertEqual(self.processes(run, "host"), first)
            result = self.stop(run)
            self.assertEqual(result.code, INTERRUPTED, result)
            of_first = [line["group"] for line in self.written(run) if line["play"] == 0 and line["cell"].startswith("bandwidth/")]
            self.assertEqual(sorted(node for group in of_first for node in group), ["a", "b", "c", "d"], "two pairs")
            self.assertEqual(self.failed(run), [])

    def ends_alone(self, number, ending, words):
        with self.on("a,b,c,d") as run:
            self.after(run, 1)
            hosts = self.processes(run, "host")
            os.kill(self.ranks_of(run, "a")["a"], number)
            failed = self.until(run, "a test that fails", lambda: self.failed(run))
            self.assertEqual({line["ending"] for line in failed}, {ending}, failed)
            self.assertIn("a", failed[0]["group"])
            self.assertIn(words, failed[0]["detail"])
            play = failed[0]["play"]
            beside = [line for line in self.written(run) if line["play"] == play and "a" not in line["group"]
                      and not set(line["group"]) & set(failed[0]["group"])]
            self.assertEqual({line["ending"] for line in beside}, {"measured"}, beside)
            # The host itself is well: it plays again.
            self.until(run, "another test on a", lambda: [line for line in self.written(run) if line["play"] > play
                                                          and "a" in line["group"] and line["ending"] == "measured"])
            self.assertEqual(self.processes(run, "host"), hosts)
            self.stop(run)

    def test_a_pair_whose_rank_is_killed_ends_alone(self):
        self.ends_alone(signal.SIGKILL, "failed", "was killed by signal 9")

    def test_a_pair_whose_rank_is_stopped_ends_alone(self):
        self.ends_alone(signal.SIGSTOP, "hung", "is stopped")

    def test_a_node_whose_rank_is_killed_once_while_it_plays_alone_is_well(self):
        with self.on("a,b", stages="alone") as run:
            os.kill(self.until(run, "a rank on a", lambda: self.processes(run, "rank").get("a")), signal.SIGKILL)
            result = run.wait(60)
            self.assertEqual([line["group"] for line in self.failed(run)], [["a"]], result)
            self.assertNotRegex(result.out, r"(?m)^  a +FAIL dead")
            self.assertEqual(run.left_behind(), [], result)

    def test_a_host_that_dies_is_named_and_the_others_go_on(self):
        with self.on("a,b,c,d") as run:
            self.after(run, 1)
            self.ranks_of(run, "d")
            os.kill(self.processes(run, "host")["d"], signal.SIGKILL)
            failed = self.until(run, "a test that fails", lambda: self.failed(run))
            self.assertIn("host d", failed[0]["detail"])
            self.assertIn("is lost", failed[0]["detail"])
            play = failed[0]["play"]
            self.until(run, "later tests", lambda: [line for line in self.written(run) if line["play"] > play
                                                    and line["ending"] == "measured"])
            self.assertEqual([line for line in self.written(run) if line["play"] > play and "d" in line["group"]
                              and line["ending"] == "measured"], [])
            self.stop(run)

    def test_a_host_that_does_not_come_is_untested_and_the_others_play(self):
        with self.on("a,absent,b", "--budget", "4s") as run:
            result = run.wait(60)
            self.assertRegex(result.out, r"absent +ERROR")
            self.assertRegex(result.out, r"# init, from the start of the processes to their first collective: \S+ s \(median of \d+ groups\), \S+ s at most: (a, b|b, a)\n")
            self.assertIn("exited with code 255 before it had come: no route to absent", result.out)
            self.assertEqual({tuple(line["group"]) for line in self.written(run)}, {("a", "b")})
            self.assertEqual(self.failed(run), [])
            self.assertEqual(run.left_behind(), [], result)

    def test_all_nodes_soak_and_train_and_the_inventory_names_what_differs(self):
        with self.on("a,b,c", "--soak", "1s", "--json", "{folder}/json", stages="inventory,soak,job") as run:
            result = run.wait(60)
            self.assertEqual(result.code, 0, result)
            self.assertEqual({line["stage"]: line["group"] for line in self.written(run)},
                             {"soak": ["a", "b", "c"], "job": ["a", "b", "c"]})
            self.assertRegex(result.out, r"# soak: [\d,]+ operations on all nodes, each result verified")
            self.assertRegex(result.out, r"# job: a training on all nodes, [\d.]+ steps a second, every sum of gradients verified")
            self.assertIn("# inventory: a, b and c are one machine\n", result.out)
            told = json.loads((run.path / "json").read_text())
            self.assertIn("a, b and c are one machine", [note["what"] for note in told["inventory"]])
            self.assertEqual(run.left_behind(), [], result)

    def test_a_soak_whose_rank_is_killed_is_told_with_its_nodes(self):
        with self.on("a,b", stages="soak") as run:
            victim = self.until(run, "a rank on a", lambda: self.processes(run, "rank").get("a"))
            os.kill(victim, signal.SIGKILL)
            result = run.wait(60)
            self.assertEqual(result.code, CRASH, result)
            self.assertRegex(result.out, r"FAIL\. [ab] and [ab] failed when they played together: .*killed by signal 9")
            self.assertEqual(run.left_behind(), [], result)

    @support.at_night
    def test_every_stage_on_four_hosts(self):
        """But pairs, which other tests play: hosts that share two cores make all nodes suspects, and their repeats do not end."""
        for system in ["tutti", "gloo"]:
            with self.subTest(system), self.on("a,b,c,d", "--soak", "3s", "--message-size", "64K", "--backend", system,
                                               stages="alone,shifts,rings,groups,soak,job") as run:
                result = run.wait(600)
                self.assertIn(result.code, [0, 4, 6], result)  # hosts that share two cores are unsteady
                stages = {line["stage"] for line in self.written(run)}
                self.assertEqual(stages - {"configuration"}, {"alone", "shifts", "rings", "groups", "soak", "job"})
                self.assertEqual(self.failed(run), [])
                self.assertRegex(result.out, r"(?m)^  4 +\S+ us ")
                self.assertEqual(run.left_behind(), [], result)

    @support.at_night
    def test_of_sixty_four_hosts_one_dies_and_the_others_go_on_to_a_verdict(self):
        with self.on("n[1-64]", "--message-size", "4K", "--budget", "240s", "--json", "{folder}/json") as run:
            self.until(run, "64 hosts", lambda: len(self.processes(run, "host")) == 64, limit=120)
            self.after(run, 1)
            os.kill(self.processes(run, "host")["n5"], signal.SIGKILL)
            result = run.wait(400)
            self.assertEqual(result.code, CRASH, result)
            told = json.loads((run.path / "json").read_text())
            dead = {name for finding in told["findings"] if finding["verdict"] == "FAIL" for name in finding["nodes"]}
            self.assertEqual(dead, {"n5"}, result)
            later = [line for line in self.written(run) if line["play"] > 1 and "n5" not in line["group"]]
            self.assertGreater(len([line for line in later if line["ending"] == "measured"]), 30, result)
            self.assertEqual(run.left_behind(), [], result)

    def test_a_killed_launcher_leaves_nothing(self):
        with self.on("a,b,c,d") as run:
            self.ranks_of(run, "a")
            run.note_memory()
            run.process.kill()
            run.process.wait()
            end = time.monotonic() + support.patience(5)
            while run.left_behind() and time.monotonic() < end:
                time.sleep(0.05)
            self.assertEqual(run.left_behind(), [])


    def test_rails_are_resolved_on_each_host_and_one_that_is_not_there_is_named(self):
        with self.on("a,b", "--rails", "127.0.0.0/8,no-such0,lo", "--budget", "3s", "--json", "{folder}/json") as run:
            result = run.wait(60)
            self.assertEqual(result.code, 3, result)
            self.assertRegex(result.out, r"ERROR: rail no-such0: a is not tested: 'no-such0' is neither an interface of this machine nor its address")
            self.assertEqual({line["rail"] for line in self.written(run)}, {"127.0.0.0/8"})
            self.assertEqual(self.failed(run), [])
            rails = {rail["rail"]: {node["verdict"] for node in rail["nodes"]} for rail in json.loads((run.path / "json").read_text())["rails"]}
            self.assertEqual((rails["no-such0"], rails["lo"]), ({"ERROR"}, {"ERROR"}))
            self.assertIn("rails '127.0.0.0/8' and 'lo' are both in the network 127.0.0.0/8: the kernel sends over one of them", result.out)
            self.assertEqual(run.left_behind(), [], result)


class Started(joined_test.Joined):
    """A starter has started a process on each host, as srun, mpirun and torchrun do."""

    def test_the_first_process_of_each_host_stays_there_and_the_others_end(self):
        path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="tutti-lines-"))) / "lines"
        slurm = {0: "s0.s1.n0", 2: "s0.s2.n2", 3: "s0.s1.n3"}  # of the first process on each host
        runs = self.start([2, 1, 1], "accept", "--stages", "pairs", "--margin", "50%", "--budget", "4s", "--lines", path,
                          own=lambda rank: {"SLURM_TOPOLOGY_ADDR": slurm.get(rank), "SLURM_TOPOLOGY_ADDR_PATTERN": "switch.switch.node"})
        results = self.ends(runs)
        self.assertEqual([result.code for result in results[1:]], [0] * 3, results)
        rows = [line.split() for line in results[0].out.splitlines() if line.startswith("  ")]
        self.assertEqual([row[-1] for row in rows], ["A", "B", "A"], results[0])
        self.assertNotIn("Leaves are not known", results[0].out)
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        self.assertEqual(len(lines[0]["nodes"]), 3)
        tests = [line for line in lines if "group" in line]
        self.assertTrue(tests, results)
        self.assertEqual({line["ending"] for line in tests}, {"measured"}, tests)
        self.assertEqual([result.out + result.err for result in results[1:]], [""] * 3)
        self.assertEqual([run.left_behind() for run in runs], [[]] * 4)

    def with_inventory(self, blocking="", budget="5s", **how):
        """The processes of three hosts, one on each, and the path of the report."""
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="tutti-inventory-")))
        (folder / "suite.toml").write_text(f'[[stage]]\nname = "inventory"\n{blocking}\n[[stage]]\nname = "alone"\n')
        runs = self.start([1, 1, 1], "accept", "--suite", folder / "suite.toml", "--margin", "50%", "--budget", budget, "--json",
                          folder / "json", **how)
        return runs, folder / "json"

    def test_a_host_that_differs_is_named_and_kept_out(self):
        for blocking, verdict in [("", "PASS|UNTESTED|UNDECIDED|SUSPECT|FAIL"), ('blocking = ["cores"]', "ERROR")]:
            with self.subTest(blocking):
                runs, path = self.with_inventory(blocking=blocking, enter=lambda rank, command: [
                    "taskset", "-c", str(min(os.sched_getaffinity(0))), *command] if rank == 2 else command)
                results = self.ends(runs)
                told = json.loads(path.read_text())
                first, second, third = names = [node["node"] for node in told["nodes"]]
                notes = [note["what"] for note in told["inventory"]]
                cores, all_cores = len(os.sched_getaffinity(0)), os.cpu_count()
                usual = f"{cores}" if cores == all_cores else f"{cores} of {all_cores}"
                self.assertIn(f"cores differs: {usual} on {first} and {second}; 1 of {all_cores} on {third}", notes)
                self.assertIn(f"{first}, {second} and {third} are one machine", notes)
                self.assertEqual([note for note in notes if "clock" in note or "does not reach" in note or "it took" in note], [])
                self.assertIn("# inventory: cores differs: ", results[0].out)
                self.assertRegex(results[0].out, rf"(?m)^  {third} +({verdict})")
                kept_out = f"its cores is 1 of {all_cores}: most hosts have {usual}"
                self.assertEqual(kept_out in results[0].out, bool(blocking), results[0])
                self.assertEqual([name for name in names if f"host {name} is not examined" in results[0].out], [])
                self.assertEqual([run.left_behind() for run in runs], [[]] * 3)

    def test_without_the_stage_no_host_is_examined(self):
        results = self.ends(self.start([1, 1], "accept", "--stages", "alone", "--margin", "50%", "--budget", "1s"))
        self.assertNotIn("# inventory", results[0].out)

    def examiner_of(self, run):
        """The process by which a host's process looks at its host."""
        end = time.monotonic() + support.patience(30)
        while time.monotonic() < end and run.process.poll() is None:
            for pid in run.living():
                if support.command_of(pid)[1:] == ["doctor", "--answer"]:
                    return pid
            time.sleep(0.005)
        raise AssertionError(f"no examiner: {run.texts()}")

    def slow_on_the_second(self):
        """A reference takes all its time there, and so does the examiner."""
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="tutti-backends-"))
        name = "libtutti_backend_asleep.so"
        (pathlib.Path(folder) / name).symlink_to(pathlib.Path(os.environ["TUTTI_LAZY_BACKENDS"]) / name)
        return lambda rank: {"TUTTI_BACKENDS": folder} if rank == 1 else {}

    def test_an_examiner_that_is_killed_is_a_note(self):
        runs, path = self.with_inventory(own=self.slow_on_the_second())
        os.kill(self.examiner_of(runs[1]), signal.SIGKILL)
        results = self.ends(runs)
        told = json.loads(path.read_text())
        second = told["nodes"][1]["node"]
        notes = [note["what"] for note in told["inventory"]]
        self.assertIn(f"host {second} is not examined: its examiner was killed by signal 9: it said nothing", notes, results)
        self.assertEqual(len([note for note in notes if note.endswith("are one machine")]), 1, notes)
        self.assertNotEqual(told["nodes"][1]["verdict"], "ERROR")
        self.assertEqual([run.left_behind() for run in runs], [[]] * 3)

    @support.at_night
    def test_a_host_that_stops_while_it_is_examined_is_not_waited_for(self):
        runs, path = self.with_inventory(budget="30s", own=self.slow_on_the_second())
        self.examiner_of(runs[1])
        os.kill(runs[1].process.pid, signal.SIGSTOP)
        first, _, third = runs
        self.ends([first, third])
        os.kill(runs[1].process.pid, signal.SIGCONT)
        self.ends(runs[1:2])
        told = json.loads(path.read_text())
        second = told["nodes"][1]["node"]
        self.assertIn(f"host {second} is not examined: it has sent nothing within 10 s", [note["what"] for note in told["inventory"]])
        self.assertEqual(told["nodes"][1]["verdict"], "FAIL")
        self.assertEqual([run.left_behind() for run in runs], [[]] * 3)

    def test_one_host_is_refused(self):
        results = self.ends(self.start([2], "accept"))
        self.assertEqual(results[0].code, 2, results)
        self.assertIn("has started 2 processes on one host", "".join(result.err for result in results))


if __name__ == "__main__":
    unittest.main()
