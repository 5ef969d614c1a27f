# SPDX-License-Identifier: Apache-2.0
"""The page of an acceptance: verdict, what differs, who reaches whom how fast, and each node."""

from __future__ import annotations

import warnings

import jinja2
import numpy
from markupsafe import Markup

import style
from page import FOLDER
from pictures_base import drawn, new_figure
from pictures_numbers import is_number

MOST_LABELS = 64  # names on an axis
MOST_CELLS = 256  # nodes whose cells can be seen; of more, leaves have cells, and nodes marks beside them
SHADES = 20       # percent beyond which a colour says no more
WINDOWS = 8       # of the first pass, as the rule for spells has them
MOST_TIME_LINES = 8
MOODS = {"PASS": "good", "FAIL": "bad", "ERROR": "bad"}


def percent(value: object) -> str:
    """A ratio less one as signed percent."""
    if not is_number(value):
        return ""
    text = f"{100 * value:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text


def order_of(nodes: list[dict]) -> list[int]:
    """Nodes by their leaf, then as they were named."""
    return sorted(range(len(nodes)), key=lambda at: (str(nodes[at].get("leaf") or ""), at))


def rails_of(document: dict) -> list[dict]:
    """What was measured on each rail; empty: no rail was named."""
    return [rail for rail in document.get("rails") or [] if isinstance(rail, dict) and isinstance(rail.get("rail"), str)]


def matrix_of(document: dict) -> numpy.ndarray | None:
    """Senders by receivers in percent of the level, NaN where no test was; None where there is none."""
    rows = document.get("of_level")
    if not isinstance(rows, list) or not rows:
        return None
    cells = [[100 * cell if is_number(cell) else numpy.nan for cell in row] for row in rows]
    return numpy.array(cells) if all(len(row) == len(cells) for row in cells) else None


def heat_maps(document: dict, nodes: list[dict]) -> list:
    """A matrix for each rail, or the only one."""
    rails = rails_of(document)
    found = [heat_map({"margin": document.get("margin"), **rail}, nodes, f" on rail {style.plain(rail['rail'])}", f"matrix-{at}") for at, rail in enumerate(rails)]
    return [picture for picture in (found if rails else [heat_map(document, nodes)]) if picture]


