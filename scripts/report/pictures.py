# SPDX-License-Identifier: Apache-2.0
"""All pictures of a bundle, in the order of the page."""

from __future__ import annotations

from typing import Callable

import history
import pictures_cells as cells
import pictures_overview as overview
import pictures_series as curves
import style
from pictures_base import Picture, drawn
from pictures_data import Series, all_series, row_names, sides, worst_first

# A page with more pictures is slow to open, and nobody reads it.
MOST_OF_A_KIND = {"overview": 4, "time": 16, "busbw": 10, "heat": 4, "samples": 4, "launches": 6, "skew": 4, "judged": 4}
MOST_JUDGED = 40
WORDS = {"overview": "overviews", "time": "time against size", "busbw": "bus bandwidth", "heat": "heat maps",
         "samples": "samples", "launches": "launches", "skew": "arrival skew", "judged": "judged cells"}


def all_pictures(bundle: dict) -> list[Picture]:
    """The pictures of the bundle, in the order of the page."""
    if bundle.get("history"):
        return history.all_pictures(bundle)
    return [recipe() for kind in WORDS for recipe in recipes(bundle, kind)[: MOST_OF_A_KIND[kind]]]


def left_out_pictures(bundle: dict) -> list[str]:
    """Sentences about what is not drawn."""
    left_out = []
    for kind, words in WORDS.items():
        found, most = len(recipes(bundle, kind)), MOST_OF_A_KIND[kind]
        if found > most:
            left_out.append(f"Pictures of {words}: {most} of {found} are drawn; the table has all cells.")
    return left_out


def recipes(bundle: dict, kind: str) -> list[Callable[[], Picture]]:
    """What draws each picture of a kind: to count them costs little."""
    if kind == "overview":
        return [recipe_of("overview", number, f"Overview: {one.title}", "", overview.overview_alt,
                          overview.draw_overview, one)
                for number, one in enumerate(overview.overviews(all_series(bundle)))]
    if kind == "heat":
        return heat_recipes(bundle)
    if kind == "samples":
        return [recipe_of("samples", number, f"Samples: {style.short(cell, 100)}", collective_of(cell),
                          cells.samples_alt, cells.draw_samples, cell, items)
                for number, (cell, items) in enumerate(chosen_samples(bundle))]
    if kind == "judged":
        judged = worst_first(bundle.get("judged") or [])
        parts = [judged[first: first + MOST_JUDGED] for first in range(0, len(judged), MOST_JUDGED)]
        return [recipe_of("judged", number, f"Judged cells: {' against '.join(sides(bundle))}", "", cells.judged_alt,
                          cells.draw_judged, part, sides(bundle))
                for number, part in enumerate(parts)]
    return [series_recipe(kind, series, bundle) for series in all_series(bundle) if is_drawn(kind, series)]


def is_drawn(kind: str, series: Series) -> bool:
    """Says whether the series has what the picture shows."""
    if kind == "busbw":
        return curves.has_bandwidth(series)
    if kind == "skew":
        return curves.has_skew(series)
    if kind == "time":
        return curves.has_times(series)
    return bool(curves.launch_cells(series))


def series_recipe(kind: str, series: Series, bundle: dict) -> Callable[[], Picture]:
    """A picture of one series."""
    rows = bundle.get("rows") or []
    title = f"{WORDS[kind].capitalize()}: {series.title}"
    if kind == "launches":
        return recipe_of(kind, series.index, title, series.collective, curves.launches_alt,
                         curves.draw_launches, series, rows)
    draw = {"time": curves.draw_time, "busbw": curves.draw_bandwidth, "skew": curves.draw_skew}[kind]
    alt = {"time": curves.time_alt, "busbw": curves.bandwidth_alt, "skew": curves.skew_alt}[kind]
    return recipe_of(kind, series.index, title, series.collective, alt, draw, series)


def recipe_of(kind: str, number: int, title: str, group: str, alt, draw, *data) -> Callable[[], Picture]:
    """Draws one picture and tells it in words, both from the same data."""
    name = f"{kind}-{group or 'all'}-{number + 1}"
    return lambda: drawn(name, title, alt(*data), kind, group, lambda: draw(*data))


def heat_recipes(bundle: dict) -> list[Callable[[], Picture]]:
    """A heat map for each reference, and one of the limit's share."""
    every = [series for series in all_series(bundle) if series.has_sizes]
    maps = []
    for reference in cells.references_of(every):
        rows = cells.heat_rows([series for series in every if any(other == reference for _, other in series.pairs())])
        maps.append((rows, cells.ratio_values(rows, reference), f"Time of tutti / time of {style.short(reference)}", True))
    rows = cells.heat_rows(cells.of_first_starter(every))
    maps.append((rows, cells.share_values(rows), "Share of the machine's limit that tutti reaches", False))
    found = []
    for rows, values, title, is_ratio in maps:
        if len(values) > 1:
            common = overview.title_of(overview.shared_fields(rows))
            title = f"{title}: {common}" if common else title
            found.append(recipe_of("heat", len(found), title, "", cells.heat_alt, cells.draw_heat, rows, row_names(rows),
                                   values, title, is_ratio))
    return found


def chosen_samples(bundle: dict) -> list[tuple[str, list[dict]]]:
    """The cells whose samples are drawn first: evenly over all that there are."""
    groups = list(cells.sample_groups(bundle).items())
    most = MOST_OF_A_KIND["samples"]
    if len(groups) <= most:
        return groups
    places = [round(place * (len(groups) - 1) / (most - 1)) for place in range(most)]
    return [groups[place] for place in places] + [group for place, group in enumerate(groups) if place not in places]


def collective_of(cell: str) -> str:
    """The collective of a cell's name."""
    return cell.split("/", 1)[0]
