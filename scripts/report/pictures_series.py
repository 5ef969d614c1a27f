# SPDX-License-Identifier: Apache-2.0
"""Pictures of one series: time, bus bandwidth, arrival skew and launches."""

from __future__ import annotations

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

import style
from pictures_axes import (BANDWIDTH_LABEL, TIME_LABEL, curve_handle, draw_legend, draw_points, draw_title, margins,
                           set_log_values, set_ratio_values, set_size_axis, state_handles, x_places)
from pictures_base import new_figure
from pictures_data import (Series, extreme_text, is_positive, place_text, ratios_text, series_states, size_of,
                           states_of)
from pictures_numbers import counted, digits_text, is_number, with_interval

BAND_OPACITY = 0.22
WIDTH = 7.4
MOST_PANELS = 8
PANEL_COLUMNS = 4
# Ranks beside more points than these lie on each other.
MOST_NAMED_POINTS = 40


def is_drawn_on_line(system: dict, value: str) -> bool:
    """Says whether the line of a curve goes through the point."""
    return system.get("verdict") == "ok" and is_positive(system.get(value))


def draw_curve(axes: Axes, series: Series, curve: str, value: str) -> None:
    """Draws a curve's line, broken where there is no value, and its points by their states."""
    place = x_places(series)
    points = series.points(curve)
    xs = [place(cell, curve) for cell, _ in points]
    ys = [system[value] if is_drawn_on_line(system, value) else math.nan for _, system in points]
    if series.has_sizes:
        axes.plot(xs, ys, color=style.colour_of(curve), linestyle=style.line_style_of(curve), zorder=3, gid="line")
    draw_points(axes, [(x, system[value] if is_positive(system.get(value)) else None, states_of(system))
                       for x, (_, system) in zip(xs, points)], curve)


def draw_band(axes: Axes, xs: list[float], lows: list, highs: list, curve: str) -> None:
    """Draws the interval from low to high; a point alone gets a bar, for a band has no width there."""
    known = [is_positive(low) and is_number(high) for low, high in zip(lows, highs)]
    lows = [low if there else math.nan for low, there in zip(lows, known)]
    highs = [high if there else math.nan for high, there in zip(highs, known)]
    if not any(known):
        return
    colour = style.colour_of(curve)
    axes.fill_between(xs, lows, highs, where=known, color=colour, alpha=BAND_OPACITY, linewidth=0, zorder=2, gid="band")
    alone = [place for place, there in enumerate(known)
             if there and not any(known[near] for near in (place - 1, place + 1) if 0 <= near < len(known))]
    for place in alone:
        axes.vlines(xs[place], lows[place], highs[place], color=colour, linewidth=4, alpha=2 * BAND_OPACITY, zorder=2)


def draw_interval(axes: Axes, series: Series, curve: str) -> None:
    """Draws the interval of a curve's times; a wrong time has none to show."""
    place = x_places(series)
    points = series.points(curve)
    drawn = [(system.get("low"), system.get("high")) if is_drawn_on_line(system, "time") else (None, None)
             for _, system in points]
    draw_band(axes, [place(cell, curve) for cell, _ in points], [low for low, _ in drawn], [high for _, high in drawn],
              curve)


def limits(series: Series) -> list[tuple[dict, float]]:
    """The machine's limit in each cell that has one."""
    found = []
    for cell in series.cells:
        known = [system["limit_time"] for system in cell["systems"] if is_positive(system.get("limit_time"))]
        if known:
            found.append((cell, known[0]))
    return found


def draw_limit(axes: Axes, series: Series) -> bool:
    """Draws the machine's limit; says whether there is one."""
    found = limits(series)
    if not found:
        return False
    if series.has_sizes:
        place = x_places(series)
        axes.plot([place(cell, "") for cell, _ in found], [time for _, time in found], color=style.GREY,
                  linestyle="--", linewidth=1.3, marker="_", markersize=4, zorder=1, gid="limit")
    else:
        axes.axhline(found[0][1], color=style.GREY, linestyle="--", linewidth=1.3, zorder=1, gid="limit")
    return True


