# SPDX-License-Identifier: Apache-2.0
"""What the pictures draw, by matplotlib's own objects: bands are the intervals, ticks are powers of two."""
import itertools
import math
import re
import unittest

import bundles

import matplotlib.text
import pictures
import pictures_cells
import pictures_data
import pictures_overview
import style

TEN = ("broadcast", "reduce", "all_reduce", "gather", "all_gather", "scatter", "reduce_scatter", "all_to_all", "barrier",
       "sendrecv")


def figure_of(bundle, kind):
    """The figure of the first picture of a kind, and the picture."""
    picture = pictures.recipes(bundle, kind)[0]()
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
        for state in ("wrong", "skipped", "unchecked", "error", "noisy", "near floor"):
            points = drawn(figure, state)
            self.assertEqual(len(points), 1, state)
            looks[state] = points[0].get_marker(), points[0].get_markerfacecolor() == "none"
            self.assertIn(state, picture.alt.lower())
        (ok, *_) = drawn(figure, "ok")
        looks["ok"] = ok.get_marker(), False
        self.assertEqual(len(set(looks.values())), 7, looks)
        legend = figure.legends[0]
        words = [text.get_text() for text in legend.get_texts()]
        handles = dict(zip(words, legend.legendHandles if hasattr(legend, "legendHandles") else legend.legend_handles))
        for state, look in looks.items():
            self.assertEqual(words.count(state), 1, words)
            handle = handles[state]
            self.assertEqual((handle.get_marker(), handle.get_markerfacecolor() == "none"), look, state)

    def test_a_time_that_was_not_checked_is_drawn(self):
        figure, _ = figure_of(bundles.of_all_states(), "time")
        (point,) = drawn(figure, "unchecked")
        self.assertEqual((list(point.get_xdata()), list(point.get_ydata())), ([512], [5.0 + 0.512]))
        self.assertEqual(point.get_transform(), point.axes.transData)

    def test_points_at_one_place_stand_above_each_other(self):
        nothing = {"time": None, "low": None, "high": None}
        bundle = bundles.bundle_of({"all_reduce": {8: [bundles.system("tutti", None, verdict="error", **nothing),
                                                       bundles.system("openmpi", None, verdict="skipped", **nothing),
                                                       bundles.system("gloo", None, verdict="skipped", **nothing)]}})
        figure, _ = figure_of(bundle, "time")
        heights = [line.get_ydata()[0] for state in ("error", "skipped") for line in drawn(figure, state)]
        self.assertEqual(len(heights), 3)
        for one, other in itertools.combinations(heights, 2):
            self.assertGreater(abs(one - other), 0.04)

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


def labels_that_overlap(figure):
    """Pairs of texts of the figure that lie on each other."""
    texts = dict.fromkeys(figure.findobj(matplotlib.text.Text))
    shown = [(text.get_text(), text.get_window_extent()) for text in texts
             if text.get_text().strip() and text.get_visible() and not is_hidden(text)]
    return [(one, other) for (one, box), (other, its) in itertools.combinations(shown, 2) if box.overlaps(its)]


def is_hidden(text):
    """Says whether the text is a tick's name that is not shown, or of a panel that is not."""
    axes = text.axes
    if axes is None:
        return False
    ticks = [(tick.label1, tick) for axis in (axes.xaxis, axes.yaxis) for tick in axis.get_major_ticks()]
    owner = next((tick for label, tick in ticks if label is text), None)
    if owner is not None:
        low, high = sorted(owner.axes.get_xlim() if owner in axes.xaxis.get_major_ticks() else axes.get_ylim())
        return not low <= owner.get_loc() <= high
    return not axes.get_visible()


def of_two_starters(names=("all_reduce", "broadcast"), sizes=(8, 1024, 65536)):
    """tutti beside Gloo in its own launches, and beside Open MPI in those of its mpirun; a barrier has no size."""
    cells = {name: (0,) if name == "barrier" else sizes for name in names}
    own = bundles.bundle_of({name: {size: [bundles.system("tutti", 1.0), bundles.system("gloo", 100.0)] for size in its}
                             for name, its in cells.items()})
    other = bundles.bundle_of({name: {size: [bundles.system("tutti", 1.0), bundles.system("openmpi", 2.0 + place)]
                                      for place, size in enumerate(its)} for name, its in cells.items()})
    for cell in other["cells"]:
        cell["starter"] = "openmpi"
    own["cells"] += other["cells"]
    return own


