# SPDX-License-Identifier: Apache-2.0
"""What a CI job does with `tutti gate`: verdicts, exit codes, JUnit XML, the summary, and mistakes.

No test relates two measured times. What is to be slower or faster is compared with a recorded time that no machine has,
or with another "build": a script that says what it is told to.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import time
import tomllib
import unittest
import xml.etree.ElementTree

import support

OK, WRONG, USAGE, ENVIRONMENT, SLOWER, CRASH, UNDECIDED = 0, 1, 2, 3, 4, 5, 6
INTERRUPTED = 130
SMALL = """
[[sweep]]
collectives = "all_reduce"
sizes = ["64", "1M"]
ranks = 2
ranks-as = "tasks"
"""  # tasks share a thread: nothing between them can change its state
CELLS = ["all_reduce/local/float/sum/P2.tasks/none/64B/out/private/isolated",
         "all_reduce/local/float/sum/P2.tasks/none/1048576B/out/private/isolated"]
AS_PROCESSES = CELLS[1].replace("local", "shm").replace("tasks", "processes")
QUICK = ["--cell-time", "20ms"]
OUTPUTS = ["--junit", "{folder}/gate.xml", "--summary", "{folder}/gate.md", "--csv", "{folder}/rows.csv", "--json",
           "{folder}/gate.json"]

# Another build: writes a row for each size that it is asked for, with the time of @TIME@, or what stands in its place.
SCRIPT = """#!/usr/bin/env -S python3 -S -E
import csv, sys
words = sys.argv[1:]
@LISTED@
value = lambda name: words[words.index(name) + 1]
with open(value("--csv"), "w", newline="") as file:
    writer = csv.DictWriter(file, ["case", "backend", "algorithm", "verdict", "time_median", "reason"], lineterminator="\\n")
    writer.writeheader()
    for size in value("--sizes").split(","):
        case = f"all_reduce/tutti.ring/local/float/sum/P2.tasks/none/{size}B/out/private/isolated"
        row = dict(case=case, backend="tutti", algorithm="ring", verdict="ok", time_median=@TIME@, reason="")
        @CHANGE@
        writer.writerow(row)
@END@
"""
NEVER, EVER = 1e9, 1e-6  # us: no operation is that slow, and none of 1 MiB within half a microsecond of nothing


def expected_code(verdicts, *options):
    """The exit code that follows from the verdicts, crashes aside."""
    for verdict, code in [("wrong", WRONG), ("slower", SLOWER), ("missing", ENVIRONMENT), ("invalid", ENVIRONMENT),
                          ("too short" if "--require" in options else None, ENVIRONMENT), ("undecided", UNDECIDED)]:
        if verdict in verdicts:
            return code
    return OK


def rows_of(out):
    """The fields of the table's rows."""
    return [re.split("  +", line.strip()) for line in out.splitlines() if line.startswith("  ")]


def table_of(out):
    """Cell -> verdict."""
    return {row[0]: row[-1] for row in rows_of(out)}


class Gate(unittest.TestCase):
    def gate(self, *arguments, suite=SMALL, prepare=None):
        """Runs a gate; returns the Result and the table. The files agree with the table, and nothing is left."""
        with support.Run("--version") as folder_of_suite, support.Run("--version") as folder_of_other:
            folder_of_suite.wait(20), folder_of_other.wait(20)
            (folder_of_suite.path / "suite.toml").write_text(suite)
            if prepare:
                prepare(folder_of_other.path)
            words = [str(word).replace("{other}", str(folder_of_other.path)) for word in arguments]
            with support.Run("gate", *words, "--suite", folder_of_suite.path / "suite.toml", *QUICK, *OUTPUTS) as run:
                result = run.wait(120)
                self.assertEqual(run.left_behind(), [])
                table = table_of(result.out)
                self.junit_agrees(run.path / "gate.xml", table, *words)
                self.summary_agrees(run.path / "gate.md", table)
                self.told = support.verdicts_of((run.path / "gate.json").read_text())
                self.assertEqual({cell["cell"]: cell["verdict"] for cell in self.told["cells"]}, table)
                self.rows = run.rows()[1]
                return result, table

    def junit_agrees(self, path, table, *options):
        suite = xml.etree.ElementTree.parse(path).getroot().find("testsuite")
        cases = {case.get("name"): case for case in suite.iter("testcase")}
        self.assertEqual(list(cases), list(table))
        kinds = {"failure": {"slower", "wrong"}, "error": {"missing", "invalid"}, "skipped": {"undecided"}}
        kinds["error" if "--require" in options else "skipped"].add("too short")
        for kind, verdicts in kinds.items():
            for cell, verdict in table.items():
                self.assertEqual(cases[cell].find(kind) is not None, verdict in verdicts, (cell, verdict, kind))
        self.assertEqual(int(suite.get("tests")), len(table))
        self.assertEqual(int(suite.get("failures")), sum(one in kinds["failure"] for one in table.values()))
        self.assertEqual(int(suite.get("errors")), sum(one in kinds["error"] for one in table.values()))

    def summary_agrees(self, path, table):
        found = re.findall(r"^\| \**(\w[\w ]*)\** \| `([^`]*)`", path.read_text(), re.MULTILINE)
        self.assertEqual({cell: verdict for verdict, cell in found}, table)

    def baseline(self, time_us, low=0.99, high=1.01, cells=CELLS):
        """Writes a recorded run of one launch."""
        def prepare(path):
            lines = ["case,backend,algorithm,verdict,time_median,time_ci_low,time_ci_high"]
            for cell in cells:
                collective, rest = cell.split("/", 1)
                lines.append(f"{collective}/tutti.ring/{rest},tutti,ring,ok,{time_us},{low * time_us},{high * time_us}")
            (path / "base.csv").write_text("\n".join(lines) + "\n")
        return dict(prepare=prepare)

    def build(self, time="1.0", change="pass", end="", listed=""):
        """Makes a folder with a script in the place of another build."""
        def prepare(path):
            (path / "bin").mkdir()
            text = SCRIPT.replace("@TIME@", str(time)).replace("@CHANGE@", change).replace("@END@", end).replace("@LISTED@", listed)
            (path / "bin/tutti").write_text(text)
            (path / "bin/tutti").chmod(0o755)
        return dict(prepare=prepare)


