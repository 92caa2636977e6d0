"""What others put beside points and send to the server: `refabric watch` goes on for everybody else."""

from __future__ import annotations

import contextlib
import fcntl
import http.client
import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.results.store import Store
from harness.watch import points as watched
from harness.watch.feed import FEED, FORMAT, MAX_LINE, VERSION
from harness.watch.points import WatchFolder
from harness.watch.server import MAX_AT_ONCE, TOKEN, WatchServer
from tests.support.stored_points import EXPERIMENT, put, result_of, spec_of
from tests.support.watch.served import served


@pytest.fixture
def results(tmp_path: Path) -> Path:
    put(Store.open(tmp_path / "results", EXPERIMENT), spec_of(1), result_of([2.5]))
    return tmp_path / "results"


@contextlib.contextmanager
def feed(results: Path, text: bytes, name: str = "hostile") -> Iterator[Path]:
    """Yield the file of a feed that a process holds open, as a running point does."""
    folder = results / EXPERIMENT / f".tmp-live-{name}"
    folder.mkdir()
    with (folder / "owner").open("w") as owner:
        fcntl.flock(owner, fcntl.LOCK_EX)
        (folder / FEED).write_bytes(text)
        yield folder / FEED


def head(**topology: object) -> bytes:
    spec = {**spec_of(8).to_json(), **({"topology": topology} if topology else {})}
    return json.dumps({"format": FORMAT, "version": VERSION, "spec": spec}).encode() + b"\n"


def names(points: WatchFolder) -> list[str]:
    return [each["name_shown"] for each in points.all()["points"]]


def with_holes(file: Path) -> None:
    """Make a file of 1.1 GB that takes 4 MB: a line feed in every MAX_LINE bytes."""
    with file.open("r+b") as out:
        for number in range(1, 1100):
            os.pwrite(out.fileno(), b"\n", number * (MAX_LINE - 1))


NETWORK = {"nodes": [["a", 0], ["b", 0]], "links": [], "rate_mbps": 0.0}
FEEDS = {
    "nothing": b"",
    "half a line": head()[:-1],
    "no line": b"x" * (2 << 20),
    "huge network": head(kind="fat_tree", params={"k": 254}),
    "hosts without links": head(kind="file", params={"name": "x", "network": json.dumps(NETWORK)}),
    "nested": b"[" * 100_000 + b"\n",
}


@pytest.mark.parametrize("text", FEEDS)
def test_a_hostile_feed_hides_no_other_point(results: Path, text: str) -> None:
    """M3: one feed stopped `refabric watch` for all points."""
    points = WatchFolder(results)
    with feed(results, FEEDS[text]), feed(results, head(), "good"):
        assert len(names(points)) == 2 and sum("running" in name for name in names(points)) == 1
    points.close()


def test_a_feed_of_a_gigabyte_hides_no_other_point(results: Path) -> None:
    """M3: a sparse feed of 1.1 GB ended the list of all points in a RecursionError, again in each request."""
    points = WatchFolder(results)
    with feed(results, head()) as file, feed(results, head(), "good"):
        with_holes(file)
        begin = time.monotonic()
        assert len(names(points)) == 3
        assert time.monotonic() - begin < 10
    points.close()


def test_an_error_in_one_feed_hides_no_other_point(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """M3: whatever a feed does to the code that opens it."""

    def failing(folder: Path, name: str) -> Any:
        raise MemoryError(folder, name)

    monkeypatch.setattr(watched, "open_feed", failing)
    points = WatchFolder(results)
    with feed(results, head()):
        assert len(names(points)) == 1


def test_a_feed_that_cannot_be_opened_is_not_tried_in_each_request(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """M3: a feed that takes a second before it fails took a second of every request."""
    tries = []

    def slow(folder: Path, name: str) -> Any:
        tries.append(name)
        time.sleep(0.2)
        raise ValueError(folder)

    monkeypatch.setattr(watched, "open_feed", slow)
    points = WatchFolder(results)
    with feed(results, head()):
        for _ in range(5):
            names(points)
    assert len(tries) == 1


@pytest.fixture
def server(results: Path) -> Iterator[WatchServer]:
    with served(results) as made:
        yield made


def ask(server: WatchServer, path: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request("GET", path, headers={TOKEN: server.token})
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.0\r\nX-"])
def test_connections_that_say_nothing_keep_nobody_out(server: WatchServer, sent: bytes) -> None:
    """L11: 32 idle connections took all slots for 10 seconds, for ever if they sent a byte now and then."""
    with contextlib.ExitStack() as idle:
        for _ in range(2 * MAX_AT_ONCE):
            each = idle.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            each.sendall(sent)
        begin = time.monotonic()
        assert [ask(server, "/points") for _ in range(20)] == [200] * 20
        assert time.monotonic() - begin < 5


def test_an_error_in_one_answer_is_one_line(server: WatchServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """M3: a point that cannot be drawn closed the connection without an answer."""

    def failing(_of: str) -> Any:
        raise IndexError

    monkeypatch.setattr(server.points, "point", failing)
    assert ask(server, "/point?id=x") == 409 and ask(server, "/points") == 200
