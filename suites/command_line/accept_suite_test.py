# SPDX-License-Identifier: Apache-2.0
"""What a suite says of the stages of `tutti accept`: tests, what a stage needs, a command in place of the job."""
import json
import pathlib
import subprocess
import tempfile
import textwrap
import unittest

import support
from accept_test import FAULT, USUAL, Cluster

SAMPLE = """\
margin = "5%"
too_fast = "10%"
confidence = 0.999
[[stage]]
name = "inventory"
blocking = ["unreachable", "build", "link_speed", "memory"]
[[stage]]
name = "alone"
needs = ["inventory"]
tests = [{collective = "all_reduce", sizes = "8,8M"}, {check = true}]
[[stage]]
name = "pairs"
needs = ["alone"]
schedule = "circle"
tests = [{collective = "bandwidth", sizes = "1M", window = 8, directions = 2}, {collective = "pingpong", sizes = "8"}]
deadline = "5x"
[[stage]]
name = "shifts"
needs = ["pairs"]
schedule = "shift"
tests = [{collective = "sendrecv", sizes = "1M"}]
[[stage]]
name = "rings"
[[stage]]
name = "groups"
tests = [{collective = "all_reduce", sizes = "8,1M,64M"}, {collective = "all_to_all", sizes = "64K"}]
[[stage]]
name = "soak"
[[stage]]
name = "job"
blocking = false
"""
STAGE = '[[stage]]\nname = "{}"\n'


