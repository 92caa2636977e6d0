"""Whether a disk is full, told apart from whatever else keeps a tool from writing its output."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

from common.errors import StoreError

PROBE_BYTES = 1 << 16
"""More than any tool's report: where this fits, theirs did."""
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def full(path: Path, error: OSError) -> StoreError:
    """The error that ends a sweep: every further point would fail the same way."""
    return StoreError(
        f"writing {path}: {error.strerror}; free some space there and run the same command again; "
        "finished points are kept"
    )


def check_space(folder: Path) -> None:
    """Raises StoreError when `folder` takes no more bytes, found by writing some."""
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(PROBE_BYTES))
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        if error.errno in FULL:
            raise full(folder, error) from error
        raise
