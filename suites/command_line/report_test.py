# SPDX-License-Identifier: Apache-2.0
"""`tutti report`, and the pages that `tutti run` and `tutti gate` leave: every figure is that of the JSON."""
import csv
import html.parser
import json
import math
import os
import pathlib
import re
import signal
import tempfile
import time
import unittest

import jsonschema

import support


class Table(html.parser.HTMLParser):
    """The page's table of rows: a dictionary of heading and (text, raw) for each row; and all of the page's text."""

    def __init__(self, text):
        super().__init__()
        self.headings, self.rows, self.text = [], [], ""
        self._place, self._tag = None, ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self._tag = tag
        if tag == "table":
            self._place = attributes.get("id")
        elif self._place == "rows" and tag == "th":
            self.headings.append("")
        elif self._place == "rows" and tag == "tr":
            self.rows.append([])
        elif self._place == "rows" and tag == "td":
            self.rows[-1].append(["", attributes.get("data-raw")])

    def handle_endtag(self, tag):
        self._tag = ""
        if tag == "table":
            self._place = None

    def handle_data(self, data):
        if self._tag in ("style", "script"):
            return
        self.text += data
        if self._place == "rows" and self._tag == "button":
            self.headings[-1] += data
        if self._place == "rows" and self._tag == "td":
            self.rows[-1][-1][0] += data

    def cells(self):
        return [dict(zip(self.headings, row)) for row in self.rows if row]


def has_drawing():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "a.csv"
        support.run("run", "barrier", "--backends", "tutti", "--ranks", "2", "--budget", "50ms", "--csv", path, "--quiet")
        return support.run("report", path, "--html", f"{folder}/a.html").code != 3


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="tutti-report-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)

    def refused(self, *arguments, code=2, names=()):
        result = support.run(*arguments)
        self.assertEqual(result.code, code, result.err)
        self.assertEqual(len(result.err.strip().splitlines()), 1, result.err)
        for name in names:
            self.assertIn(name, result.err)


