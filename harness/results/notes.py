"""Numbers that were read off stored points, kept beside them, so that commands need not read the flows again.

`.notes.json` in an experiment's folder has the numbers of every point, and what was measured for published
statements. They hold for the code that read them and for the points' files as they were then: size, times and
inode of each are compared. If anything differs, or if the notes are damaged, the flows are read again.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from common import files, records, stored_json
from harness.results import tree
from harness.results.build import DECIDING, digest_of
from harness.results.numbers import Numbers

NAME = ".notes.json"
FORMAT, SCHEMA = "refabric-notes", 1
MAX_BYTES = 1 << 28
MAX_MEASURED = 10_000
"""Older measurements are forgotten: those of points that were run again are never asked for."""
_RAW = "raw"


class Noted(Protocol):
    """A stored point as the notes know it: `seen` says what its files were when it was read."""

    @property
    def name(self) -> str: ...
    @property
    def seen(self) -> str: ...
    @property
    def numbers(self) -> Numbers: ...


@dataclass
class Notes:
    """The notes of one folder. `known` are numbers and what was seen, by point; `measured` is by a digest of
    what was measured."""

    folder: Path
    known: dict[str, tuple[str, Numbers]] = field(default_factory=dict)
    measured: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> Notes:
        """Read the notes of a folder; there are none if the file is damaged or of other code."""
        try:
            data = stored_json.loads(files.read_bytes(folder / NAME, MAX_BYTES))
            if (data["format"], data["schema"], data["code"]) != (FORMAT, SCHEMA, code()):
                return cls(folder)
            points = records.mapping(data["points"], "the points")
            known = {name: (records.text(seen, name), _numbers(of)) for name, (seen, of) in points.items()}
            return cls(folder, known, dict(records.mapping(data["measured"], "the measurements")))
        except (OSError, ValueError, KeyError, TypeError):
            return cls(folder)

    def of(self, name: str, seen: str) -> Numbers | None:
        """Return the numbers of a point whose files are as they were; None if they are not known."""
        before, numbers = self.known.get(name, ("", None))
        return numbers if before == seen else None

    def add(self, key: str, value: Any) -> None:
        """Note what was measured, as JSON has it. A number that JSON lacks is measured again each time."""
        if _is_finite(value):
            self.measured.setdefault(key, value)  # the last ones are the newest

    def write(self, points: Iterable[Noted]) -> None:
        """Write the numbers of these points and the newest measurements. Raises StoreError."""
        newest = list(self.measured.items())[-MAX_MEASURED:]
        data = {
            "format": FORMAT,
            "schema": SCHEMA,
            "code": code(),
            "points": {name: known for name, known in sorted(_plain(points)) if _is_finite(known)},
            "measured": dict(newest),
        }
        text = (json.dumps(data) + "\n").encode()
        path = self.folder / NAME
        try:
            if files.read_bytes(path, MAX_BYTES) == text:
                return
        except OSError:
            pass  # there are none yet
        files.replace_file(path, text)


def _plain(points: Iterable[Noted]) -> Iterator[tuple[str, Any]]:
    return ((point.name, [point.seen, records.plain(point.numbers)]) for point in points)


def _is_finite(value: Any) -> bool:
    """Return whether JSON has all numbers of `value`."""
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return True


def _numbers(data: object) -> Numbers:
    return records.record(Numbers, data, "the numbers")


@functools.cache
def code() -> str:
    """Return a digest of the code that reads numbers off points and measures with them."""
    return digest_of(DECIDING, {".py"})


def seen(folder: Path) -> str:
    """Return a digest of names, sizes, times and inodes of a point's files, except those of its tools.

    It takes no file's content: the change time (ctime) of a file changes with every write. Raises OSError.
    """
    found: list[list[str | int]] = []
    waiting = [""]
    while waiting:
        prefix = waiting.pop()
        with os.scandir(folder / prefix) as inside:
            entries = sorted(inside, key=lambda entry: entry.name)
        for entry in entries:
            about = entry.stat(follow_symlinks=False)
            if not stat.S_ISDIR(about.st_mode):
                times = about.st_mtime_ns, about.st_ctime_ns
                found.append([f"{prefix}{entry.name}", about.st_mode, about.st_size, about.st_ino, *times])
            elif entry.name != _RAW and prefix.count("/") < tree.MAX_DEPTH:
                waiting.append(f"{prefix}{entry.name}/")
    return hashlib.sha256(json.dumps(found).encode()).hexdigest()
