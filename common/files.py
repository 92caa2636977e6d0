"""Atomic writes: files and folders that are either complete or absent. Also ownership under sudo.

A folder being written is called `.tmp-<name>-<random>`. It contains a file `owner` with the writer's pid,
which the writer keeps locked (`flock`). The kernel releases the lock when the writer dies, for any reason.
Unlike a pid, the lock is valid across PID namespaces.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from common.errors import StoreError

TMP_PREFIX = ".tmp-"
OWNER = "owner"
LOCK_S, LOCK_POLL_S = 60.0, 0.05
"""How long another process may hold a folder, and how often it is tried."""
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def is_full(error: OSError) -> bool:
    """Return whether the error means that the disk, or the user's quota, is full."""
    return error.errno in {errno.ENOSPC, errno.EDQUOT}


def store_error(attempt: str, error: OSError) -> StoreError:
    """Return a StoreError whose message says what was attempted, what happened and what to do."""
    happened = error.strerror or str(error)
    if is_full(error):
        advice = "free some space there and run the same command again; finished points are kept"
    else:
        advice = "choose a folder you can write to with --results DIR"
    return StoreError(f"{attempt}: {happened}; {advice}")


@contextlib.contextmanager
def storing(attempt: str) -> Iterator[None]:
    """Convert an OSError raised in the block into a StoreError that names `attempt`."""
    try:
        yield
    except OSError as error:
        raise store_error(attempt, error) from error


def write_bytes(path: Path, data: bytes) -> None:
    """Write a new file and fsync it. All writes of the store use this function, so tests can fail them."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def fsync_dir(path: Path) -> None:
    """Flush a folder's entries to disk, so that renames and creations in it survive a crash."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def fsync_tree(path: Path) -> None:
    """fsync `path` and every file and folder below it. Engines do not sync their raw files themselves."""
    for folder, _, names in os.walk(path):
        for name in names:
            entry = Path(folder, name)
            if entry.is_file() and not entry.is_symlink():
                with entry.open("rb") as file:
                    os.fsync(file.fileno())
        fsync_dir(Path(folder))


def sudo_user() -> tuple[int, int] | None:
    """Return uid and gid of the user who called sudo; None without sudo or without root."""
    uid, gid = os.environ.get("SUDO_UID", ""), os.environ.get("SUDO_GID", "")
    if os.geteuid() != 0 or not (uid.isdigit() and gid.isdigit()):
        return None
    return int(uid), int(gid)


def give_back(path: Path) -> None:
    """Give a file or a folder tree to the user who called sudo; symbolic links are not followed."""
    user = sudo_user()
    if user is None:
        return
    # Shared folders of VMs and root-squashing servers refuse chown; keep the result nevertheless.
    with contextlib.suppress(PermissionError):
        os.chown(path, *user, follow_symlinks=False)
        for folder, folders, names in os.walk(path):
            for name in (*folders, *names):
                os.chown(Path(folder, name), *user, follow_symlinks=False)


def make_folder(path: Path) -> None:
    """Create the folder and its missing parents; created folders belong to the user who called sudo."""
    missing = [p for p in (path, *path.parents) if not p.exists()]
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)
        give_back(folder)


def replace_file(path: Path, data: bytes, tag: str = "", beside: Path | None = None) -> None:
    """Replace the content of `path` atomically: readers see either the old or the new content.

    `tag` marks the temporary file for `remove_tagged`. The temporary file is made in the folder `beside`
    (default: the folder of `path`), which must be on the same file system.

    Raises StoreError; no temporary file remains then.
    """
    folder = beside or path.parent
    with storing(f"writing {path}"), _alone_in(folder):
        handle, name = tempfile.mkstemp(prefix=f"{TMP_PREFIX}{path.name}-{tag}", dir=folder)
        os.close(handle)
        aside = Path(name)
        try:
            write_bytes(aside, data)
            aside.chmod(0o644)
            give_back(aside)
            aside.replace(path)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise
        fsync_dir(path.parent)


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Lock `folder` against other runs that create, rename or remove `.tmp-` entries. Raises OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _lock(handle, folder)
        yield
    finally:
        os.close(handle)


