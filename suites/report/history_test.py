# SPDX-License-Identifier: Apache-2.0
"""Change points on generated series with the recorded noise between launches, and the history's page."""
import csv
import math
import pathlib
import re
import unittest

import numpy

import bundles

import change_points
import history
import sentences
from page_test import Reader

NOISE = pathlib.Path(__file__).with_name("launch_residuals.csv")
SERIES, LENGTH, STEP_AT = 200, 30, 20


def recorded():
    """The recorded log residuals, and their standard deviation."""
    with NOISE.open() as file:
        values = numpy.array([float(row["log_residual"]) for row in csv.DictReader(file)])
    return values, float(numpy.std(values))


def generated(seed, launches=6, length=LENGTH):
    """Series without a step: each result is the median of launches whose noise is drawn from what was recorded."""
    values, _ = recorded()
    drawn = numpy.random.Generator(numpy.random.PCG64(seed)).choice(values, size=(SERIES, length, launches))
    return numpy.median(drawn, axis=2)


def share_found(series):
    """The share in which a step of three standard deviations is found within six results."""
    found = 0
    for values in series:
        moved = values[: STEP_AT + change_points.RESULTS_AFTER].copy()
        moved[STEP_AT:] += 3 * numpy.std(series)
        found += any(step.found_at >= STEP_AT for step in change_points.steps(list(moved)))
    return found / len(series)


def history_of(times, verdicts=()):
    """A bundle of one line."""
    bundle = bundles.empty()
    points = [{"result": place, "time": time, "low": time * 0.99, "high": time * 1.01, "verdict": "ok"}
              for place, time in enumerate(times)]
    for place, verdict in verdicts:
        points[place]["verdict"] = verdict
    bundle["history"] = {
        "results": [{"file": f"{place}.json", "started": f"day {place}", "commit": None} for place in range(len(times))],
        "series": [{"cell": "all_reduce/64B", "curve": "tutti", "starter": "spawn", "collective": "all_reduce", "bytes": 64,
                    "unit": "us", "points": points}]}
    return bundle


class Facts(unittest.TestCase):
    def test_a_step_names_the_commits_beside_it_and_what_disturbed_it(self):
        bundle = history_of([1.0] * 12 + [2.0] * 12)
        for place, result in enumerate(bundle["history"]["results"]):
            result["commit"] = "aaa111" if place < 12 else "bbb222"
        bundle["history"]["series"][0]["points"][12]["disturbed"] = ["load", "steal"]
        row, = history.table(bundle)
        self.assertIn("slower from day 12 on (commit aaa111 to bbb222; disturbed: load, steal)", row["steps"])

    def test_too_few_results_are_not_good(self):
        self.assertEqual([sentences.mood(history_of([1.0] * length)) for length in (2, 30)], ["doubtful", "good"])

    def test_disturbed_rows_of_all_results_are_counted(self):
        bundle = history_of([1.0] * 3)
        self.assertIn("Nothing was noticed", Reader(bundles.page_of(bundle)).text)
        for place, rows in ((0, 4), (2, 9)):
            bundle["history"]["results"][place].update(rows=10, disturbed={"load": rows})
        self.assertIn("13 rows in 2 of 3 results disturbed by load, most in that of day 2", Reader(bundles.page_of(bundle)).text)


class Generated(unittest.TestCase):
    def test_a_step_of_three_deviations_is_found_within_six_results(self):
        normal = numpy.random.Generator(numpy.random.PCG64(1)).normal(size=(SERIES, LENGTH))
        # The aim is 0.9: results/2026-11-history tells why it is missed.
        self.assertGreaterEqual(share_found(normal), 0.8)
        self.assertGreaterEqual(share_found(generated(1)), 0.8)

    def test_at_most_one_false_mark_in_200_series_without_a_step(self):
        for launches in (1, 6):
            with self.subTest(launches=launches):
                marked = [bool(change_points.steps(list(values))) for values in generated(2, launches)]
                self.assertLessEqual(sum(marked), 1)

    def test_a_mark_stays_when_results_are_added(self):
        values = generated(4)[0].copy()
        values[STEP_AT:] += 1.0
        every = change_points.steps(list(values))
        self.assertTrue(every)
        earlier = change_points.steps(list(values[: every[0].found_at + 1]))
        self.assertEqual(earlier, every[:1])


