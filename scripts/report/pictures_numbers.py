# SPDX-License-Identifier: Apache-2.0
"""Numbers as text: as many digits as their interval supports.

The file is not `numbers.py`: that name would hide the module of the standard library which numpy imports.
"""

from __future__ import annotations

import math

# The digits of a value without an interval.
DIGITS = 3
MOST_DIGITS = 6
NOT_MEASURED = "not measured"


def is_number(value: object) -> bool:
    """Says whether the value is a finite number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def counted(count: int, one: str, many: str | None = None) -> str:
    """`1 row`, `3 rows`."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def digits_text(value: float, digits: int) -> str:
    """The value with so many significant digits, without an exponent where that is readable."""
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(abs(value)))
    rounded = round(value, digits - 1 - exponent)
    exponent = math.floor(math.log10(abs(rounded))) if rounded else exponent
    if not -5 <= exponent <= 9:
        return f"{value:.{digits - 1}e}"
    return f"{rounded:.{max(0, digits - 1 - exponent)}f}"


def supported_digits(value: float, low: float, high: float) -> int:
    """The significant digits of the value down to the second digit of its interval's half width."""
    half = max(abs(high - value), abs(value - low))
    if value == 0 or half == 0:
        return MOST_DIGITS if half == 0 else 1
    last = math.floor(math.log10(half)) - 1
    return min(MOST_DIGITS, max(1, math.floor(math.log10(abs(value))) - last + 1))


def decimals(value: float, digits: int) -> int:
    """The decimals of a value with so many significant digits."""
    return max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0


def with_interval(value: float | None, low: float | None = None, high: float | None = None, unit: str = "") -> str:
    """`12.34 us (12.1 to 12.6)`; without an interval three digits; without a value `not measured`."""
    if not is_number(value):
        return NOT_MEASURED
    space = f" {unit}" if unit else ""
    if not is_number(low) or not is_number(high):
        return digits_text(value, DIGITS) + space
    digits = supported_digits(value, low, high)
    text = digits_text(value, digits)
    if "e" in text:
        return f"{text}{space} ({low:.{digits - 1}e} to {high:.{digits - 1}e})"
    places = decimals(value, digits)
    return f"{text}{space} ({low:.{places}f} to {high:.{places}f})"


def time_text(us: float | None) -> str:
    """A time in us with three digits."""
    return with_interval(us, unit="us")


def ratio_text(ratio: float | None) -> str:
    """A ratio with at most two decimals, more below 0.1."""
    if not is_number(ratio):
        return NOT_MEASURED
    return f"{ratio:.2f}" if 0.095 <= abs(ratio) < 100 else digits_text(ratio, 2 if abs(ratio) < 1 else 3)
