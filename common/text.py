"""Words for messages: plurals, lists, numbers, close names, and untrusted texts made printable. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any


def joined(parts: Sequence[str]) -> str:
    """Return the parts as a list in a sentence: `a, b and c`."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def three_digits(value: float) -> str:
    """Return a number with three significant digits, without an exponent from 1000 on: `0.016`, `4163`."""
    return f"{value:.0f}" if abs(value) >= 999.5 else f"{value:.3g}"


def counted(count: int, what: str) -> str:
    """Return count and noun: `1 point`, `2 points`."""
    return f"{count} {what}{'' if count == 1 else 's'}"


_SPACES = frozenset("\N{NO-BREAK SPACE}")
_KEPT = frozenset("\n\t") | _SPACES
_SUSPICIOUS = re.compile(rb"\\(?:u[0-9a-fA-F]{4}|[bfrnt])|[\x7f-\xff]")
"""Bytes of a JSON text that may mean a character of another kind than printable ASCII."""


def printable(text: str, kept: frozenset[str] = _KEPT) -> str:
    r"""Return `text` with each control, format or unassigned character as its escape: `\x1b`.

    Escapes could move the cursor, set the window's title or write upside down; the characters in `kept` stay.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in kept else c.encode("unicode_escape").decode() for c in text)


def one_line(text: str) -> str:
    """Return `text` with line feeds and tabs escaped, too."""
    return printable(text, _SPACES)


def printable_json(value: Any, data: bytes) -> Any:
    """Return a JSON value, parsed from `data`, with every text on one printable line."""
    return _cleaned(value) if _SUSPICIOUS.search(data) else value


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isprintable() else one_line(" ".join(value.split()))
    if isinstance(value, dict):
        return {_cleaned(name): _cleaned(each) for name, each in value.items()}
    return [_cleaned(each) for each in value] if isinstance(value, list) else value


MOST, CUTOFF = 3, 0.6


def did_you_mean(name: str, known: Iterable[str], end: str = "? ") -> str:
    """Return `did you mean run or runs? ` with `end` at its end; empty if no name is close."""
    import difflib  # noqa: PLC0415 -- only a wrong name needs it, and root's helper imports this module

    close = difflib.get_close_matches(name, list(known), n=MOST, cutoff=CUTOFF)
    return f"did you mean {' or '.join(close)}{end}" if close else ""
