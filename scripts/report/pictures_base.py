# SPDX-License-Identifier: Apache-2.0
"""A picture, and its way from a figure to an SVG inside a page or to a file."""

from __future__ import annotations

import io
import re
import warnings
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

import matplotlib

matplotlib.use("Agg")

from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.text import Text  # noqa: E402

import files  # noqa: E402
import style  # noqa: E402

SVG = "http://www.w3.org/2000/svg"
LINK = "http://www.w3.org/1999/xlink"
ElementTree.register_namespace("", SVG)
ElementTree.register_namespace("xlink", LINK)
REFERENCE = re.compile(r"url\(#([^)]*)\)")
DOCUMENT_TYPE = re.compile(r"<!DOCTYPE[^>]*>\s*")
METADATA = re.compile(r"<metadata>.*?</metadata>\s*", re.DOTALL)
INLINE_COLOURS = {style.INK: "currentColor", style.GROUND: "var(--ground)", style.BACK: "none"}
DOTS_PER_INCH = 150


@dataclass(frozen=True)
class Picture:
    """A picture of a page: `svg` goes inline, `alt` tells the same in words, `save` writes a file of its own."""

    name: str
    title: str
    alt: str
    kind: str
    group: str
    svg: str
    draw: Callable[[], Figure] = field(compare=False, repr=False)
    source: bytes = field(compare=False, repr=False)

    def save(self, folder, suffix: str) -> Path:
        """Writes `folder/name.suffix`, png or svg, on white ground; the same picture gives the same bytes."""
        kind = suffix.lstrip(".")
        path = Path(folder) / f"{self.name}.{kind}"
        files.write_whole(path, file_bytes(self, kind))
        return path


def figure_bytes(draw: Callable[[], Figure], kind: str, name: str) -> bytes:
    """Draws the figure and renders it."""
    with matplotlib.rc_context({**style.RC, "svg.hashsalt": name}), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        figure = draw()
        for text in figure.findobj(Text):
            text.set_text(style.plain(text.get_text()))
        for artist in figure.findobj(lambda artist: artist.get_gid() is not None):
            artist.set_gid(style.plain(artist.get_gid()))
        metadata = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
        ground = style.BACK if kind == "svg" else "white"
        buffer = io.BytesIO()
        figure.savefig(buffer, format=kind, metadata=metadata, facecolor=ground, edgecolor="none", dpi=DOTS_PER_INCH)
        return buffer.getvalue()


def file_bytes(picture: Picture, kind: str) -> bytes:
    """The bytes of a file of the picture's own."""
    return alone(picture.source) if kind == "svg" else figure_bytes(picture.draw, kind, picture.name)


def alone(content: bytes) -> bytes:
    """The SVG as a file that names no other: without the document type and the metadata."""
    text = METADATA.sub("", DOCUMENT_TYPE.sub("", content.decode()))
    return text.replace(style.INK, "#000000").replace(style.GROUND, "#ffffff").replace(style.BACK, "#ffffff").encode()


def inline_svg(content: bytes, name: str) -> str:
    """The SVG as an element of a page: it scales, takes the page's text colour, and shares no id."""
    root = ElementTree.fromstring(content)
    for key in ("width", "height"):
        root.attrib.pop(key, None)
    for child in list(root):
        if child.tag == f"{{{SVG}}}metadata" or is_style_alone(child):
            root.remove(child)
    root.set("style", "stroke-linejoin: round; stroke-linecap: butt")
    root.set("aria-hidden", "true")
    for element in root.iter():
        rewrite(element.attrib, name)
    return ElementTree.tostring(root, encoding="unicode")


def is_style_alone(element: ElementTree.Element) -> bool:
    """Says whether the element holds only the style sheet, which would reach the whole page."""
    return element.tag == f"{{{SVG}}}defs" and all(child.tag == f"{{{SVG}}}style" for child in element)


def rewrite(attributes: dict[str, str], name: str) -> None:
    """Gives ids and references the picture's name, and text and axes the page's colour."""
    for key, value in attributes.items():
        if key == "id":
            attributes[key] = f"{name}-{value}"
        elif key == f"{{{LINK}}}href" and value.startswith("#"):
            attributes[key] = f"#{name}-{value[1:]}"
        else:
            attributes[key] = REFERENCE.sub(rf"url(#{name}-\1)", value)
            for colour, inline in INLINE_COLOURS.items():
                attributes[key] = attributes[key].replace(colour, inline)


def drawn(name: str, title: str, alt: str, kind: str, group: str, draw: Callable[[], Figure]) -> Picture:
    """A picture of what `draw` returns: a figure made by `new_figure`."""
    safe = style.file_name(name)
    source = figure_bytes(draw, "svg", safe)
    return Picture(safe, style.plain(title), style.plain(alt), kind, group, inline_svg(source, safe), draw, source)


def new_figure(width: float, height: float) -> Figure:
    """A figure without pyplot's shared state."""
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    return figure
