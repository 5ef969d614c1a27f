# SPDX-License-Identifier: Apache-2.0
"""`tutti simulate`: times that a model predicts, on the example machine and on those of files."""
import csv
import io
import json
import pathlib
import re
import tempfile
import unittest

import support


class Simulate(unittest.TestCase):
    def simulate(self, *arguments):
        result = support.run("simulate", *arguments)
        self.assertEqual((result.code, result.err), (0, ""), result)
        return result.out

    def rows(self, *arguments):
        return list(csv.DictReader(io.StringIO(self.simulate(*arguments, "--csv", "-"))))

    def on_file(self, text):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name, "machine.toml")
        path.write_text(text)
        return path

    def test_the_example_machine_is_printed_and_reads_back(self):
        page = self.simulate("all_reduce", "--ranks", "8,64")
        self.assertIn("# simulate: all_reduce", page)
        lines = [line[4:] for line in page.splitlines() if line.startswith("#   ") and not line.startswith("#    ")]
        self.assertIn('name = "example"', lines)
        again = self.simulate("all_reduce", "--ranks", "8,64", "--machine", self.on_file("\n".join(lines) + "\n"))
        self.assertEqual(page[page.index("\n\n# 8 ranks"):], again[again.index("\n\n# 8 ranks"):])

    def test_one_time_of_each_row_is_marked(self):
        page = self.simulate("all_reduce", "--ranks", "8", "--sizes", "8,1M")
        times = re.findall(r"(?m)^ +\d+  .*$", page)
        self.assertEqual([line.split()[0] for line in times], ["8", "1048576"])
        for line in times:
            self.assertGreaterEqual(line.count("*"), 1, line)

    def test_the_picture_and_the_document_have_what_the_table_has(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        asked = ["all_reduce", "--ranks", "8,64", "--sizes", "8,16M"]
        rows = self.rows(*asked)
        self.simulate(*asked, "--svg", folder / "x.svg", "--json", folder / "x.json")
        document = json.loads((folder / "x.json").read_text())
        self.assertEqual((document["collective"], document["machine"]), ("all_reduce", "example"))
        told = {(of["ranks"], column["algorithm"], size): time for of in document["forecasts"] for column in of["algorithms"]
                for size, time in zip(of["bytes"], column["predicted_us"])}
        self.assertEqual(set(told), {(int(row["ranks"]), row["algorithm"], int(row["bytes"])) for row in rows})
        for row in rows:
            self.assertAlmostEqual(told[int(row["ranks"]), row["algorithm"], int(row["bytes"])] / float(row["predicted_us"]), 1, 4)
        self.assertIn("one_shot: rank 7 uses memory of ranks on other nodes in step 3", document["forecasts"][1]["left_out"])
        fastest = [name for of in document["forecasts"] for name in of["fastest"]]
        picture = (folder / "x.svg").read_text()
        self.assertEqual(re.findall(r"font-weight='bold'>(\w+)</text>", picture), fastest)
        for text in ["predicted for machine example", ">8 ranks<", ">64 ranks<", ">8 B<", ">16 MiB<"]:
            self.assertIn(text, picture)
        for words in [["--svg", "-"], ["--csv", "-", "--json", "x.json"]]:
            self.assertEqual(support.run("simulate", *asked, *words).code, 2, words)

    def test_times_are_those_of_the_closed_forms(self):
        rows = self.rows("all_reduce", "--machine", self.on_file(support.LOGGP), "--ranks", "16", "--sizes", "64K")
        us = {row["algorithm"]: float(row["predicted_us"]) for row in rows}
        self.assertAlmostEqual(us["ring"], 30 * (1.6 + 4096e-4) + 15 * 4096 * 5e-5, places=3)
        self.assertAlmostEqual(us["recursive_doubling"], 4 * (1.6 + 65536 * 1.5e-4), places=3)
        self.assertAlmostEqual(us["halving"], 8 * 1.6 + 15 * 4096 * 2.5e-4, places=3)
        (fastest,) = [row["algorithm"] for row in rows if row["is_fastest"] == "1"]
        self.assertEqual(us[fastest], min(us.values()))

    def test_every_collective_that_has_blocks_of_one_length(self):
        for collective in ["broadcast", "reduce", "all_reduce", "gather", "all_gather", "scatter", "reduce_scatter",
                           "all_to_all", "barrier", "sendrecv", "pingpong", "bandwidth", "bibandwidth", "message_rate",
                           "scan", "exscan"]:
            for ranks in ["4", "16"]:
                with self.subTest(collective, ranks=ranks):
                    rows = self.rows(collective, "--ranks", ranks)
                    self.assertGreater(len(rows), 0)
                    for row in rows:
                        self.assertGreater(float(row["predicted_us"]), 0, row)

    def test_what_needs_the_memory_of_all_ranks_is_left_out_by_name(self):
        page = self.simulate("all_reduce", "--ranks", "16")
        self.assertRegex(page, r"(?m)^# left out: two_shot: rank \d+ uses memory of ranks on other nodes in step \d+$")
        self.assertNotIn("two_shot", {row["algorithm"] for row in self.rows("all_reduce", "--ranks", "16")})

    def test_published_machines(self):
        machines = sorted((support.SOURCE / "harness/simulate/machines").glob("*.toml"))
        self.assertGreaterEqual(len(machines), 8)
        for path in machines:
            with self.subTest(path.name):
                us = [float(row["predicted_us"]) for row in
                      self.rows("all_gather", "--algorithms", "ring", "--ranks", "48", "--sizes", "1K,1M", "--machine", path)]
                self.assertEqual(us, sorted(us))
        (row,) = self.rows("all_gather", "--algorithms", "ring", "--ranks", "64", "--sizes", "64K", "--machine",
                           support.SOURCE / "harness/simulate/machines/alps.toml")
        self.assertAlmostEqual(float(row["predicted_us"]), 63 * (1.9 + 2 * 0.23 + 1023 * 79e-6), places=2)

    def test_many_ranks_are_few_that_stand_for_all(self):
        rows = self.rows("all_reduce", "--algorithms", "ring,two_level", "--ranks", "100000", "--sizes", "1M")
        self.assertEqual([row["algorithm"] for row in rows], ["ring", "two_level"])

    def test_a_network_and_its_faults(self):
        tree = '[network]\nshape = "fat-tree"\nleaf = 4\ntaper = {}\n'
        asked = ["all_reduce", "--algorithms", "recursive_doubling", "--ranks", "16", "--sizes", "1M", "--machine"]
        us = [float(row["predicted_us"]) for text in
              [tree.format(1), tree.format(4), tree.format(4) + '[[fault]]\nwhat = "uplink"\nleaf = "B"\nshare = "50%"\n']
              for row in self.rows(*asked, self.on_file(support.LOGGP + text))]
        self.assertEqual(us, sorted(set(us)), "each is slower than the one before")
        slow = self.on_file(support.LOGGP + tree.format(4) + '[[fault]]\nwhat = "uplink"\nleaf = "B"\nshare = "50%"\n')
        self.assertRegex(self.simulate(*asked, slow), r"(?m)^# longer than without the 1 fault of the file\n.*\n.*\n +1048576 +\+\d+\.\d$")
        (row,) = self.rows(*asked, slow)
        self.assertEqual([float(row["without_faults_us"]), float(row["predicted_us"])], us[1:])

    def test_the_critical_path_of_a_ring(self):
        page = self.simulate("all_reduce", "--algorithms", "ring", "--ranks", "4", "--sizes", "64K", "--machine",
                             self.on_file(support.LOGGP), "--path", "--links")
        self.assertIn("# critical path: 21.89 us, 7 steps, 6 transfers between ranks\n", page)
        shares = dict(re.findall(r"(?m)^#   (\S.*?) {2,}(\S+) us", page))
        self.assertEqual(shares, {"processors send and receive": "3.600", "reducing and copying": "2.458", "latency": "6.000",
                                  "bytes on the wire": "9.830"})
        self.assertRegex(page, r"(?m)^ +0\.000 +0\.300 +\d +0  sends to rank \d \(16384 B\)$")
        self.assertRegex(page, r"waits for the message of rank \d, node\d to node\d, reduces, sends to rank \d \(16384 B\)")
        self.assertRegex(page, r"(?m)^# busiest interfaces and links, 2 in all; what is walked, in place of all, is 1 rank$")

    def test_a_long_path_is_shown_from_both_ends(self):
        page = self.simulate("all_reduce", "--algorithms", "ring", "--ranks", "64", "--sizes", "64K", "--path")
        self.assertRegex(page, r"(?m)^ +\.\.\. 103 more$")

    def test_a_flag_on_the_path(self):
        page = self.simulate("barrier", "--algorithms", "dissemination", "--ranks", "16", "--path")
        self.assertRegex(page, r"waits for the flag of rank \d+, node\d to node\d\n")

    def test_links_of_a_tapered_tree(self):
        tree = '[network]\nshape = "fat-tree"\nleaf = 4\ntaper = 4\n'
        page = self.simulate("all_reduce", "--algorithms", "recursive_doubling", "--ranks", "16", "--sizes", "1M", "--machine",
                             self.on_file(support.LOGGP + tree), "--path", "--links")
        self.assertIn("waiting for a link", page)
        self.assertIn("over uplink of leaf", page)
        self.assertRegex(page, r"(?m)^ +\S+ +\S+  uplink of leaf A$")

    def test_path_and_links_are_of_one_time(self):
        for words, said in [(["--path"], "--algorithms names 9"), (["--links", "--algorithms", "ring"], "--ranks names 2"),
                            (["--path", "--algorithms", "ring", "--ranks", "8"], "--sizes names 8")]:
            result = support.run("simulate", "all_reduce", *words)
            self.assertEqual((result.code, result.out), (2, ""), result)
            self.assertIn(said, result.err)

    def test_a_machine_from_the_rows_of_a_run(self):
        recorded = support.SOURCE / "results/2026-11-across-hosts/four_ranks.csv"
        page = self.simulate("--fit", recorded)
        self.assertRegex(page, r"(?m)^# median error: [\d.]+ % of \d+ times predicted \(worst [+-][\d.]+ %\), [\d.]+ % of \d+ fitted$")
        self.assertEqual(len(re.findall(r"(?m)^ .*  (?:predicted|fitted)$", page)), 8)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "two_hosts.toml")
            self.assertIn("# written to", self.simulate("--fit", recorded, "--out", path))
            self.assertIn(path.read_text(), page)
            self.assertIn("times that a model predicts for machine four_ranks;",
                          self.simulate("all_reduce", "--machine", path, "--ranks", "2,4"))

    def simulate_older(self, text, folder):
        """As if an earlier version had written the rows."""
        path = pathlib.Path(folder, "older.csv")
        path.write_text(text.replace(",disturbed,", ",disturbance,", 1))
        return support.run("simulate", "--fit", path)

    def test_rows_that_cannot_be_fitted(self):
        text = (support.SOURCE / "results/2026-11-across-hosts/four_ranks.csv").read_text()
        rows = list(csv.DictReader(io.StringIO(text)))
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "rows.csv")
            with path.open("w", newline="") as file:
                writer = csv.DictWriter(file, rows[0].keys())
                writer.writeheader()
                writer.writerows(row | {"disturbed": "load"} for row in rows)
            result = support.run("simulate", "--fit", path)
            self.assertEqual((result.code, result.out), (3, ""), result)
            self.assertIn("was disturbed (load), so nothing is fitted", result.err)
            older = self.simulate_older(text, folder)
            self.assertEqual((older.code, older.out), (3, ""), older)
            self.assertIn("it has no column 'disturbed'", older.err)
            for words, said in [(["--fit", "/nowhere.csv"], "/nowhere.csv"), (["--fit", path, "--ranks", "4"], "--ranks: has no meaning with --fit"),
                                (["all_reduce", "--fit", path], "has no meaning with --fit"), (["all_reduce", "--out", path], "--out"), ([], "--fit RESULT.csv")]:
                result = support.run("simulate", *words)
                self.assertEqual((result.code, result.out), (2, ""), result)
                self.assertIn(said, result.err)

    def test_rows_in_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "rows.csv")
            page = self.simulate("all_reduce", "--ranks", "8", "--csv", path)
            self.assertIn("# 8 ranks on 1 node\n", page)
            self.assertEqual(path.read_text(), self.simulate("all_reduce", "--ranks", "8", "--csv", "-"))

    def test_mistakes_name_the_value_and_what_is_right(self):
        broken = self.on_file(support.LOGGP.replace("latency", "latncy"))
        no_near = self.on_file(support.LOGGP.replace("ranks_per_node = 1", "ranks_per_node = 4"))
        for arguments, code, words in [
                (["all_redice"], 2, ["'all_redice'", "'all_reduce'"]),
                (["all_reduce", "--algorithms", "rign"], 2, ["--algorithms", "'rign'", "did you mean 'ring'?"]),
                (["all_reduce", "--algorithms", "auto"], 2, ["--algorithms", "'auto'", "all"]),
                (["all_reduce", "--ranks", "0"], 2, ["--ranks", "'0'", "1 to 100000"]),
                (["all_reduce", "--ranks", "8,12"], 2, ["--ranks", "'12'", "nodes of 8", "'16'"]),
                (["all_reduce", "--ranks", "8,"], 2, ["--ranks", "empty item"]),
                (["bandwidth", "--ranks", "1"], 2, ["--ranks", "'1'", "2 to 100000"]),
                (["broadcast", "--ranks", "4,8", "--root", "4"], 2, ["--root", "'4'", "0 to 3"]),
                (["all_reduce", "--root", "1"], 2, ["all_reduce has no root"]),
                (["barrier", "--sizes", "8"], 2, ["barrier has no sizes"]),
                (["all_reduce", "--sizes", "8Q"], 2, ["--sizes", "'8Q'"]),
                (["all_gather_v"], 2, ["all_gather_v", "did you mean 'all_gather'?"]),
                (["all_reduce", "--machine", "/nowhere/x.toml"], 2, ["--machine", "/nowhere/x.toml"]),
                (["all_reduce", "--machine", broken], 2, ["--machine", "line 5", "'latncy'", "'latency'"]),
                (["all_reduce", "--csv", "/nowhere/x.csv"], 2, ["'/nowhere/x.csv'"])]:
            with self.subTest(arguments):
                result = support.run("simulate", *arguments)
                self.assertEqual((result.code, result.out), (code, ""), result)
                for word in words:
                    self.assertIn(word, result.err)
        result = support.run("simulate", "all_reduce", "--ranks", "4", "--machine", no_near)
        self.assertEqual(result.code, 3, result)
        self.assertIn("has no [near]", result.out)
        self.assertIn("nothing was predicted", result.err)


if __name__ == "__main__":
    unittest.main()