class Verdicts(Gate):
    def test_the_same_build(self):
        """What the times say is the machine's affair; that the exit code follows from it is ours."""
        def prepare(path):
            (path / "bin").mkdir()
            (path / "bin/tutti").symlink_to(support.PROGRAM)
        result, table = self.gate("--against", "{other}", prepare=prepare, suite=f"cells = ['{CELLS[1]}']")
        self.assertEqual(list(table), CELLS[1:], result)
        self.assertFalse(set(table.values()) & {"wrong", "missing"}, result)
        self.assertEqual(result.code, expected_code(table.values()), result)
        self.assertGreaterEqual(len(self.rows), 2 * 8, "two launches of this build in each of eight blocks")
        self.assertEqual({row["verdict"] for row in self.rows}, {"ok"})
        self.assertEqual([int(row["launch"]) for row in self.rows], list(range(1, len(self.rows) + 1)))
        self.assertEqual({int(row["launches"]) for row in self.rows}, {len(self.rows)}, "how many there were in all")

    def test_what_is_too_short_is_never_the_same(self):
        """Half a microsecond is the floor: where all of 0.5 us is recorded, up to twice that would pass."""
        for options in [[], ["--require"]]:
            result, table = self.gate("--baseline", "{other}/base.csv", *options, **self.baseline(0.5, cells=CELLS[:1]),
                                      suite=f"cells = ['{CELLS[0]}']")
            self.assertIn(table[CELLS[0]], ["too short", "slower", "undecided"], result)
            self.assertEqual(result.code, expected_code(table.values(), *options), result)
            self.assertIn("in 16 operations of 1 cell, which need none", result.out)
            if table[CELLS[0]] == "too short":
                self.assertIn("the floor, 0.500 us, is more than 25 % of the time", result.out)
                self.assertRegex(result.out, "(?m)^# 1 cells?: 1 too short$")

    def test_operations_of_a_stream_share_the_floor(self):
        def prepare(path):
            (path / "bin").mkdir()
            (path / "bin/tutti").symlink_to(support.PROGRAM)
        cell = CELLS[0].replace("isolated", "streaming")
        result, table = self.gate("--against", "{other}", prepare=prepare, suite=f"cells = ['{cell}']")
        self.assertEqual([row[5] for row in rows_of(result.out)], ["10.0"], result)
        self.assertNotIn("too short", table.values(), result)

    def test_short_cells_of_the_default_suite_are_streams(self):
        suite = tomllib.loads((support.SOURCE / "suites/gate.toml").read_text())
        cadence = {}
        for sweep in suite["sweep"]:
            for size in sweep.get("sizes", ["none"]):
                cadence[size] = sweep.get("cadence", "isolated")
        self.assertEqual(cadence, {"64": "streaming", "16K": "streaming", "1M": "isolated", "8M": "isolated",
                                   "none": "streaming"})

    def test_how_long_it_takes_is_told_before_the_first_launch_and_what_is_left_before_each_block(self):
        result, _ = self.gate("--baseline", "{other}/base.csv", **self.baseline(NEVER))
        first, *blocks = result.err.splitlines()
        time = r"\d+(?: min \d\d)? s"
        self.assertRegex(first, f"^gate: 2 cells, 8 to 32 blocks: about {time}, up to {time} where cells stay undecided; ")
        self.assertEqual(len(blocks), 8, result)
        for number, line in enumerate(blocks, 1):
            self.assertRegex(line, f"^block {number} of at most 32: 2 cells, about {time} left, at most {time}$")

    def test_what_measures_nothing_tells_no_time(self):
        result, _ = self.gate("--baseline", "{other}/base.csv", **self.baseline(NEVER, cells=[]))
        self.assertEqual(result.err, "", result)

    def test_a_baseline_of_another_machine_or_other_conditions_is_invalid(self):
        def prepare(path):
            suite = path / "suite.toml"
            suite.write_text(SMALL)
            for name, words in [("hot", []), ("cold", ["--cache", "cold"])]:
                first = support.run("run", "all_reduce", "--sizes", "64,1M", "--ranks", 2, "--ranks-as", "tasks",
                                    "--budget", "200ms", *words, "--csv", path / f"{name}.csv")
                self.assertEqual(first.code, OK, first)
            header, *rows = (path / "hot.csv").read_text().splitlines()
            place = header.split(",").index("machine") - len(header.split(","))  # from the end: a reason may have commas
            elsewhere = []
            for row in rows:
                fields = row.split(",")
                fields[place] = f"{int(fields[place], 16) ^ 1:08x}"
                elsewhere.append(",".join(fields))
            (path / "elsewhere.csv").write_text("\n".join([header, *elsewhere]) + "\n")
        for name, why in [("cold", "with cache 'cold', a gate measures with 'hot'"), ("elsewhere", "of another machine")]:
            result, table = self.gate("--baseline", "{other}/" + name + ".csv", prepare=prepare)
            self.assertEqual((result.code, table), (ENVIRONMENT, dict.fromkeys(CELLS, "invalid")), result)
            self.assertIn(why, result.out)
            self.assertNotIn("does not say which machine", result.out)

    def test_slower_and_confirmed(self):
        result, table = self.gate("--baseline", "{other}/base.csv", **self.baseline(EVER, cells=[AS_PROCESSES]),
                                  suite=f"cells = ['{AS_PROCESSES}']")
        self.assertEqual((result.code, table), (SLOWER, {AS_PROCESSES: "slower"}), result)
        self.assertIn("confirmed by 8 pairs of fresh launches", result.out)
        self.assertEqual(len(self.rows), 16, "a launch in each of eight blocks, and in each of eight more")

    def test_faster(self):
        result, table = self.gate("--baseline", "{other}/base.csv", **self.baseline(NEVER))
        self.assertEqual((result.code, table), (OK, dict.fromkeys(CELLS, "faster")), result)
        self.assertIn("# the baseline does not say which machine it is of\n", result.out)
        self.assertIn("# counted of this build: allocations and system calls in 16 operations of 2 cells, which need none\n",
                      result.out)

    def test_undecided(self):
        result, table = self.gate("--baseline", "{other}/base.csv", **self.baseline(1000, low=1e-9, high=1e9))
        self.assertEqual((result.code, table), (UNDECIDED, dict.fromkeys(CELLS, "undecided")), result)

    def test_missing_and_invalid(self):
        result, table = self.gate("--baseline", "{other}/base.csv", **self.baseline(NEVER, cells=[AS_PROCESSES]))
        self.assertEqual((result.code, table), (ENVIRONMENT, dict(zip(CELLS, ["missing", "invalid"]))), result)
        self.assertIn("ranks as processes, not tasks", result.out)
        self.assertEqual(self.rows, [], "nothing was measured for nothing")

    def test_what_a_gate_wrote_is_a_baseline(self):
        def prepare(path):
            suite = path / "suite.toml"
            suite.write_text(SMALL)
            self.baseline(NEVER)["prepare"](path)
            first = support.run("gate", "--baseline", path / "base.csv", "--suite", suite, *QUICK, "--csv",
                                path / "rows.csv")
            self.assertEqual(first.code, OK, first)
        result, table = self.gate("--baseline", "{other}/rows.csv", prepare=prepare)
        self.assertFalse(set(table.values()) & {"wrong", "missing"}, result)
        self.assertEqual(result.code, expected_code(table.values()), result)


