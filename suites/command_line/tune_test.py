# SPDX-License-Identifier: Apache-2.0
"""Selection tables: `auto` takes what a table says, records name it, ranks compare it, and `tutti tune` writes and checks one."""
import csv
import json
import os
import pathlib
import re
import tempfile
import unittest

import joined_test
import support

HEADER = support.TABLE_HEADER
RING = f"{HEADER}\nall_reduce,host,any,any,1,any,0,any,ring,0,tried,measured\n"
HALVING = f"{HEADER}\nall_reduce,host,any,any,1,any,0,99,halving,0,tried,simulated fat_tree\n"
ONE_CELL = ["all_reduce", "--sizes", "64", "--ranks", "2", "--backends", "tutti", "--budget", "100ms", "--no-limit"]
SHIPPED = re.compile(r"^shipped:[0-9a-f]{16}$")


class WithTables(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="tutti-tables-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.ring, cls.halving = cls.file("ring.csv", RING), cls.file("halving.csv", HALVING)

    @classmethod
    def file(cls, name, text):
        path = cls.folder / name
        path.write_text(text)
        return str(path)

    def rows(self, *words, environment=None, code=0):
        """The rows of a command that writes them, and its JSON if it was asked for any."""
        path = self.folder / "rows.csv"
        result = support.run(*words, "--csv", path, environment=environment)
        self.assertEqual(result.code, code, result)
        with open(path) as file:
            return list(csv.DictReader(file)), result


class Choices(WithTables):
    def test_auto_takes_what_the_table_says_and_the_record_names_it(self):
        record = self.folder / "record.json"
        for words, environment in [(["--table", self.ring], None), ([], {"TUTTI_TABLE": self.ring}),
                                   (["--table", self.ring], {"TUTTI_TABLE": self.halving})]:
            [row], _ = self.rows("run", *ONE_CELL, *words, "--json", record, environment=environment)
            self.assertEqual((row["algorithm"], row["verdict"], row["marks"].count("formula")), ("ring", "ok", 0))
            self.assertRegex(row["table"], r"^ring.csv:[0-9a-f]{16}$")
            found = json.loads(record.read_text())
            self.assertEqual(f"{found['table']['name']}:{found['table']['hash']}", row["table"])
            self.assertEqual(found["rows"][0]["table"], row["table"])
            support.jsonschema.validate(found, support.SCHEMA)

    def test_without_a_table_the_record_names_what_is_built_in(self):
        [row], _ = self.rows("run", *ONE_CELL)
        self.assertRegex(row["table"], SHIPPED)
        [named], _ = self.rows("run", *ONE_CELL, "--algorithms", "ring", "--table", self.halving)
        self.assertEqual((named["algorithm"], named["table"]), ("ring", ""))

    def test_a_row_that_was_simulated_says_so(self):
        [row], _ = self.rows("run", *ONE_CELL, "--table", self.halving)
        self.assertEqual(row["algorithm"], "halving")
        self.assertIn("simulated on fat_tree", row["marks"])

    def test_algorithms_have_a_tuning_behind_them(self):
        words = ["run", "all_reduce", "--ranks", "2", "--sizes", "256K", "--backends", "tutti", "--budget", "1s", "--no-limit"]
        rows, _ = self.rows(*words, "--algorithms", "two_shot+streamed,two_shot+16K+plain,ring")
        self.assertEqual([(row["algorithm"], row["verdict"]) for row in rows],
                         [("two_shot+streamed", "ok"), ("two_shot+16K+plain", "ok"), ("ring", "ok")])
        again, _ = self.rows("run", "--case", rows[1]["case"], "--budget", "200ms", "--no-limit")
        self.assertEqual([row["case"] for row in again], [rows[1]["case"]])
        tuned = self.file("tuned.csv", f"{HEADER}\nall_reduce,host,any,any,1,any,0,any,two_shot,64K,streamed,measured\n")
        for ranks_as in ["processes", "threads", "tasks"]:
            [row], _ = self.rows(*words, "--table", tuned, "--ranks-as", ranks_as)
            self.assertEqual((row["algorithm"], row["verdict"]), ("two_shot+64K+streamed", "ok"))

    def test_a_random_mix_is_right_with_every_tuning(self):
        """Ranks choose by the table themselves, and every plan is proved."""
        for tuning in ["64,streamed", "64,plain", "1K,streamed", "0,single_copy", "1K,single_copy"]:
            rows = "".join(f"{collective},host,any,any,1,any,0,any,direct,{tuning},measured\n"
                           for collective in ["broadcast", "reduce", "gather", "all_gather", "scatter", "reduce_scatter", "all_to_all"])
            table = self.file("all.csv", f"{HEADER}\n{rows}all_reduce,host,any,any,1,any,0,any,two_shot,{tuning},measured\n")
            for ranks_as in ["tasks", "processes"]:
                result = support.run("check", "soak", "--ranks", "3", "--ranks-as", ranks_as, "--operations", "300", "--table", table)
                self.assertEqual(result.code, 0, result)
                self.assertIn("0 wrong", result.out)
        wrong = support.run("check", "soak", "--ranks", "2", "--table", self.file("bad.csv", RING.replace(",ring,", ",rung,")))
        self.assertEqual(wrong.code, 2, wrong)

    def test_private_buffers_are_copied_once_where_ranks_reach_each_other(self):
        for ranks_as in ["processes", "threads", "tasks"]:
            rows, _ = self.rows("run", "all", "--algorithms", "direct+single_copy,two_shot+single_copy,one_shot+1K+single_copy", "--ranks", "3",
                                "--ranks-as", ranks_as, "--ops", "sum,avg", "--sizes", "40,300K", "--placement", "in,out", "--backends", "tutti",
                                "--iterations", "5", "--no-limit")
            self.assertGreater(len(rows), 30)
            for row in rows:
                self.assertEqual(row["verdict"], "ok", row)
        table = self.file("once.csv", f"{HEADER}\nall_reduce,host,any,any,1,any,0,any,two_shot,0,single_copy,measured\n")
        one = ["run", "all_reduce", "--ranks", "2", "--sizes", "256K", "--backends", "tutti", "--budget", "300ms", "--no-limit"]
        for words, expected in [(["--buffers", "private"], ("two_shot+single_copy", "ok")),
                                (["--buffers", "shared"], ("two_shot", "ok")),
                                (["--transports", "fake", "--ranks-as", "tasks", "--pretend-hosts", "2"], None)]:
            [row], _ = self.rows(*one, *words, "--table", table)
            if expected is None:
                self.assertNotIn("single_copy", row["algorithm"])
            else:
                self.assertEqual((row["algorithm"], row["verdict"]), expected)
        [row], _ = self.rows(*one, "--buffers", "shared", "--algorithms", "two_shot+single_copy")
        self.assertEqual(row["verdict"], "skipped")
        self.assertIn("one copy is for private buffers of ranks of one host", row["reason"])

    def test_the_drop_in_programs_take_the_variable(self):
        program, path = support.PROGRAM.parent / "all_reduce_perf", self.folder / "perf.csv"
        words = ["-b", "64", "-e", "64", "-t", "2", "-n", "5", "-w", "1", "--csv", path]
        for environment, algorithm, table in [({"TUTTI_TABLE": self.ring}, "ring", "ring.csv:"), ({}, None, "shipped:")]:
            with support.Run(*words, program=program, environment=environment) as one:
                result = one.wait(60)
            self.assertEqual(result.code, 0, result)
            with open(path) as file:
                for row in csv.DictReader(file):
                    self.assertTrue(row["table"].startswith(table), row)
                    self.assertIn(row["algorithm"], [algorithm] if algorithm else [row["algorithm"]])

    def test_a_file_that_is_no_table_is_refused_by_line_and_column(self):
        bad = self.file("bad.csv", RING.replace(",ring,", ",rung,"))
        for words, environment, place in [(["--table", bad], {}, "--table"), ([], {"TUTTI_TABLE": bad}, "TUTTI_TABLE")]:
            result = support.run("run", *ONE_CELL, *words, environment=environment)
            self.assertEqual(result.code, 2, result)
            for text in [place, "bad.csv", "line 2, column 9 (algorithm)", "'rung'", "did you mean 'ring'?"]:
                self.assertIn(text, result.err)
        for name, text, words in [("empty.csv", "", ["no selection table"]), ("long.csv", "#" * ((1 << 20) + 1), ["at most 1 MiB"]),
                                  ("rows.csv", "case,collective\n", ["line 1, column 1", "'case'"])]:
            result = support.run("run", *ONE_CELL, "--table", self.file(name, text))
            self.assertEqual(result.code, 2, result)
            for word in words:
                self.assertIn(word, result.err)
        for path, word in [("/dev/zero", "/dev/zero"), (self.folder / "none.csv", "none.csv"), (self.folder, "directory")]:
            result = support.run("run", *ONE_CELL, "--table", path)
            self.assertEqual(result.code, 2, result)
            self.assertIn(word, result.err)


class Gates(WithTables):
    def test_a_gate_does_not_take_the_variable(self):
        suite = self.file("one.toml", '[[sweep]]\ncollectives = "all_reduce"\nsizes = "64"\nranks = "2"\n')
        baseline, found = self.folder / "baseline.csv", self.folder / "gate.csv"
        shipped = support.run("run", *ONE_CELL, "--csv", baseline)
        self.assertEqual(shipped.code, 0, shipped)
        usual = next(csv.DictReader(baseline.read_text().splitlines()))["algorithm"]
        for words, algorithm, told in [([], usual, True), (["--table", self.ring], "ring", True)]:
            result = support.run("gate", "--suite", suite, "--baseline", baseline, "--blocks", "8", "--cell-time", "20ms", "--csv", found,
                                 *words, environment={"TUTTI_TABLE": self.halving}, limit=120)
            self.assertIn(result.code, [0, 3, 4, 6], result)
            self.assertEqual({row["algorithm"] for row in csv.DictReader(found.read_text().splitlines())}, {algorithm}, result)
            self.assertEqual("# TUTTI_TABLE is not taken: a gate takes" in result.err, told, result)


class Joined(joined_test.Joined):
    def test_ranks_that_have_other_tables_are_told_both(self):
        with tempfile.TemporaryDirectory(prefix="tutti-tables-") as folder:
            tables = [pathlib.Path(folder, name) for name in ["ring.csv", "halving.csv"]]
            for path, text in zip(tables, [RING, HALVING]):
                path.write_text(text)
            for hosts in [[2], [1, 1]]:
                runs = self.start(hosts, "run", "all_reduce", "--sizes", "64", "--budget", "200ms",
                                  own=lambda rank: {"TUTTI_TABLE": str(tables[rank])})
                results = self.ends(runs)
                self.assertEqual(results[0].code, 3, results)
                told = results[0].err + results[1].err
                self.assertRegex(told, r"rank 1 has the selection table halving\.csv:[0-9a-f]{16}, and rank 0 has "
                                       r"ring\.csv:[0-9a-f]{16}: give all ranks the same, by --table or TUTTI_TABLE")
            runs = self.start([2], "run", "all_reduce", "--sizes", "64", "--budget", "200ms",
                              own=lambda rank: {"TUTTI_TABLE": str(tables[0])})
            results = self.ends(runs)
            self.assertEqual([result.code for result in results], [0, 0], results)
            self.assertIn(" ring ", results[0].out)


class Tune(WithTables):
    def test_writes_a_table_that_auto_reads(self):
        table, rows = self.folder / "tuned.csv", self.folder / "tuned-rows.csv"
        words = ["tune", "all_reduce", "reduce", "--ranks", "2", "--sizes", "8,4K", "--blocks", "20", "--budget", "60s", "--csv", rows]
        result = support.run(*words, "--out", table, limit=90)
        self.assertEqual(result.code, 0, result)
        self.assertRegex(result.out, r"(?m)^# \d cells? measured, \d with another choice than before; \d not measured$")
        written = table.read_text()
        lines = [line for line in written.splitlines() if not line.startswith("#")]
        self.assertGreater(len(lines), 1, written)
        for row in csv.DictReader(lines):
            self.assertEqual((row["source"], row["ranks_to"], row["record"]), ("measured", "2", "tuned-rows.csv"))
            if row["algorithm"] != row["default"]:
                self.assertGreater(float(row["gain_low"]), 1)
        named = re.search(r"(?m)^# table (tuned\.csv:[0-9a-f]{16}) in ", result.out)
        self.assertTrue(named, result)
        found, _ = self.rows("run", "all_reduce", "--sizes", "8", "--ranks", "2", "--backends", "tutti", "--budget", "200ms",
                             "--no-limit", "--table", table)
        self.assertEqual(found[0]["table"], named.group(1))

    def test_check_says_whether_a_table_fits(self):
        """Segments of 256 B cannot be what fits 256 KiB, on any machine; and `tune` finds what does."""
        slow = self.file("slow.csv", f"{HEADER}\nall_reduce,host,any,any,1,any,0,any,two_shot,256,tried,measured\n")
        words = ["all_reduce", "--ranks", "2", "--buffers", "private", "--sizes", "256K", "--blocks", "20", "--budget", "60s", "--table", slow]
        files = [self.folder / name for name in ["found.json", "found.xml", "found.md"]]
        result = support.run("tune", *words, "--check", "--json", files[0], "--junit", files[1], "--summary", files[2],
                             limit=90)
        self.assertEqual(result.code, 4, result)
        found = json.loads(files[0].read_text())
        self.assertEqual((found["kind"], [cell["verdict"] for cell in found["cells"]]), ("tune", ["slower"]))
        self.assertGreater(found["cells"][0]["low"], 1.1)
        self.assertRegex(result.out, r"(?m)^# table slow\.csv:[0-9a-f]{16} no longer fits 1 cell$")
        self.assertIn("failure", files[1].read_text())
        self.assertIn("**slower**", files[2].read_text())
        table = self.folder / "better.csv"
        result = support.run("tune", *words, "--out", table, limit=90)
        self.assertEqual(result.code, 0, result)
        [row] = csv.DictReader(line for line in table.read_text().splitlines() if not line.startswith("#"))
        self.assertEqual(row["default"], "two_shot+256")
        self.assertNotEqual((row["algorithm"], row["segment"]), ("two_shot", "256"))
        self.assertGreater(float(row["gain_low"]), 1.1)

    def test_simulate_writes_rows_where_nothing_was_measured(self):
        table = self.folder / "simulated.csv"
        result = support.run("simulate", "all_reduce", "--ranks", "16,64", "--sizes", "8,64K", "--table", table)
        self.assertEqual(result.code, 0, result)
        rows = list(csv.DictReader(line for line in table.read_text().splitlines() if not line.startswith("#")))
        self.assertEqual({(row["place"], row["source"]) for row in rows}, {("hosts", "simulated example")})
        self.assertEqual([(row["ranks_from"], row["ranks_to"], row["bytes_to"]) for row in rows],
                         [("16", "16", "724"), ("16", "16", "any"), ("17", "64", "724"), ("17", "64", "any")])
        found, _ = self.rows("run", "all_reduce", "--sizes", "8", "--ranks", "16", "--transports", "fake", "--ranks-as", "tasks",
                             "--pretend-hosts", "2", "--budget", "1s", "--table", table)
        self.assertIn("simulated on example", found[0]["marks"])
        self.assertEqual(found[0]["algorithm"], rows[0]["algorithm"])

    def test_a_list_runs_nothing(self):
        result = support.run("tune", "all_reduce", "--ranks", "2", "--sizes", "8,1M", "--buffers", "private", "--list")
        self.assertEqual(result.code, 0, result)
        self.assertRegex(result.out, r"(?m)/8B/out/private/isolated  \S+ .*\bring\b")
        self.assertRegex(result.out, r"(?m)/1048576B/out/private/isolated  \S+ .*\+streamed\b")
        self.assertRegex(result.out, r"# 2 cells, \d+ cases: ")

    def test_mistakes_are_named(self):
        for words, names in [([], ["--out FILE is needed"]), (["--check", "--out", "x.csv"], ["--out", "--check"]),
                             (["barier", "--out", "x"], ["'barier'", "did you mean 'barrier'?"]),
                             (["all_to_all_v", "--out", "x"], ["'all_to_all_v'", "all_reduce"]),
                             (["--blocks", "7", "--out", "x"], ["--blocks", "'7'", "8"]),
                             (["--out", "-"], ["--out", "'-'"]),
                             (["--out", "x.csv", "--csv", "x.csv"], ["x.csv"])]:
            result = support.run("tune", *words)
            self.assertEqual((result.code, result.out), (2, ""), result)
            for name in names:
                self.assertIn(name, result.err)

    def test_what_cannot_be_measured_leaves_no_table(self):
        table = self.folder / "none.csv"
        result = support.run("tune", "reduce", "--ranks", "8", "--sizes", "2M", "--blocks", "1000", "--budget", "1ms", "--out", table)
        self.assertEqual(result.code, 3, result)
        self.assertIn("no table is written", result.err)


if __name__ == "__main__":
    unittest.main()