class Overview(unittest.TestCase):
    def panels(self, figure):
        return {axes.get_title(): axes for axes in figure.axes if axes.get_visible()}

    def of(self, axes, gid):
        return [artist for artist in axes.get_children() if artist.get_gid() == gid]

    def test_it_comes_first_and_one_collective_has_none(self):
        self.assertEqual(pictures.all_pictures(bundles.usual())[0].kind, "overview")
        self.assertNotIn("overview", {one.kind for one in pictures.all_pictures(bundles.of_all_states())})

    def test_lines_are_the_ratios_and_bands_their_intervals(self):
        bundle = of_two_starters()
        figure, _ = figure_of(bundle, "overview")
        panels = self.panels(figure)
        self.assertEqual(list(panels), ["broadcast", "all_reduce"])
        for name, axes in panels.items():
            lines = {line.get_color(): line for line in self.of(axes, "ratio")}
            bands = {tuple(round(part, 3) for part in band.get_facecolor()[0][:3]): ends(band) for band in self.of(axes, "band")}
            self.assertEqual(len(lines), 2)
            for reference in ("gloo", "openmpi"):
                items = [(cell["bytes"], item) for cell in bundle["cells"] if cell["collective"] == name
                         for item in cell["ratios"] if item["reference"] == reference]
                line = lines[style.colour_of(reference)]
                self.assertEqual(list(zip(line.get_xdata(), line.get_ydata())), [(size, item["ratio"]) for size, item in items])
                colour = tuple(round(int(style.colour_of(reference)[at: at + 2], 16) / 255, 3) for at in (1, 3, 5))
                for size, item in items:
                    self.assertAlmostEqual(bands[colour][size][0], item["low"])
                    self.assertAlmostEqual(bands[colour][size][1], item["high"])

    def test_all_panels_have_the_same_axes_and_a_line_at_one(self):
        figure, _ = figure_of(of_two_starters(TEN), "overview")
        panels = self.panels(figure)
        self.assertEqual(tuple(panels), TEN)
        self.assertEqual(len({axes.get_ylim() for axes in panels.values()}), 1)
        self.assertEqual(len({axes.get_xlim() for name, axes in panels.items() if name != "barrier"}), 1)
        for axes in panels.values():
            (one,) = self.of(axes, "one")
            self.assertEqual(set(one.get_ydata()), {1.0})

    def test_a_barrier_has_a_bar_for_each_reference(self):
        figure, _ = figure_of(of_two_starters(("barrier", "reduce")), "overview")
        axes = self.panels(figure)["barrier"]
        segments = [segment for bars in self.of(axes, "bar") for segment in bars.get_segments()]
        self.assertEqual([[round(y, 6) for _, y in segment] for segment in segments], [[0.0095, 0.0105], [0.475, 0.525]])

    def test_what_is_beyond_the_axis_is_on_its_edge(self):
        bundle = of_two_starters()
        figure, picture = figure_of(bundle, "overview")
        for axes in self.panels(figure).values():
            self.assertGreaterEqual(axes.get_ylim()[0], 0.5 / pictures_overview.FARTHEST)
            (below,) = self.of(axes, "below")
            self.assertEqual(list(below.get_xdata()), [8, 1024, 65536])
            self.assertEqual(below.get_color(), style.colour_of("gloo"))
        self.assertIn("below 1/32", [text.get_text() for text in figure.legends[0].get_texts()])
        self.assertIn("0.010 of gloo's time", picture.alt.replace("0.010 to 0.010", "0.010"))

    def test_noisy_ones_are_hollow(self):
        bundle = of_two_starters()
        noisy = [cell for cell in bundle["cells"] if cell["starter"] == "openmpi" and cell["bytes"] == 1024]
        for cell in noisy:
            cell["systems"][1]["marks"] = ["noisy"]
        figure, _ = figure_of(bundle, "overview")
        for axes in self.panels(figure).values():
            (hollow,) = self.of(axes, "noisy")
            self.assertEqual(list(hollow.get_xdata()), [1024])
            self.assertEqual(hollow.get_markerfacecolor(), style.GROUND)

    def test_its_words_name_every_panel_and_what_is_not_faster(self):
        bundle = of_two_starters()
        for cell in bundle["cells"]:
            if cell["starter"] == "openmpi" and cell["collective"] == "broadcast":
                item = cell["ratios"][0]
                if cell["bytes"] == 8:
                    item.update(ratio=1.5, low=1.25, high=1.75)
                if cell["bytes"] == 1024:
                    item.update(ratio=0.75, low=0.5, high=1.25)
        _, picture = figure_of(bundle, "overview")
        self.assertIn("broadcast: 0.010 to 0.010 of gloo's time; 0.25 to 1.50 of openmpi's time, slower at 8 B, undecided at 1 KiB.",
                      picture.alt)
        self.assertIn("all_reduce: 0.010 to 0.010 of gloo's time; 0.25 to 0.50 of openmpi's time.", picture.alt)

    def test_ranks_apart_and_a_barrier_with_each(self):
        bundle = bundles.empty()
        for ranks in (2, 8):
            one = of_two_starters(("barrier", "gather", "reduce"))
            for cell in one["cells"]:
                middle = "none/none" if cell["collective"] == "barrier" else "float/none"
                buffers = "none" if cell["collective"] == "barrier" else "private"
                cell["series"] = f"{cell['collective']}/shm/{middle}/P{ranks}.processes/none/out/{buffers}/isolated"
            bundle["cells"] += one["cells"]
        found = pictures_overview.overviews(pictures_data.all_series(bundle))
        self.assertEqual([one.title for one in found], [f"float, P={ranks} processes over shm, private buffers, isolated"
                                                        for ranks in (2, 8)])
        for one in found:
            self.assertEqual([panel.name for panel in one.panels], ["reduce", "gather", "barrier"])

    def test_files_share_panels_unless_both_have_a_reference(self):
        bundle = of_two_starters()
        for cell in bundle["cells"]:
            cell["source"] = 1 if cell["starter"] == "openmpi" else 0
        (one,) = pictures_overview.overviews(pictures_data.all_series(bundle))
        self.assertEqual(one.references, ["gloo", "openmpi"])
        again = of_two_starters()
        for cell in again["cells"]:
            cell["source"] = 2
        bundle["cells"] += again["cells"]
        found = pictures_overview.overviews(pictures_data.all_series(bundle))
        self.assertEqual([len(one.items) for one in found], [12, 12])

    def test_no_labels_lie_on_each_other(self):
        for sizes in ((8, 32, 64, 512, 4096, 32768, 262144), (8, 64, 512, 4096, 32768, 262144, 1 << 21, 1 << 24), (12, 1000)):
            figure, _ = figure_of(of_two_starters(TEN, sizes), "overview")
            self.assertEqual(labels_that_overlap(figure), [])