def heat_map(document: dict, nodes: list[dict], where: str = "", name: str = "matrix"):
    """The matrix as a picture, with the medians of rows and columns beside it."""
    matrix = matrix_of(document)
    if matrix is None or numpy.isnan(matrix).all():
        return None
    order = order_of(nodes)
    names = [style.plain(nodes[at]["node"]) for at in order]
    leaves = [str(nodes[at].get("leaf") or "") for at in order]
    sorted_cells = matrix[numpy.ix_(order, order)]
    many = len(order) > MOST_LABELS

    def median(axis: int) -> numpy.ndarray:
        return numpy.array([numpy.nanmedian(line) if not numpy.isnan(line).all() else numpy.nan
                            for line in (sorted_cells if axis else sorted_cells.T)])

    slow_below = -100 * document["margin"] if is_number(document.get("margin")) else -SHADES

    def draw_leaves():
        begins = [at for at in range(len(order)) if at == 0 or leaves[at] != leaves[at - 1]]
        ends = [*begins[1:], len(order)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # blocks without any test
            blocks = numpy.array([[numpy.nanmedian(sorted_cells[a:b, c:d]) for c, d in zip(begins, ends)] for a, b in zip(begins, ends)])
        figure = new_figure(7.4, 7.4)
        grid = figure.add_gridspec(2, 2, width_ratios=(5, 1.2), height_ratios=(1.2, 5), wspace=0.05, hspace=0.05, left=0.12, right=0.86,
                                   top=0.94, bottom=0.12)
        cells = figure.add_subplot(grid[1, 0])
        image = cells.imshow(blocks, cmap="RdBu", vmin=-SHADES, vmax=SHADES, aspect="auto", interpolation="nearest",
                             extent=(0, len(begins), len(begins), 0))
        above, beside = figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[1, 1])
        # A node stands within its leaf's cells.
        places = [leaf + (at - a + 0.5) / (b - a) for leaf, (a, b) in enumerate(zip(begins, ends)) for at in range(a, b)]
        for axes, values, is_above in ((above, median(0), True), (beside, median(1), False)):
            axes.plot(*((places, values) if is_above else (values, places)), "o", color=style.INK, markersize=1.8, markeredgewidth=0)
            slow = [at for at, value in enumerate(values) if value < slow_below]
            chosen = [places[at] for at in slow], [values[at] for at in slow]
            axes.plot(*(chosen if is_above else chosen[::-1]), "o", color="#b2182b", markersize=4, markeredgewidth=0)
            for at in slow[:4]:
                axes.annotate(names[at], (places[at], values[at]) if is_above else (values[at], places[at]), fontsize=7, color="#b2182b",
                              xytext=(4, 2), textcoords="offset points")
            axes.tick_params(labelsize=7)
        above.set_xlim(0, len(begins))
        above.set_xticks([])
        beside.set_ylim(len(begins), 0)
        beside.set_yticks([])
        above.set_title("each node: median received, percent", fontsize=8, loc="left")
        beside.set_title("sent", fontsize=8, loc="left")
        step = max(1, len(begins) // 32)
        labels = [leaves[at].removeprefix("leaf ") or names[at] for at in begins][::step]
        ticks = [at + 0.5 for at in range(len(begins))][::step]
        cells.set_xticks(ticks, labels, rotation=90, fontsize=7)
        cells.set_yticks(ticks, labels, fontsize=7)
        cells.set_xlabel("receiver's leaf")
        cells.set_ylabel("sender's leaf")
        colours = figure.colorbar(image, cax=figure.add_axes((0.88, 0.12, 0.02, 0.6)))
        colours.set_label("percent of the fleet's level, median", fontsize=8)
        colours.ax.tick_params(labelsize=7)
        return figure

    def draw():
        if len(order) > MOST_CELLS and len(set(leaves)) > 1:
            return draw_leaves()
        side = 5.2 if many else max(3.2, 0.13 * len(order) + 2.4)
        figure = new_figure(side + 1.5, side + 0.9)
        grid = figure.add_gridspec(2, 2, width_ratios=(side, 0.35), height_ratios=(0.35, side), wspace=0.04, hspace=0.04,
                                   left=0.12, right=0.88, top=0.96, bottom=0.12)
        cells = figure.add_subplot(grid[1, 0])
        options = {"cmap": "RdBu", "vmin": -SHADES, "vmax": SHADES, "aspect": "auto", "interpolation": "nearest"}
        image = cells.imshow(sorted_cells, **options)
        above, beside = figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[1, 1])
        above.imshow(median(0)[None, :], **options)
        beside.imshow(median(1)[:, None], **options)
        for axes in (above, beside):
            axes.set_xticks([])
            axes.set_yticks([])
        above.set_title("median received", fontsize=8, loc="left")
        beside.set_title("sent", fontsize=8, loc="left")
        if many:
            begins = [at for at in range(len(order)) if at == 0 or leaves[at] != leaves[at - 1]]
            places, labels = begins, [leaves[at] or names[at] for at in begins]
        else:
            places, labels = list(range(len(order))), names
        cells.set_xticks(places, labels, rotation=90, fontsize=7)
        cells.set_yticks(places, labels, fontsize=7)
        for at in range(1, len(order)):
            if leaves[at] != leaves[at - 1]:
                cells.axhline(at - 0.5, color=style.INK, linewidth=0.6)
                cells.axvline(at - 0.5, color=style.INK, linewidth=0.6)
        cells.set_xlabel("receiver")
        cells.set_ylabel("sender")
        figure.colorbar(image, ax=[above, cells, beside], fraction=0.03, pad=0.02).set_label("percent of the fleet's level", fontsize=8)
        return figure

    worst = numpy.nanmin(sorted_cells)
    at = numpy.unravel_index(numpy.nanargmin(sorted_cells), sorted_cells.shape)
    is_by_leaf = len(order) > MOST_CELLS and len(set(leaves)) > 1
    what = f"{len(set(leaves))} leaves by as many, with a mark for each of {len(order)} nodes beside it" if is_by_leaf else \
        f"{len(order)} senders by {len(order)} receivers, sorted by leaf"
    alt = (f"A square of {what}. Red is slower than the fleet, blue faster, white as fast. The slowest cell is {names[at[0]]} to "
           f"{names[at[1]]}, {worst:+.1f} %.")
    return drawn(name, f"Who reaches whom how fast{where}: the median of the first pass, against the fleet", alt, "matrix", "", draw)


