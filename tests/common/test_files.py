"""Unfinished folders: removed when their writer is dead, never before."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from common import files
from common.errors import StoreError

WRITER = """
import sys, time
from pathlib import Path
from common import files
from common.errors import StoreError
aside = files.open_aside(Path(sys.argv[1]), "point")
(aside.path / "half").write_text("x")
print(aside.path, flush=True)
time.sleep(60)
"""


def start_writer(folder: Path) -> tuple[subprocess.Popen[str], Path]:
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    return writer, Path(writer.stdout.readline().strip())


def test_a_live_writer_keeps_its_folder_and_a_killed_one_does_not(tmp_path: Path) -> None:
    writer, aside = start_writer(tmp_path)
    try:
        assert files.remove_abandoned(tmp_path) == []
        assert (aside / files.OWNER).read_text() == f"{writer.pid}\n"
    finally:
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        assert writer.stdout is not None
        writer.stdout.close()
    assert files.remove_abandoned(tmp_path) == [aside.name]
    assert list(tmp_path.iterdir()) == []


def test_a_pid_taken_by_another_process_does_not_protect_the_dead(tmp_path: Path) -> None:
    stale = tmp_path / f"{files.TMP_PREFIX}old"
    stale.mkdir()
    (stale / files.OWNER).write_text(f"{os.getpid()}\n")
    assert files.remove_abandoned(tmp_path) == [stale.name]


def test_without_locks_the_pid_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(_handle: int, _operation: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    mine = files.open_aside(tmp_path, "mine")
    dead = tmp_path / f"{files.TMP_PREFIX}dead"
    dead.mkdir()
    (dead / files.OWNER).write_text("4194304999\n")
    assert files.remove_abandoned(tmp_path) == [dead.name]
    files.discard(mine)
    assert list(tmp_path.iterdir()) == []


def test_only_unfinished_things_are_removed(tmp_path: Path) -> None:
    (tmp_path / "k4-point").mkdir()
    (tmp_path / ".hidden").write_text("")
    (tmp_path / f"{files.TMP_PREFIX}summary.csv-x").write_text("half")
    assert files.remove_abandoned(tmp_path) == [".tmp-summary.csv-x"]
    assert sorted(p.name for p in tmp_path.iterdir()) == [".hidden", "k4-point"]


def test_replacing_a_file_is_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "summary.csv"
    files.replace_file(target, b"one")
    files.replace_file(target, b"two")
    assert target.read_bytes() == b"two"

    def interrupted(path: Path, data: bytes) -> None:
        path.write_bytes(data[:1])
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "write_bytes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        files.replace_file(target, b"three")
    assert [p.read_bytes() for p in tmp_path.iterdir()] == [b"two"]


def test_owners_are_given_up_where_the_file_system_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_arguments: object, **_options: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setenv("SUDO_UID", "1000")
    monkeypatch.setenv("SUDO_GID", "1000")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "chown", refused)
    files.make_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()


def test_what_another_process_removes_meanwhile_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "old"
    folder.mkdir()
    for name in ("flows.csv", "ports.csv"):
        (folder / name).write_text("")
    unlink = os.unlink

    def twice(*args: Any, **kwargs: Any) -> None:
        unlink(*args, **kwargs)
        unlink(*args, **kwargs)

    monkeypatch.setattr(os, "unlink", twice)
    files.remove_tree(folder)
    assert not folder.exists()


def test_a_folder_that_stays_locked_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LOCK_S", 0.2)
    holder = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with pytest.raises(StoreError, match=r"another process has held its lock for 0\.2 s"):
            files.replace_file(tmp_path / "file", b"new")
        assert not (tmp_path / "file").exists()
    finally:
        os.close(holder)
    files.replace_file(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"