def draw_ratios(axes: Axes, series: Series) -> None:
    """Draws each curve's ratio to its reference with its interval, and the line at 1."""
    place = x_places(series)
    values = []
    references = list(dict.fromkeys(reference for _, reference in series.pairs()))
    for curve, reference in series.pairs():
        found = series.ratios(curve, reference)
        xs = [place(cell, curve) for cell, _ in found]
        ys = [item["ratio"] for _, item in found]
        lows, highs = [item.get("low") for _, item in found], [item.get("high") for _, item in found]
        values += [value for value in (*ys, *lows, *highs) if is_positive(value)]
        draw_band(axes, xs, lows, highs, curve)
        colour = style.colour_of(curve)
        # A hollow marker would say noisy: a reference after the first shows by its edge.
        edge = colour if reference == references[0] else style.colour_of(reference)
        axes.plot(xs, ys, color=colour, linestyle=style.line_style_of(curve) if series.has_sizes else "none", marker="o",
                  markersize=4, markeredgecolor=edge, markeredgewidth=1.4, zorder=3, gid="ratio")
    axes.axhline(1.0, color=style.INK, linewidth=1.0, zorder=1, gid="one")
    set_ratio_values(axes.yaxis, values)
    axes.set_ylabel(f"ratio to\n{style.short(references[0], 16)}" if len(references) == 1 else "ratio to\nreference",
                    fontsize=8)


def draw_time(series: Series) -> Figure:
    """Time against size, and below it the ratios to the references."""
    has_ratios = any(series.ratios(*pair) for pair in series.pairs())
    handles = [curve_handle(curve) for curve in series.curves]
    figure = new_figure(WIDTH, 5.6 if has_ratios else 4.4)
    grid = {"height_ratios": (3, 1)} if has_ratios else {}
    panels = figure.subplots(2 if has_ratios else 1, 1, sharex=True, gridspec_kw=grid, squeeze=False)[:, 0]
    for axes in panels:
        set_size_axis(axes, series, label=axes is panels[-1])
        axes.grid(True)
    top = panels[0]
    for curve in series.curves:
        draw_interval(top, series, curve)
        draw_curve(top, series, curve, "time")
    if draw_limit(top, series):
        handles.append((Line2D([], [], color=style.GREY, linestyle="--"), "the machine's limit"))
    if top.collections:
        handles.append((Patch(facecolor=style.GREY, alpha=0.4), "95 % interval"))
    handles += state_handles(series, "time")
    set_log_values(top, shown_times(series))
    top.set_ylabel(TIME_LABEL)
    if has_ratios:
        draw_ratios(panels[1], series)
    figure.subplots_adjust(**margins(figure, len(handles), left=0.85), hspace=0.1)
    draw_title(figure, series.title)
    draw_legend(figure, handles)
    return figure


def shown_times(series: Series) -> list[float]:
    """All times, bounds and limits that the picture has to hold."""
    values = [time for _, time in limits(series)]
    for cell in series.cells:
        for system in cell["systems"]:
            names = ("time", "low", "high") if system.get("verdict") == "ok" else ("time",)
            values += [system[name] for name in names if is_positive(system.get(name))]
    return values


def value_range(series: Series, curve: str, value: str, unit: str) -> str:
    """`tutti takes 0.18 us at 8 B to 172 us at 2 MiB`."""
    found = [(cell, system) for cell, system in series.points(curve) if is_drawn_on_line(system, value)]
    if not found:
        return f"{style.short(curve)}: nothing was measured and found right."
    low = min(found, key=lambda pair: pair[1][value])
    high = max(found, key=lambda pair: pair[1][value])
    texts = [f"{value_text(system, value, unit)} {place_text(cell)}".strip() for cell, system in (low, high)]
    return f"{style.short(curve)}: {texts[0]}." if low is high else f"{style.short(curve)}: {texts[0]} to {texts[1]}."


def value_text(system: dict, value: str, unit: str) -> str:
    """A value of a system; a time with its interval."""
    bounds = (system.get("low"), system.get("high")) if value == "time" else (None, None)
    return with_interval(system[value], *bounds, unit=unit)


def sizes_span(series: Series) -> str:
    """The sizes that a picture shows."""
    if not series.has_sizes:
        return "without sizes"
    sizes = [size_of(cell) for cell in series.cells]
    if len(sizes) == 1:
        return f"at {style.bytes_text(sizes[0])}"
    return f"against size, {style.bytes_text(sizes[0])} to {style.bytes_text(sizes[-1])}"


def time_alt(series: Series) -> str:
    """The story of the time picture."""
    found = limits(series)
    limit = f"The machine's limit: {digits_text(min(t for _, t in found), 3)} to " \
            f"{digits_text(max(t for _, t in found), 3)} us." if found else "The machine's limit was not measured."
    ranges = " ".join(value_range(series, curve, "time", "us") for curve in series.curves)
    return " ".join(part for part in (f"Time {sizes_span(series)}: {series.title}.", ranges, ratios_text(series), limit,
                                      series_states(series)) if part)


