"""The command line's common parts: options shared by plan, run and status, and one line for every error."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, TypeVar

import click

from common.errors import RefabricError
from controllers.routing import POLICIES
from engines.emulation.dataplanes.registry import DATAPLANES, FABRIC
from engines.registry import ENGINES
from fabric._core import disciplines
from harness.catalogue import Catalogue
from harness.experiment import Experiment
from harness.plan import stack_options
from harness.plan.options import BOTH, ENGINE, USUAL_OPENFLOW, Given
from harness.plan.profiles import DEFAULT, PROFILES
from model.congestion import BASELINE, CONGESTION_CONTROLS, COUPLED_DEFAULT
from model.openflow import CONTROLLERS, DATAPATHS, MODES
from model.schedulers import NAMES as SCHEDULERS
from model.spec import CLOCKS, HOST_QUEUES

Command = TypeVar("Command", bound=Callable[..., Any])

INTERRUPTED = 130

_DATAPLANE_OPTIONS = (
    click.option(
        "--dataplane",
        default=FABRIC,
        show_default=True,
        metavar="NAME",
        help=f"What carries the packets between real hosts: {', '.join(DATAPLANES)}.",
    ),
    click.option(
        "--controller",
        metavar="NAME",
        help=f"What programs Open vSwitch: {', '.join(CONTROLLERS)}; {USUAL_OPENFLOW.controller} by default.",
    ),
    click.option(
        "--mode",
        metavar="NAME",
        help=f"When rules are made: {', '.join(MODES)}; {USUAL_OPENFLOW.mode} by default.",
    ),
    click.option(
        "--datapath",
        metavar="NAME",
        help=f"Open vSwitch's datapath: {', '.join(DATAPATHS)}; {USUAL_OPENFLOW.datapath} by default.",
    ),
)
_SWEEP_OPTIONS = (
    click.option("--k", metavar="K,...", help="FatTree sizes: even, from 4 up, e.g. 4,8."),
    click.option(
        "--workload", metavar="NAME[:VALUE],...", help="Traffic matrices, e.g. one_to_one,stride:4, or all."
    ),
    click.option(
        "--subflows", metavar="N,...", help="Subflow counts 1..32, e.g. 1-8 or 1,2,8; 1 is plain TCP."
    ),
    click.option(
        "--cc",
        metavar="NAME,...",
        help=f"Congestion controls: {', '.join(CONGESTION_CONTROLS)}; unless given, {COUPLED_DEFAULT} for "
        f"MPTCP (where this machine cannot, {BASELINE}) and {BASELINE} for TCP.",
    ),
    click.option(
        "--engine",
        metavar="NAME,...",
        help=f"What runs the points: {', '.join(ENGINES)}, {BOTH} (simulated and real hosts); "
        f"{ENGINE} unless pinned.",
    ),
    *_DATAPLANE_OPTIONS,
    click.option(
        "--traffic",
        metavar="NAME",
        help="What makes the traffic: native (one process for all hosts) unless a figure pins it, or iperf3.",
    ),
    click.option(
        "--routing",
        metavar="NAME",
        help=f"Choice of path: {', '.join(POLICIES)} (each packet by itself); hashed unless pinned.",
    ),
    click.option(
        "--rate",
        metavar="MBPS|auto",
        help="Link rate in Mb/s; auto: the most this machine carries; simulated, 100.",
    ),
    click.option(
        "--queue",
        type=int,
        metavar="PKTS",
        help="Queue of every port; 0 is unbounded. 100 unless a figure pins it.",
    ),
    click.option("--delay", type=float, metavar="US", help="Delay of a link in us; 0 unless pinned."),
    click.option("--loss", type=float, metavar="PERCENT", help="Random loss on links between switches."),
    click.option("--ecn", type=int, metavar="PKTS", help="Mark packets (ECN) behind this many; 0 is never."),
    click.option("--queue-bytes", type=int, metavar="BYTES", help="Count switches' queues in bytes instead."),
    click.option(
        "--random-drop",
        type=int,
        metavar="PKTS",
        help="Give a switch queue's last places by chance; 0 is none.",
    ),
    click.option(
        "--discipline",
        metavar="NAME",
        help=f"Queue discipline of the switches' ports: {', '.join(disciplines())}.",
    ),
    click.option(
        "--host-queue",
        metavar="WHERE",
        help=f"A real host's own queue: {HOST_QUEUES[0]} of the fabric, or {HOST_QUEUES[1]} of its kernel.",
    ),
    click.option(
        "--event",
        multiple=True,
        metavar="S:NODE-NODE[:SHARE]",
        help="Cut a link S seconds after the start of traffic, or leave it a share of its rate; repeat.",
    ),
    click.option(
        "--scheduler",
        metavar="NAME[:MS|:ideal]",
        help=f"Who leads large flows, looking every so many ms: {', '.join(SCHEDULERS)}; none unless pinned.",
    ),
    click.option(
        "--stalls",
        metavar="WHERE:EVERY:LEAST-MOST",
        help="Stall the CPUs of the fabric, the hosts or all every so many ms, for LEAST to MOST ms.",
    ),
    click.option(
        "--clock",
        metavar="NAME",
        help=f"The fabric's clock where the machine stalls: {CLOCKS[0]} (stands still too) or {CLOCKS[1]}.",
    ),
    click.option(
        "--sysctl", multiple=True, metavar="NAME=VALUE", help="Set a sysctl of net.* in every host; repeat."
    ),
    click.option("--write", type=int, metavar="BYTES", help="What a sender writes at a time."),
    click.option(
        "--stack",
        multiple=True,
        metavar="NAME=VALUE",
        help=f"What simulated hosts' stacks do; repeat. Unless pinned: {stack_options.usual()}.",
    ),
    click.option("--seconds", type=float, metavar="S", help="Measured seconds of a point."),
    click.option("--warmup", type=float, metavar="S", help="Seconds of traffic before measuring."),
    click.option("--seed", type=int, default=1, show_default=True, metavar="N", help="First seed."),
    click.option("--seeds", type=int, metavar="COUNT", help="How many seeds, counting up from the first."),
    click.option("--profile", default=DEFAULT, show_default=True, help=f"Defaults: {', '.join(PROFILES)}."),
    click.option("--qmon", is_flag=True, help="Sample the queue lengths of every port."),
)

results_option = click.option(
    "--results",
    type=click.Path(path_type=Path),
    default=Path("results"),
    show_default=True,
    metavar="DIR",
    help="Where results are kept.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object a line, nothing else.")


def sweep_options(command: Command) -> Command:
    """Add every option that says what a sweep is made of; they arrive as keywords for `given`."""
    return _with(_SWEEP_OPTIONS, command)


def dataplane_options(command: Command) -> Command:
    """Add those that say what is between the hosts."""
    return _with(_DATAPLANE_OPTIONS, command)


def _with(options: Sequence[Callable[[Command], Command]], command: Command) -> Command:
    for option in reversed(options):
        command = option(command)
    return command


def given(options: dict[str, Any]) -> Given:
    """The keywords of `sweep_options` as one value."""
    return Given(**options)


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


def _find(context: click.Context, _: click.Parameter, name: str) -> Experiment:
    catalogue: Catalogue = context.obj
    return catalogue.find(name)


experiment_argument = click.argument("chosen", metavar="EXPERIMENT", callback=_find)
"""An experiment by name; the command takes it as `chosen`."""


class OneLineErrors(click.Group):
    """A group of commands that ends every error in one line on stderr and the exit code of its kind."""

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any) -> Any:  # type: ignore[override]
        """Run a command and exit the process."""
        extra["standalone_mode"] = False
        try:
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
        except (click.Abort, KeyboardInterrupt):
            _say("interrupted")
            sys.exit(INTERRUPTED)
        sys.exit(code if isinstance(code, int) else 0)


def _where(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    return context.command_path if context else "refabric"


def _say(text: str) -> None:
    click.echo(f"refabric: {' '.join(text.split())}", err=True)
