# SPDX-License-Identifier: Apache-2.0
"""The words that tutti takes and says: names as people write them, help that fits the terminal, the man page and the
completion of bash, and what is said while something long goes on."""
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import time
import unittest

import support

COMMANDS = [[], ["run"], ["check"], ["check", "soak"], ["check", "repeat"], ["prove"], ["explain"], ["draw"], ["simulate"], ["export"], ["train"], ["gate"], ["accept"], ["guidelines"], ["tune"], ["compare"], ["report"], ["list"], ["doctor"]]


def help_of(command, columns=100):
    return support.run(*command, "--help", environment={"COLUMNS": str(columns)}).out


def long_options(text):
    return re.findall(r"(?m)^  (?:-h,)?(--[a-z-]+)", text)


class Names(unittest.TestCase):
    def rows(self, *arguments):
        with support.Run("run", *arguments, "--ranks", "2", "--ranks-as", "threads", "--budget", "0.8s", "--backends",
                         "tutti", "--csv", "{folder}/rows.csv") as one:
            result = one.wait(60)
            self.assertEqual(result.code, 0, result)
            return one.rows()[1]

    def test_rows_have_the_one_name_however_it_was_typed(self):
        rows = self.rows("AllReduce", "bcast", "MPI_Alltoall", "--dtypes", "bf16", "--ops", "MPI_SUM", "--sizes", "1.5K,2KiB")
        self.assertEqual({(row["collective"], row["dtype"], row["op"], row["bytes"]) for row in rows},
                         {(name, "bfloat16", op, size) for name, op in
                          [("all_reduce", "sum"), ("broadcast", "none"), ("all_to_all", "none")]
                          for size in ["1536", "2048"]})
        for row in rows:
            self.assertIn(f"{row['collective']}/", row["case"])
            self.assertIn("/bfloat16/", row["case"])

    def test_a_size_below_one_element_runs_one_of_every_collective(self):
        rows = self.rows("all_reduce", "all_gather", "all_gather_v", "--sizes", "0,1,3,4")
        sizes = {}
        for row in rows:
            sizes.setdefault(row["collective"], []).append(row["bytes"])
        self.assertEqual(sizes, {"all_reduce": ["0", "4"], "all_gather": ["0", "8"], "all_gather_v": ["0", "8"]})

    def test_list_tells_them(self):
        known = json.loads(support.run("list", "--json").out)
        self.assertIn("fp32", known["aliases"]["float"])
        self.assertEqual(known["aliases"]["broadcast"], ["bcast"])
        self.assertLessEqual(set(known["aliases"]), {*known["dtypes"], *known["ops"], *known["collectives"]})
        self.assertRegex(support.run("list").out, r"(?m)^  float +fp32 ")


class Help(unittest.TestCase):
    def test_it_is_as_wide_as_the_terminal(self):
        for command in COMMANDS:
            for columns in [60, 80, 120]:
                with self.subTest(command, columns=columns):
                    widest = max(map(len, help_of(command, columns).splitlines()))
                    self.assertLessEqual(widest, columns)
        self.assertGreater(max(map(len, help_of(["run"], 120).splitlines())), 100)

    def test_a_terminal_is_asked_how_wide_it_is(self):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 64, 0, 0))
        environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
        subprocess.run([support.PROGRAM, "prove", "--help"], stdout=theirs, env=environment, check=True)
        os.close(theirs)
        text = os.read(ours, 65536).decode()
        os.close(ours)
        self.assertTrue(40 < max(map(len, text.splitlines())) <= 64, text)

    def test_options_are_grouped_and_none_is_lost(self):
        text = help_of(["run"])
        titles = ["What to run:", "How to measure:", "How to verify:", "Where and how ranks run:", "Output:", "Other options:"]
        self.assertEqual([line for line in text.splitlines() if line in titles], titles)
        groups = re.split(r"(?m)^([A-Z][\w ]+:)$", text)
        of_group = dict(zip(groups[1::2], map(long_options, groups[2::2])))
        self.assertLessEqual({"--sizes", "--dtypes", "--case"}, set(of_group["What to run:"]))
        self.assertLessEqual({"--csv", "--json"}, set(of_group["Output:"]))
        self.assertEqual(of_group["Other options:"], ["--help"], "name a new option in a group of src/help.cc")

    def test_options_that_it_speaks_of_are_there(self):
        for command in COMMANDS:
            text = help_of(command)
            self.assertEqual(set(re.findall(r"--[a-z][a-z-]*", text)) - set(long_options(text)), set(), command)

    def test_few_options_are_one_group(self):
        self.assertEqual(re.findall(r"(?m)^(\w[\w ]*):$", help_of(["prove"])), ["Positionals", "Options"])

    def test_default_collectives_are_those_that_run(self):
        """Prefix reductions among them; v forms have cases of their own."""
        for command in [["check"], ["prove"]]:
            named = re.search(r"\(default: all and ([^)]*)\)", " ".join(help_of(command).split())).group(1).split(" and ")
            self.assertEqual(named[-2:], ["scan", "exscan"], command)
            self.assertEqual([name for name in named if name.endswith("_v")], [], command)
        said = support.run("prove", "--ranks", "2").out
        for name in named:
            self.assertRegex(said, rf"(?m)^  {name} ")

    def test_an_example_that_is_wrapped_is_still_a_command(self):
        text = help_of(["run"], 60)
        example = text[text.index("Example: ") + len("Example: "):].replace("tutti run", "set -- run", 1)
        words = subprocess.run(["bash", "-c", example + '\nprintf "%s\\n" "$@"'], stdout=subprocess.PIPE, text=True,
                               check=True).stdout.split()
        self.assertIn("--csv", words)
        self.assertNotIn("\\", words)


class ManPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        result = support.run("generate", "man")
        assert result.code == 0, result
        cls.page = result.out

    def test_every_subcommand_and_option_is_in_it(self):
        sections = re.split(r"(?m)^\.SS (.*)$", self.page)
        of_command = dict(zip(sections[1::2], sections[2::2]))
        for command in COMMANDS[1:]:
            with self.subTest(command):
                section = of_command[" ".join(["tutti", *command])].replace("\\-", "-")
                options = long_options(help_of(command))
                self.assertIn("--help", options)
                for option in options:
                    self.assertRegex(section, rf"(?m)^\\fB(-h,)?{option}\\fR")
        self.assertEqual(len(of_command), len(COMMANDS) - 1)

    def test_the_synopsis_says_what_takes_collectives(self):
        synopsis = self.page[self.page.index(".SH SYNOPSIS"):self.page.index(".SH COMMANDS")]
        for command, takes in [("run", " [COLLECTIVE...]"), ("check", " [COLLECTIVE...]"), ("check soak", ""),
                               ("prove", " [COLLECTIVE...]"), ("explain", " COLLECTIVE"), ("draw", " COLLECTIVE"), ("simulate", " [COLLECTIVE...]"), ("export", " COLLECTIVE"), ("train", ""), ("gate", ""), ("list", "")]:
            self.assertIn(f"\n\\fBtutti {command}\\fR [options]{takes}\n", synopsis)

    def test_the_width_of_tables_is_in_it(self):
        self.assertIn("tables", self.page[self.page.index("\nCOLUMNS\n"):])

    def test_every_exit_code_is_in_it(self):
        codes = re.findall(r"(?m)^\.TP\n(\d+)$", self.page)
        self.assertEqual(codes, re.findall(r"(?m)^\| (\d+) \|", (support.SOURCE / "src/errors.md").read_text()))

    @unittest.skipUnless(shutil.which("groff"), "there is no groff")
    def test_groff_has_no_warning(self):
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z"], input=self.page, capture_output=True, text=True,
                              check=True)
        self.assertEqual(done.stderr, "")

    def test_a_text_that_there_is_not(self):
        result = support.run("generate", "mna")
        self.assertEqual((result.code, result.out), (2, ""))
        self.assertIn("did you mean 'man'?", result.err)
        self.assertNotIn("generate", help_of([]), "it is the build's")


