"""Replace a folder by another so that a complete one remains if the process dies at any moment."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat

from common.writers import remove_tree

OLD_PREFIX = ".old-"
"""A folder that is being replaced where names cannot be swapped in one step."""
_RENAME_EXCHANGE = 2
_CANNOT = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})


def put_in_place(parent: int, new: str, name: str) -> None:
    """Rename the folder `new` to `name` in the open folder `parent`. An older folder of that name is then
    called `new`, or is gone. Raises OSError."""
    if not exists(parent, name):
        os.rename(new, name, src_dir_fd=parent, dst_dir_fd=parent)
    elif not swapped(parent, new, name):
        in_two_steps(parent, new, name)


def swapped(parent: int, one: str, other: str) -> bool:
    """Swap two names (renameat2(2)); return False if the file system cannot. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(parent, os.fsencode(one), parent, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), one, None, other)


def in_two_steps(parent: int, new: str, name: str) -> None:
    """Replace `name` by `new`, as network file systems must. Between the steps the older folder has another
    name, which `recover` knows. Raises OSError."""
    older = OLD_PREFIX + name
    if exists(parent, older):
        remove_tree(older, parent)
    os.rename(name, older, src_dir_fd=parent, dst_dir_fd=parent)
    os.fsync(parent)
    try:
        os.rename(new, name, src_dir_fd=parent, dst_dir_fd=parent)
    except BaseException:
        os.rename(older, name, src_dir_fd=parent, dst_dir_fd=parent)
        raise
    os.fsync(parent)
    remove_tree(older, parent)


def recover(parent: int) -> None:
    """Put back every folder whose replacement did not take its place, and remove replaced ones.

    Raises OSError.
    """
    for older in [name for name in names(parent) if name.startswith(OLD_PREFIX)]:
        name = older.removeprefix(OLD_PREFIX)
        if exists(parent, name):
            remove_tree(older, parent)
        else:
            with contextlib.suppress(FileNotFoundError):
                os.rename(older, name, src_dir_fd=parent, dst_dir_fd=parent)


def names(folder: int) -> list[str]:
    """Return the names in an open folder, sorted. Raises OSError."""
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries)


def exists(parent: int, name: str) -> bool:
    """Return whether there is a folder `name` in the open folder. Raises NotADirectoryError for a file."""
    try:
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name)
    return True
