"""Files of Python that a user names and refabric runs: only regular ones, and as root nobody else's."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from common import ownership
from common.errors import UsageError


def text_of(what: str, path: Path, limit: int) -> str:
    """Return the text of a file of at most `limit` bytes that is to be run.

    Raises UsageError that begins with `what`, also if root would run what another user can write.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            about = os.fstat(handle)
            if not stat.S_ISREG(about.st_mode):
                raise UsageError(f"{what}: it is not a regular file")
            _check_owner(what, about)
            data = file.read(limit + 1)
        if len(data) > limit:
            raise UsageError(f"{what}: it is larger than {limit >> 10} KiB")
        return data.decode()
    except OSError as error:
        raise UsageError(f"{what}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{what}: cannot be read: it is not a text file") from error


def _check_owner(what: str, about: os.stat_result) -> None:
    writable = about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if os.geteuid() == 0 and (about.st_uid not in ownership.trusted() or writable):
        who = "other users may write it" if writable else f"it belongs to user {about.st_uid}"
        raise UsageError(
            f"{what}: root would run it, and {who}; copy it, or chmod go-w, and look into it first"
        )
