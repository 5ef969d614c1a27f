# SPDX-License-Identifier: Apache-2.0
"""Many results of one machine, oldest first: a line for each cell and system, and where it changed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

import change_points
import style
from pictures_axes import TIME_LABEL, draw_legend, draw_title, margins
from pictures_base import Picture, drawn, new_figure
from pictures_data import is_positive, starter_name
from pictures_numbers import counted, digits_text, with_interval

# One picture shows so many cells below each other, and a page so many pictures.
CELLS_IN_PICTURE = 6
MOST_PICTURES = 12
# What is said of a result that another machine measured.
ELSEWHERE = "is left out: it is of the machine"


@dataclass(frozen=True)
class Finding:
    """A step of one series: `first` is the first result after it, `found_at` the result that showed it."""

    series: int
    first: int
    found_at: int
    ratio: float


@dataclass(frozen=True)
class Line:
    """A series with its right points alone."""

    cell: str
    curve: str
    starter: str  # empty: all lines have one
    collective: str
    results: tuple[int, ...]
    times: tuple[float, ...]
    lows: tuple[float | None, ...]
    highs: tuple[float | None, ...]
    not_right: tuple[tuple[int, str], ...]
    disturbed: tuple[tuple[int, str], ...] = ()  # by result: what disturbed it

    @property
    def name(self) -> str:
        """The system, and who started it where lines differ in that."""
        name = style.short(self.curve, 20)
        return f"{name} started by {self.starter}" if self.starter else name


def lines_of(bundle: dict) -> list[Line]:
    """The series of the bundle."""
    lines = []
    every = (bundle.get("history") or {}).get("series") or []
    has_several = len({series.get("starter") for series in every}) > 1
    for series in every:
        points = series.get("points") or []
        right = [point for point in points if point.get("verdict") == "ok" and is_positive(point.get("time"))]
        lines.append(Line(
            str(series.get("cell")), str(series.get("curve")),
            starter_name(str(series.get("starter") or "")) if has_several else "", str(series.get("collective")),
            tuple(point["result"] for point in right), tuple(point["time"] for point in right),
            tuple(point.get("low") for point in right), tuple(point.get("high") for point in right),
            tuple((point["result"], str(point.get("verdict"))) for point in points if point not in right),
            tuple((point["result"], ", ".join(map(str, point["disturbed"]))) for point in points if point.get("disturbed"))))
    return lines


@lru_cache(maxsize=4096)
def steps_of(times: tuple[float, ...]) -> tuple[change_points.Step, ...]:
    """The steps of a line's times."""
    return tuple(change_points.steps([math.log(time) for time in times]))


@lru_cache(maxsize=4096)
def smallest_step_of(times: tuple[float, ...]) -> float | None:
    """The smallest relative step that the next results of a line could show."""
    return change_points.smallest_step([math.log(time) for time in times])


def stretches(times: tuple[float, ...]) -> list[tuple[int, int]]:
    """From and to of the stretches between steps."""
    edges = [0, *(step.index for step in steps_of(times)), len(times)]
    return list(zip(edges, edges[1:]))


def findings(bundle: dict) -> list[Finding]:
    """All steps of all series, the largest slowdown first."""
    found = []
    for number, line in enumerate(lines_of(bundle)):
        parts = stretches(line.times)
        for step, before, after in zip(steps_of(line.times), parts, parts[1:]):
            ratio = numpy.median(line.times[slice(*after)]) / numpy.median(line.times[slice(*before)])
            found.append(Finding(number, line.results[step.index], line.results[step.found_at], float(ratio)))
    return sorted(found, key=lambda finding: -finding.ratio)


def name_of_result(bundle: dict, index: int) -> str:
    """When a result began, else its file."""
    result = bundle["history"]["results"][index]
    return style.short(result.get("started") or result.get("file") or str(index + 1), 30)


def commits_text(bundle: dict, line: Line, step: Finding) -> str:
    """` (commit abc to def)`: of the results on either side of a step, and what disturbed the first one after it."""
    results = bundle["history"]["results"]
    before = max((result for result in line.results if result < step.first), default=step.first)
    named = [style.short(str(results[result].get("commit") or ""), 24) for result in (before, step.first)]
    parts = [f"commit {named[0] or '?'} to {named[1] or '?'}" if named[0] != named[1] else f"the same commit {named[0]}"] if any(named) else []
    words = dict(line.disturbed).get(step.first)
    parts += [f"disturbed: {words}"] if words else []
    return f" ({'; '.join(parts)})" if parts else ""


