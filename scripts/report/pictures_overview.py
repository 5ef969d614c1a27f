# SPDX-License-Identifier: Apache-2.0
"""The overview: for each collective a small panel of tutti's ratios to all references, all on the same axes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

import style
from pictures_axes import EDGE, draw_legend, draw_title, margins, set_ratio_ticks, set_ticks
from pictures_base import new_figure
from pictures_data import (NOISY, Series, is_positive, part_text, place_of_collective, row_names, series_fields,
                           side_of, size_of, sizes_text, states_of)
from pictures_numbers import ratio_text

WIDTH = 7.4
PANEL_HEIGHT = 1.85
MOST_COLUMNS = 5
MOST_LEGEND_COLUMNS = 7
MOST_PANELS = 15
MOST_X_TICKS = 3
MOST_Y_TICKS = 7
# The axis of ratios goes no farther from 1: where a reference takes 1000 times as long, nothing else could be read.
FARTHEST = 32.0
# Colour alone tells nobody who cannot see it which reference is which. Triangles are for what is beyond the axis.
MARKERS = {"openmpi": "D", "mpich": "s", "gloo": "o", "nccl": "P"}
OTHER_MARKERS = ("X", "h", "p", "*", "d", "8")
# What belongs to all collectives; the others have it each in its own way (a root, an op, a placement).
SHARED_FIELDS = ("dtype", "ranks", "transport", "buffers", "cadence")
BAND_OPACITY = 0.22


@dataclass(frozen=True)
class Panel:
    """The ratios of tutti's first curve, for each reference with its cells."""

    name: str
    collective: str
    has_sizes: bool
    ratios: dict[str, list[tuple[dict, dict]]]


@dataclass(frozen=True)
class Overview:
    """The panels of one picture, and what all of them have in common."""

    title: str
    panels: list[Panel]

    @property
    def references(self) -> list[str]:
        """The references of any panel, by name: the order of the panels is the same whatever ran first."""
        return sorted({reference for panel in self.panels for reference in panel.ratios})

    @property
    def items(self) -> list[dict]:
        """All ratios."""
        return [item for panel in self.panels for found in panel.ratios.values() for _, item in found]


def overviews(every: list[Series]) -> list[Overview]:
    """The overviews: those with ratios of at least two collectives, at most MOST_PANELS panels in each."""
    found = []
    for fields, group in groups_of(every):
        panels = panels_of(group)
        if len({panel.collective for panel in panels}) < 2:
            continue
        for first in range(0, len(panels), MOST_PANELS):
            found.append(Overview(title_of(fields), panels[first: first + MOST_PANELS]))
    return found


def shared_fields(every: list[Series]) -> dict[str, str]:
    """What the shared fields are, where all series agree in them."""
    found = {}
    for name in SHARED_FIELDS:
        values = {series_fields(series.series).get(name, "") for series in every}
        if len(values) == 1:
            found[name] = values.pop()
    return found


def title_of(fields: dict[str, str]) -> str:
    """`float, P=2 processes over shm, private buffers, isolated`."""
    words = {name: part_text(name, value) for name, value in fields.items() if value not in ("", "none")}
    if "ranks" in words and "transport" in words:
        words["ranks"] += f" over {words.pop('transport')}"
    return style.short(", ".join(words.values()), 90)


def groups_of(every: list[Series]) -> list[tuple[dict[str, str], list[Series]]]:
    """The series that agree in all shared fields; one without a dtype or buffers, as of a barrier, joins all it fits."""
    with_ratios = [series for series in every if series.pairs()]
    fields = {id(series): {name: series_fields(series.series).get(name, "") for name in SHARED_FIELDS}
              for series in with_ratios}
    complete = [series for series in with_ratios if "none" not in fields[id(series)].values()]
    groups: list[tuple[dict[str, str], list[Series]]] = []
    for series in complete or with_ratios:
        if all(known != fields[id(series)] for known, _ in groups):
            groups.append((fields[id(series)], []))
    return [(known, part) for known, _ in groups
            for part in apart([series for series in with_ratios if agree(fields[id(series)], known)])]