class AnotherBuild(Gate):
    def test_counters_need_no_time(self):
        """A build that is slower by every clock and says that it moves a byte less: this one has more."""
        costs = json.loads(support.run("list", "--costs", ",".join(CELLS)).out)
        for one in costs["costs"]:
            self.assertEqual({key: one[key] for key in ["operations", "allocations", "system_calls"]},
                             {"operations": 16, "allocations": 0, "system_calls": 0}, one)
            one["bytes"] -= 1 if one["cell"] == CELLS[1] else 0
        listed = (f"if words[0] == 'list': print('a note', file=sys.stderr); print({json.dumps(costs)!r}); sys.exit(0)")
        result, table = self.gate("--against", "{other}", **self.build(NEVER, listed=listed))
        self.assertEqual((result.code, table), (SLOWER, dict(zip(CELLS, ["faster", "slower"]))), result)
        self.assertRegex(result.out, "counted, not timed: bytes [0-9]+, of the build in .* [0-9]+")
        self.assertIn("# counted on both sides: messages, bytes and rounds of 2 cells, allocations and system calls of 2",
                      result.out)

    def test_another_algorithm_is_told_where_it_explains_slower(self):
        costs = json.loads(support.run("list", "--costs", CELLS[1]).out)
        costs["costs"][0]["algorithm"] = "unheard_of"
        listed = f"if words[0] == 'list': print({json.dumps(costs)!r}); sys.exit(0)"
        result, table = self.gate("--against", "{other}", suite=f"cells = ['{CELLS[1]}']",
                                  **self.build(EVER, listed=listed))
        self.assertEqual((result.code, table), (SLOWER, {CELLS[1]: "slower"}), result)
        self.assertRegex(result.out, "#   confirmed by [0-9]+ pairs of fresh launches, .*; algorithm [a-z_]+, of the build "
                         "in .* unheard_of")
        self.assertIn("# not compared: messages, bytes and rounds, allocations and system calls of 1 cell: another algorithm\n",
                      result.out)
        self.assertNotIn("# counted on both sides", result.out)

    def test_slower_and_faster(self):
        result, table = self.gate("--against", "{other}", **self.build(f"{EVER} if size == '1048576' else {NEVER}"))
        self.assertEqual((result.code, table), (SLOWER, dict(zip(CELLS, ["faster", "slower"]))), result)
        self.assertRegex(result.out, "# not counted: messages, bytes and rounds, allocations and system calls of 2 cells: the build "
                         "in .*, asked for them, ended with exit code 1: ValueError")

    def test_a_cell_that_is_unknown_costs_no_other_its_counters(self):
        result = support.run("list", "--costs", f"{CELLS[0]},{CELLS[1].replace('sum', 'sun')}", limit=20)
        self.assertEqual(result.code, USAGE, result)
        told = json.loads(result.out)
        self.assertEqual([one["cell"] for one in told["costs"]], CELLS[:1])
        self.assertEqual([one["cell"] for one in told["not_counted"]], [CELLS[1].replace("sum", "sun")])
        self.assertIn("'sun'", told["not_counted"][0]["reason"])
        self.assertIn("'sun'", result.err)
        told["not_counted"] = [{"cell": CELLS[1], "reason": "a reason"}]
        listed = f"if words[0] == 'list': print({json.dumps(told)!r}); sys.exit(2)"
        result, table = self.gate("--against", "{other}", **self.build(NEVER, listed=listed))
        self.assertEqual((result.code, table), (OK, dict.fromkeys(CELLS, "faster")), result)
        self.assertIn("# counted on both sides: messages, bytes and rounds of 1 cell, allocations and system calls of 1\n"
                      "# not counted: messages, bytes and rounds, allocations and system calls of 1 cell: a reason\n", result.out)

    def test_wrong_outranks_slower(self):
        change = "if size == '64': row.update(verdict='wrong', reason='rank 1: element 7')"
        result, table = self.gate("--against", "{other}", **self.build(EVER, change))
        self.assertEqual((result.code, table), (WRONG, dict(zip(CELLS, ["wrong", "slower"]))), result)
        self.assertIn("the build in", result.out)
        self.assertIn("wrong: rank 1: element 7", result.out)

    def test_one_that_ends_early_is_missing_and_says_why(self):
        end = ("if value('--sizes').startswith('64,'):\n"
               "    print('tutti: rank 1 was killed', file=sys.stderr); sys.exit(5)")
        result, table = self.gate("--against", "{other}",
                                  **self.build(NEVER, "if size == '64': continue", end))
        self.assertEqual((result.code, table), (ENVIRONMENT, dict(zip(CELLS, ["missing", "faster"]))), result)
        self.assertIn("ended with exit code 5: tutti: rank 1 was killed", result.out)


    def test_bytes_that_are_no_text_leave_the_reports_readable(self):
        end = "sys.stderr.buffer.write(b'\\xff\\x1b[31mbroken\\n'); sys.exit(5)"
        result, table = self.gate("--against", "{other}", **self.build(NEVER, "continue", end))
        self.assertEqual((result.code, table), (ENVIRONMENT, dict.fromkeys(CELLS, "missing")), result)
        self.assertIn(r"ended with exit code 5: \xff\x1b[31mbroken", result.out)

    def test_a_folder_whose_name_is_no_text(self):
        def prepare(path):
            folder = path / "t\udcff"  # one byte, 0xff
            folder.mkdir()
            self.build(NEVER, "continue")["prepare"](folder)
        result, table = self.gate("--against", "{other}/t\udcff", prepare=prepare)
        self.assertEqual((result.code, table), (ENVIRONMENT, dict.fromkeys(CELLS, "missing")), result)
        self.assertRegex(result.out, r"against the build in /.*/t\\xff\n")


