# SPDX-License-Identifier: Apache-2.0
"""`tutti doctor` on the machine at hand; machines of every kind are in suites/unit/harness/doctor."""
import json
import os
import unittest

import support


class Doctor(unittest.TestCase):
    def test_tells_this_machine_and_says_what_to_do(self):
        result = support.run("doctor")
        self.assertEqual((result.code, result.err), (0, ""), result)
        for name in ["processor", "cores", "caches", "speed", "time", "memory", "host", "references", "PyTorch", "GPUs"]:
            self.assertRegex(result.out, rf"(?m)^  {name} +\S")
        self.assertNotRegex(result.out, r"\(cores \d+\)", "one core is none of several")
        for line in result.out.splitlines():
            self.assertLessEqual(len(line), 120, line)

    def test_json_says_the_same(self):
        result = support.run("doctor", "--json")
        self.assertEqual((result.code, result.err), (0, ""), result)
        everything = json.loads(result.out)
        machine = everything["machine"]
        self.assertEqual(machine["cores_allowed"], sorted(os.sched_getaffinity(0)))
        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        self.assertEqual(machine["memory_bytes"], pages)
        self.assertEqual(machine["backends"], support.REFERENCES)
        self.assertIn(f"process group of PyTorch: {machine['torch']}\n", support.run("list").out)
        self.assertRegex(machine["torch"], r"^(built for torch \d|not built: \w)")
        text = support.run("doctor").out
        for finding in everything["findings"]:
            self.assertEqual(list(finding), ["name", "severity", "what", "why", "advice"])
            self.assertIn(finding["severity"], ["blocks", "spoils", "note"])
            if finding["name"] not in ["load", "steal"]:  # they change while one looks
                self.assertIn(finding["what"][:40], text)

    def test_fewer_cores_are_seen(self):
        core = min(os.sched_getaffinity(0))
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {core})
        try:
            everything = json.loads(support.run("doctor", "--json").out)
        finally:
            os.sched_setaffinity(0, before)
        self.assertEqual(everything["machine"]["cores_allowed"], [core])
        self.assertEqual("affinity" in [finding["name"] for finding in everything["findings"]],
                         len(everything["machine"]["cores_online"]) > 1)

    def test_mistakes_are_named(self):
        result = support.run("doctor", "--jsno")
        self.assertEqual((result.code, result.out), (2, ""), result)
        self.assertIn("'--json'", result.err)
        for words, says in [(["--hosts", "a,"], "'' is no name of a host"),
                            (["--hostfile", "/nowhere/hosts"], "cannot read '/nowhere/hosts'"),
                            (["--agent", "ssh"], "--agent: has no meaning without --hosts"),
                            (["--interface", "lo"], "--interface: has no meaning without --hosts"),
                            (["--hosts", "localhost", "--interface", "no0"], "'no0' is neither an interface of this machine")]:
            with self.subTest(words):
                result = support.run("doctor", *words)
                self.assertEqual((result.code, result.out), (2, ""), result)
                self.assertIn(says, result.err)

    def test_one_host_that_is_this_machine(self):
        result = support.run("doctor", "--hosts", "localhost", "--agent", "/nowhere/agent")
        self.assertEqual((result.code, result.err), (0, ""), result)
        self.assertRegex(result.out, r"(?m)^  localhost +\S+ ")
        result = support.run("doctor", "--hosts", "localhost,127.0.0.1,a", "--agent", "/nowhere/agent", "--interface", "lo")
        self.assertEqual((result.code, result.err), (3, ""), result)
        self.assertIn("host a cannot be examined: cannot execute '/nowhere/agent': No such file or directory", result.out)


if __name__ == "__main__":
    unittest.main()
