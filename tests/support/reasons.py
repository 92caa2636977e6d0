"""Reasons of suspicion made from their texts, for tests."""

from __future__ import annotations

from model.reasons import (
    BASELINE,
    CONTROL,
    FALLBACK,
    LATE,
    LOST,
    MACHINE,
    OTHER,
    REPAIRS,
    SATURATED,
    STALLED,
    SUBFLOWS,
    Reason,
)

_STARTS = (
    ("CPU:", "late or more", LATE),
    ("CPU:", "no idle time", SATURATED),
    ("CPU:", "lost in", LOST),
    ("CPU:", "", MACHINE),
    ("subflows:", "", SUBFLOWS),
    ("fallback:", "", FALLBACK),
    ("flows:", "", STALLED),
    ("congestion control: the kernel left out", "", REPAIRS),
    ("congestion control:", "", CONTROL),
    ("its baseline is suspect", "", BASELINE),
)
"""How texts begin, what they contain, and their kind."""


def of_text(text: str) -> Reason:
    """Return the reason with this text; its kind is OTHER if the text is unknown."""
    kind = next((kind for start, part, kind in _STARTS if text.startswith(start) and part in text), OTHER)
    return Reason(kind, text)
