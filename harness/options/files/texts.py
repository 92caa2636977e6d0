"""Files that a user names on a command line: their texts, and the names by which results show them."""

from __future__ import annotations

import re
from pathlib import Path

from common import files
from common.errors import UsageError

MAX_BYTES = 1 << 26
MAX_LABEL = 40


def text_of(what: str, path: Path) -> str:
    """Return the text of a regular file. Raises UsageError that begins with `what`."""
    if not path.name:
        raise UsageError(f"{what.strip()}: give the name of a file")
    try:
        return files.read_bytes(path, MAX_BYTES).decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{what}: cannot be read: it is not a text file") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"{what}: cannot be read: {reason}") from error


def label_of(path: Path) -> str:
    """Return the file's name for labels and names of folders: letters, digits, dots and underscores."""
    return re.sub(r"[^A-Za-z0-9_.]", "_", path.name)[-MAX_LABEL:]
