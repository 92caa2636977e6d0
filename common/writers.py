"""Who writes a `.tmp-` folder, and whether that process has ended."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MAX_BYTES = 200
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def owner_text() -> bytes:
    """Return what a writer leaves in its folder: `<pid> <boot id> <PID namespace>`."""
    return f"{os.getpid()} {_place()}\n".encode()


def _place() -> str:
    """Return where a pid of this process means the same process: this boot, this PID namespace."""
    return f"{_boot_id()} {Path('/proc/self/ns/pid').stat().st_ino}"


def _boot_id() -> str:
    return _BOOT_ID.read_text().strip()


def is_abandoned(parent: int, name: str, owner: str) -> bool:
    """Return whether the writer of the folder `name` is gone: no process holds the lock of its file `owner`.

    A shared lock is tried, because the file need not be writable for it, not even over NFS. Where there are
    no locks at all, the file's text decides: a pid of another machine or boot is never judged by the pids
    here, and its folder stays. Raises OSError.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        handle = os.open(f"{name}/{owner}", flags, dir_fd=parent)
    except FileNotFoundError:
        return True
    except PermissionError:  # root's, until it is published
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return _is_dead(os.read(handle, _MAX_BYTES))
    finally:
        os.close(handle)
    return True


def _is_dead(text: bytes) -> bool:
    pid, _, place = text.decode(errors="replace").strip().partition(" ")
    return place == _place() and pid.isdecimal() and not Path("/proc", pid).exists()


def remove_tree(name: str, parent: int) -> None:
    """Remove a folder tree in an open folder. Entries that another process removes meanwhile are not errors.

    The tree may be of any depth: what is in a folder moves to the top of the tree first, so that two
    descriptors suffice. Raises OSError.
    """
    with contextlib.suppress(FileNotFoundError):
        top = os.open(name, _FOLDER, dir_fd=parent)
        try:
            while entries := _names(top):
                for entry in entries:
                    _remove(entry, top)
        finally:
            os.close(top)
        os.rmdir(name, dir_fd=parent)


def _remove(entry: str, top: int) -> None:
    """Remove an entry of an open folder; folders in it move to the open folder. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        if not _is_folder_after_unlink(entry, top):
            return
        folder = os.open(entry, _FOLDER, dir_fd=top)
        try:
            for inner in _names(folder):
                with contextlib.suppress(FileNotFoundError):
                    if _is_folder_after_unlink(inner, folder):
                        os.rename(inner, secrets.token_hex(16), src_dir_fd=folder, dst_dir_fd=top)
        finally:
            os.close(folder)
        os.rmdir(entry, dir_fd=top)


def _is_folder_after_unlink(name: str, parent: int) -> bool:
    """Unlink an entry that is no folder; return whether it is one. Raises OSError."""
    try:
        os.unlink(name, dir_fd=parent)
    except IsADirectoryError:
        return True
    return False


def _names(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]
