"""Files of a results folder by their place in it. No link on the way is followed."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from common import files

MAX_DEPTH = 40
"""Levels that are looked at. refabric writes fewer; folders further down are as good as empty."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def walk(folder: Path) -> list[tuple[str, os.stat_result]]:
    """Return the path of every entry below a folder, sorted, and what it is.

    Folders in it that cannot be opened are as good as empty. Raises OSError.
    """
    found: list[tuple[str, os.stat_result]] = []
    top = os.open(folder, _FOLDER)
    try:
        waiting = [""]
        while waiting:
            prefix = waiting.pop()
            inside = _entries(top, prefix)
            found += inside
            if prefix.count("/") < MAX_DEPTH:
                waiting += [f"{name}/" for name, about in inside if stat.S_ISDIR(about.st_mode)]
    finally:
        os.close(top)
    return sorted(found, key=lambda entry: entry[0].split("/"))


def _entries(top: int, prefix: str) -> list[tuple[str, os.stat_result]]:
    try:
        handle = _opened(top, prefix)
    except OSError:
        return []
    try:
        with os.scandir(handle) as entries:
            return [(f"{prefix}{entry.name}", entry.stat(follow_symlinks=False)) for entry in entries]
    finally:
        os.close(handle)


def open_below(folder: Path, name: str) -> BinaryIO:
    """Open a regular file below a folder for reading. Raises OSError."""
    top = os.open(folder, _FOLDER)
    try:
        inside, _, last = name.rpartition("/")
        handle = _opened(top, inside)
        try:
            return files.open_regular(last, handle)
        finally:
            os.close(handle)
    finally:
        os.close(top)


def _opened(top: int, inside: str) -> int:
    """Return a descriptor of the folder `inside` an open folder, step by step. Raises OSError."""
    handle = os.dup(top)
    for part in filter(None, inside.split("/")):
        try:
            further = os.open(part, _FOLDER, dir_fd=handle)
        finally:
            os.close(handle)
        handle = further
    return handle
