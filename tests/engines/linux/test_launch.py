"""The parent of a guest: its exit code, the ends of what the guest started, and the folder for its memory."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from engines.linux.launch import MEMORY, launcher

DEAD_PID = 2**22 + 1  # above the kernel's limit: never a process


def started(home: Path, script: str) -> subprocess.Popen[str]:
    argv = launcher(["/bin/sh", "-c", script], None, home, home)
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=home, start_new_session=True)


@pytest.mark.parametrize(("script", "code"), [("exit 3", 3), ("kill -KILL $$", 137)])
def test_it_exits_as_the_guest_does_and_takes_its_memory_along(
    tmp_path: Path, script: str, code: int
) -> None:
    with started(tmp_path, f"stat -c '%a %n' $TMPDIR; {script}") as process:
        said, _ = process.communicate(timeout=20)
    assert process.returncode == code
    mode, folder = said.split()
    assert mode == "700"
    assert folder.startswith(f"{tmp_path}/{MEMORY}{process.pid}-")
    assert not list(tmp_path.iterdir())


def test_a_stopped_process_of_a_guest_ends_with_it(tmp_path: Path) -> None:
    with started(tmp_path, "sh -c 'kill -STOP $$' & echo $!; sleep 100") as process:
        assert process.stdout
        stopped = int(process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        process.wait(20)
    assert not Path("/proc", str(stopped)).exists()
    assert not list(tmp_path.iterdir())


def test_a_guest_and_its_folder_end_with_a_parent_that_was_killed(tmp_path: Path) -> None:
    with started(tmp_path, "echo $$; sleep 100") as process:
        assert process.stdout
        guest = Path("/proc", process.stdout.readline().strip())
        process.kill()
        process.wait(20)
    deadline_s = time.monotonic() + 10
    while (
        guest.exists() and "Z" not in (guest / "stat").read_text().split() and time.monotonic() < deadline_s
    ):
        time.sleep(0.01)
    assert len(list(tmp_path.iterdir())) == 1
    with started(tmp_path, "true") as again:
        assert again.wait(20) == 0
    assert not list(tmp_path.iterdir())


def test_only_folders_of_processes_that_have_ended_are_removed(tmp_path: Path) -> None:
    alive, dead = (tmp_path / f"{MEMORY}{pid}-x" for pid in (os.getpid(), DEAD_PID))
    for folder in (alive, dead):
        folder.mkdir()
        (folder / "memory").write_text("x")
    with started(tmp_path, "true") as process:
        assert process.wait(20) == 0
    assert list(tmp_path.iterdir()) == [alive]
