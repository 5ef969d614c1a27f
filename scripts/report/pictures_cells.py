# SPDX-License-Identifier: Apache-2.0
"""Pictures of many cells at once: heat maps, distributions of samples, and the cells that a gate judged."""

from __future__ import annotations

import math

import numpy
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

import style
from pictures_axes import (TIME_LABEL, curve_handle, draw_legend, draw_title, margins, set_ratio_values, set_ticks,
                           decade_ticks, title_lines)
from pictures_base import new_figure
from pictures_data import NEAR_FLOOR, NOISY, Series, is_positive, place_of_collective, size_of, starter_name, states_of
from pictures_numbers import counted, digits_text, is_number, ratio_text

WIDTH = 7.4
MOST_ROWS = 30
HEAT_ROW = 0.3  # inches
HEAT_EXPLAINED = 0.2  # inches
# A colour bar's names need so many inches of it each.
BAR_NAME = 0.17
# The sign of each mark in a square.
SIGNS = {NOISY: "~", NEAR_FLOOR: "\u25be"}
BAR_TICKS = (1, 0.125, 8, 0.25, 4, 0.5, 2, 0.8, 1.25)  # those first that are most wanted
# A heat map writes its figures into the squares up to so many columns.
MOST_WRITTEN_COLUMNS = 14
MOST_LEVEL_NAMES = 9
# Orange and blue are told apart by colour-blind readers too; white is a ratio of 1.
RATIO_COLOURS = "PuOr_r"
SHARE_COLOURS = "cividis"
SHADES = 49  # an odd number: that in the middle is 1
JUDGED_MARKERS = {"same": "o", "faster": "<", "slower": ">", "undecided": "D", "new": "P"}
JUDGED_COLOURS = {"same": style.GREY, "faster": style.BLUE, "slower": style.VERMILLION, "undecided": style.PURPLE}


def heat_rows(all_of_them: list[Series]) -> list[Series]:
    """The series that a heat map shows: those with sizes, at most MOST_ROWS."""
    return [series for series in all_of_them if series.has_sizes][:MOST_ROWS]


def of_first_starter(all_of_them: list[Series]) -> list[Series]:
    """One of the series that differ in their starter alone: tutti's share of the limit is the same under each."""
    first: dict[tuple[int, str], Series] = {}
    for series in all_of_them:
        first.setdefault((series.source, series.series), series)
    return sorted(first.values(), key=lambda series: (series.source, place_of_collective(series.collective)))


def signs_of(states: list[str]) -> str:
    """The signs of the marks among the states."""
    return "".join(sign for state, sign in SIGNS.items() if state in states)


def signs_text(values: dict) -> str:
    """`~ noisy, ...`: what the signs of these squares mean; empty where there is none."""
    shown = "".join(signs for _, signs in values.values())
    return ", ".join(f"{sign} {state}" for state, sign in SIGNS.items() if sign in shown)


def ratio_values(rows: list[Series], reference: str) -> dict[tuple[int, float], tuple[float, str]]:
    """For each row and size the ratio of tutti's first curve to the reference, and the signs of its states."""
    values = {}
    for series in rows:
        for curve, other in series.pairs():
            if other != reference:
                continue
            for cell, item in series.ratios(curve, reference):
                states = [state for system in cell["systems"] if system["curve"] in (curve, reference)
                          for state in states_of(system)]
                values.setdefault((series.index, size_of(cell)), (item["ratio"], signs_of(states)))
    return values


def share_values(rows: list[Series]) -> dict[tuple[int, float], tuple[float, str]]:
    """For each row and size the share of the machine's limit that tutti's first curve reaches."""
    values = {}
    for series in rows:
        for curve in series.curves:
            if style.system_of(curve) != "tutti":
                continue
            for cell, system in series.points(curve):
                if system.get("verdict") == "ok" and is_positive(system.get("limit_fraction")):
                    values.setdefault((series.index, size_of(cell)), (system["limit_fraction"], signs_of(states_of(system))))
    return values


def references_of(all_of_them: list[Series]) -> list[str]:
    """The references of any ratio."""
    return list(dict.fromkeys(reference for series in all_of_them for _, reference in series.pairs()))


