"""Interrupts while something is written or started, and programs that are started."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NoReturn

import pytest

from common import processes
from engines import provenance

DEADLINE_S = 20.0


class _Slow:
    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


def in_del() -> None:
    _Slow()
    gc.collect()


def in_a_callback() -> None:
    ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGINT))()


@pytest.mark.parametrize("interrupted", [in_del, in_a_callback])
def test_it_ends_the_block(interrupted: Callable[[], None]) -> None:
    went_on = False
    with pytest.raises(KeyboardInterrupt), processes.never_lost():
        interrupted()
        went_on = True
        time.sleep(DEADLINE_S)
    assert went_on


def test_a_sigterm_ends_it_where_sigint_is_ignored() -> None:
    def stop(_number: int, _frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, stop)
    try:
        with pytest.raises(KeyboardInterrupt), processes.never_lost():
            ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGTERM))()
            time.sleep(DEADLINE_S)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_other_dropped_errors_are_reported_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []

    def hook(caught: sys.UnraisableHookArgs) -> None:
        seen.append(caught.exc_type)

    def wrong() -> NoReturn:
        raise ValueError

    monkeypatch.setattr(sys, "unraisablehook", hook)
    with processes.never_lost():
        ctypes.CFUNCTYPE(None)(wrong)()
    assert seen == [ValueError]
    assert sys.unraisablehook is hook


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True, timeout=30)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init", "--quiet")
    (folder / "file").write_text("before\n")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "first")
    return folder


def test_a_changed_checkout_has_a_plus(checkout: Path) -> None:
    assert provenance.revision(checkout).isalnum()
    (checkout / "file").write_text("after\n")
    assert provenance.revision(checkout).endswith("+")


def test_a_module_in_the_current_folder_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('a stranger')\n")
    argv = [*processes.python(), "import json; print(json.dumps(1))"]
    variables = {**processes.environment(), "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        argv, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr


def test_no_import_from_the_current_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["", "/somewhere"])
    assert processes.import_path() == ["/somewhere"]


@pytest.mark.parametrize(("uid", "path"), [(0, processes.SYSTEM_PATH), (1000, "/home/somebody/bin")])
def test_only_roots_programs_have_a_fixed_path(uid: int, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    monkeypatch.setenv("PATH", "/home/somebody/bin")
    monkeypatch.setenv("PYTHONPATH", "/home/somebody")
    found = processes.environment({"MORE": "1"})
    assert (found["PATH"], found["MORE"], found.get("PYTHONPATH")) == (path, "1", None)
