"""Landlock: a process takes the right to write files from itself (landlock(7), Linux >= 5.13, no root)."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Sequence
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION, _PATH_BENEATH = 1, 1
_PR_SET_NO_NEW_PRIVS = 38
_WRITE_FILE, _REMOVE_DIR, _REMOVE_FILE = 1 << 1, 1 << 4, 1 << 5
_MAKE_ALL = 0x1FC0
"""The rights to make files of any kind, include/uapi/linux/landlock.h."""
_WRITES = _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_ALL
_TRUNCATE = 1 << 14
_TRUNCATE_VERSION = 3
_DEVICES = ("/dev/null", "/dev/zero")
"""No terminals: those of the user's other programs are among them."""


def supported() -> int:
    """Return the version of Landlock in this kernel; 0 if it has none."""
    version: int = ctypes.CDLL(None).syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)
    return max(0, version)


def write_only_below(folders: Sequence[str]) -> bool:
    """Restrict this process and its children to writing below `folders`; return whether the kernel does so.

    Raises OSError if it has Landlock and refuses.
    """
    version = supported()
    if not version:
        return False
    rights = _WRITES | (_TRUNCATE if version >= _TRUNCATE_VERSION else 0)
    libc = ctypes.CDLL(None, use_errno=True)
    handled = struct.pack("=Q", rights)
    ruleset = _checked(libc.syscall(_CREATE_RULESET, handled, ctypes.c_size_t(len(handled)), 0))
    for folder in (*folders, *(device for device in _DEVICES if Path(device).exists())):
        allowed = rights if Path(folder).is_dir() else rights & (_WRITE_FILE | _TRUNCATE)
        fd = os.open(folder, os.O_PATH | os.O_CLOEXEC)
        rule = struct.pack("=Qi", allowed, fd)
        _checked(libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0))
        os.close(fd)
    _checked(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _checked(libc.syscall(_RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)
    return True


def _checked(returned: int) -> int:
    if returned < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"landlock: {os.strerror(number)}")
    return returned
