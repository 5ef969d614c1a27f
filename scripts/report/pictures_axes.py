# SPDX-License-Identifier: Apache-2.0
"""Axes, legends and the markers of states, the same in every picture."""

from __future__ import annotations

import math
import textwrap
from typing import Callable, Iterable

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

import style
from pictures_data import NEAR_FLOOR, NOISY, Series, is_positive, size_of, states_of

TIME_LABEL = "time (us)"
BANDWIDTH_LABEL = "bus bandwidth (GB/s)"
# Where a point without a value is drawn, as a share of the height.
EDGE = 0.025
# Points without a value at one place stand above each other, so far apart as a share of the height.
EDGE_STEP = 0.05
# Marker, size, fill and width of each verdict that is not ok.
STATE_MARKERS = {"wrong": ("x", 8, "full", 2.2), "error": ("*", 9, "full", 1.0), "unchecked": ("D", 5, "none", 1.2),
                 "skipped": ("|", 9, "full", 1.8), "missing": ("s", 5, "none", 1.2)}
NICE_RATIOS = (0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0)
TITLE_LETTERS = 96
LEGEND_COLUMNS = 4
LEGEND_ROW = 0.2


def state_style(states: list[str], has_value: bool) -> dict:
    """Marker, size, fill and width of a point; the fill is `full` or `none`."""
    for state, (marker, size, fill, width) in STATE_MARKERS.items():
        if state in states:
            return {"marker": marker, "size": size, "fill": fill, "width": width}
    if not has_value:
        return {"marker": "2", "size": 7, "fill": "full", "width": 1.2}
    fill = "none" if NOISY in states else "full"
    return {"marker": "v" if NEAR_FLOOR in states else "o", "size": 5.5, "fill": fill, "width": 1.2}


def draw_points(axes: Axes, points: Iterable[tuple[float, float | None, list[str]]], curve: str) -> list[Line2D]:
    """Draws points of x, y and states, one artist for all of a state; one without a y stands on the lower edge."""
    groups: dict[tuple[str, bool], list[tuple[float, float | None, list[str]]]] = {}
    for point in points:
        groups.setdefault(("+".join(point[2]) or "ok", point[1] is None), []).append(point)
    colour = style.colour_of(curve)
    lines = []
    for (name, is_without), group in groups.items():
        look = state_style(group[0][2], not is_without)
        xs = [x for x, _, _ in group]
        (line,) = axes.plot(
            xs, [edge_place(axes, x) for x in xs] if is_without else [y for _, y, _ in group], linestyle="none",
            marker=look["marker"], markersize=look["size"], markeredgewidth=look["width"], markeredgecolor=colour,
            transform=axes.get_xaxis_transform() if is_without else axes.transData, clip_on=False, zorder=4,
            markerfacecolor="none" if look["fill"] == "none" else colour, gid=name)
        lines.append(line)
    return lines


def edge_place(axes: Axes, x: float) -> float:
    """The height of the next point without a value: above those that stand there."""
    on_edge = [line for line in axes.get_lines() if line.get_transform() == axes.get_xaxis_transform()]
    return EDGE + EDGE_STEP * sum(1 for line in on_edge for other in line.get_xdata() if other == x)


def state_handles(series: Series, value: str) -> list[tuple[Line2D, str]]:
    """The legend's entries for the states that occur."""
    found: dict[str, tuple[list[str], bool]] = {}
    for cell in series.cells:
        for system in cell["systems"]:
            states = states_of(system)
            known = [state for state in (NOISY, NEAR_FLOOR) if state in states] or ["ok"]
            is_ok, has_value = system.get("verdict") == "ok", is_positive(system.get(value))
            if is_ok and not has_value:
                found.setdefault("on the lower edge: no value", ([], False))
            else:
                found.setdefault(", ".join(known) if is_ok else states[0], (states, True))
    handles = []
    for name in sorted(found, key=lambda name: (name != "ok", name)):
        look = state_style(*found[name])
        handles.append((Line2D(
            [], [], linestyle="none", marker=look["marker"], markersize=look["size"], color=style.INK,
            markeredgewidth=look["width"], markerfacecolor="none" if look["fill"] == "none" else style.INK), name))
    return handles if len(handles) > 1 or "ok" not in found else []


def curve_handle(curve: str) -> tuple[Line2D, str]:
    """The legend's entry of a curve."""
    return Line2D([], [], color=style.colour_of(curve), linestyle=style.line_style_of(curve), linewidth=2), curve


def legend_rows(count: int, columns: int) -> int:
    """The rows that a legend of so many entries takes."""
    return math.ceil(count / columns)


def draw_legend(figure: Figure, handles: list[tuple[object, str]], columns: int = LEGEND_COLUMNS) -> None:
    """Draws the legend along the lower edge of the figure."""
    if not handles:
        return
    names = [legend_name(name) for _, name in handles]
    figure.legend([handle for handle, _ in handles], names, loc="lower center", ncol=min(len(handles), columns),
                  borderaxespad=0.2, handlelength=2.2, columnspacing=1.4)


def legend_name(name: str) -> str:
    """A name that the legend shows: it would skip one that begins with an underscore."""
    line = style.short(name, 34)
    return f" {line}" if line.startswith("_") else line


def title_lines(title: str, second: str = "") -> list[str]:
    """The title in at most two lines; `second` begins a line of its own."""
    lines = [line for part in (title, second)
             for line in textwrap.wrap(style.short(part, 3 * TITLE_LETTERS), TITLE_LETTERS)]
    return lines[:2]