class HeatMap(unittest.TestCase):
    def test_no_labels_lie_on_each_other(self):
        for count in (2, 3, 10):
            for ratio in (1.01, 0.7, 0.01):
                bundle = bundles.bundle_of({name: {size: [bundles.system("tutti", ratio), bundles.system("openmpi", 1.0)]
                                                   for size in (8, 64, 512, 4096)} for name in TEN[:count] if name != "barrier"})
                figure, _ = figure_of(bundle, "heat")
                self.assertEqual(labels_that_overlap(figure), [], (count, ratio))

    def test_what_was_not_measured_is_hatched_and_all_is_lines(self):
        bundle = bundles.bundle_of({"gather": {8: [bundles.system("tutti", 1.0), bundles.system("openmpi", 2.0)]},
                                    "reduce": {64: [bundles.system("tutti", 1.0), bundles.system("openmpi", 2.0)]}})
        figure, picture = figure_of(bundle, "heat")
        (mesh,) = drawn(figure, "heat")
        self.assertEqual(mesh.get_array().mask.reshape(2, 2).tolist(), [[True, False], [False, True]])
        self.assertEqual(figure.axes[0].patch.get_hatch(), "////")
        self.assertGreater(figure.axes[0].patch.get_edgecolor()[3], 0, "or the hatch cannot be seen")
        self.assertFalse("<image" in picture.source.decode(), "pixels")

    def test_noisy_and_near_floor_have_signs_of_their_own_explained_below(self):
        marks = {8: ["noisy"], 64: ["near floor"], 512: []}
        bundle = bundles.bundle_of({name: {size: [bundles.system("tutti", 1.0, marks=its), bundles.system("openmpi", 2.0)]
                                           for size, its in marks.items()} for name in ("gather", "reduce")})
        figure, picture = figure_of(bundle, "heat")
        texts = [text.get_text() for text in figure.axes[0].texts]
        self.assertEqual(texts[:3], ["0.50~", "0.50\u25be", "0.50"])
        (explained,) = drawn(figure, "explained")
        self.assertEqual(explained.get_text(), "In a square: ~ noisy, \u25be near floor.")
        self.assertIn("~ in a square: noisy (2 of 6). \u25be in a square: near floor (2 of 6).", picture.alt)
        self.assertEqual(labels_that_overlap(figure), [])

    def test_a_bar_names_one_and_all_that_it_has_room_for(self):
        self.assertEqual(pictures_cells.bar_ticks(1 / 8, 8, 0.6), [0.125, 1, 8])
        self.assertEqual(pictures_cells.bar_ticks(1 / 8, 8, 8.0), [0.125, 0.25, 0.5, 0.8, 1, 1.25, 2, 4, 8])
        self.assertEqual(pictures_cells.bar_ticks(0.8, 1.25, 0.2), [1])

    def test_rows_have_the_order_of_the_collectives_and_no_starter(self):
        figure, _ = figure_of(of_two_starters(("sendrecv", "all_reduce", "broadcast")), "heat")
        self.assertEqual([label.get_text() for label in figure.axes[0].get_yticklabels()], ["broadcast", "all_reduce", "sendrecv"])


