"""The running and stored points of a folder, as `refabric watch` lists and serves them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from common.errors import RefabricError, UsageError
from harness import labels
from harness.results import run_json, store
from harness.watch import page
from harness.watch.feed import Feed, names_of_feeds, open_feed
from harness.watch.page import network_json, point_json, scene_of, stored_json
from model.spec import RunSpec

MAX_LISTED = 500
MAX_FOLDERS = 64
MAX_CACHED = 4
MAX_OPEN = 64
OPENING_S = 2.0
"""How long one request opens feeds; the next one goes on."""
RETRY = 20
"""A feed that could not be opened is tried again after this many times the seconds that it took."""
MAX_STEPS = 200
"""Steps in one answer about a running point."""


@dataclass(frozen=True)
class ListItem:
    """A point of the list. `at` is its folder, `name` what is in it: a point, or the folder of a feed.

    `label` is its name for readers, `beside` what it has in common with points worth seeing side by side.
    """

    at: Path
    name: str
    spec: RunSpec
    state: str
    running: bool
    label: str
    beside: tuple[str, int]

    @classmethod
    def of(cls, at: Path, name: str, spec: RunSpec, state: str = "running") -> ListItem:
        """Return a point, which runs unless it has another state."""
        return cls(at, name, spec, state, state == "running", labels.label(spec), page.beside(spec))

    @property
    def id(self) -> str:
        return f"{self.at.name}/{self.name}"

    def to_json(self) -> dict[str, Any]:
        what = "running: " if self.running else ""
        doubt = f" ({self.state})" if self.state not in ("ok", "running") else ""
        return {
            "id": self.id,
            "name_shown": f"{what}{self.label}{doubt}",
            "running": self.running,
        }


class WatchFolder:
    """The points of one folder: of an experiment, of several, or of one point. Threads may share it.

    Only folders found by listing are read; an id selects one of them and is never a path.
    """

    def __init__(self, folder: Path) -> None:
        """Raises UsageError for a folder that is not there."""
        if not folder.is_dir():
            raise UsageError(
                f"watching {folder}: there is no such folder; name the results of an experiment, e.g. "
                "refabric watch results/cs244-one-to-one"
            )
        self._folder = folder
        self._lock = threading.Lock()
        self._stored: dict[tuple[Path, str], tuple[int, ListItem | None]] = {}
        self._feeds: dict[str, Feed] = {}
        self._not_before: dict[str, float] = {}
        """When to try again to open a feed."""
        self._listed: dict[str, ListItem] = {}
        self._served: dict[str, dict[str, Any]] = {}

    def all(self) -> dict[str, Any]:
        """Return all points, the running ones first, and those to open first."""
        with self._lock:
            until = time.monotonic() + OPENING_S
            found = [listed for folder in self._folders() for listed in self._in(folder, until)]
            running = [each for each in found if each.running]
            rest = [each for each in found if not each.running]
            self._listed = {each.id: each for each in _told_apart([*running, *rest][:MAX_LISTED])}
            self._forget()
            return {
                "points": [each.to_json() for each in self._listed.values()],
                "first": [each.id for each in opening(list(self._listed.values()))],
            }

    def point(self, of: str) -> dict[str, Any]:
        """Return a point with its network and, if it is stored, its steps. Raises KeyError, StoreError."""
        with self._lock:
            listed = self._listed[of]
            if listed.running:
                return self._running(listed)
            if of not in self._served:
                loaded = store.load_point(listed.at / listed.name)
                scene = scene_of(loaded.spec)
                about = {**stored_json(loaded, scene), "id": of, "label": listed.label}
                self._served[of] = {"point": about, "network": network_json(scene.drawing)}
                while len(self._served) > MAX_CACHED:
                    del self._served[next(iter(self._served))]
            return self._served[of]

    def steps(self, of: str, turn: int, first: int) -> dict[str, Any]:
        """Return the steps of a running point from number `first` on, or from the first if it began again
        since turn `turn`. Raises KeyError."""
        with self._lock:
            feed = self._feeds.get(of)
            if feed is None or of not in self._listed:
                return {"steps": [], "round": turn, "phase": "ended", "running": False}
            feed.read_on()
            begin = first if turn == feed.round else 0
            steps = feed.steps[begin : begin + MAX_STEPS]
            return {"steps": steps, "round": feed.round, "phase": feed.phase, "running": True}

    def close(self) -> None:
        """Close all files."""
        for feed in self._feeds.values():
            feed.close()
        self._feeds = {}

    def _running(self, listed: ListItem) -> dict[str, Any]:
        feed = self._feeds[listed.id]
        feed.read_on()
        scene = scene_of(feed.spec)
        about = {
            **point_json(scene),
            "id": listed.id,
            "label": listed.label,
            "state": "running",
            "reasons": "",
            "round": feed.round,
            "phase": feed.phase,
            "running": True,
            "steps": feed.steps[:MAX_STEPS],
        }
        return {"point": about, "network": network_json(scene.drawing)}

    def _forget(self) -> None:
        for of in [of for of in self._feeds if of not in self._listed]:
            self._feeds.pop(of).close()

    def _folders(self) -> list[Path]:
        """Return the folder itself and those in it, no links."""
        if store.is_point_name(self._folder.name):
            return [self._folder.parent]
        try:
            inner = sorted(p for p in self._folder.iterdir() if p.is_dir() and not p.is_symlink())
        except OSError as error:
            raise UsageError(f"reading {self._folder}: {error.strerror}") from error
        others = [p for p in inner if p.name[0] != "." and not store.is_point_name(p.name)]
        return [self._folder, *others[:MAX_FOLDERS]]

    def _in(self, folder: Path, until: float) -> Iterator[ListItem]:
        only = self._folder.name if store.is_point_name(self._folder.name) else ""
        for name in () if only else names_of_feeds(folder):
            if (feed := self._feed(folder, name, until)) is not None:
                yield ListItem.of(folder, name, feed.spec)
        for path in store.point_folders(folder):
            found = self._read(path) if only in ("", path.name) else None
            if found is not None:
                yield found

    def _feed(self, folder: Path, name: str, until: float) -> Feed | None:
        """Return an open feed; None if its first line is not there yet, if it is no feed, and for those that
        wait for the next request."""
        of, begin = f"{folder.name}/{name}", time.monotonic()
        is_next = begin < until and len(self._feeds) < MAX_OPEN and begin >= self._not_before.get(of, 0.0)
        if of not in self._feeds and is_next:
            try:
                feed = open_feed(folder, name)
                ListItem.of(folder, name, feed.spec)
                self._feeds[of] = feed
            except Exception:  # whatever is in somebody's feed, the other points are shown
                now = time.monotonic()
                self._not_before[of] = now + RETRY * (now - begin)
        return self._feeds.get(of)

    def _read(self, path: Path) -> ListItem | None:
        """Return the stored point of a folder; None for one that cannot be read or drawn."""
        try:
            changed = (path / run_json.RUN).stat(follow_symlinks=False).st_mtime_ns
        except OSError:
            return None
        key = path.parent, path.name
        if self._stored.get(key, (None, None))[0] != changed:
            self._stored[key] = changed, _stored(path)
        return self._stored[key][1]


def _stored(path: Path) -> ListItem | None:
    try:
        run = store.load_point(path)
    except RefabricError:
        return None
    shown = page.is_shown(run.spec)
    return ListItem.of(path.parent, path.name, run.spec, str(run.status)) if shown else None


def _told_apart(points: list[ListItem]) -> list[ListItem]:
    """Return the points with labels that name what varies in their folder."""
    specs: dict[Path, list[RunSpec]] = {}
    for each in points:
        specs.setdefault(each.at, []).append(each.spec)
    axes = {at: labels.shared(of).axes for at, of in specs.items()}
    return [replace(each, label=labels.label(each.spec, axes[each.at])) for each in points]


def opening(points: list[ListItem]) -> list[ListItem]:
    """Return the points to open first: two that are worth seeing side by side, TCP first.

    One that runs now is among them, if there is any.
    """
    if not points:
        return []
    anchor = points[0]
    for each in points if not anchor.running else ():
        others = [p for p in points if p.beside == each.beside]
        if len({p.spec.transport.subflows for p in others}) > 1:
            anchor = each
            break
    alike = [p for p in points if p.beside == anchor.beside]
    if anchor.running:
        different = [p for p in alike if p.spec.transport.subflows != anchor.spec.transport.subflows]
        pair = [anchor, *sorted(different, key=lambda p: (not p.running, p.spec.transport.subflows))[:1]]
    else:
        ranked = sorted(alike, key=lambda p: p.spec.transport.subflows)
        pair = [ranked[0], *ranked[-1:]] if len(ranked) > 1 else ranked
    return sorted(pair, key=lambda p: p.spec.transport.subflows)
