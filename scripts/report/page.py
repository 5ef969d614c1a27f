# SPDX-License-Identifier: Apache-2.0
"""The HTML page of a bundle: one file that needs no other."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

import jinja2
from markupsafe import Markup

import history
import sentences
import style
from pictures_base import Picture
from pictures_data import is_positive, sides, source_name, starter_name, worst_first
from pictures_numbers import digits_text, is_number, ratio_text, supported_digits

FOLDER = Path(__file__).resolve().parent
# The table has at most so many rows; the result file has all of them.
MOST_ROWS = 5000
ORDER = ("history", "overview", "time", "busbw", "heat", "samples", "launches", "skew")
HEADINGS = {
    "history": "History", "overview": "Overview",
    "time": "Time and ratio", "busbw": "Bus bandwidth", "heat": "All cells at a glance",
    "samples": "Distribution of samples", "launches": "Launches", "skew": "Arrival skew",
}
# Column, heading, unit, and whether it is a number.
COLUMNS = (
    ("collective", "collective", "", False), ("backend", "system", "", False), ("bytes", "size", "B", True),
    ("verdict", "verdict", "", False), ("marks", "marks", "", False), ("file", "file", "", False),
    ("starter", "starter", "", False), ("algorithm", "algorithm", "", False), ("transport", "transport", "", False), ("ranks", "ranks", "", True), ("dtype", "dtype", "", False),
    ("op", "op", "", False), ("root", "root", "", False), ("placement", "placement", "", False),
    ("buffers", "buffers", "", False), ("launch", "launch", "", True),
    ("time_median", "time", "us", True), ("time_ci_low", "from", "us", True), ("time_ci_high", "to", "us", True),
    ("algbw", "algbw", "GB/s", True), ("busbw", "busbw", "GB/s", True), ("limit_fraction", "of the limit", "%", True),
    ("samples", "samples", "", True), ("disturbed", "disturbed", "", False), ("reason", "reason", "", False),
)
# What alone tells two rows of one case apart: a column where rows differ in it.
IS_SHOWN_WHERE_ROWS_DIFFER = {"file", "starter"}
# Columns that say the same in every row are told once.
CONSTANT_IS_TOLD_ONCE = {"algorithm", "transport", "ranks", "dtype", "op", "root", "placement", "buffers", "launch",
                         "disturbed", "reason"}


def cell_text(name: str, row: dict) -> str:
    """A value of a row as it is read."""
    value = row.get(name)
    if value is None:
        return ""
    if name == "bytes" and is_number(value):
        return style.bytes_text(value)
    if name == "limit_fraction" and is_number(value):
        return digits_text(100 * value, 2)
    if isinstance(value, float):
        return digits_text(value, digits_of(row))
    return style.plain(value)


def digits_of(row: dict) -> int:
    """The digits of a row's measured values: as many as its interval supports, at most four; without one, two."""
    time, low, high = (row.get(name) for name in ("time_median", "time_ci_low", "time_ci_high"))
    if not (is_number(time) and is_number(low) and is_number(high)) or time == 0:
        return 2
    return min(4, max(1, supported_digits(time, low, high)))


def row_class(row: dict) -> str:
    """The state by which a row is told apart: its verdict, or its mark."""
    verdict = str(row.get("verdict") or "missing")
    if verdict != "ok":
        return verdict if verdict in sentences.VERDICTS else "missing"
    marks = row.get("marks") or ""
    return "noisy" if "noisy" in marks else "floor" if "floor" in marks else "ok"


def table_of(bundle: dict) -> dict:
    """The table of rows: its columns, its rows, and what is the same in all of them."""
    rows = [{**row, "file": source_name(bundle, row.get("source") or 0), "starter": starter_name(row.get("starter") or "")}
            for row in bundle["rows"][:MOST_ROWS]]
    columns, once = [], []
    for name, heading, unit, is_numeric in COLUMNS:
        values = {json.dumps(row.get(name)) for row in rows}
        if name in IS_SHOWN_WHERE_ROWS_DIFFER and len(values) < 2:
            continue
        if len(values) == 1 and len(rows) > 1 and name in CONSTANT_IS_TOLD_ONCE:
            text = cell_text(name, rows[0])
            if text and text != "none":
                once.append(f"{heading} {text}")
        else:
            columns.append({"name": name, "heading": f"{heading} ({unit})" if unit and unit != "B" else heading,
                            "number": is_numeric})
    lines = [{"state": row_class(row), "case": style.plain(row.get("case") or ""),
              "cells": [{"text": cell_text(column["name"], row),
                         "raw": "" if row.get(column["name"]) is None else style.plain(row[column["name"]]),
                         "number": column["number"]} for column in columns]} for row in rows]
    return {"columns": columns, "rows": lines, "once": once, "all": len(bundle["rows"])}


def judged_of(bundle: dict) -> list[dict]:
    """The cells that a gate, a comparison or guidelines judged, as text, worst first."""
    return [{"verdict": style.plain(item.get("verdict") or ""), "cell": style.plain(item.get("cell") or ""),
             "ratio": ratio_text(item.get("ratio")) if is_number(item.get("ratio")) else "",
             "low": digits_text(item["low"], 3) if is_number(item.get("low")) else "",
             "high": digits_text(item["high"], 3) if is_number(item.get("high")) else "",
             "floor": digits_text(item["floor"], 2) if is_number(item.get("floor")) else "",
             **{side: digits_text(item[side], 4) if is_number(item.get(side)) else "" for side in ("this_us", "other_us")},
             "reason": style.plain(item.get("reason") or "")} for item in worst_first(bundle["judged"])]


