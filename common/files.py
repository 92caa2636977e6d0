"""Atomic writes: files and folders that are either complete or absent.

A folder being written is called `.tmp-<name>-<random>`. It contains a file `owner`, which the writer keeps
locked (`flock`). The kernel releases the lock when the writer dies, for any reason. Unlike a pid, the lock is
valid across PID namespaces, and over NFS across machines (nfs(5), `local_lock`).

Root may write in a folder of another user, who can rename what is in it at any time. So everything is
opened by its name in an open folder, without following links, and only root can enter a folder until it is
published (ownership.py).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from common import folders, ownership
from common.errors import DiskFullError, StoreError
from common.renames import names, put_in_place, recover
from common.writers import is_abandoned, owner_text, remove_tree

TMP_PREFIX = ".tmp-"
OWNER = "owner"
LOCK_S, LOCK_POLL_S = 60.0, 0.05
"""How long another process may hold a folder, and how often it is tried."""
LOCK = ".lock"
"""Locked instead of the folder where folders cannot be: over NFS only a file open for writing can be
(flock(2)), and a file server may have no locks at all."""


def is_full(error: OSError) -> bool:
    """Return whether the error means that the disk, or the user's quota, is full."""
    return error.errno in {errno.ENOSPC, errno.EDQUOT}


def store_error(attempt: str, error: OSError) -> StoreError:
    """Return a StoreError, or DiskFullError, that says what was attempted, what happened and what to do."""
    happened = error.strerror or str(error)
    if is_full(error):
        advice = "free some space there and run the same command again; finished points are kept"
        return DiskFullError(f"{attempt}: {happened}; {advice}")
    return StoreError(f"{attempt}: {happened}; choose a folder you can write to with --results DIR")


@contextlib.contextmanager
def storing(attempt: str) -> Iterator[None]:
    """Convert an OSError raised in the block into a StoreError that names `attempt`."""
    try:
        yield
    except OSError as error:
        raise store_error(attempt, error) from error


def read_bytes(path: Path, limit: int) -> bytes:
    """Return the content of a regular file of at most `limit` bytes; the path must not end in a link.

    Raises OSError. It does not wait: a pipe of that name has no writer, and would never have one.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"it is larger than {limit >> 20} MiB", str(path))
    return data


def write_bytes(path: Path, data: bytes, to: ownership.Heir | None = None) -> None:
    """Write a new file, give it to user and group `to`, and fsync it. Raises OSError, also if there is
    something of that name. All writes of the store use this function, so tests can make them fail."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o644), "wb") as file:
        file.write(data)
        file.flush()
        os.fchmod(file.fileno(), 0o644)
        ownership.give(file.fileno(), to)
        os.fsync(file.fileno())


def fsync_tree(folder: int) -> None:
    """fsync every file and folder of an open folder. Engines do not sync their raw files themselves."""
    for _, _, entries, handle in os.fwalk(".", dir_fd=folder):
        for name in entries:
            if stat.S_ISREG(os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode):
                file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=handle)
                try:
                    os.fsync(file)
                finally:
                    os.close(file)
        os.fsync(handle)


def make_folder(path: Path) -> None:
    """Create the folder and its missing parents; each belongs to its heir (folders.py). Raises OSError."""
    folders.make_folder(path)


def inside(handle: int) -> Path:
    """Return a path to an open folder that holds in this process, whatever happens to the folder's name."""
    return Path(f"/proc/self/fd/{handle}")


def replace_file(path: Path, data: bytes, tag: str = "", beside: Path | None = None) -> None:
    """Replace the content of `path` atomically: readers see either the old or the new content.

    `tag` marks the temporary file for `remove_tagged`. The temporary file is made in the folder `beside`
    (default: the folder of `path`), which must be on the same file system.

    Raises StoreError; no temporary file remains then.
    """
    update_file(path, lambda: data, tag, beside)


def update_file(
    path: Path, change: Callable[[], bytes | None], tag: str = "", beside: Path | None = None
) -> None:
    """Replace the content of `path` as `replace_file` does, by what `change` returns; None changes nothing.

    `change` is called alone: no other process updates a file with the same `beside` meanwhile, so that none
    loses what another one added. Raises StoreError.
    """
    folder = beside or path.parent
    with storing(f"writing {path}"), _alone_in(folder) as handle, opened(path.parent) as home:
        data = change()
        if data is None:
            return
        aside = f"{TMP_PREFIX}{path.name}-{tag}{secrets.token_hex(4)}"
        try:
            write_bytes(inside(handle) / aside, data, ownership.heir(home))
            os.replace(aside, path.name, src_dir_fd=handle, dst_dir_fd=home)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(aside, dir_fd=handle)
            raise
        os.fsync(home)


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[int]:
    """Open a folder for the block; root follows no link of somebody else's (folders.py). Raises OSError."""
    handle = folders.open_folder(folder)
    try:
        yield handle
    finally:
        os.close(handle)


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[int]:
    """Open `folder` and lock it against other runs that create, rename or remove `.tmp-` entries.

    Raises OSError, and StoreError when another process does not release it.
    """
    with opened(folder) as handle, contextlib.ExitStack() as stack:
        if not _lock(handle, folder):
            with contextlib.suppress(PermissionError):  # another user's: each writes own files there
                flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                file = os.open(LOCK, flags, 0o644, dir_fd=handle)
                stack.callback(os.close, file)
                ownership.give(file, ownership.heir(handle))
                _lock(file, folder)
        yield handle


