"""Files named on the command line: only regular files are read, and root runs no other user's code."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ccp.loading import MAX_FILE_BYTES, text_of
from common.errors import UsageError
from harness.options.files import link_traces
from harness.options.files.sizes import expanded

READERS: dict[str, Callable[[Path], object]] = {
    "algorithm": text_of,
    "link trace": lambda path: link_traces.parsed("--link-trace", f"@{path}"),
    "sizes": lambda path: expanded(f"pairs:60:sizes=@{path}"),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_pipe_is_not_waited_for_and_a_device_not_read(tmp_path: Path, reader: str) -> None:
    os.mkfifo(tmp_path / "mine.py")
    for path in (tmp_path / "mine.py", Path("/dev/zero")):
        with pytest.raises(UsageError, match="it is not a regular file"):
            READERS[reader](path)


@pytest.mark.parametrize("reader", ["link trace", "sizes"])
def test_a_link_is_not_followed(tmp_path: Path, reader: str) -> None:
    (tmp_path / "secret").write_text("root:secret\n")
    (tmp_path / "linked").symlink_to(tmp_path / "secret")
    with pytest.raises(UsageError, match=r"linked: cannot be read: Too many levels of symbolic links"):
        READERS[reader](tmp_path / "linked")


def test_root_runs_no_algorithm_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text("x = 1\n")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("SUDO_UID", str(mine.stat().st_uid))
    assert text_of(mine) == "x = 1\n"
    mine.chmod(0o666)
    with pytest.raises(UsageError, match="root would run it, and other users may write it"):
        text_of(mine)
    mine.chmod(0o644)
    about = os.stat_result((0o100644, 0, 0, 1, 4321, 4321, 0, 0, 0, 0))
    monkeypatch.setattr(os, "fstat", lambda _handle: about)
    with pytest.raises(UsageError, match="belongs to user 4321"):
        text_of(mine)


def test_an_algorithm_has_a_size(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    with pytest.raises(UsageError, match="larger than"):
        text_of(tmp_path / "mine.py")