class Bash(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="tutti-completion-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        result = support.run("generate", "bash")
        assert result.code == 0, result
        (cls.folder / "tutti").write_text(result.out)
        (cls.folder / "rows.csv").write_text("")

    def words(self, *line):
        """What bash offers for the last word of the line, as its own splitting at '=' has it."""
        script = 'source ./tutti; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tutti; printf "%s\\n" "${COMPREPLY[@]}"'
        done = subprocess.run(["bash", "--norc", "-c", script, "bash", "tutti", *line], cwd=self.folder, check=True,
                              capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_subcommands_and_collectives(self):
        self.assertEqual(self.words(""), ["run", "check", "prove", "explain", "draw", "simulate", "export", "train", "gate", "accept", "guidelines", "tune", "compare", "report", "list", "doctor"])
        self.assertEqual(self.words("do"), ["doctor"])
        known = json.loads(support.run("list", "--json").out)["collectives"]
        self.assertEqual(self.words("run", ""), [*known, "all"])
        self.assertEqual(self.words("run", "all_re"), ["all_reduce"])
        self.assertEqual(self.words("check", "so"), ["soak"])
        self.assertEqual(self.words("list", ""), [])

    def test_every_option_of_every_subcommand(self):
        for command in COMMANDS:
            with self.subTest(command):
                self.assertEqual(sorted(self.words(*command, "--")), sorted(long_options(help_of(command))))
        self.assertEqual(self.words("check", "soak", "--op"), ["--operations"])

    def test_values(self):
        known = json.loads(support.run("list", "--json").out)
        self.assertEqual(self.words("run", "--dtypes", ""), [*known["dtypes"], "all"])
        self.assertEqual(self.words("run", "--dtypes", "float,bf"), ["float,bfloat16"])
        self.assertEqual(self.words("run", "--dtypes", "=", "bf"), ["bfloat16"])
        self.assertEqual(self.words("run", "--ops", "="), [*known["ops"], "all"])
        self.assertEqual(self.words("run", "--ranks-as", "t"), ["threads", "tasks"])
        self.assertEqual(self.words("run", "--csv", "ro"), ["rows.csv"])
        self.assertEqual(self.words("run", "--seed", ""), [])
        self.assertEqual(self.words("run", "--require", "barr"), ["barrier"], "a flag has no value")

    def test_the_words_of_options_are_those_that_the_program_reads(self):
        """A value that is offered is never refused as unknown."""
        for option, value in [("--placement", "out,in"), ("--buffers", "private,shared"), ("--cadence", "streaming"),
                              ("--sync", "library"), ("--cache", "rotate"), ("--check", "none"), ("--bind", "numa"),
                              ("--values", "special"), ("--counts", "one-heavy"), ("--counts-unit", "elements,bytes"),
                              ("--pairs", "neighbours,all")]:
            offered = self.words("run", option, "")
            self.assertLessEqual(set(value.split(",")), set(offered), option)
            refused = support.run("run", "all_gather_v", option, "qqqq").err
            for word in offered:
                if word not in ["tutti", "rows.csv"]:  # files
                    self.assertRegex(refused, rf"\b{re.escape(word)}\b", option)

    def test_explain_takes_one_algorithm(self):
        algorithms = {one["name"] for one in json.loads(support.run("list", "--json").out)["algorithms"]}
        self.assertEqual(set(self.words("explain", "--algorithm", "")), {*algorithms, "auto"})
        self.assertEqual(set(self.words("run", "--algorithms", "")), {*algorithms, "auto", "all"})


class LongWork(unittest.TestCase):
    """stderr is a terminal: a line is overwritten. Ctrl-C ends it with what was done so far."""

    def interrupted(self, *arguments, until, columns=80):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
        with tempfile.TemporaryFile("w+") as out:
            process = subprocess.Popen([support.PROGRAM, *arguments], stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=theirs, start_new_session=True, env=environment)
            os.close(theirs)
            text = ""
            end = time.monotonic() + support.patience(30)
            try:
                while not re.search(until, text) and time.monotonic() < end and process.poll() is None:
                    if select.select([ours], [], [], 0.1)[0]:
                        text += os.read(ours, 4096).decode()
                self.assertRegex(text, until)
                process.send_signal(signal.SIGINT)
                process.wait(support.patience(10))
            finally:
                process.kill()
                process.wait()
            try:
                while select.select([ours], [], [], 0)[0]:
                    text += os.read(ours, 4096).decode()
            except OSError:
                pass  # the other end is closed
            os.close(ours)
            out.seek(0)
            self.assertEqual(process.returncode, 130, text)
            self.assertIn("interrupted by signal 2", text)
            overwritten = re.findall(r"\x1b\[K(\[[^\r\n]*)", text)
            self.assertTrue(overwritten and max(map(len, overwritten)) < columns, text)
            return out.read()

    def test_prove(self):
        said = self.interrupted("prove", "all", "--ranks", "1:256",
                                until=r"\r\x1b\[K\[\d+/\d+\] \w+ \w+ P=\d+, about [\d minsc]+ left")
        done, of, sets = re.search(r"(?m)^# prove: (\d+) of (\d+) schedules, (\d+) sets of plans and forms in units proved, 0 refuted; ",
                                   said).groups()
        self.assertTrue(0 < int(done) < int(of) and int(sets) > 0, said)
        rows = re.findall(r"(?m)^  (\w+) +(\w+) +(\d+) +\d+ +0 ", said)
        self.assertEqual(sum(int(schedules) for _, _, schedules in rows), int(done), said)

    def test_soak(self):
        said = self.interrupted("check", "soak", "--ranks", "2", "--ranks-as", "threads", "--seed", "1:3", "--operations",
                                "10000000", columns=72,
                                until=r"\[1/3\] mix of seed 1, P=2: \d\d+ of 10000000 operations, 0 wrong")
        self.assertRegex(said, r"(?m)^tutti check soak .*: broken off after [1-9]\d* of 10000000 operations, "
                               r"[1-9]\d* results verified by rank 0, 0 wrong$")
        self.assertRegex(said, r"(?m)^# soak: 3 mixes, 0 ok, 0 wrong, 1 broken off, 2 not run; [1-9]\d* results verified")

    def test_a_soak_ends_with_a_summary(self):
        result = support.run("check", "soak", "--ranks", "2", "--ranks-as", "threads", "--seed", "1:2", "--operations", "200")
        self.assertEqual((result.code, result.err), (0, ""), result)
        self.assertRegex(result.out, r"(?m)^# soak: 2 mixes, 2 ok, 0 wrong, 0 broken off, 0 not run; \d+ results verified, 0 wrong")

    def test_one_mix_and_one_schedule_are_no_plurals(self):
        result = support.run("check", "soak", "--ranks", "2", "--ranks-as", "threads", "--operations", "50")
        self.assertRegex(result.out, r"(?m)^# soak: 1 mix, 1 ok")
        result = support.run("prove", "all_reduce", "--algorithms", "ring", "--ranks", "2")
        self.assertRegex(result.out, r"(?m)^# prove: 1 schedule, [1-9]\d+ sets of plans proved")


if __name__ == "__main__":
    unittest.main()