class Listed(Gate):
    """`--list`: which step each cell can show, before a gate begins."""

    def listed(self, *arguments, prepare):
        with support.Run("--version") as folder:
            folder.wait(20)
            (folder.path / "suite.toml").write_text(SMALL)
            prepare(folder.path)
            words = [str(word).replace("{other}", str(folder.path)) for word in arguments]
            return support.run("gate", "--list", *words, "--suite", folder.path / "suite.toml", *QUICK)

    def test_steps_of_each_cell_and_the_time_of_a_gate(self):
        result = self.listed("--against", "{other}", "--blocks", "10", **self.build("float(size)"))
        self.assertEqual(result.code, OK, result)
        rows = rows_of(result.out)
        self.assertEqual([row[0] for row in rows], CELLS)
        for row, floor in zip(rows, [None, 5.0]):  # 1 MiB at a recorded 1,048,576 us; of 64 B half a microsecond is most of 64 us
            time_us, pairs, _, told_floor, least, most = map(float, row[1:])
            self.assertGreater(time_us, 0)
            self.assertTrue(3 <= pairs <= 6, row)
            self.assertTrue(floor is None or told_floor == floor, row)
            self.assertTrue(told_floor <= most <= least, row)
        self.assertIn("10 blocks (%)", result.out)
        self.assertIn("40 blocks (%)", result.out)
        self.assertRegex(result.out, r"(?m)^# a gate of 2 cells takes about \S.* with 10 blocks, up to \S.* with 40; what is slower is "
                                     r"measured once more$")

    def test_a_cell_that_the_other_side_lacks_has_its_reason(self):
        result = self.listed("--against", "{other}", **self.build("float(size)", "if size == '64': continue"))
        self.assertEqual(result.code, OK, result)
        self.assertRegex(result.out, rf"(?m)^  {re.escape(CELLS[0])} +- .*\n#   \S")

    def test_no_file_is_written(self):
        result = self.listed("--against", "{other}", "--junit", "x.xml", **self.build("1.0"))
        self.assertEqual((result.code, result.out), (USAGE, ""), result)
        self.assertIn("--junit: --list prints what a gate would find, and writes no file: leave it out", result.err)


