"""Counted things and lists in English sentences. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def joined(parts: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def verb(count: int, word: str) -> str:
    """`1 agrees`, `2 agree`."""
    return f"{count} {word}{'s' if count == 1 else ''}"


def were(count: int) -> str:
    """`was` or `were`."""
    return "was" if count == 1 else "were"


def are(count: int) -> str:
    """`is` or `are`."""
    return "is" if count == 1 else "are"


def counted(count: int, what: str) -> str:
    """`1 point`, `2 points`."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def points(count: int) -> str:
    """`1 point`, `2 points`."""
    return counted(count, "point")


def times(count: int) -> str:
    """`twice`, `3 times`."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