@unittest.skipUnless(has_drawing(), "no Python with matplotlib and jinja2: scripts/setup installs them")
class Page(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.json, cls.samples, cls.page = cls.folder / "a.json", cls.folder / "a.samples.csv", cls.folder / "a.html"
        cls.ran = support.run("run", "all_reduce,barrier", "--backends", ",".join(support.SYSTEMS), "--sizes", "8,64K",
                              "--ranks", "2", "--budget", "2s", "--json", cls.json, "--samples", cls.samples, "--html",
                              cls.page, "--quiet")
        cls.rows = json.loads(cls.json.read_text())["rows"]
        cls.table = Table(cls.page.read_text())

    def test_the_run_leaves_it(self):
        self.assertEqual(self.ran.code, 0, self.ran.err)
        self.assertIn("Distribution of samples", self.table.text)

    def test_every_figure_of_the_table_is_that_of_the_json(self):
        self.assertEqual(len(self.table.cells()), len(self.rows))
        columns = {"size": "bytes", "time (us)": "time_median", "from (us)": "time_ci_low", "to (us)": "time_ci_high",
                   "algbw (GB/s)": "algbw", "busbw (GB/s)": "busbw", "of the limit (%)": "limit_fraction",
                   "samples": "samples"}
        compared = 0
        for cell, row in zip(self.table.cells(), self.rows):
            self.assertEqual(cell["verdict"][0], row["verdict"])
            for heading, column in columns.items():
                text, raw = cell[heading]
                with self.subTest(case=row["case"], column=column):
                    if row[column] is None:
                        self.assertEqual((text, raw), ("", ""))
                        continue
                    self.assertTrue(math.isclose(float(raw), row[column], rel_tol=1e-12))
                    if column != "bytes":  # with one digit where the machine was so disturbed that no more is known
                        value = (100 if column == "limit_fraction" else 1) * row[column]
                        self.assertIn(float(text), [value, *(float(f"{value:.{digits}g}") for digits in range(1, 5))])
                    compared += 1
        self.assertGreater(compared, 10)

    def test_the_verdicts_mean_is_that_of_the_json(self):
        if len(support.SYSTEMS) < 2:
            self.skipTest("no reference")
        rows = {(row["collective"], row["bytes"], row["backend"]): row for row in self.rows}

        def is_known(row):
            """A time that is shorter than half of its interval is left out of the mean."""
            return ((row["time_ci_high"] or 0) - (row["time_ci_low"] or 0)) / 2 <= row["time_median"]

        pairs = [(row, rows[*key[:2], support.SYSTEMS[1]]) for key, row in rows.items() if key[2] == "tutti"]
        logs = [math.log(one["time_median"] / other["time_median"]) for one, other in pairs if is_known(one) and is_known(other)]
        told = re.search(r"tutti takes ([0-9.]+) of", self.table.text)
        self.assertEqual(told is not None, bool(logs), "a mean is told of times that are known")
        if told:
            self.assertAlmostEqual(float(told[1]), math.exp(sum(logs) / len(logs)), delta=0.006)

    def test_the_same_page_of_the_files(self):
        page = self.folder / "again.html"
        self.assertEqual(support.run("report", self.json, self.samples, "--html", page).code, 0)
        self.assertEqual(Table(page.read_text()).cells(), self.table.cells())

    def test_pictures_as_files(self):
        self.assertEqual(support.run("report", self.json, "--png", self.folder / "png", "--svg", self.folder / "svg").code, 0)
        self.assertGreater(len(list((self.folder / "png").glob("*.png"))), 2)
        self.assertGreater(len(list((self.folder / "svg").glob("*.svg"))), 2)

    def test_five_thousand_rows(self):
        path, page = self.folder / "many.csv", self.folder / "many.html"
        csv_path = self.folder / "one.csv"
        support.run("run", "all_reduce", "--backends", "tutti", "--sizes", "1K", "--ranks", "2", "--budget", "100ms",
                    "--csv", csv_path, "--quiet")
        with csv_path.open() as file:
            names, row = list(csv.reader(file))
        at = {name: place for place, name in enumerate(names)}
        with path.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(names)
            for collective in ("all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter"):
                for number in range(1000):
                    fields = list(row)
                    size = 4 * (number + 1)
                    fields[at["collective"]], fields[at["bytes"]] = collective, str(size)
                    fields[at["case"]] = row[at["case"]].replace("all_reduce", collective).replace("1024B", f"{size}B")
                    writer.writerow(fields)
        self.assertEqual(support.run("report", path, "--html", page).code, 0)
        self.assertLess(page.stat().st_size, 15_000_000)
        self.assertEqual(len(Table(page.read_text()).cells()), 5000)

    def test_a_hostile_name_is_text(self):
        path = self.folder / "<script>alert('x') \"é\".json"
        path.write_bytes(self.json.read_bytes())
        page = self.folder / "hostile.html"
        self.assertEqual(support.run("report", path, "--html", page).code, 0)
        text = page.read_text()
        self.assertEqual(len(re.findall("<script", text)), 1)
        self.assertIn("<script>alert('x') \"é\".json", Table(text).text)

    def test_a_gates_page(self):
        suite = self.folder / "one.toml"
        suite.write_text('[[sweep]]\ncollectives = "all_reduce"\nsizes = "64K"\n')
        page, found = self.folder / "gate.html", self.folder / "gate.json"
        result = support.run("gate", "--against", support.PROGRAM.parent.parent, "--suite", suite, "--cell-time", "20ms",
                             "--json", found, "--html", page, limit=120)
        self.assertIn(result.code, (0, 4, 6), result.err)
        (cell,) = json.loads(found.read_text())["cells"]
        table = Table(page.read_text())
        self.assertIn("Judged cells", table.text)
        self.assertIn(cell["verdict"], table.text)
        self.assertIn(cell["verdict"], result.out)


class Diagnoses(Case):
    def test_a_rank_that_died_is_named_by_fields(self):
        path = self.folder / "died.json"
        with support.Run("run", "all_reduce", "--sizes", "64K", "--backends", "tutti", "--ranks", "2", "--budget", "60s",
                         "--launches", "6", "--json", path, "--quiet") as run:
            os.kill(run.wait_for_ranks(2)[1], signal.SIGKILL)
            result = run.wait(60)
        self.assertEqual(result.code, 5, result.err)
        document = json.loads(path.read_text())
        jsonschema.validate(document, support.SCHEMA)
        self.assertFalse(document["finished"])
        (diagnosis,) = document["diagnoses"]
        self.assertEqual((diagnosis["rank"], diagnosis["how"]), (1, "killed"))
        self.assertIn(diagnosis["message"], result.err)
        self.assertEqual(diagnosis["host"], document["machine"]["hostname"])


class Exports(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.csv, cls.prometheus = cls.folder / "a.csv", cls.folder / "run.prom"
        ran = support.run("run", "all_reduce,sendrecv,scan", "--backends", ",".join(support.SYSTEMS), "--sizes", "8,64K",
                          "--ranks", "2", "--budget", "1s", "--csv", cls.csv, "--prometheus", cls.prometheus, "--quiet")
        assert ran.code == 0, ran.err
        cls.rows = support.read_csv(cls.csv)[1]

    def test_prometheus_has_every_time_under_the_inspectors_names(self):
        again = self.folder / "again.prom"
        self.assertEqual(support.run("report", self.csv, "--prometheus", again).code, 0)
        self.assertEqual(again.read_text(), self.prometheus.read_text())
        line = re.compile(r'^([a-z_0-9]+)\{((?:[a-z_0-9]+="(?:[^"\\]|\\.)*",?)+)\} ([-+0-9.e]+)$')
        found, types = {}, []
        for text in again.read_text().splitlines():
            if text.startswith("#"):
                types.append(text.split()[2])
                continue
            name, labels, value = line.match(text).groups()
            found[name, dict(re.findall(r'([a-z_0-9]+)="((?:[^"\\]|\\.)*)"', labels))["case"]] = float(value)
        self.assertEqual(len(types), 2 * len(set(types)), "HELP and TYPE once for each metric")
        compared = 0
        for row in self.rows:
            self.assertEqual(found["tutti_result", row["case"]], 1)
            if row["verdict"] != "ok" or not row["time_median"]:
                continue
            kind = "p2p" if row["collective"] == "sendrecv" else "collective"
            self.assertAlmostEqual(found[f"nccl_{kind}_exec_time_microseconds", row["case"]], float(row["time_median"]))
            compared += 1
        self.assertGreater(compared, 3)

    def test_github_action_benchmark_and_bencher(self):
        github, bencher = (json.loads(support.run("report", self.csv, "--format", form).out) for form in ["github", "bencher"])
        listed = {item["name"].split(" under ")[0]: item for item in github}
        metrics = {name.split(" under ")[0]: item for name, item in bencher.items()}
        right = [row for row in self.rows if row["verdict"] == "ok" and row["time_median"]]
        self.assertEqual(set(listed), {row["case"] for row in right})
        for row in right:
            time = float(row["time_median"])
            self.assertEqual(listed[row["case"]]["unit"], "us")
            self.assertAlmostEqual(listed[row["case"]]["value"], time)
            self.assertAlmostEqual(metrics[row["case"]]["latency"]["value"], 1000 * time, places=3)
            self.assertIn(", 1 launch", listed[row["case"]]["extra"])  # of this starter, whatever others there are

    def test_history_has_none(self):
        self.refused("report", "--history", self.folder, "--format", "bencher", names=["--history", "--format"])

    def test_formats_have_names(self):
        self.refused("report", self.csv, "--format", "bensher", names=["--format", "'bensher'", "'bencher'", "github"])

    def test_files_beside_a_format_are_named_on_stderr(self):
        path = self.folder / "beside.prom"
        result = support.run("report", self.csv, "--format", "github", "--prometheus", path)
        self.assertEqual((result.code, result.err), (0, f"{path}\n"), result)
        json.loads(result.out)


class Refused(Case):
    def header(self):
        """The first line of a CSV."""
        path = self.folder / "one.csv"
        support.run("run", "barrier", "--backends", "tutti", "--ranks", "2", "--budget", "50ms", "--csv", path, "--quiet")
        return path.read_text().splitlines()[0] + "\n"

    def test_inputs(self):
        page = self.folder / "page.html"
        for name, text, words in [("empty.json", "", "it is empty"), ("damaged.json", '{"rows": [', "it is damaged"),
                                  ("other.json", '{"a": 1}', "no schema_version"),
                                  ("newer.json", '{"schema_version": 99, "rows": []}', "schema_version is 99"),
                                  ("other.csv", "a,b\n1,2\n", "other.csv"),
                                  ("rowless.csv", self.header(), "it has no rows")]:
            path = self.folder / name
            path.write_text(text)
            with self.subTest(name):
                self.refused("report", path, "--html", page, names=[name, words])
        self.assertFalse(page.exists())

    def test_two_machines(self):
        first, second = self.folder / "first.csv", self.folder / "second.csv"
        support.run("run", "barrier", "--backends", "tutti", "--ranks", "2", "--budget", "50ms", "--csv", first, "--quiet")
        lines = list(csv.reader(first.read_text().splitlines()))
        lines[1][lines[0].index("machine")] = "another"
        second.write_text("\n".join(",".join(line) for line in lines) + "\n")
        self.refused("report", first, second, "--html", self.folder / "x.html", names=["first.csv", "second.csv", "another"])
        self.refused("compare", first, second, names=["first.csv", "second.csv", "another"])

    def test_usage(self):
        self.refused("report", "--html", "x.html", names=["RESULT"])
        self.refused("report", "a.json", "--history", "folder", "--html", "x.html", names=["--history", "'a.json'"])
        self.refused("report", self.folder / "none.json", names=["--html"])
        self.refused("report", self.folder / "none.json", "--html", self.folder / "x.html", names=["none.json"])
        self.refused("report", self.folder / "none.json", "--html", "/nowhere/x.html", names=["/nowhere/x.html"])
        self.refused("report", "--history", self.folder / "no folder", "--html", self.folder / "x.html", names=["no folder"])

    @support.at_night
    def test_a_python_that_stands_still_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            python = pathlib.Path(folder, "python")
            python.write_text("#!/bin/sh\nkill -STOP $$\n")
            python.chmod(0o755)
            with support.Run("run", "barrier", "--backends", "tutti", "--ranks", "2", "--budget", "30ms", "--html",
                             f"{folder}/page", environment={"TUTTI_PYTHON": str(python)}) as one:
                end = time.monotonic() + support.patience(30)
                while "has run for" not in one.texts() and time.monotonic() < end:
                    time.sleep(0.1)
                self.assertRegex(one.texts(), f"tutti: '{python}' .process [0-9]+. has run for 10 s, it is stopped .state T.: it "
                                              "is ended after 60 s")
                one.process.send_signal(signal.SIGINT)
                one.wait(20)
                self.assertEqual(one.left_behind(), [])

    def test_without_the_packages_the_result_stays(self):
        path, page = self.folder / "kept.json", self.folder / "kept.html"
        result = support.run("run", "barrier", "--backends", "tutti", "--ranks", "2", "--budget", "50ms", "--json", path,
                             "--html", page, "--quiet", environment={"TUTTI_PYTHON": "/bin/false"})
        self.assertEqual(result.code, 3)
        self.assertIn("apt-get install python3-matplotlib python3-jinja2", result.err)
        self.assertTrue(json.loads(path.read_text())["finished"])
        self.assertFalse(page.exists())


if __name__ == "__main__":
    unittest.main()