def draw_title(figure: Figure, title: str, second: str = "") -> None:
    """Draws the title in the figure's upper left corner."""
    inches = figure.get_size_inches()[1]
    figure.text(0.012, 1 - 0.08 / inches, "\n".join(title_lines(title, second)), ha="left", va="top", fontsize=9.5)


def margins(figure: Figure, entries: int, title_lines: int = 2, left: float = 0.72, right: float = 0.22,
            bottom: float = 0.5, columns: int = LEGEND_COLUMNS) -> dict[str, float]:
    """The figure's margins, all given in inches, as the shares that matplotlib takes."""
    width, height = figure.get_size_inches()
    low = bottom + (LEGEND_ROW * legend_rows(entries, columns) + 0.08 if entries else 0)
    return {"left": left / width, "right": 1 - right / width, "bottom": low / height,
            "top": 1 - (0.16 + 0.16 * title_lines) / height}


def x_places(series: Series) -> Callable[[dict, str], float]:
    """Where a cell's point lies; without sizes the curves stand beside each other."""
    if not series.has_sizes:
        return lambda cell, curve: float(series.curves.index(curve))
    smallest = min(size_of(cell) for cell in series.cells if size_of(cell))
    return lambda cell, curve: float(size_of(cell) or smallest / 4)


def set_size_axis(axes: Axes, series: Series, label: bool = True) -> None:
    """Makes x an axis of sizes with ticks at powers of two, or one of curves."""
    if not series.has_sizes:
        axes.set_xlim(-0.6, len(series.curves) - 0.4)
        set_ticks(axes.xaxis, list(range(len(series.curves))), [style.short(curve, 20) for curve in series.curves])
        return
    sizes = [size_of(cell) for cell in series.cells]
    place = x_places(series)
    ticks = style.power_ticks(sizes)
    names = [style.bytes_text(tick) for tick in ticks]
    axes.set_xscale("log", base=2)
    low = min(place(cell, "") for cell in series.cells)
    axes.set_xlim(low / 1.5, max(sizes) * 1.5)
    if min(sizes) == 0:
        ticks, names = [low, *ticks], ["0 B", *names]
    set_ticks(axes.xaxis, ticks, names)
    if label:
        axes.set_xlabel("size")


def set_ticks(axis, ticks: list[float], names: list[str] | None = None) -> None:
    """Sets major ticks alone, with names or numbers."""
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    by_tick = dict(zip(ticks, names)) if names is not None else {}
    axis.set_major_formatter(FuncFormatter(lambda tick, _: by_tick.get(tick, f"{tick:g}")))


def set_log_values(axes: Axes, values: Iterable[float]) -> None:
    """Makes y logarithmic to base 10 around the values."""
    values = list(values)
    low, high = (min(values), max(values)) if values else (1.0, 10.0)
    axes.set_yscale("log", base=10)
    margin = max(1.25, (high / low) ** 0.07)
    axes.set_ylim(low / margin, high * margin)
    set_ticks(axes.yaxis, decade_ticks(low / margin, high * margin))


def decade_ticks(low: float, high: float) -> list[float]:
    """Ticks at 1, 2, 5 of each decade, at decades alone over a wide range, evenly over a narrow one."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    span = math.log10(high / low)
    step = max(1, math.ceil(span / 6))
    steps = (1,) if span > 3 else (1, 2, 5)
    ticks = [factor * 10.0**decade for decade in decades for factor in steps
             if (span <= 3 or decade % step == 0) and low <= factor * 10.0**decade <= high]
    return ticks if len(ticks) >= 3 else even_ticks(low, high)


def even_ticks(low: float, high: float) -> list[float]:
    """Some five even ticks."""
    return [float(tick) for tick in MaxNLocator(5).tick_values(low, high) if low <= tick <= high]


def set_ratio_values(axis, values: Iterable[float], is_vertical: bool = True) -> None:
    """Makes an axis of ratios: logarithmic to base 2, with 1 on it."""
    values = [*values, 1.0]
    low, high = min(values), max(values)
    margin = max(1.08, (high / low) ** 0.08)
    low, high = low / margin, high * margin
    axes = axis.axes
    (axes.set_yscale if is_vertical else axes.set_xscale)("log", base=2)
    (axes.set_ylim if is_vertical else axes.set_xlim)(low, high)
    set_ratio_ticks(axis, low, high)


def set_ratio_ticks(axis, low: float, high: float, most: int = 5) -> None:
    """Sets the ticks of an axis of ratios; small ones are fractions, which are short."""
    ticks = ratio_ticks(low, high, most)
    are_fractions = min(ticks) < 0.2
    set_ticks(axis, ticks, [f"1/{1 / tick:g}" if are_fractions and tick < 1 else f"{tick:g}" for tick in ticks])


def ratio_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Powers of two over a wide range, handy ratios over a narrow one; 1 is always there."""
    octaves = math.log2(high / low)
    if octaves > 2.5:
        step = math.ceil(octaves / most)
        first, last = math.ceil(math.log2(low)), math.floor(math.log2(high))
        return [2.0**power for power in range(first, last + 1) if power % step == 0]
    ticks = [ratio for ratio in NICE_RATIOS if low <= ratio <= high]
    if len(ticks) > 6:
        ticks = [ratio for ratio in ticks if ratio in (0.25, 0.35, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0)]
    return ticks if len(ticks) >= 3 else sorted({*even_ticks(low, high), 1.0})
