"""Strict JSON for files that anybody may have written. Pure."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from common.text import printable_json

MAX_DEPTH = 40
MAX_VALUES = 4_000_000
"""Each takes up to 64 bytes of memory, and two bytes of a file: 32 times as much."""
_INTEGER_DIGITS = 19


def loads(data: bytes) -> Any:
    """Return the value of a JSON text in UTF-8.

    Control characters in texts are escaped, because texts are shown on terminals. Raises ValueError for what
    is not JSON (RFC 8259), and for numbers, texts and depths that later readers could not hold.
    """
    if sum(map(data.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise ValueError(f"it has more than {MAX_VALUES} values")
    try:
        try:
            value = msgspec.json.decode(data)
        except msgspec.DecodeError:
            json.loads(data)  # its errors have the line
            raise
    except RecursionError:
        raise ValueError(f"it has more than {MAX_DEPTH} levels") from None
    _check(value)
    return printable_json(value, data)


def _check(value: Any) -> None:
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise ValueError(f"it has more than {MAX_DEPTH} levels")
        inner: list[Any] = []
        for each in level:
            kind = type(each)
            if kind is dict:
                inner += each.values()
            elif kind is list:
                inner += each
            elif kind is int and each.bit_length() > 63:
                raise ValueError(f"{str(each)[:_INTEGER_DIGITS]}... is too large for an integer")
        level = inner
