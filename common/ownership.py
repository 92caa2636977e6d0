"""The owner of files that root makes in a folder of an ordinary user.

A folder of a user decides: what root makes in it becomes the user's. In a folder of root's, the user who
called sudo gets it. Ownership changes only by descriptor, and only of what root has just made: a name in a
folder of another user may lead to any file a moment later.
"""

from __future__ import annotations

import contextlib
import os
import pwd
from pathlib import Path

Heir = tuple[int, int]
"""A uid and its gid."""
_MAX_ID = 2**32 - 2


def sudo_user() -> Heir | None:
    """Return uid and gid of the user who called sudo; None without sudo, without root, or without numbers."""
    uid, gid = _of_sudo("SUDO_UID"), _of_sudo("SUDO_GID")
    if uid is None or gid is None:
        return None
    return (uid, gid) if uid and max(uid, gid) <= _MAX_ID else None


def trusted() -> set[int]:
    """Return the users whose links and programs root uses: itself, and the user who called sudo."""
    caller = _of_sudo("SUDO_UID")
    return {0} if caller is None else {0, caller}


def _of_sudo(name: str) -> int | None:
    """Return the number that sudo put into the environment; None without sudo, root, or a number."""
    text = os.environ.get(name, "")
    is_number = text.isascii() and text.isdecimal() and len(text) <= 10
    return int(text) if os.geteuid() == 0 and is_number else None


def home() -> Path:
    """Return the home folder of the user who called sudo, by the user database; without sudo our own."""
    user = sudo_user()
    if user is not None:
        with contextlib.suppress(KeyError):
            return Path(pwd.getpwuid(user[0]).pw_dir)
    try:
        return Path.home()
    except RuntimeError:  # no HOME, and no such user
        return Path("/")


def heir(folder: int | Path) -> Heir | None:
    """Return user and group for what this process makes in `folder`, a descriptor or a path; None: its own.

    Raises OSError.
    """
    if os.geteuid() != 0:
        return None
    found = os.fstat(folder) if isinstance(folder, int) else folder.stat()
    return (found.st_uid, found.st_gid) if found.st_uid else sudo_user()


def give(handle: int, to: Heir | None) -> None:
    """Give an open file or folder to a user and group. Shared folders of virtual machines, and servers that
    map root to nobody, refuse it; it then keeps its owner. Raises other OSErrors."""
    if to is not None:
        with contextlib.suppress(PermissionError):
            os.fchown(handle, *to)


def give_tree(folder: int, to: Heir | None) -> None:
    """Give the tree in an open folder that only root could write until now, the folder itself last.

    Raises OSError.
    """
    if to is None:
        return
    with contextlib.suppress(PermissionError):
        for _, folders, names, handle in os.fwalk(".", topdown=False, dir_fd=folder):
            for name in (*folders, *names):
                if os.stat(name, dir_fd=handle, follow_symlinks=False).st_uid == 0:
                    os.chown(name, *to, dir_fd=handle, follow_symlinks=False)
        os.fchown(folder, *to)
