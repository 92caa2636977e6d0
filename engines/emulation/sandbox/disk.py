"""Detection of a full disk, as opposed to other reasons why a tool could not write its output."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

from common.errors import StoreError

PROBE_BYTES = 1 << 16
"""Larger than any tool's report: if this fits, the report did too."""
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def full(path: Path, error: OSError) -> StoreError:
    """Return the error for a full disk, which ends a sweep because further points would fail too."""
    return StoreError(
        f"writing {path}: {error.strerror}; free some space there and run the same command again; "
        "finished points are kept"
    )


def check_space(folder: Path) -> None:
    """Raise StoreError if `folder` is full, tested by writing to it."""
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(PROBE_BYTES))
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        if error.errno in FULL:
            raise full(folder, error) from error
        raise