class Tables(unittest.TestCase):
    def test_exact_tail_equals_the_count_of_all_orders(self):
        # Of two and two values U is 0..4 in 1, 1, 2, 1, 1 of six orders.
        self.assertTrue(numpy.allclose(change_points.exact_tail(2, 2), numpy.array([1, 2, 4, 5, 6]) / 6))

    def test_equal_values_have_no_step(self):
        self.assertEqual(change_points.steps([0.0] * 40), [])

    def test_too_few_results_have_no_smallest_step(self):
        self.assertIsNone(change_points.smallest_step([0.0, 0.1]))

    def test_smallest_step_grows_with_the_noise(self):
        quiet, loud = (change_points.smallest_step(list(factor * generated(5)[0])) for factor in (1, 4))
        self.assertLess(quiet, loud)


class Page(unittest.TestCase):
    def test_a_step_is_told_in_words_table_and_picture(self):
        noise = generated(6)[0]
        times = [10 * math.exp(value / 4) * (1.5 if place >= STEP_AT else 1) for place, value in enumerate(noise)]
        bundle = history_of(times, [(3, "wrong")])
        (finding,) = history.findings(bundle)
        self.assertEqual(finding.first, STEP_AT)
        self.assertAlmostEqual(finding.ratio, 1.5, delta=0.1)
        source = bundles.page_of(bundle)
        page = Reader(source)
        self.assertRegex(page.text, r"slower from day 20 on")
        self.assertIn("1 point", page.text)
        self.assertEqual(len(re.findall('<div class="picture"', source)), 1)
        self.assertRegex(page.text, r"smallest step")
        picture, = history.all_pictures(bundle)
        figure = picture.draw()
        steps = figure.findobj(lambda artist: artist.get_gid() == "step")
        self.assertEqual([list(step.get_xdata()) for step in steps], [[STEP_AT + 0.5] * 2])
        intervals = figure.findobj(lambda artist: artist.get_gid() == "interval")
        drawn = [segment for line in intervals for segment in line.get_segments()]
        self.assertEqual(len(drawn), LENGTH - 1)
        self.assertAlmostEqual(drawn[0][0][1], times[0] * 0.99)
        self.assertAlmostEqual(drawn[0][1][1], times[0] * 1.01)

    def test_one_result_is_singular(self):
        bundle = history_of([5.0])
        words = history.verdict_sentence(bundle) + history.alt_of(bundle, history.lines_of(bundle))
        self.assertIn("1 result, 1 line of a cell", words)
        self.assertIn("over 1 result, oldest", words)

    def test_what_another_machine_measured_is_counted(self):
        bundle = history_of([5.0])
        bundle["omitted"] = ["'b.csv' is left out: it is of the machine 'm1', the newest of 'm2'"]
        self.assertIn("1 result of another machine is left out", history.verdict_sentence(bundle))

    def test_lines_of_several_starters_are_told_apart(self):
        bundle = history_of([10.0, 10.1, 9.9])
        (series,) = bundle["history"]["series"]
        bundle["history"]["series"].append({**series, "starter": "mpich"})
        self.assertEqual([row["curve"] for row in history.table(bundle)],
                         ["tutti started by tutti", "tutti started by mpich"])

    def test_without_a_step_it_says_so(self):
        page = Reader(bundles.page_of(history_of([10.0, 10.1, 9.9])))
        self.assertIn("no step was found", page.text)
        self.assertIn("too few results", page.text)


if __name__ == "__main__":
    unittest.main()
