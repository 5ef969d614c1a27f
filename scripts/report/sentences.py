# SPDX-License-Identifier: Apache-2.0
"""What a result says, in sentences: the bad news first."""

from __future__ import annotations

import math

import history
import pictures
import pictures_cells
from pictures_data import (NEAR_FLOOR, NOISY, NOT_OK, hosts_of, is_comparison, is_positive, place_text, side_of, sides,
                           source_name, states_of)
from pictures_numbers import counted, ratio_text
from style import bytes_text, joined, short

MARKS = {
    "noisy": "the interval of the time is wide, or the launches lie far apart: the time is not to be relied on",
    "near floor": "the time is near what measuring itself costs: it is an upper bound",
}
VERDICTS = {
    "ok": "every element of every rank was compared with the expected result",
    "wrong": "an element differs from the expected result: the time says nothing",
    "unchecked": "the result was not verified",
    "skipped": "the case was not run, for the reason told",
    "error": "the case ended with an error",
}
# So many cells are named as the worst.
MOST_WORST = 2
# Of one result and of several.
COUNTED = {"wrong": ("is wrong", "are wrong"), "error": ("ended with an error", "ended with an error"),
           "unchecked": ("is not verified", "are not verified"), "skipped": ("is skipped", "are skipped"),
           "missing": ("is missing", "are missing")}


def systems_of(bundle: dict) -> list[dict]:
    """All measurements of all cells."""
    return [system for cell in bundle["cells"] for system in cell["systems"]]


def what_was_measured(bundle: dict) -> str:
    """`all_reduce and broadcast, 8 B to 1 MiB, on 2 ranks of vm (AMD EPYC)`."""
    cells = bundle["cells"]
    if is_comparison(bundle):
        return f"{' against '.join(sides(bundle))}{of_machine(bundle)}"
    if bundle["history"]:
        return f"History of {counted(len(bundle['history']['results']), 'result')}{of_machine(bundle)}"
    if not cells:
        return samples_shown(bundle) or "No cell was measured"
    names = [short(name) for name in dict.fromkeys(str(cell.get("collective")) for cell in cells)]
    what = joined(names) if len(names) <= 3 else counted(len(names), "collective")
    sizes = [cell["bytes"] for cell in cells if is_positive(cell.get("bytes"))]
    span = "" if not sizes else f", {bytes_text(min(sizes))}" if min(sizes) == max(sizes) else \
        f", {bytes_text(min(sizes))} to {bytes_text(max(sizes))}"
    ranks = sorted({cell["ranks"] for cell in cells if is_positive(cell.get("ranks"))})
    where = f", on {joined([str(count) for count in ranks])} {'rank' if ranks == [1] else 'ranks'}" if ranks else ""
    return f"{what}{span}{where}{of_machine(bundle)}"


def samples_shown(bundle: dict) -> str:
    """`Samples of 3 cells are shown`; empty where there are none."""
    count, most = len(pictures_cells.sample_groups(bundle)), pictures.MOST_OF_A_KIND["samples"]
    if count == 0:
        return ""
    shown = " are shown" if count <= most else f", of which {most} are shown"
    return f"Samples of {counted(count, 'cell')}{shown}"


def of_machine(bundle: dict) -> str:
    """` of host (processor)`, as far as it is known; of several ` of host and 7 other hosts (processor)`."""
    others = max((len(hosts_of(cell)) for cell in bundle["cells"]), default=1) - 1
    beside = f" and {counted(others, 'other host')}" if others > 0 else ""
    for source in bundle["sources"]:
        machine = source.get("machine") or {}
        if machine.get("hostname"):
            processor = f" ({short(machine['cpu_model'])})" if machine.get("cpu_model") else ""
            return f" of {short(machine['hostname'])}{beside}{processor}"
    return ""


def correctness(bundle: dict) -> str:
    """Whether all of it was right; of a comparison, of each file."""
    if not is_comparison(bundle):
        return correctness_of(systems_of(bundle))
    told = [(source, correctness_of([system for cell in bundle["cells"] if (cell.get("source") or 0) == source
                                     for system in cell["systems"]])) for source in range(len(bundle["sources"]))]
    return "; ".join(f"in {source_name(bundle, source)} {words}" for source, words in told if words)


def correctness_of(systems: list[dict]) -> str:
    """Whether all of these were right."""
    if not systems:
        return ""
    counts = {state: sum(1 for system in systems if (system.get("verdict") or "missing") == state) for state in NOT_OK}
    told = [f"{count} of {counted(len(systems), 'result')} {COUNTED[state][count != 1]}"
            for state, count in counts.items() if count]
    right = len(systems) - sum(counts.values())
    is_timed = any(is_positive(system.get("time")) for system in systems)
    if not told and not is_timed:
        whether = "it is right" if len(systems) == 1 else "all are right"
        return f"{counted(len(systems), 'case was', 'cases were')} checked, {whether}; nothing was timed"
    if not told:
        return f"all {len(systems)} results are right" if len(systems) > 1 else "the one result is right"
    return f"{joined(told)}; {right} {'is' if right == 1 else 'are'} right"


def comparisons(bundle: dict) -> list[str]:
    """For each pair of systems who is faster, and by how much. Two files that are compared are not summed up."""
    if is_comparison(bundle):
        return []
    pairs: dict[tuple[str, str], list[tuple[dict, dict]]] = {}
    for cell in bundle["cells"]:
        for item in cell.get("ratios") or []:
            if is_positive(item.get("ratio")) and has_known_times(cell, item):
                pairs.setdefault((short(item["curve"]).split(".")[0], short(item["reference"])), []).append((cell, item))
    return [comparison(curve, reference, found) for (curve, reference), found in pairs.items()]


