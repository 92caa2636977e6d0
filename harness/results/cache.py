"""What tables show of a point's flows and ports, and the cache of it beside the points.

`.notes.json` in an experiment's folder has the numbers of every point, and what was measured for published
statements, because reading the flows of 822 points took 204 s of CPU time. It holds for the code that read
them and for the points' files as they were then: size, times and inode of each are compared. If anything
differs, or if the cache is damaged, the flows are read again.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import os
import stat
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis import stats
from analysis.completion import completion_text, completions, percentile
from analysis.robustness import loss_text
from common import files, records, stored_json
from harness.results.build import DECIDING, digest_of
from harness.results.contents import MAX_DEPTH
from harness.results.run_json import RAW
from model.result import FlowRow, PortRow, array, under_test

if TYPE_CHECKING:
    from harness.results.store import StoredPoint

NAME = ".notes.json"
FORMAT, SCHEMA = "refabric-notes", 1
MAX_BYTES = 1 << 28
MAX_MEASURED = 10_000
"""Older measurements are forgotten: those of points that were run again are never asked for."""


@dataclass(frozen=True)
class Distribution:
    """Mean, median, 99th percentile, and standard deviation in % of the mean."""

    mean: float
    median: float
    p99: float
    deviation_pct: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Distribution | None:
        """Return the distribution of some values; None without any."""
        if not values:
            return None
        mean = statistics.fmean(values)
        deviation_pct = 100 * statistics.pstdev(values) / mean if mean else 0.0
        return cls(mean, statistics.median(values), percentile(values, 99), deviation_pct)


@dataclass(frozen=True)
class PointNumbers:
    """The spread of the goodputs of the flows under test (None without flows) and Jain's index of them;
    counts over all flows and ports; the completions of sized flows that started in the measured window.

    `completion` says how long they took, `constant_rate` how many packets flows of constant rate lost; both
    are empty where the point has no such flows.
    """

    goodput_mbps: stats.Spread | None
    jain: float | None
    retransmits: int
    drops: int
    started: int
    completed: int
    took_ms: Distribution | None
    slowdown: Distribution | None
    all_sized: bool
    completion: str
    constant_rate: str

    @property
    def unfinished(self) -> int:
        """The sized flows that started in the measured window and had not completed when traffic ended."""
        return self.started - self.completed

    @classmethod
    def of(cls, flows: Sequence[FlowRow], ports: Sequence[PortRow]) -> PointNumbers:
        """Read the numbers off the rows of a point."""
        goodputs_mbps = array(under_test(flows), "goodput_mbps").tolist()
        done = completions(flows)
        return cls(
            goodput_mbps=stats.spread(goodputs_mbps) if goodputs_mbps else None,
            jain=stats.jain(goodputs_mbps) if goodputs_mbps else None,
            retransmits=int(array(flows, "retransmits").sum()),
            drops=int(array(ports, "drops").sum()),
            started=done.started,
            completed=len(done.completed),
            took_ms=Distribution.of(done.took_ms),
            slowdown=Distribution.of(done.slowdowns),
            all_sized=bool(done.started) and bool(array(flows, "size_bytes").all()),
            completion=completion_text(done) if done.started else "",
            constant_rate=loss_text(flows),
        )


def mean_ms(points: Sequence[PointNumbers]) -> float | None:
    """Return the mean completion time of all flows of several points, in ms; None if none completed."""
    known = [(one.completed, one.took_ms.mean) for one in points if one.took_ms]
    flows = sum(completed for completed, _ in known)
    return math.fsum(completed * mean for completed, mean in known) / flows if flows else None


@dataclass
class ResultsCache:
    """The cache of one folder. `known` are fingerprint and numbers by point; `measured` is by a digest of
    what was measured."""

    folder: Path
    known: dict[str, tuple[str, PointNumbers]] = field(default_factory=dict)
    measured: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> ResultsCache:
        """Read the cache of a folder; it is empty if the file is damaged or of other code."""
        try:
            data = stored_json.loads(files.read_bytes(folder / NAME, MAX_BYTES))
            if (data["format"], data["schema"], data["code"]) != (FORMAT, SCHEMA, code()):
                return cls(folder)
            points = records.mapping(data["points"], "the points")
            known = {
                name: (records.text(then, name), records.record(PointNumbers, of, "the numbers"))
                for name, (then, of) in points.items()
            }
            return cls(folder, known, dict(records.mapping(data["measured"], "the measurements")))
        except (OSError, ValueError, KeyError, TypeError):
            return cls(folder)

    def of(self, name: str, fingerprint: str) -> PointNumbers | None:
        """Return the numbers of a point whose files are as they were; None if they are not known."""
        before, numbers = self.known.get(name, ("", None))
        return numbers if before == fingerprint else None

    def add(self, key: str, value: Any) -> None:
        """Add what was measured, as JSON has it. A number that JSON lacks is measured again each time."""
        if _is_finite(value):
            self.measured.setdefault(key, value)  # the last ones are the newest

    def write(self, points: Iterable[StoredPoint]) -> None:
        """Write the numbers of these points and the newest measurements. Raises StoreError."""
        newest = list(self.measured.items())[-MAX_MEASURED:]
        known = {point.name: [point.fingerprint, records.plain(point.numbers)] for point in points}
        data = {
            "format": FORMAT,
            "schema": SCHEMA,
            "code": code(),
            "points": {name: known[name] for name in sorted(known) if _is_finite(known[name])},
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


def _is_finite(value: Any) -> bool:
    """Return whether JSON has all numbers of `value`."""
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return True


@functools.cache
def code() -> str:
    """Return a digest of the code that reads numbers off points and measures with them."""
    return digest_of(DECIDING, {".py"})


def fingerprint(folder: Path) -> str:
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
            elif entry.name != RAW and prefix.count("/") < MAX_DEPTH:
                waiting.append(f"{prefix}{entry.name}/")
    return hashlib.sha256(json.dumps(found).encode()).hexdigest()
