# SPDX-License-Identifier: Apache-2.0
"""`tutti accept --rails`: pairs and shifts on each of several interfaces of a pretended cluster, verdicts per node and rail."""
import json
import re
import unittest
import xml.etree.ElementTree

from accept_test import FAULT, USUAL, Cluster

RAILS = 'nodes = 8\nleaf = 4\nseed = 3\nrails = ["ib0", "ib1"]\n'
ON_IB1 = 'rail = "ib1"\n'
SLOW5 = 'node = "node5"\nshare = "30%"\n'
PAIR = 'nodes = ["node2", "node7"]\n'
# What is wrong, the exit code, the sentence, the class and the rail of the finding.
RAIL_FAULTS = [
    (FAULT.format("nic-out", SLOW5 + ON_IB1), 4, r"rail ib1: node5 sends 3\d.* slower .*: its transmit side, cable or port; its other rail passed", "nic-out", "ib1"),
    (FAULT.format("nic", SLOW5 + ON_IB1), 4, r"rail ib1: node5 is slow: .* its NIC, cable or port; its other rail passed", "nic", "ib1"),
    (FAULT.format("nic", SLOW5), 4, r"node5 is slow on both rails \(ib0 [23]\d\.\d %, ib1 [23]\d\.\d %\): at least .*: the node, not one of its NICs", "node", None),
    (FAULT.format("node", SLOW5), 4, r"node5 is slow on both rails ", "node", None),
    (FAULT.format("crowd", SLOW5 + ON_IB1), 4, r"rail ib1: node5 is slow when all nodes send at once: ", "nic", "ib1"),
    (FAULT.format("link", PAIR + 'share = "30%"\n' + ON_IB1), 4, r"rail ib1: node2 and node7 are slow with each other only", "link", "ib1"),
    (FAULT.format("wrong", PAIR + ON_IB1), 1, r"rail ib1: node7 receives wrong data from node2: element 17", "wrong", "ib1"),
    (FAULT.format("hung", PAIR + ON_IB1), 5, r"rail ib1: node2 and node7 hang with each other", "hung", "ib1"),
    (FAULT.format("dead", 'node = "node7"\n' + ON_IB1), 5, r"rail ib1: node7 is dead: no answer to .*; its other rail passed", "dead", "ib1"),
    (FAULT.format("dead", 'node = "node7"\n'), 5, r"node7 does not answer", "dead", None),
    (FAULT.format("absent", 'node = "node7"\n' + ON_IB1), 3, r"rail ib1: node7 is not tested: 'ib1' is no interface of node7; its other rail passed", "dead", "ib1"),
]


