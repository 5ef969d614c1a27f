# SPDX-License-Identifier: Apache-2.0
"""`tutti gate` and `--suite` where the ranks are on several hosts."""
import json
import pathlib
import tempfile
import unittest

import gate_test
import support

from gate_test import ENVIRONMENT, OK, SLOWER, USAGE


@support.at_night
class OnHosts(gate_test.Gate):
    """Hosts that are all this machine, through an agent that only runs the command."""

    SUITE = """
cells = ["broadcast/tcp/float/none/P2.processes/root0/1024B/in/private/isolated"]
[[sweep]]
collectives = "all_reduce"
sizes = ["64"]
"""
    CELLS = ["all_reduce/tcp/float/sum/P2.processes/none/64B/out/private/isolated",
             "broadcast/tcp/float/none/P2.processes/root0/1024B/in/private/isolated"]

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="tutti-agents-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        agent = cls.folder / "agent"
        agent.write_text('#!/bin/sh\nshift\nexec "$@"\n')
        agent.chmod(0o755)
        cls.on = ["--hosts", "a:1,b:1", "--agent", agent, "--interface", "127.0.0.1"]
        (cls.folder / "suite.toml").write_text(cls.SUITE)
        with support.Run("run", "--suite", cls.folder / "suite.toml", *cls.on, "--budget", "2s", "--csv", "{folder}/rows.csv") as run:
            if run.wait(60).code != OK:
                raise AssertionError("no baseline")
            cls.recorded = (run.path / "rows.csv").read_text()
            cls.rows = run.rows()[1]

    def scaled(self, factor, hosts="a:1,b:1"):
        """The baseline with other times, of other hosts."""
        lines = [line.split(",") for line in self.recorded.replace('"a:1,b:1"', hosts.replace(",", ";")).splitlines()]
        for line in lines[1:]:
            for name in ["time_median", "time_ci_low", "time_ci_high"]:
                at = lines[0].index(name)
                line[at] = str(float(line[at]) * factor) if line[at] else ""
            line[lines[0].index("hosts")] = f'"{hosts}"' if hosts else ""
        (self.folder / "base.csv").write_text("".join(",".join(line) + "\n" for line in lines))
        return self.folder / "base.csv"

    def test_against_a_record_of_the_same_hosts(self):
        for factor, verdict, code in [(1e6, "faster", OK), (1e-6, "slower", SLOWER)]:
            result, table = self.gate("--baseline", self.scaled(factor), *self.on, suite=self.SUITE)
            self.assertEqual((result.code, table), (code, dict.fromkeys(self.CELLS, verdict)), result)
            self.assertIn("# the ranks are on a:1,b:1\n", result.out)
            self.assertEqual({row["hosts"] for row in self.rows}, {"a:1,b:1"})

    def test_against_a_record_of_other_hosts(self):
        for hosts, words in [("c:1,d:1", "the baseline has it on other hosts: on 'c:1,d:1', here on 'a:1,b:1'"),
                             ("", "the baseline has it on other hosts: on one, here on 'a:1,b:1'")]:
            result, table = self.gate("--baseline", self.scaled(1, hosts), *self.on, suite=self.SUITE)
            self.assertEqual((result.code, set(table.values())), (ENVIRONMENT, {"invalid"}), result)
            self.assertIn(words, result.out)

    def test_against_a_record_of_other_machines_behind_the_same_names(self):
        recorded = self.scaled(1)
        fingerprint, = {row["machine"] for row in self.rows}
        recorded.write_text(recorded.read_text().replace(fingerprint, "0badcafe"))
        result, table = self.gate("--baseline", recorded, *self.on, suite=self.SUITE)
        self.assertEqual((result.code, set(table.values())), (ENVIRONMENT, {"invalid"}), result)
        self.assertIn(f"its fingerprint is '0badcafe', here '{fingerprint}'", result.out)
        self.assertEqual(self.told["machine"], {"hostname": self.rows[0]["host"]})

    def test_what_is_counted_is_what_is_run(self):
        for row, cell in zip(self.rows, self.CELLS):
            result = support.run("list", "--costs", cell, "--hosts", "a:1,b:1")
            costs = json.loads(result.out)
            self.assertEqual([one["algorithm"] for one in costs["costs"]], [row["algorithm"]], result)
            self.assertIn("ranks of several hosts talk through the kernel", costs["not_counted"][0]["reason"])

    def test_what_has_no_meaning_is_said(self):
        (self.folder / "shm.toml").write_text(self.SUITE.replace("/tcp/", "/shm/"))
        record = ["gate", "--baseline", self.scaled(1)]
        for words, says in [([*record, *self.on, "--suite", self.folder / "shm.toml"], "with transport shm, whose ranks share memory"),
                            ([*record, *self.on, "--ranks", "3"], "--ranks: 3 on a:1,b:1, which have room for 2"),
                            ([*record, "--agent", "ssh"], "--agent: has no meaning without --hosts"),
                            (["run", "--suite", self.folder / "shm.toml", *self.on], "did you mean --transports tcp?"),
                            (["list", "--hosts", "a,b"], "--hosts: has no meaning without --costs")]:
            with self.subTest(words):
                result = support.run(*words)
                self.assertEqual((result.code, result.out), (USAGE, ""), result)
                self.assertIn(says, result.err)


if __name__ == "__main__":
    unittest.main()
