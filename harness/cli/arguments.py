"""Options of `refabric run` as Python values: written as a command line and parsed by the command itself.

So every option of the command is an argument of `refabric.run`, with the same checks and the same messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import click

from common.errors import UsageError
from harness.catalogue import Catalogue
from harness.options.fields import exact

NOT_IN_PYTHON = frozenset({"--help", "--json", "--config", "--save-config"})
"""Options that are about the terminal or about files of options."""


def argv_of(command: click.Command, values: Mapping[str, Any]) -> list[str]:
    """Return the arguments of a command line with these values; None and False leave an option out.

    A list is joined by commas, or repeats an option that may be given several times. A mapping gives
    NAME=VALUE pairs of such an option.
    """
    return [argument for name, value in values.items() for argument in _arguments(command, name, value)]


def parsed(command: click.Command, argv: Iterable[str], catalogue: Catalogue) -> dict[str, Any]:
    """Return the parameters of the command by name. Raises UsageError of one line."""
    try:
        return dict(command.make_context(command.name, list(argv), obj=catalogue).params)
    except click.ClickException as error:
        raise UsageError(" ".join(error.format_message().split())) from None


def flag_of(name: str) -> str:
    """Return the option of an argument or of a key: `random_drop` is `--random-drop`."""
    return f"--{name.replace('_', '-')}"


def _arguments(command: click.Command, name: str, value: Any) -> Iterator[str]:
    flag = flag_of(name)
    option = next((p for p in command.params if flag in p.opts), None)
    if flag in NOT_IN_PYTHON:
        raise UsageError(f"No such option '{flag}'.")
    if value is None or value is False:
        return
    if value is True:
        yield flag
        return
    each = _texts(flag, value)
    several = isinstance(option, click.Option) and option.multiple
    for text in each if several else [",".join(each)]:
        yield f"{flag}={text}"


def _texts(flag: str, value: Any) -> list[str]:
    """Return a value as texts of a command line. Raises UsageError for a type that no option takes."""
    if isinstance(value, Mapping):
        return [f"{name}={_text(flag, inner)}" for name, inner in value.items()]
    if isinstance(value, str) or not isinstance(value, Iterable):
        return [_text(flag, value)]
    return [_text(flag, inner) for inner in value]


def _text(flag: str, value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return exact(value)
    if isinstance(value, Mapping | list | tuple | set | bytes) or value is None:
        raise UsageError(f"{flag} {value!r}: give a number, a text, or a list of them")
    return str(value)
