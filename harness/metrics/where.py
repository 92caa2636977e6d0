"""Values of a spec's fields by path, with which a statement or a metric selects points. Pure.

`{"link.queue_pkts": [20, 100], "scheduler": "first_fit:10", "link.loss": "any"}`: a value, several of which a
point has one, or ANY. Texts are as on the command line.
"""

from __future__ import annotations

import dataclasses
import difflib
import operator
from collections.abc import Collection, Mapping
from typing import Any

from common.errors import UsageError
from harness.options.fields import BY_PATH, parse_stack
from harness.options.parsers import CHOICES, FORMS, ccs
from model.congestion import in_force
from model.spec import LIMITS, USUAL, RunSpec, check_name, typed

Where = Mapping[str, tuple[Any, ...]]
"""The values that points may have, by path; none for ANY."""
ANY = "any"
"""Any value of the field will do."""
_OWN_FIELDS = frozenset({
    "engine", "topology", "workload", "seed", "sampling", "transport.subflows", "transport.algorithm",
})  # fmt: skip
"""Fields that a statement names by fields of its own, or that change no result."""
_IN_PARTS = ("link", "transport", "openflow", "agent", "stack")
"""Parts of a spec of which each field is a setting."""
SETTINGS: tuple[str, ...] = tuple(
    path
    for of in dataclasses.fields(USUAL)
    for path in (
        [f"{of.name}.{part.name}" for part in dataclasses.fields(getattr(USUAL, of.name))]
        if of.name in _IN_PARTS
        else [of.name]
    )
    if path not in _OWN_FIELDS
)
"""Paths of the fields of which a statement may name values."""


def parse(given: Mapping[str, Any], more: Collection[str] = ()) -> Where:
    """Return the values of the spec. `more` are paths beside SETTINGS. Raises UsageError for a field or a
    value that does not exist."""
    return {path: _values(path, each, more) for path, each in given.items()}


def has(spec: RunSpec, path: str, values: Collection[Any]) -> bool:
    """Return whether a point has one of these values at `path`."""
    value = operator.attrgetter(path)(spec)
    if path == "transport.cc":
        subflows = spec.transport.subflows
        value, values = in_force(value, subflows), [in_force(each, subflows) for each in values]
    return not values or value in values


def words(where: Where) -> str:
    """Return the values as on the command line: `--scheduler first_fit:10, --queue 20 or 100`."""
    return ", ".join(
        f"{BY_PATH[path].flag if path in BY_PATH else path} "
        f"{' or '.join(_text(path, each) for each in values) or ANY}"
        for path, values in where.items()
    )


def _values(path: str, given: Any, more: Collection[str]) -> tuple[Any, ...]:
    if path not in SETTINGS and path not in more:
        near = ", ".join(difflib.get_close_matches(path, SETTINGS, 3, 0.3)) or ", ".join(SETTINGS)
        raise UsageError(f"where: {path}: there is no such setting of a point; did you mean: {near}")
    if isinstance(given, str) and given == ANY:
        return ()
    return tuple(_value(path, each) for each in (given if isinstance(given, list | tuple) else [given]))


def _value(path: str, value: Any) -> Any:
    """Return the value of the spec for a value or its text, as on the command line. Raises UsageError."""
    usual, option, what = operator.attrgetter(path)(USUAL), BY_PATH.get(path), f"where: {path}"
    part, _, name = path.partition(".")
    if part == "stack":
        return parse_stack(what, [f"{name}={typed(value)}"])[name]
    if path == "transport.cc":
        return ccs(what, str(value))[0]
    if option and isinstance(value, str) and not isinstance(usual, str):
        value = option.parse(what, (value,) if option.multiple else value)
    kinds = (int, float) if isinstance(usual, float) else type(usual)
    if not isinstance(value, kinds) or isinstance(value, bool):
        raise UsageError(f"{what}: {value!r} is no value of this field; its default is {usual!r}")
    if path in FORMS:
        return FORMS[path](value)
    if path in CHOICES:
        check_name(f"{what}: ", value, CHOICES[path][0])
    if wrong := LIMITS[path].problem(value) if path in LIMITS else "":
        raise UsageError(f"{what} of {value}: {wrong}")
    return value


def _text(path: str, value: Any) -> str:
    """Return a value as on the command line; `none` for what has no text."""
    text = BY_PATH[path].text(value) if path in BY_PATH else typed(value)
    return (text if isinstance(text, str) else ",".join(text)) or "none"
