"""The feed that a running point writes for the page: bounded, readable by others, removed at the end."""

from __future__ import annotations

import dataclasses
import json
import stat
from pathlib import Path

import numpy as np
import pytest

from common.errors import StoreError
from engines.engine import Observer, Silent, follower
from harness.results.store import Store, point_name
from harness.watch.feed import FEED, MAX_BYTES, Feed, FeedWriter, followed, names_of_feeds, open_feed
from model.result import Instant
from model.spec import WorkloadSpec
from tests.support.recorded_progress import Recorder
from tests.support.watch.watched_points import spec_of

SPEC = spec_of(2)
PORTS = 96


def instant(t_s: float) -> Instant:
    sent = np.full(PORTS, round(1e5 * (t_s + 3)), np.int64)
    flows = np.zeros(16, np.int64)
    return Instant(t_s, sent, np.zeros(PORTS, np.int64), np.ones(PORTS, np.int64), flows)


def show(observer: Observer, t_s: float) -> None:
    take = follower(observer)
    assert take is not None
    take(instant(t_s))


def only(store: Store) -> Feed:
    (name,) = names_of_feeds(store.directory)
    return open_feed(store.directory, name)


def test_a_feed_is_read_while_it_grows(store: Store) -> None:
    with followed(store, SPEC, Silent()) as observer:
        feed = only(store)
        assert (feed.name, feed.steps, feed.spec) == (point_name(SPEC), [], SPEC)
        observer.phase("warm-up", 1.0)
        for t_s in (-2.0, -1.0, 0.0):
            show(observer, t_s)
        feed.read_on()
        assert [step["t"] for step in feed.steps] == [-1.0, 0.0]
        assert (feed.phase, feed.damaged) == ("warm-up", 0)
        feed.close()
    assert names_of_feeds(store.directory) == [] and list(store.directory.iterdir()) == []


def test_others_can_read_a_feed_and_not_write_it_and_notes_still_reach_the_user(store: Store) -> None:
    progress = Recorder()
    with followed(store, SPEC, progress) as observer:
        observer.note("mind the gap")
        assert progress.notes == ["mind the gap"]
        (name,) = names_of_feeds(store.directory)
        folder = store.directory / name
        assert stat.S_IMODE(folder.stat().st_mode) == 0o755
        assert stat.S_IMODE((folder / FEED).stat().st_mode) == 0o644


def test_a_point_that_begins_again_starts_over(store: Store) -> None:
    with followed(store, SPEC, Silent()) as observer:
        for t_s in (-2.0, -1.0, -2.0, -1.5, 3.0):
            show(observer, t_s)
        feed = only(store)
        assert [step["t"] for step in feed.steps] == [-1.5, 3.0] and feed.round == 2
        feed.close()


def test_long_points_write_fewer_steps(tmp_path: Path) -> None:
    spec = dataclasses.replace(spec_of(8, k=8), seconds=10_000.0)
    with (tmp_path / "out").open("wb") as file:
        observer = FeedWriter(Silent(), file.fileno(), spec)
        ports = np.zeros(768, np.int64)
        for t_s in range(3000):
            observer.instant(Instant(float(t_s), ports, ports, ports, np.zeros(128, np.int64)))
    size = (tmp_path / "out").stat().st_size
    assert 0.1 * MAX_BYTES < size < 0.4 * MAX_BYTES


def test_a_full_disk_ends_the_page_and_not_the_point() -> None:
    progress = Recorder()
    with Path("/dev/full").open("wb", buffering=0) as full:
        observer = FeedWriter(progress, full.fileno(), SPEC)
        observer.phase("measure", 1.0)
        observer.instant(instant(0.0))
    assert len(progress.notes) == 1 and "No space left" in progress.notes[0]


def test_points_about_calls_have_no_feed(store: Store) -> None:
    calls, quiet = dataclasses.replace(SPEC, workload=WorkloadSpec("sip")), Silent()
    with followed(store, calls, quiet) as observer:
        assert observer is quiet and names_of_feeds(store.directory) == []


def line(**changes: object) -> bytes:
    with_all = {"format": "refabric-feed", "version": 1, "name": "x", "spec": SPEC.to_json(), **changes}
    return json.dumps(with_all).encode() + b"\n"


@pytest.mark.parametrize(
    "text",
    [b"", b"{}\n", b"[1]\n", b"no\n", line(version=2), line(spec=7), line(spec={"link": 1}), line()[:-9]],
)
def test_what_is_no_feed_is_refused(store: Store, text: bytes) -> None:
    with followed(store, SPEC, Silent()):
        (name,) = names_of_feeds(store.directory)
        (store.directory / name / FEED).write_bytes(text)
        with pytest.raises(StoreError):
            open_feed(store.directory, name)


BAD_STEPS = [
    {"t": "1"}, {"t": 1}, {"t": 1, "d": [[999, 1]]}, {"t": 1, "d": [[0]]}, {"t": 1, "d": [], "u": "AAAA"},
    {"t": 1, "d": [], "u": 7}, {"t": None, "d": []},
]  # fmt: skip


def test_damaged_steps_are_counted_and_left_out(store: Store) -> None:
    with followed(store, SPEC, Silent()) as observer:
        (name,) = names_of_feeds(store.directory)
        show(observer, 0.0)
        with (store.directory / name / FEED).open("ab") as file:
            file.write(b"".join(json.dumps(step).encode() + b"\n" for step in BAD_STEPS))
        show(observer, 1.0)
        feed = only(store)
        assert ([step["t"] for step in feed.steps], feed.damaged) == ([1.0], len(BAD_STEPS))
        feed.close()


def test_a_feed_that_is_a_link_is_not_followed(store: Store, tmp_path: Path) -> None:
    with followed(store, SPEC, Silent()):
        (name,) = names_of_feeds(store.directory)
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        (store.directory / name / FEED).rename(elsewhere / FEED)
        (store.directory / name / FEED).symlink_to(elsewhere / FEED)
        with pytest.raises(StoreError):
            open_feed(store.directory, name)