def draw_heat(rows: list[Series], names: dict[int, str], values: dict, title: str, is_ratio: bool) -> Figure:
    """A square for each series and size; a hatched one was not measured; signs mark noisy and near floor."""
    rows = [series for series in rows if any(index == series.index for index, _ in values)]
    sizes = sorted({size for _, size in values})
    grid = numpy.full((len(rows), len(sizes)), numpy.nan)
    for line, series in enumerate(rows):
        for column, size in enumerate(sizes):
            grid[line, column] = values.get((series.index, size), (numpy.nan, ""))[0]
    head, _, second = title.partition(": ")
    lines_of_title = len(title_lines(head, second))
    explained = signs_text(values) if len(sizes) <= MOST_WRITTEN_COLUMNS else ""
    below = HEAT_EXPLAINED if explained else 0.0
    figure = new_figure(WIDTH, 0.76 + 0.16 * lines_of_title + HEAT_ROW * len(rows) + below)
    axes = figure.subplots()
    axes.patch.set(facecolor="none", hatch="////", edgecolor=style.GREY, linewidth=0)
    known = grid[~numpy.isnan(grid)]
    reach = max(1.25, float(known.max()), 1.0 / float(known.min())) if is_ratio else 1.0
    norm = LogNorm(1 / min(reach, 8.0), min(reach, 8.0)) if is_ratio else Normalize(0.0, 1.0)
    mesh = axes.pcolormesh(numpy.arange(len(sizes) + 1), numpy.arange(len(rows) + 1), numpy.ma.masked_invalid(grid),
                           cmap=colormaps[RATIO_COLOURS if is_ratio else SHARE_COLOURS].resampled(SHADES), norm=norm, edgecolors=style.GROUND, linewidth=0.6,
                           gid="heat")
    write_squares(axes, rows, sizes, values, mesh, is_ratio)
    axes.invert_yaxis()
    step = max(1, math.ceil(len(sizes) / 12))
    axes.set_xticks([place + 0.5 for place in range(0, len(sizes), step)],
                    [style.bytes_text(size) for size in sizes[::step]],
                    **({"rotation": 30, "ha": "right"} if len(sizes) > MOST_LEVEL_NAMES else {}))
    axes.set_yticks([place + 0.5 for place in range(len(rows))], [names[series.index] for series in rows])
    bar = figure.colorbar(mesh, ax=axes, fraction=0.05, pad=0.02)
    bar.outline.set_visible(False)
    bar.solids.set(edgecolor="face", rasterized=False)  # a file of lines and texts embeds no pixels
    if is_ratio:
        set_ticks(bar.ax.yaxis, bar_ticks(norm.vmin, norm.vmax, HEAT_ROW * len(rows)))
    bar.set_label("ratio of times" if is_ratio else "share of the limit")
    longest = max(len(names[series.index]) for series in rows)
    figure.subplots_adjust(**margins(figure, 0, title_lines=lines_of_title, left=0.35 + 0.062 * longest, right=0.66,
                                     bottom=0.6 + below))
    if explained:
        figure.text(0.012, 0.06 / figure.get_size_inches()[1], f"In a square: {explained}.", ha="left", va="bottom", fontsize=8,
                    gid="explained")
    draw_title(figure, head, second)
    return figure


def bar_ticks(low: float, high: float, inches: float) -> list[float]:
    """The ratios that a logarithmic colour bar of this length names, none of them on another's name."""
    inches_of_octave = inches / math.log2(high / low)
    chosen: list[float] = []
    for tick in BAR_TICKS:
        is_free = all(abs(math.log2(tick / other)) * inches_of_octave >= BAR_NAME for other in chosen)
        if low <= tick <= high and is_free:
            chosen.append(tick)
    return sorted(chosen)


