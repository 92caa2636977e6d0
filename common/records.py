"""Values of plain JSON, checked for their type. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

_BITS = 63
"""Larger integers fit neither into the core nor into an array."""


def mapping(data: object, where: str) -> Mapping[str, Any]:
    """Return `data` if it has names and values. Raises ValueError."""
    if not isinstance(data, Mapping) or not all(isinstance(name, str) for name in data):
        raise ValueError(f"{where or 'the record'} is not an object with named values")
    return data


def integer(value: object, where: str, minimum: int | None = None) -> int:
    """Return `value` if it is an integer of 64 bits, at least `minimum`. Raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, int) or value.bit_length() > _BITS:
        raise ValueError(f"{where} is not an integer")
    if minimum is not None and value < minimum:
        raise ValueError(f"{where} is {value}, below {minimum}")
    return value


def number(value: object, where: str) -> float:
    """Return `value` if it is a finite number. Raises ValueError."""
    if isinstance(value, float):
        if math.isfinite(value):
            return value
    elif isinstance(value, int) and not isinstance(value, bool) and value.bit_length() <= _BITS:
        return float(value)
    raise ValueError(f"{where} is not a finite number")


def text(value: object, where: str) -> str:
    """Return `value` if it is a text that UTF-8 can hold. Raises ValueError."""
    if not isinstance(value, str):
        raise ValueError(f"{where} is not a text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{where} is not a text in UTF-8") from error
    return value
