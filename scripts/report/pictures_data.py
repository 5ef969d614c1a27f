# SPDX-License-Identifier: Apache-2.0
"""The bundle as curves over sizes, and sentences about their states."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Iterable

from pictures_numbers import counted, is_number, ratio_text, with_interval
from style import bytes_text, joined, short

# What is told of a cell, the gravest first; the first five are verdicts, the others marks of a verdict ok.
NOT_OK = ("wrong", "error", "unchecked", "skipped", "missing")
NOISY = "noisy"
NEAR_FLOOR = "near floor"
# Verdicts of judged cells, the gravest first.
GRAVITY = ("wrong", "slower", "missing", "not comparable", "invalid", "undecided", "too short", "faster", "same")
# So many cells of one state are named.
MOST_NAMED = 3
FIELDS = ("collective", "transport", "dtype", "op", "ranks", "root", "placement", "buffers", "cadence")
# The order of collectives in pictures; others follow in the order of their first cells.
COLLECTIVES = ("broadcast", "reduce", "all_reduce", "gather", "all_gather", "scatter", "reduce_scatter", "all_to_all",
               "barrier", "sendrecv")
PLACEMENTS = {"in": "in place", "out": "out of place"}


@dataclass(frozen=True)
class Series:
    """The cells that differ in nothing but bytes: a curve for each system."""

    index: int
    source: int
    series: str
    starter: str
    collective: str
    title: str
    cells: list[dict] = field(repr=False)
    curves: list[str] = field(repr=False)

    @property
    def has_sizes(self) -> bool:
        """Says whether size is an axis; a barrier has no bytes."""
        return any(size_of(cell) > 0 for cell in self.cells)

    def points(self, curve: str) -> list[tuple[dict, dict]]:
        """The cells of one curve with what its system measured there, by size."""
        return [(cell, system) for cell in self.cells for system in cell["systems"] if system["curve"] == curve]

    def pairs(self) -> list[tuple[str, str]]:
        """The curves that have a ratio, each with its reference."""
        return list(dict.fromkeys((item["curve"], item["reference"]) for cell in self.cells for item in ratios(cell)))

    def ratios(self, curve: str, reference: str) -> list[tuple[dict, dict]]:
        """The cells with a ratio of the curve to the reference."""
        return [(cell, item) for cell in self.cells for item in ratios(cell)
                if (item["curve"], item["reference"]) == (curve, reference) and is_positive(item["ratio"])]


def ratios(cell: dict) -> list[dict]:
    """The ratios of a cell."""
    return cell.get("ratios") or []


def is_positive(value: object) -> bool:
    """Says whether a logarithmic axis can show the value."""
    return is_number(value) and value > 0


def size_of(cell: dict) -> float:
    """The bytes of a cell; 0 where there are none."""
    return cell["bytes"] if is_positive(cell.get("bytes")) else 0


def all_series(bundle: dict) -> list[Series]:
    """The series of the bundle: of one source and starter together, in the order of COLLECTIVES."""
    groups: dict[tuple, list[dict]] = {}
    every = bundle.get("cells") or []
    has_settings = any("{" in str(cell.get("starter") or "") for cell in every)
    for cell in every:
        key = (cell.get("source") or 0, str(cell.get("series") or ""), starter_of_panel(cell, has_settings))
        groups.setdefault(key, []).append(cell)
    groups = {key: merged(cells) for key, cells in in_order(groups).items()}
    sources = {key[0] for key in groups}
    starters: dict[tuple, set[str]] = {}
    for source, series, starter in groups:
        starters.setdefault((source, series), set()).add(starter)
    result = []
    for index, ((source, series, starter), cells) in enumerate(groups.items()):
        title = series_title(series) + crowd_text(bundle, source, cells[0])
        if len(starters[(source, series)]) > 1:
            title += f", started by {starter_name(starter)}"
        if len(sources) > 1:
            title += f" [{source_name(bundle, source)}]"
        cells = sorted(cells, key=size_of)
        result.append(Series(index, source, series, starter, str(cells[0].get("collective") or ""), title, cells,
                             curves_of(cells)))
    return result


def starter_of_panel(cell: dict, has_settings: bool) -> str:
    """Who started what one picture shows. Systems of one library under several settings, which no others were started with,
    are in one: their names tell them apart."""
    starter = str(cell.get("starter") or "")
    curves = [str(system.get("curve") or "") for system in cell.get("systems") or []]
    are_its_own = bool(starter) and all(curve.startswith(starter) for curve in curves)
    return starter.partition("{")[0] if has_settings and are_its_own else starter


def merged(cells: list[dict]) -> list[dict]:
    """Cells of one id as one, with the systems of all."""
    by_id: dict[str, dict] = {}
    for cell in cells:
        known = by_id.setdefault(str(cell.get("cell") or ""), {**cell, "systems": [], "ratios": []})
        known["systems"] = [*known["systems"], *(cell.get("systems") or [])]
        known["ratios"] = [*known["ratios"], *(cell.get("ratios") or [])]
    return list(by_id.values())


def crowd_text(bundle: dict, source: int, cell: dict) -> str:
    """`, oversubscribed: 8 ranks on 2 cores`; empty where each rank has a core, or where cores are not known. Of several
    hosts each is taken to have as many."""
    sources = bundle.get("sources") or []
    machine = (sources[source].get("machine") if source < len(sources) else None) or {}
    cores, ranks = machine.get("cores_allowed"), cell.get("ranks")
    is_of_cores = ".processes" in str(cell.get("series")) or ".threads" in str(cell.get("series"))
    if not (is_of_cores and is_positive(cores) and is_positive(ranks)):
        return ""
    cores *= max(1, len(hosts_of(cell)))
    return f", oversubscribed: {ranks} ranks on {counted(cores, 'core')}" if ranks > cores else ""


def hosts_of(cell: dict) -> list[str]:
    """Names of the hosts that the ranks are on, where these are several: of `a:2,b:2` a and b."""
    return [host.rpartition(":")[0] for host in str(cell.get("hosts") or "").split(",") if ":" in host]


def in_order(groups: dict[tuple, list[dict]]) -> dict[tuple, list[dict]]:
    """The groups by source, starter and collective: a run walks its cells in a random order."""
    starters = list(dict.fromkeys(starter for _, _, starter in groups))

    def place(key: tuple) -> tuple[int, int, int]:
        source, series, starter = key
        return source, starters.index(starter), place_of_collective(series.split("/", 1)[0])

    return {key: groups[key] for key in sorted(groups, key=place)}


def place_of_collective(name: str) -> int:
    """Where a collective stands in pictures."""
    return COLLECTIVES.index(name) if name in COLLECTIVES else len(COLLECTIVES)


def source_name(bundle: dict, source: int) -> str:
    """The file of a source without its folder."""
    sources = bundle.get("sources") or []
    name = str(sources[source].get("file") or "") if 0 <= source < len(sources) else ""
    return short(name.rsplit("/", 1)[-1] or f"source {source + 1}")


def is_comparison(bundle: dict) -> bool:
    """Says whether the page is that of `tutti compare`."""
    return any(source.get("kind") == "compare" for source in bundle["sources"])


def sides(bundle: dict) -> tuple[str, str]:
    """What was judged, and what it was judged against."""
    for source in bundle["sources"]:
        if source.get("this") and source.get("other"):
            return tuple(short(str(source[side]).rsplit("/", 1)[-1], 60) for side in ("this", "other"))
    return "this", "the other"


def worst_first(judged: list[dict]) -> list[dict]:
    """Judged cells by the gravity of their verdicts; of one verdict those with the largest ratio first."""
    def place(item: dict) -> tuple[int, float]:
        verdict = str(item.get("verdict") or "")
        gravity = GRAVITY.index(verdict) if verdict in GRAVITY else 0
        return gravity, -item["ratio"] if is_number(item.get("ratio")) else 0

    return sorted(judged, key=place)


def curves_of(cells: Iterable[dict]) -> list[str]:
    """The curves of the cells: those of tutti first."""
    found = dict.fromkeys(system["curve"] for cell in cells for system in cell["systems"])
    return sorted(found, key=lambda curve: curve.split(".", 1)[0] != "tutti")


def series_fields(series: str) -> dict[str, str]:
    """The parts of a series by name; what has no name keeps its place."""
    parts = series.split("/")
    names = FIELDS + tuple(f"part {place}" for place in range(len(FIELDS), len(parts)))
    return dict(zip(names, parts))


def ranks_text(part: str) -> str:
    """`P=2 processes` of `P2.processes`; of a contention also `, group 0 of 2x2, together`."""
    count, _, kind = part.partition(".")
    kind, _, group = kind.partition(".")
    if group:
        number, _, how = group.partition(".")
        kind += f", {number.replace('group', 'group ', 1).replace('of', ' of ', 1)}, {how.replace('.', ', ')}"
    return f"P={count[1:]} {kind}".strip() if count[:1] == "P" and count[1:].isdigit() else part


def part_text(name: str, part: str) -> str:
    """A part of a series in words; empty where there is nothing to tell."""
    if part in ("none", "") and name in ("op", "root"):
        return ""
    if name == "ranks":
        return ranks_text(part)
    if name == "buffers":
        return f"{part} buffers"
    return PLACEMENTS.get(part, part) if name == "placement" else part


def series_title(series: str) -> str:
    """`all_reduce float sum, P=2 processes over shm, out of place, private buffers, isolated`."""
    fields = series_fields(series)
    if len(fields) < len(FIELDS):
        return short(series)
    words = {name: short(part_text(name, part)) for name, part in fields.items()}
    head = " ".join(words[name] for name in ("collective", "dtype", "op") if words[name])
    tail = [words[name] for name in ("root", *FIELDS[6:], *list(fields)[len(FIELDS):]) if words[name]]
    return ", ".join([head, f"{words['ranks']} over {words['transport']}", *tail])


def starter_name(starter: str) -> str:
    """What started the ranks."""
    return "tutti" if starter in ("", "spawn") else short(starter)


def row_names(all_of_them: list[Series], with_starter: bool = True) -> dict[int, str]:
    """A short name for each series: its collective, and what differs among the series of that collective."""
    names = {}
    for series in all_of_them:
        others = [other for other in all_of_them if other.collective == series.collective]
        fields = series_fields(series.series)
        varied = [name for name in fields if any(series_fields(other.series).get(name) != fields[name] for other in others)]
        words = [part_text(name, fields[name]) or "no " + name for name in varied]
        if with_starter and len({other.starter for other in others}) > 1:
            words.append(f"by {starter_name(series.starter)}")
        names[series.index] = short(" ".join([series.collective, *words]), 60)
    return names


def states_of(system: dict) -> list[str]:
    """What is to be told of a measurement: its verdict if that is not ok, else its marks."""
    verdict = system.get("verdict") or "missing"
    return [verdict] if verdict != "ok" else [str(mark) for mark in system.get("marks") or []]


def place_text(cell: dict) -> str:
    """Where a cell is on its curve."""
    return f"at {bytes_text(size_of(cell))}" if size_of(cell) else ""


def point_text(cell: dict, system: dict) -> str:
    """`tutti at 64 B`, with the reason of a verdict that is not ok."""
    reason = short(system.get("reason") or "", 80) if (system.get("verdict") or "missing") != "ok" else ""
    name = f"{short(system['curve'])} {place_text(cell)}".strip()
    return f"{name} ({reason})" if reason else name


def states_text(named: Iterable[tuple[str, str]]) -> str:
    """Sentences from pairs of a state and a cell's name: the gravest first, each with count and names."""
    groups: dict[str, list[str]] = {}
    for state, name in named:
        groups.setdefault(state, []).append(name)
    if not groups:
        return ""
    order = [*NOT_OK, NOISY, NEAR_FLOOR]
    ranked = sorted(groups, key=lambda state: (order.index(state) if state in order else len(order), state))
    return " ".join(state_sentence(state, groups[state]) for state in ranked)