def disturbances(bundle: dict) -> list[str]:
    """What disturbed rows, by cause: how many rows in how many results, and in which most."""
    found: dict[str, list[tuple[int, int]]] = {}
    results = bundle["history"]["results"]
    for place, result in enumerate(results):
        for cause, rows in (result.get("disturbed") or {}).items():
            found.setdefault(str(cause), []).append((rows, place))
    return [f"{counted(sum(rows for rows, _ in of), 'row')} in {len(of)} of {counted(len(results), 'result')} disturbed by "
            f"{cause}, most in that of {name_of_result(bundle, max(of)[1])}" for cause, of in sorted(found.items())]


def change_text(ratio: float) -> str:
    """`12 % slower`, `8 % faster`."""
    share = ratio - 1 if ratio > 1 else 1 - ratio
    return f"{digits_text(100 * share, 2)} % {'slower' if ratio > 1 else 'faster'}"


def verdict_sentence(bundle: dict) -> str:
    """What changed, the largest slowdown first."""
    lines, results, found = lines_of(bundle), bundle["history"]["results"], findings(bundle)
    head = f"{counted(len(results), 'result')}, {count_text(len(lines))} of a cell and a system"
    if results:
        head += f", from {name_of_result(bundle, 0)} to {name_of_result(bundle, len(results) - 1)}"
    not_right = sum(len(line.not_right) for line in lines)
    elsewhere = sum(1 for text in bundle["omitted"] if ELSEWHERE in text)
    if elsewhere:
        head += f" ({counted(elsewhere, 'result')} of another machine {'is' if elsewhere == 1 else 'are'} left out)"
    tail = f"; not right and left out of the search: {not_right} point{'s' * (not_right > 1)}" if not_right else ""
    if not found:
        least = change_points.minimum_results()
        short = sum(1 for line in lines if len(line.times) < least)
        why = f"; {count_text(short)} of fewer than {least} results, too few to show a step" if short else ""
        return f"{head}: no step was found{why}{tail}."
    slower = sum(1 for finding in found if finding.ratio > 1)
    worst = found[0] if slower else found[-1]
    line = lines[worst.series]
    return (f"{head}: {counted(len(found), 'step')}, slower after {slower}; the largest is {line.name} in "
            f"{style.short(line.cell, 80)}, {change_text(worst.ratio)} from {name_of_result(bundle, worst.first)} on{tail}.")


def has_short_lines(bundle: dict) -> bool:
    """Says whether a line has too few results to show a step."""
    return any(len(line.times) < change_points.minimum_results() for line in lines_of(bundle))


def table(bundle: dict) -> list[dict]:
    """For each line its newest time, its steps, and the smallest step that it could show; changed lines first."""
    by_series: dict[int, list[Finding]] = {}
    for finding in findings(bundle):
        by_series.setdefault(finding.series, []).append(finding)
    rows = []
    for number, line in enumerate(lines_of(bundle)):
        steps = sorted(by_series.get(number, []), key=lambda finding: finding.first)
        smallest = smallest_step_of(line.times)
        rows.append({
            "cell": style.plain(line.cell), "curve": line.name, "results": len(line.times),
            "newest": with_interval(line.times[-1], line.lows[-1], line.highs[-1], "us") if line.times else "none is right",
            "steps": "; ".join(f"{change_text(step.ratio)} from {name_of_result(bundle, step.first)} on{commits_text(bundle, line, step)}"
                               for step in steps),
            "smallest": f"too few results{' since its step' if steps else ''}" if smallest is None else f"{digits_text(100 * smallest, 2)} %",
            "has_step": bool(steps)})
    return sorted(rows, key=lambda row: not row["has_step"])


def all_pictures(bundle: dict) -> list[Picture]:
    """The lines of the bundle, some below each other, those with steps first."""
    return [drawn(f"history-{number + 1}", f"History of {count_text(len(group))}", alt_of(bundle, group), "history", "",
                  lambda group=group: draw(bundle, group))
            for number, group in enumerate(groups_of(bundle)[:MOST_PICTURES])]


