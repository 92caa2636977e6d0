"""Programs are started so that root never runs another user's code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from common import programs
from engines import provenance

SPY = "#!/bin/sh\ntouch {mark}\ncat\n"


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True, timeout=30)


@pytest.fixture
def spy(tmp_path: Path) -> tuple[Path, Path]:
    """A program, and the file it makes when somebody runs it."""
    program, mark = tmp_path / "spy", tmp_path / "was-run"
    program.write_text(SPY.format(mark=mark))
    program.chmod(0o755)
    return program, mark


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init", "--quiet")
    (folder / "file").write_text("before\n")
    (folder / ".gitattributes").write_text("file filter=theirs\n")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "first")
    return folder


@pytest.mark.parametrize("setting", ["core.fsmonitor", "filter.theirs.clean", "filter.theirs.process"])
def test_git_runs_no_program_that_a_checkout_names(
    setting: str, checkout: Path, spy: tuple[Path, Path]
) -> None:
    program, mark = spy
    git(checkout, "config", setting, str(program))
    git(checkout, "config", "filter.theirs.required", "true")
    (checkout / "file").write_text("after.\n")
    assert provenance.revision(checkout).endswith("+")
    assert not mark.exists()
    subprocess.run(["git", "-C", str(checkout), "status"], check=False, capture_output=True, timeout=30)
    assert mark.exists(), "the spy does not work: this test shows nothing"


def test_a_clean_checkout_has_no_plus(checkout: Path) -> None:
    assert provenance.revision(checkout).isalnum()


def test_a_module_in_the_current_folder_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('a stranger')\n")
    argv = [*programs.python(), "import json; print(json.dumps(1))"]
    variables = {**programs.environment(), "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        argv, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr


def test_no_import_from_the_current_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["", "/somewhere"])
    assert programs.import_path() == ["/somewhere"]


@pytest.mark.parametrize(("uid", "path"), [(0, programs.SYSTEM_PATH), (1000, "/home/somebody/bin")])
def test_only_roots_programs_have_a_fixed_path(uid: int, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    monkeypatch.setenv("PATH", "/home/somebody/bin")
    monkeypatch.setenv("PYTHONPATH", "/home/somebody")
    found = programs.environment({"MORE": "1"})
    assert (found["PATH"], found["MORE"], found.get("PYTHONPATH")) == (path, "1", None)
