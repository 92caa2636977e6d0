"""Untrusted texts for a terminal: their control characters are escaped. Pure."""

from __future__ import annotations

import re
from typing import Any

_KEPT = frozenset("\n\t")
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
    return printable(text, frozenset())


def printable_json(value: Any, data: bytes) -> Any:
    """Return a JSON value, parsed from `data`, with every text on one printable line."""
    return _cleaned(value) if _SUSPICIOUS.search(data) else value


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isprintable() else one_line(" ".join(value.split()))
    if isinstance(value, dict):
        return {_cleaned(name): _cleaned(each) for name, each in value.items()}
    return [_cleaned(each) for each in value] if isinstance(value, list) else value
