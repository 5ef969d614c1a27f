# SPDX-License-Identifier: Apache-2.0
"""The starters that are here, over two machines that are network namespaces: starters.py, which suites/nightly/run calls
with those that have to be installed first, too.
"""
import os
import subprocess
import tempfile
import time
import unittest

import namespaces
import starters
import support


@support.at_night
class Starters(unittest.TestCase):
    def tried(self, name, *trials):
        for _, trial, _, problems in starters.perform(name, trials):
            with self.subTest(trial):
                self.assertEqual(problems, [], "\n".join(problems))

    def test_by_hand(self):
        self.tried("by-hand", "run", "killed")

    def test_openmpi(self):
        self.tried("openmpi", "run", "interrupted")

    def test_mpich(self):
        self.tried("mpich", "run", "interrupted")


@support.at_night
class Scripts(unittest.TestCase):
    """What a user may forget."""

    def refused(self, script, names, **environment):
        known = {name: value for name, value in os.environ.items() if name not in ("HOSTS", "NODES", "RANKS", "FIRST", "NODE")}
        result = subprocess.run([starters.SCRIPTS / script, "list"], env={**known, **environment}, capture_output=True, text=True,
                                timeout=support.patience(20), check=False)
        self.assertNotEqual(result.returncode, 0, result)
        self.assertIn(names, result.stderr)

    def test_where_ranks_are_to_be(self):
        for script in ["openmpi.sh", "mpich.sh", "by-hand.sh"]:
            self.refused(script, "HOSTS: the machines, each with its number of ranks: node1:8,node2:8")
        self.refused("torchrun.sh", "NODES: the number of machines")

    def test_a_machine_that_is_none_of_them(self):
        self.refused("by-hand.sh", "by-hand: 'elsewhere' is none of HOSTS=a:2,b:2: set NODE", HOSTS="a:2,b:2", NODE="elsewhere")

    def test_each_is_tried(self):
        scripts = {path.stem for path in starters.SCRIPTS.glob("*.sh")}
        self.assertEqual(scripts, {"openmpi", "mpich", "by-hand", "torchrun", "slurm"})
        self.assertEqual(scripts, set(starters.NAMES))


@support.at_night
class Namespaces(unittest.TestCase):
    def test_they_end_with_who_made_them_however_that_ends(self):
        program = [namespaces.__file__, "sh", "-c", "exec sleep 1000"]
        folder = self.enterContext(tempfile.TemporaryDirectory())
        with subprocess.Popen(program, stdout=subprocess.DEVNULL, env={**os.environ, "TMPDIR": folder}) as made:
            self.addCleanup(made.kill)
            children = self.eventually(lambda: self.children(made.pid), 3)
            made.kill()
        self.eventually(lambda: [pid for pid in children if os.path.exists(f"/proc/{pid}")], 0)

    def children(self, parent):
        """The two that hold a machine, and the command."""
        found = {one.pid: support.command_of(one.pid)[:1] for one in support.processes() if one.parent == parent}
        return [pid for pid, program in found.items() if program in (["cat"], ["sleep"])]

    def eventually(self, what, number):
        end = time.monotonic() + support.patience(10)
        while len(what()) != number:
            self.assertLess(time.monotonic(), end, what())
            time.sleep(0.02)
        return what()


if __name__ == "__main__":
    unittest.main()
