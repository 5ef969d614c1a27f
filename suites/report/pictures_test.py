# SPDX-License-Identifier: Apache-2.0
"""What the pictures draw, by matplotlib's own objects: bands are the intervals, ticks are powers of two."""
import math
import unittest

import bundles

import pictures
import pictures_data
import style


def figure_of(bundle, kind):
    """The figure of the first picture of a kind, and the picture."""
    picture = next(one for one in pictures.all_pictures(bundle) if one.kind == kind)
    figure = picture.draw()
    figure.canvas.draw()
    return figure, picture


def drawn(figure, gid):
    """The objects of the figure with this id."""
    return figure.findobj(lambda artist: artist.get_gid() == gid)


def ends(band):
    """For each x of a band its lowest and highest y."""
    found = {}
    for path in band.get_paths():
        for x, y in path.vertices:
            low, high = found.get(round(x, 6), (y, y))
            found[round(x, 6)] = min(low, y), max(high, y)
    return found


class Time(unittest.TestCase):
    def setUp(self):
        self.bundle = bundles.usual()
        self.figure, self.picture = figure_of(self.bundle, "time")
        self.cells = [cell for cell in self.bundle["cells"] if cell["collective"] == "all_reduce"]

    def test_bands_are_the_intervals(self):
        bands = [ends(band) for band in drawn(self.figure, "band")]
        times = bands[:2]
        self.assertEqual(len(bands), 3, "of two systems, and of the ratio")
        for place, band in enumerate(times):
            self.assertEqual(len(band), len(self.cells))
            for (low, high), cell in zip((band[x] for x in sorted(band)), self.cells):
                self.assertAlmostEqual(low, cell["systems"][place]["low"])
                self.assertAlmostEqual(high, cell["systems"][place]["high"])
        for (low, high), cell in zip((bands[2][x] for x in sorted(bands[2])), self.cells):
            self.assertAlmostEqual(low, cell["ratios"][0]["low"])
            self.assertAlmostEqual(high, cell["ratios"][0]["high"])

    def test_ratios_are_drawn_where_they_are_and_there_is_a_line_at_one(self):
        (line,) = drawn(self.figure, "ratio")
        self.assertEqual([round(y, 9) for y in line.get_ydata()],
                         [round(cell["ratios"][0]["ratio"], 9) for cell in self.cells])
        flat = [one for one in line.axes.get_lines() if set(one.get_ydata()) == {1.0} and len(one.get_xdata()) == 2]
        self.assertEqual(len(flat), 1)

    def test_ticks_are_powers_of_two(self):
        for axes in self.figure.axes:
            ticks = [tick for tick in axes.get_xticks() if tick > 0]
            self.assertGreater(len(ticks), 1)
            for tick in ticks:
                self.assertEqual(math.log2(tick) % 1, 0, tick)

    def test_the_limit_is_drawn(self):
        (line,) = drawn(self.figure, "limit")
        self.assertEqual(set(line.get_ydata()), {0.5})

    def test_axes_have_units(self):
        labels = {axes.get_ylabel() for axes in self.figure.axes}
        self.assertIn("time (us)", labels)
        self.assertTrue(any("ratio" in label or "/" in label for label in labels - {"time (us)"}), labels)

    def test_a_file_has_the_same_bytes_each_time(self):
        with bundles.tempfile.TemporaryDirectory() as folder:
            for suffix in ("png", "svg"):
                first = self.picture.save(folder, suffix).read_bytes()
                self.assertEqual(self.picture.save(folder, suffix).read_bytes(), first)


class States(unittest.TestCase):
    def test_each_state_has_a_look_and_a_word(self):
        figure, picture = figure_of(bundles.of_all_states(), "time")
        looks = {}
        for state in ("wrong", "skipped", "unchecked", "noisy", "near floor"):
            points = drawn(figure, state)
            self.assertEqual(len(points), 1, state)
            looks[state] = points[0].get_marker(), points[0].get_markerfacecolor() == "none"
            self.assertIn(state, picture.alt.lower())
        (ok, *_) = drawn(figure, "ok")
        looks["ok"] = ok.get_marker(), False
        self.assertEqual(len({looks[state] for state in ("wrong", "skipped", "noisy", "near floor", "ok")}), 5, looks)

    def test_a_wrong_time_has_no_interval(self):
        figure, _ = figure_of(bundles.of_all_states(), "time")
        band = ends(drawn(figure, "band")[0])
        self.assertNotIn(8.0, [x for x, (low, _) in band.items() if math.isfinite(low)])

    def test_none_ok_still_gives_pictures(self):
        bundle = bundles.bundle_of({"all_reduce": {8: [bundles.system("tutti", None, verdict="error", low=None, high=None,
                                                                      reason="crashed")]}})
        found = pictures.all_pictures(bundle)
        self.assertIn("time", {picture.kind for picture in found})
        self.assertTrue(all("error" in picture.alt.lower() for picture in found if picture.kind == "time"))


class Judged(unittest.TestCase):
    def test_cells_of_several_systems_have_names_of_their_own(self):
        bundle = bundles.empty()
        cells = ["all_reduce/tutti.ring/8B", "all_reduce/openmpi.none/8B under openmpi", "all_reduce/8B"]
        bundle["judged"] = [{"source": 0, "cell": cell, "collective": "all_reduce", "bytes": 8, "verdict": verdict, "ratio": 1.1,
                             "low": 1.0, "high": 1.2, "floor": 0.1, "reason": "", "this_us": 1, "other_us": 1}
                            for cell, verdict in zip(cells, ("same", "slower", "undecided"))]
        figure, picture = figure_of(bundle, "judged")
        names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
        self.assertEqual(names, ["all_reduce 8 B tutti", "all_reduce 8 B openmpi (openmpi)", "all_reduce 8 B"])
        segments = [list(segment) for line in drawn(figure, "interval") for segment in line.get_segments()]
        self.assertEqual([(low[0], high[0]) for low, high in segments], [(1.0, 1.2)] * 3)
        self.assertIn("Slower: 1", picture.alt)


class Colours(unittest.TestCase):
    def test_a_system_has_one_colour_in_all_of_its_algorithms(self):
        self.assertEqual(style.colour_of("tutti.ring"), style.colour_of("tutti"))

    def test_known_systems_differ(self):
        known = [style.colour_of(name) for name in ("tutti", "openmpi", "mpich", "gloo", "nccl", "limit")]
        self.assertEqual(len(set(known)), len(known))


class Ticks(unittest.TestCase):
    def test_of_any_sizes(self):
        for sizes in ([1], [3], [0], [], [5, 6, 7], [8, 1 << 30], [1000, 1_000_000]):
            for tick in style.power_ticks(sizes):
                self.assertEqual(math.log2(tick) % 1, 0)

    def test_a_barrier_has_no_size_axis(self):
        bundle = bundles.bundle_of({"barrier": {0: [bundles.system("tutti", 0.3), bundles.system("openmpi", 0.5)]}})
        self.assertFalse(pictures_data.all_series(bundle)[0].has_sizes)
        self.assertIn("time", {picture.kind for picture in pictures.all_pictures(bundle)})


if __name__ == "__main__":
    unittest.main()
