"""Who writes a `.tmp-` folder, whether that process has ended, and removing what it left."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from pathlib import Path

OWNER = "owner"
"""The file in a `.tmp-` folder that its writer keeps locked."""
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MAX_BYTES = 200
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def owner_text() -> bytes:
    """Return what a writer leaves in its folder: `<pid> <boot id> <PID namespace>`."""
    return f"{os.getpid()} {_place()}\n".encode()


def _place() -> str:
    """Return where a pid of this process means the same process: this boot, this PID namespace."""
    return f"{_BOOT_ID.read_text().strip()} {Path('/proc/self/ns/pid').stat().st_ino}"


def is_abandoned(folder: Path) -> bool:
    """Return whether the writer of the folder is gone: no process holds the lock of its file `owner`.

    A shared lock is tried, because the file need not be writable for it, not even over NFS. Where there are
    no locks at all, the file's text decides: a pid of another machine or boot is never judged by the pids
    here, and its folder stays. Raises OSError.
    """
    try:
        handle = os.open(folder / OWNER, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    except PermissionError:  # another user's, who removes it
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


def remove_tree(path: Path) -> None:
    """Remove a folder tree. Entries that another process removes meanwhile are not errors.

    The tree may be of any depth: what is in a folder moves to the top of the tree first, so that two
    descriptors suffice. Raises OSError.
    """
    with contextlib.suppress(FileNotFoundError):
        top = os.open(path, _FOLDER)
        try:
            while entries := _names(top):
                for entry in entries:
                    _remove(entry, top)
        finally:
            os.close(top)
        path.rmdir()


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
