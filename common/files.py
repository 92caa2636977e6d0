"""Files: atomic writes, so that files and folders are complete or absent, and files that users name.

A folder being written is called `.tmp-<name>-<random>`. It contains a file `owner`, which the writer keeps
locked (`flock`). The kernel releases the lock when the writer dies, for any reason. Unlike a pid, the lock is
valid across PID namespaces, and over NFS across machines (nfs(5), `local_lock`).

A finished folder swaps names with an older one in one step. Where a file system cannot swap names, the older
one is called `.old-<name>` for a moment; the next run puts it back, or removes it.

Writing to the store raises StoreError; a file that a user names (`text_of`, `write_new`), UsageError.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from common.errors import DiskFullError, StoreError, UsageError
from common.privileges import check_private

TMP_PREFIX, OLD_PREFIX = ".tmp-", ".old-"
LOCK_S, LOCK_POLL_S = 60.0, 0.05
"""How long another process may hold a folder, and how often it is tried."""
LOCK = ".lock"
"""Locked instead of the folder where folders cannot be: over NFS only a file open for writing can be
(flock(2)), and a file server may have no locks at all."""
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
_CANNOT_SWAP = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})


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


def open_regular(path: Path | str, folder: int | None = None) -> BinaryIO:
    """Open a regular file for reading; the path, in an open folder if there is one, must not end in a link.

    Raises OSError. It does not wait for the writer of a pipe.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    file = os.fdopen(os.open(path, flags, dir_fd=folder), "rb")
    mode = os.fstat(file.fileno()).st_mode
    if stat.S_ISREG(mode):
        return file
    file.close()
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "it is not a regular file", str(path))


MAX_WALKED_DEPTH = 40
"""Levels of folders that `walk` looks at; refabric writes fewer."""
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
            if prefix.count("/") < MAX_WALKED_DEPTH:
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
            return open_regular(last, handle)
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


def read_bytes(path: Path, limit: int) -> bytes:
    """Return the content of a regular file of at most `limit` bytes; the path must not end in a link.

    Raises OSError. It does not wait: a pipe of that name has no writer, and would never have one.
    """
    with open_regular(path) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"it is larger than {limit >> 20} MiB", str(path))
    return data


def write_bytes(path: Path, data: bytes) -> None:
    """Write a new file and fsync it. Raises OSError, also if there is something of that name.

    All writes of the store use this function, so tests can make them fail.
    """
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _fsync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def fsync_tree(folder: Path) -> None:
    """fsync every file and folder in a folder. Engines do not sync their raw files themselves."""
    for inner, _, names in os.walk(folder):
        for path in (Path(inner, name) for name in names):
            if stat.S_ISREG(path.lstat().st_mode):
                _fsync(path)
        _fsync(Path(inner))


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
    with storing(f"writing {path}"), _alone_in(folder):
        data = change()
        if data is None:
            return
        aside = folder / f"{TMP_PREFIX}{path.name}-{tag}{secrets.token_hex(4)}"
        try:
            write_bytes(aside, data)
            aside.replace(path)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise
        _fsync(path.parent)


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Lock `folder` against other runs that create, rename or remove `.tmp-` entries.

    Raises OSError, and StoreError when another process does not release it.
    """
    with contextlib.ExitStack() as stack:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        stack.callback(os.close, handle)
        if not _lock(handle, folder):
            with contextlib.suppress(PermissionError):  # another user's: each writes own files there
                flags = os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC
                file = os.open(folder / LOCK, flags, 0o644)
                stack.callback(os.close, file)
                _lock(file, folder)
        yield


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
    """A folder being written. This process owns it, by the open file `lock`, until `publish` or `discard`."""

    path: Path
    lock: int


def open_aside(parent: Path, name: str, tag: str = "") -> Aside:
    """Create a `.tmp-` folder in `parent`, locked by this process and marked for `remove_tagged`.

    Raises OSError; nothing remains then.
    """
    path = parent / f"{TMP_PREFIX}{name}-{tag}{secrets.token_hex(4)}"
    with contextlib.ExitStack() as stack, _alone_in(parent):
        path.mkdir()
        stack.callback(remove_tree, path)
        lock = os.open(path / OWNER, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        stack.callback(os.close, lock)
        with contextlib.suppress(OSError):  # without locks the text in the file identifies the owner
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(lock, owner_text())
        stack.pop_all()
    return Aside(path, lock)


def discard(aside: Aside) -> None:
    """Remove the folder if it still exists and release its lock; the next run removes any remains."""
    with contextlib.suppress(OSError):
        remove_tree(aside.path)
    os.close(aside.lock)


def publish(aside: Aside, name: str) -> None:
    """Rename the folder to `name` in one step, replacing an older folder of that name. Raises OSError.

    The caller must still discard `aside`, which then contains the older folder, if there was one.
    """
    parent = aside.path.parent
    fsync_tree(aside.path)
    with _alone_in(parent):
        (aside.path / OWNER).unlink()
        _put_in_place(aside.path, parent / name)
        _fsync(parent)


def _put_in_place(new: Path, path: Path) -> None:
    """Rename the folder `new` to `path`. An older folder of that name is then called `new`, or is gone."""
    if not _is_there(path):
        new.rename(path)
    elif not swapped(new, path):
        in_two_steps(new, path)


def _is_there(path: Path) -> bool:
    """Return whether there is a folder of this name. Raises NotADirectoryError for anything else."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
    return True


