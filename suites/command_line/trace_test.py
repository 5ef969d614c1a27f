# SPDX-License-Identifier: Apache-2.0
"""`tutti run --trace`: the calls of a file, replayed."""
import pathlib
import tempfile
import unittest

import support

EXAMPLE = support.SOURCE / "suites/traces/training_step.csv"
HEADER = "step,group,operation,dtype,op,bytes,peer_bytes,gap_us\n"


class Trace(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "calls.csv"

    def replay(self, *arguments, backends="tutti", limit=60):
        with support.Run("run", "--backends", backends, *arguments, "--csv", "{folder}/rows.csv", "--json",
                         "{folder}/run.json") as one:
            result = one.wait(limit)
            self.assertEqual(result.code, 0, result)
            return result, one.rows()[1], support.read_json(one.path / "run.json")

    def test_the_example_gives_a_row_for_each_step_and_one_of_the_whole(self):
        result, rows, record = self.replay("--trace", EXAMPLE, "--ranks", "2", "--iterations", "6")
        self.assertEqual([row["step"] for row in rows], ["forward", "backward", "optimizer", "whole"])
        for row in rows:
            self.assertEqual((row["verdict"], row["wrong"], row["samples"], row["collective"]), ("ok", "0", "6", "trace"), row)
            self.assertIn(f"/{row['bytes']}B.trace-", row["case"])
        self.assertEqual([row["step"] for row in record["rows"]], [row["step"] for row in rows])
        self.assertEqual(int(rows[3]["bytes"]), sum(int(row["bytes"]) for row in rows[:3]))
        self.assertEqual(int(rows[1]["bytes"]), 2 * 1024 * 1024 + 256 * 1024)
        self.assertIn("step backward", result.out)
        # A step has the gaps between its calls and not the one before it; the whole has all but the first.
        for index, gaps in [(0, 200), (1, 500), (2, 50), (3, 1550 - 300)]:
            self.assertGreaterEqual(float(rows[index]["time_min"]), gaps, rows[index])

    def test_without_gaps_and_as_threads(self):
        """With its gaps it would not end in time."""
        self.file.write_text(HEADER + "a,,all_reduce,float,sum,4K,,50000000\na,0;1;2,all_to_all,int8,,96,,50000000\n")
        _, rows, _ = self.replay("--trace", self.file, "--ranks", "3", "--ranks-as", "threads", "--gaps", "off",
                                 "--iterations", "5")
        self.assertEqual([(row["step"], row["bytes"], row["verdict"]) for row in rows],
                         [("a", "4192", "ok"), ("whole", "4192", "ok")])
        self.assertIn("-without-gaps-whole/", rows[1]["case"])

    def test_uneven_calls_and_few_columns(self):
        self.file.write_text("operation,bytes,peer_bytes\nall_to_all_v,,8;0;4;12\nall_gather_v,,4;40\nall_to_all_v,64,empty\n")
        _, rows, _ = self.replay("--trace", self.file, "--ranks", "2", "--ranks-as", "tasks", "--iterations", "5")
        self.assertEqual([(row["step"], row["bytes"], row["verdict"]) for row in rows],
                         [("1", str(16 + 44 + 64), "ok"), ("whole", str(16 + 44 + 64), "ok")])

    @support.needs_openmpi
    def test_with_a_reference(self):
        _, rows, _ = self.replay("--trace", EXAMPLE, "--ranks", "2", "--iterations", "5", backends="tutti,openmpi")
        self.assertEqual([(row["step"], row["backend"], row["verdict"]) for row in rows],
                         [(step, backend, "ok") for step in ["forward", "backward", "optimizer", "whole"]
                          for backend in ["tutti", "openmpi"]])

    def test_what_is_wrong_in_a_file_is_named(self):
        good = "1,,all_reduce,float,sum,64,,0\n"
        for text, parts in [
            ("", ["it is empty"]),
            (HEADER, ["there is no call"]),
            ("step,operatoin,bytes\n", ["line 1", "'operatoin'", "did you mean 'operation'?", "peer_bytes"]),
            ("step,bytes\n", ["line 1", "no column 'operation'"]),
            (HEADER + good + "1,,all_reduc,float,sum,64,,0\n", ["line 3", "'operation'", "'all_reduc'", "did you mean 'all_reduce'?"]),
            (HEADER + "1,,all_reduce,flaot,sum,64,,0\n", ["line 2", "'dtype'", "'flaot'", "did you mean 'float'?"]),
            (HEADER + "1,,all_reduce,float,smu,64,,0\n", ["line 2", "'op'", "'smu'", "did you mean 'sum'?"]),
            (HEADER + "1,,all_reduce,float,band,64,,0\n", ["line 2", "'op'", "'band'", "did you mean 'sum'?"]),
            (HEADER + "1,,broadcast,float,sum,64,,0\n", ["line 2", "'op'", "broadcast", "leave it empty"]),
            (HEADER + "1,,all_reduce,float,sum,lots,,0\n", ["line 2", "'bytes'", "'lots'"]),
            (HEADER + "1,0;1,all_reduce,float,sum,64,,0\n" + "1,1,all_reduce,float,sum,64,,0\n", ["line 3", "'group'", "'1'", "'0;1'"]),
            (HEADER + "1,,pingpong,float,,64,,0\n", ["line 2", "'operation'", "'pingpong'", "collectives only"]),
            (HEADER + "1,,all_reduce,float,sum,64,8;8,0\n", ["line 2", "'peer_bytes'", "all_reduce"]),
            (HEADER + "1,,all_to_all_v,float,,,8;8;8,0\n", ["line 2", "'peer_bytes'", "needs 2 or 4"]),
            (HEADER + "1,,all_to_all_v,float,,,8;7,0\n", ["line 2", "'peer_bytes'", "7 bytes", "did you mean '8'?"]),
            (HEADER + "1,,all_to_all_v,float,,64,zpif,0\n", ["line 2", "'peer_bytes'", "'zpif'", "did you mean 'zipf'?"]),
            (HEADER + "1,,all_reduce,float,sum,64,,-1\n", ["line 2", "'gap_us'", "'-1'", "0 to 60000000"]),
            (HEADER + good + "2,,all_reduce,float,sum,64,,0\n" + good, ["line 4", "'step'", "'1' is over"]),
            (HEADER + "1,,all_reduce,float\n", ["line 2", "fields"]),
        ]:
            self.file.write_text(text)
            with self.subTest(text):
                result = support.run("run", "--trace", self.file, "--ranks", "2", "--backends", "tutti")
                self.assertEqual(result.code, 2, result)
                for part in ["--trace", "calls.csv", *parts]:
                    self.assertIn(part, result.err)

    def test_what_has_no_meaning_beside_it_is_refused(self):
        for words, parts in [(["--sizes", "8"], ["--sizes", "--trace"]), (["all_reduce"], ["COLLECTIVE", "--trace"]),
                             (["--ranks", "2,4"], ["--ranks", "2"]), (["--gaps", "of"], ["--gaps", "'of'", "did you mean 'off'?"])]:
            with self.subTest(words):
                ranks = [] if "--ranks" in words else ["--ranks", "2"]
                result = support.run("run", "--trace", EXAMPLE, *ranks, *words)
                self.assertEqual(result.code, 2, result)
                for part in parts:
                    self.assertIn(part, result.err)
        alone = support.run("run", "all_reduce", "--gaps", "off")
        self.assertEqual(alone.code, 2, alone)
        self.assertIn("--gaps: has no meaning without --trace", alone.err)

    def test_the_list_of_what_would_run(self):
        result = support.run("run", "--trace", EXAMPLE, "--ranks", "2", "--backends", "tutti", "--list")
        self.assertEqual(result.code, 0, result)
        self.assertIn("all_to_all_v/", result.out)


if __name__ == "__main__":
    unittest.main()