class File(unittest.TestCase):
    def test_an_svg_names_nothing_outside_and_has_a_light_ground(self):
        picture = pictures.all_pictures(bundles.usual())[0]
        with bundles.tempfile.TemporaryDirectory() as folder:
            text = picture.save(folder, "svg").read_text()
        self.assertEqual(set(re.findall(r"[a-z]+://[^\"' ]+", text)), {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"})
        self.assertNotIn("<!DOCTYPE", text)
        self.assertIn("fill: #ffffff", text)
        for colour in (style.INK, style.GROUND, style.BACK, "currentColor", "var("):
            self.assertFalse(colour in text, colour)

    def test_a_page_shows_its_own_ground(self):
        picture = pictures.all_pictures(bundles.usual())[0]
        for colour in (style.INK, style.GROUND, style.BACK, "#ffffff"):
            self.assertFalse(colour in picture.svg, colour)


class Samples(unittest.TestCase):
    def test_each_starter_has_a_picture_and_each_launch_its_number(self):
        bundle = bundles.empty()
        bundle["samples"] = [{"source": 0, "cell": "all_reduce/8B", "backend": "tutti", "algorithm": "ring", "launch": launch,
                              "starter": starter, "taken": 2, "time": [1.0, 1.1], "mark": ["", ""]}
                             for launch, starter in ((1, "mpirun"), (2, "mpiexec"), (3, "mpirun"), (4, "mpiexec"))]
        found = [picture for picture in pictures.all_pictures(bundle) if picture.kind == "samples"]
        self.assertEqual([picture.title.partition(": ")[2] for picture in found],
                         ["all_reduce/8B, started by mpirun", "all_reduce/8B, started by mpiexec"])
        figure, _ = figure_of(bundle, "samples")
        self.assertEqual([text.get_text() for text in figure.axes[0].texts], ["1", "3"])


class Judged(unittest.TestCase):
    def test_cells_of_several_systems_have_names_of_their_own(self):
        bundle = bundles.empty()
        cells = ["all_reduce/tutti.ring/8B", "all_reduce/openmpi.none/8B under openmpi", "all_reduce/8B"]
        bundle["judged"] = [{"source": 0, "cell": cell, "collective": "all_reduce", "bytes": 8, "verdict": verdict, "ratio": 1.1,
                             "low": 1.0, "high": 1.2, "floor": 0.1, "reason": "", "this_us": 2, "other_us": 1}
                            for cell, verdict in zip(cells, ("same", "slower", "undecided"))]
        figure, picture = figure_of(bundle, "judged")
        names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
        self.assertEqual(names, ["all_reduce 8 B openmpi (openmpi)", "all_reduce 8 B", "all_reduce 8 B tutti"])
        for side, time in (("this_us", 2), ("other_us", 1)):
            self.assertEqual([line.get_xdata()[0] for line in figure.axes[0].get_lines() if line.get_gid() == side], [time] * 3)
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

    def test_more_ranks_than_cores_are_told(self):
        bundle = bundles.usual()
        for cell in bundle["cells"]:
            cell.update(ranks=8, series=f"{cell['collective']}/shm/float/sum/P8.processes/none/out/private/isolated")
        self.assertNotIn("oversubscribed", pictures_data.all_series(bundle)[0].title)
        for cores, words in ((2, True), (8, False)):
            bundle["sources"][0]["machine"]["cores_allowed"] = cores
            title = pictures_data.all_series(bundle)[0].title
            self.assertEqual(title.endswith(", oversubscribed: 8 ranks on 2 cores"), words, title)
        bundle["sources"][0]["machine"]["cores_allowed"] = 2
        for hosts, words in (("a:4,b:4", ", oversubscribed: 8 ranks on 4 cores"), ("a:2,b:2,c:2,d:2", "")):
            for cell in bundle["cells"]:
                cell["hosts"] = hosts
            self.assertEqual(pictures_data.all_series(bundle)[0].title.partition("isolated")[2], words)

    def test_a_barrier_has_no_size_axis(self):
        bundle = bundles.bundle_of({"barrier": {0: [bundles.system("tutti", 0.3), bundles.system("openmpi", 0.5)]}})
        self.assertFalse(pictures_data.all_series(bundle)[0].has_sizes)
        self.assertIn("time", {picture.kind for picture in pictures.all_pictures(bundle)})


if __name__ == "__main__":
    unittest.main()
