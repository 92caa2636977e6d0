"""mount(2), open_tree(2), move_mount(2) and unshare(2) for the calling thread, which Python 3.11 lacks."""

from __future__ import annotations

import ctypes
import os

from common.errors import HostUnfitError

MS_BIND = 0x1000
MS_REC = 0x4000
MS_NOSUID = 0x2
MS_NODEV = 0x4
CLONE_NEWNS = 0x00020000
CLONE_NEWNET = 0x40000000

_SYS_OPEN_TREE, _SYS_MOVE_MOUNT = 428, 429
"""The same on every architecture (include/uapi/asm-generic/unistd.h)."""
_AT_EMPTY_PATH, _OPEN_TREE_CLONE, _MOVE_MOUNT_F_EMPTY_PATH = 0x1000, 1, 4
_libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: str, kind: str = "none", flags: int = 0, options: str = "") -> None:
    """Mount `source` on `target`. Raises HostUnfitError with the errno's text if the kernel refuses."""
    arguments = (os.fsencode(source), os.fsencode(target), kind.encode())
    if _libc.mount(*arguments, ctypes.c_ulong(flags), options.encode()) != 0:
        reason = os.strerror(ctypes.get_errno())
        raise HostUnfitError(f"mounting {kind} on {target}: {reason}; run as root, outside a container")


def detached(folder: int) -> int:
    """Return a mount of an open folder that another mount namespace can attach. Raises HostUnfitError."""
    flags = _OPEN_TREE_CLONE | _AT_EMPTY_PATH | os.O_CLOEXEC
    handle: int = _libc.syscall(_SYS_OPEN_TREE, folder, b"", flags)
    if handle < 0:
        raise HostUnfitError(f"opening the current folder: {os.strerror(ctypes.get_errno())}")
    return handle


def attach(handle: int, target: str) -> None:
    """Attach what `detached` returned at a path of this namespace. Raises HostUnfitError."""
    path = os.fsencode(target)
    if _libc.syscall(_SYS_MOVE_MOUNT, handle, b"", -100, path, _MOVE_MOUNT_F_EMPTY_PATH) != 0:
        raise HostUnfitError(f"mounting a folder on {target}: {os.strerror(ctypes.get_errno())}")


def unshare(flags: int) -> None:
    """Give the calling thread its own namespaces. Raises HostUnfitError."""
    if _libc.unshare(flags) != 0:
        reason = os.strerror(ctypes.get_errno())
        raise HostUnfitError(f"making a namespace (unshare {flags:#x}): {reason}; run as root")
