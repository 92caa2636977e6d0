"""Files that a user names on a command line: their texts, new ones, and how labels name them."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from common import files
from common.errors import UsageError
from common.privileges import check_private

MAX_BYTES = 1 << 26
MAX_LABEL = 40


def text_of(what: str, path: Path, limit: int = MAX_BYTES) -> str:
    """Return the text of a regular file of at most `limit` bytes. Raises UsageError that begins with `what`.

    It does not wait for a pipe's writer.
    """
    if not path.name:
        raise UsageError(f"{what.strip()}: give the name of a file")
    try:
        check_private(what, path)
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UsageError(f"{what}: it is not a regular file")
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
        files.write_bytes(path, data)
    except FileExistsError:
        raise UsageError(f"{what}: it exists; name another file, or remove it") from None
    except OSError as error:
        if files.is_full(error):
            raise files.store_error(f"writing {path}", error) from error
        raise UsageError(f"{what}: cannot be written: {error.strerror}") from error


def label_of(path: Path) -> str:
    """Return the file's name for labels and names of folders: letters, digits, dots and underscores."""
    return re.sub(r"[^A-Za-z0-9_.]", "_", path.name)[-MAX_LABEL:]
