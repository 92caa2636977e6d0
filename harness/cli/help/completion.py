"""`refabric completion`: completion of commands, experiments, options and their values in a shell.

The shell calls the command itself (click), so it offers exactly what the command accepts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import click
from click.shell_completion import CompletionItem, get_completion_class

import topos
from controllers.routing import POLICIES
from engines.emulation.dataplanes.dataplane import DATAPLANES
from engines.registry import ENGINES
from fabric._core import disciplines
from harness.options import parsers
from harness.options.fields import TRAFFIC
from harness.options.profiles import PROFILES
from model.congestion import CONGESTION_CONTROLS
from model.spec import CLOCKS, CONTROLLERS, DATAPATHS, HOST_QUEUES, MODES

COMMAND, VARIABLE = "refabric", "_REFABRIC_COMPLETE"
SHELLS = ("bash", "zsh", "fish")
HOW = """\
bash:
  mkdir -p ~/.local/share/bash-completion/completions
  refabric completion bash >~/.local/share/bash-completion/completions/refabric
zsh, in a folder of your fpath:
  mkdir -p ~/.zfunc
  refabric completion zsh >~/.zfunc/_refabric
fish:
  mkdir -p ~/.config/fish/completions
  refabric completion fish >~/.config/fish/completions/refabric.fish"""
VALUES: Mapping[str, Callable[[], Collection[str]]] = {
    "cc": lambda: CONGESTION_CONTROLS,
    "clock": lambda: CLOCKS,
    "controller": lambda: CONTROLLERS,
    "datapath": lambda: DATAPATHS,
    "dataplane": lambda: DATAPLANES,
    "discipline": disciplines,
    "engine": lambda: (*ENGINES, parsers.BOTH),
    "host_queue": lambda: HOST_QUEUES,
    "mode": lambda: MODES,
    "profile": lambda: PROFILES,
    "rate": lambda: (parsers.BY_MACHINE,),
    "routing": lambda: POLICIES,
    "topology": lambda: [f.written.partition(":")[0] + ":" if f.written else f"{f.alias},"
                         for f in topos.TOPOLOGIES.values()],
    "traffic": lambda: TRAFFIC,
    "workload": lambda: (*parsers.sweep_workloads(), "all"),
}  # fmt: skip
"""What an option's value may be, by the option's name."""
LISTS = frozenset({"cc", "engine", "workload"})
"""Options that take several values, with commas between them."""


def values(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the values of an option that begin with what is typed; of a list, its last part."""
    del context
    name = parameter.name or ""
    before, comma, last = incomplete.rpartition(",") if name in LISTS else ("", "", incomplete)
    known = VALUES[name]() if name in VALUES else ()
    return [CompletionItem(f"{before}{comma}{each}") for each in known if each.startswith(last)]


def experiments(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the experiments whose names begin with what is typed, or files for a path."""
    del parameter
    if incomplete.startswith((".", "/", "~")):
        return [CompletionItem(incomplete, type="file")]
    return [CompletionItem(e.name, help=e.title) for e in context.obj if e.name.startswith(incomplete)]


@click.command(epilog=f"\b\n{HOW}", short_help="Print the script that completes commands in a shell.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes refabric's commands, experiments and options in a shell."""
    found = get_completion_class(shell)
    if found is None:
        raise AssertionError(f"click has no completion for {shell}")
    root = context.find_root().command
    click.echo(found(root, {}, COMMAND, VARIABLE).source())