def has_times(series: Series) -> bool:
    """Says whether any time was measured, or one is missing that should have been; a right result alone is no point."""
    return any(is_positive(system.get("time")) or system.get("verdict") not in ("ok", "skipped")
               for cell in series.cells for system in cell["systems"])


def has_bandwidth(series: Series) -> bool:
    """Says whether any bus bandwidth was measured."""
    return series.has_sizes and any(is_drawn_on_line(system, "busbw") for cell in series.cells
                                    for system in cell["systems"])


def draw_bandwidth(series: Series) -> Figure:
    """Bus bandwidth against size."""
    return draw_plain(series, "busbw", BANDWIDTH_LABEL)


def draw_plain(series: Series, value: str, label: str) -> Figure:
    """One value against size, without intervals."""
    figure = new_figure(WIDTH, 4.0)
    axes = figure.subplots()
    set_size_axis(axes, series)
    axes.grid(True)
    for curve in series.curves:
        draw_curve(axes, series, curve, value)
    values = [system[value] for cell in series.cells for system in cell["systems"] if is_positive(system.get(value))]
    set_log_values(axes, values)
    axes.set_ylabel(label)
    handles = [curve_handle(curve) for curve in series.curves] + state_handles(series, value)
    figure.subplots_adjust(**margins(figure, len(handles)))
    draw_title(figure, series.title)
    draw_legend(figure, handles)
    return figure


def bandwidth_alt(series: Series) -> str:
    """The story of the bandwidth picture."""
    ranges = " ".join(value_range(series, curve, "busbw", "GB/s") for curve in series.curves)
    return f"Bus bandwidth {sizes_span(series)}: {series.title}. {ranges} {ratios_text(series)} {series_states(series)}".strip()


def has_skew(series: Series) -> bool:
    """Says whether any arrival skew was measured."""
    return any(is_number(system.get("arrival_skew")) for cell in series.cells for system in cell["systems"])


def draw_skew(series: Series) -> Figure:
    """Arrival skew against size; the number beside a point is the rank that came last most often."""
    is_named = len(series.cells) <= MOST_NAMED_POINTS
    figure = new_figure(WIDTH, 3.6)
    axes = figure.subplots()
    set_size_axis(axes, series)
    axes.grid(True)
    place = x_places(series)
    values = [system["arrival_skew"] for cell in series.cells for system in cell["systems"]
              if is_positive(system.get("arrival_skew"))]
    for order, curve in enumerate(series.curves):
        draw_curve(axes, series, curve, "arrival_skew")
        for cell, system in series.points(curve) if is_named else []:
            draw_last(axes, place(cell, curve), system, curve, order)
    set_log_values(axes, values)
    axes.set_ylabel("arrival skew (us)")
    handles = [curve_handle(curve) for curve in series.curves] + state_handles(series, "arrival_skew")
    if is_named:
        handles.append((Line2D([], [], linestyle="none", marker=r"$\mathrm{0}$", color=style.INK),
                        "the rank that came last"))
    figure.subplots_adjust(**margins(figure, len(handles)))
    draw_title(figure, series.title)
    draw_legend(figure, handles)
    return figure


def draw_last(axes: Axes, x: float, system: dict, curve: str, order: int) -> None:
    """Writes the rank that came last beside the point, above and below by turns."""
    if not is_number(system.get("last_rank")):
        return
    is_shown = is_positive(system.get("arrival_skew"))
    y = system["arrival_skew"] if is_shown else 0.025
    axes.annotate(f"{system['last_rank']:g}", (x, y), xycoords="data" if is_shown else axes.get_xaxis_transform(),
                  xytext=(0, 5 if order % 2 == 0 or not is_shown else -12), textcoords="offset points", ha="center",
                  fontsize=7.5, color=style.colour_of(curve))


def skew_alt(series: Series) -> str:
    """The story of the skew picture."""
    parts = [f"Arrival skew {sizes_span(series)}, and the rank that came last: {series.title}."]
    for curve in series.curves:
        parts.append(value_range(series, curve, "arrival_skew", "us"))
        last: dict[str, int] = {}
        for _, system in series.points(curve):
            if is_number(system.get("last_rank")):
                last[f"{system['last_rank']:g}"] = last.get(f"{system['last_rank']:g}", 0) + 1
        if last:
            told = style.joined([f"rank {rank} in {count} of the cells" for rank, count in
                                 sorted(last.items(), key=lambda pair: -pair[1])[:4]])
            parts.append(f"Last with {style.short(curve)}: {told}.")
    return " ".join([*parts, series_states(series)]).strip()