def has_known_times(cell: dict, item: dict) -> bool:
    """Says whether both times of a ratio are known to within themselves: no half of an interval is longer than its time."""
    for system in cell["systems"]:
        low, high, time = system.get("low"), system.get("high"), system.get("time")
        if system["curve"] in (item["curve"], item["reference"]) and is_positive(time) and is_positive(high) and (high - (low or 0)) / 2 > time:
            return False
    return True


def comparison(curve: str, reference: str, found: list[tuple[dict, dict]]) -> str:
    """`tutti takes 0.55 of openmpi's time (of 24 cells slower in 1, faster in 20, undecided in 3)`; the worst by name."""
    mean = math.exp(sum(math.log(item["ratio"]) for _, item in found) / len(found))
    slower = [(item["ratio"], f"{short(cell.get('collective'), 24)} {place_text(cell)}".strip()) for cell, item in found
              if side_of(item) == "slower"]
    faster = sum(1 for _, item in found if side_of(item) == "faster")
    return (f"{curve} takes {ratio_text(mean)} of {reference}'s time in the geometric mean "
            f"(of {counted(len(found), 'cell')} slower in {len(slower)}{worst(slower)}, faster in {faster}, "
            f"undecided in {len(found) - len(slower) - faster})")


def worst(slower: list[tuple[float, str]]) -> str:
    """`, the worst 1.31 at all_reduce at 8 B`; empty where there is none."""
    if not slower:
        return ""
    ranked = sorted(slower, key=lambda pair: -pair[0])[:MOST_WORST]
    return f" (worst: {joined([f'{name}, {ratio_text(ratio)}' for ratio, name in ranked])})"


def doubts(bundle: dict) -> list[str]:
    """What is to be doubted."""
    systems = systems_of(bundle)
    found = []
    for mark, words in ((NOISY, "noisy"), (NEAR_FLOOR, "near the floor of the clock")):
        count = sum(1 for system in systems if mark in states_of(system))
        if count:
            found.append(f"{count} of {counted(len(systems), 'time')} {'is' if count == 1 else 'are'} {words}")
    without = sum(1 for cell in bundle["cells"] for item in cell.get("ratios") or [] if not is_positive(item.get("low")))
    if without:
        found.append(f"{counted(without, 'ratio')} {'has' if without == 1 else 'have'} no interval")
    if any(source.get("finished") is False for source in bundle["sources"]):
        found.append("a run did not finish")
    disturbed = sum(1 for system in systems if system.get("disturbed"))
    if disturbed:
        found.append(f"{counted(disturbed, 'result')} {'was' if disturbed == 1 else 'were'} disturbed")
    return found


def judged_counts(bundle: dict) -> dict[str, int]:
    """How often each verdict was given."""
    counts: dict[str, int] = {}
    for item in bundle["judged"]:
        counts[str(item.get("verdict"))] = counts.get(str(item.get("verdict")), 0) + 1
    return counts


def verdict(bundle: dict) -> str:
    """The verdict on the whole, in one sentence."""
    if bundle["history"]:
        return history.verdict_sentence(bundle)
    parts = [part for part in (correctness(bundle), *comparisons(bundle)) if part]
    if bundle["judged"]:
        slower = [(item["ratio"], pictures_cells.judged_name(item)) for item in bundle["judged"]
                  if item.get("verdict") == "slower" and is_positive(item.get("ratio"))]
        told = [f"{count} {short(name)}{worst(slower) if name == 'slower' else ''}"
                for name, count in sorted(judged_counts(bundle).items(),
                                          key=lambda pair: (pair[0] == "same", pair[0] != "slower"))]
        parts.insert(0, f"of {counted(len(bundle['judged']), 'judged cell')} {joined(told)}")
    doubt = doubts(bundle)
    if doubt:
        parts.append(f"to doubt: {joined(doubt)}")
    head = what_was_measured(bundle) if bundle["cells"] or not bundle["judged"] else "Compared results"
    return f"{head}: {'; '.join(parts)}." if parts else f"{head}."


def mood(bundle: dict) -> str:
    """`bad`, `doubtful` or `good`: the page's colour beside its words."""
    if bundle["history"]:
        if any(finding.ratio > 1 for finding in history.findings(bundle)):
            return "bad"
        return "doubtful" if history.has_short_lines(bundle) else "good"
    states = {system.get("verdict") or "missing" for system in systems_of(bundle)}
    if states & {"wrong", "error", "missing"} or judged_counts(bundle).keys() & {"slower", "wrong", "missing"}:
        return "bad"
    return "doubtful" if states != {"ok"} or doubts(bundle) else "good"


def disturbances(bundle: dict) -> list[str]:
    """What disturbed the run: remarks, diagnoses, and the rows that were disturbed."""
    found = []
    for source in bundle["sources"]:
        for diagnosis in source.get("diagnoses") or []:
            found.append(str(diagnosis.get("message") or diagnosis) if isinstance(diagnosis, dict) else str(diagnosis))
        found += [str(remark) for remark in source.get("remarks") or []]
        if source.get("finished") is False:
            found.append(f"{source.get('file')}: the run did not finish; what it measured before is here")
    by_cause: dict[str, int] = {}
    for row in bundle["rows"]:
        for cause in (row.get("disturbed") or "").split("; "):
            if cause:
                by_cause[cause] = by_cause.get(cause, 0) + 1
    found += [f"{counted(count, 'row')} disturbed by {cause}" for cause, count in sorted(by_cause.items())]
    return found + history.disturbances(bundle) if bundle["history"] else found
