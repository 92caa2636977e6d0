"""Options that one kind of engine alone has: `--stack` of simulated hosts, `--sysctl` and others of real
ones. Pure."""

from __future__ import annotations

import math
import typing
from collections.abc import Mapping, Sequence

from common.errors import UsageError
from engines.core_setup.stack import CHOICES
from engines.registry import MADE_UP, VIRTUAL_TIME
from model.spec import StackSpec, typed

FIELDS: Mapping[str, type] = typing.get_type_hints(StackSpec)
LEAST = {"payload_bytes": 1, "header_bytes": 0, "ack_bytes": 1, "initial_window": 1}
"""Where that is not 0."""
MOST_BYTES = 9000
_SWITCH = {"on": True, "off": False, "yes": True, "no": False, "true": True, "false": False}


def parse_stack(texts: Sequence[str], pinned: Mapping[str, object]) -> StackSpec:
    """Each of `texts` is `name=value` of a StackSpec; they go before what is `pinned`. Raises UsageError."""
    given: dict[str, object] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if name not in FIELDS or not equals or not value:
            raise UsageError(f"--stack {text}: write NAME=VALUE; names are: {', '.join(FIELDS)}")
        if given.setdefault(name, _value(text, name, value)) != _value(text, name, value):
            raise UsageError(f"--stack {text}: {name} is given already; give it once")
    fields: dict[str, typing.Any] = {**pinned, **given}
    return StackSpec(**fields)


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
            f"--stack {text}: {name} is a {'whole ' if whole else ''}number of {_unit(name)}"
        ) from None
    least = LEAST.get(name, 0)
    if not math.isfinite(number) or number < least:
        raise UsageError(f"--stack {text}: must be at least {least} {_unit(name)}")
    if name.endswith("_bytes") and number > MOST_BYTES:
        raise UsageError(f"--stack {text}: must be at most {MOST_BYTES} bytes")
    return number


def _unit(name: str) -> str:
    return "ms" if name.endswith("_ms") else "bytes" if name.endswith("_bytes") else "segments"


def usual() -> str:
    """All names with their values unless told otherwise, for `--help`."""
    return ", ".join(f"{name}={typed(getattr(StackSpec(), name))}" for name in FIELDS)


def check_engine_options(engines: Sequence[str], real: Mapping[str, object], stack: Sequence[str]) -> None:
    """Refuse what none of `engines` has a use for: options of `real` hosts that were given, by name, or
    `stack` of simulated ones. Raises UsageError."""
    simulated = [name in VIRTUAL_TIME for name in engines]
    if stack and not any(simulated) and MADE_UP not in engines:
        raise UsageError(
            f"--stack {stack[0]}: the stacks of {engines[0]}'s hosts are their own; choose --engine simulator"
        )
    for option, value in real.items() if all(simulated) else ():
        if value:
            told = value[0] if isinstance(value, tuple) else value
            raise UsageError(
                f"{option} {told}: simulated hosts have no kernel and run no programs; leave it out "
                "(--stack is what they have)"
            )