def launch_cells(series: Series) -> list[dict]:
    """At most eight cells with more than one launch, evenly over the sizes."""
    found = [cell for cell in series.cells if any((system.get("launches") or 0) > 1 for system in cell["systems"])]
    if len(found) <= MOST_PANELS:
        return found
    return [found[round(place * (len(found) - 1) / (MOST_PANELS - 1))] for place in range(MOST_PANELS)]


def launch_rows(system: dict, rows: list[dict]) -> list[dict]:
    """The rows of a system, one for each launch."""
    places = [place for place in system.get("rows") or [] if isinstance(place, int) and 0 <= place < len(rows)]
    return sorted((rows[place] for place in places), key=lambda row: row.get("launch") or 0)


def row_states(row: dict) -> list[str]:
    """The states of a row, whose marks are one text."""
    return states_of({**row, "marks": [mark for mark in (row.get("marks") or "").split("; ") if mark]})


def draw_launches(series: Series, rows: list[dict]) -> Figure:
    """The median of each launch with its interval: a panel for each size."""
    cells = launch_cells(series)
    columns = min(PANEL_COLUMNS, len(cells))
    lines = math.ceil(len(cells) / columns)
    figure = new_figure(WIDTH, 0.95 + 1.75 * lines + 0.3)
    panels = figure.subplots(lines, columns, squeeze=False)
    for place, axes in enumerate(panels.flat):
        if place < len(cells):
            draw_launch_panel(axes, cells[place], series, rows)
        else:
            axes.set_visible(False)
    for axes in panels[:, 0]:
        axes.set_ylabel(TIME_LABEL)
    handles = [curve_handle(curve) for curve in series.curves] + state_handles(series, "time")
    figure.subplots_adjust(**margins(figure, len(handles), title_lines=3, bottom=0.45), hspace=0.5, wspace=0.45)
    draw_title(figure, f"{series.title}: launches")
    draw_legend(figure, handles)
    return figure


def draw_launch_panel(axes: Axes, cell: dict, series: Series, rows: list[dict]) -> None:
    """Draws the launches of one cell; the systems stand a little apart."""
    values, launches = [], set()
    for system in cell["systems"]:
        curve = system["curve"]
        shift = 0.5 * (series.curves.index(curve) - (len(series.curves) - 1) / 2) / max(1, len(series.curves))
        points = []
        for row in launch_rows(system, rows):
            launch, time = row.get("launch") or 0, row.get("time_median")
            launches.add(launch)
            low, high = row.get("time_ci_low"), row.get("time_ci_high")
            if is_positive(time) and is_positive(low) and is_positive(high):
                axes.vlines(launch + shift, low, high, color=style.colour_of(curve), linewidth=1.4)
                values += [low, high]
            values += [time] if is_positive(time) else []
            points.append((launch + shift, time if is_positive(time) else None, row_states(row)))
        draw_points(axes, points, curve)
    set_log_values(axes, values)
    axes.grid(True, axis="y")
    shown = sorted(launches)
    axes.set_xlim((shown[0] if shown else 0) - 0.6, (shown[-1] if shown else 1) + 0.6)
    axes.xaxis.set_ticks(shown[:: max(1, math.ceil(len(shown) / 8))])
    axes.set_xlabel("launch", labelpad=1)
    axes.set_title(style.bytes_text(size_of(cell)) if size_of(cell) else style.short(series.collective, 20), fontsize=8.5)


def launches_alt(series: Series, rows: list[dict]) -> str:
    """The story of the launches: how far they lie apart."""
    parts = [f"Median time of each launch with its interval: {series.title}."]
    for curve in series.curves:
        spreads = []
        for cell in launch_cells(series):
            for system in cell["systems"]:
                times = [row["time_median"] for row in launch_rows(system, rows) if is_positive(row.get("time_median"))]
                if system["curve"] == curve and len(times) > 1:
                    spreads.append((max(times) / min(times), cell, min(times), max(times)))
        if spreads:
            ratio, cell, low, high = max(spreads, key=lambda spread: spread[0])
            parts.append(f"{style.short(curve)}: the launches lie farthest apart {place_text(cell)}, "
                         f"{digits_text(low, 3)} to {digits_text(high, 3)} us, a factor of {ratio:.2f}.")
    shown = {id(cell) for cell in launch_cells(series)}
    missing = sum(1 for cell in series.cells if id(cell) not in shown)
    if missing:
        parts.append(f"{counted(missing, 'further size is', 'further sizes are')} not drawn.")
    return " ".join([*parts, series_states(series)]).strip()
