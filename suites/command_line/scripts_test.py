# SPDX-License-Identifier: Apache-2.0
"""What is wrong about a script's arguments is told before it installs, builds or runs anything."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import support

USAGE = 2
# What a script that takes its arguments for right starts: here each says so, and fails.
STARTED = ["apt-get", "clang++", "cmake", "dpkg-query", "sudo"]


class Arguments(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="tutti-scripts-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        for name in STARTED:
            (cls.folder / name).write_text(f"#!/bin/sh\necho {name} >>'{cls.folder}/started'\nexit 42\n")
            (cls.folder / name).chmod(0o755)

    def call(self, script, *arguments):
        self.started = self.folder / "started"
        self.started.write_text("")
        environment = {**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}"}
        return subprocess.run([support.SOURCE / script, *arguments], env=environment, capture_output=True, text=True,
                              timeout=support.patience(30), check=False)

    def refused(self, script, *arguments, names):
        result = self.call(script, *arguments)
        with self.subTest(script=script, arguments=arguments):
            self.assertEqual((result.returncode, result.stdout, self.started.read_text()), (USAGE, "", ""), result)
            self.assertIn("usage: ", result.stderr)
            for name in names:
                self.assertIn(name, result.stderr)

    def test_quickstart(self):
        for time in ["foo", "0s", "4", "-1m", "1.5m", "", "1s 2s", "4min"]:
            self.refused("scripts/quickstart", time, names=[f"quickstart: time '{time}'", "a whole number above 0", "'4m'"])
        self.refused("scripts/quickstart", "4m", "5m", names=["'4m 5m'"])

    def test_setup(self):
        self.refused("scripts/setup", "foo", names=["setup: unknown argument 'foo'"])
        self.refused("scripts/setup", "--with", "cdua", names=["unknown name 'cdua'", "browser cuda gloo"])

    def test_test(self):
        for preset in ["relase", "", "release dev", "fuzz"]:
            self.refused("scripts/test", preset, names=[f"test: unknown preset '{preset}'", "release dev asan tsan"])
        self.refused("scripts/test", "release", "unit", names=["'unit' is no option of ctest"])
        self.refused("scripts/test", "release", "-L", "unit", "--foo", names=["'--foo' is no option of ctest"])

    def test_fuzz(self):
        self.refused("suites/fuzz/run", "cvs", names=["unknown target 'cvs'", "csv"])
        self.refused("suites/fuzz/run", "30", "csv", "-1", names=["unknown target '-1'"])

    def test_soft_roce(self):
        for words, names in [(["--shrot"], ["unknown argument '--shrot'"]), (["--seconds", "0"], ["--seconds '0'", "590"]),
                             (["--program", "/nowhere/tutti"], ["there is no program '/nowhere/tutti'"]),
                             (["--log", "/nowhere/log"], ["--log: cannot write '/nowhere/log'"])]:
            self.refused("ci/soft-roce", *words, names=names)
        with tempfile.TemporaryDirectory() as folder:
            result = self.call("ci/soft-roce", "--log", f"{folder}/log", "--program", "/bin/true")
            self.assertEqual((result.returncode, result.stdout), (3, ""), result)
            self.assertIn("there is no libtutti_transport_verbs.so beside ", result.stderr)

    def test_right_ones_begin(self):
        for script, *arguments in [("scripts/quickstart",), ("scripts/quickstart", "30s"), ("scripts/test",), ("scripts/setup",),
                                   ("scripts/test", "asan", "-L", "unit", "-j2", "--repeat", "until-fail:2"),
                                   ("suites/fuzz/run", "1", "csv")]:
            with self.subTest(script=script, arguments=arguments):
                result = self.call(script, *arguments)
                self.assertNotEqual(self.started.read_text(), "", result)
                self.assertNotIn("usage: ", result.stderr)

    def test_each_says_how_it_is_called(self):
        for script in ["scripts/quickstart", "scripts/setup", "scripts/test", "scripts/bundle", "scripts/build-backend",
                       "ci/gpu", "ci/soft-roce", "suites/fuzz/run", "suites/nightly/run", "suites/command_line/namespaces.py",
                       "suites/command_line/starters.py", "suites/torch/kills.py"]:
            result = self.call(script, "--help")
            with self.subTest(script=script):
                self.assertEqual((result.returncode, result.stderr), (0, ""), result)
                self.assertTrue(result.stdout.startswith("usage: "), result)


def value(words, option):
    return words[words.index(option) + 1]


def expanded(text):
    """The numbers of `1:3,7`."""
    ends = [[int(end) for end in item.split(":")] for item in text.split(",")]
    return [number for end in ends for number in range(end[0], end[-1] + 1)]


class Nightly(unittest.TestCase):
    """suites/nightly/run, with a program in the place of tutti that ends as it is told."""

    SCRIPT = support.SOURCE / "suites/nightly/run"

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tutti-nightly-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.log = self.folder / "log.txt"
        self.program = self.folder / "tutti"
        self.says('echo "it says $1"; exit 0')

    def says(self, text):
        self.program.write_text(f"#!/bin/sh\n[ $1 = --version ] && echo 'tutti 1.2' && exit\n{text}\n")
        self.program.chmod(0o755)

    def night(self, *words):
        return subprocess.run([self.SCRIPT, "--program", self.program, "--log", self.log, *words], capture_output=True,
                              text=True, timeout=support.patience(60), check=False)

    def test_each_part_has_a_line_and_all_is_in_the_log(self):
        result = self.night("prove", "check_tasks", "--short")
        self.assertEqual((result.returncode, result.stderr), (0, ""), result)
        self.assertRegex(result.stdout, r"(?s)^# nightly, short: tutti 1.2, .*; 2 parts\nok +0 s  check_tasks .*\nok +0 s  prove .*\n"
                                        r"# 2 of 2 parts: 2 ok\n# log: .*log.txt\n$")
        log = self.log.read_text()
        self.assertRegex(log, r"(?m)^== prove: .*\n\$ .*/tutti prove all_reduce --ranks 1:8\nit says prove\nok ")
        self.assertRegex(self.night("prove").stdout, r"(?s)^# nightly: .*; 1 part\n.*\n# 1 of 1 part: 1 ok\n")

    def test_every_collective_is_proved_and_checked(self):
        """`all` is ten of them: no part names it, and what names none takes every one."""
        listed = self.night("--list").stdout
        self.assertRegex(listed, r"tutti prove --ranks 1:128\n")
        self.assertRegex(listed, r"tutti check --ranks ")
        self.assertNotRegex(listed, r"tutti (check|prove) all ")

    def test_one_that_cannot_be_started_has_failed(self):
        result = self.night("limit")  # beside the program there is no limit program
        self.assertEqual(result.returncode, 1, result)
        self.assertRegex(result.stdout, r"(?m)^failed +0 s  limit ")
        self.assertIn("micro_limit'\n", result.stdout)

    def test_verdicts(self):
        for code, verdict, ends_with in [(1, "failed", 1), (3, "skipped", 3), (6, "undecided", 0), (5, "failed", 1)]:
            self.says(f"[ $1 = prove ] || exit 3; echo because; exit {code}")
            result = self.night("prove", "check_tasks")
            self.assertEqual(result.returncode, ends_with, result)
            self.assertRegex(result.stdout, rf"(?m)^{verdict} +0 s  prove ")
            self.assertRegex(result.stdout, r"(?m)^skipped +0 s  check_tasks ")
            self.assertEqual("\n    because\n" in result.stdout, verdict == "failed", result)

    def test_one_that_is_interrupted_ends_its_part(self):
        self.interrupted("exec")
        self.interrupted("trap '' INT; exec")  # as of a shell that starts it with '&'

    def interrupted(self, start):
        self.says("echo $$ >\"$0.pid\"; exec sleep 1000")
        with subprocess.Popen(["/bin/sh", "-c", f'{start} "$@"', "sh", self.SCRIPT, "--program", self.program, "--log", self.log, "prove",
                               "faults"], stdout=subprocess.PIPE, text=True) as process:
            pid = self.folder / "tutti.pid"
            end = time.monotonic() + support.patience(30)
            while not (pid.exists() and pid.read_text().endswith("\n")) and time.monotonic() < end:
                time.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            try:
                out = process.communicate(timeout=support.patience(30))[0]
            except subprocess.TimeoutExpired:
                os.kill(int(pid.read_text()), signal.SIGKILL)
                raise
        self.assertEqual(process.returncode, 130, out)
        self.assertRegex(out, r"(?m)^interrupted +\d+ s  faults ")
        self.assertIn("# 1 of 2 parts: 1 interrupted\n", out)
        self.assertNotIn(int(pid.read_text()), [one.pid for one in support.processes()])
        pid.unlink()

    def test_mistakes(self):
        for words, names in [(["prov"], ["unknown part 'prov'", "'prove'"]), (["--program", "/nowhere"], ["'/nowhere'"]),
                             (["--log", "/nowhere/at/all"], ["cannot write '/nowhere/at/all'"]), (["--shrot"], ["--shrot"])]:
            result = self.night(*words)
            self.assertEqual((result.returncode, result.stdout), (USAGE, ""), result)
            for name in ["usage: run ", *names]:
                self.assertIn(name, result.stderr)
        self.assertNotIn("did you mean", self.night("--list", "xyzzy").stderr)

    def test_all_shares_together_are_the_night(self):
        for of in [1, 3, 16]:
            whole, dealt = self.parts(), {}
            for number in range(1, of + 1):
                for name, words in self.parts("--share", f"{number}/{of}").items():
                    dealt.setdefault(name, []).append(words)
            with self.subTest(of=of):
                self.assertEqual(set(dealt), set(whole))
                for name, words in whole.items():
                    self.assert_is_cut_into(words, dealt[name], name)

    def parts(self, *words):
        """Name -> the words of its command."""
        result = self.night("--list", *words)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result)
        return {name: command.split() for name, command in re.findall(r"(?m)^(\w+) .*\n    (.*)$", result.stdout)}

    def assert_is_cut_into(self, whole, pieces, name):
        """What differs is a list of ranks, a range of seeds, or a number of trials with the seed of its first one."""
        if pieces == [whole]:
            return
        is_timed = name == "fuzz"
        self.assertTrue(is_timed or any(option in whole for option in self.CUT), f"{name} can't be cut, and is in {len(pieces)} shares")
        if is_timed:
            self.assertGreaterEqual(sum(int(piece[1]) for piece in pieces), int(whole[1]))
        self.assertEqual({tuple(self.uncut(piece)) for piece in pieces}, {tuple(self.uncut(whole))}, name)
        for option in ["--ranks", "--seed"]:
            if option in whole and any(value(piece, option) != value(whole, option) for piece in pieces):
                found = sorted(number for piece in pieces for number in expanded(value(piece, option)))
                self.assertEqual(found, expanded(value(whole, option)), f"{name} {option}")
        for option in ["--trials", "--kills", "--stops", "--same", "--slowed"]:
            if option in whole:
                self.assertEqual(sum(int(value(piece, option)) for piece in pieces), int(value(whole, option)), name)
        first = "--same" if "--same" in whole else "--kills" if "--kills" in whole else "--trials"
        if first in whole and "--seed" in pieces[0]:
            seeds = [seed for piece in pieces for seed in
                     range(int(value(piece, "--seed")), int(value(piece, "--seed")) + int(value(piece, first)))]
            self.assertEqual(sorted(seeds), list(range(1, int(value(whole, first)) + 1)), name)
        if "-L" in whole:
            starts = sorted(int(value(piece, "-I").split(",")[0]) for piece in pieces)
            self.assertEqual(starts, list(range(1, len(pieces) + 1)), name)
            self.assertEqual({value(piece, "-I").split(",")[2] for piece in pieces}, {str(len(pieces))}, name)

    CUT = ["--ranks", "--seed", "--trials", "--kills", "--stops", "--same", "--slowed", "--minutes", "-I", "-L"]

    def uncut(self, words):
        """Without the options that cuts have, and without the seconds of the fuzzers."""
        dropped = {i for i, word in enumerate(words) if word in self.CUT or words[max(0, i - 1)] in self.CUT}
        return [word for i, word in enumerate(words) if i not in dropped and not word.isdecimal()]

    def test_no_part_of_a_sixteenth_takes_long(self):
        for number in range(1, 17):
            listed = self.night("--list", "--share", f"{number}/16").stdout
            minutes = [float(text) for text in re.findall(r"\(at most (\S+) min\)", listed)]
            self.assertGreater(len(minutes), 15, listed)
            self.assertLessEqual(max(minutes), 30, listed)

    def test_a_share_of_a_part(self):
        result = self.night("--share", "2/4", "check_tasks", "orders")
        self.assertEqual(result.returncode, 0, result)
        self.assertRegex(result.stdout, r"^# nightly, share 2/4: tutti 1.2, ")
        self.assertIn(" --seed 501:1000 ", self.log.read_text())
        having = [number for number in range(1, 5) if self.night("--share", f"{number}/4", "limit", "--list").returncode == 0]
        self.assertEqual(len(having), 1, "it is in one share only")
        other = having[0] % 4 + 1
        refused = self.night("--share", f"{other}/4", "limit")
        self.assertEqual((refused.returncode, refused.stdout), (USAGE, ""), refused)
        self.assertIn(f"--share {other}/4 has nothing of limit: did you mean '{having[0]}/4'?", refused.stderr)

    def test_what_is_no_share(self):
        for text, nearest in [("17/16", "16/16"), ("0/16", "1/16"), ("3", "3/16"), ("3/0", "1/1"), ("2/1000", "2/64"), ("a/4", "1/4"),
                              ("-1/4", "1/4"), ("1/2/3", "1/2"), ("", "1/16"), ("9" * 5000 + "/4", "1/4")]:
            result = self.night("--share=" + text, "--list")
            self.assertEqual((result.returncode, result.stdout), (USAGE, ""), result)
            for words in [f"--share: '{text[:20]}", "K is 1 to N, N is 1 to 64", f"did you mean '{nearest}'?"]:
                self.assertIn(words, result.stderr)
            self.assertLess(len(result.stderr), 1000)
        self.assertIn("has no shares", self.night("--short", "--share", "1/2").stderr)

    def test_the_log_is_named_after_its_share(self):
        tree = self.folder / "tree"
        (tree / "suites").mkdir(parents=True)
        shutil.copytree(self.SCRIPT.parent, tree / "suites/nightly", ignore=shutil.ignore_patterns("__pycache__"))
        subprocess.run([tree / "suites/nightly/run", "--program", self.program, "--share", "2/3", "prove"], check=True,
                       stdout=subprocess.DEVNULL, timeout=support.patience(60))
        logs = [path.name for path in (tree / "results/nightly").iterdir()]
        self.assertRegex(" ".join(logs), r"^20\S+-share-2-of-3\.txt$")

    def test_every_command_exists(self):
        """What is not built with every build aside."""
        listed = self.night("--list").stdout
        commands = re.findall(r"(?m)^    (\S+)", listed)
        self.assertGreater(len(commands), 10)
        for command in set(commands):
            path = support.SOURCE / command
            self.assertTrue(os.access(path, os.X_OK) or path.parent == self.folder, command)
        self.assertFalse(self.log.exists(), "nothing has been run")


class Identity(unittest.TestCase):
    """What a build is called: scripts/version.cmake in a checkout of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tutti-version-")
        self.addCleanup(folder.cleanup)
        self.tree = pathlib.Path(folder.name) / "tree"
        (self.tree / "impl/algorithms").mkdir(parents=True)
        (self.tree / "impl/a.cc").write_text("int a;\n")
        (self.tree / "README.md").write_text("a\n")
        (self.tree / ".gitignore").write_text("mine_*\n")
        self.git("init", "--quiet")
        self.git("add", ".")
        self.git("-c", "user.name=tutti", "-c", "user.email=tutti@localhost", "commit", "--quiet", "--message", "a")

    def git(self, *words):
        subprocess.run(["git", *words], cwd=self.tree, check=True, stdout=subprocess.DEVNULL)

    def commit(self):
        output = self.tree.parent / "version.h"
        subprocess.run([os.environ["TUTTI_CMAKE"], f"-DSOURCE={self.tree}", "-DVERSION=1.2.3", f"-DOUTPUT={output}", "-P",
                        support.SOURCE / "scripts/version.cmake"], check=True)
        return re.search(r'TUTTI_COMMIT "(.*)"', output.read_text())[1]

    def test_a_clean_tree_is_its_commit(self):
        self.assertRegex(self.commit(), r"^[0-9a-f]{12}$")
        (self.tree / "README.md").write_text("no part of a program\n")
        self.assertRegex(self.commit(), r"^[0-9a-f]{12}$")

    def test_each_difference_has_a_name_of_its_own(self):
        clean, source = self.commit(), self.tree / "impl/a.cc"
        seen = {clean}

        def is_new(what):
            name = self.commit()
            self.assertRegex(name, rf"^{clean}\+[0-9a-f]{{8}}$", what)
            self.assertNotIn(name, seen, what)
            self.assertEqual(self.commit(), name, "the same sources have the same name")
            seen.add(name)

        source.write_text("int b;\n")
        is_new("a tracked source")
        source.write_text("int c;\n")
        is_new("the same source once more")
        self.git("add", "impl/a.cc")
        source.write_text("int a;\n")
        self.assertEqual(self.commit(), clean, "what is staged alone is not compiled")
        for name in ["algorithms/new.cc", "algorithms/a b.h", "mine_ignored.cc"]:
            (self.tree / "impl" / name).write_text("int d;\n")
            is_new(f"an untracked source, {name}")
        (self.tree / "impl/algorithms/new.cc").write_text("int e;\n")
        is_new("an untracked source that has changed")
        source.unlink()
        is_new("a source that is gone")


if __name__ == "__main__":
    unittest.main()
