"""Files that are either whole or absent: atomic writes, folders with an owner, giving back to the sudo user.

A folder being written is called `.tmp-<name>-<random>` and holds `owner`: a file with the writer's
pid that the writer keeps locked (`flock`). The kernel drops the lock when the writer dies, however it
dies, and unlike a pid it means the same in every PID namespace.
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
    """Whether the disk, or the user's share of it, is full."""
    return error.errno in {errno.ENOSPC, errno.EDQUOT}


def store_error(attempt: str, error: OSError) -> StoreError:
    """`error` as one line: what was attempted, what happened, what to do."""
    happened = error.strerror or str(error)
    if is_full(error):
        advice = "free some space there and run the same command again; finished points are kept"
    else:
        advice = "choose a folder you can write to with --results DIR"
    return StoreError(f"{attempt}: {happened}; {advice}")


@contextlib.contextmanager
def storing(attempt: str) -> Iterator[None]:
    """Turn an OSError of the block into the StoreError of `attempt`."""
    try:
        yield
    except OSError as error:
        raise store_error(attempt, error) from error


def write_bytes(path: Path, data: bytes) -> None:
    """Write and fsync a new file. Every byte of the store passes here: tests fill the disk here."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def fsync_dir(path: Path) -> None:
    """Make renames and creations inside the folder durable."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def fsync_tree(path: Path) -> None:
    """fsync every file and folder below `path`, and `path`: engines leave raw files unsynced."""
    for folder, _, names in os.walk(path):
        for name in names:
            entry = Path(folder, name)
            if entry.is_file() and not entry.is_symlink():
                with entry.open("rb") as file:
                    os.fsync(file.fileno())
        fsync_dir(Path(folder))


def sudo_user() -> tuple[int, int] | None:
    """uid and gid of the user behind sudo; None when there is none or we are not root."""
    uid, gid = os.environ.get("SUDO_UID", ""), os.environ.get("SUDO_GID", "")
    if os.geteuid() != 0 or not (uid.isdigit() and gid.isdigit()):
        return None
    return int(uid), int(gid)


def give_back(path: Path) -> None:
    """Hand a file or a whole folder to the user behind sudo, symlinks themselves and not their targets."""
    user = sudo_user()
    if user is None:
        return
    # Shared folders of VMs and root-squashing servers know no owners; a result is worth more than its owner.
    with contextlib.suppress(PermissionError):
        os.chown(path, *user, follow_symlinks=False)
        for folder, folders, names in os.walk(path):
            for name in (*folders, *names):
                os.chown(Path(folder, name), *user, follow_symlinks=False)


def make_folder(path: Path) -> None:
    """Create the folder and its missing parents, giving each created one back."""
    missing = [p for p in (path, *path.parents) if not p.exists()]
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)
        give_back(folder)


def replace_file(path: Path, data: bytes, tag: str = "", beside: Path | None = None) -> None:
    """Atomically give `path` this content: readers see the old or the new, never a part.

    `tag` marks the temporary file for `remove_tagged`; it is made in the folder `beside`, the file's own
    unless given, of the same file system.

    Raises StoreError, with no temporary file left.
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
    """Keep other runs from creating, renaming or removing `.tmp-` entries here meanwhile. Raises OSError."""
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
    """A folder being written, owned by this process until `publish` or `discard`."""

    path: Path
    lock: int


def open_aside(parent: Path, name: str, tag: str = "") -> Aside:
    """A new `.tmp-` folder in `parent`, locked as ours, marked for `remove_tagged`.

    Raises OSError, with nothing left behind.
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
    """Lock a file that is ours alone; where the file system has no locks, its pid has to do."""
    with contextlib.suppress(OSError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def discard(aside: Aside) -> None:
    """Remove the folder, if it is still there, and let go of it; the next run removes what resists."""
    try:
        shutil.rmtree(aside.path, ignore_errors=True)
    finally:
        os.close(aside.lock)


def publish(aside: Aside, target: Path) -> None:
    """Give the folder its name, in one step even over an older one of that name. Raises OSError.

    The caller still discards `aside`, which then holds the older one, if anything.
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
    """Swap two names in one step (renameat2(2)), or in two on file systems that cannot. Raises OSError."""
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
    """Whether the writer of a `.tmp-` folder is gone: nobody holds its lock, or it was never locked."""
    try:
        handle = os.open(folder / OWNER, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks (some shared folders): the pid is all there is
        return not _pid_alive(folder / OWNER)
    finally:
        os.close(handle)
    return True


def _pid_alive(owner: Path) -> bool:
    text = owner.read_text().strip()
    return text.isdigit() and Path("/proc", text).exists()


def remove_tree(folder: Path) -> None:
    """Remove a folder with all in it. What another process removes meanwhile is removed. Raises OSError."""

    def unless_gone(
        _call: object, _path: str, problem: tuple[type[BaseException], BaseException, object]
    ) -> None:
        if not isinstance(problem[1], FileNotFoundError):
            raise problem[1]

    shutil.rmtree(folder, onerror=unless_gone)


def remove_abandoned(parent: Path) -> list[str]:
    """Remove what dead writers left in `parent`; names removed. Raises StoreError."""
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