class Interrupted(Gate):
    def test_it_says_so_everywhere_and_passes_nothing(self):
        """By then its pairs would do for a verdict."""
        with support.Run("--version") as other:
            other.wait(20)
            self.build(NEVER)["prepare"](other.path)
            (other.path / "suite.toml").write_text(f"cells = ['{CELLS[0]}']")
            with support.Run("gate", "--against", other.path, "--suite", other.path / "suite.toml", *QUICK, *OUTPUTS,
                             "--html", "{folder}/gate.html") as run:
                end = time.monotonic() + support.patience(60)
                while "block 5 of" not in run.texts() and run.process.poll() is None and time.monotonic() < end:
                    time.sleep(0.01)
                run.process.send_signal(signal.SIGTERM)
                result = run.wait(30)
                self.assertEqual((result.code, table_of(result.out)), (INTERRUPTED, {CELLS[0]: "undecided"}), result)
                self.assertEqual(run.left_behind(), [])
                self.assertIn("<!DOCTYPE html>", (run.path / "gate.html").read_text(), "what was measured is drawn")
                suite = xml.etree.ElementTree.parse(run.path / "gate.xml").getroot().find("testsuite")
                self.assertEqual([suite.get(key) for key in ["tests", "errors", "skipped"]], ["1", "1", "0"])
                why = suite.find("testcase").find("error").get("message")
                texts = [result.err, result.out, why, suite.findtext("system-out"), (run.path / "gate.md").read_text()]
        for text in texts:
            self.assertRegex(text, "not finished: interrupted in block [5-8]")


