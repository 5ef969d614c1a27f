# SPDX-License-Identifier: Apache-2.0
"""scripts/figures: the committed pictures and the figures of results/performance.md are those of the recordings."""
import importlib.machinery
import importlib.util
import os
import pathlib
import subprocess
import sys
import unittest

import bundles

FIGURES = bundles.SOURCE / "scripts/figures"
loader = importlib.machinery.SourceFileLoader("figures", str(FIGURES))
figures = importlib.util.module_from_spec(importlib.util.spec_from_loader("figures", loader))
sys.modules["figures"] = figures
loader.exec_module(figures)


def call(*arguments):
    return subprocess.run([sys.executable, "-B", FIGURES, *arguments], capture_output=True, text=True, check=False, timeout=120)


class Program(unittest.TestCase):
    def test_nothing_differs(self):
        done = call("--check", "--tutti", os.environ["TUTTI_PROGRAM"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("9 pictures and the page's figures are those of the recordings", done.stdout)

    def test_help_and_mistakes(self):
        self.assertIn("--check", call("--help").stdout)
        self.assertEqual(call("--chek").returncode, 2)
        done = call("--tutti", "/nowhere/tutti")
        self.assertEqual(done.returncode, 3)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn("'/nowhere/tutti' is not there", done.stderr)


class Page(unittest.TestCase):
    """One recording made up: a picture with two comparisons, of which one is slower."""

    def setUp(self):
        self.bundle = bundles.bundle_of({"reduce": {8: [bundles.system("tutti", 3.0), bundles.system("openmpi", 2.0)],
                                                    64: [bundles.system("tutti", 1.0), bundles.system("openmpi", 2.0)]}})
        self.bundles = {name: self.bundle for name in ("one", "elsewhere")}
        self.saved = figures.PICTURES, figures.FACTS, figures.elsewhere_facts
        figures.PICTURES = (("one-overview", "one", figures.OVERVIEW),)
        figures.FACTS = {"one-overview": lambda bundle: [f"slower in {len(figures.ratios_to(bundle)) - 1} of 2 cells"]}
        figures.elsewhere_facts = lambda bundle: ["8 cells"]

    def tearDown(self):
        figures.PICTURES, figures.FACTS, figures.elsewhere_facts = self.saved

    def problems(self, sentence, elsewhere="8 cells."):
        page = f"# 5\n<!-- elsewhere -->\n{elsewhere}\n## Two ranks 3\n![a](2026-11-performance/one-overview.svg)\n" \
               f"Command: `tutti run --ranks 2`\nMachine: 2 cores\n\n{sentence}\n"
        return figures.wrong_figures(page, self.bundles)

    def test_the_figures_of_the_recording(self):
        self.assertEqual(self.problems("tutti is slower in\n1 of 2 cells."), [])

    def test_a_figure_that_changed(self):
        self.assertEqual(self.problems("tutti is slower in 2 of 2 cells."),
                         ["below 'one-overview' the page does not say: slower in 1 of 2 cells",
                          "below 'one-overview' the page says what no recording does: 2",
                          "below 'one-overview' the page says what no recording does: 2"])

    def test_a_figure_that_no_recording_has(self):
        self.assertEqual(self.problems("tutti is slower in 1 of 2 cells, by 50 %."),
                         ["below 'one-overview' the page says what no recording does: 50"])
        self.assertEqual(self.problems("slower in 1 of 2 cells", "8 cells of 9."),
                         ["below 'elsewhere' the page says what no recording does: 9."])

    def test_a_picture_that_is_not_shown(self):
        self.assertEqual(figures.wrong_figures("<!-- elsewhere -->\n8 cells", self.bundles),
                         ["the page does not show 'one-overview'"])


class Facts(unittest.TestCase):
    def test_of_an_overview(self):
        bundle = bundles.bundle_of({"reduce": {size: [bundles.system("tutti", time, marks=marks),
                                                      bundles.system("openmpi", 2.0)]
                                               for size, time, marks in ((8, 3.0, ["near floor"]), (64, 2.0, ["noisy"]),
                                                                         (4 << 20, 0.5, ["noisy"]),
                                                                         (8 << 20, 0.5, []))}})
        bundle["rows"][0]["disturbed"] = "load"
        facts = figures.overview_facts(bundle)
        for fact in ("slower in 1 of 4 comparisons", "undecided in 1", "reduce at 64 B against Open MPI, 1.00 (0.95 to 1.05)",
                     "0.55 of Open MPI's time", "2 of 8 times are noisy", "1 of 4 from 2 MiB on", "1 lie near the floor",
                     "1 of 8 rows were disturbed"):
            self.assertIn(fact, facts)

    def test_of_a_heat_map(self):
        bundle = bundles.bundle_of({"gather": {8 << place: [bundles.system("tutti", time), bundles.system("mpich", 2.0)]
                                               for place, time in enumerate((0.5, 1.5, 1.0, 1.25, 0.25))}})
        self.assertEqual(figures.heat_facts("mpich")(bundle),
                         ["gather at 16 B (0.75)", "gather at 64 B (0.62)", "gather at 32 B (0.50)", "gather at 8 B (0.25)",
                          "gather at 128 B (0.12)", "In 2 of 5 cells"])


if __name__ == "__main__":
    unittest.main()
