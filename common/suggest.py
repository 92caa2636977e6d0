"""The known names that are close to an unknown one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

MOST, CUTOFF = 3, 0.6


def did_you_mean(name: str, known: Iterable[str], end: str = "? ") -> str:
    """Return `did you mean run or runs? ` with `end` at its end; empty if no name is close."""
    close = difflib.get_close_matches(name, list(known), n=MOST, cutoff=CUTOFF)
    return f"did you mean {' or '.join(close)}{end}" if close else ""
