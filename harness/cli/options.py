"""Options of the commands: on a command line, in completion, and as Python values of `refabric.run`."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, TypeVar

import click
from click.shell_completion import CompletionItem

import topos
from common.errors import UsageError
from common.privileges import check_private
from engines.emulation.dataplanes.dataplane import DATAPLANES
from engines.registry import ENGINES
from harness.catalogue import Catalogue
from harness.experiment import Experiment
from harness.options import parsers
from harness.options.fields import BY_NAME, OPTIONS, SPEC_FIELDS, Option, exact
from harness.options.profiles import PROFILES
from harness.streams import fitted
from model.congestion import CONGESTION_CONTROLS
from model.spec import CLOCKS, CONTROLLERS

VALUES: Mapping[str, Collection[str]] = {
    **{of.name: parsers.CHOICES[of.path][0] for of in SPEC_FIELDS if of.path in parsers.CHOICES},
    "cc": CONGESTION_CONTROLS,
    "clock": CLOCKS,
    "controller": CONTROLLERS,
    "dataplane": DATAPLANES,
    "engine": (*ENGINES, parsers.BOTH),
    "profile": PROFILES,
    "rate": (parsers.BY_MACHINE,),
    "topology": [f.written.partition(":")[0] + ":" if f.written else f"{f.alias},"
                 for f in topos.TOPOLOGIES.values()],
    "workload": (*parsers.sweep_workloads(), "all"),
}  # fmt: skip
"""What an option's value may be, by the option's name."""
LISTS = frozenset({"cc", "engine", "workload", *(option.name for option in OPTIONS if option.listed)})
"""Options that take several values, with commas between them."""

Command = TypeVar("Command", bound=Callable[..., Any])


class UsersPath(click.Path):
    """A file or folder that a user names. Root takes none that somebody else can change."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        what = f"{param.opts[0]} {path}" if isinstance(param, click.Option) else str(path)
        try:
            check_private(what, path)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise UsageError(f"{what}: {reason}; name another one") from error
        return path


users_path = UsersPath(path_type=Path)


def _results(words: str) -> Callable[[Command], Command]:
    return click.option(
        "--results",
        type=users_path,
        default=Path("results"),
        show_default=True,
        metavar="DIR",
        help=words,
    )


results_option = _results("Keep results in this folder.")
stored_option = _results("Read the results in this folder.")
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object per line on stdout, and nothing else."
)


def sweep_options(command: Command) -> Command:
    """Add every option that defines a sweep. They arrive as keywords, parsed, for `by_path`."""
    return _with(OPTIONS, _qmon(command))


def network_options(command: Command) -> Command:
    """Add the options that say what is between the hosts."""
    names = ("delay", "loss", "ecn", "dataplane", "controller", "mode", "datapath")
    return _with([BY_NAME[name] for name in names], command)


_qmon = click.option("--qmon", is_flag=True, help="Sample the queue lengths of every port.")


def _with(options: Sequence[Option], command: Command) -> Command:
    for option in reversed(options):
        command = typed(option)(command)
    return command


def typed(option: Option) -> Callable[[Command], Command]:
    """Return the decorator that adds an option whose value arrives parsed."""

    def parsed(_context: click.Context, _parameter: click.Parameter, text: Any) -> Any:
        return option.default if text is None or text == () else option.read(text)

    return click.option(
        option.flag,
        option.name,
        metavar=f"{option.metavar},..." if option.listed else option.metavar,
        multiple=option.multiple,
        callback=parsed,
        help=option.help,
        shell_complete=option_values,
    )


def option_values(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the values of an option that begin with what is typed; of a list, its last part."""
    del context
    name = parameter.name or ""
    before, comma, last = incomplete.rpartition(",") if name in LISTS else ("", "", incomplete)
    known = VALUES.get(name, ())
    return [CompletionItem(f"{before}{comma}{each}") for each in known if each.startswith(last)]


def experiment_names(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the experiments whose names begin with what is typed, or files for a path."""
    del parameter
    if incomplete.startswith((".", "/", "~")):
        return [CompletionItem(incomplete, type="file")]
    return [CompletionItem(e.name, help=e.title) for e in context.obj if e.name.startswith(incomplete)]


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Let SIGTERM and a hang-up end the block as Ctrl-C does, unless they are ignored (nohup)."""

    def stop(_number: int, _frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    chosen = [s for s in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(s) is not signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in chosen}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


_ADDED = "refabric.added"


def _keep(context: click.Context, _: click.Parameter, files: tuple[str, ...]) -> tuple[str, ...]:
    context.meta[_ADDED] = files
    return files


def _find(context: click.Context, _: click.Parameter, name: str | None) -> Experiment | None:
    if name is None:
        return None
    catalogue: Catalogue = context.obj
    return catalogue.find(name, context.meta.get(_ADDED, ()))


def _experiment(metavar: str, required: bool) -> Callable[[Command], Command]:
    def decorated(command: Command) -> Command:
        command = metric_option(
            "Add the metrics, charts and statements of FILE (Python). Repeatable.", _keep
        )(command)
        return click.argument(
            "chosen", metavar=metavar, callback=_find, required=required, shell_complete=experiment_names
        )(command)

    return decorated


def metric_option(words: str, callback: Callable[..., Any] | None = None) -> Callable[[Command], Command]:
    """Return the decorator that adds --metric. With `callback`, it joins the experiment of the command."""
    return click.option(
        "--metric", "added", metavar="FILE", multiple=True, help=words, callback=callback,
        is_eager=callback is not None, expose_value=callback is None,
    )  # fmt: skip


experiment_argument = _experiment("EXPERIMENT", required=True)
"""An experiment by name, with what --metric adds to it; the command takes it as `chosen`."""
optional_experiment = _experiment("[EXPERIMENT]", required=False)


def warn(text: str) -> None:
    """Print a line for the user, unless it is empty."""
    if text:
        say(text)


def say(text: str) -> None:
    """Print a line for the user on stderr."""
    line = f"refabric: {' '.join(text.split())}"
    click.echo(fitted(line, 2) if sys.stderr.isatty() else line, err=True)


NOT_IN_PYTHON = frozenset({"--help", "--json", "--config", "--save-config"})
"""Options that are about the terminal or about files of options."""


def argv_of(command: click.Command, values: Mapping[str, Any]) -> list[str]:
    """Return the arguments of a command line with these values; None and False leave an option out.

    A list is joined by commas, or repeats an option that may be given several times. A mapping gives
    NAME=VALUE pairs of such an option.
    """
    return [argument for name, value in values.items() for argument in _arguments(command, name, value)]


def parsed_parameters(command: click.Command, argv: Iterable[str], catalogue: Catalogue) -> dict[str, Any]:
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
        return [f"{name}={','.join(_texts(flag, inner))}" for name, inner in value.items()]
    if isinstance(value, str) or not isinstance(value, Iterable):
        return [_argument_text(flag, value)]
    return [_argument_text(flag, inner) for inner in value]


def _argument_text(flag: str, value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return exact(value)
    if isinstance(value, Mapping | list | tuple | set | bytes) or value is None:
        raise UsageError(f"{flag} {value!r}: give a number, a text, or a list of them")
    return str(value)