def _lock(handle: int, folder: Path) -> bool:
    """Lock an open file or folder; return False if its file system cannot. Raises StoreError when another
    process does not release it.

    Where neither can be locked, two runs at once on one folder are the user's own risk.
    """
    until = time.monotonic() + LOCK_S
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > until:
                raise StoreError(
                    f"locking {folder}: another process has held its lock for {LOCK_S:g} s; find it with "
                    f"`fuser {folder}`, end it, and run the same command again"
                ) from None
        except OSError:
            return False
        time.sleep(LOCK_POLL_S)


@dataclass(frozen=True)
class Aside:
    """A folder being written. This process owns it until `publish` or `discard`.

    `path` is its name, for messages. What this process writes goes to `inside`, which is the folder itself
    even if somebody puts another one in its place. `parent`, `folder` and `lock` are open descriptors.
    """

    path: Path
    parent: int
    folder: int
    lock: int

    @property
    def inside(self) -> Path:
        return inside(self.folder)


def open_aside(parent: Path, name: str, tag: str = "") -> Aside:
    """Create a `.tmp-` folder in `parent`, locked by this process and marked for `remove_tagged`.

    Raises OSError; nothing remains then.
    """
    with contextlib.ExitStack() as stack, _alone_in(parent) as handle:
        outer = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=handle)  # without its lock
        stack.callback(os.close, outer)
        unique = f"{TMP_PREFIX}{name}-{tag}{secrets.token_hex(4)}"
        os.mkdir(unique, 0o700, dir_fd=outer)
        stack.callback(_remove_named, outer, unique)
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        folder = os.open(unique, flags, dir_fd=outer)
        stack.callback(os.close, folder)
        if os.fstat(folder).st_uid != os.geteuid() and os.geteuid() == 0:
            raise OSError(errno.EPERM, "somebody else puts folders there meanwhile", str(parent / unique))
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        lock = os.open(OWNER, flags, 0o644, dir_fd=folder)
        stack.callback(os.close, lock)
        _lock_if_supported(lock)
        os.write(lock, owner_text())
        stack.pop_all()
    return Aside(parent / unique, outer, folder, lock)


def _remove_named(parent: int, name: str) -> None:
    shutil.rmtree(name, ignore_errors=True, dir_fd=parent)


def _lock_if_supported(lock: int) -> None:
    """Lock our own file. On a file system without locks the text in the file identifies the owner."""
    with contextlib.suppress(OSError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def discard(aside: Aside) -> None:
    """Remove the folder if it still exists and release its lock; the next run removes any remains."""
    try:
        _remove_named(aside.parent, aside.path.name)
    finally:
        for handle in (aside.lock, aside.folder, aside.parent):
            os.close(handle)


def publish(aside: Aside, name: str) -> None:
    """Rename the folder to `name` in one step, replacing an older folder of that name. Raises OSError.

    The caller must still discard `aside`, which then contains the older folder, if there was one.
    """
    fsync_tree(aside.folder)
    with _alone_in(aside.path.parent):
        there, ours = (
            os.stat(aside.path.name, dir_fd=aside.parent, follow_symlinks=False),
            os.fstat(aside.folder),
        )
        if (there.st_dev, there.st_ino) != (ours.st_dev, ours.st_ino):
            raise OSError(errno.ESTALE, "somebody else moved it meanwhile", str(aside.path))
        os.unlink(OWNER, dir_fd=aside.folder)
        ownership.give_tree(aside.folder, ownership.heir(aside.parent))
        os.fchmod(aside.folder, 0o755)
        put_in_place(aside.parent, aside.path.name, name)
        os.fsync(aside.parent)


def remove_abandoned(parent: Path) -> list[str]:
    """Remove the entries of dead writers in `parent` and return their names; put back a folder whose
    replacement was interrupted. Raises StoreError."""
    removed = []
    with storing(f"removing unfinished folders in {parent}"), _alone_in(parent) as handle:
        recover(handle)
        for name in [name for name in names(handle) if name.startswith(TMP_PREFIX)]:
            if not _is_folder(handle, name):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=handle)
            elif is_abandoned(handle, name, OWNER):
                remove_tree(name, handle)
            else:
                continue
            removed.append(name)
    return removed


def _is_folder(parent: int, name: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def remove_tagged(parent: Path, tag: str) -> None:
    """Remove every `.tmp-` entry of `parent` made with `tag`. Raises StoreError."""
    with storing(f"removing unfinished folders in {parent}"), opened(parent) as handle:
        for name in names(handle):
            if not (name.startswith(TMP_PREFIX) and f"-{tag}" in name):
                continue
            if _is_folder(handle, name):
                remove_tree(name, handle)
            else:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=handle)