def _lock(handle: int, folder: Path) -> None:
    """Lock a folder. Raises StoreError when another process does not release it.

    Where folders cannot be locked, two runs at once on one folder are the user's own risk.
    """
    until = time.monotonic() + LOCK_S
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise StoreError(
                    f"locking {folder}: another process has held its lock for {LOCK_S:g} s; find it with "
                    f"`fuser {folder}`, end it, and run the same command again"
                ) from None
        except OSError:
            return None
        time.sleep(LOCK_POLL_S)


@dataclass(frozen=True)
class Aside:
    """A folder being written. This process owns it until `publish` or `discard`."""

    path: Path
    lock: int


def open_aside(parent: Path, name: str, tag: str = "") -> Aside:
    """Create a `.tmp-` folder in `parent`, locked by this process and marked for `remove_tagged`.

    Raises OSError; nothing remains then.
    """
    with _alone_in(parent):
        path = Path(tempfile.mkdtemp(prefix=f"{TMP_PREFIX}{name}-{tag}", dir=parent))
        lock = -1
        try:
            path.chmod(0o755)
            lock = os.open(path / OWNER, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
            _lock_if_supported(lock)
            os.write(lock, f"{os.getpid()}\n".encode())
            give_back(path)
        except BaseException:
            if lock >= 0:
                os.close(lock)
            shutil.rmtree(path, ignore_errors=True)
            raise
    return Aside(path, lock)


def _lock_if_supported(lock: int) -> None:
    """Lock our own file. On a file system without locks the pid in the file identifies the owner."""
    with contextlib.suppress(OSError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def discard(aside: Aside) -> None:
    """Remove the folder if it still exists and release its lock; the next run removes any remains."""
    try:
        shutil.rmtree(aside.path, ignore_errors=True)
    finally:
        os.close(aside.lock)


def publish(aside: Aside, target: Path) -> None:
    """Rename the folder to `target` in one step, replacing an older folder of that name. Raises OSError.

    The caller must still discard `aside`, which then contains the older folder, if there was one.
    """
    give_back(aside.path)
    fsync_tree(aside.path)
    with _alone_in(target.parent):
        (aside.path / OWNER).unlink()
        if target.exists():
            exchange(aside.path, target)
        else:
            aside.path.rename(target)
        fsync_dir(target.parent)


def exchange(one: Path, other: Path) -> None:
    """Swap two names atomically (renameat2(2)); in three steps if the file system cannot. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    code = libc.renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE)
    if code == 0:
        return
    number = ctypes.get_errno()
    if number not in {errno.EINVAL, errno.ENOSYS}:
        raise OSError(number, os.strerror(number), str(one), None, str(other))
    older = one.with_name(f"{one.name}-older")
    other.rename(older)
    one.rename(other)
    older.rename(one)


def is_abandoned(folder: Path) -> bool:
    """Return whether the writer of a `.tmp-` folder is gone: no process holds the folder's lock."""
    try:
        handle = os.open(folder / OWNER, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # Some shared file systems have no locks: use the pid.
        return not _pid_alive(folder / OWNER)
    finally:
        os.close(handle)
    return True


def _pid_alive(owner: Path) -> bool:
    text = owner.read_text().strip()
    return text.isdigit() and Path("/proc", text).exists()


def remove_tree(folder: Path) -> None:
    """Remove a folder tree. Entries that another process removes meanwhile are no error. Raises OSError."""

    def unless_gone(
        _call: object, _path: str, problem: tuple[type[BaseException], BaseException, object]
    ) -> None:
        if not isinstance(problem[1], FileNotFoundError):
            raise problem[1]

    shutil.rmtree(folder, onerror=unless_gone)


def remove_abandoned(parent: Path) -> list[str]:
    """Remove the entries of dead writers in `parent` and return their names. Raises StoreError."""
    removed = []
    with storing(f"removing unfinished folders in {parent}"), _alone_in(parent):
        for entry in sorted(parent.glob(f"{TMP_PREFIX}*")):
            if entry.is_dir() and not entry.is_symlink():
                if not is_abandoned(entry):
                    continue
                remove_tree(entry)
            else:
                entry.unlink(missing_ok=True)
            removed.append(entry.name)
    return removed


def remove_tagged(parent: Path, tag: str) -> None:
    """Remove every `.tmp-` entry of `parent` made with `tag`. Raises StoreError."""
    with storing(f"removing unfinished folders in {parent}"):
        for entry in sorted(parent.glob(f"{TMP_PREFIX}*-{tag}*")):
            if entry.is_dir():
                remove_tree(entry)
            else:
                entry.unlink(missing_ok=True)
