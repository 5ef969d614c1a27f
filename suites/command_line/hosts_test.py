# SPDX-License-Identifier: Apache-2.0
"""Ranks on hosts that are pretended: what is measured and checked over TCP, and what is refused by name."""
import json
import os
import shutil
import signal
import subprocess
import unittest

import support

CRASH = 5
TCP = ["--transports", "tcp"]


class Hosts(unittest.TestCase):
    def done(self, *words, code=0):
        result = support.run(*words)
        self.assertEqual(result.code, code, result)
        return result

    def test_a_run_over_tcp_is_measured_and_verified(self):
        for ranks_as in ["processes", "threads"]:
            with self.subTest(ranks_as), support.Run(
                    "run", "all_reduce", "broadcast", "barrier", "sendrecv", "--ranks", 4, "--ranks-as", ranks_as, *TCP,
                    "--pretend-hosts", 2, "--sizes", "8,64K", "--budget", "3s", "--timeout", "20s", "--csv",
                    "{folder}/rows.csv", "--json", "{folder}/record.json") as run:
                result = run.wait(60)
                self.assertEqual(result.code, 0, result)
                rows = run.rows()[1]
                self.assertEqual({(row["transport"], row["verdict"]) for row in rows}, {("tcp", "ok")}, result)
                self.assertEqual({row["backend"] for row in rows}, {"tutti"}, "a reference would not be on these hosts")
                self.assertEqual({row["pretended_hosts"] for row in rows}, {"2"})
                self.assertTrue(all("/tcp/" in row["case"] for row in rows))
                self.assertIn("measured with 2 pretended hosts", result.out)
                record = support.read_json(run.path / "record.json")
                self.assertIn('"transport":"tcp"', record["versions"]["tutti"], "the domain, not the row alone")
                self.assertEqual(run.left_behind(), [])

    def test_an_algorithm_for_equal_hosts_says_in_its_row_where_they_are_not(self):
        for ranks, marked in [(3, {"two_level"}), (4, set())]:
            with self.subTest(ranks), support.Run(
                    "run", "all_reduce", "--ranks", ranks, "--ranks-as", "threads", *TCP, "--pretend-hosts", 2, "--sizes", "64",
                    "--algorithms", "ring,two_level", "--budget", "500ms", "--csv", "{folder}/rows.csv") as run:
                result = run.wait(60)
                self.assertEqual(result.code, 0, result)
                rows = run.rows()[1]
                self.assertEqual([row["algorithm"] for row in rows], ["ring", "two_level"])
                self.assertEqual({row["algorithm"] for row in rows if "flat on unequal hosts" in row["marks"]}, marked, result)
                self.assertEqual("# flat on unequal hosts: 1 row of an algorithm" in result.out, bool(marked), result)
                self.assertEqual({row["clocks_bound"] for row in rows}, {""}, "there is one clock")

    def test_costs_of_an_algorithm_for_equal_hosts_say_where_they_are_not(self):
        cell = "all_reduce/tutti.two_level/tcp/float/sum/P4.processes/none/65536B/out/private/isolated"
        for hosts, marks in [("a:3,b:1", "flat on unequal hosts"), ("a:2,b:2", None)]:
            counted = json.loads(self.done("list", "--costs", cell, "--hosts", hosts).out)["costs"][0]
            self.assertEqual(counted.get("marks"), marks, hosts)

    def test_each_rank_is_a_host_unless_somebody_says_otherwise(self):
        words = ["run", "--case", "all_reduce/tutti.two_shot/tcp/float/sum/P2.processes/none/64B/out/private/isolated", "--budget", "300ms"]
        result = self.done(*words)
        self.assertIn("two_shot of all_reduce exposes the input of rank 0 on host 0, which shares no memory with rank 1 on "
                      "host 1: choose circulant, halving, recursive_doubling, ring", result.out)
        self.assertIn("1 skipped", result.out)
        self.assertIn("1 ok", self.done(*words, "--pretend-hosts", 1).out)

    def test_all_that_needs_no_memory_of_others_is_checked(self):
        for hosts, words in [(2, ["--ranks", 3]), (3, ["--ranks", 5, "--ranks-as", "threads"])]:
            with self.subTest(hosts):
                result = self.done("check", "all", "all_to_all_v", "gather_v", "scan", "message_rate", *words, *TCP,
                                   "--pretend-hosts", hosts, "--dtypes", "float", "--ops", "sum")
                self.assertRegex(result.out, r"# check: (\d\d\d+) cases as \w+, \1 ok, 0 wrong, 0 neither, 0 not run")
                self.assertRegex(result.out, r"# left out: \d+ x all_reduce two_shot, which touches memory of other hosts\n")

    def test_links_that_deliver_by_a_seed_are_checked_in_an_order_that_is_drawn(self):
        for hosts in [2, 4]:
            words = ["--ranks", 4, "--ranks-as", "tasks", "--transports", "fake", "--pretend-hosts", hosts, "--seed", 7]
            with self.subTest(hosts):
                result = self.done("check", *(["all"] if hosts == 2 else ["all_reduce", "all_to_all"]), *words, "--dtypes", "float",
                                   "--ops", "sum")
                self.assertRegex(result.out, r"# check: (\d\d+) cases as tasks, \1 ok, 0 wrong")
                self.assertIn("# order: drawn from seed 7", result.out)
                soak = self.done("check", "soak", *words, "--operations", 600)
                self.assertRegex(soak.out, r"\d{4} results verified, 0 wrong, \d+ barriers judged, 0 not run")
                self.assertIn("+0 mappings of groups", soak.out)

    def test_a_soak_over_tcp(self):
        result = self.done("check", "soak", "--ranks", 4, *TCP, "--pretend-hosts", 3, "--operations", 600)
        self.assertRegex(result.out, r"\d{4} results verified, 0 wrong, \d+ barriers judged, 0 not run")
        self.assertIn("+0 descriptors, +0 mappings of groups", result.out)

    def test_a_rank_that_is_killed_is_named(self):
        with support.Run("run", "all_reduce", "--ranks", 4, *TCP, "--pretend-hosts", 2, "--sizes", "8:1M:x2", "--budget", "60s",
                         "--csv", "{folder}/rows.csv") as run:
            pids = run.wait_for_ranks(4)
            run.wait_for_rows(1)
            os.kill(pids[3], signal.SIGKILL)
            result = run.wait(10)
            self.assertEqual(result.code, CRASH, result)
            self.assertRegex(result.err, r"(?m)^tutti: rank 3 \(pid \d+\).* was killed by signal 9")
            self.assertGreaterEqual(len(run.rows()[1]), 1, "rows are kept")
            self.assertEqual(run.left_behind(), [])

    def test_a_network_that_cannot_be_reached_is_not_waited_for(self):
        apart = ["unshare", "--net"]  # its loopback interface is down
        if shutil.which("unshare") is None or subprocess.run([*apart, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no network namespace can be made")
        with support.Run("--net", support.PROGRAM, "run", "all_reduce", "--sizes", "8", "--ranks", 2, *TCP, program="unshare") as run:
            result = run.wait(20)
            self.assertEqual(result.code, 3, result)
            self.assertIn("Network is unreachable", result.err)

    def test_what_makes_no_sense_is_refused(self):
        for code, words, names in [
                (2, ["--pretend-hosts", 2, "--ranks", 4], ["--pretend-hosts: '2'", "transport shm", "--transports tcp"]),
                (2, [*TCP, "--pretend-hosts", 5, "--ranks", "4"], ["--pretend-hosts: '5'", "4 ranks", "did you mean 4?"]),
                (2, [*TCP, "--pretend-hosts", 0], ["--pretend-hosts", "'0'"]),
                (2, [*TCP, "--ranks-as", "blocks", "--device", "host"], ["'tcp' with blocks", "'local'"]),
                (3, [*TCP, "--backends", "tutti,openmpi", "--ranks", 2], ["'openmpi'", "pretended", "--backends tutti"])]:
            with self.subTest(words):
                result = self.done("run", "all_reduce", *words, code=code)
                for name in names:
                    self.assertIn(name, result.err)


if __name__ == "__main__":
    unittest.main()
