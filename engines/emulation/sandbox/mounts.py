"""mount(2) and unshare(2) for the calling thread, which Python 3.11 lacks."""

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

_libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: str, kind: str = "none", flags: int = 0, options: str = "") -> None:
    """Mount `source` on `target`. Raises HostUnfitError with the errno's text if the kernel refuses."""
    arguments = (os.fsencode(source), os.fsencode(target), kind.encode())
    if _libc.mount(*arguments, ctypes.c_ulong(flags), options.encode()) != 0:
        reason = os.strerror(ctypes.get_errno())
        raise HostUnfitError(f"mounting {kind} on {target}: {reason}; run as root, outside a container")


def unshare(flags: int) -> None:
    """Give the calling thread its own namespaces. Raises HostUnfitError."""
    if _libc.unshare(flags) != 0:
        reason = os.strerror(ctypes.get_errno())
        raise HostUnfitError(f"making a namespace (unshare {flags:#x}): {reason}; run as root")
