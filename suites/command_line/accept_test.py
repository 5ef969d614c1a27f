# SPDX-License-Identifier: Apache-2.0
"""`tutti accept`: what an operator sees of pretended clusters, and of hosts that an agent reaches."""
import json
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import unittest
import xml.etree.ElementTree

import support
from machines_test import PLAIN, Agents

FAULT = '[[fault]]\nwhat = "{}"\n{}\n'
# What is wrong, the exit code, words of the first line, nodes of the option for Slurm.
FAULTS = [
    (FAULT.format("nic-out", 'node = "node5"\nshare = "30%"'), 4, ["FAIL. node5 sends ", "its transmit side"], "node5"),
    (FAULT.format("nic-in", 'node = "node5"\nshare = "30%"'), 4, ["FAIL. node5 receives ", "its receive side"], "node5"),
    (FAULT.format("node", 'node = "node5"\nshare = "30%"'), 4, ["FAIL. node5 is slow: ", "and alone too: the node"], "node5"),
    (FAULT.format("nic", 'node = "node5"\nshare = "30%"'), 4, ["FAIL. node5 is slow: ", "and not alone: its NIC"], "node5"),
    (FAULT.format("link", 'nodes = ["node2", "node9"]\nshare = "30%"'), 4, ["FAIL. node2 and node9 are slow with each other only"], None),
    (FAULT.format("link-dir", 'nodes = ["node9", "node2"]\nshare = "30%"'), 4, ["FAIL. node9 sends to node2 "], None),
    (FAULT.format("uplink", 'leaf = "C"\nshare = "30%"'), 4, ["FAIL. Everything between leaf C and the other leaves"], None),
    (FAULT.format("too-fast", 'nodes = ["node2", "node9"]\nshare = "30%"'), 4, ["FAIL. node2 and node9 are ", "faster with each other"], None),
    (FAULT.format("wrong", 'nodes = ["node2", "node9"]'), 1, ["FAIL. node9 receives wrong data from node2: element 17"], "node2,node9"),
    (FAULT.format("hung", 'nodes = ["node2", "node9"]'), 5, ["FAIL. node2 and node9 hang with each other; both work with others"], None),
    (FAULT.format("dead", 'node = "node7"'), 5, ["FAIL. node7 "], "node7"),
    (FAULT.format("crowd", 'node = "node5"\nshare = "30%"'), 4, ["FAIL. node5 is slow when all nodes send at once: ", "and in no quiet pair"], "node5"),
    (FAULT.format("absent", 'node = "node7"'), 3, ["ERROR. 15 of 16 nodes passed, 1 not reached"], None),
    ('older = "50%"\nolder_by = "30%"\n', 6, ["UNDECIDED. 8 nodes are ", "only --baseline says"], None),
]
USUAL = "nodes = 16\nleaf = 4\nseed = 3\n"
# Clusters of few nodes, few leaves, leaves of uneven size, two generations, and leaves that nobody tells: nodes, leaf, what else
# there is, the exit code, how the verdict begins, who is excluded.
OF_LEAF_B = FAULT.format("uplink", 'leaf = "B"\nshare = "25%"')
ONE_WAY_B = FAULT.format("uplink-dir", 'leaf = "B"\nshare = "30%"')
UNTOLD, OLDER = "tells_leaves = false\n", 'older = "{}"\nolder_by = "20%"\n'
SHAPES = [
    (2, 2, FAULT.format("link-dir", 'nodes = ["node2", "node1"]\nshare = "40%"'), 4, "FAIL. node2 sends to node1 ", ""),
    (2, 2, FAULT.format("link-dir", 'nodes = ["node1", "node2"]\nshare = "40%"'), 4, "FAIL. node1 sends to node2 ", ""),
    (2, 2, FAULT.format("node", 'node = "node2"\nshare = "20%"'), 6, "UNDECIDED. 1 node is ", ""),
    (3, 3, FAULT.format("link", 'nodes = ["node2", "node1"]\nshare = "30%"'), 4, "FAIL. node1 and node2 are slow with each other only", ""),
    (3, 3, FAULT.format("link-dir", 'nodes = ["node2", "node3"]\nshare = "30%"'), 4, "FAIL. node2 sends to node3 ", ""),
    (3, 3, FAULT.format("nic", 'node = "node2"\nshare = "30%"'), 4, "FAIL. node2 is slow: ", "node2"),
    (9, 8, "", 0, "9 nodes passed", ""),
    (9, 9, FAULT.format("nic", 'node = "node2"\nshare = "30%"') + FAULT.format("nic", 'node = "node5"\nshare = "40%"'), 4,
     "FAIL. ", "node2,node5"),
    (17, 16, "", 0, "17 nodes passed", ""),
    (12, 4, OF_LEAF_B, 4, "FAIL. Everything between leaf B and the other leaves is ", ""),
    (12, 4, ONE_WAY_B, 4, "FAIL. Everything from leaf B to the other leaves is ", ""),
    (16, 4, OF_LEAF_B + OF_LEAF_B.replace('"B"', '"D"'), 4, "FAIL. 16 of 16 nodes passed; 2 uplinks failed.", ""),
    (16, 8, ONE_WAY_B, 4, "FAIL. Everything from leaf B to leaf A is ", ""),
    (16, 4, FAULT.format("jam", 'leaves = ["A", "B"]\nshare = "40%"'), 0, "16 nodes passed", ""),
    (64, 16, OLDER.format("20%"), 6, "UNDECIDED. 13 nodes are ", ""),
    (32, 16, OLDER.format("25%"), 6, "UNDECIDED. 8 nodes are ", ""),
    (16, 8, OLDER.format("50%"), 6, "UNDECIDED. 8 nodes are ", ""),
    (8, 4, UNTOLD, 0, "8 nodes passed", ""),
    (64, 16, UNTOLD, 0, "64 nodes passed", ""),
    (16, 16, UNTOLD, 0, "16 nodes passed", ""),
    (64, 16, UNTOLD + OF_LEAF_B, 4, "FAIL. Everything between leaf B and the other leaves is ", ""),
    (32, 32, UNTOLD + OLDER.format("50%"), 6, "UNDECIDED. 16 nodes are ", ""),
]


