"""Programs that refabric starts: their environment and imports, and what git says of a checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from common import processes
from engines import provenance


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