def apart(group: list[Series]) -> list[list[Series]]:
    """Results of several files share their panels, unless two of them have ratios to one reference."""
    parts: list[tuple[set[tuple[str, str]], list[Series]]] = []
    for source in dict.fromkeys(series.source for series in group):
        own = [series for series in group if series.source == source]
        pairs = {(series.series, reference) for series in own for _, reference in series.pairs()}
        for known, part in parts:
            if not known & pairs:
                known |= pairs
                part += own
                break
        else:
            parts.append((pairs, own))
    return [part for _, part in parts]


def agree(fields: dict[str, str], others: dict[str, str]) -> bool:
    """Says whether the fields are the same, where both have them."""
    return all(value == others[name] or "none" in (value, others[name]) for name, value in fields.items())


def panels_of(group: list[Series]) -> list[Panel]:
    """A panel for each kind of series: those that differ in their starter alone have different references."""
    kinds: dict[str, list[Series]] = {}
    for series in group:
        kinds.setdefault(series.series, []).append(series)
    names = row_names([kind[0] for kind in kinds.values()], with_starter=False)
    panels = []
    for kind in kinds.values():
        ratios: dict[str, list[tuple[dict, dict]]] = {}
        for series in kind:
            for curve, reference in series.pairs():
                found = series.ratios(curve, reference)
                if found:
                    ratios.setdefault(reference, found)
        if ratios:
            first = kind[0]
            panels.append(Panel(names[first.index], first.collective, any(one.has_sizes for one in kind), ratios))
    return sorted(panels, key=lambda panel: place_of_collective(panel.collective))


def is_noisy(cell: dict, item: dict) -> bool:
    """Says whether a time of the ratio is noisy."""
    return any(NOISY in states_of(system) for system in cell["systems"]
               if system["curve"] in (item["curve"], item["reference"]))


def limits_of(items: list[dict]) -> tuple[float, float]:
    """The axis of ratios: around all of them and 1, but not farther than FARTHEST."""
    values = [value for item in items for value in (item["ratio"], item.get("low"), item.get("high"))
              if is_positive(value)]
    low = max(min([*values, 1.0]), 1 / FARTHEST)
    high = min(max([*values, 1.0]), FARTHEST)
    margin = max(1.12, (high / low) ** 0.08)
    return low / margin, high * margin


def draw_overview(overview: Overview) -> Figure:
    """A panel for each collective: ratio against size, the interval as a band, a line at 1."""
    count = len(overview.panels)
    lines = math.ceil(count / MOST_COLUMNS)
    columns = math.ceil(count / lines)
    references = overview.references
    low, high = limits_of(overview.items)
    handles = legend_handles(overview, low, high)
    figure = new_figure(WIDTH, 1.02 + PANEL_HEIGHT * lines + (0.2 if len(handles) > MOST_LEGEND_COLUMNS else 0.0))
    grid = figure.subplots(lines, columns, squeeze=False)
    sizes = [size_of(cell) for panel in overview.panels for found in panel.ratios.values() for cell, _ in found]
    for place, axes in enumerate(grid.flat):
        if place >= count:
            axes.set_visible(False)
            continue
        draw_panel(axes, overview.panels[place], references, (low, high), [size for size in sizes if size > 0])
        if place % columns:
            axes.tick_params(labelleft=False)
        if place + columns < count and overview.panels[place].has_sizes:
            axes.tick_params(labelbottom=False)
    bounds = margins(figure, len(handles), title_lines=3, left=0.62, right=0.18, bottom=0.3,
                     columns=MOST_LEGEND_COLUMNS)
    figure.subplots_adjust(**bounds, wspace=0.09, hspace=0.2)
    middle = (bounds["bottom"] + bounds["top"]) / 2
    figure.text(0.012, middle, "ratio of times", rotation=90, ha="left", va="center", fontsize=8.5)
    draw_title(figure, "Time of tutti / time of each reference: below 1 tutti is faster", overview.title)
    draw_legend(figure, handles, columns=MOST_LEGEND_COLUMNS)
    return figure