def write_squares(axes: Axes, rows: list[Series], sizes: list[float], values: dict, mesh, is_ratio: bool) -> None:
    """Writes each figure into its square, with the signs of its states."""
    if len(sizes) > MOST_WRITTEN_COLUMNS:
        return
    for line, series in enumerate(rows):
        for column, size in enumerate(sizes):
            value, signs = values.get((series.index, size), (None, ""))
            if value is None:
                continue
            red, green, blue, _ = mesh.cmap(mesh.norm(value))
            ink = "#000000" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "#ffffff"
            text = ratio_text(value) if is_ratio else f"{100 * value:.0f} %"
            axes.text(column + 0.5, line + 0.5, text + signs, ha="center", va="center", fontsize=6.5, color=ink)


def heat_alt(rows: list[Series], names: dict[int, str], values: dict, title: str, is_ratio: bool) -> str:
    """The extremes of each row in words."""
    parts = [f"{title}."]
    for series in rows:
        own = [(size, values[(index, size)][0]) for index, size in values if index == series.index]
        if not own:
            continue
        low, high = min(own, key=lambda pair: pair[1]), max(own, key=lambda pair: pair[1])
        text = ratio_text if is_ratio else lambda share: f"{100 * share:.0f} %"
        parts.append(f"{names[series.index]}: least {text(low[1])} at {style.bytes_text(low[0])}, "
                     f"most {text(high[1])} at {style.bytes_text(high[0])}.")
    for state, sign in SIGNS.items():
        marked = sum(1 for _, signs in values.values() if sign in signs)
        if marked:
            parts.append(f"{sign} in a square: {state} ({marked} of {len(values)}).")
    return " ".join(parts)


def sample_groups(bundle: dict) -> dict[str, list[dict]]:
    """The samples of each cell under one starter, all launches and systems together."""
    groups: dict[tuple[str, str], list[dict]] = {}
    for item in bundle.get("samples") or []:
        key = str(item.get("cell") or item.get("case") or ""), str(item.get("starter") or "")
        groups.setdefault(key, []).append(item)
    # The samples of a limit alone are compared with nothing.
    groups = {key: items for key, items in groups.items() if any(item.get("backend") != "limit" for item in items)}
    starters: dict[str, set[str]] = {}
    for cell, starter in groups:
        starters.setdefault(cell, set()).add(starter)
    return {f"{cell}, started by {starter_name(starter)}" if len(starters[cell]) > 1 else cell: items
            for (cell, starter), items in groups.items()}


def sample_curve(item: dict) -> str:
    """The curve's name of a samples entry."""
    algorithm = item.get("algorithm")
    return f"{item['backend']}.{algorithm}" if algorithm and algorithm != "none" else str(item.get("backend") or "")


def draw_samples(cell: str, items: list[dict]) -> Figure:
    """The cumulative distribution of the samples of a cell: a line for each system and launch."""
    figure = new_figure(WIDTH, 3.9)
    axes = figure.subplots()
    handles, shown = {}, []
    late = other = numbered = False
    for item in items:
        curve = sample_curve(item)
        marks = item.get("mark") or [""] * len(item["time"])
        kept = sorted(time for time, mark in zip(item["time"], marks) if mark == "" and is_positive(time))
        if kept:
            axes.step(kept, numpy.arange(1, len(kept) + 1) / len(kept), where="post", color=style.colour_of(curve),
                      linestyle=style.line_style_of(curve), linewidth=1.1, gid="samples")
            shown += [kept[0], kept[-1]]
            handles.setdefault(curve, curve_handle(curve))
            numbered = write_launch(axes, item, items, kept) or numbered
        for mark, marker, place in (("late", "x", -0.035), ("state", "|", -0.075)):
            marked = [time for time, own in zip(item["time"], marks) if own == mark and is_positive(time)]
            if marked:
                late, other = late or mark == "late", other or mark == "state"
                axes.plot(marked, [place] * len(marked), linestyle="none", marker=marker, markersize=4,
                          color=style.colour_of(curve), gid=mark)
                shown += [min(marked), max(marked)]
    entries = list(handles.values())
    for is_there, marker, name in ((late, "x", "a rank arrived late"), (other, "|", "other state")):
        if is_there:
            entries.append((Line2D([], [], linestyle="none", marker=marker, color=style.INK), f"left out: {name}"))
    if numbered:
        entries.append((Line2D([], [], linestyle="none"), "a number: the launch"))
    if shown:
        low, high = min(shown) / 1.1, max(shown) * 1.1
        axes.set_xscale("log")
        axes.set_xlim(low, high)
        set_ticks(axes.xaxis, decade_ticks(low, high))
    axes.set_ylim(-0.1, 1.02)
    axes.grid(True)
    axes.set_xlabel(TIME_LABEL)
    axes.set_ylabel("share of samples")
    figure.subplots_adjust(**margins(figure, len(entries)))
    draw_title(figure, f"Samples: {cell}")
    draw_legend(figure, entries)
    return figure


