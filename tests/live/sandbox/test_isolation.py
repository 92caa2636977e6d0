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
from tests.support.sandboxed import reports
from tests.support.scenarios import isolation, kills

pytestmark = pytest.mark.emulation


def test_request_reports_status_and_privacy() -> None:
    seen: list[Any] = []
    status = spawn_inside(
        "tests.support.scenarios.isolation:echo", {"a": 1}, deadline_s=30, on_report=seen.append
    )
    assert status == 7
    assert seen[0]["request"] == {"a": 1}
    assert "left" in seen[0]["tmp"]
    assert not Path("/tmp/left").exists()
    assert not Path("/run/left").exists()
    assert seen[1] == {"net": ["lo"], "pids": [1, 2]}


def test_a_report_of_30_mb_arrives_whole() -> None:
    (report,) = reports(isolation.report_much, 30 << 20)
    assert len(report) == 30 << 20


def test_the_current_folder_stays_visible_in_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    reports(isolation.write_to, str(tmp_path))
    assert (tmp_path / "result").read_text() == "kept"


def test_a_given_descriptor_is_open_inside_and_not_in_its_programs() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert reports(isolation.write_to_given, give=[theirs.fileno()]) == ["not inherited"]
        assert ours.recv(10) == b"given"


def test_errors_come_back_as_themselves() -> None:
    with pytest.raises(UsageError, match="no such thing: 3"):
        reports(isolation.refuse, 3)
    with pytest.raises(RunError, match=r"(?s)exit 1.*about to fail.*a bug"):
        reports(isolation.crash)


@pytest.mark.parametrize("manners", ["polite", "stubborn"])
def test_deadline_ends_the_run(manners: str) -> None:
    with pytest.raises(DeadlineError, match="did not end within 1 s"):
        reports(isolation.hang, manners, deadline_s=1, grace_s=0.5)


def test_without_root_the_error_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(client, "_client", None)
    with pytest.raises(HostUnfitError, match="sudo refabric shell ft,4"):
        client.require("refabric shell ft,4")


@pytest.mark.parametrize("role", ["outer", "helper", "unshare", "init", "worker", "shell", "holder"])
def test_killed_when_up_leaves_nothing(role: str) -> None:
    (report,) = reports(kills.kill_each_when_up, role)
    assert report["left"] == []
    assert report["status"] != 0


@pytest.mark.parametrize("role", ["outer", "helper", "unshare", "init"])
def test_killed_at_a_random_moment_leaves_nothing(role: str) -> None:
    *killed, again = reports(kills.kill_at_random_moments, {"role": role, "times": 6, "seed": 7})
    assert [kill["left"] for kill in killed] == [[]] * 6
    assert again == {"again": 7}


def test_interrupt_ends_in_order() -> None:
    (report,) = reports(kills.interrupt)
    assert report["left"] == []
    assert report["status"] != 0
    assert "KeyboardInterrupt" in report["stderr"]
    assert report["s"] < 4


def test_second_run_refuses_or_waits() -> None:
    refused, waited = reports(kills.second_run)
    assert refused["status"] == 1  # a bare script shows the traceback; the command line maps it to 3
    assert "BusyError" in refused["stderr"]
    assert refused["named"], refused
    assert waited == {"patient": 7}


def test_lock() -> None:
    assert reports(kills.lock_alone) == [{"refused": True, "exit": 3}, {"free": True}]


def test_leftovers_are_seen() -> None:
    (kinds,) = reports(kills.leave_something)
    assert {"files", "interfaces", "class/net", "namespaces", "processes"} <= set(kinds)


def test_compare_shows_new_things_only() -> None:
    before = {"files": ("/tmp/a",), "mounts": ("x",)}
    after = {"files": ("/tmp/a", "/tmp/b"), "mounts": ()}
    assert compare(before, after) == ["files: /tmp/b"]
