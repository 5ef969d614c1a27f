# SPDX-License-Identifier: Apache-2.0
"""The page: what it says, in which order, and that no text of a result does anything in it."""
import html.parser
import json
import pathlib
import re
import tempfile
import unittest

import bundles


class Reader(html.parser.HTMLParser):
    """Tags, texts and the table's cells of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts, self.headings, self.scripts, self.rows, self.labels = [], [], [], [], [], []
        self._open = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag == "td":
            self.rows[-1].append("")
        if dict(attributes).get("role") == "img":
            self.labels.append(dict(attributes).get("aria-label"))

    def handle_endtag(self, tag):
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data):
        if "script" in self._open:
            self.scripts.append(data)
            return
        if "style" not in self._open:
            self.texts.append(data)
        if "h2" in self._open:
            self.headings.append(data)
        if "td" in self._open:
            self.rows[-1][-1] += data

    @property
    def text(self):
        return " ".join(self.texts)


class Page(unittest.TestCase):
    def test_what_is_on_it_in_order(self):
        bundle = bundles.usual()
        bundle["judged"] = [{"source": 0, "cell": "all_reduce/8B", "collective": "all_reduce", "bytes": 8, "verdict": "same",
                             "ratio": 1.0, "low": 0.99, "high": 1.01, "floor": 0.1, "reason": "", "this_us": 1, "other_us": 1}]
        bundle["samples"] = [{"source": 0, "case": "all_reduce/tutti.ring/8B", "cell": "all_reduce/8B", "backend": "tutti",
                              "algorithm": "ring", "launch": 1, "taken": 4, "time": [1.0, 1.1, 1.2, 9.0],
                              "mark": ["", "", "late", "state"], "skew": [0.1] * 4, "last": [0, 1, 0, 1]}]
        page = Reader(bundles.page_of(bundle))
        order = ["Judged cells", "Overview", "Time and ratio", "Bus bandwidth", "All cells at a glance", "Distribution of samples",
                 "Arrival skew", "All rows", "What disturbed the run", "Machine, versions, command and seed"]
        self.assertEqual([heading for heading in page.headings if heading in order], order)
        self.assertIn("all 12 results are right", page.text)

    def test_several_hosts_are_counted(self):
        bundle = bundles.usual()
        for hosts, words in (("", " of host (a processor)"), ("host:1,b:1", " of host and 1 other host (a processor)"),
                             ("host:1,b:1,c:1", " of host and 2 other hosts (a processor)")):
            for cell in bundle["cells"]:
                cell["hosts"] = hosts
            self.assertIn(words, Reader(bundles.page_of(bundle)).text)

    def test_a_comparison_comes_first_and_does_not_sum_up_both_files(self):
        old = bundles.bundle_of({"all_reduce": {size: [bundles.system("tutti", 1.0), bundles.system("openmpi", 4.0)]
                                                for size in (8, 64)}})
        bundle = bundles.bundle_of({"all_reduce": {size: [bundles.system("tutti", 2.0, verdict="wrong"),
                                                          bundles.system("openmpi", 4.0)] for size in (8, 64)}})
        sources = [{"file": "c.json", "kind": "compare", "this": "/somewhere/new.csv", "other": "/somewhere/old.csv"}]
        for number, (side, file) in enumerate(((old, "old.csv"), (bundle, "new.csv")), 1):
            sources.append(dict(side["sources"][0], file=file))
            for part in ("cells", "rows"):
                for item in side[part]:
                    item["source"] = number
        bundle.update(sources=sources, cells=old["cells"] + bundle["cells"])
        bundle["judged"] = [{"source": 0, "cell": f"all_reduce/{size}B", "collective": "all_reduce", "bytes": size,
                             "verdict": verdict, "ratio": ratio, "low": ratio - 0.1, "high": ratio + 0.1, "floor": 0.1,
                             "reason": "", "this_us": 2, "other_us": 1}
                            for size, verdict, ratio in ((8, "slower", 2.0), (16, "slower", 3.0), (64, "same", 1.0))]
        page = Reader(bundles.page_of(bundle))
        self.assertEqual(page.headings.index("Judged cells"), page.headings.index("Time and ratio") - 1)
        self.assertIn("new.csv against old.csv", page.text)
        self.assertIn("of 3 judged cells 2 slower (worst: all_reduce 16 B, 3.00 and all_reduce 8 B, 2.00) and 1 same", page.text)
        self.assertIn("in old.csv all 4 results are right; in new.csv 2 of 4 results are wrong", page.text)
        self.assertNotIn("geometric mean", page.text)

    def test_judged_cells_stand_worst_first_with_both_times(self):
        bundle = bundles.empty()
        bundle["sources"] = [{"file": "g.json", "kind": "gate", "this": "this build", "other": "../base/build"}]
        bundle["judged"] = [{"source": 0, "cell": f"all_reduce/{size}B", "collective": "all_reduce", "bytes": size, "verdict": verdict,
                             "ratio": ratio, "low": None, "high": None, "floor": 0.1, "reason": "", "this_us": 2 * size, "other_us": size}
                            for size, verdict, ratio in ((1, "same", 1.0), (2, "undecided", 1.2), (3, "slower", 1.5), (4, "wrong", None),
                                                         (5, "slower", 3.0), (6, "missing", None), (7, "faster", 0.5))]
        page = Reader(bundles.page_of(bundle))
        rows = [row for row in page.rows if row and row[0] in ("same", "undecided", "slower", "wrong", "missing", "faster")]
        self.assertEqual([(row[0], row[7]) for row in rows],
                         [("wrong", "all_reduce/4B"), ("slower", "all_reduce/5B"), ("slower", "all_reduce/3B"), ("missing", "all_reduce/6B"),
                          ("undecided", "all_reduce/2B"), ("faster", "all_reduce/7B"), ("same", "all_reduce/1B")])
        self.assertEqual(rows[1][1:4], ["10.00", "5.000", "3.00"])
        self.assertIn("It need not be the quotient of both times", page.text)

    def test_the_verdict_names_the_worst_cells(self):
        bundle = bundles.bundle_of({"all_reduce": {size: [bundles.system("tutti", time), bundles.system("openmpi", 4.0)]
                                                   for size, time in ((8, 1.0), (64, 5.0), (512, 8.0), (4096, 6.0))}})
        self.assertIn("slower in 3 (worst: all_reduce at 512 B, 2.00 and all_reduce at 4 KiB, 1.50)",
                      Reader(bundles.page_of(bundle)).text)

    def test_the_verdict_says_who_is_faster_by_how_much(self):
        bundle = bundles.bundle_of({"all_reduce": {size: [bundles.system("tutti", 1.0), bundles.system("openmpi", 4.0)]
                                                   for size in (8, 64)}})
        self.assertIn("tutti takes 0.25 of openmpi's time", Reader(bundles.page_of(bundle)).text)

    def test_a_time_that_is_not_known_to_within_itself_is_in_no_mean(self):
        bundle = bundles.bundle_of({"all_reduce": {size: [bundles.system("tutti", 1.0), bundles.system("openmpi", 4.0)]
                                                   for size in (8, 64)}})
        bundle["cells"][0]["systems"][0].update(time=100.0, low=1.0, high=900.0)
        bundle["cells"][0]["ratios"][0].update(ratio=25.0)
        self.assertIn("tutti takes 0.25 of openmpi's time in the geometric mean (of 1 cell ", Reader(bundles.page_of(bundle)).text)

    def test_every_picture_has_a_text_alternative(self):
        page = Reader(bundles.page_of(bundles.usual()))
        self.assertGreater(len(page.labels), 4)
        self.assertTrue(all(label and len(label) > 40 for label in page.labels), page.labels)

    def test_it_names_no_other_file(self):
        page = Reader(bundles.page_of(bundles.usual()))
        for tag, attributes in page.tags:
            for name in ("src", "href", "xlink:href", "action", "data"):
                value = attributes.get(name) or "#"
                self.assertTrue(value.startswith(("#", "data:")), (tag, name, value))

    def test_hostile_texts_appear_and_do_nothing(self):
        bundle = bundles.usual()
        text = bundles.HOSTILE
        bundle["sources"][0].update(file=text, command=text, machine={"hostname": text, "cpu_model": text}, remarks=[text])
        bundle["omitted"] = [text]
        for row in bundle["rows"]:
            row.update(reason=text, algorithm=text, verdict="skipped")
        for cell in bundle["cells"]:
            cell.update(collective=text, series=text)
            cell["systems"][0].update(reason=text, verdict="skipped", curve=text)
        source = bundles.page_of(bundle)
        page = Reader(source)
        self.assertGreaterEqual(page.text.count(text), 4)
        self.assertEqual(len(page.scripts), 1)
        self.assertNotIn("broken", page.scripts[0])
        self.assertEqual(len(re.findall("<script", source)), 1)

    def columns(self, bundle):
        return re.findall(r'<th scope="col" aria-sort="none"[^>]*><button type="button">([^<]*)</button>', bundles.page_of(bundle))

    def test_verdict_and_marks_follow_what_names_the_row(self):
        self.assertEqual(self.columns(bundles.of_all_states())[:5], ["collective", "system", "size", "verdict", "marks"])

    def test_starter_and_file_are_columns_where_rows_differ_in_them(self):
        bundle = bundles.usual()
        self.assertFalse({"starter", "file"} & set(self.columns(bundle)))
        bundle["rows"][0]["starter"] = "openmpi"
        self.assertIn("starter", self.columns(bundle))
        self.assertNotIn("file", self.columns(bundle))
        bundle["sources"].append({**bundle["sources"][0], "file": "folder/other.json"})
        bundle["rows"][1]["source"] = 1
        columns = self.columns(bundle)
        rows = [row for row in Reader(bundles.page_of(bundle)).rows if row]
        self.assertEqual([row[columns.index("starter")] for row in rows[:3]], ["openmpi", "tutti", "tutti"])
        self.assertEqual([row[columns.index("file")] for row in rows[:3]], ["made.json", "other.json", "made.json"])

    def test_digits_are_those_that_the_interval_supports(self):
        times = [(12.3456789, 12.34, 12.35, ["12.35", "12.34", "12.35"]), (12.3456789, 10.1, 14.6, ["12.3", "10.1", "14.6"]),
                 (123.456789, 60.0, 190.0, ["123", "60.0", "190"]), (12.3456789, None, None, ["12", "", ""])]
        bundle = bundles.bundle_of({"reduce": {8 << place: [bundles.system("tutti", time, low=low, high=high)]
                                               for place, (time, low, high, _) in enumerate(times)}})
        columns = self.columns(bundle)
        rows = [row for row in Reader(bundles.page_of(bundle)).rows if row]
        for row, (*_, texts) in zip(rows, times):
            self.assertEqual([row[columns.index(name)] for name in ("time (us)", "from (us)", "to (us)")], texts)

    def test_states_can_be_told_apart_in_the_table(self):
        source = bundles.page_of(bundles.of_all_states())
        for state in ("wrong", "skipped", "unchecked", "noisy", "floor", "ok"):
            self.assertIn(f'<tr class="{state}"', source)

    def test_none_ok(self):
        bundle = bundles.bundle_of({"all_reduce": {8: [bundles.system("tutti", None, verdict="error", low=None, high=None)]}})
        page = Reader(bundles.page_of(bundle))
        self.assertIn("1 of 1 result ended with an error; 0 are right", page.text)

    def test_nothing_at_all(self):
        self.assertIn("No cell was measured", Reader(bundles.page_of(bundles.empty())).text)

    def test_checked_and_not_timed(self):
        nothing = {"low": None, "high": None, "arrival_skew": None, "launches": 1}
        for count, words in ((3, "3 cases were checked, all are right; nothing was timed."),
                             (1, "1 case was checked, it is right; nothing was timed.")):
            bundle = bundles.bundle_of({"all_reduce": {8 << place: [bundles.system("tutti", None, **nothing)]
                                                       for place in range(count)}})
            page = Reader(bundles.page_of(bundle))
            self.assertIn(words, page.text)
            self.assertEqual(page.labels, [], "no picture of empty axes")

    def test_samples_alone(self):
        for count, words in ((1, "Samples of 1 cell are shown."), (3, "Samples of 3 cells are shown."),
                             (6, "Samples of 6 cells, of which 4 are shown.")):
            bundle = bundles.empty()
            bundle["samples"] = [{"source": 0, "cell": f"all_reduce/{place}B", "backend": "tutti", "algorithm": "ring",
                                  "launch": 1, "taken": 2, "time": [1.0, 1.1], "mark": ["", ""]} for place in range(count)]
            page = Reader(bundles.page_of(bundle))
            self.assertIn(words, page.text)
            self.assertNotIn("No cell was measured", page.text)

    def test_one_of_a_kind_is_singular(self):
        bundle = bundles.bundle_of({"all_reduce": {8: [bundles.system("tutti", 1.0, marks=["noisy"])]}})
        bundle["cells"][0]["ranks"] = 1
        bundle["samples"] = [{"source": 0, "cell": "all_reduce/8B", "backend": "tutti", "algorithm": "ring", "launch": 1,
                              "taken": 3, "time": [1.0, 1.1, 9.0], "mark": ["", "", "late"]}]
        page = Reader(bundles.page_of(bundle))
        everything = " ".join([page.text, *page.labels])
        for words in ("1 launch:", "1 sample in which a rank arrived late is marked", "on 1 rank of", "1 of 1 time is noisy"):
            self.assertIn(words, everything)
        self.assertEqual(re.findall(r"\b1 (?:launches|samples|results|times|ranks|cells|sizes|steps|lines)\b", everything), [])

    def test_ranks_and_the_straggler_among_them(self):
        bundle = bundles.usual()
        self.assertNotIn("Ranks", Reader(bundles.page_of(bundle)).headings)
        healthy = {"rank": 0, "host": "", "samples": 1000, "came_last": 0, "waited_us": 0.0, "waited_share": 0.0,
                   "ended_samples": 0, "ended_last": 0, "own_ratio": None, "comes_late": False, "ends_late": False}
        late = {**healthy, "rank": 1, "host": bundles.HOSTILE, "came_last": 612, "waited_share": 0.041, "ended_samples": 500,
                "ended_last": 440, "own_ratio": 1.14, "comes_late": True,
                "waited_median_us": 52.1, "waited_p95_us": 318.444}
        bundle["sources"][0]["ranks"] = {"P2": [late, healthy], "P3": "damaged", "P4": [7]}
        page = Reader(bundles.page_of(bundle))
        self.assertIn("Ranks", page.headings)
        rows = [row for row in page.rows if "P2" in row]
        self.assertEqual(rows, [["made.json", "P2", "1", bundles.HOSTILE, "61.2 %", "4.1 %", "52.10", "318.44", "88.0 %", "+14.0 %", "straggler"],
                                ["made.json", "P2", "0", "", "0.0 %", "0.0 %", "", "", "", "", ""]])

    def test_what_a_run_left_out(self):
        bundle = bundles.usual()
        bundle["sources"][0]["left_out"] = [{"cells": 3, "reason": "gloo has no scan"}]
        self.assertIn("3 x gloo has no scan", Reader(bundles.page_of(bundle)).text)

    def test_more_rows_than_it_shows(self):
        bundle = bundles.usual()
        bundle["rows"] = [dict(bundle["rows"][0], bytes=number) for number in range(5003)]
        page = bundles.page_of(bundle)
        self.assertIn("the first 5000 of 5003 rows are shown", page)
        self.assertLess(len(page.encode()), 15_000_000)


class Program(unittest.TestCase):
    def test_a_damaged_bundle(self):
        for bundle, words in [({}, "version 1"), ({**bundles.empty(), "rows": 3}, "no list 'rows'"),
                              ({**bundles.empty(), "version": 9}, "version 1")]:
            done = bundles.report(bundle, "--html", "/dev/null")
            self.assertEqual(done.returncode, 2)
            self.assertIn(words, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)

    def test_a_file_that_cannot_be_written(self):
        done = bundles.report(bundles.usual(), "--html", "/nowhere/page.html")
        self.assertEqual(done.returncode, 2)
        self.assertIn("/nowhere/page.html", done.stderr)

    def test_pictures_as_files(self):
        with tempfile.TemporaryDirectory() as folder:
            done = bundles.report(bundles.usual(), "--png", f"{folder}/png", "--svg", f"{folder}/svg")
            self.assertEqual(done.returncode, 0, done.stderr)
            pngs = sorted(path.stem for path in pathlib.Path(folder, "png").iterdir())
            self.assertEqual(pngs, sorted(path.stem for path in pathlib.Path(folder, "svg").iterdir()))
            self.assertGreater(len(pngs), 4)
            for path in pathlib.Path(folder, "png").iterdir():
                self.assertTrue(path.read_bytes().startswith(b"\x89PNG"))


if __name__ == "__main__":
    unittest.main()