def marker_of(place: int, reference: str) -> str:
    """The marker of a reference; of one without a marker of its own that of its place."""
    return MARKERS.get(reference) or OTHER_MARKERS[place % len(OTHER_MARKERS)]


def legend_handles(overview: Overview, low: float, high: float) -> list[tuple[object, str]]:
    """The references, and what else is to be told."""
    handles: list[tuple[object, str]] = [
        (Line2D([], [], color=style.colour_of(reference), marker=marker_of(place, reference), markersize=4.5,
                linewidth=1.4), reference) for place, reference in enumerate(overview.references)]
    if any(is_positive(item.get("low")) for item in overview.items):
        handles.append((Patch(facecolor=style.GREY, alpha=0.4), "95 % interval"))
    noisy = [is_noisy(cell, item) for panel in overview.panels for found in panel.ratios.values() for cell, item in found]
    if any(noisy):
        handles.append((Line2D([], [], linestyle="none", marker="o", markersize=4.5, markerfacecolor="none",
                               markeredgecolor=style.INK), "hollow: noisy"))
    if any(item["ratio"] < low for item in overview.items):
        handles.append((Line2D([], [], linestyle="none", marker="v", markersize=4, color=style.INK),
                        f"below 1/{FARTHEST:g}"))
    if any(item["ratio"] > high for item in overview.items):
        handles.append((Line2D([], [], linestyle="none", marker="^", markersize=4, color=style.INK),
                        f"above {FARTHEST:g}"))
    return handles


def draw_panel(axes: Axes, panel: Panel, references: list[str], limits: tuple[float, float], sizes: list[float]) -> None:
    """One collective."""
    low, high = limits
    axes.axhline(1.0, color=style.INK, linewidth=1.0, zorder=1, gid="one")
    axes.set_title(style.short(panel.name, 26), fontsize=8.5, pad=3)
    axes.grid(True)
    axes.set_yscale("log", base=2)
    axes.set_ylim(low, high)
    set_ratio_ticks(axes.yaxis, low, high, MOST_Y_TICKS)
    axes.tick_params(labelsize=7.5)
    if panel.has_sizes:
        ticks = size_ticks(sizes)
        axes.set_xscale("log", base=2)
        axes.set_xlim(min(sizes) / 2, max(sizes) * 2)
        set_ticks(axes.xaxis, ticks, [style.bytes_text(tick) for tick in ticks])
        align_ends(axes, ticks)
    else:
        axes.set_xlim(-0.5 - 0.25 * len(references), len(references) - 0.5 + 0.25 * len(references))
        set_ticks(axes.xaxis, [(len(references) - 1) / 2], ["no size"])
    for place, reference in enumerate(references):
        found = panel.ratios.get(reference, [])
        if found:
            xs = [float(size_of(cell)) if panel.has_sizes else float(place) for cell, _ in found]
            draw_reference(axes, xs, found, place, limits)


def size_ticks(sizes: list[float]) -> list[float]:
    """A few of the sizes, evenly; powers of two between them where they are none."""
    powers = sorted({size for size in sizes if math.log2(size) % 1 == 0})
    if len(powers) < 2:
        return style.power_ticks(sizes, MOST_X_TICKS)
    return powers[:: math.ceil(len(powers) / MOST_X_TICKS)]


def align_ends(axes: Axes, ticks: list[float]) -> None:
    """Keeps the first and the last name inside their panel: the next one begins there."""
    for tick, label in zip(ticks, axes.get_xticklabels()):
        place = axes.transAxes.inverted().transform(axes.transData.transform((tick, 1.0)))[0]
        label.set_horizontalalignment("left" if place < 0.12 else "right" if place > 0.85 else "center")


