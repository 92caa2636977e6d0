"""Ranges of numbers, and how a field of a spec states its own range and its words. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

RANGE, WORDS = "range", "words"
"""The keys of a field's range and of its words in its metadata."""
MAX_TIME_S = 1e6
"""11 days; the core counts picoseconds in 64 bits, which last nine times as long."""
MAX_SEGMENTS = 10**9
"""Largest window, buffer and threshold: the core counts them in 32 bits."""
MAX_QUEUE_PKTS = 1_000_000
MIN_QUEUE_BYTES, MAX_QUEUE_BYTES = 1514, 1 << 40
MAX_FRAME_BYTES = 9000
MAX_RTO_MS = 120_000.0
"""The longest timeout (Linux: include/net/tcp.h, TCP_RTO_MAX)."""


@dataclass(frozen=True)
class Limits:
    """The smallest and the largest value of a field, both allowed, in `unit`.

    `whole` fields are integers. With `zero`, 0 is allowed too, below `least`.
    """

    least: float
    most: float
    unit: str = ""
    whole: bool = False
    zero: bool = False

    def problem(self, value: object) -> str:
        """Return what is wrong with the value, `must be at most 9000 bytes`; empty if it is valid."""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return "must be a number"
        if self.whole and not isinstance(value, int):
            return "must be a whole number"
        if self.zero and value == 0:
            return ""
        if not math.isfinite(value) or value < self.least:
            least = f"{'0 or ' if self.zero else ''}at least {exact_digits(self.least)}"
            return f"must be {least} {self.unit}".rstrip()
        if value > self.most:
            return f"must be at most {exact_digits(self.most)} {self.unit}".rstrip()
        return ""


def within(least: float, most: float, unit: str = "", *, zero: bool = False) -> dict[str, Limits]:
    """Return the metadata of a field with this range. Its type determines whether numbers are whole."""
    return {RANGE: Limits(least, most, unit, zero=zero)}


def called(words: Callable[[Any], str]) -> dict[str, Callable[[Any], str]]:
    """Return the metadata of a field whose unusual values have these words (model/fields/words.py)."""
    return {WORDS: words}


def exact_digits(value: float) -> str:
    """Return the number as a user types it: whole numbers in full."""
    return str(int(value)) if math.isfinite(value) and value == int(value) else f"{value:g}"