class Cluster(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tutti-accept-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def accept(self, cluster, *words):
        path = self.folder / "cluster.toml"
        path.write_text(cluster)
        return support.run("accept", "--pretend", path, *words)


class Pretended(Cluster):
    def test_a_healthy_cluster_passes(self):
        result = self.accept("nodes = 8\n", "--exclude", self.folder / "x")
        self.assertEqual((result.code, result.err), (0, ""), result)
        lines = result.out.splitlines()
        self.assertRegex(lines[0], r"^# 8 nodes: alone \d+ rounds, pairs \d+ rounds and up to \d+ of repeats, more in noise, shifts 16, rings 16, groups 24, soak 60 s, job, ")
        self.assertEqual(lines[1], "# tutti accept: 8 nodes passed, none failed, every pair tested (28 of 28, both ways). Margin 5 %; "
                                   "what is smaller was not looked for.")
        self.assertEqual(len([line for line in lines if re.match(r"  node\d +PASS ", line)]), 8, result)
        self.assertIn("A pretended cluster: nothing was measured", result.out)
        hosts = (self.folder / "x.exclude.hosts").read_text().splitlines()
        self.assertEqual([line for line in hosts if not line.startswith("#")], [f"node{i}" for i in range(1, 9)])
        self.assertEqual((self.folder / "x.exclude.slurm").read_text(), "\n# no node is to be excluded\n")
        words = subprocess.run(["sh", "-c", "echo sbatch $(head -1 x.exclude.slurm) job.sh"], cwd=self.folder, text=True,
                               capture_output=True, check=True).stdout
        self.assertEqual(words, "sbatch job.sh\n")

    def test_few_nodes_few_leaves_and_leaves_that_nobody_tells(self):
        for nodes, leaf, others, code, sentence, excluded in SHAPES:
            for seed in [1, 2, 4, 6]:
                with self.subTest((nodes, leaf, others, seed)):
                    result = self.accept(f"nodes = {nodes}\nleaf = {leaf}\nseed = {seed}\n{others}", "--exclude", self.folder / "x")
                    self.assertEqual(result.code, code, result)
                    self.assertTrue(result.out.splitlines()[1].startswith(f"# tutti accept: {sentence}"), result)
                    option = (self.folder / "x.exclude.slurm").read_text().splitlines()[0]
                    self.assertEqual(option.removeprefix("--exclude="), excluded, result)

    def test_leaves_that_speeds_show_are_told(self):
        result = self.accept("nodes = 12\nleaf = 4\ntells_leaves = false\n")
        self.assertIn("# Leaves are not told; by the speeds there are 3, of 4, 4 and 4 nodes. --leaves FILE says them\n", result.out)
        result = self.accept("nodes = 12\nleaf = 12\ntells_leaves = false\n")
        self.assertIn("# Leaves are not known, so uplinks are UNTESTED", result.out)
        result = self.accept("nodes = 16\nleaf = 8\n")
        self.assertIn("# Two leaves: an uplink that is slow both ways is UNTESTED", result.out)

    def test_links_that_a_slow_part_hides_are_told(self):
        result = self.accept(USUAL + OF_LEAF_B + FAULTS[0][0], "--stages", "pairs", "--json", self.folder / "x.json")
        self.assertEqual(result.code, 4, result)
        # node5 is on leaf B.
        words = "Links of node5 and between leaf B and other leaves are UNTESTED: what is slow there hides them. Run again after the repair"
        self.assertIn(f"# {words}\n", result.out)
        self.assertEqual(json.loads((self.folder / "x.json").read_text())["untested"], [words])
        result = self.accept(USUAL, "--stages", "pairs")
        self.assertNotIn("UNTESTED", result.out)

    def test_two_generations_are_a_split_whatever_they_differ_by(self):
        for seed in [1, 2, 3]:
            for percent in [8, 12, 18]:
                with self.subTest((seed, percent)):
                    result = self.accept(f'nodes = 16\nleaf = 4\nseed = {seed}\nolder = "50%"\nolder_by = "{percent}%"\n', "--stages", "pairs")
                    self.assertEqual(result.code, 6, result)
                    self.assertIn("UNDECIDED. 8 nodes are ", result.out)
                    self.assertIn("The slower ones: node9, node10, node11, node12, node13, node14, node15 and node16", result.out)

    def test_faults_beside_each_other_or_beside_two_generations(self):
        def nics(what, share, *nodes):
            return "".join(FAULT.format(what, f'node = "node{node}"\nshare = "{share}%"') for node in nodes)
        links = "".join(FAULT.format("link", f'nodes = ["node{one}", "node{one + 1}"]\nshare = "40%"') for one in [1, 3, 5, 7, 9, 11, 13, 17, 21])
        older = 'older = "{}"\nolder_by = "20%"\n'
        self.accept("nodes = 32\nleaf = 8\nseed = 77\n", "--stages", "pairs", "--json", self.folder / "good.json")
        right = ["--baseline", self.folder / "good.json"]
        for cluster, code, findings, more in [
                ("nodes = 6\nleaf = 3\n" + nics("nic", 40, 2), 4, [("FAIL", "nic", "node2")], []),
                ("nodes = 16\n" + nics("nic-in", 30, 2, 5, 9, 14), 4, [("FAIL", "nic-in", f"node{one}") for one in [14, 2, 5, 9]], []),
                ("nodes = 32\nleaf = 8\n" + links, 4, [("FAIL", "link", f"node{one}") for one in [1, 11, 13, 17, 21, 3, 5, 7, 9]], []),
                ("nodes = 16\n" + older.format("40%") + nics("nic", 60, 3), 6, [("UNDECIDED", "nic", "node3"), ("UNDECIDED", "split", "node11")], []),
                ("nodes = 32\nleaf = 8\n" + older.format("50%"), 4, [("FAIL", "node", f"node{one}") for one in sorted(map(str, range(17, 33)))], right),
                ("nodes = 32\nleaf = 8\n" + older.format("50%") + FAULT.format("fleet", 'share = "15%"'), 4,
                 [("FAIL", "fleet", ""), ("UNDECIDED", "split", "node17")], right)]:
            for seed in [1, 2, 3]:
                with self.subTest((cluster, seed)):
                    result = self.accept(f"seed = {seed}\n{cluster}", "--stages", "pairs", "--json", self.folder / "x.json", *more)
                    told = json.loads((self.folder / "x.json").read_text())
                    found = sorted((one["verdict"], one["class"], (one["nodes"] or [""])[0]) for one in told["findings"])
                    self.assertEqual((result.code, found), (code, findings), result)

    def test_a_few_nodes_that_are_slow_alike_may_be_of_another_kind(self):
        result = self.accept('nodes = 16\nleaf = 4\nolder = "12.5%"\nolder_by = "15%"\n', "--stages", "pairs")
        self.assertEqual(result.code, 4, result)
        self.assertRegex(result.out, r"(?m)^# node15 and node16 are slower by the same share, -1\d\.\d to -1\d\.\d %: nodes of another kind look so too$")
        result = self.accept(USUAL + FAULT.format("nic", 'node = "node5"\nshare = "15%"') + FAULT.format("nic", 'node = "node9"\nshare = "30%"'),
                             "--stages", "pairs")
        self.assertEqual(result.code, 4, result)
        self.assertNotIn("nodes of another kind", result.out)

    def test_a_baseline_says_which_of_two_kinds_is_right(self):
        self.accept("nodes = 16\nleaf = 16\n", "--json", self.folder / "good.json")
        result = self.accept("nodes = 16\nleaf = 16\n" + OLDER.format("50%"), "--baseline", self.folder / "good.json",
                             "--stages", "alone,pairs", "--exclude", self.folder / "x")
        self.assertEqual(result.code, 4, result)
        self.assertIn("FAIL. 8 of 16 nodes passed, 8 failed.", result.out)
        option = (self.folder / "x.exclude.slurm").read_text().splitlines()[0]
        self.assertEqual(option, "--exclude=" + ",".join(f"node{i}" for i in range(9, 17)), result)

    def test_a_baseline_of_other_messages_is_refused(self):
        self.accept(USUAL, "--json", self.folder / "good.json", "--message-size", "4M", "--stages", "pairs")
        result = self.accept(USUAL, "--baseline", self.folder / "good.json")
        self.assertEqual((result.code, result.out), (2, ""), result)
        self.assertIn("--baseline: its messages are of 4M, these of 1M: --message-size 4M", result.err)

    def test_a_node_that_no_stage_has_tested_has_not_passed(self):
        for nodes, stages, more in [(6, "alone", ["--budget", "1us"]), (6, "shifts,rings", ["--budget", "1us"]), (6, "groups", ["--budget", "1us"]),
                                    (6, "soak,job", ["--budget", "1us"]), (2, "shifts", [])]:
            with self.subTest((nodes, stages)):
                result = self.accept(f"nodes = {nodes}\n", "--stages", stages, *more, "--exclude", self.folder / "x")
                self.assertEqual(result.code, 3, result)
                self.assertIn(f"0 of {nodes} nodes passed, {nodes} untested.", result.out)
                hosts = (self.folder / "x.exclude.hosts").read_text().splitlines()
                self.assertEqual([line for line in hosts if not line.startswith("#")], [], hosts)

    def test_what_was_not_tested_has_not_passed(self):
        result = self.accept("nodes = 64\nleaf = 16\n" + FAULT.format("nic-out", 'node = "node17"\nshare = "31%"'), "--budget", "1us",
                             "--exclude", self.folder / "x", "--prometheus", self.folder / "x.prom")
        self.assertEqual(result.code, 3, result)
        self.assertIn("INCOMPLETE. 0 of 64 nodes passed, 64 untested. No pair tested.", result.out, result)
        self.assertIn("# stage pairs is left out: the end came first", result.out)
        hosts = (self.folder / "x.exclude.hosts").read_text().splitlines()
        self.assertEqual([line for line in hosts if not line.startswith("#")], [], hosts)
        self.assertIn('tutti_accept_conclusion{verdict="INCOMPLETE"} 1\n', (self.folder / "x.prom").read_text())

    def test_parts_that_are_no_nodes_are_in_the_files(self):
        for fault, comment, labels in [
                (FAULT.format("hung", 'nodes = ["node3", "node5"]'), "# link node3, node5  FAIL hung: a job that has both hangs",
                 'part="link",name="node3, node5",class="hung",verdict="FAIL"'),
                (FAULT.format("uplink", 'leaf = "C"\nshare = "30%"'), "# uplink C  FAIL uplink",
                 'part="uplink",name="C",class="uplink",verdict="FAIL"')]:
            self.accept(USUAL + fault, "--exclude", self.folder / "x", "--prometheus", self.folder / "x.prom")
            for name in ["x.exclude.hosts", "x.exclude.slurm"]:
                self.assertIn(comment, (self.folder / name).read_text().splitlines())
            self.assertIn(f"tutti_accept_part_verdict{{{labels}}} 1\n", (self.folder / "x.prom").read_text())
            self.assertIn('tutti_accept_conclusion{verdict="FAIL"} 1\n', (self.folder / "x.prom").read_text())

    def test_one_output_may_be_stdout(self):
        result = self.accept(USUAL, "--json", "-")
        self.assertEqual(json.loads(result.out)["verdict"], "PASS")
        self.assertIn("16 nodes passed", result.err)
        result = self.accept(USUAL, "--json", "-", "--junit", "-")
        self.assertEqual((result.code, result.out), (2, ""), result)
        self.assertIn("'-', stdout, takes one of", result.err)

    def test_what_is_read_is_not_written_over(self):
        for flag in ["--json", "--html", "--lines"]:
            result = self.accept(USUAL, flag, self.folder / "cluster.toml")
            self.assertEqual(result.code, 2, result)
            self.assertIn("is read, by --pretend: name another file", result.err)
        self.assertEqual((self.folder / "cluster.toml").read_text(), USUAL)
        self.accept(USUAL, "--json", self.folder / "x.json")
        text = (self.folder / "x.json").read_text()
        for changed, said in [(text.replace('"version": 1', '"version": 99', 1), "it is of version 99: known is 1"), ("[]", "is not a JSON object"),
                              (re.sub(r'"(near|far)_bytes_per_second": [0-9.e+]+', r'"\1_bytes_per_second": 1e-300', text), "no speed of pairs")]:
            (self.folder / "y.json").write_text(changed)
            result = self.accept(USUAL, "--baseline", self.folder / "y.json")
            self.assertEqual(result.code, 2, result)
            self.assertIn(said, result.err)

    def test_a_lines_file_with_a_mark_of_byte_order_is_resumed(self):
        self.accept(USUAL, "--stages", "pairs", "--lines", self.folder / "x.lines")
        whole = (self.folder / "x.lines").read_bytes()
        (self.folder / "x.lines").write_bytes(b"\xef\xbb\xbf" + whole[:40000])
        for _ in range(2):
            result = self.accept(USUAL, "--stages", "pairs", "--resume", self.folder / "x.lines")
            self.assertEqual((result.code, result.err), (0, ""), result)
        lines = (self.folder / "x.lines").read_bytes().removeprefix(b"\xef\xbb\xbf").splitlines()
        self.assertGreater(len([json.loads(line) for line in lines]), whole[:40000].count(b"\n"))

    def test_a_resumed_run_is_of_the_same_cluster(self):
        self.accept(USUAL, "--stages", "pairs", "--lines", self.folder / "x.lines")
        for cluster, words, said in [(USUAL.replace("seed = 3", "seed = 4"), [], "its plan is "), (USUAL, ["--leaves", "8"], "its plan is ")]:
            result = self.accept(cluster, "--stages", "pairs", "--resume", self.folder / "x.lines", *words)
            self.assertEqual(result.code, 2, result)
            self.assertIn(said, result.err)
        lines = (self.folder / "x.lines").read_text()
        (self.folder / "x.lines").write_text(re.sub(r'"began_s":\d+', '"began_s":1000', lines))
        result = self.accept(USUAL, "--stages", "pairs", "--resume", self.folder / "x.lines")
        self.assertEqual(result.code, 2, result)
        self.assertIn("h old, and are worth something for 24 h: begin anew", result.err)

    def test_each_fault_has_its_sentence_exit_code_and_exclusion(self):
        for fault, code, words, excluded in FAULTS:
            with self.subTest(fault):
                result = self.accept(fault + USUAL if fault.startswith("older") else USUAL + fault, "--exclude", self.folder / "x")
                self.assertEqual(result.code, code, result)
                for word in words:
                    self.assertIn(word, result.out.splitlines()[1], result)
                option = (self.folder / "x.exclude.slurm").read_text().splitlines()[0]
                self.assertEqual(option, f"--exclude={excluded}" if excluded else option.replace("--exclude", "#"), result)
                hosts = [line for line in (self.folder / "x.exclude.hosts").read_text().splitlines() if not line.startswith("#")]
                for name in (excluded or "").split(","):
                    self.assertNotIn(name, hosts)

    def test_reports_for_programs(self):
        files = {name: self.folder / name for name in ["x.json", "x.xml", "x.prom", "x.jsonl"]}
        result = self.accept(USUAL + FAULTS[0][0], "--json", files["x.json"], "--junit", files["x.xml"], "--prometheus", files["x.prom"],
                             "--lines", files["x.jsonl"], "--quiet")
        self.assertEqual((result.code, result.out), (4, ""), result)
        document = json.loads(files["x.json"].read_text())
        self.assertEqual((document["kind"], document["verdict"]), ("accept", "FAIL"))
        [finding] = document["findings"]
        self.assertEqual((finding["class"], finding["nodes"]), ("nic-out", ["node5"]))
        self.assertTrue(finding["low"] < finding["of_fleet"] < finding["high"] < -0.2, finding)
        suites = self.suites_of(files["x.xml"])
        self.assertEqual([suite["failures"] for suite in suites.values()], [0, 0, 1, 0, 0, 0, 0, 0])
        self.assertEqual(suites["pairs"]["tests"], 16 + 4, "nodes and leaves")
        self.assertIn('tutti_accept_verdict{node="node5",stage="pairs",class="nic-out",verdict="FAIL"} 1\n', files["x.prom"].read_text())
        lines = [json.loads(line) for line in files["x.jsonl"].read_text().splitlines()]
        self.assertEqual(lines[0]["nodes"], [f"node{i}" for i in range(1, 17)])
        pairs = {tuple(sorted(line["group"])) for line in lines[1:] if line["stage"] == "pairs"}
        self.assertEqual(len(pairs), 120, "every pair")

    def suites_of(self, path):
        """What JUnit XML has by stage: counts, each of which is that of the cases, what is said, and the result and message of each case."""
        suites, names = {}, []
        for suite in xml.etree.ElementTree.parse(path).getroot():
            self.assertEqual(suite.tag, "testsuite")
            stage = suite.get("name").removeprefix("accept.")
            cases = {}
            for case in suite.findall("testcase"):
                [result] = [one for one in case if one.tag != "system-out"] or [None]
                names.append((case.get("classname"), case.get("name")))
                self.assertTrue(case.get("classname").startswith(f"tutti.accept.{stage}."), names[-1])
                kind = case.get("classname").rsplit(".", 1)[1]
                cases[kind, case.get("name")] = ("passed", "") if result is None else (result.tag, result.get("message"))
            results = [result for result, _ in cases.values()]
            found = {count: results.count(tag) for tag, count in [("failure", "failures"), ("error", "errors"), ("skipped", "skipped")]}
            found["tests"] = len(suite.findall("testcase"))
            self.assertEqual({count: int(suite.get(count)) for count in found}, found, stage)
            self.assertGreaterEqual(float(suite.get("time")), 0)
            suites[stage] = {**found, "cases": cases, "said": suite.findtext("system-out")}
        self.assertEqual(len(names), len(set(names)), "each case has a name of its own")
        self.assertEqual(list(suites), ["inventory", "alone", "pairs", "shifts", "rings", "groups", "soak", "job"])
        return suites

    def test_junit_has_a_suite_for_each_stage(self):
        path = self.folder / "x.xml"
        self.accept(USUAL + FAULT.format("nic", 'node = "node5"\nshare = "30%"') + FAULT.format("link", 'nodes = ["node2", "node9"]\nshare = "30%"'),
                    "--junit", path)
        suites = self.suites_of(path)
        self.assertTrue(suites["inventory"]["said"].startswith("FAIL. 15 of 16 nodes passed, 1 failed; a link failed."), suites)
        pairs = suites["pairs"]
        self.assertEqual((pairs["tests"], pairs["failures"], pairs["errors"], pairs["skipped"]), (16 + 4 + 1, 2, 0, 0), pairs)
        self.assertEqual({case for case, (result, _) in pairs["cases"].items() if result == "failure"}, {("node", "node5"), ("link", "node2, node9")})
        self.assertTrue(pairs["cases"]["node", "node5"][1].startswith("node5 is slow: "), pairs)
        self.assertEqual([pairs["cases"]["leaf", leaf] for leaf in "ABCD"], [("passed", "")] * 4)
        for stage, suite in suites.items():
            later = stage not in ("inventory", "alone", "pairs")
            if stage != "pairs":
                self.assertEqual((suite["tests"], suite["failures"], suite["errors"], suite["skipped"]), (16, 0, 0, int(later)), stage)
            if later:
                self.assertTrue(suite["cases"]["node", "node5"][1].startswith("found in stage pairs: node5 is slow: "), suite)

    def test_junit_tells_who_is_not_there_and_what_is_left_out(self):
        path = self.folder / "x.xml"
        self.accept(USUAL + FAULT.format("absent", 'node = "node7"'), "--junit", path, "--stages", "inventory,alone,pairs")
        suites = self.suites_of(path)
        self.assertEqual([(suite["errors"], suite["skipped"]) for suite in suites.values()], [(1, 0), (0, 1), (0, 1)] + [(0, 16)] * 5)
        self.assertEqual(suites["inventory"]["cases"]["node", "node7"][0], "error")
        self.assertEqual(set(suites["job"]["cases"].values()), {("skipped", "it is not asked for")})
        self.accept(USUAL, "--junit", path, "--budget", "1us")
        pairs = self.suites_of(path)["pairs"]
        self.assertEqual([pairs["cases"]["node", f"node{i}"] for i in range(1, 17)], [("error", "the end came first")] * 16)

    def test_nodes_of_an_earlier_run_may_be_resumed(self):
        slow = USUAL + FAULT.format("nic-out", 'node = "node3"\nshare = "30%"')
        slurm = self.folder / "x.exclude.slurm"
        none = "\n# no node is to be excluded\n"
        for _ in range(2):
            self.accept(slow, "--exclude", self.folder / "x")
            [drain] = [line for line in slurm.read_text().splitlines() if "State=DRAIN" in line]
            self.assertTrue(drain.startswith('# scontrol update NodeName=node3 State=DRAIN Reason="tutti:nic-out -'), drain)
        reason = re.search('"(.*)"', drain)[1]
        for words in [["--budget", "1us"], ["--stages", "alone"]]:  # these say nothing of its network
            self.accept(USUAL, "--exclude", self.folder / "x", *words)
            self.assertIn(f"\n# node3 was found by an earlier run, and has not passed that stage since\n{drain}\n", slurm.read_text())
            self.assertTrue(slurm.read_text().startswith("--exclude=node3\n"), "it is still to be drained")
            self.assertNotIn("\nnode3\n", (self.folder / "x.exclude.hosts").read_text())
            self.assertNotIn("RESUME", slurm.read_text())
        self.accept(USUAL, "--exclude", self.folder / "x")
        self.assertEqual(slurm.read_text(),
                         none + "# To review. tutti runs none of these commands. Ask squeue first whether a node has a job.\n"
                         f'# node3 passed. It was to be drained for "{reason}": resume it only where sinfo -R still shows this reason\n'
                         "# scontrol update NodeName=node3 State=RESUME\n")
        self.accept(USUAL, "--exclude", self.folder / "x")
        self.assertEqual(slurm.read_text(), none, "it is proposed once")

    def test_a_file_that_no_run_has_written_resumes_nothing(self):
        slurm = self.folder / "x.exclude.slurm"
        drain = b'# scontrol update NodeName=node3 State=DRAIN Reason="tutti:dead"\n'
        for content in [drain + b"\0", drain.replace(b"node3", b"node33"), drain.replace(b"tutti:", b""), b"\xff" * 64, b"State=DRAIN\n" * 4]:
            slurm.write_bytes(content)
            result = self.accept(USUAL, "--exclude", self.folder / "x", "--stages", "pairs")
            self.assertEqual((result.code, result.err, slurm.read_text()), (0, "", "\n# no node is to be excluded\n"), content)

    def test_resume_goes_on_where_it_was_cut_off(self):
        whole, cut = self.folder / "whole.jsonl", self.folder / "cut.jsonl"
        first = self.accept(USUAL + FAULTS[0][0], "--lines", whole)
        text = whole.read_text()
        cut.write_text(text[:len(text) * 2 // 3])
        second = self.accept(USUAL + FAULTS[0][0], "--resume", cut)
        self.assertEqual((second.code, second.err), (4, ""), second)
        self.assertRegex(second.out, r"# \d+ tests are taken from ")
        # What is left is drawn anew: a pretended cluster has no memory. What was measured stays.
        self.assertTrue(cut.read_text().startswith(text[:text.rindex("\n", 0, len(text) * 2 // 3) + 1]))
        self.assertIn("node5 sends ", second.out.splitlines()[2])
        third = self.accept(USUAL + FAULTS[0][0], "--resume", cut)
        self.assertEqual(third.out.splitlines()[2:], second.out.splitlines()[2:], "all of it is in the lines now")
        other = self.accept(USUAL + FAULTS[0][0], "--resume", cut, "--margin", "7%")
        self.assertEqual(other.code, 2, other)
        self.assertIn("its plan is ", other.err)
        self.assertEqual(first.code, 4, first)

    def test_a_baseline_finds_a_slow_fleet(self):
        base = self.folder / "base.json"
        self.assertEqual(self.accept(USUAL, "--json", base).code, 0)
        self.assertEqual(self.accept(USUAL, "--baseline", base).code, 0)
        slow = USUAL + FAULT.format("fleet", 'share = "15%"')
        self.assertEqual(self.accept(slow).code, 0, "nobody can see it without a baseline")
        result = self.accept(slow, "--baseline", base)
        self.assertEqual(result.code, 4, result)
        self.assertRegex(result.out.splitlines()[1], r"FAIL. All 16 nodes are 1[3-7]\.\d % \(.*\) below the baseline")

    def test_a_suite_says_what_is_played_and_an_option_goes_before_it(self):
        suite = self.folder / "suite.toml"
        suite.write_text('margin = "8%"\n[[stage]]\nname = "pairs"\n[[stage]]\nname = "soak"\ntime = "20s"\n')
        result = self.accept("nodes = 8\n", "--suite", suite)
        self.assertEqual((result.code, result.err), (0, ""), result)
        self.assertIn("Margin 8 %", result.out)
        self.assertIn("# soak: 1,000 operations on all nodes, each result verified", result.out)
        self.assertIn("# stage rings is left out: it is not asked for", result.out)
        self.assertIn("Margin 6 %", self.accept("nodes = 8\n", "--suite", suite, "--margin", "6%").out)
        suite.write_text('[[stage]]\nname = "pears"\n')
        result = self.accept("nodes = 8\n", "--suite", suite)
        self.assertEqual(result.code, 2, result)
        self.assertIn("line 2: unknown stage 'pears'", result.err)

    def test_many_nodes_are_folded(self):
        result = self.accept("nodes = 64\nleaf = 16\n" + FAULT.format("nic-out", 'node = "node17"\nshare = "31%"') +
                             FAULT.format("link", 'nodes = ["node22", "node40"]\nshare = "18%"'))
        self.assertEqual(result.code, 4, result)
        self.assertIn("FAIL. 63 of 64 nodes passed, 1 failed; a link failed. Every pair tested (2,016 of 2,016, both ways).", result.out)
        self.assertRegex(result.out, r"\n  node17 +FAIL nic-out +-3\d\.\d % +-3\d\.\d \.\. -\d\d\.\d ")
        self.assertRegex(result.out, r"\n  node22 - node40 +FAIL link ")
        self.assertRegex(result.out, r"\n  B +16 +15 ")
        self.assertLess(len(result.out.splitlines()), 25, result)

    def test_a_list_plays_nothing_and_a_budget_ends_it(self):
        result = self.accept("nodes = 64\nleaf = 16\n", "--list", "--json", "/nowhere/x.json")
        self.assertEqual((result.code, len(result.out.splitlines())), (0, 1), result)
        result = self.accept("nodes = 64\nleaf = 16\n", "--budget", "1us")
        self.assertEqual(result.code, 3, result)
        self.assertIn("INCOMPLETE", result.out)
        self.assertIn("--budget: 1us are over", result.err)

    def test_as_a_nagios_plugin(self):
        for cluster, code, begin in [(USUAL, 0, "TUTTI PASS: "), (USUAL + FAULTS[0][0], 2, "TUTTI FAIL: "), (USUAL + FAULTS[-2][0], 3, "TUTTI ERROR: "),
                                     ('older = "50%"\nolder_by = "30%"\n' + USUAL, 1, "TUTTI UNDECIDED: ")]:
            result = self.accept(cluster, "--nagios")
            self.assertEqual((result.code, len(result.out.splitlines())), (code, 1), result)
            self.assertTrue(result.out.startswith(begin), result)
            self.assertEqual(result.out.count(begin[6:-2]), 1, result)
        for words in [["--margin", "90%"], ["--no-such-option"], ["--suite", "/nowhere/x"]]:
            result = self.accept(USUAL, "--nagios", *words)
            self.assertEqual((result.code, result.out), (3, "TUTTI UNKNOWN: nothing was tested; stderr says why\n"), result)

    def test_mistakes_are_named(self):
        for words, said in [(["--margin", "90%"], "--margin: '90%' is no share from 0.5% to 50%: did you mean '50%'?"),
                            (["--stages", "pears"], "(one of: inventory alone pairs shifts rings groups soak job)"), (["--leaves", "0"], "--leaves: "),
                            (["--leaves", "/nowhere/x"], "/nowhere/x"), (["--message-size", "8,16"], "--message-size: "),
                            (["--json", "/nowhere/x.json"], "/nowhere"), (["--resume", "/nowhere/x"], "/nowhere/x"),
                            (["--baseline", "/dev/null"], "--baseline: "), (["--budget", "soon"], "--budget: ")]:
            result = self.accept(USUAL, *words)
            self.assertEqual((result.code, result.out.count("\n  node")), (2, 0), result)
            self.assertIn(said, result.err, result)
        result = self.accept("nodes = 8\nnodez = 4\n")
        self.assertEqual(result.code, 2, result)
        self.assertIn("line 2: unknown key 'nodez': did you mean 'nodes'?", result.err)
        result = support.run("accept")
        self.assertEqual(result.code, 2, result)
        self.assertIn("needs --hosts LIST, or --pretend FILE", result.err)


class OnHosts(Agents):
    def test_an_interrupt_keeps_what_was_measured(self):
        with self.on("a,b,c,d", "accept", "--lines", "{folder}/lines", "--json", "{folder}/x.json") as run:
            end = time.monotonic() + support.patience(60)
            lines = run.path / "lines"
            while (not lines.exists() or lines.read_text().count("\n") < 6) and time.monotonic() < end:
                time.sleep(0.1)
            run.process.send_signal(signal.SIGTERM)
            result = run.wait(30)
            self.assertEqual(result.code, 130, result)
            self.assertIn("INCOMPLETE", result.out, result)
            self.assertIn("interrupted by signal 15", result.err, result)
            self.assertTrue(json.loads((run.path / "x.json").read_text())["is_interrupted"])
            self.assertGreaterEqual(lines.read_text().count('"measured"'), 5)
            self.nothing_is_left(run)


if __name__ == "__main__":
    unittest.main()