def swapped(one: Path, other: Path) -> bool:
    """Swap two names (renameat2(2)); return False if the file system cannot. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT_SWAP:
        return False
    raise OSError(number, os.strerror(number), str(one), None, str(other))


def in_two_steps(new: Path, path: Path) -> None:
    """Replace `path` by `new`, as network file systems must. Between the steps the older folder has another
    name, which `recover` knows. Raises OSError."""
    older = path.with_name(OLD_PREFIX + path.name)
    if _is_there(older):
        remove_tree(older)
    path.rename(older)
    _fsync(path.parent)
    try:
        new.rename(path)
    except BaseException:
        older.rename(path)
        raise
    _fsync(path.parent)
    remove_tree(older)


def recover(parent: Path) -> None:
    """Put back every folder whose replacement did not take its place, and remove replaced ones.

    Raises OSError.
    """
    for older in _beginning_with(OLD_PREFIX, parent):
        path = parent / older.name.removeprefix(OLD_PREFIX)
        if _is_there(path):
            remove_tree(older)
        else:
            with contextlib.suppress(FileNotFoundError):
                older.rename(path)


def _beginning_with(prefix: str, parent: Path) -> list[Path]:
    return sorted(path for path in parent.iterdir() if path.name.startswith(prefix))


def remove_abandoned(parent: Path) -> list[str]:
    """Remove the entries of dead writers in `parent` and return their names; put back a folder whose
    replacement was interrupted. Raises StoreError."""
    removed = []
    with storing(f"removing unfinished folders in {parent}"), _alone_in(parent):
        recover(parent)
        for path in _beginning_with(TMP_PREFIX, parent):
            if path.is_symlink() or not path.is_dir() or is_abandoned(path):
                _remove(path)
                removed.append(path.name)
    return removed


def remove_tagged(parent: Path, tag: str) -> None:
    """Remove every `.tmp-` entry of `parent` made with `tag`. Raises StoreError."""
    with storing(f"removing unfinished folders in {parent}"):
        for path in _beginning_with(TMP_PREFIX, parent):
            if f"-{tag}" in path.name:
                _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        remove_tree(path)
    else:
        path.unlink(missing_ok=True)


MAX_TEXT_BYTES = 1 << 26
MAX_LABEL = 40


def text_of(what: str, path: Path, limit: int = MAX_TEXT_BYTES) -> str:
    """Return the text of a regular file of at most `limit` bytes. Raises UsageError that begins with `what`.

    It does not wait for a pipe's writer.
    """
    if not path.name:
        raise UsageError(f"{what.strip()}: give the name of a file")
    try:
        check_private(what, path)
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UsageError(f"{what}: it is not a regular file; write its content to one first")
            data = file.read(limit + 1)
        if len(data) > limit:
            raise UsageError(f"{what}: it is larger than {limit >> 10} KiB")
        return data.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{what}: cannot be read: it is not a text file") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"{what}: cannot be read: {reason}") from error


def write_new(what: str, path: Path, data: bytes) -> None:
    """Write a new file. Raises UsageError that begins with `what`, DiskFullError."""
    try:
        check_private(what, path)
        write_bytes(path, data)
    except FileExistsError:
        raise UsageError(f"{what}: it exists; name another file, or remove it") from None
    except OSError as error:
        if is_full(error):
            raise store_error(f"writing {path}", error) from error
        raise UsageError(f"{what}: cannot be written: {error.strerror}") from error


def label_of(path: Path) -> str:
    """Return the file's name for labels and names of folders: letters, digits, dots and underscores."""
    return re.sub(r"[^A-Za-z0-9_.]", "_", path.name)[-MAX_LABEL:]


OWNER = "owner"
"""The file in a `.tmp-` folder that its writer keeps locked."""
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MAX_OWNER_BYTES = 200
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
        return _is_dead(os.read(handle, _MAX_OWNER_BYTES))
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
                    _remove_entry(entry, top)
        finally:
            os.close(top)
        path.rmdir()


def _remove_entry(entry: str, top: int) -> None:
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
