# SPDX-License-Identifier: Apache-2.0
"""Steps in a series of log times, oldest first.

The method is the nonparametric Mann-Whitney change-point scan: A. N. Pettitt, "A non-parametric approach to the
change-point problem", Applied Statistics 28 (1979) 126-135. It runs again at each result and begins anew after each
step: D. M. Hawkins and Q. Deng, "A nonparametric change-point control chart", Journal of Quality Technology 42 (2010)
165-173. Both scan a normalised statistic; here the scan takes the least exact p of all splits. Its distribution without
a step depends on the number of results alone; it is taken from seeded permutations.

A result's decision reads no later result: a mark that a page shows once stays when results are added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy

# The share of scans of a series without a step that may mark one; results/2026-11-history tells how it was chosen.
LEVEL = 0.001
# A scan reads at most so many of the newest results since the last step: it bounds the work of a result.
WINDOW = 60
# A side of a split has at least so many results.
LEAST_SIDE = 2
PERMUTATIONS = 20_000
SEED = 25
# The results after a step within which it is to be found, and the share of such steps.
RESULTS_AFTER = 6
POWER = 0.9
SMALLEST_STEP_TRIALS = 200
# A larger step than this (in logs: some thousandfold) is not looked for.
LARGEST_LOG_STEP = 7.0
# Counts up to this one are exact in a double.
LARGEST_EXACT_COUNT = 2.0**53


@dataclass(frozen=True)
class Step:
    """A step: `index` is the first value after it, `found_at` the value at which it was found."""

    index: int
    found_at: int
    p: float


def exact_tail(first: int, second: int) -> numpy.ndarray:
    """P(U <= u) for u = 0 .. first * second, from the Gaussian binomial coefficient that counts the orders."""
    counts = numpy.zeros(first * second + 1)
    counts[0] = 1.0
    for factor in range(1, first + 1):
        shift = second + factor
        raised = counts.copy()
        raised[shift:] -= counts[: max(0, len(counts) - shift)]
        for start in range(factor):
            raised[start::factor] = numpy.cumsum(raised[start::factor])
        counts = raised
    return numpy.cumsum(counts) / counts.sum()


def normal_tail(first: int, second: int) -> numpy.ndarray:
    """The normal approximation of `exact_tail`, with the correction for continuity."""
    mean = first * second / 2.0
    deviation = math.sqrt(first * second * (first + second + 1) / 12.0)
    scaled = (numpy.arange(first * second + 1) + 0.5 - mean) / deviation
    return numpy.array([0.5 * math.erfc(-value / math.sqrt(2.0)) for value in scaled])


@lru_cache(maxsize=None)
def two_sided_p(first: int, second: int) -> numpy.ndarray:
    """The two-sided p for each U of the two sides of a split."""
    lesser, greater = min(first, second), max(first, second)
    exact = math.comb(lesser + greater, lesser) <= LARGEST_EXACT_COUNT
    tail = exact_tail(lesser, greater) if exact else normal_tail(lesser, greater)
    middle = numpy.minimum(tail, tail[::-1])
    return numpy.minimum(1.0, 2.0 * middle)


def ranks_of(rows: numpy.ndarray) -> numpy.ndarray:
    """The ranks within each row, from 1; equal values share their middle rank."""
    ranks = numpy.argsort(numpy.argsort(rows, axis=1, kind="stable"), axis=1, kind="stable") + 1.0
    for number, row in enumerate(rows):
        values, inverse, counts = numpy.unique(row, return_inverse=True, return_counts=True)
        if len(values) < len(row):
            ranks[number] = (numpy.bincount(inverse, weights=ranks[number]) / counts)[inverse]
    return ranks


def least_p(ranks: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
    """For each row of ranks the least p of all its splits, and the first index after that split."""
    count = ranks.shape[1]
    sums = numpy.cumsum(ranks, axis=1)
    best = numpy.ones(len(ranks))
    index = numpy.full(len(ranks), LEAST_SIDE)
    for before in range(LEAST_SIDE, count - LEAST_SIDE + 1):
        after = count - before
        below = sums[:, before - 1] - before * (before + 1) / 2.0
        # A half, of equal values, is rounded to the middle: the larger p.
        nearer = numpy.ceil(numpy.minimum(below, before * after - below)).astype(int)
        p = two_sided_p(before, after)[numpy.minimum(nearer, before * after // 2)]
        better = p < best
        best = numpy.where(better, p, best)
        index = numpy.where(better, before, index)
    return best, index


@lru_cache(maxsize=None)
def without_a_step(count: int) -> numpy.ndarray:
    """The sorted least p of seeded permutations of `count` ranks."""
    random = numpy.random.Generator(numpy.random.PCG64([SEED, count]))
    shuffled = random.permuted(numpy.tile(numpy.arange(1.0, count + 1.0), (PERMUTATIONS, 1)), axis=1)
    return numpy.sort(least_p(shuffled)[0])


def scan_p(least: float, count: int) -> float:
    """The p of a scan whose least p is `least`, over `count` values without a step."""
    # The rounding of sums in tables is no difference.
    as_small = int(numpy.searchsorted(without_a_step(count), least * (1.0 + 1e-9), side="right"))
    return (as_small + 1.0) / (PERMUTATIONS + 1.0)


@lru_cache(maxsize=None)
def limit(count: int) -> float:
    """The greatest least p of `count` values that is a step; 0 where no order of so few values is one."""
    allowed = int(LEVEL * (PERMUTATIONS + 1.0)) - 1
    null = without_a_step(count)
    candidates = [value for value in numpy.unique(null[: allowed + 1]) if scan_p(float(value), count) <= LEVEL]
    return float(max(candidates, default=0.0)) * (1.0 + 1e-9)


@lru_cache(maxsize=None)
def minimum_results() -> int:
    """The least number of results in which a step can be found at all."""
    return next(count for count in range(2 * LEAST_SIDE, WINDOW + 1) if is_findable(count))


def is_findable(count: int) -> bool:
    """Whether two sides that nothing mixes are a step in `count` values."""
    ordered = numpy.arange(1.0, count + 1.0)[numpy.newaxis, :]
    return float(least_p(ordered)[0][0]) <= limit(count)


def newest_step(values: numpy.ndarray) -> Step | None:
    """The step that the newest of `values` completes, or None."""
    first = max(0, len(values) - WINDOW)
    window = values[first:]
    if len(window) < minimum_results():
        return None
    least, index = least_p(ranks_of(window[numpy.newaxis, :]))
    # Most scans end here: no scan's p is below its least p.
    if least[0] > LEVEL or least[0] > limit(len(window)):
        return None
    return Step(first + int(index[0]), len(values) - 1, scan_p(float(least[0]), len(window)))


def steps(log_times: list[float]) -> list[Step]:
    """All steps of a series, oldest first. Each result is judged by those since the last step."""
    values = numpy.asarray(log_times, dtype=float)
    found: list[Step] = []
    start = 0
    for newest in range(len(values)):
        step = newest_step(values[start : newest + 1])
        if step is not None:
            found.append(Step(start + step.index, newest, step.p))
            start += step.index
    return found


def residuals(log_times: list[float]) -> numpy.ndarray:
    """The values less the median of their own stretch between two steps."""
    values = numpy.asarray(log_times, dtype=float)
    edges = [0, *(step.index for step in steps(log_times)), len(values)]
    parts = [values[low:high] - numpy.median(values[low:high]) for low, high in zip(edges, edges[1:])]
    return numpy.concatenate(parts)


def share_found(noise: numpy.ndarray, log_step: float) -> float:
    """The share of rows of noise in which a step before the last RESULTS_AFTER values is found."""
    moved = noise.copy()
    moved[:, -RESULTS_AFTER:] += log_step
    least, index = least_p(ranks_of(moved))
    return float(numpy.mean(least <= limit(noise.shape[1])))


def smallest_step(log_times: list[float]) -> float | None:
    """The smallest relative step (0.1: 10 %) that POWER of the next RESULTS_AFTER results would show.

    The noise is the series' own, drawn anew, heavy tails included. None: no step could be found in so few results.
    """
    if len(log_times) < 2:
        return None
    since = len(log_times) - max([0, *(step.index for step in steps(log_times))])
    count = min(WINDOW, since + RESULTS_AFTER)
    if not is_findable(count):
        return None
    random = numpy.random.Generator(numpy.random.PCG64([SEED, count]))
    own = residuals(log_times)
    noise = random.choice(own, size=(SMALLEST_STEP_TRIALS, count))
    # Equal values, drawn twice, are told apart by a jitter that is smaller than any noise worth a name.
    noise += random.normal(scale=1e-6 + 0.1 * robust_deviation(own), size=noise.shape)
    return bisected_step(noise)


def bisected_step(noise: numpy.ndarray) -> float | None:
    """The least log step that is found with POWER in `noise`, as a relative step."""
    low, high = 0.0, LARGEST_LOG_STEP
    if share_found(noise, high) < POWER:
        return None
    for _ in range(14):
        middle = (low + high) / 2.0
        is_enough = share_found(noise, middle) >= POWER
        low, high = (low, middle) if is_enough else (middle, high)
    return math.expm1(high)


def robust_deviation(values: numpy.ndarray) -> float:
    """The median distance from the median, as the standard deviation of normal noise."""
    return 1.4826 * float(numpy.median(numpy.abs(values - numpy.median(values))))