def write_launch(axes: Axes, item: dict, items: list[dict], kept: list[float]) -> bool:
    """Writes the number of a launch on its line, each at a height of its own; says whether there are several."""
    launches = sorted({other.get("launch") or 0 for other in items if sample_curve(other) == sample_curve(item)})
    if len(launches) < 2:
        return False
    share = (launches.index(item.get("launch") or 0) + 0.5) / len(launches)
    axes.text(kept[min(len(kept) - 1, int(share * len(kept)))], share, str(item.get("launch") or 0), fontsize=6.5, ha="center",
              va="center", color=style.colour_of(sample_curve(item)), gid="launch",
              bbox={"facecolor": style.GROUND, "edgecolor": "none", "pad": 0.6})
    return True


def samples_alt(cell: str, items: list[dict]) -> str:
    """The quartiles of each system's samples, and what was left out."""
    parts = [f"Cumulative share of samples against time: {style.short(cell, 120)}."]
    by_curve: dict[str, list[dict]] = {}
    for item in items:
        by_curve.setdefault(sample_curve(item), []).append(item)
    for curve, own in by_curve.items():
        pairs = [(time, mark) for item in own for time, mark in zip(item["time"], item.get("mark") or [""] * len(item["time"]))]
        kept = sorted(time for time, mark in pairs if mark == "" and is_number(time))
        if kept:
            quartiles = [digits_text(float(numpy.quantile(kept, share)), 3) for share in (0.25, 0.5, 0.75, 0.99)]
            parts.append(f"{style.short(curve)}, {counted(len(own), 'launch', 'launches')}: a quarter below {quartiles[0]} us, half below "
                         f"{quartiles[1]} us, three quarters below {quartiles[2]} us, 99 % below {quartiles[3]} us.")
        for mark, name in (("late", "in which a rank arrived late"), ("state", "of another state")):
            count = sum(1 for _, own_mark in pairs if own_mark == mark)
            if count:
                parts.append(f"{counted(count, 'sample')} {name} {'is' if count == 1 else 'are'} marked and not counted.")
    return " ".join(parts)


def judged_name(item: dict) -> str:
    """Collective and bytes of a judged cell; the system, and who started it, where the cell names them."""
    size = item.get("bytes")
    if " <= " in str(item.get("cell") or ""):  # of guidelines: the guideline, the backend and the ranks
        parts = [style.short(part, 48) for part in str(item["cell"]).split("/")[:-1]]
        return " ".join([*parts, style.bytes_text(size)] if is_positive(size) else parts)
    name = f"{style.short(item.get('collective'), 24)}{' ' + style.bytes_text(size) if is_positive(size) else ''}"
    cell, _, starter = str(item.get("cell") or "").partition(" under ")
    parts = cell.split("/")
    system = parts[1].partition(".")[0] if len(parts) > 1 and "." in parts[1] else ""
    return " ".join(part for part in (name, style.short(system, 16), f"({style.short(starter, 16)})" if starter else "")
                    if part)


