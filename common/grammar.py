"""English grammar for messages: plurals, lists and numbers. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def joined(parts: Sequence[str]) -> str:
    """Return the parts as a list in a sentence: `a, b and c`."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def three_digits(value: float) -> str:
    """Return a number with three significant digits, without an exponent from 1000 on: `0.016`, `4163`."""
    return f"{value:.0f}" if abs(value) >= 999.5 else f"{value:.3g}"


def verb(count: int, word: str) -> str:
    """Return count and verb: `1 agrees`, `2 agree`."""
    return f"{count} {word}{'s' if count == 1 else ''}"


def were(count: int) -> str:
    """Return `was` or `were`."""
    return "was" if count == 1 else "were"


def are(count: int) -> str:
    """Return `is` or `are`."""
    return "is" if count == 1 else "are"


def counted(count: int, what: str) -> str:
    """Return count and noun: `1 point`, `2 points`."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def points(count: int) -> str:
    """Return a number of points: `1 point`, `2 points`."""
    return counted(count, "point")


def times(count: int) -> str:
    """Return a number of repetitions: `once`, `twice`, `3 times`."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
