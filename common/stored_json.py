"""Strict JSON for files that anybody may have written. Pure."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

from common.text import printable_json

MAX_DEPTH = 40
MAX_VALUES = 4_000_000
"""Each takes up to 64 bytes of memory, and two bytes of a file: 32 times as much."""
_INTEGER_DIGITS = 19
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def loads(data: bytes) -> Any:
    """Return the value of a JSON text in UTF-8.

    Control characters in texts are escaped, because texts are shown on terminals. Raises ValueError for what
    is not JSON (RFC 8259), and for numbers, texts and depths that later readers could not hold.
    """
    if sum(map(data.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise ValueError(f"it has more than {MAX_VALUES} values")
    try:
        value = json.loads(data.decode(), parse_constant=_no_json, parse_float=_number, parse_int=_integer)
    except RecursionError:
        raise ValueError(f"it has more than {MAX_DEPTH} levels") from None
    _check_depth(value)
    if _SURROGATE.search(data):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("a text has half of a surrogate pair") from None
    return printable_json(value, data)


def _no_json(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:_INTEGER_DIGITS]} is too large for a number")
    return value


def _integer(text: str) -> int:
    if len(text) > _INTEGER_DIGITS + 1 or (value := int(text)).bit_length() > 63:
        raise ValueError(f"{text[:_INTEGER_DIGITS]}... is too large for an integer")
    return value


def _check_depth(value: Any) -> None:
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise ValueError(f"it has more than {MAX_DEPTH} levels")
        inner: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                inner += each.values()
            elif isinstance(each, list):
                inner += each
        level = inner
