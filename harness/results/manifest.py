"""The manifest of a figure in a results folder that several figures share: its points, in
figures/<figure>.json.

A point does not say to which figures it belongs: two figures may differ only in the link rate. So every run
writes, before it starts, the names of the points of each of its figures.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from common import files, records, stored_json
from common.errors import StoreError

FOLDER = "figures"
FORMAT, SCHEMA = "refabric-figure", 1
MAX_BYTES = 1 << 26


def note(directory: Path, figure: str, points: Iterable[str], tag: str = "") -> None:
    """Add names of points to the manifest of `figure`; replace a damaged manifest. Raises StoreError.

    If two runs add points at the same time, neither loses those of the other.
    """
    path = _path(directory, figure)

    def added() -> bytes | None:
        try:
            before = read(directory, figure)
        except StoreError:
            before = frozenset()
        after = before.union(points)
        data = {"format": FORMAT, "schema": SCHEMA, "points": sorted(after)}
        return None if after == before else (json.dumps(data, indent=1) + "\n").encode()

    with files.storing(f"creating {path.parent}"):
        path.parent.mkdir(parents=True, exist_ok=True)
    files.update_file(path, added, tag)


def read(directory: Path, figure: str) -> frozenset[str]:
    """Return the names of all points that runs of `figure` had here. Raises StoreError for a damaged file."""
    path = _path(directory, figure)
    try:
        data = records.mapping(stored_json.loads(files.read_bytes(path, MAX_BYTES)), "the manifest")
        if data["format"] != FORMAT or data["schema"] != SCHEMA:
            raise ValueError("another format")
        names = data["points"]
        if not isinstance(names, list):
            raise ValueError("points are not a list")
        return frozenset(records.text(name, "a point") for name in names)
    except FileNotFoundError:
        return frozenset()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"reading {path}: it is damaged or not a file of refabric ({error}); "
            "run the figure again, its finished points are kept"
        ) from error


def _path(directory: Path, figure: str) -> Path:
    return directory / FOLDER / f"{figure}.json"