def tests_of(finding: dict) -> list[tuple[int, int, str, float]]:
    """Visit, round, direction and percent of each test, in the order of time."""
    found = []
    for item in finding.get("over_time") or []:
        if isinstance(item, list) and len(item) == 4 and all(is_number(item[at]) for at in (0, 1, 3)):
            found.append((int(item[0]), int(item[1]), "in" if item[2] == "in" else "out", 100 * float(item[3])))
    return sorted(found)


def time_line(document: dict, finding: dict, at: int):
    """The tests of a suspect over time: the first pass in windows, then each visit of repeats."""
    tests = tests_of(finding)
    if not tests:
        return None
    nodes = [style.plain(name) for name in finding.get("nodes") or []]
    who = " and ".join(nodes) or "a suspect"
    rail = f" on rail {style.plain(finding['rail'])}" if finding.get("rail") else ""
    visits = sorted({visit for visit, *_ in tests})
    # Each visit has a part of the axis of its own; the first pass has twice as much.
    widths = [2.0 if visit == 0 else 1.0 for visit in visits]
    begins = [sum(widths[:index]) for index in range(len(widths))]
    last = {visit: max(round_ for one, round_, *_ in tests if one == visit) for visit in visits}
    if is_number(document.get("rounds")):  # of a pass that has a round for each direction; the same on each rail
        last[0] = max(last.get(0, 0), 2 * document["rounds"] // max(1, len(rails_of(document))) - 1)

    def place(visit: int, round_: int) -> float:
        index = visits.index(visit)
        return begins[index] + widths[index] * (0.05 + 0.9 * round_ / max(last[visit], 1))

    labels = {"out": f"{nodes[0]} to {nodes[1]}", "in": f"{nodes[1]} to {nodes[0]}"} if len(nodes) == 2 else {"out": "sends", "in": "receives"}
    margin = -100 * document["margin"] if is_number(document.get("margin")) else None

    def draw():
        figure = new_figure(6.4, 1.9)
        axes = figure.add_axes((0.1, 0.26, 0.88, 0.6))
        for index, visit in enumerate(visits):
            if index % 2:
                axes.axvspan(begins[index], begins[index] + widths[index], color=style.INK, alpha=0.06, linewidth=0)
            if visit == 0:  # windows of the first pass, in which spells show
                for window in range(1, WINDOWS):
                    axes.axvline(begins[index] + widths[index] * window / WINDOWS, color=style.INK, linewidth=0.3, alpha=0.5)
        for way, marker, colour in (("out", "o", "#b2182b"), ("in", "s", "#2166ac")):
            points = [(place(visit, round_), value) for visit, round_, one, value in tests if one == way]
            if points:
                axes.plot(*zip(*points), marker, color=colour, markersize=2.6, markeredgewidth=0, label=labels[way])
        axes.axhline(0, color=style.INK, linewidth=0.6)
        if margin is not None:
            axes.axhline(margin, color=style.INK, linewidth=0.6, linestyle="--")
        axes.set_xlim(0, sum(widths))
        names = ["first pass" if visit == 0 else f"visit {visit}" for visit in visits]
        axes.set_xticks([begin + width / 2 for begin, width in zip(begins, widths)], names, fontsize=7)
        axes.tick_params(axis="x", length=0)
        axes.tick_params(axis="y", labelsize=7)
        axes.set_ylabel("percent", fontsize=7)
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncol=2, fontsize=7, frameon=False, borderaxespad=0)
        return figure

    middle = numpy.median([value for *_, value in tests])
    repeats = len(visits) - (0 in visits)
    alt = (f"{len(tests)} tests of {who}{rail} in the order of time, in percent of the level: the first pass in {WINDOWS} windows, then "
           f"{repeats} {'visit' if repeats == 1 else 'visits'} of repeats. Their median is {middle:+.1f} %. The dashed line is the margin.")
    return drawn(f"time-{at}", f"{who}{rail}: {'their' if len(nodes) == 2 else 'its'} tests over time", alt, "time", "", draw)