def draw_reference(axes: Axes, xs: list[float], found: list[tuple[dict, dict]], place: int,
                   limits: tuple[float, float]) -> None:
    """The ratios to one reference: a line, its band, a marker for each; one beyond the axis is a triangle on its edge."""
    items = [item for _, item in found]
    colour = style.colour_of(items[0]["reference"])
    marker = marker_of(place, items[0]["reference"])
    draw_intervals(axes, xs, items, colour)
    axes.plot(xs, [item["ratio"] for item in items], color=colour, linewidth=1.2, zorder=3, gid="ratio")
    for is_hollow in (False, True):
        points = [(x, item["ratio"]) for x, (cell, item) in zip(xs, found) if is_noisy(cell, item) == is_hollow]
        if points:
            axes.plot(*zip(*points), linestyle="none", marker=marker, markersize=3.6, markeredgecolor=colour,
                      markeredgewidth=1.0, markerfacecolor=style.GROUND if is_hollow else colour, zorder=4,
                      gid="noisy" if is_hollow else "ok")
    low, high = limits
    for is_beyond, edge, triangle, gid in ((lambda y: y < low, EDGE + 0.055 * place, "v", "below"),
                                           (lambda y: y > high, 1 - EDGE - 0.055 * place, "^", "above")):
        beyond = [x for x, item in zip(xs, items) if is_beyond(item["ratio"])]
        if beyond:
            axes.plot(beyond, [edge] * len(beyond), linestyle="none", marker=triangle, markersize=3.6, color=colour,
                      transform=axes.get_xaxis_transform(), zorder=4, gid=gid)


def draw_intervals(axes: Axes, xs: list[float], items: list[dict], colour: str) -> None:
    """The intervals of a line's ratios; those of one point alone are a bar."""
    known = [is_positive(item.get("low")) and is_positive(item.get("high")) for item in items]
    if not any(known):
        return
    lows = [item["low"] if there else math.nan for item, there in zip(items, known)]
    highs = [item["high"] if there else math.nan for item, there in zip(items, known)]
    if len(items) == 1:
        axes.vlines(xs, lows, highs, color=colour, linewidth=4, alpha=2 * BAND_OPACITY, zorder=2, gid="bar")
    else:
        axes.fill_between(xs, lows, highs, where=known, color=colour, alpha=BAND_OPACITY, linewidth=0, zorder=2,
                          gid="band")


def overview_alt(overview: Overview) -> str:
    """For each collective and reference the least and the most ratio, and where tutti is not faster."""
    parts = [f"Time of tutti / time of each reference against size, a panel for each collective: {overview.title}."]
    has_intervals = any(is_positive(item.get("low")) for item in overview.items)
    for panel in overview.panels:
        told = [reference_text(reference, panel.ratios[reference], has_intervals)
                for reference in overview.references if reference in panel.ratios]
        parts.append(f"{panel.name}: {'; '.join(told)}.")
    if not has_intervals:
        parts.append("No ratio has an interval: that takes six launches.")
    return " ".join(parts)


def reference_text(reference: str, found: list[tuple[dict, dict]], has_intervals: bool) -> str:
    """`of openmpi's time 0.20 to 0.78, undecided at 4 KiB`."""
    ratios = [item["ratio"] for _, item in found]
    span = ratio_text(min(ratios)) if len(ratios) == 1 else f"{ratio_text(min(ratios))} to {ratio_text(max(ratios))}"
    text = f"{span} of {style.short(reference, 24)}'s time"
    if not has_intervals:
        above = [cell for cell, item in found if item["ratio"] > 1]
        return f"{text}, above 1 at {sizes_text(above)}" if above else text
    for side in ("slower", "undecided"):
        cells = [cell for cell, item in found if side_of(item) == side]
        if cells:
            text += f", {side} at {sizes_text(cells)}"
    return text
