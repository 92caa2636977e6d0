"""Detection of a full disk, as opposed to other reasons why a tool could not write its output."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from common.files import is_full, store_error

PROBE_BYTES = 1 << 16
"""Larger than any tool's report: if this fits, the report did too."""


def check_space(folder: Path) -> None:
    """Raise DiskFullError if `folder` is full, tested by writing to it."""
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(PROBE_BYTES))
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        if is_full(error):
            raise store_error(f"writing {folder}", error) from error
        raise
