# SPDX-License-Identifier: Apache-2.0
"""Mistakes on the command line: a few lines that name the value and the right one, the exit code of the table, nothing
on stdout, and no waiting."""
import shutil
import subprocess
import tempfile
import os
import pathlib
import unittest

import support

LAZY = os.environ["TUTTI_LAZY_BACKENDS"]
USAGE, ENVIRONMENT = 2, 3
MOST_LINES = 5
MOST_SECONDS = 2


class BadInput(unittest.TestCase):
    def refused(self, *arguments, names, code=USAGE, **options):
        """`names`: what stderr must contain, the mistake and its remedy."""
        with self.subTest(" ".join(map(str, arguments))):
            result = support.run(*arguments, limit=20, **options)
            self.assertEqual(result.code, code, result)
            self.assertEqual(result.out, "", result)
            lines = result.err.splitlines()
            self.assertTrue(1 <= len(lines) <= MOST_LINES, result)
            self.assertTrue(lines[0].startswith("tutti: "), result)
            for name in names:
                self.assertIn(name, result.err, result)
            self.assertLess(result.seconds, support.patience(MOST_SECONDS), result)


class NothingDone(unittest.TestCase):
    """Where nothing is left to be done, the exit code is not 0."""
    def test_commands_that_have_nothing_to_do(self):
        for words, says in [
                ("check all_reduce --transports tcp --pretend-hosts 2 --algorithms two_shot --ranks 2", "nothing was checked: no case is left"),
                ("check all_reduce --faults wrong_root --ranks 2", "nothing was tried: no fault applies")]:
            with self.subTest(words):
                result = support.run(*words.split(), limit=30)
                self.assertEqual(result.code, ENVIRONMENT, result)
                self.assertIn(says, result.err)