def left_out(bundle: dict) -> list[str]:
    """Sentences about what is not drawn."""
    count = sum(len(group) for group in groups_of(bundle)[MOST_PICTURES:])
    return [f"Pictures of history: {count} lines are not drawn; the table has all of them."] if count else []


def groups_of(bundle: dict) -> list[list[Line]]:
    """The lines of each picture."""
    lines = [line for line in lines_of(bundle) if line.times]
    ordered = sorted(lines, key=lambda line: not steps_of(line.times))
    return [ordered[first: first + CELLS_IN_PICTURE] for first in range(0, len(ordered), CELLS_IN_PICTURE)]


def count_text(count: int) -> str:
    """`1 line`, `6 lines`."""
    return counted(count, "line")


def draw(bundle: dict, lines: list[Line]) -> Figure:
    """One panel for each line, with its interval, its medians between steps, and a mark at each step."""
    figure = new_figure(7.2, 0.9 + 1.25 * len(lines))
    panels = figure.subplots(len(lines), 1, sharex=True, squeeze=False)[:, 0]
    last = len(bundle["history"]["results"])
    for axes, line in zip(panels, lines):
        draw_line(axes, line)
        axes.set_xlim(0.5, last + 0.5)
        axes.set_ylabel(TIME_LABEL)
        axes.set_title(f"{line.name}: {style.short(line.cell, 90)}", fontsize=7.5, loc="left", pad=2)
        axes.grid(axis="y")
    panels[-1].set_xlabel("result, oldest first")
    panels[-1].xaxis.set_major_locator(MaxNLocator(integer=True, nbins=12))
    handles = [(Line2D([], [], color=style.INK, linewidth=1, linestyle=":"), "step"),
               (Line2D([], [], color=style.INK, linewidth=1), "median between steps")]
    figure.subplots_adjust(hspace=0.42, **margins(figure, len(handles), title_lines=2))
    draw_title(figure, f"Time of {counted(len(bundle['history']['results']), 'result')}")
    draw_legend(figure, handles)
    return figure


def draw_line(axes, line: Line) -> None:
    """The points of a line with their intervals, and its steps."""
    colour = style.colour_of(line.curve)
    xs = [result + 1 for result in line.results]
    for x, low, high in zip(xs, line.lows, line.highs):
        if is_positive(low) and is_positive(high):
            axes.vlines(x, low, high, color=colour, linewidth=2.5, alpha=0.35, gid="interval")
    axes.plot(xs, line.times, color=colour, linestyle="none", marker="o", markersize=3.5, gid="times")
    for low, high in stretches(line.times):
        median = float(numpy.median(line.times[low:high]))
        axes.plot([xs[low] - 0.4, xs[high - 1] + 0.4], [median, median], color=style.INK, linewidth=1, gid="median")
    for step in steps_of(line.times):
        axes.axvline((xs[step.index] + xs[step.index - 1]) / 2, color=style.INK, linestyle=":", linewidth=1, gid="step")
    for result, _ in line.not_right:
        axes.plot([result + 1], [0.04], linestyle="none", marker="x", color=colour, transform=axes.get_xaxis_transform(),
                  gid="not right")


def alt_of(bundle: dict, lines: list[Line]) -> str:
    """Each line's first and last median, and its steps."""
    parts = [f"Times of {count_text(len(lines))} over {counted(len(bundle['history']['results']), 'result')}, oldest first."]
    for line in lines:
        steps = steps_of(line.times)
        medians = [float(numpy.median(line.times[low:high])) for low, high in stretches(line.times)]
        told = ", then ".join(f"{digits_text(median, 3)} us" for median in medians)
        changes = [f"{change_text(after / before)} from {name_of_result(bundle, line.results[step.index])} on"
                   for step, before, after in zip(steps, medians, medians[1:])]
        wrong = f"; {counted(len(line.not_right), 'result')} not right" if line.not_right else ""
        parts.append(f"{line.name} in {style.short(line.cell, 90)}: {told}"
                     f"{' (' + '; '.join(changes) + ')' if changes else ', no step'}{wrong}.")
    return " ".join(parts)
