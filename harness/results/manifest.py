"""Which figure asked for which points, in a results folder that several figures share: figures/<figure>.json.

A point cannot tell: the same links and hosts serve one figure at the rate the machine carries and another
at four times that. So every run notes, before it starts, the points of each of its figures.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from common import files
from common.errors import StoreError

FOLDER = "figures"
FORMAT, SCHEMA = "refabric-figure", 1


def note(directory: Path, figure: str, points: Iterable[str], tag: str = "") -> None:
    """Add names of points to those of `figure`; what a damaged file said is lost. Raises StoreError."""
    try:
        before = read(directory, figure)
    except StoreError:
        before = frozenset()
    after = before.union(points)
    if after == before:
        return
    path = _path(directory, figure)
    with files.storing(f"creating {path.parent}"):
        files.make_folder(path.parent)
    data = {"format": FORMAT, "schema": SCHEMA, "points": sorted(after)}
    files.replace_file(path, (json.dumps(data, indent=1) + "\n").encode(), tag)


def read(directory: Path, figure: str) -> frozenset[str]:
    """The names of the points `figure` ever asked for here. Raises StoreError for a damaged file."""
    path = _path(directory, figure)
    try:
        data = json.loads(path.read_bytes())
        if data["format"] != FORMAT or data["schema"] != SCHEMA:
            raise ValueError("another format")
        return frozenset(map(str, data["points"]))
    except FileNotFoundError:
        return frozenset()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"reading {path}: it is damaged or not ours ({error}); "
            "run the figure again, its finished points are kept"
        ) from error


def _path(directory: Path, figure: str) -> Path:
    return directory / FOLDER / f"{figure}.json"
