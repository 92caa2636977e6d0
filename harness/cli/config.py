"""`--config FILE` and `--save-config FILE` of plan, run and status: options of several experiments in TOML.

    [defaults]
    engine = "simulator"

    [[experiment]]
    name = "cs244-one-to-one"
    k = [4, 8]

Keys are options without dashes in front, with `-` or `_`. Options of an experiment override the defaults,
and options of the command line override both. Everything is parsed before anything starts.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from common.errors import RefabricError, UsageError
from common.files import text_of, write_new
from harness.cli.options import argv_of

CONFIG, SAVE = "--config", "--save-config"
INTERRUPTED = 130
_SWEEPS = "refabric.sweeps"
_TABLES = ("defaults", "experiment")


class Configurable(click.Command):
    """A command on one experiment that `--config` runs for each experiment of a file, in order."""

    check: Callable[[dict[str, Any]], None] | None = None
    """Checks the parameters of one experiment further, before the first of several starts."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Return the context of the first experiment, which holds the contexts of all."""
        if extra.get("resilient_parsing"):  # for shell completion
            return super().make_context(info_name, args, parent, **extra)
        args, config = _taken(args, CONFIG)
        args, saved = _taken(args, SAVE)
        lines = [args] if config is None else _lines(self, config, args)
        contexts = []
        for number, line in enumerate(lines, 1):
            try:
                contexts.append(super().make_context(info_name, list(line), parent, **extra))
            except (click.UsageError, RefabricError) as error:
                if config is None:
                    raise
                words = error.format_message() if isinstance(error, click.UsageError) else str(error)
                raise UsageError(f"{config}: experiment {number} ({line[-1]}): {words}") from None
        contexts[0].meta[_SWEEPS] = contexts
        if saved is not None:
            _save(
                Path(saved),
                [_typed(self, context, line) for context, line in zip(contexts, lines, strict=True)],
            )
        return contexts[0]

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command for each experiment; return the highest exit code."""
        sweeps: Sequence[click.Context] = ctx.meta[_SWEEPS]
        if len(sweeps) > 1 and self.check is not None:
            for each in sweeps:
                self.check(dict(each.params))
        code = 0
        for each in sweeps:
            with each:
                code = max(code, super().invoke(each) or 0)
            if code == INTERRUPTED:
                break
        return code


def config_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the two options to the help; `Configurable` takes them before the others are parsed."""
    for flag, text in (
        (SAVE, "Write this command's experiment and options to FILE, for --config."),
        (CONFIG, "Take experiments and options from FILE (TOML); then leave out EXPERIMENT."),
    ):
        command = click.option(flag, metavar="FILE", expose_value=False, help=text)(command)
    return command


def _taken(args: Sequence[str], flag: str) -> tuple[list[str], str | None]:
    """Return the arguments without `flag FILE`, and the file. Raises UsageError."""
    rest: list[str] = []
    found: str | None = None
    waiting = iter(args)
    for argument in waiting:
        if argument == "--":
            rest += [argument, *waiting]
        elif argument == flag or argument.startswith(f"{flag}="):
            value = argument.partition("=")[2] if "=" in argument else next(waiting, "")
            if not value or found is not None:
                raise UsageError(f"{flag}: name one file, e.g. {flag} sweep.toml")
            found = value
        else:
            rest.append(argument)
    return rest, found


def _lines(command: click.Command, config: str, args: Sequence[str]) -> list[list[str]]:
    """Return the command line of each experiment of the file. Raises UsageError."""
    data = _read(config)
    defaults, entries = data.get("defaults", {}), data.get("experiment", [])
    if not isinstance(defaults, Mapping) or "name" in defaults:
        raise UsageError(f"{config}: defaults is a table [defaults] of options, without a name")
    if not isinstance(entries, list) or not entries or not all(isinstance(each, Mapping) for each in entries):
        raise UsageError(f"{config}: it has no experiments; write [[experiment]] and name = '...' for each")
    lines = []
    for number, entry in enumerate(entries, 1):
        name = entry.get("name")
        if not isinstance(name, str) or not name or name.startswith("-"):
            raise UsageError(
                f"{config}: experiment {number}: it has no name; write name = 'cs244-one-to-one'"
            )
        values = {**_options(defaults), **_options(entry)}
        try:
            lines.append([*argv_of(command, values), *args, "--", name])
        except UsageError as error:
            raise UsageError(f"{config}: experiment {number} ({name}): {error}") from None
    return lines


def _read(config: str) -> dict[str, Any]:
    try:
        data = tomllib.loads(text_of(f"config {config}", Path(config)))
    except RecursionError:
        raise UsageError(f"config {config}: it is nested too deeply") from None
    except ValueError as error:  # also of an integer with thousands of digits
        raise UsageError(f"config {config}: it is not TOML: {error}") from None
    for name in data:
        if name not in _TABLES:
            raise UsageError(f"{config}: {name}: unknown; it has [defaults] and one [[experiment]] for each")
    return data


def _options(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key.replace("-", "_"): value for key, value in table.items() if key != "name"}


def _typed(command: click.Command, context: click.Context, line: Sequence[str]) -> dict[str, Any]:
    """Return the options of a command line as their texts, by key, the experiment's name first."""
    values, rest, _ = command.make_parser(context).parse_args(list(line))
    flags = {p.name: p.opts[0] for p in command.params if isinstance(p, click.Option)}
    keys = {name: flag.removeprefix("--") for name, flag in flags.items() if flag != "--json"}
    name = rest[0] if rest else values["chosen"]
    return {"name": name, **{keys[each]: value for each, value in values.items() if each in keys}}


def _save(path: Path, entries: Sequence[Mapping[str, Any]]) -> None:
    """Write a new file. Raises UsageError."""
    tables = ["\n".join(["[[experiment]]", *(f"{k} = {_toml(v)}" for k, v in e.items())]) for e in entries]
    write_new(f"{SAVE} {path}", path, ("\n\n".join(tables) + "\n").encode())


def _toml(value: Any) -> str:
    """Return a value in TOML, whose basic strings have the escapes of JSON."""
    return json.dumps(value if isinstance(value, bool | list) else str(value))
