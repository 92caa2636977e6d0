"""Files named on the command line: only regular ones are read, and only new ones written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ccp.loading import MAX_FILE_BYTES, text_of
from common.errors import UsageError
from common.files import write_new
from harness.options import user_files
from harness.options.user_files import expanded

READERS: dict[str, Callable[[Path], object]] = {
    "algorithm": text_of,
    "link trace": lambda path: user_files.link_trace_of("--link-trace", f"@{path}"),
    "sizes": lambda path: expanded(f"pairs:60:sizes=@{path}"),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_pipe_is_not_waited_for_and_a_device_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)  # root would not read /dev/zero, which others may write
    os.mkfifo(tmp_path / "mine.py")
    for path in (tmp_path / "mine.py", Path("/dev/zero")):
        with pytest.raises(UsageError, match="it is not a regular file"):
            READERS[reader](path)


def test_a_link_leads_to_its_file(tmp_path: Path) -> None:
    sizes, link = tmp_path / "sizes.txt", tmp_path / "link.txt"
    sizes.write_text("8760 0.5\n87600 1\n")
    link.symlink_to(sizes)
    assert expanded(f"pairs:60:sizes=@{link}") == expanded(f"pairs:60:sizes=@{sizes}")


def test_only_a_new_file_is_written(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    write_new("--output new", tmp_path / "new", b"text")
    assert (tmp_path / "new").read_bytes() == b"text"
    for name, why in (("mine", "it exists; name another"), ("link", "it exists"), ("no/such", "No such")):
        with pytest.raises(UsageError, match=f"^--output x: .*{why}"):
            write_new("--output x", tmp_path / name, b"text")
    assert (tmp_path / "mine").read_text() == "mine"


def test_an_algorithm_has_a_size(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    with pytest.raises(UsageError, match="larger than"):
        text_of(tmp_path / "mine.py")