def state_sentence(state: str, names: list[str]) -> str:
    """`Noisy: 5, first a, b and c.`"""
    head = short(state).capitalize()
    if len(names) <= MOST_NAMED:
        return f"{head}: {joined(names)}."
    return f"{head}: {len(names)}, the first are {joined(names[:MOST_NAMED])}."


def series_states(series: Series) -> str:
    """The states of all points of a series in words."""
    return states_text((state, point_text(cell, system)) for curve in series.curves
                       for cell, system in series.points(curve) for state in states_of(system))


def ratios_text(series: Series) -> str:
    """Who is faster, where, and by how much."""
    return " ".join(pair_text(series.ratios(*pair), *pair) for pair in series.pairs() if series.ratios(*pair))


def pair_text(found: list[tuple[dict, dict]], curve: str, reference: str) -> str:
    """Who of the two is faster, where, and by how much."""
    curve, reference = short(curve), short(reference)
    faster = [cell for cell, item in found if side_of(item) == "faster"]
    slower = [cell for cell, item in found if side_of(item) == "slower"]
    undecided = [cell for cell, item in found if side_of(item) == "undecided"]
    parts = [f"{name} is faster at {sizes_text(cells)}" for name, cells in ((curve, faster), (reference, slower)) if cells]
    if undecided:
        parts.append(f"neither is known to be faster at {sizes_text(undecided)}")
    least = min(found, key=lambda pair: pair[1]["ratio"])
    most = max(found, key=lambda pair: pair[1]["ratio"])
    text = f"Time of {curve} / time of {reference}: {extreme_text(*least)}"
    if most is not least:
        text = f"Time of {curve} / time of {reference}: least {extreme_text(*least)}, most {extreme_text(*most)}"
    return f"{text}; {joined(parts)}."


def side_of(item: dict) -> str:
    """Which side of 1 the interval of a ratio is on; a ratio without an interval decides nothing."""
    if not is_number(item.get("low")) or not is_number(item.get("high")):
        return "undecided"
    return "faster" if item["high"] < 1 else "slower" if item["low"] > 1 else "undecided"


def extreme_text(cell: dict, item: dict) -> str:
    """A ratio with its interval and its place."""
    if is_number(item.get("low")) and is_number(item.get("high")):
        text = with_interval(item["ratio"], item["low"], item["high"])
    else:
        text = ratio_text(item["ratio"])
    return f"{text} {place_text(cell)}".strip()


def sizes_text(cells: list[dict]) -> str:
    """`8 B and 64 B`, or `7 sizes from 8 B to 1 MiB`."""
    if not any(size_of(cell) for cell in cells):
        return f"{len(cells)} of the cells" if len(cells) > 1 else "the one cell"
    names = [bytes_text(size_of(cell)) for cell in cells]
    return joined(names) if len(names) <= 3 else f"{len(names)} sizes from {names[0]} to {names[-1]}"
