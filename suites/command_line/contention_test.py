# SPDX-License-Identifier: Apache-2.0
"""Contention: groups of the ranks at once and alone, rows, ids, the table, comparisons, and what is refused."""
import os
import signal
import unittest

import support

FEW = ["--sizes", "4K", "--iterations", "16"]


class Contention(unittest.TestCase):
    def measure(self, *arguments, **options):
        with support.Run("run", *arguments, "--csv", "{folder}/rows.csv", "--json", "{folder}/run.json", **options) as one:
            result = one.wait(120)
            self.assertEqual(result.code, 0, result)
            record = support.read_json(one.path / "run.json")
            self.compared = support.run("compare", one.path / "rows.csv", one.path / "rows.csv")
            return one.rows()[1], record, result

    def test_every_group_has_a_row_alone_and_one_together(self):
        backends = [name for name in ["tutti", "openmpi", "mpich", "gloo"] if name == "tutti" or name in support.BUILT]
        rows, record, result = self.measure("all_reduce", "--groups", "2x2", "--backends", ",".join(backends), *FEW)
        by_backend = {}
        for row in rows:
            by_backend.setdefault((row["backend"], row["launch"]), []).append((row["group"], row["contention"]))
        self.assertEqual({backend for backend, _ in by_backend}, set(backends))
        for whose, places in by_backend.items():
            self.assertEqual(places, [("0", "alone"), ("0", "together"), ("1", "alone"), ("1", "together")], whose)
        for row in rows:
            self.assertEqual((row["verdict"], row["ranks"], row["groups"], row["deal"], row["wrong"]), ("ok", "2", "2x2", "", "0"), row)
            self.assertIn(f"/P4.processes.group{row['group']}of2x2.{row['contention']}/", row["case"])
            self.assertEqual(bool(row["slowdown"]), row["contention"] == "together", row)
            if row["slowdown"]:
                self.assertLessEqual(float(row["slowdown_low"]), float(row["slowdown"]))
                self.assertLessEqual(float(row["slowdown"]), float(row["slowdown_high"]))
        self.assertEqual([row["case"] for row in record["rows"]], [row["case"] for row in rows])
        self.assertRegex(result.out, r"# all_reduce float sum, P=2 processes over shm, .*groups 2x2")
        self.assertRegex(result.out, r"4096  tutti +\S+ +1 .*\(\d\S* to \d\S*\) +ok")
        self.assertEqual(self.compared.code, 0, self.compared)
        self.assertIn("group1of2x2.together", self.compared.out)

    def test_ranks_are_dealt_in_turn_and_run_as_threads(self):
        rows, _, _ = self.measure("broadcast", "--groups", "MOD:2", "--ranks", "3", "--ranks-as", "threads", "--backends", "tutti", *FEW)
        self.assertEqual([(row["group"], row["ranks"], row["verdict"]) for row in rows],
                         [("0", "2", "ok")] * 2 + [("1", "1", "ok")] * 2)

    def test_groups_run_what_they_are_dealt(self):
        rows, _, result = self.measure("all_reduce", "--groups", "3x2", "--beside", "all_to_all:1K,barrier", "--backends", "tutti", *FEW)
        self.assertEqual([(row["group"], row["collective"], row["bytes"], row["verdict"]) for row in rows],
                         [(str(group), name, size, "ok") for group, name, size in
                          [(0, "all_reduce", "4096"), (1, "all_to_all", "1024"), (2, "barrier", "0")] for _ in range(2)])
        deal = "all_reduce-float-sum-4096B-out-private+all_to_all-float-1024B-out-private+barrier"
        self.assertEqual({row["deal"] for row in rows}, {deal})
        self.assertIn("2 barrier", result.out)

    def test_a_stream_and_shared_buffers(self):
        rows, _, _ = self.measure("all_reduce", "--groups", "2x2", "--cadence", "streaming", "--buffers", "shared,private", "--sizes", "4K",
                                  "--budget", "4s", "--backends", "tutti")
        self.assertEqual([(row["buffers"], row["verdict"]) for row in rows], [("shared", "ok")] * 4 + [("private", "ok")] * 4)
        self.assertTrue(all(int(row["operations"]) > 1 for row in rows), rows)

    def test_several_algorithms_and_launches(self):
        rows, _, result = self.measure("all_reduce", "--groups", "2x2", "--algorithms", "ring,one_shot", "--launches", "2", "--backends", "tutti", *FEW)
        self.assertEqual(len(rows), 2 * 2 * 4)
        self.assertEqual({row["algorithm"] for row in rows}, {"ring", "one_shot"})
        self.assertIn("# spread in % of the time", result.out)

    @support.needs_openmpi
    def test_a_system_that_is_wrong_is_wrong_in_its_groups(self):
        with support.Run("run", "all_reduce", "--ops", "min", "--groups", "2x2", "--backends", "max_for_min", *FEW, "--csv", "{folder}/rows.csv",
                         environment={"TUTTI_BACKENDS": os.environ["TUTTI_LAZY_BACKENDS"]}) as one:
            result = one.wait(60)
            self.assertEqual(result.code, 1, result)
            self.assertEqual({row["verdict"] for row in one.rows()[1]}, {"wrong"}, result)

    def test_a_rank_that_is_killed_ends_the_run_and_leaves_nothing(self):
        with support.Run("run", "all_reduce", "--groups", "2x2", "--backends", "tutti", "--sizes", "64K:1M:x2", "--csv", "{folder}/rows.csv") as one:
            ranks = one.wait_for_ranks(4)
            one.wait_for_rows(4)
            one.note_memory()
            os.kill(ranks[3], signal.SIGKILL)
            result = one.wait(60)
            self.assertEqual(result.code, 5, result)
            self.assertIn("rank 3", result.err)
            self.assertEqual(one.left_behind(), [])

    def test_a_group_does_not_run_by_its_id_alone(self):
        name = "all_reduce/tutti.ring/shm/float/sum/P4.processes.group0of2x2.together/none/4096B/out/private/isolated"
        result = support.run("run", "--case", name)
        self.assertEqual(result.code, 2, result)
        self.assertIn("did you mean `tutti run all_reduce --groups 2x2`?", result.err)

    def test_nothing_is_run_with_list(self):
        result = support.run("run", "all_reduce", "--groups", "2x2", "--backends", "tutti", "--sizes", "8,1K", "--list")
        self.assertEqual(result.code, 0, result)
        self.assertIn("# 2 cells", result.out)

    def test_what_has_no_meaning_is_refused(self):
        for words, parts in [
                ("--groups 2", ["--groups", "'2'", "2x4", "MOD:2"]),
                ("--groups 1x4", ["'1x4'"]),
                ("--groups 2x4 --ranks 4", ["'2x4'", "did you mean --ranks 8?"]),
                ("--groups MOD:3 --ranks 2", ["did you mean 'MOD:2'?"]),
                ("--groups 2x2 --ranks-as tasks", ["--groups", "did you mean --ranks-as processes?"]),
                ("--groups 2x2 --transports tcp --pretend-hosts 2", ["--pretend-hosts", "on one host"]),
                ("--groups 2x2 --hosts a,b", ["--hosts", "on one host"]),
                ("--groups 2x2 --overlap 4", ["--overlap", "leave one of the two out"]),
                ("--groups 2x2 --sync library", ["--sync", "did you mean --sync dissemination?"]),
                ("--groups 2x2 --samples x.csv", ["--samples"]),
                ("--groups 2x2 --algorithms auto,ring", ["--algorithms", "did you mean --algorithms auto?"]),
                ("--groups 2x2 --beside all_reduc", ["--beside", "did you mean 'all_reduce'?"]),
                ("--groups 2x2 --beside barrier:8", ["--beside", "no data"]),
                ("--groups 2x2 --beside broadcast,barrier", ["--beside", "2 collectives"]),
                ("--groups 2x2 --beside all_to_all_v", ["--beside", "all_to_all_v"]),
                ("--groups 2x2 --beside broadcast --algorithms ring", ["--algorithms", "did you mean --algorithms auto?"]),
                ("--beside broadcast", ["--beside", "without --groups"])]:
            with self.subTest(words):
                result = support.run("run", "all_reduce", "--backends", "tutti", *words.split(), limit=20)
                self.assertEqual(result.code, 2, result)
                for part in parts:
                    self.assertIn(part, result.err, result)


if __name__ == "__main__":
    unittest.main()
