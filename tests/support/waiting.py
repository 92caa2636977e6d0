"""Waiting for a condition with a deadline, in place of a fixed sleep."""

from __future__ import annotations

import time
from collections.abc import Callable

POLL_S = 0.05


def until(true: Callable[[], bool], deadline_s: float, what: str = "") -> None:
    """Return once `true()` is true. Raises AssertionError with `what` after `deadline_s`."""
    end_s = time.monotonic() + deadline_s
    while not true():
        assert time.monotonic() < end_s, f"waited {deadline_s:g} s in vain: {what or true}"
        time.sleep(POLL_S)
