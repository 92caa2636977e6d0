"""Open and make folders by name. Root follows no link of another user on the way.

A results folder may belong to anybody, and a link `charts -> /etc` in it must not lead what root writes
there. Links of root's own and of the user who called sudo are followed: both can do what root can.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path, PurePosixPath

from common import ownership
from common.renames import names

_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_DESCRIPTORS = ("/", "proc", "self", "fd")
_MAX_LINKS = 40


def open_folder(path: Path) -> int:
    """Return a descriptor of the folder. Raises OSError, also for a link that root does not follow."""
    if os.geteuid() != 0:
        return os.open(path, _FLAGS)
    parts = path.absolute().parts
    first = 5 if parts[:4] == _DESCRIPTORS else 1  # a descriptor stays valid if its folder is renamed
    handle = os.open(str(PurePosixPath(*parts[:first])), _FLAGS)
    left, links = list(reversed(parts[first:])), 0
    try:
        while left:
            name = left.pop()
            entry = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=handle)
            try:
                target = _target(entry, path)
                if target is None or target.startswith("/"):
                    further = os.open("/", _FLAGS) if target else os.dup(entry)
                    os.close(handle)
                    handle = further
            finally:
                os.close(entry)
            if target is not None:
                left += reversed([part for part in PurePosixPath(target).parts if part != "/"])
                links += 1
            if links > _MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
        return os.open(".", _FLAGS, dir_fd=handle)
    finally:
        os.close(handle)


def _target(entry: int, path: Path) -> str | None:
    """Return where an open link leads; None if it is no link. Raises OSError for a link of another user."""
    about = os.fstat(entry)
    if not stat.S_ISLNK(about.st_mode):
        return None
    if about.st_uid not in ownership.trusted():
        words = f"a link on the way belongs to user {about.st_uid}, and root does not follow it; remove it"
        raise OSError(errno.ELOOP, words, str(path))
    return os.readlink("", dir_fd=entry)


def make_folder(path: Path) -> None:
    """Create the folder and its missing parents; each gets the owner that `heir` returns. Raises OSError."""
    missing: list[str] = []
    base = path
    while True:
        try:
            handle = open_folder(base)
            break
        except FileNotFoundError:
            if base == base.parent:
                raise
            missing.append(base.name)
            base = base.parent
    try:
        for name in reversed(missing):
            inner = _made(handle, name)
            os.close(handle)
            handle = inner
    finally:
        os.close(handle)


def _made(outer: int, name: str) -> int:
    """Return the new folder, or the one that another process has just made."""
    to = ownership.heir(outer)
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, dir_fd=outer)
    handle = os.open(name, _FLAGS | os.O_NOFOLLOW, dir_fd=outer)
    if to is not None and os.fstat(handle).st_uid == 0 and not names(handle):
        ownership.give(handle, to)
    return handle
