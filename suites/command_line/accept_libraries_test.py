# SPDX-License-Identifier: Apache-2.0
"""`tutti accept` with a library in place of tutti: what it plays, and whether its configuration is to blame. On pretended clusters,
and with MPIs on two hosts that an agent reaches."""
import json
import unittest
import xml.etree.ElementTree

import support
from accept_test import FAULT, Cluster
from machines_test import NAMED, PLAIN, Agents

LIBRARY = 'nodes = 8\nleaf = 4\nseed = 3\nlibrary = "gloo"\n'
OF_LIBRARY = "of_library = true\n"
SLOW5 = 'node = "node5"\nshare = "30%"\n'
# What is wrong, the exit code, the first line, whether it is the configuration.
FAULTS = [
    (FAULT.format("nic", SLOW5 + OF_LIBRARY), 4, r"node5 is slow with gloo only: -[23]\d.* against other nodes, and [+-]?\d\.\d % \(.*\) with tutti: "
     r"the configuration of gloo, not the hardware\. All 8 nodes passed", True),
    (FAULT.format("nic", SLOW5), 4, r"node5 is slow: .*: its NIC, cable or port", False),
    (FAULT.format("link", 'nodes = ["node2", "node7"]\nshare = "30%"\n' + OF_LIBRARY), 4, r"node2 and node7 are slow with gloo only: ", True),
    (FAULT.format("fleet", 'share = "60%"\n' + OF_LIBRARY), 4, r"On 8 nodes gloo is slower than tutti by (5[89]|6[0-2])\.\d % .*: the configuration of gloo", True),
]


class Pretended(Cluster):
    def test_what_the_bare_transport_passes_is_a_matter_of_configuration(self):
        for fault, code, words, is_configuration in FAULTS:
            with self.subTest(fault):
                result = self.accept(LIBRARY + fault, "--json", self.folder / "json", "--junit", self.folder / "xml", "--exclude", self.folder / "x")
                self.assertEqual(result.code, code, result)
                self.assertRegex(result.out.splitlines()[1], r"FAIL\. " + words)
                self.assertRegex(result.out, r"\n# alone, pairs, shifts, rings, groups, soak, job: played by gloo; all else by tutti\n# gloo reaches \d+ % \(\d+ to \d+\) of tutti: ")
                document = json.loads((self.folder / "json").read_text())
                [finding] = document["findings"]
                self.assertEqual(finding["class"] == "configuration", is_configuration, finding)
                self.assertEqual(document["excluded"], [] if is_configuration else ["node5"])
                self.assertEqual((self.folder / "x.exclude.slurm").read_text().startswith("--exclude="), not is_configuration)
                self.assertEqual(document["library"]["name"], "gloo")
                failed = [case.get("name") for case in xml.etree.ElementTree.parse(self.folder / "xml").getroot().iter("testcase")
                          if case.find("failure") is not None]
                self.assertEqual(failed, ["gloo"] if is_configuration else ["node5"])

    def test_a_pair_that_hangs_with_the_library_only_is_not_broken(self):
        result = self.accept(LIBRARY + FAULT.format("hung", 'nodes = ["node2", "node7"]\n' + OF_LIBRARY))
        self.assertEqual(result.code, 5, result)
        self.assertIn("node2 and node7 are not well with gloo (nothing came in 5 s), and are with tutti: the configuration of gloo", result.out)

    def test_a_fault_of_no_library_is_refused(self):
        result = self.accept(LIBRARY.replace('library = "gloo"\n', "") + FAULTS[0][0])
        self.assertEqual(result.code, 2, result)
        self.assertIn("unknown key 'of_library'", result.err)

    def test_a_library_that_is_not_there_is_refused_by_name(self):
        result = support.run("accept", "--hosts", "a,b", "--backend", "nothing")
        self.assertNotEqual(result.code, 0, result)
        self.assertIn("--backend: ", result.err)
        self.assertIn("nothing", result.err)


class Mpis(Agents):
    def plays(self, name):
        with self.on("a,b", "accept", "--backend", name, "--stages", "groups,job", "--message-size", "64K", "--margin", "50%", "--timeout", "30s",
                     "--lines", "{folder}/lines", "--json", "{folder}/json", agent=NAMED, interface="lo") as run:
            result = run.wait(300)
            self.assertEqual(result.code, 0, result)
            self.assertIn(f"# groups, job: played by {name}; all else by tutti over tcp\n", result.out)
            lines = [json.loads(line) for line in (run.path / "lines").read_text().splitlines()[1:]]
            self.assertEqual({line["ending"] for line in lines}, {"measured"}, result)
            self.assertEqual({line["stage"] for line in lines}, {"groups", "configuration", "job"})
            self.assertGreater(json.loads((run.path / "json").read_text())["library"]["of_bare"]["ratio"], -1)
            self.nothing_is_left(run)

    @support.at_night
    @support.needs("openmpi")
    def test_open_mpi_plays_groups_and_job(self):
        self.plays("openmpi")

    @support.at_night
    @support.needs("mpich")
    def test_mpich_plays_groups_and_job(self):
        self.plays("mpich")

    @support.needs("openmpi")
    def test_a_start_that_fails_is_named_and_ends_its_group_only(self):
        # An agent that runs words, and no line of a shell, starts hosts and no mpirun.
        with self.on("a,b", "accept", "--backend", "openmpi", "--stages", "groups", "--timeout", "20s", "--lines", "{folder}/lines", agent=PLAIN) as run:
            result = run.wait(60)
            self.assertEqual(result.code, 5, result)
            self.assertRegex(result.out, r"FAIL\. a and b are not well with openmpi \(mpirun .*\), and are with tutti over tcp: the configuration of openmpi")
            self.nothing_is_left(run)


if __name__ == "__main__":
    unittest.main()