def draw_judged(judged: list[dict], sides: tuple[str, str]) -> Figure:
    """The times of both sides of each judged cell, and their ratio with its interval; the grey band is what the gate's floor
    takes for the same."""
    figure = new_figure(WIDTH, 1.35 + 0.22 * len(judged))
    times, axes = figure.subplots(1, 2, sharey=True, width_ratios=(1, 1.5))
    values, found = [], {}
    for line, item in enumerate(judged):
        verdict = str(item.get("verdict") or "")
        colour = JUDGED_COLOURS.get(verdict, style.ORANGE)
        marker = JUDGED_MARKERS.get(verdict, "x")
        found.setdefault(verdict, (Line2D([], [], linestyle="none", marker=marker, color=colour), verdict))
        floor = item.get("floor")
        if is_positive(floor):
            floor = floor if floor < 1 else floor - 1
            axes.barh(line, 2 * floor, left=1 - floor, height=0.9, color=style.GREY, alpha=0.18, linewidth=0)
            values += [1 - floor if floor < 1 else 0.5, 1 + floor]
        if is_positive(item.get("low")) and is_positive(item.get("high")):
            axes.hlines(line, item["low"], item["high"], color=colour, linewidth=2, gid="interval")
            values += [item["low"], item["high"]]
        if is_positive(item.get("ratio")):
            axes.plot([item["ratio"]], [line], linestyle="none", marker=marker, markersize=5, color=colour, gid=verdict)
            values.append(item["ratio"])
        else:
            axes.plot([0.02], [line], linestyle="none", marker=marker, markersize=5, color=colour, gid=verdict,
                      transform=axes.get_yaxis_transform(), clip_on=False)
    axes.axvline(1.0, color=style.INK, linewidth=1.0)
    set_ratio_values(axes.xaxis, values, is_vertical=False)
    handles = [*draw_times_of_sides(times, judged, sides), *found.values()]
    names = [judged_name(item) for item in judged]
    times.set_yticks(range(len(judged)), names)
    times.set_ylim(len(judged) - 0.4, -0.6)
    axes.set_xlabel("ratio of the times")
    longest = max(map(len, names), default=0)
    left = min(4.0, max(2.4, 0.067 * longest))
    figure.subplots_adjust(wspace=0.08, **margins(figure, len(handles), title_lines=2, left=left))
    draw_title(figure, f"Judged cells, {style.short(sides[0], 36)} against {style.short(sides[1], 36)}: times, ratio, interval, floor")
    draw_legend(figure, handles)
    return figure


def draw_times_of_sides(axes: Axes, judged: list[dict], sides: tuple[str, str]) -> list[tuple[Line2D, str]]:
    """Both times of each cell on one line; gives the legend's entries."""
    looks = {"other_us": {"marker": "o", "markerfacecolor": "none"}, "this_us": {"marker": "s"}}
    known = [item[side] for item in judged for side in looks if is_positive(item.get(side))]
    low, high = (min(known) / 1.3, max(known) * 1.3) if known else (1.0, 10.0)
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    ticks = decade_ticks(low, high)
    set_ticks(axes.xaxis, ticks if len(ticks) < 4 else [ticks[0], ticks[len(ticks) // 2], ticks[-1]])
    for line, item in enumerate(judged):
        for side, look in looks.items():
            if is_positive(item.get(side)):
                axes.plot([item[side]], [line], linestyle="none", markersize=4.5, color=style.INK, gid=side, **look)
    axes.set_xlabel(TIME_LABEL)
    return [(Line2D([], [], linestyle="none", color=style.INK, **looks[side]), f"time of {name}")
            for side, name in zip(("this_us", "other_us"), sides)]


def judged_alt(judged: list[dict], sides: tuple[str, str]) -> str:
    """How many cells got which verdict, and the gravest of them."""
    parts = [f"Both times of each judged cell, and the ratio {sides[0]} / {sides[1]} with its interval, worst first."]
    by_verdict: dict[str, list[dict]] = {}
    for item in judged:
        by_verdict.setdefault(str(item.get("verdict") or "without a verdict"), []).append(item)
    for verdict, items in sorted(by_verdict.items(), key=lambda pair: (pair[0] == "same", pair[0])):
        names = [f"{judged_name(item)} ({ratio_text(item['ratio'])})" if is_positive(item.get("ratio")) else
                 judged_name(item) for item in items[:3]]
        parts.append(f"{style.short(verdict).capitalize()}: {len(items)}, {'such as ' if len(items) > 3 else ''}"
                     f"{style.joined(names)}.")
    return " ".join(parts)
