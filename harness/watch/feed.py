"""What a running point writes for the page, and reading it.

A feed is a file of JSON lines in a folder `.tmp-live-<point>-<random>` of the results folder: first the spec,
then phases and steps. It is removed when the point ends, and by the next run if the writer was killed
(common/files.py). A feed has at most MAX_BYTES: long points write every second, third, ... step only.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

from analysis.live_page import View, between, encode
from common import files, stored_json
from common.errors import RefabricError, StoreError, UsageError
from common.files import is_abandoned
from engines.engine import Observer
from harness.results import run_json
from harness.results.store import Store, point_name
from harness.watch.page import is_drawable, scene_of
from model.result import Instant
from model.spec import RunSpec

LIVE = "live-"
FEED = "feed.jsonl"
FORMAT = "refabric-feed"
VERSION = 1
MAX_BYTES = 8_000_000
MAX_READ = 4 * MAX_BYTES
MAX_LINE = 1 << 20
MAX_FEEDS = 16
_ARRAYS = {"u": "halves", "q": "halves", "f": "flows", "w": "subflows", "s": "subflows", "r": "subflows"}


class FeedWriter:
    """An observer that passes phases and notes on, and writes phases and instants to a feed."""

    def __init__(self, observer: Observer, handle: int, spec: RunSpec) -> None:
        self._observer, self._handle, self._spec = observer, handle, spec
        self._last: Instant | None = None
        self._left = 2 * MAX_BYTES

    @cached_property
    def _shown(self) -> View:
        """The part of the network that is written. It is drawn only for engines that send instants."""
        return scene_of(self._spec).shown

    @cached_property
    def _apart_s(self) -> float:
        seconds = self._spec.warmup_s + self._spec.seconds
        return max(1, -(-seconds * self._shown.step_bytes // MAX_BYTES)) - 0.5

    def phase(self, name: str, seconds: float) -> None:
        self.write({"phase": name})
        self._observer.phase(name, seconds)

    def note(self, text: str) -> None:
        self._observer.note(text)

    def instant(self, seen: Instant) -> None:
        """Write the step that ends now, unless the last one was too recent."""
        last = self._last
        if last is None or seen.t_s < last.t_s:  # a point that stalled begins again
            self.write({"again": True})
        elif seen.t_s == last.t_s or self._apart_s > seen.t_s - last.t_s > 0.5:
            return
        else:
            self.write(encode(between(last, seen, self._shown)))
        self._last = seen

    def write(self, value: dict[str, Any]) -> None:
        """Write a line. If that fails, the feed ends with a note to the user, and the point goes on."""
        if self._handle < 0:
            return
        line = json.dumps(value, separators=(",", ":")).encode() + b"\n"
        self._left -= len(line)
        try:
            if self._left < 0:
                raise OSError(0, f"it would take more than {2 * MAX_BYTES >> 20} MiB")
            os.write(self._handle, line)
        except OSError as error:
            self._handle = -1
            self._observer.note(f"the page of this point ends here: {error.strerror}")


@contextlib.contextmanager
def followed(where: Store, spec: RunSpec, observer: Observer) -> Iterator[Observer]:
    """Yield an observer that writes the feed of a point, and remove the feed at the end.

    Points without flows have none. Raises StoreError.
    """
    if not is_drawable(spec):
        yield observer
        return
    name = point_name(spec)
    with files.storing(f"writing the feed of {name} in {where.directory}"):
        aside = files.open_aside(where.directory, LIVE + name, where.tag)
    try:
        with files.storing(f"writing {aside.path / FEED}"):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
            handle = os.open(aside.path / FEED, flags, 0o644)
        try:
            feed = FeedWriter(observer, handle, spec)
            feed.write({"format": FORMAT, "version": VERSION, "name": name, "spec": spec.to_json()})
            yield feed
        finally:
            os.close(handle)
    finally:
        files.discard(aside)


@dataclass
class Feed:
    """A feed as far as it was read. `steps` and `phase` follow the file; `damaged` counts lines left out."""

    name: str
    spec: RunSpec
    shown: View
    file: BinaryIO
    steps: list[dict[str, Any]] = field(default_factory=list)
    round: int = 0
    """Grows when the point begins again."""
    phase: str = ""
    damaged: int = 0
    _read: int = 0

    def read_on(self) -> None:
        """Read the lines that were written since the last call; none beyond MAX_READ. Raises OSError."""
        while self._read < MAX_READ:
            data = os.pread(self.file.fileno(), MAX_LINE, self._read)
            whole = data.rfind(b"\n") + 1
            if not whole and len(data) == MAX_LINE:
                raise OSError(0, "it has a line that is too long")
            if not whole:
                return
            for line in data[:whole].splitlines():
                self._take(line)
            self._read += whole

    def close(self) -> None:
        self.file.close()

    def _take(self, line: bytes) -> None:
        try:
            value = stored_json.loads(line)
            if not isinstance(value, dict):
                raise ValueError("it is not an object")
            if "t" in value:
                self.steps.append(checked(value, self.shown))
            elif "phase" in value:
                self.phase = str(value["phase"])[:40]
            elif "again" in value:
                self.steps, self.round = [], self.round + 1
        except ValueError:
            self.damaged += 1


def checked(value: dict[str, Any], shown: View) -> dict[str, Any]:
    """Return a step with its known fields only. Raises ValueError for one that does not fit the network."""
    t_s, drops = value["t"], value.get("d")
    if not isinstance(t_s, int | float) or not isinstance(drops, list) or len(drops) > shown.halves:
        raise ValueError("a step lacks its time or its drops")
    for each in drops:
        if not (isinstance(each, list) and len(each) == 2 and all(isinstance(n, int) for n in each)):
            raise ValueError("drops are not pairs of integers")
        if not 0 <= each[0] < shown.halves:
            raise ValueError("drops of an unknown line")
    for name, count in _ARRAYS.items():
        text = value.get(name)
        if not isinstance(text, str) or len(text) != -(-2 * getattr(shown, count) // 3) * 4:
            raise ValueError(f"the column {name} does not fit the network")
    return {"t": t_s, "d": drops, **{name: value[name] for name in _ARRAYS}}


def names_of_feeds(folder: Path) -> list[str]:
    """Return the folders of the points that run now, at most MAX_FEEDS. Raises UsageError."""
    try:
        found = sorted(path for path in folder.iterdir() if path.name.startswith(files.TMP_PREFIX + LIVE))
        return [path.name for path in found if not _is_dead(path)][:MAX_FEEDS]
    except OSError as error:
        raise UsageError(f"reading {folder}: {error.strerror}; name another folder") from error


def _is_dead(folder: Path) -> bool:
    try:
        return is_abandoned(folder)
    except OSError:
        return True


def open_feed(folder: Path, name: str) -> Feed:
    """Open a feed and read it from its beginning. Raises StoreError for one that cannot be used."""
    with contextlib.ExitStack() as unless_good:
        try:
            file = unless_good.enter_context(files.open_regular(folder / name / FEED))
            first, newline, _ = os.pread(file.fileno(), MAX_LINE, 0).partition(b"\n")
            head = stored_json.loads(first) if newline else None
            if not isinstance(head, dict) or head.get("format") != FORMAT or head.get("version") != VERSION:
                raise ValueError("it is not a feed of this version")
            spec = RunSpec.from_json(head["spec"])
            run_json.check_known(spec)
            feed = Feed(point_name(spec), spec, scene_of(spec).shown, file)
            feed.read_on()
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RefabricError) as error:
            raise StoreError(f"reading {folder / name / FEED}: {error}; wait for the next point") from error
        unless_good.pop_all()
    return feed
