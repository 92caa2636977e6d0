"""Common parts of the command line: the options of plan, run and status, and one line for every error."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, TypeVar

import click

from common import interrupts
from common.errors import HostUnfitError, RefabricError, UsageError
from common.privileges import check_private
from harness.catalogue import Catalogue
from harness.cli.help import completion
from harness.experiment import Experiment
from harness.options.fields import BY_NAME, OPTIONS, Option
from harness.streams import escaped, fitted

Command = TypeVar("Command", bound=Callable[..., Any])

INTERRUPTED = 130


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
    """Add every option that defines a sweep. They arrive as keywords for `UserOptions.parsed`."""
    return _with(OPTIONS, _qmon(command))


def dataplane_options(command: Command) -> Command:
    """Add the options that say what is between the hosts."""
    return _with([BY_NAME[name] for name in ("dataplane", "controller", "mode", "datapath")], command)


_qmon = click.option("--qmon", is_flag=True, help="Sample the queue lengths of every port.")


def _with(options: Sequence[Option], command: Command) -> Command:
    for option in reversed(options):
        command = typed(option)(command)
    return command


def typed(option: Option) -> Callable[[Command], Command]:
    """Return the decorator that adds an option whose value arrives parsed."""

    def parsed(_context: click.Context, _parameter: click.Parameter, text: Any) -> Any:
        return option.default if text is None or text == () else option.parse(option.flag, text)

    return click.option(
        option.flag,
        option.name,
        metavar=option.metavar,
        multiple=option.multiple,
        callback=parsed,
        help=option.help,
        shell_complete=completion.values,
    )


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


def _find(context: click.Context, _: click.Parameter, name: str | None) -> Experiment | None:
    if name is None:
        return None
    catalogue: Catalogue = context.obj
    return catalogue.find(name)


experiment_argument = click.argument(
    "chosen", metavar="EXPERIMENT", callback=_find, shell_complete=completion.experiments
)
"""An experiment by name; the command takes it as `chosen`."""
optional_experiment = click.argument(
    "chosen", metavar="[EXPERIMENT]", callback=_find, required=False, shell_complete=completion.experiments
)


OF_DEBIAN = frozenset({"mininet"})
"""Modules that no package index has: setup/install.sh of a clone installs them."""
NO_MININET = (
    "Mininet is not installed, which real hosts need: clone refabric and run  sudo setup/install.sh  there; "
    "simulated hosts (--engine simulator) need neither"
)


class OneLineErrors(click.Group):
    """A group of commands that ends every error in one line on stderr and the exit code of its kind."""

    @escaped()
    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any) -> Any:  # type: ignore[override]
        """Run a command and exit the process."""
        extra["standalone_mode"] = False
        try:
            with interrupts.never_lost():
                code = super().main(args=args, prog_name=prog_name or "refabric", **extra)
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            sys.exit(error.exit_code)
        except click.ClickException as error:
            _say(f"{error.format_message()} (see {_where(error)} --help)")
            sys.exit(error.exit_code)
        except RefabricError as error:
            _say(str(error))
            sys.exit(error.exit_code)
        except ModuleNotFoundError as error:
            if error.name not in OF_DEBIAN:
                raise
            _say(NO_MININET)
            sys.exit(HostUnfitError.exit_code)
        except (click.Abort, KeyboardInterrupt):
            _say("interrupted")
            sys.exit(INTERRUPTED)
        sys.exit(code if isinstance(code, int) else 0)


def _where(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    return context.command_path if context else "refabric"


def warn(text: str) -> None:
    """Print a line for the user, unless it is empty."""
    if text:
        _say(text)


def _say(text: str) -> None:
    line = f"refabric: {' '.join(text.split())}"
    click.echo(fitted(line, 2) if sys.stderr.isatty() else line, err=True)
