"""Private namespaces: what is seen inside, what comes back, and nothing is left when a process is killed."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from common.errors import DeadlineError, HostUnfitError, RunError, UsageError
from engines.emulation.sandbox import client
from engines.emulation.sandbox.isolation import spawn_inside
from tests.support.leftovers import compare

pytestmark = pytest.mark.emulation


def run(case: str, request: object = None, *, where: str = "kills", **options: Any) -> list[Any]:
    """Return the reports of a case run in private namespaces; its status must be 0."""
    reports: list[Any] = []
    options = {"deadline_s": 120.0, **options}
    target = f"tests.support.scenarios.{where}:{case}"
    assert spawn_inside(target, request, on_report=reports.append, **options) == 0
    return reports


def test_request_reports_status_and_privacy() -> None:
    reports: list[Any] = []
    status = spawn_inside(
        "tests.support.scenarios.isolation:echo", {"a": 1}, deadline_s=30, on_report=reports.append
    )
    assert status == 7
    assert reports[0]["request"] == {"a": 1}
    assert "left" in reports[0]["tmp"]
    assert not Path("/tmp/left").exists()
    assert not Path("/run/left").exists()
    assert reports[1] == {"net": ["lo"], "pids": [1, 2]}


def test_a_report_of_30_mb_arrives_whole() -> None:
    (report,) = run("report_much", 30 << 20, where="isolation")
    assert len(report) == 30 << 20


def test_the_current_folder_stays_visible_in_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    spawn_inside("tests.support.scenarios.isolation:write_to", str(tmp_path), deadline_s=30)
    assert (tmp_path / "result").read_text() == "kept"


def test_a_given_descriptor_is_open_inside_and_not_in_its_programs() -> None:
    reports: list[Any] = []
    ours, theirs = socket.socketpair()
    with ours, theirs:
        case = "tests.support.scenarios.isolation:write_to_given"
        spawn_inside(case, None, deadline_s=30, on_report=reports.append, give=[theirs.fileno()])
        assert ours.recv(10) == b"given"
    assert reports == ["not inherited"]


def test_errors_come_back_as_themselves() -> None:
    with pytest.raises(UsageError, match="no such thing: 3"):
        spawn_inside("tests.support.scenarios.isolation:refuse", 3, deadline_s=30)
    with pytest.raises(RunError, match=r"(?s)exit 1.*about to fail.*a bug"):
        spawn_inside("tests.support.scenarios.isolation:crash", None, deadline_s=30)


@pytest.mark.parametrize("manners", ["polite", "stubborn"])
def test_deadline_ends_the_run(manners: str) -> None:
    with pytest.raises(DeadlineError, match="did not end within 1 s"):
        spawn_inside("tests.support.scenarios.isolation:hang", manners, deadline_s=1, grace_s=0.5)


def test_without_root_the_error_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(client, "_client", None)
    with pytest.raises(HostUnfitError, match="sudo refabric shell ft,4"):
        client.require("refabric shell ft,4")


@pytest.mark.parametrize("role", ["outer", "helper", "unshare", "init", "worker", "shell", "holder"])
def test_killed_when_up_leaves_nothing(role: str) -> None:
    (report,) = run("kill_each_when_up", role)
    assert report["left"] == []
    assert report["status"] != 0


@pytest.mark.parametrize("role", ["outer", "helper", "unshare", "init"])
def test_killed_at_a_random_moment_leaves_nothing(role: str) -> None:
    *kills, again = run("kill_at_random_moments", {"role": role, "times": 6, "seed": 7})
    assert [kill["left"] for kill in kills] == [[]] * 6
    assert again == {"again": 7}


def test_interrupt_ends_in_order() -> None:
    (report,) = run("interrupt")
    assert report["left"] == []
    assert report["status"] != 0
    assert "KeyboardInterrupt" in report["stderr"]
    assert report["s"] < 4


def test_second_run_refuses_or_waits() -> None:
    refused, waited = run("second_run")
    assert refused["status"] == 1  # a bare script shows the traceback; the command line maps it to 3
    assert "BusyError" in refused["stderr"]
    assert refused["named"], refused
    assert waited == {"patient": 7}


def test_lock() -> None:
    assert run("lock_alone") == [{"refused": True, "exit": 3}, {"free": True}]


def test_leftovers_are_seen() -> None:
    (kinds,) = run("leave_something")
    assert {"files", "interfaces", "class/net", "namespaces", "processes"} <= set(kinds)


def test_compare_shows_new_things_only() -> None:
    before = {"files": ("/tmp/a",), "mounts": ("x",)}
    after = {"files": ("/tmp/a", "/tmp/b"), "mounts": ()}
    assert compare(before, after) == ["files: /tmp/b"]
