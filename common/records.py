"""Dataclass records from and to plain JSON: known fields, and values of the fields' types. Pure."""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

Record = TypeVar("Record")
_BITS = 63
"""Larger integers fit neither into the core nor into an array."""
_SCALARS = frozenset({str, int, float, bool, type(None)})


def record(kind: type[Record], data: object, where: str = "") -> Record:
    """Return the `kind` with these fields. A field that is left out has its default.

    Raises ValueError for a field that `kind` lacks, a field without a value, and a value of another type;
    `where` is the record's place in the message.
    """
    shape: Any = kind
    values, known = mapping(data, where), _fields(shape)
    for name in values:
        if name not in known:
            raise ValueError(f"{_place(where, name)}: this version has no such field")
    for name in _required(shape):
        if name not in values:
            raise ValueError(f"{_place(where, name)} is missing")
    return kind(**{name: _value(known[name], value, _place(where, name)) for name, value in values.items()})


def plain(value: Any) -> Any:
    """Return what `dataclasses.asdict` does, without its deep copies: plans hash thousands of specs."""
    kind: Any = type(value)
    if kind in _SCALARS:
        return value
    if names := _names(kind):
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {name: plain(inner) for name, inner in value.items()}
    return tuple(map(plain, value)) if isinstance(value, tuple | list) else value


def default_of(record: Any, name: str) -> Any:
    """Return the default of a field of a record or its class; 0 for a field without one.

    Raises ValueError for a field that it lacks.
    """
    fields = dataclasses.fields(record) if dataclasses.is_dataclass(record) else ()
    found = next((field for field in fields if field.name == name), None)
    if found is None:
        kind = record if isinstance(record, type) else type(record)
        raise ValueError(f"{kind.__name__} has no field {name}")
    if found.default_factory is not dataclasses.MISSING:
        return found.default_factory()
    return 0 if found.default is dataclasses.MISSING else found.default


def as_floats(record: object) -> None:
    """Convert integers in fields of type float: 5 and 5.0 are the same rate and must have the same hash."""
    kind: Any = type(record)
    for name in _float_fields(kind):
        object.__setattr__(record, name, float(getattr(record, name)))


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


def _boolean(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{where} is neither true nor false")
    return value


def _nothing(value: object, where: str) -> None:
    if value is not None:
        raise ValueError(f"{where} is not null")


_SIMPLE: Mapping[Any, Callable[[object, str], Any]] = {
    int: integer, float: number, str: text, bool: _boolean, type(None): _nothing,
}  # fmt: skip


def _value(hint: Any, value: object, where: str) -> Any:
    """Return `value` as a field of type `hint` holds it. Raises ValueError."""
    if hint in _SIMPLE:
        return _SIMPLE[hint](value, where)
    if dataclasses.is_dataclass(hint):
        return record(typing.cast(type[Any], hint), value, where)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in {types.UnionType, typing.Union}:
        return _one_of(arguments, value, where)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise ValueError(f"{where} is not a list")
        return tuple(_value(arguments[0], each, f"{where}[{n}]") for n, each in enumerate(value))
    each_hint = arguments[1]
    return {
        text(name, where): _value(each_hint, each, _place(where, name))
        for name, each in mapping(value, where).items()
    }


def _one_of(hints: tuple[Any, ...], value: object, where: str) -> Any:
    for hint in hints:
        try:
            return _value(hint, value, where)
        except ValueError:
            continue
    raise ValueError(f"{where} is none of {', '.join(hint.__name__ for hint in hints)}")


def _place(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


@functools.cache
def _fields(kind: Any) -> Mapping[str, Any]:
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


@functools.cache
def _required(kind: Any) -> tuple[str, ...]:
    return tuple(
        field.name
        for field in dataclasses.fields(kind)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    )


@functools.cache
def _names(kind: Any) -> tuple[str, ...]:
    """Return the fields of a class; none for one that is not a dataclass."""
    return tuple(field.name for field in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else ()


@functools.cache
def _float_fields(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind) if field.type in ("float", float))
