# SPDX-License-Identifier: Apache-2.0
"""Colours, lines, markers and texts that are the same in every picture."""

from __future__ import annotations

import math
import unicodedata
import zlib
from typing import Iterable, Sequence

# The eight colours of M. Okabe and K. Ito, which colour-blind readers can tell apart; black is kept for text.
BLUE = "#0072B2"
VERMILLION = "#D55E00"
GREEN = "#009E73"
ORANGE = "#E69F00"
PURPLE = "#CC79A7"
SKY = "#56B4E9"
YELLOW = "#F0E442"
GREY = "#808080"
# The colour of text and axes: an inline SVG replaces it by currentColor.
INK = "#010203"
# The colours of the ground: all of the picture's, and that inside a hollow marker that lies on a line. An inline SVG
# shows the page's.
BACK = "#fdfcfb"
GROUND = "#fefdfc"

FIXED_COLOURS = {
    "tutti": BLUE, "openmpi": VERMILLION, "mpich": GREEN, "gloo": ORANGE, "nccl": PURPLE, "limit": GREY,
}
OTHER_COLOURS = (SKY, PURPLE, YELLOW, GREEN, ORANGE, VERMILLION)
LINE_STYLES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (5, 1.5, 1.2, 1.5)), (0, (8, 2, 3, 2)))
MARKERS = ("o", "s", "^", "P", "h", "p", "8", "<", ">")

MOST_TICKS = 8
LONGEST_NAME = 48
RC = {
    "svg.fonttype": "none",
    "svg.hashsalt": "tutti",
    "text.parse_math": False,
    "axes.unicode_minus": True,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9.0,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "legend.fontsize": 8.0,
    "legend.frameon": False,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "axes.titlecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "none",
    "axes.linewidth": 0.8,
    "grid.color": GREY,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.5,
    "lines.markersize": 5.0,
    "hatch.color": GREY,
    "hatch.linewidth": 0.5,
}


def system_of(curve: str) -> str:
    """The system of a curve: `tutti` of `tutti.ring`."""
    return curve.split(".", 1)[0]


def number_of(name: str) -> int:
    """A number that depends on the name alone."""
    return zlib.crc32(name.encode("utf-8", "replace"))


def colour_of(curve: str) -> str:
    """The colour of a curve's system."""
    system = system_of(curve)
    return FIXED_COLOURS.get(system) or OTHER_COLOURS[number_of(system) % len(OTHER_COLOURS)]


def line_style_of(curve: str):
    """Tells the algorithms of one system apart; a system without an algorithm in its name is solid."""
    return LINE_STYLES[0] if curve == system_of(curve) else LINE_STYLES[number_of(curve) % len(LINE_STYLES)]


def marker_of(curve: str) -> str:
    """The marker of a curve where markers do not tell states."""
    return MARKERS[number_of(curve) % len(MARKERS)]


def bytes_text(count: float) -> str:
    """`64 B`, `4 KiB`, `1.5 MiB`: exact for whole numbers of a unit."""
    if count < 1024:
        return f"{count:g} B"
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        count /= 1024
        if count < 1024:
            break
    return f"{count:.4g} {unit}"


def power_ticks(sizes: Iterable[float], most: int = MOST_TICKS) -> list[float]:
    """At most `most` powers of two across the sizes, evenly spaced."""
    positive = [size for size in sizes if size > 0]
    if not positive:
        return []
    first, last = math.ceil(math.log2(min(positive))), math.floor(math.log2(max(positive)))
    if last < first:
        return [2.0 ** last]
    step = max(1, math.ceil((last - first + 1) / most))
    return [2.0**power for power in range(first, last + 1, step)]


def plain(text: object) -> str:
    """The text without control characters, lone surrogates and separators of lines, which no XML may hold or which
    change how the text around them is read."""
    line = str(text)
    if line.isprintable():
        return line
    return "".join("\ufffd" if unicodedata.category(letter) in ("Cc", "Cs", "Cn", "Cf", "Zl", "Zp") and letter != "\n"
                   else letter for letter in line)


def plain_texts(value):
    """The same of every text in a value of JSON, names of members too."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, list):
        return [plain_texts(item) for item in value]
    if isinstance(value, dict):
        return {plain(name): plain_texts(item) for name, item in value.items()}
    return value


def short(text: object, most: int = LONGEST_NAME) -> str:
    """The text in one line of at most `most` letters."""
    line = " ".join(plain(text).split())
    return line if len(line) <= most else line[: most - 1] + "…"


def file_name(text: str, most: int = 80) -> str:
    """The text with letters that every file system and every id accepts."""
    safe = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "-_") else "-" for letter in text)
    while "--" in safe:
        safe = safe.replace("--", "-")
    return safe.strip("-")[:most].strip("-") or "picture"


def joined(parts: Sequence[str]) -> str:
    """`a, b and c`."""
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1] if parts else ""