class Values(BadInput):
    def test_names_that_do_not_exist(self):
        for command in ["run", "check"]:
            self.refused(command, "all", "--dtypes", "flaot", names=["--dtypes", "'flaot'", "'float'"])
            self.refused(command, "all", "--dtypes", "float,int9", names=["--dtypes", "'int9'", "'int8'"])
            self.refused(command, "all", "--dtypes", "hafl", names=["--dtypes", "'hafl'", "'half'"])
            self.refused(command, "all", "--ops", "sun", names=["--ops", "'sun'", "'sum'"])
            self.refused(command, "all", "--ranks-as", "treads", names=["--ranks-as", "'treads'", "'threads'"])
        self.refused("run", "AlReduce", names=["'AlReduce'", "did you mean 'all_reduce'?"])
        for command in ["run", "check", "prove"]:
            self.refused(command, "allreduce_x", names=["'allreduce_x'", "'all_reduce'"])
            self.refused(command, "all_reduce", "--algorithms", "rnig", names=["--algorithms", "'rnig'", "'ring'"])
            self.refused(command, "broadcast", "--algorithms", "ring", names=["'ring'", "direct", "knomial"])
        self.refused("gate", "--against", "ompi", names=["--against", "'ompi'", "did you mean 'openmpi'?"])
        self.refused("run", "--backends", "tutti:reduce-broadcast", names=["--backends", "'reduce-broadcast'", "did you mean 'reduce+broadcast'?"])
        self.refused("run", "all_reduce", "--groups", "2x", names=["--groups", "'2x'", "2x4", "MOD:2"])
        self.refused("run", "all_reduce", "--groups", "2x2", "--beside", "brodcast", names=["--beside", "'brodcast'", "did you mean 'broadcast'?"])
        self.refused("run", "all_reduce", "--slow-rank", "1:20", names=["--slow-rank", "'1:20'", "did you mean '1:20%'?"])
        self.refused("run", "all_reduce", "--slow-link", "0-1", names=["--slow-link", "'0-1'", "did you mean '0-1:20%'?"])
        self.refused("check", "repeat", "--launches", "0", names=["--launches", "'0'"])
        self.refused("guidelines", "--backends", "ompi", names=["--backends", "'ompi'", "did you mean 'openmpi'?"])
        self.refused("guidelines", "all_reduc", names=["'all_reduc'", "did you mean 'all_reduce'?"])
        self.refused("guidelines", "barrier", names=["no guideline is of 'barrier'", "all_reduce"])
        self.refused("guidelines", "--backends", "tutti:2", names=["--backends", "'tutti:2'", "did you mean 'tutti'?"])
        self.refused("guidelines", "--backends", "tutti", "--blocks", "7", names=["--blocks", "'7'", "8"])
        self.refused("guidelines", "--backends", "tutti", "--json", "-", names=["--json", "'-'"])
        self.refused("tune", "all_reduc", "--out", "x", names=["'all_reduc'", "did you mean 'all_reduce'?"])
        self.refused("run", "all_reduce", "--algorithms", "ring+streamd", names=["--algorithms", "'streamd'", "did you mean 'streamed'?"])
        self.refused("run", "all_reduce", "--algorithms", "auto+64K", names=["--algorithms", "'auto+64K'", "did you mean 'auto'?"])
        self.refused("run", "--backends", "ompi", names=["--backends", "'ompi'", "did you mean 'openmpi'?"])
        self.refused("run", "--pairs", "neighbors", names=["--pairs", "'neighbors'", "'neighbours'"])
        self.refused("run", "--placement", "on", names=["--placement", "'on'", "'in'"])
        self.refused("run", "--buffers", "shard", names=["--buffers", "'shard'", "'shared'"])
        self.refused("run", "--cadence", "isolatde", names=["--cadence", "'isolatde'", "'isolated'"])

    def test_nothing_far_is_suggested(self):
        for words in [("--dtypes", "fp4"), ("--ops", "minus"), ("--ops", "land"), ("--sizes", "0.5"), ("--sizes", "8Q"), ("--sizes", "1.K"),
                      ("--budget", "1parsec"), ("--algorithms", "quick"), ("--backends", "vendor"), ("--qq", ), ("-x", )]:
            with self.subTest(words):
                result = support.run("run", "all_reduce", *words)
                self.assertEqual(result.code, USAGE, result)
                self.assertNotIn("did you mean", result.err)

    def test_options_of_other_programs(self):
        for flag, own in [("--iters", "--iterations"), ("-np", "--ranks"), ("-n", "--ranks"), ("-b", "--sizes"), ("--datatype", "--dtypes")]:
            self.refused("run", "all_reduce", flag, "4", names=[f"unknown option '{flag}'", f"did you mean '{own}'?"])
        self.refused("list", "-np", "4", names=["unknown option '-np'\n", "`tutti list --help`"])

    def test_counts(self):
        for command in ["run", "check"]:
            self.refused(command, "gather_v", "--counts", "rampp", names=["--counts", "'rampp'", "'ramp'"])
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "counts.txt"
                path.write_text("1 2\n3 four\n")
                self.refused(command, "gather_v", "--counts", path, names=["line 2", "'four'"])
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "counts.txt"
            path.write_text("1 2 3 4 5\n")
            self.refused("run", "gather_v", "--ranks", "2,3", "--counts", path, names=["5", "gather_v on 3 ranks needs 3"])

    def test_sizes_beside_a_file_of_counts_and_bytes_that_are_no_elements(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "counts.txt"
            path.write_text("8 10\n")
            words = ["run", "gather_v", "--ranks", "2", "--counts", path]
            self.refused(*words, "--sizes", "8", names=["--sizes", f"--counts {path}", "leave one of the two out"])
            self.refused(*words, "--counts-unit", "bytes", names=["counts: 10 bytes", "4 of a float", "'12'"])
            self.refused(*words, "--counts-unit", "byte", names=["--counts-unit", "'byte'", "'bytes'"])
        self.refused("run", "gather_v", "--counts", "ramp", "--counts-unit", "bytes", names=["--counts-unit", "--counts FILE"])
        self.refused("run", "--iterations", "0", names=["--iterations", "'0'", "1"])

    def test_what_is_shown_of_a_value_is_one_line_and_not_endless(self):
        for option in ["--sizes", "--ranks", "--dtypes", "--timeout", "--case", "--counts"]:
            self.refused("run", "all_gather_v", option, "a\nb\nc\nd\ne\nf\x1b[2J", names=[option, "a\\nb\\nc", "\\x1b[2J"])
        result = support.run("run", "--sizes", "z" * 100000)
        self.assertEqual(result.code, USAGE, result)
        self.assertLess(len(result.err), 2000)

    def test_faults(self):
        self.refused("check", "all", "--faults", "fliped_bit", names=["--faults", "'fliped_bit'", "'flipped_bit'"])
        self.refused("check", "all", "--faults", "late_write,", names=["--faults", "'late_write'"])
        self.refused("check", "all", "--faults", "all", "--ranks", "1", names=["--ranks", "2 or more"])
        for option, value in [("--csv", "rows.csv"), ("--algorithms", "direct"), ("--counts", "ramp"), ("--values", "random")]:
            self.refused("check", "gather_v", "--faults", "all", option, value,
                         names=[option, "has no meaning with --faults", f"leave {option} out"])
        self.refused("check", "--faults", "all", "soak", names=["--faults", "soak"])
        self.refused("run", "all", "--faults", "all", names=["--faults"])
        self.refused("check", "all_reduce", "--faults", "all", "--dtypes", "float", "--ops", "band",
                     names=["--ops", "'band'", "'float'"])

    def test_pairs_that_do_not_exist(self):
        for command in ["run", "check"]:
            self.refused(command, "all_reduce", "--dtypes", "float", "--ops", "band",
                         names=["'band'", "'float'", "sum prod min max avg"])
            self.refused(command, "all", "--dtypes", "int32,f8e5m2", "--ops", "sum,bxor", names=["'bxor'", "'f8e5m2'"])
            self.refused(command, "all_reduce", "--dtypes", "bool", "--ops", "prod",
                         names=["'prod'", "'bool'", "sum min max band bor"])
            identifier = "all_reduce/tutti.ring/shm/half/bor/P2.processes/none/8B/out/private/isolated"
            self.refused(command, "--case", identifier, names=["--case", "'bor'", "half", "'sum'"])

    def test_ops_that_a_collective_does_not_have(self):
        for command in ["run", "check"]:
            self.refused(command, "scan", "exscan", "--ops", "sum,avg", names=["'avg'", "'scan'", "sum prod min max band"])
            identifier = "scan/tutti.chain/shm/half/avg/P2.processes/none/8B/out/private/isolated"
            self.refused(command, "--case", identifier, names=["--case", "'avg'", "scan", "'sum'"])
        self.refused("check", "exscan", "--faults", "all", "--ops", "avg", names=["'avg'", "'exscan'", "sum prod min max"])
        self.refused("explain", "scan", "--op", "avg", names=["--op", "'avg'", "'scan'", "sum prod min max"])

    def test_numbers_of_ranks(self):
        for command, allowed in [("run", "1 to 4096"), ("check", "1 to 4096"), ("prove", "1 to 65536")]:
            self.refused(command, "all", "--ranks", "0", names=["--ranks", "'0'", allowed])
            self.refused(command, "all", "--ranks", "-3", names=["--ranks", "'-3'", allowed])
            self.refused(command, "all", "--ranks=-3", names=["--ranks", "'-3'", allowed])
            self.refused(command, "all", "--ranks", "99999999999999999999", names=["--ranks", allowed])
            self.refused(command, "all", "--ranks", "4:2", names=["--ranks", "'4:2'", "'2:4'"])
            self.refused(command, "all", "--ranks", "two", names=["--ranks", "'two'", allowed])

    def test_sizes(self):
        self.refused("run", "--sizes", "1M:8", names=["--sizes", "'1M:8'", "'8:1M:x2'"])
        self.refused("run", "--sizes", "0x:zz", names=["--sizes", "'0x'", "start:stop:xfactor"])
        self.refused("run", "--sizes", "8:64:x1", names=["--sizes", "'x1'", "x2"])
        self.refused("run", "--sizes", "8,,64", names=["--sizes", "'8,,64'", "'8,64'"])
        self.refused("run", "--sizes", "99999999T", names=["--sizes", "'99999999T'", "at most"])

    def test_roots(self):
        self.refused("run", "--roots", "7", "--ranks", "2", names=["'7'", "0 to 1"])
        self.refused("run", "broadcast", "--roots", "7", "--ranks", "2,3", names=["'7'", "0 to 2"])
        self.refused("run", "--roots", "-1", names=["--roots", "'-1'", "'0'"])

    def test_launches_and_bindings(self):
        self.refused("run", "--launches", "0", names=["--launches", "'0'", "1 to 1000"])
        self.refused("run", "--launches", "many", names=["--launches", "'many'", "1 to 1000"])
        self.refused("run", "--cache", "clod", names=["--cache", "'clod'", "'cold'"])
        self.refused("run", "--cache", "cold", "--cadence", "streaming", names=["--cache", "'cold'", "isolated"])
        self.refused("run", "--cache", "rotate", "--cadence", "streaming", names=["--cache", "'rotate'", "isolated"])
        self.refused("run", "--cache", "rotate", "--check", "every", names=["--cache", "'rotate'", "--check every"])
        self.refused("run", "--overlap", "0", names=["--overlap", "'0'", "1 to 10000"])
        self.refused("run", "--overlap", "4", "--ranks-as", "tasks", names=["--overlap", "tasks", "--ranks-as processes"])
        self.refused("run", "--overlap", "4", "--cadence", "streaming", names=["--overlap", "streaming", "isolated"])
        self.refused("run", "--overlap", "4", "--cache", "cold", names=["--overlap", "--cache cold", "--cache hot"])
        self.refused("run", "--overlap", "4", "--skew", "1ms", names=["--overlap", "--skew"])
        self.refused("run", "barrier", "--overlap", "4", names=["--overlap", "barrier has no data"])
        self.refused("run", "broadcast", "sendrecv", "--window", "3", names=["broadcast, sendrecv have no window"])
        self.refused("run", "broadcast", "gather", "--pairs", "all", names=["broadcast, gather are not played by one pair"])
        self.refused("explain", "all_reduce", "--csv", "x", names=["`tutti run` and `tutti check` and `tutti simulate` and `tutti train` and `tutti gate` and `tutti guidelines` and `tutti tune` have"])
        self.refused("prove", "--pairs", "all", names=["only `tutti run` has"])
        self.refused("run", "--sync", "roundtme", names=["--sync", "'roundtme'", "'roundtime'"])
        self.refused("run", "--skew", "1ms", "--cadence", "streaming", names=["--skew", "isolated"])
        streaming = "barrier/tutti.dissemination/shm/none/none/P2.processes/none/0B/none/none/streaming"
        self.refused("run", "--case", streaming, "--cache", "cold", names=["--cache", "'cold'", "isolated"])
        self.refused("run", "--skew", "1m", names=["--skew", "--timeout", "60000 ms"])
        self.refused("run", "--check", "evry", names=["--check", "'evry'", "'every'"])
        self.refused("run", "--bind", "cores", names=["--bind", "'cores'", "'core'"])
        self.refused("run", "barrier", "--ranks", "1,4000", "--bind", "core", names=["--bind", "4000 ranks", "'none'"])

    def test_seeds_and_durations(self):
        for command in ["run", "check"]:
            self.refused(command, "--seed", "x", names=["--seed", "'x'", "0 to 18446744073709551615"])
            self.refused(command, "--seed", "-1", names=["--seed", "'-1'", "0 to 18446744073709551615"])
            self.refused(command, "--seed", "18446744073709551616", names=["did you mean '18446744073709551615'?"])
            self.refused(command, "--timeout", "0s", names=["--timeout", "'0s'", "'60s'"])
            self.refused(command, "--timeout", "0.5us", names=["--timeout", "'0.5us'", "1ms", "'60s'"])
            self.refused(command, "--timeout", "5MPI_s", names=["--timeout", "'5MPI_s'", "'60s'"])
        self.refused("gate", "--against", "openmpi", "--timeout", "0.5us", names=["--timeout", "'0.5us'", "1ms"])
        self.refused("run", "--budget", "5parsecs", names=["--budget", "'5parsecs'", "'60s'"])
        self.refused("run", "--budget", "20", names=["--budget", "'20'", "'60s'"])

    def test_case_ids(self):
        for command in ["run", "check"]:
            self.refused(command, "--case", "all_reduce",
                         names=["--case", "'all_reduce'", "collective/backend.algorithm"])
        identifier = "barrier/{}/shm/none/none/P2.processes/none/0B/none/none/isolated"
        self.refused("run", "--case", identifier.format("tutti.disemination"),
                     names=["'disemination'", "'dissemination'"])
        self.refused("run", "--case", identifier.format("opnempi.none"), names=["--case", "'opnempi'", "'openmpi'"])
        self.refused("run", "--case", identifier.format("tutti.dissemination").replace("barrier", "barier"),
                     names=["--case", "'barier'", "'barrier'"])
        self.refused("run", "--case", identifier.format("tutti.dissemination").replace("shm", "local"),
                     names=["--case", "'local'", "'shm'"])
        barrier = identifier.format("tutti.dissemination")
        self.refused("run", "--case", barrier, "--overlap", "4", names=["--overlap", "barrier has no data"])
        self.refused("run", "all_reduce", "--case", barrier, names=["--case", "leave all_reduce out"])
        for option, value in [("--sizes", "8"), ("--ranks", "2"), ("--backends", "all"), ("--counts", "ramp")]:
            self.refused("run", "--case", barrier, option, value, names=[option, "--case", f"leave {option} out"])
        self.refused("check", "--case", barrier, "--ranks-as", "threads", names=["--ranks-as", "--case"])
        if support.HAS_OPENMPI:
            self.refused("run", "--case", identifier.format("openmpi.ring"), names=["--case", "'openmpi.none'"])


class CommandLine(BadInput):
    def test_subcommands(self):
        self.refused("rnu", names=["'rnu'", "'run'"])
        self.refused("chekc", "all", names=["'chekc'", "'check'"])
        self.refused("chekc", "--help", names=["unknown subcommand 'chekc'", "'check'"])
        self.refused(names=["subcommand", "run check prove explain draw simulate export train gate accept guidelines tune compare report list doctor"])
        self.refused("retune", "--ranks-as", "blocks", "--device", "host", names=["unknown subcommand 'retune'"])

    def test_options_that_do_not_exist(self):
        self.refused("--qq", names=["'--qq'", "`tutti --help`"])
        for command in ["run", "check", "prove", "list"]:
            self.refused(command, "--qq", names=["'--qq'", f"`tutti {command} --help`"])
        self.refused("run", "--dtype", "float", names=["'--dtype'", "'--dtypes'"])
        self.refused("check", "--rank=2", names=["'--rank'", "'--ranks'"])
        self.refused("list", "--jsn", names=["'--jsn'", "'--json'"])
        self.refused("run", "-x", names=["'-x'", "`tutti run --help`"])

    def test_what_an_earlier_version_had_says_what_to_write_now(self):
        for words, now in [(["check", "all", "--faults", "all", "--blind", "guards"], "leave it out"),
                           (["run", "--slow-down", "10%@1M"], "gate_trials.py"),
                           (["check", "soak", "--seeds", "8"], "write --seed 1:N"),
                           (["run", "--expect-ranks", "4"], "write --ranks N"),
                           (["check", "--expect-hosts=4"], "write --hosts N"),
                           (["report", "r.json", "--github", "g.json"], "`tutti report RESULT --format github > FILE`"),
                           (["report", "r.json", "--bencher", "b.json"], "`tutti report RESULT --format bencher > FILE`"),
                           (["run", "--check", "last"], "'sample'")]:
            option = next(word.partition("=")[0] for word in words if word.startswith("--") and word != "--faults")
            self.refused(*words, names=[option, now])

    def test_options_of_another_subcommand_are_said_to_be(self):
        self.refused("prove", "all", "--dtypes", "float",
                     names=["'--dtypes'", "`tutti run` and `tutti check`", "`tutti prove --help`"])
        self.refused("check", "--sizes", "8", names=["'--sizes'", "`tutti run`", "`tutti check --help`"])

    def test_options_without_a_value(self):
        for command in ["run", "check", "prove"]:
            self.refused(command, "all", "--ranks", names=["--ranks needs a value", "--ranks LIST"])
            self.refused(command, "all", "--ranks", "", names=["--ranks", "empty"])
            self.refused(command, "all", "--ranks=", names=["--ranks"])
        self.refused("run", "--csv", names=["--csv needs a value", "--csv FILE"])
        self.refused("run", "--csv", "", names=["--csv", "empty"])

    def test_options_given_twice(self):
        for command in ["run", "check", "prove"]:
            self.refused(command, "--ranks", "2", "--ranks", "3", names=["--ranks", "twice"])

    def test_words_that_are_not_expected(self):
        self.refused("list", "all_reduce", names=["all_reduce", "`tutti list --help`"])


    def test_a_soak_is_no_exception(self):
        for option, value, names in [("--operations", "0", ["'0'", "1 to 100000000"]), ("--operations", "1x", ["'1x'"]),
                                     ("--seed", "8:1", ["'8:1'", "1 to 1000000"]), ("--seed", "1:2000000", ["1 to 1000000"]), ("--seed", "-1", ["'-1'"]),
                                     ("--seed", "99999999999999999999", ["0 to 18446744073709551615"]),
                                     ("--ranks", "0", ["--ranks: ", "'0'"]), ("--backends", "opnempi", ["'openmpi'"])]:
            self.refused("check", "soak", option, value, names=[option, *names])
        self.refused("check", "soak", "all_reduce", names=["all_reduce", "`tutti check soak --help`"])
        self.refused("check", "soak", "--operatoins", "3", names=["'--operatoins'", "'--operations'"])
        self.refused("check", "--ranks", "2", "soak", names=["--ranks", "`soak`"])
        self.refused("check", "all_reduce", "soak", names=["COLLECTIVE", "`soak`"])

    def test_options_without_a_meaning(self):
        for words in [("all_reduce", "--counts", "ramp"), ("all_reduce", "--roots", "1"), ("broadcast", "--ops", "max"),
                      ("barrier", "--sizes", "8"), ("barrier", "--buffers", "shared")]:
            self.refused("run", *words, names=[words[0], f"leave {words[1]} out"])


class Output(unittest.TestCase):
    def test_what_cannot_be_printed_is_an_error(self):
        for words in [["list"], ["list", "--json"], ["--help"], ["run", "barrier", "--backends", "tutti", "--ranks", "1"],
                      ["check", "barrier", "--ranks", "1"]]:
            with self.subTest(words), open("/dev/full", "w") as full:
                done = subprocess.run([support.PROGRAM, *words], stdout=full, stderr=subprocess.PIPE, text=True,
                                      timeout=60, check=False)
                self.assertEqual(done.returncode, USAGE, done)
                self.assertIn("tutti: the output cannot be written", done.stderr)


class Files(BadInput):
    def test_a_directory_that_does_not_exist(self):
        for command, option in [("run", "--csv"), ("run", "--json"), ("run", "--samples"), ("check", "--csv")]:
            self.refused(command, option, "/nowhere/at/all/rows", names=["'/nowhere/at/all/rows'", "'/nowhere/at/all'"])

    def test_a_directory_in_place_of_a_file(self):
        for command, option in [("run", "--csv"), ("run", "--json"), ("run", "--samples"), ("check", "--csv")]:
            self.refused(command, option, "/usr", names=["'/usr'"])

    def test_a_file_as_a_directory(self):
        for command, option in [("run", "--csv"), ("run", "--json"), ("check", "--csv")]:
            self.refused(command, option, "/etc/passwd/rows", names=["'/etc/passwd/rows'"])

    def test_one_file_for_two(self):
        self.refused("run", "--csv", "rows", "--json", "rows", names=["--csv", "--json", "'rows'", "'rows.json'"])
        self.refused("run", "--flight", "/proc/none", names=["--flight", "'/proc/none'"])
        self.refused("run", "--csv", "rows", "--samples", "rows", names=["--csv", "--samples", "'rows.samples.csv'"])
        self.refused("run", "--json", "rows", "--samples", "rows", names=["--json", "--samples"])
        self.refused("run", "--csv", "rows", "--json", "./rows", names=["--csv", "--json", "'rows'", "'rows.json'"])
        self.refused("run", "--csv", "./x/../rows", "--json", "rows", names=["--csv", "--json"])
        with tempfile.TemporaryDirectory() as folder:
            one, other = pathlib.Path(folder, "rows"), pathlib.Path(folder, "link")
            one.write_text("rows of yesterday\n")
            other.symlink_to(one)
            self.refused("run", "--csv", one, "--json", other, names=["--csv", "--json"])
            self.assertEqual(one.read_text(), "rows of yesterday\n")

    def test_earlier_results_survive_a_mistake(self):
        with tempfile.TemporaryDirectory() as folder:
            kept = pathlib.Path(folder, "kept")
            kept.write_text("rows of yesterday\n")
            self.refused("run", "--csv", kept, "--json", "/nowhere/x", names=["'/nowhere/x'"])
            self.refused("run", "--csv", kept, "--ranks", "0", names=["'0'"])
            self.refused("run", "--json", kept, "--csv", "/nowhere/x", names=["'/nowhere/x'"])
            self.refused("run", "--json", kept, "--samples", "/nowhere/x", names=["'/nowhere/x'"])
            self.refused("run", "--samples", kept, "--json", "/nowhere/x", names=["'/nowhere/x'"])
            self.assertEqual(kept.read_text(), "rows of yesterday\n")
            self.assertEqual(list(pathlib.Path(folder).iterdir()), [kept])


class Backends(BadInput):
    """A copy of the program in a folder of its own has no backends beside it."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="tutti-test-")
        self.addCleanup(self.folder.cleanup)
        self.alone = pathlib.Path(self.folder.name, "tutti")
        shutil.copy(support.PROGRAM, self.alone)

    def test_a_backend_that_is_not_known(self):
        self.refused("run", "--backends", "opnempi", names=["--backends", "'opnempi'", "'openmpi'"])
        self.refused("run", "--backends", "tutti,opnempi", names=["'opnempi'", "'openmpi'"], program=self.alone)

    def test_a_backend_that_is_not_built(self):
        names = ["backend 'nccl' is not there", "libtutti_backend_nccl.so", self.folder.name]
        self.refused("run", "--backends", "tutti,nccl", code=ENVIRONMENT, names=["--backends", *names], program=self.alone)
        self.refused("gate", "--against", "nccl", code=ENVIRONMENT, names=names, program=self.alone)
        names = ["'openmpi'", "libtutti_backend_openmpi.so", self.folder.name, "TUTTI_BACKENDS"]
        self.refused("run", "--backends", "openmpi", code=ENVIRONMENT, names=names, program=self.alone)
        self.refused("run", "--backends", "tutti,openmpi", code=ENVIRONMENT, names=names, program=self.alone)
        identifier = "barrier/openmpi.none/shm/none/none/P2.processes/none/0B/none/none/isolated"
        self.refused("run", "--case", identifier, code=ENVIRONMENT, names=names, program=self.alone)
        self.refused("run", "--backends", "openmpi", code=ENVIRONMENT, names=["/one, /other, " + self.folder.name],
                     environment={"TUTTI_BACKENDS": "/one:/other"}, program=self.alone)

    def test_all_backends_are_those_found(self):
        result = support.run("run", "barrier", "--backends", "all", "--ranks", "2", "--budget", "1s",
                             program=self.alone)
        self.assertEqual(result.code, 0, result)
        self.assertIn("1 row in 1 cell: 1 ok", result.out, result)

    @support.needs_openmpi
    def test_its_mpirun_is_not_taken_from_the_path(self):
        result = support.run("run", "barrier", "--ranks", "2", "--backends", "openmpi", "--budget", "300ms",
                             environment={"PATH": "/nowhere"})
        self.assertEqual(result.code, 0, result)

    def test_no_mpirun(self):
        """A backend whose start command is not there, in a folder of its own."""
        self.refused("run", "barrier", "--ranks", "2", "--backends", "homeless", code=ENVIRONMENT,
                     names=["homeless", "/nowhere/mpirun"], environment={"TUTTI_BACKENDS": LAZY})

    def test_a_backend_that_cannot_be_loaded(self):
        pathlib.Path(self.folder.name, "libtutti_backend_openmpi.so").write_text("this is no shared object")
        if not support.HAS_OPENMPI:
            self.skipTest("there is no mpirun")
        result = support.run("run", "barrier", "--ranks", "2", "--backends", "openmpi", program=self.alone)
        self.assertEqual(result.code, ENVIRONMENT, result)
        self.assertEqual(result.out, "", result)
        self.assertIn("openmpi cannot be loaded", result.err)


if __name__ == "__main__":
    unittest.main()
