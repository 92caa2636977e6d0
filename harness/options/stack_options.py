"""The option `--stack`: fields of the StackSpec of simulated hosts, by name. Pure."""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence

from common.errors import UsageError
from engines.core_setup.stack import CHOICES
from model.fields.limits import LIMITS
from model.fields.words import stack_texts
from model.linux_stack import LINUX
from model.spec import StackSpec, typed

FIELDS: Mapping[str, type] = typing.get_type_hints(StackSpec)
_SWITCH = {"on": True, "off": False, "yes": True, "no": False, "true": True, "false": False}


def parse_stack(option: str, texts: Sequence[str]) -> dict[str, object]:
    """Parse each of `texts`, `name=value` of a StackSpec. Raises UsageError."""
    given: dict[str, object] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if name not in FIELDS or not equals or not value:
            raise UsageError(f"{option} {text}: write NAME=VALUE; names are: {', '.join(FIELDS)}")
        if given.setdefault(name, _value(text, name, value)) != _value(text, name, value):
            raise UsageError(f"{option} {text}: {name} is given already; give it once")
    return given


def known_stack(option: str, stack: StackSpec) -> None:
    """Check names in the stack of a spec; model/fields/limits.py checks its numbers. Raises UsageError."""
    for name, known in CHOICES.items():
        if (value := getattr(stack, name)) not in known:
            raise UsageError(f"{option} {name}={value}: unknown; choose from: {', '.join(known)}")


def _value(text: str, name: str, value: str) -> object:
    kind = FIELDS[name]
    if kind is bool:
        if value not in _SWITCH:
            raise UsageError(f"--stack {text}: write {name}=on or {name}=off")
        return _SWITCH[value]
    if kind is str:
        if value not in CHOICES[name]:
            raise UsageError(f"--stack {text}: unknown; choose from: {', '.join(CHOICES[name])}")
        return value
    return _number(text, name, value, whole=kind is int)


def _number(text: str, name: str, value: str, whole: bool) -> float:
    try:
        number = int(value) if whole else float(value)
    except ValueError:
        raise UsageError(
            f"--stack {text}: {name} is a {'whole ' if whole else ''}number of {LIMITS[f'stack.{name}'].unit}"
        ) from None
    if wrong := LIMITS[f"stack.{name}"].problem(number):
        raise UsageError(f"--stack {text}: {wrong}")
    return number


def texts(stack: StackSpec) -> tuple[str, ...]:
    """Return `name=value` of the fields that make this stack of the usual one, and of Linux's, which several
    figures have."""
    return () if stack == StackSpec() else stack_texts(stack, LINUX)


def usual() -> str:
    """Return all names with their default values, for `--help`."""
    return ", ".join(f"{name}={typed(getattr(StackSpec(), name))}" for name in FIELDS)
