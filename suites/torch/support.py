# SPDX-License-Identifier: Apache-2.0
"""What the tests of the process group share. They are run by the Python that it was built for."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

FOLDER = pathlib.Path(__file__).resolve().parent
MODULE = os.environ["TUTTI_TORCH_MODULE"]  # the folder of tutti_torch
TORCH2 = FOLDER.parents[1] / "build/torch2/bin/python"
with_torch_2 = unittest.skipUnless(TORCH2.exists(), "no PyTorch 2: scripts/setup --with torch2")
at_night = unittest.skipUnless("TUTTI_NIGHT" in os.environ, "it takes long: a part of suites/nightly/run")


def patience(seconds):
    """The limit `seconds`, longer where others keep the cores busy."""
    return seconds * max(1.0, os.getloadavg()[0] / len(os.sched_getaffinity(0)))


def environment(**more):
    path = os.pathsep.join([MODULE, str(FOLDER), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **more}


def python(*words, seconds=60, **more):
    """Runs Python with these words; the completed process, whose output is one text."""
    with subprocess.Popen([sys.executable, "-B", *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, env=environment(**more), start_new_session=True) as process:
        try:
            said, _ = process.communicate(timeout=patience(seconds))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            said, _ = process.communicate()
            said += f"\nkilled after {patience(seconds):.0f} s"
        return subprocess.CompletedProcess(process.args, process.returncode, said)


NUMBER = re.compile(r"[-+]?\d+\.\d*(?:e[-+]?\d+)?")


def numbers_apart(text):
    """The text without its numbers that have a point, and those."""
    return NUMBER.sub("#", text), [float(number) for number in NUMBER.findall(text)]


class TestCase(unittest.TestCase):
    longMessage = True
    maxDiff = 4000

    def folder(self):
        made = tempfile.TemporaryDirectory(prefix="tutti-torch-")
        self.addCleanup(made.cleanup)
        return made.name

    def assertSameText(self, ours, theirs, about):
        """Sums of many floats may be rounded in another order."""
        words, numbers = numbers_apart(ours)
        their_words, their_numbers = numbers_apart(theirs)
        self.assertEqual(words, their_words, about)
        for number, their_number in zip(numbers, their_numbers):
            self.assertAlmostEqual(number, their_number, delta=1e-4 * max(1.0, abs(their_number)), msg=about)
