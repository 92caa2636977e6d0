"""The command `refabric`: its commands, each imported when it is used.

Exit codes: 0 all ok; 1 some points failed or suspect (results kept); 2 usage; 3 host unfit or disk full;
130 interrupted.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from common import processes
from common.errors import HostUnfitError, RefabricError
from common.text import did_you_mean
from common.version import VERSION
from harness.catalogue import Catalogue
from harness.cli.options import say
from harness.streams import escaped

COMMANDS: Mapping[str, str] = {
    "doctor": "harness.cli.machine:doctor",
    "list": "harness.cli.listing:list_",
    "plan": "harness.cli.run:plan_command",
    "run": "harness.cli.run:run",
    "status": "harness.cli.stored:status",
    "plot": "harness.cli.reading:plot",
    "report": "harness.cli.reading:report",
    "compare": "harness.cli.reading:compare",
    "watch": "harness.cli.stored:watch",
    "calibrate": "harness.cli.machine:calibrate",
    "shell": "harness.cli.machine:shell",
    "worker": "harness.cli.machine:worker",
    "kernel": "harness.cli.machine:kernel",
    "new": "harness.cli.listing:new",
    "results": "harness.cli.stored:results",
    "export": "harness.cli.stored:export",
    "completion": "harness.cli.manuals:completion",
    "man": "harness.cli.manuals:manual",
    "docs": "harness.cli.manuals:docs",
}
"""Module and name of each command: the command line imports the one that it runs."""


OF_DEBIAN = frozenset({"mininet"})
"""Modules that no package index has: setup/install.sh of a clone installs them."""
NO_MININET = (
    "Mininet is not installed, which real hosts need: clone refabric and run  sudo setup/install.sh  there; "
    "simulated hosts (--engine simulator) need neither"
)


class CommandLine(click.Group):
    """The commands of COMMANDS, in alphabetical order. Every error ends in one line on stderr and the exit
    code of its kind."""

    @escaped()
    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any) -> Any:  # type: ignore[override]
        """Run a command and exit the process."""
        extra["standalone_mode"] = False
        try:
            with processes.never_lost():
                code = super().main(args=args, prog_name=prog_name or "refabric", **extra)
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            sys.exit(error.exit_code)
        except click.ClickException as error:
            context = error.ctx if isinstance(error, click.UsageError) else None
            where = context.command_path if context else "refabric"
            say(f"{error.format_message()} (see {where} --help)")
            sys.exit(error.exit_code)
        except RefabricError as error:
            say(str(error))
            sys.exit(error.exit_code)
        except ModuleNotFoundError as error:
            if error.name not in OF_DEBIAN:
                raise
            say(NO_MININET)
            sys.exit(HostUnfitError.exit_code)
        except (click.Abort, KeyboardInterrupt):
            say("interrupted")
            sys.exit(130)
        sys.exit(code if isinstance(code, int) else 0)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands; nothing is imported for it."""
        del ctx
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by name, or None if there is none."""
        del ctx
        return command(cmd_name) if cmd_name in COMMANDS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments begin with. Fail with the closest match if it is unknown."""
        if args and not args[0].startswith("-") and args[0] not in COMMANDS and not ctx.resilient_parsing:
            meant = did_you_mean(args[0], COMMANDS)
            ctx.fail(f"there is no command {args[0]}: {meant}`refabric --help` shows all commands")
        return super().resolve_command(ctx, args)


def command(name: str) -> click.Command:
    """Import and return a command by its name in COMMANDS."""
    module, _, attribute = COMMANDS[name].partition(":")
    found = getattr(import_module(module), attribute)
    if not isinstance(found, click.Command):
        raise AssertionError(f"{COMMANDS[name]} is not a command")
    return found


def next_steps(folder: Path = Path(__file__).parents[2]) -> str:
    """Return the next steps, as run_mptcp.sh --help prints them; an installed wheel has no such script."""
    if (folder / "run_mptcp.sh").exists():
        return Path(__file__).with_name("next_steps.txt").read_text()
    return _WITHOUT_A_CLONE


_WITHOUT_A_CLONE = """Next steps:
  refabric run validation       the simulator and theory compared: a minute, without root
  refabric list                 experiments, networks, workloads
  refabric new experiment mine.py        an experiment of your own
"""


def command_line(catalogue: Catalogue) -> click.Group:
    """Return the command `refabric` with these experiments."""
    group = CommandLine(
        "refabric",
        help="Reproduce published datacenter-transport experiments, on real Linux stacks or simulated.",
        epilog=f"\b\n{next_steps()}",
        context_settings={"help_option_names": ["-h", "--help"], "obj": catalogue},
    )
    return click.version_option(VERSION, prog_name="refabric")(group)