class Suites(Cluster):
    def with_suite(self, suite, cluster, *words):
        path = self.folder / "suite.toml"
        path.write_text(suite)
        return self.accept(cluster, "--suite", path, *words)

    def lines(self):
        """Of tests."""
        return [line for line in map(json.loads, (self.folder / "lines").read_text().splitlines()) if "group" in line]

    def cells(self, stage):
        return {line["cell"] for line in self.lines() if line["stage"] == stage}

    def test_each_key_is_taken(self):
        result = self.with_suite(SAMPLE, USUAL, "--lines", self.folder / "lines")
        self.assertEqual((result.code, result.err), (0, ""), result)
        self.assertEqual(self.cells("alone"), {"alone/8B", "alone/8388608B"})
        self.assertEqual(self.cells("groups"), {"all_reduce/8B", "all_reduce/1048576B", "all_reduce/67108864B", "all_to_all/65536B"})
        self.assertEqual(self.cells("shifts"), {"ring/1048576B"})

    def test_the_suite_in_the_tree_is_what_is_played_without_one(self):
        of_suite = self.accept(USUAL, "--suite", support.SOURCE / "suites/acceptance.toml", "--lines", self.folder / "lines")
        tests = [{**line, "seconds": 0} for line in self.lines()]
        usual = self.accept(USUAL, "--lines", self.folder / "lines")
        self.assertEqual(of_suite.out, usual.out)
        self.assertEqual([{**line, "seconds": 0} for line in self.lines()], tests)

    def test_messages_have_the_size_that_their_stage_says(self):
        suite = (STAGE.format("pairs") + 'tests = [{collective = "bandwidth", sizes = "64K"}, {collective = "pingpong", sizes = "64"}]\n'
                 + STAGE.format("shifts") + STAGE.format("rings") + 'tests = [{collective = "sendrecv", sizes = "2M"}]\n')
        self.with_suite('message_size = "4M"\n' + suite, USUAL, "--lines", self.folder / "lines")
        self.assertEqual(self.cells("pairs"), {"bandwidth/65536B", "bandwidth-back/65536B", "pingpong/64B"})
        self.assertEqual(self.cells("shifts"), {"ring/4194304B"})
        self.assertEqual(self.cells("rings"), {"ring/2097152B"})

    def test_a_stage_plays_on_nodes_that_passed_what_it_needs(self):
        slow = FAULT.format("nic", 'node = "node5"\nshare = "30%"')
        stages = STAGE.format("alone") + STAGE.format("pairs") + STAGE.format("groups")
        for needs, plays in [("", False), ('needs = ["pairs"]\n', False), ("needs = []\n", True), ('needs = ["alone"]\n', True)]:
            with self.subTest(needs):
                result = self.with_suite(stages + needs, USUAL + slow, "--lines", self.folder / "lines")
                self.assertEqual(result.code, 4, result)
                self.assertEqual(any("node5" in line["group"] for line in self.lines() if line["stage"] == "groups"), plays)

    def test_a_needed_stage_that_is_not_asked_for_is_told(self):
        stages = STAGE.format("alone") + STAGE.format("pairs") + STAGE.format("groups") + 'needs = ["pairs"]\n'
        words = "# Stage groups needs pairs, which was left out: its nodes are UNTESTED there\n"
        self.assertIn(words, self.with_suite(stages, USUAL, "--stages", "alone,groups").out)
        self.assertNotIn(words, self.with_suite(stages, USUAL).out)

    def test_what_a_needed_stage_needs_is_needed_too(self):
        dead = FAULT.format("dead", 'node = "node3"')
        stages = STAGE.format("alone") + STAGE.format("pairs") + STAGE.format("rings") + 'needs = ["pairs"]\n'
        result = self.with_suite(stages, USUAL + dead, "--lines", self.folder / "lines")
        self.assertEqual(result.code, 5, result)
        self.assertEqual([line for line in self.lines() if line["stage"] == "rings" and "node3" in line["group"]], [])
        self.assertIn("15 of 16 nodes passed", result.out)

    def test_an_option_goes_before_the_suite(self):
        self.accept(USUAL, "--suite", support.SOURCE / "suites/acceptance.toml", "--message-size", "4M", "--lines", self.folder / "lines")
        self.assertEqual({*self.cells("pairs"), *self.cells("rings")}, {"bandwidth/4194304B", "bandwidth-back/4194304B", "pingpong/8B", "ring/4194304B"})
        self.assertIn("all_reduce/67108864B", self.cells("groups"))

    def test_a_resumed_run_has_the_same_deadline(self):
        for more in ['deadline = "9x"\n', 'tests = [{collective = "pingpong", sizes = "64"}]\n', "needs = []\n"]:
            self.with_suite(STAGE.format("pairs"), USUAL, "--lines", self.folder / "lines")
            result = self.with_suite(STAGE.format("pairs") + more, USUAL, "--resume", self.folder / "lines")
            self.assertEqual(result.code, 2, result)
            self.assertIn("its plan is ", result.err)

    def test_differences_of_a_pretended_cluster_are_not_known(self):
        result = self.with_suite(STAGE.format("inventory") + 'blocking = ["memory"]\n', USUAL)
        self.assertIn("# inventory: differences between hosts are not known in a pretended cluster: none keeps a host out", result.out)

    def test_mistakes_are_named_with_their_line(self):
        for suite, said in [
                (STAGE.format("alone") + 'tests = [{collective = "all_reduce", sizes = "7"}]', "7 is no size of whole floats from 4 to 1G: did you mean '4'?"),
                (STAGE.format("groups") + 'tests = [{collective = "all_reduce", sizes = "8"}, {collective = "all_reduce", sizes = "1M"}]',
                 "line 3: collective 'all_reduce' is there twice in stage 'groups'"),
                (STAGE.format("groups") + 'needs = ["pairs"]', "stage 'groups' needs 'pairs', which is not played"),
                (STAGE.format("alone") + "tests = [{check = true, foo = 1}]", "unknown key 'foo'"),
                (STAGE.format("pairs") + 'tests = [{collective = "bandwidth", sizes = "1M", directions = 1}]', "'directions' must be 2"),
                (STAGE.format("job") + 'time = "5m"', "line 3: 'time' is of a command"),
                (STAGE.format("job") + 'command = ["x\\u0000y"]', "with a zero byte"),
                ('confidence = "99.9"', "line 1: 'confidence' is '99.9': allowed are 90% to 99.99%: did you mean '99.9%'?"),
                (STAGE.format("pairs") + 'needs = ["groups"]', "line 3: 'needs': stage 'groups' is not played before 'pairs': there are inventory and alone"),
                (STAGE.format("pairs") + 'needs = ["alon"]', "line 3: 'needs': unknown stage 'alon': did you mean 'alone'?"),
                (STAGE.format("pairs") + 'needs = "alone"', "line 3: 'needs' must be a list of texts"),
                (STAGE.format("pairs") + 'schedule = "shift"', "line 3: 'schedule' is 'shift': stage 'pairs' has the schedule 'circle'"),
                (STAGE.format("pairs") + 'deadline = "1x"', "line 3: 'deadline' is '1x': allowed are 2x to 1000x: did you mean '2x'?"),
                (STAGE.format("pairs") + 'tests = [{collective = "all_reduce", sizes = "1M"}]',
                 "line 3: in stage 'pairs': unknown collective 'all_reduce' (one of: bandwidth pingpong)"),
                (STAGE.format("pairs") + 'tests = [{collective = "bandwidth", sizes = "1M,2M"}]', "line 3: 'sizes' has 2 sizes: one is allowed"),
                (STAGE.format("pairs") + 'tests = [{collective = "bandwidth", sizes = "1M", window = 65}]', "allowed are 1 to 64: did you mean 64?"),
                (STAGE.format("groups") + 'tests = [{collective = "all_reduce"}]', "line 3: a test needs `collective = \"all_reduce\", sizes"),
                (STAGE.format("groups") + 'tests = [{collective = "all_reduce", sizes = "2G"}]', "2G is no size of whole floats from 4 to 1G: did you mean '1G'?"),
                (STAGE.format("alone") + "tests = [{check = false}]", "line 3: 'check' is false: each result is verified"),
                (STAGE.format("soak") + 'tests = []', "line 3: unknown key 'tests'"),
                (STAGE.format("job") + "command = []", "line 3: 'command' names no program"),
                (STAGE.format("inventory") + 'blocking = ["memry"]', "unknown difference 'memry': did you mean 'memory'?"),
                ("confidence = 1.5", "line 1: 'confidence' is 1.5: allowed are 0.9 to 0.9999: did you mean 0.9999?")]:
            with self.subTest(suite):
                result = self.with_suite(suite, USUAL)
                self.assertEqual((result.code, result.out), (2, ""), result)
                self.assertIn(said, result.err, result)

    def test_a_pretended_cluster_runs_no_command(self):
        result = self.with_suite(STAGE.format("job") + 'command = ["false"]\n', USUAL)
        self.assertEqual(result.code, 3, result)
        self.assertIn("# stage job is left out: a pretended cluster runs no command", result.out)

    def test_a_line_says_how_its_test_compares(self):
        slow = FAULT.format("nic", 'node = "node5"\nshare = "30%"')
        self.accept(USUAL + slow, "--stages", "pairs", "--lines", self.folder / "lines")
        bandwidths = [line for line in self.lines() if line["cell"].startswith("bandwidth")]
        of_slow = [line["of_fleet"] for line in bandwidths if "node5" in line["group"] and "of_fleet" in line]
        others = [line["of_fleet"] for line in bandwidths if "node5" not in line["group"] and "of_fleet" in line]
        self.assertLess(sorted(of_slow)[len(of_slow) // 2], -0.25)
        self.assertGreater(sorted(others)[len(others) // 10], -0.1)
        for line in bandwidths:
            self.assertEqual(line["verdict"], "SUSPECT" if line.get("of_fleet", 0) < -0.05 else "PASS", line)
        first = {}
        for line in self.lines():
            group = (*line["group"], line["cell"])
            first[group] = first.get(group, 0) + 1
            self.assertEqual(line["attempt"], first[group], line)


AGENT = """#!/bin/sh
shift
exec "$@"
"""


class Commands(unittest.TestCase):
    """The stage job is a command of the user's."""
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="tutti-agents-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        (cls.folder / "agent").write_text(AGENT)
        (cls.folder / "agent").chmod(0o755)

    def run_job(self, command, more="", *words):
        suite = self.folder / "suite.toml"
        suite.write_text(textwrap.dedent(f"""\
            [[stage]]
            name = "job"
            command = {json.dumps(command)}
            {more}
            """))
        return support.run("accept", "--hosts", "a,b", "--agent", self.folder / "agent", "--interface", "127.0.0.1", "--suite", suite, *words)

    def test_it_gets_the_names_of_the_nodes(self):
        said = self.folder / "said"
        result = self.run_job(["sh", "-c", f"echo $0 $1 >{said}; cat $2 >>{said}", "{hosts}", "{nodes}", "{hostfile}"])
        self.assertEqual(said.read_text(), "a,b 2\na\nb\n", result)
        self.assertRegex(result.out, r"# job: the command ended well after [\d.]+ m?s", result)
        self.assertEqual(result.code, 0, result)

    def test_it_leaves_no_process_and_no_line_of_its_own(self):
        """A shell is mostly what a command begins with; what it says is in no file as a line of its own."""
        for command, code in [(["sh", "-c", "sleep 71 &\nsleep 72"], 5), (["sh", "-c", "printf 'one\\n\\033[31mtwo\\n' >&2; exit 3"], 5)]:
            result = self.run_job(command, 'time = "1s"', "--exclude", self.folder / "x")
            self.assertEqual(result.code, code, result)
            hosts = (self.folder / "x.exclude.hosts").read_text()
            self.assertEqual([line for line in hosts.splitlines() if not line.startswith("#")], ["a", "b"], hosts)
            self.assertIn("# job command  FAIL job\n", hosts)
            self.assertNotIn("\x1b", hosts + result.out)
        self.assertEqual(subprocess.run(["pgrep", "-x", "-f", "sleep 7[12]"], capture_output=True, text=True).stdout, "")

    def test_a_budget_ends_it(self):
        result = self.run_job(["sleep", "60"], "", "--budget", "2s")
        self.assertIn(result.code, [3], result)
        self.assertIn("INCOMPLETE", result.out)
        self.assertLess(result.seconds, support.patience(15))

    def test_one_that_fails_or_does_not_end_is_named(self):
        for command, more, said in [
                (["sh", "-c", "echo no room >&2; exit 3"], "", "The command failed on a and b: 'sh' ended with 3: no room."),
                (["sleep", "60"], 'time = "1s"', "'sleep 60' did not end within 1 s"),
                (["/nowhere/train"], "", "/nowhere/train")]:
            with self.subTest(command):
                result = self.run_job(command, more)
                self.assertEqual(result.code, 5, result)
                self.assertIn(said, result.out)


if __name__ == "__main__":
    unittest.main()
