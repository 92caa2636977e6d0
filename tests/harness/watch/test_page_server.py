"""The server of the page: the token, the Host header, and nothing but points."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common.errors import UsageError
from engines.engine import Silent, follower
from harness.results.store import Store
from harness.watch.feed import followed
from harness.watch.points import WatchFolder, opening
from harness.watch.server import TOKEN, WatchServer
from tests.harness.watch.test_feed import instant
from tests.support.watch.served import served
from tests.support.watch.watched_points import EXPERIMENT, simulated, spec_of


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    simulated(folder, spec_of(1, seconds=2.0), spec_of(8, seconds=2.0))
    return folder


@pytest.fixture
def server(results: Path) -> Iterator[WatchServer]:
    with served(results) as made:
        yield made


def ask(
    server: WatchServer, path: str, *, method: str = "GET", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    found = answer.status, dict(answer.getheaders()), answer.read()
    connection.close()
    return found


def json_of(server: WatchServer, path: str) -> Any:
    status, _, data = ask(server, path, **{TOKEN: server.token})
    assert status == 200, data
    return json.loads(data)


def test_the_page_needs_its_token(server: WatchServer) -> None:
    assert ask(server, "/")[0] == 403
    assert ask(server, "/?token=wrong")[0] == 403
    assert ask(server, "/?token=%ff%fe")[0] == 403
    status, headers, page = ask(server, f"/?token={server.token}")
    assert status == 200 and b"refabric watch" in page and server.token.encode() not in page
    assert headers["Cache-Control"] == "no-store" and headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer" and "Server" in headers


@pytest.mark.parametrize("path", ["/points", "/point?id=x", "/steps?id=x&round=0&from=0", "/anything"])
def test_data_needs_the_token_in_a_header(server: WatchServer, path: str) -> None:
    assert ask(server, path)[0] == 403
    assert ask(server, f"{path}{'&' if '?' in path else '?'}token={server.token}")[0] == 403
    assert ask(server, path, **{TOKEN: "wrong"})[0] == 403


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost", ""])
def test_another_name_of_this_address_gets_nothing(server: WatchServer, host: str) -> None:
    status, _, text = ask(server, f"/?token={server.token}", Host=host)
    assert status == 421 and b"token" not in text


def test_localhost_is_a_name_of_it(server: WatchServer) -> None:
    assert ask(server, f"/?token={server.token}", Host=f"localhost:{server.port}")[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "HEAD"])
def test_other_methods_are_refused(server: WatchServer, method: str) -> None:
    assert ask(server, f"/?token={server.token}", method=method)[0] == 501


@pytest.mark.parametrize(
    "path",
    ["/../etc/passwd", "/etc/passwd", "//etc/passwd", "/point?id=../../etc/passwd", "/point?id=/etc/passwd",
     "/point", "/point?id=", "/steps?id=x", "/steps?round=a&from=b", "/favicon.ico", "/run.json"],
)  # fmt: skip
def test_nothing_but_points_is_served(server: WatchServer, path: str) -> None:
    status, _, data = ask(server, path, **{TOKEN: server.token})
    assert status == 404 and b"root:" not in data


def test_stored_points_are_listed_and_served_with_their_steps(server: WatchServer) -> None:
    listed = json_of(server, "/points")
    assert len(listed["points"]) == 2 and len(listed["first"]) == 2
    shown = [json_of(server, f"/point?id={of}") for of in listed["first"]]
    assert [each["point"]["subflows"] for each in shown] == [1, 8]
    assert [step["t"] for step in shown[0]["point"]["steps"]] == [-1.0, 0.0, 1.0, 2.0]
    assert len(shown[1]["point"]["paths"]) == 16 * 8
    assert len(shown[0]["network"]["lines"]) == 48


def test_a_running_point_comes_first_and_grows(server: WatchServer, results: Path) -> None:
    store, spec = Store.open(results, EXPERIMENT), spec_of(4, seconds=2.0)
    with followed(store, spec, Silent()) as observer:
        show = follower(observer)
        assert show is not None
        show(instant(-2.0))
        listed = json_of(server, "/points")
        first = next(point for point in listed["points"] if point["running"])
        assert listed["points"][0] == first and first["id"] in listed["first"]
        assert json_of(server, f"/point?id={first['id']}")["point"]["steps"] == []
        show(instant(-1.0))
        found = json_of(server, f"/steps?id={first['id']}&round=1&from=0")
        assert [step["t"] for step in found["steps"]] == [-1.0] and found["running"]
        assert json_of(server, f"/steps?id={first['id']}&round=1&from=1")["steps"] == []
    assert json_of(server, "/points")["points"][0]["running"] is False
    assert json_of(server, f"/steps?id={first['id']}&round=1&from=1")["running"] is False


def test_one_point_can_be_watched_alone(results: Path) -> None:
    (folder,) = (results / EXPERIMENT).glob("*mptcp8*")
    (shown,) = [point["name_shown"] for point in WatchFolder(folder).all()["points"]]
    assert "MPTCP 8" in shown


def test_a_link_to_a_point_and_a_broken_one_are_left_out(results: Path, tmp_path: Path) -> None:
    (folder,) = (results / EXPERIMENT).glob("*mptcp8*")
    own = tmp_path / "own"
    own.mkdir()
    broken = own / folder.name
    broken.mkdir()
    (broken / "run.json").write_text("{")
    assert WatchFolder(own).all() == {"points": [], "first": []}
    assert opening([]) == []


def test_bad_arguments_end_in_one_line(results: Path, server: WatchServer) -> None:
    with pytest.raises(UsageError, match="there is no such folder"):
        WatchFolder(results / "nothing")
    with pytest.raises(UsageError, match="choose another with --port"):
        WatchServer(WatchFolder(results), "x", server.port)