class Unwritable(Gate):
    """What could be written when the gate began, and cannot when it ends, costs nothing else that was measured."""

    def lose(self, *outputs, break_it, prepare=lambda path: None):
        """The Result of a gate in the course of which `break_it` happens to its folder."""
        with support.Run("--version") as folder:
            folder.wait(20)
            self.baseline(NEVER)["prepare"](folder.path)
            (folder.path / "suite.toml").write_text(SMALL)
            (folder.path / "gone").mkdir()
            prepare(folder.path)
            patient = folder.path / "patient"  # a pipe that nobody reads is an error to it, and no end
            patient.write_text(f"#!/bin/sh\ntrap '' PIPE\nexec '{support.PROGRAM}' \"$@\"\n")
            patient.chmod(0o755)
            words = [str(word).replace("{here}", str(folder.path)) for word in outputs]
            with support.Run("gate", "--baseline", folder.path / "base.csv", "--suite", folder.path / "suite.toml", *QUICK,
                             *words, program=patient) as run:
                break_it(folder.path, run)
                result = run.wait(60)
                self.assertEqual(run.left_behind(), [])
            self.assertEqual((result.code, table_of(result.out)), (USAGE, dict.fromkeys(CELLS, "faster")), result)
            self.files = {path.name: path.read_text() for path in folder.path.iterdir() if path.is_file()}
            return result

    @staticmethod
    def wait_for(run, text):
        end = time.monotonic() + support.patience(60)
        while text not in run.texts() and run.process.poll() is None and time.monotonic() < end:
            time.sleep(0.01)

    def test_a_report_costs_no_other(self):
        def break_it(path, run):
            self.wait_for(run, "block 2 of")
            shutil.rmtree(path / "gone")
        result = self.lose("--junit", "{here}/gone/gate.xml", "--summary", "{here}/gate.md", "--csv", "{here}/rows.csv",
                           break_it=break_it)
        self.assertRegex(result.err, r"tutti: cannot write '.*gone/gate.xml': the directory '.*gone' does not exist")
        self.assertIn("### tutti gate: 2 faster", self.files["gate.md"])
        self.assertEqual(len(self.files["rows.csv"].splitlines()), 1 + 2 * 8)

    def test_rows_that_nobody_takes_end_no_gate(self):
        def break_it(path, run):
            reader = os.open(path / "pipe", os.O_RDONLY)
            self.wait_for(run, "block 2 of")
            os.close(reader)
        result = self.lose("--csv", "{here}/pipe", "--junit", "{here}/gate.xml", break_it=break_it,
                           prepare=lambda path: os.mkfifo(path / "pipe"))
        self.assertRegex(result.err, "tutti: cannot write '.*pipe': Broken pipe")
        self.assertIn('tests="2" failures="0" errors="0" skipped="0"', self.files["gate.xml"])


class Mistakes(unittest.TestCase):
    def refused(self, *arguments, names, code=USAGE, suite=SMALL, times=""):
        with support.Run("--version") as folder:
            folder.wait(20)
            (folder.path / "suite.toml").write_text(suite.replace("{here}", str(folder.path)))
            (folder.path / "counts").write_text("3 5\n")
            (folder.path / "no.csv").write_text("a,b\n1,2\n")
            (folder.path / "base.csv").write_text("case,backend,algorithm,verdict,time_median\n")
            (folder.path / "samples.csv").write_text("case,launch,index,valid,global_us\nx,1,0,1,2.5\n")
            (folder.path / "damaged.csv").write_text("case,backend,algorithm,verdict,time_median,time_ci_low,time_ci_high\n"
                                                     f"x,tutti,ring,ok,{times}\n")
            (folder.path / "link").symlink_to("base.csv")
            (folder.path / "empty").mkdir()
            words = [str(word).replace("{here}", str(folder.path)) for word in arguments]
            result = support.run("gate", *words, "--suite", folder.path / "suite.toml", limit=20)
            self.assertEqual((result.code, result.out), (code, ""), result)
            self.assertLessEqual(len(result.err.splitlines()), 5, result)
            for name in names:
                self.assertIn(name, result.err, result)

    def test_files_that_are_one(self):
        base = ["--baseline", "{here}/base.csv"]
        outputs = ["--csv", "--junit", "--summary"]
        for i, other in enumerate(outputs):
            for one in outputs[:i]:
                self.refused(*base, one, "{here}/x", other, "{here}/./x", names=[f"{one} and {other} are both", "/x'", "did you mean"])
            self.refused(*base, other, "{here}/base.csv", names=[f"--baseline and {other} are both", "base.csv'"])
            self.refused(*base, other, "{here}/suite.toml", names=[f"--suite and {other} are both", "suite.toml'"])
            self.refused(*base, other, "{here}/link", names=[f"--baseline and {other} are both"])

    def test_sides(self):
        self.refused(names=["--baseline", "--against"])
        self.refused("--baseline", "{here}/base.csv", "--against", "openmpi", names=["either"])
        self.refused("--baseline", "{here}/nothing.csv", names=["--baseline", "nothing.csv", "No such file"])
        self.refused("--baseline", "{here}/no.csv", names=["no.csv", "no column 'case'"])
        self.refused("--baseline", "{here}/samples.csv", names=["samples.csv", "'time_median'", "--samples"])
        self.refused("--against", "{here}/empty", names=["no build of tutti", "bin/tutti"])
        self.refused("--against", "opnmpi", names=["'opnmpi' is no folder"])

    def test_suites(self):
        base = ["--baseline", "{here}/base.csv"]
        self.refused(*base, suite="[[sweep]]\nsize = 8\n", names=["suite.toml", "line 2", "'size'", "'sizes'"])
        self.refused(*base, suite="[[sweep]]\ndtypes = 'flaot'\n", names=["line 1", "dtypes", "'flaot'", "'float'"])
        self.refused(*base, suite="[[sweep]]\ncollectives = 'all_reduc'\n", names=["line 1", "'all_reduc'", "'all_reduce'"])
        self.refused(*base, suite=f"cells = ['{CELLS[0].replace('sum', 'sun')}']", names=["line 1", "'sun'", "'sum'"])
        self.refused(*base, suite="[[sweep]]\n", names=["a gate takes at most 40"])
        self.refused(*base, suite="[[sweep", names=["line 1"])
        v_form = "[[sweep]]\ncollectives = 'gather_v'\nranks = 2\nsizes = '64'\ncounts = '{here}/counts'"
        self.refused(*base, suite=v_form, names=["suite.toml", "line 1", "counts", "a file", "one-heavy"])
        cell = "gather_v/shm/float/none/P2.processes/root0/64B.file-1a2b3c4d/out/private/isolated"
        self.refused(*base, suite=f"cells = ['{cell}']", names=["suite.toml", cell, "a file", "one-heavy"])

    def test_damaged_baseline(self):
        for times, told in [("100,0,101", "time_ci_high is 0 to 101"), ("-1,,", "time_median is -1")]:
            self.refused("--baseline", "{here}/damaged.csv", times=times, names=["damaged.csv", "of 'x'", told])

    def test_values(self):
        base = ["--baseline", "{here}/base.csv"]
        self.refused(*base, "--blocks", "7", names=["--blocks", "'7'", "8"])
        self.refused(*base, "--cell-time", "1", names=["--cell-time", "'1'"])
        self.refused(*base, "--ranks", "x", names=["--ranks", "'x'"])
        for option in ["--junit", "--summary", "--csv"]:
            self.refused(*base, option, "/nowhere/at/all", names=["/nowhere/at/all", "does not exist"])
            self.refused(*base, option, "/dev/full", names=["cannot write '/dev/full'"])


