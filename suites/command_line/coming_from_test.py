# SPDX-License-Identifier: Apache-2.0
"""Every command of ours on the pages "coming from nccl-tests, OSU or IMB" and "from torch.distributed" does what it
says."""
import json
import re
import shlex
import unittest

import support

PAGE = (support.SOURCE / "suites/perf/coming-from.md").read_text()
OF_TORCH = (support.SOURCE / "suites/perf/from-torch.md").read_text()


@support.at_night
class ComingFrom(unittest.TestCase):
    def test_every_command_runs(self):
        commands = re.findall(r"`tutti ([^`]+)`", PAGE + OF_TORCH)
        self.assertGreaterEqual(len(commands), 48)
        for command in commands:
            if "openmpi" in command and not support.HAS_OPENMPI:
                continue
            words = ["{folder}/" + word if word.startswith("out.") else word for word in shlex.split(command)]
            if words[0] == "run":
                words += ["--budget", "500ms"]  # so that all of them take half a minute
            with self.subTest(command), support.Run(*words) as one:
                result = one.wait(60)
                self.assertEqual(result.code, 0, result)
                if words[0] == "run":
                    verdicts = "0 ok, 0 wrong, [1-9]" if "--check none" in command else "[1-9]\\d* ok, 0 wrong, 0"
                    self.assertRegex(result.out, rf"# \d+ rows? in \d+ cells?: {verdicts}\d* unchecked, \d+ skipped, 0 error")

    def test_options_in_the_text_exist(self):
        text = "".join(support.run(program, "--help").out for program in ["run", "draw"])
        for option in re.findall(r"`(--[a-z-]+)", PAGE + OF_TORCH):
            if option != "--bind-to":
                self.assertRegex(text, rf"(?m)^\s+{option}\b")

    def test_names_are_those_of_the_program(self):
        names = re.findall(r"(?m)^\| `([a-z_]+)` \|", PAGE.split("## The names")[1])
        known = json.loads(support.run("list", "--json").out)["collectives"]
        self.assertEqual(names, known)


if __name__ == "__main__":
    unittest.main()