def pairs_of(value: object, prefix: str = "") -> list[tuple[str, str]]:
    """A nested object as names and texts."""
    if isinstance(value, dict):
        return [pair for name, item in value.items() for pair in pairs_of(item, f"{prefix}.{name}" if prefix else str(name))]
    if value is None or value == [] or value == "":
        return []
    return [(style.plain(prefix), style.plain(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)))]


def sources_of(bundle: dict) -> list[dict]:
    """Command, seed, machine and versions of each source."""
    return [{"file": style.plain(source.get("file") or ""), "facts": pairs_of(
        {name: source.get(name) for name in ("kind", "command", "seed", "started", "machine", "versions", "environment",
                                             "measurement", "bound", "this", "other", "counts", "unfinished")})}
            for source in bundle["sources"]]


def percent_text(value: object) -> str:
    """A share as percent."""
    return f"{100 * value:.1f} %" if is_number(value) else ""


def microseconds_text(value: object) -> str:
    """A time with two digits after the point."""
    return f"{value:.2f}" if is_number(value) else ""


def ranks_of(bundle: dict) -> list[dict]:
    """What each rank came to, by source and number of ranks; the worst first. A damaged entry is left aside."""
    lines = []
    for number, source in enumerate(bundle["sources"]):
        ranks = source.get("ranks")
        for group, ranks in (ranks.items() if isinstance(ranks, dict) else ()):
            for one in [one for one in ranks if isinstance(one, dict)] if isinstance(ranks, list) else []:
                share = {name: one[last] / one[taken] if is_number(one.get(last)) and is_positive(one.get(taken)) else None
                         for name, last, taken in (("came", "came_last", "samples"), ("ended", "ended_last", "ended_samples"))}
                lines.append({
                    "file": source_name(bundle, number), "group": style.plain(group), "rank": style.plain(one.get("rank")),
                    "host": style.plain(one.get("host") or ""), "came": percent_text(share["came"]),
                    "waited": percent_text(one.get("waited_share")),
                    "median": microseconds_text(one.get("waited_median_us")), "p95": microseconds_text(one.get("waited_p95_us")),
                    "ended": percent_text(share["ended"]),
                    "own": f"{100 * one['own_ratio'] - 100:+.1f} %" if is_number(one.get("own_ratio")) else "",
                    "straggler": "straggler" if one.get("comes_late") is True or one.get("ends_late") is True else ""})
    return lines


def left_out_text(item: object) -> str:
    """What a run left out: its cells and the reason."""
    return f"{item.get('cells')} x {item.get('reason')}" if isinstance(item, dict) else str(item)


def left_out_of(bundle: dict, left_out: list[str]) -> list[str]:
    """All that the page does not show."""
    found = [*left_out, *(history.left_out(bundle) if bundle["history"] else []), *bundle["omitted"]]
    for source in bundle["sources"]:
        found += [left_out_text(item) for item in source.get("left_out") or []]
    if len(bundle["rows"]) > MOST_ROWS:
        found.append(f"Table: the first {MOST_ROWS} of {len(bundle['rows'])} rows are shown; the file has all of them.")
    return [style.plain(text) for text in found]


def digest(text: str) -> str:
    """What a content security policy names a script or style by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def render(bundle: dict, drawn: list[Picture], left_out: list[str]) -> str:
    """The page as text."""
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(FOLDER), autoescape=True, trim_blocks=True,
                                     lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    sheet, script = (FOLDER / "page.css").read_text(), (FOLDER / "page.js").read_text()
    sections = [{"kind": kind, "heading": HEADINGS[kind], "pictures": [
        {"name": picture.name, "title": picture.title, "alt": picture.alt, "svg": Markup(picture.svg)}
        for picture in drawn if picture.kind == kind]} for kind in ORDER]
    sections.append({"kind": "schedules", "heading": "How the algorithms work", "pictures": [
        {"name": f"schedule-{item['name']}", "title": item["title"], "alt": item["alt"], "svg": Markup(item["svg"])}
        for item in bundle.get("schedules") or []]})
    judged_pictures = [{"name": picture.name, "title": picture.title, "alt": picture.alt, "svg": Markup(picture.svg)}
                       for picture in drawn if picture.kind == "judged"]
    return environment.get_template("page.html.j2").render(
        verdict=style.plain(sentences.verdict(bundle)), mood=sentences.mood(bundle),
        title=style.plain(sentences.what_was_measured(bundle)), made_by=style.plain(bundle.get("made_by") or "tutti"),
        made=style.plain(bundle.get("made") or ""), sections=[section for section in sections if section["pictures"]],
        history=history.table(bundle) if bundle["history"] else [],
        judged=judged_of(bundle), judged_pictures=judged_pictures, sides=sides(bundle), table=table_of(bundle),
        verdicts=sentences.VERDICTS, marks=sentences.MARKS,
        disturbances=[style.plain(text) for text in sentences.disturbances(bundle)],
        ranks=ranks_of(bundle)[:MOST_ROWS], left_out=left_out_of(bundle, left_out), sources=sources_of(bundle),
        sheet=Markup(sheet), script=Markup(script), script_digest=digest(script))