# In the place of tutti: a gate of two cells that finds what the seed and the other build tell it to.
FAKE = """#!/usr/bin/env python3
import sys
words = sys.argv[1:]
assert words[0] == "gate" and "--suite" in words, words
seed, is_slowed = int(words[words.index("--seed") + 1]), words[words.index("--against") + 1].endswith("faster")
verdict = "slower" if seed in (@CAUGHT@ if is_slowed else @ALARMS@) else "same"
print("# cell verdict")
print(f"  all_reduce/64B same")
print(f"  all_reduce/@BYTES@B/out {verdict}")
sys.exit(@CODE@ if verdict == "slower" else 0)
"""


class Trials(unittest.TestCase):
    """gate_trials.py, which counts how often a gate is wrong."""

    def count(self, same, slowed, alarms=(), caught=(), size=1 << 20, code=SLOWER):
        with support.Run("--version") as folder:
            folder.wait(20)
            fake = folder.path / "fake"
            text = FAKE.replace("@ALARMS@", repr(alarms)).replace("@CAUGHT@", repr(caught))
            fake.write_text(text.replace("@BYTES@", str(size)).replace("@CODE@", str(code)))
            fake.chmod(0o755)
            script = support.SOURCE / "suites/command_line/gate_trials.py"
            result = subprocess.run([script, "--program", fake, "--same", str(same), "--slowed", str(slowed)], text=True,
                                    capture_output=True, timeout=support.patience(60))
            self.assertNotIn("Traceback", result.stderr)
            return result

    def test_counts_alarms_and_catches(self):
        result = self.count(3, 10, alarms=[2], caught=list(range(1, 10)))
        self.assertIn("identical builds: 1 false alarms in 3 gates (0 failed)", result.stdout, result)
        self.assertIn("slowed by 10 % at 1 MiB: 9 of 10 gates caught it and nothing else (0 failed)", result.stdout, result)
        self.assertEqual(result.returncode, 0, result)

    def test_too_many_of_either_fail(self):
        self.assertEqual(self.count(2, 0, alarms=[1, 2]).returncode, 1, "two alarms")
        self.assertEqual(self.count(0, 2, caught=[1]).returncode, 1, "one of two missed")
        self.assertEqual(self.count(0, 1, caught=[1], size=4096).returncode, 1, "another size than the slowed one")
        self.assertEqual(self.count(0, 1, caught=[1], code=CRASH).returncode, 1, "a crash")
        self.assertEqual(self.count(0, 1, caught=[1]).returncode, 0)