def time_lines(document: dict) -> list:
    """As many as a page can take: nodes before links, then the worst first."""
    findings = [(at, finding) for at, finding in enumerate(document.get("findings") or []) if isinstance(finding, dict) and tests_of(finding)]
    findings.sort(key=lambda item: len(item[1].get("nodes") or []))
    return [time_line(document, finding, at) for at, finding in findings[:MOST_TIME_LINES]]


def findings_of(document: dict) -> list[dict]:
    """What is not PASS, as text."""
    return [{"verdict": style.plain(item.get("verdict") or ""), "what": style.plain(item.get("class") or ""),
             "nodes": ", ".join(style.plain(name) for name in item.get("nodes") or []) or style.plain(item.get("leaf") or "fleet"),
             "rail": style.plain(item.get("rail") or ""),
             "by": percent(item.get("of_fleet")), "low": percent(item.get("low")), "high": percent(item.get("high")),
             "tests": style.plain(item.get("tests")), "visits": style.plain(item.get("visits")),
             "sentence": style.plain(item.get("sentence") or "")}
            for item in document.get("findings") or [] if isinstance(item, dict)]


def lines_of(document: dict, nodes: list[dict]) -> list[dict]:
    """A line for each node, or for each node and rail."""
    if not rails_of(document):
        return nodes
    by_rail = [(rail["rail"], {item.get("node"): item for item in rail.get("nodes") or [] if isinstance(item, dict)})
               for rail in rails_of(document)]
    return [{**item, **{key: value for key, value in of_rail.get(item["node"], {}).items()}, "rail": name,
             "alone": item.get("alone") if at == 0 else None} for item in nodes for at, (name, of_rail) in enumerate(by_rail)]


def nodes_of(nodes: list[dict]) -> list[dict]:
    """Each line as text: those that did not pass first."""
    def worse_first(item: dict) -> int:
        return 0 if item.get("verdict") != "PASS" else 1
    return [{**{name: style.plain(item.get(name) or "") for name in ("node", "rail", "leaf", "verdict", "reason")},
             **{name: percent(item.get(name)) for name in ("alone", "out", "in", "latency")},
             "tests": style.plain(item.get("tests"))} for item in sorted(nodes, key=worse_first)]


def inventory_of(document: dict) -> list[dict]:
    """What differs between hosts, and what would spoil a measurement there, as text."""
    return [{name: style.plain(item.get(name) or "") for name in ("severity", "what", "why", "advice")}
            for item in document.get("inventory") or [] if isinstance(item, dict)]


def time_text(us: float) -> str:
    """A time in us, ms or s."""
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if us >= size:
            return f"{us / size:.3g} {unit}"
    return f"{us:.3g} us"


def groups_of(document: dict) -> dict | None:
    """A row for each size of groups, a column for each test; None where no group played."""
    tests, rows = [], {}
    for item in document.get("groups") or []:
        if not isinstance(item, dict) or not all(is_number(item.get(name)) for name in ("nodes", "bytes", "busbw_gbps")):
            continue
        test = f"{style.plain(item.get('collective') or '')} {item['bytes']:,} B"
        if test not in tests:
            tests.append(test)
        short = item["bytes"] < 1024  # a bandwidth of fewer bytes says less than their time
        speed = item["busbw_gbps"]
        text = time_text(1e-3 * item["bytes"] / speed) if short and speed > 0 else f"{speed:.4g} GB/s"
        rows.setdefault(item["nodes"], {})[test] = text
    lines = [{"nodes": str(nodes), "cells": [rows[nodes].get(test, "") for test in tests]} for nodes in sorted(rows)]
    return {"tests": tests, "lines": lines} if lines else None


