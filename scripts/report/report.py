# SPDX-License-Identifier: Apache-2.0
"""Draws the bundle on stdin, which `tutti report` writes: one HTML page, or pictures as files. Of an acceptance: its page.

Exit code: 0; 2 where a file cannot be written or the bundle is damaged, with one line on stderr.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

# An isolated Python has no folder of its script among those that it imports from.
sys.path.insert(0, str(Path(__file__).resolve().parent))

import style  # noqa: E402

VERSION = 1
LISTS = ("sources", "rows", "cells", "judged", "samples", "omitted")


class DamagedBundle(Exception):
    """The text on stdin is no bundle."""


def read_bundle(text: str) -> dict:
    """The bundle, checked for its version and its lists."""
    try:
        bundle = json.loads(text)
    except json.JSONDecodeError as problem:
        raise DamagedBundle(f"the bundle is no JSON: {problem}") from problem
    if isinstance(bundle, dict) and bundle.get("kind") == "accept" and bundle.get("version") == VERSION:
        return bundle
    if not isinstance(bundle, dict) or bundle.get("version") != VERSION:
        raise DamagedBundle(f"the bundle is not of version {VERSION}: this tutti and its scripts/report differ")
    for name in LISTS:
        if not isinstance(bundle.get(name), list):
            raise DamagedBundle(f"the bundle has no list '{name}'")
    return style.plain_texts(bundle)


def outside(path: str | None) -> str | None:
    """The path as it is found from any folder."""
    return os.path.abspath(path) if path and path != "-" else path


def leave_users_settings() -> None:
    """matplotlib reads a file of settings from the current folder, or from the user's."""
    os.chdir(Path(__file__).resolve().parent)
    os.environ["MATPLOTLIBRC"] = os.devnull


def draw(bundle: dict, arguments: argparse.Namespace) -> None:
    """Writes what the arguments name."""
    import page
    import pictures

    if bundle.get("kind") == "accept":
        import accept_page
        write_page(arguments.html, accept_page.render(bundle))
        return
    drawn = pictures.all_pictures(bundle)
    for folder, suffix in ((arguments.png, "png"), (arguments.svg, "svg")):
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            for picture in drawn:
                picture.save(folder, suffix)
    if arguments.html:
        write_page(arguments.html, page.render(bundle, drawn, pictures.left_out_pictures(bundle)))


def write_page(path: str, text: str) -> None:
    """To a file as a whole, or to stdout."""
    import files

    if path == "-":
        sys.stdout.buffer.write(text.encode("utf-8"))
    else:
        files.write_whole(Path(path), text.encode("utf-8"))


def main() -> int:
    """Reads the arguments and the bundle."""
    parser = argparse.ArgumentParser(prog="report.py", description=__doc__.splitlines()[0])
    parser.add_argument("--html", help="the page; - is stdout")
    parser.add_argument("--png", help="a folder for pictures")
    parser.add_argument("--svg", help="a folder for pictures")
    arguments = parser.parse_args()
    arguments.html, arguments.png, arguments.svg = map(outside, (arguments.html, arguments.png, arguments.svg))
    leave_users_settings()
    try:
        draw(read_bundle(sys.stdin.buffer.read().decode("utf-8", "replace")), arguments)
    except DamagedBundle as problem:
        print(f"report: {problem}", file=sys.stderr)
        return 2
    except OSError as problem:
        print(f"report: cannot write '{problem.filename}': {problem.strerror}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