class Itself(unittest.TestCase):
    """agrees_with_itself.py, which holds a backend against itself."""

    def code(self, said, code=OK, *words):
        with support.Run("--version") as folder:
            folder.wait(20)
            fake = folder.path / "tutti"
            fake.write_text(f"#!/bin/sh\ncat <<'END'\n{said}\nEND\nexit {code}\n")
            fake.chmod(0o755)
            script = support.SOURCE / "suites/backends/agrees_with_itself.py"
            result = subprocess.run([script, "--bin", folder.path, *words], text=True, capture_output=True,
                                    timeout=support.patience(60))
            self.assertNotIn("Traceback", result.stderr)
            return result.returncode

    def test_the_share_of_the_cells_decides(self):
        line = "# a backend against itself: the interval of the ratio contains 1 in {} of 100 cells (x %)"
        self.assertEqual(self.code(line.format(93)), 0)
        self.assertEqual(self.code(line.format(92)), 1)
        self.assertEqual(self.code(line.format(92), OK, "--least", "0.9"), 0)
        self.assertEqual(self.code(line.format(100), WRONG), 1, "a run that failed")
        self.assertEqual(self.code("# nothing of the kind"), 1)
        self.assertEqual(self.code(line.format(100), OK, "--launches", "5"), USAGE)


class Templates(unittest.TestCase):
    """ci/: what users copy names only options and files that exist."""

    def test_options_and_scripts_exist(self):
        help_text = support.run("gate", "--help").out
        known = set(re.findall(r"--[a-z-]+", help_text))
        names = ["github-actions.yml", "gitlab-ci.yml", "Jenkinsfile"]
        for name in names:
            text = (support.SOURCE / "ci" / name).read_text()
            calls = re.findall(r"bin/tutti gate((?:[^\n]|\\\n)*)", text)
            self.assertEqual(len(calls), 1, name)
            self.assertLessEqual(set(re.findall(r"--[a-z-]+", calls[0])), known, name)
            for script in re.findall(r"scripts/[a-z-]+", text):
                self.assertTrue((support.SOURCE / script).exists(), script)

    @unittest.skipUnless(shutil.which("git"), "no git here")
    def test_a_runner_that_is_used_again_makes_its_worktree_again(self):
        for name in ["github-actions.yml", "gitlab-ci.yml", "Jenkinsfile"]:
            lines = [re.sub("^ *(- )?", "", line) for line in (support.SOURCE / "ci" / name).read_text().splitlines()
                     if "worktree" in line or "rm -rf" in line]
            with self.subTest(name), support.Run("--version") as folder:
                folder.wait(20)
                tree = folder.path / "tree"
                def run(*words):
                    subprocess.run(words, cwd=tree, check=True, capture_output=True, timeout=20, env={
                        "PATH": os.environ["PATH"], "HOME": str(folder.path), "GITHUB_BASE_REF": "main",
                        "CI_MERGE_REQUEST_DIFF_BASE_SHA": "origin/main"})
                tree.mkdir()
                run("git", "init", "--quiet")
                for message in ["one", "two"]:
                    run("git", "-c", "user.name=tutti", "-c", "user.email=tutti@localhost", "commit", "--quiet",
                        "--allow-empty", "--message", message)
                run("git", "update-ref", "refs/remotes/origin/main", "HEAD~")
                for time in range(2):
                    run("bash", "-e", "-c", "\n".join(lines))
                    base = subprocess.run(["git", "log", "--format=%s"], cwd=tree / "base", capture_output=True, text=True)
                    self.assertEqual(base.stdout, "one\n", time)
                run("git", "clean", "--quiet", "-ffdx")  # as runners do between jobs
                run("bash", "-e", "-c", "\n".join(lines))

    def test_reports_of_an_earlier_job_are_gone_before_anything_can_fail(self):
        """Else a job that ends early shows those in place of its own."""
        for name in ["github-actions.yml", "gitlab-ci.yml", "Jenkinsfile"]:
            text = (support.SOURCE / "ci" / name).read_text()
            written = re.findall(r"--(?:junit|summary|csv) (\S+)", text)
            self.assertEqual(len(written), 3, name)
            lines = [re.sub("^ *(- )?", "", line) for line in text.splitlines()]
            commands = [line for line in lines if re.match("(rm|apt-get|git|scripts|cmake|build)[ /]", line)]
            with self.subTest(name), support.Run("--version") as folder:
                folder.wait(20)
                for file in written:
                    (folder.path / file).write_text("of yesterday")
                self.assertTrue(commands[0].startswith("rm -f "), commands[0])
                subprocess.run(["bash", "-e", "-c", commands[0]], cwd=folder.path, check=True, timeout=20)
                self.assertEqual([file for file in written if (folder.path / file).exists()], [])

    def test_yaml_is_valid(self):
        try:
            import yaml
        except ImportError:
            self.skipTest("no python3-yaml here")
        for name in ["github-actions.yml", "gitlab-ci.yml"]:
            self.assertTrue(yaml.safe_load((support.SOURCE / "ci" / name).read_text()), name)

    def test_shell_is_valid(self):
        """The commands of the pipeline's jobs, as a shell reads them."""
        text = (support.SOURCE / "ci/Jenkinsfile").read_text()
        for block in re.findall(r"'''(.*?)'''", text, re.DOTALL):
            subprocess.run(["bash", "-n"], input=block, text=True, check=True)


if __name__ == "__main__":
    unittest.main()