def speeds_of(rail: dict) -> str:
    """The levels of a rail."""
    fleet = rail.get("fleet") or {}
    words = [f"{fleet[name] / 1e9:.4g} GB/s {where}" for name, where in (("near_bytes_per_second", "within a leaf"),
             ("far_bytes_per_second", "between leaves")) if is_number(fleet.get(name))]
    return ", ".join(words)


def sentences_of(document: dict, key: str) -> str:
    """The sentences of a list, behind each other."""
    return " ".join(f"{text}." for text in document.get(key) or [] if isinstance(text, str))


def facts_of(document: dict) -> list[tuple[str, str]]:
    """What the verdict rests on, and how long it holds."""
    fleet = document.get("fleet") or {}
    def speed(name: str) -> str:
        value = fleet.get(name)
        return f"{value / 1e9:.4g} GB/s" if is_number(value) else ""
    pairs = f"{document.get('tested_pairs')} of {document.get('pairs')}, {document.get('rounds')} rounds and {document.get('repeat_rounds')} of repeats"
    validity = "a pretended cluster: nothing was measured" if document.get("is_pretended") else \
        f"{document.get('valid_hours')} h after {document.get('ended')}"
    init = document.get("init") or {}
    times = f"{init['median_s']:.2f} s in the median, {init['most_s']:.2f} s at most: {', '.join(map(str, init.get('slowest') or []))}" \
        if is_number(init.get("median_s")) and is_number(init.get("most_s")) else ""
    of_rails = [(f"a pair on rail {rail['rail']}", speeds_of(rail)) for rail in rails_of(document)]
    found = [*of_rails, ("a pair within a leaf", speed("near_bytes_per_second")), ("a pair between leaves", speed("far_bytes_per_second")),
             ("latency", f"{fleet['latency_us']:.3g} us" if is_number(fleet.get("latency_us")) else ""),
             ("spread of nodes", percent(fleet.get("spread_of_nodes")).lstrip("+") + " %"),
             ("spread of repeats", percent(fleet.get("spread_of_repeats")).lstrip("+") + " %"),
             ("from the start of processes to their first collective", times),
             ("pairs", pairs), ("not tested", sentences_of(document, "untested")), ("dips", sentences_of(document, "dips")),
             ("slow alike", document.get("alike") if isinstance(document.get("alike"), str) else ""),
             ("margin", f"{100 * document['margin']:g} %" if is_number(document.get("margin")) else ""),
             ("operations of the soak, each verified", f"{document['soaked_operations']:,}" if document.get("soaked_operations") else ""),
             ("confidence", style.plain(document.get("confidence"))), ("valid", validity), ("command", document.get("command") or ""),
             ("build", document.get("build") or ""), ("began", document.get("began") or ""), ("ended", document.get("ended") or "")]
    return [(name, style.plain(value)) for name, value in found if value and value.strip(" %")]


def render(document: dict) -> str:
    """The page as text."""
    document = style.plain_texts(document)
    nodes = [item for item in document.get("nodes") or [] if isinstance(item, dict) and isinstance(item.get("node"), str)]
    pictures = heat_maps(document, nodes)
    shown = [{"name": picture.name, "title": picture.title, "alt": picture.alt, "svg": Markup(picture.svg)} for picture in time_lines(document)]
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(FOLDER), autoescape=True, trim_blocks=True,
                                     lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    sheet = (FOLDER / "page.css").read_text()
    excluded = [style.plain(name) for name in document.get("excluded") or []]
    reasons = {item["node"]: style.plain(item.get("reason") or "") for item in nodes}
    excluded_why = [f"{name}: {reasons[name]}" for name in excluded if reasons.get(name)]
    return environment.get_template("accept.html.j2").render(
        verdict=f"tutti accept: {style.plain(document.get('sentence') or '')}", mood=MOODS.get(document.get("verdict"), "doubtful"),
        findings=findings_of(document), nodes=nodes_of(lines_of(document, nodes)), has_rails=bool(rails_of(document)), excluded=excluded, excluded_why=excluded_why, facts=facts_of(document),
        inventory=inventory_of(document), groups=groups_of(document),
        pictures=[{"name": picture.name, "title": picture.title, "alt": picture.alt, "svg": Markup(picture.svg)} for picture in pictures],
        time_lines=shown, sheet=Markup(sheet))
