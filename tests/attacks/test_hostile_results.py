"""A results folder that somebody sent: whatever is in it, commands end in a line and use little memory."""

from __future__ import annotations

import os
from pathlib import Path

from common import files

LEVELS = 3000
"""More than Python's recursion limit, and names longer than a path may be."""


def nest(folder: Path, levels: int = LEVELS) -> None:
    """Make nested folders, with a file on each level."""
    handle = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d" * 20, dir_fd=handle)
        os.close(os.open("f", os.O_WRONLY | os.O_CREAT, dir_fd=handle))
        inner = os.open("d" * 20, os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = inner
    os.close(handle)


def test_a_deep_unfinished_folder_is_removed(tmp_path: Path) -> None:
    """L10: a `.tmp-` folder of 3000 nested folders ended every run in a RecursionError."""
    deep, other = tmp_path / "results" / ".tmp-deep", tmp_path / "other"
    deep.mkdir(parents=True)
    other.mkdir()
    (other / "file").touch()
    nest(deep)
    (deep / "link").symlink_to(other)
    assert files.remove_abandoned(deep.parent) == [".tmp-deep"]
    assert list(deep.parent.iterdir()) == [] and (other / "file").exists()