class Rails(Cluster):
    def test_each_fault_names_the_rail_or_the_node(self):
        for fault, code, words, what, rail in RAIL_FAULTS:
            with self.subTest(fault):
                result = self.accept(RAILS + fault, "--json", self.folder / "json")
                self.assertEqual(result.code, code, result)
                self.assertRegex(result.out.splitlines()[1], r"(FAIL|ERROR)\. " + words)
                [finding] = json.loads((self.folder / "json").read_text())["findings"]
                self.assertEqual((finding["class"], finding["rail"]), (what, rail), finding)

    def test_reports_tell_rails_apart(self):
        files = {name: self.folder / name for name in ["x.json", "x.xml", "x.prom", "x.jsonl"]}
        result = self.accept(RAILS + RAIL_FAULTS[0][0], "--json", files["x.json"], "--junit", files["x.xml"], "--prometheus", files["x.prom"],
                             "--lines", files["x.jsonl"], "--exclude", self.folder / "x")
        self.assertRegex(result.out, r"\n  node5  ib0   PASS .*\n         ib1   FAIL nic-out ")
        self.assertRegex(result.out, r"\n# rail ib0: \S+ GB/s within a leaf.*\n# rail ib1: \S+ GB/s within a leaf")
        self.assertIn("every pair tested on 2 rails (56 of 56, both ways)", result.out.splitlines()[1].lower())
        document = json.loads(files["x.json"].read_text())
        self.assertEqual([(rail["rail"], [node["node"] for node in rail["nodes"] if node["verdict"] != "PASS"]) for rail in document["rails"]],
                         [("ib0", []), ("ib1", ["node5"])])
        self.assertNotIn("of_level", document)
        self.assertEqual([len(rail["of_level"]) for rail in document["rails"]], [8, 8])
        cases = {(case.get("classname"), case.get("name")): case for case in xml.etree.ElementTree.parse(files["x.xml"]).getroot().iter("testcase")}
        self.assertEqual([name for name, case in cases.items() if case.find("failure") is not None],
                         [("tutti.accept.pairs.node", "node5"), ("tutti.accept.pairs.rail", "node5, ib1")])
        self.assertEqual([cases["tutti.accept.shifts.rail", f"node5, {rail}"].find("skipped") is not None for rail in ("ib0", "ib1")], [False, True])
        metrics = files["x.prom"].read_text()
        self.assertIn('tutti_accept_rail_verdict{node="node5",rail="ib1",class="nic-out",verdict="FAIL"} 1\n', metrics)
        self.assertIn('tutti_accept_rail_verdict{node="node5",rail="ib0",class="",verdict="PASS"} 1\n', metrics)
        self.assertRegex(metrics, r'tutti_accept_of_fleet_ratio\{node="node5",rail="ib1",direction="out"\} 0\.[67]')
        lines = [json.loads(line) for line in files["x.jsonl"].read_text().splitlines()[1:]]
        self.assertEqual({(line["stage"], line.get("rail")) for line in lines if line["stage"] in ("pairs", "shifts", "groups")},
                         {("pairs", "ib0"), ("pairs", "ib1"), ("shifts", "ib0"), ("shifts", "ib1"), ("groups", None)})
        self.assertIn('Reason="tutti:nic-out ib1 -3', (self.folder / "x.exclude.slurm").read_text())
        self.assertIn("# node5  FAIL nic-out ib1 -3", (self.folder / "x.exclude.hosts").read_text())

    def test_many_nodes_are_folded(self):
        result = self.accept(RAILS.replace("nodes = 8", "nodes = 32") + RAIL_FAULTS[0][0])
        self.assertRegex(result.out, r"\n  node5, ib1 +FAIL nic-out +-[23]\d\.\d % ")

    def test_a_rail_is_chosen_and_a_resumed_run_keeps_rails_apart(self):
        lines = self.folder / "lines"
        cluster = RAILS + RAIL_FAULTS[0][0]
        self.assertEqual(self.accept(cluster, "--rails", "ib0").code, 0)
        whole = self.accept(cluster, "--rails", "ib1,ib0", "--lines", lines)
        self.assertEqual(whole.code, 4, whole)
        again = self.accept(cluster, "--rails", "ib1,ib0", "--resume", lines)
        self.assertEqual(again.out.splitlines()[2:], whole.out.splitlines()[1:], "all of it is taken from the lines")
        refused = self.accept(cluster, "--rails", "ib0", "--resume", lines)
        self.assertEqual(refused.code, 2, refused)
        self.assertIn("rails ib1,ib0", refused.err)
        lines.write_text(lines.read_text().replace('"rail":"ib0"', '"rail":"ib2"').replace('"rail":"ib1"', '"rail":"ib0"'))
        other = self.accept(cluster, "--rails", "ib1,ib0", "--resume", lines)
        taken = [int(re.search(r"# (\d+) tests are taken", result.out)[1]) for result in (again, other)]
        self.assertLess(taken[1], taken[0] / 2, "of other rails nothing is taken")

    def test_a_baseline_is_of_each_rail(self):
        base = self.folder / "base"
        self.assertEqual(self.accept(RAILS, "--json", base).code, 0)
        slow = self.accept(RAILS + FAULT.format("fleet", 'share = "15%"\n' + ON_IB1), "--baseline", base)
        self.assertEqual(slow.code, 4, slow)
        self.assertRegex(slow.out.splitlines()[1], r"FAIL\. rail ib1: all 8 nodes are 1[3-7]\.\d % .* below the baseline")
        for cluster, said in [("nodes = 8\n", "--baseline: its speeds are of rails"), (RAILS.replace("ib1", "ib2"), "it has no speed of rail 'ib2'")]:
            result = self.accept(cluster, "--baseline", base)
            self.assertEqual(result.code, 2, result)
            self.assertIn(said, result.err)

    def test_mistakes_are_named(self):
        for cluster, words, said in [(RAILS, ["--rails", "ib0,ib0"], "--rails: 'ib0' is there twice"),
                                     (RAILS, ["--rails", "192.0.2.7"], "'192.0.2.7' is an address, which one host has: did you mean"),
                                     (RAILS, ["--rails", "ib0/24"], "did you mean 'ib0'?"), (RAILS, ["--rails", "ib3"], "unknown rail 'ib3': did you mean 'ib0'?"),
                                     (RAILS, ["--rails", "ib0,"], "--rails: "), (USUAL, ["--rails", "ib0"], 'write `rails = ["ib0"]` into its file'),
                                     (RAILS + FAULT.format("nic", SLOW5 + 'rail = "ib3"'), [], "unknown rail 'ib3': did you mean 'ib0'?"),
                                     (USUAL + FAULT.format("nic", SLOW5 + ON_IB1), [], "unknown key 'rail'"),
                                     ('rails = "ib0"\n' + USUAL, [], "line 1: 'rails' must be names"),
                                     ('rails = ["ib0", "ib0"]\n' + USUAL, [], "line 1: rail 'ib0' is there twice")]:
            with self.subTest(said):
                result = self.accept(cluster, *words)
                self.assertEqual((result.code, result.out), (2, ""), result)
                self.assertIn(said, result.err, result)


if __name__ == "__main__":
    unittest.main()
