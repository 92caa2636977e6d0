"""`refabric doctor`, `shell` and `calibrate`: this machine, and a network on it."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import click

import topos
from common.errors import UsageError
from engines import registry as engines
from engines.emulation.dataplanes.dataplane import FABRIC
from harness.cli.options import (
    dataplane_options,
    interruptible,
    json_option,
    typed,
)
from harness.cli.progress import (
    PlainProgress,
)
from harness.options.fields import K, Option
from harness.options.options import UserOptions, openflow_of
from harness.options.parsers import limited, whole
from harness.streams import unescaped, write_json
from model.spec import TopologySpec


@click.command(short_help="Test whether this machine can run experiments.")
@json_option
def doctor(as_json: bool) -> int:
    """Test whether this machine can run experiments, and say what to install if not."""
    from setup import doctor as checks  # noqa: PLC0415

    return checks.main(json=as_json)


def _mbps(flag: str, text: Any) -> float:
    """Parse a link rate in Mb/s; there is no `auto` here."""
    return float(limited("link.rate_mbps")(flag, text))


def _with_hosts(flag: str, text: Any) -> str:
    """Parse the name of an engine whose hosts run programs."""
    if text not in engines.LINUX_HOSTS:
        raise UsageError(f"{flag} {text}: no hosts to log in to; choose {' or '.join(engines.LINUX_HOSTS)}")
    return str(text)


def _shell_in_a_guest(topology: str, rate: float, queue: int, chosen: UserOptions) -> int:
    from engines.linux import shell as prompt  # noqa: PLC0415

    if chosen.settings.get("dataplane", FABRIC) != FABRIC:
        raise UsageError(f"guests have only the data plane {FABRIC}; choose --engine {engines.MININET}")
    openflow_of(chosen)
    return prompt.main(topology, rate, queue)


@click.command(short_help="Open Mininet's prompt on a running network.")
@click.argument("topology")
@typed(Option("rate", "MBPS", "Set the link rate in Mb/s. [default: 10]", _mbps, default=10.0))
@typed(
    Option("queue", "PKTS", "Limit the queue of every port. [default: 100]", whole(1, "packet"), default=100)
)
@typed(
    Option(
        "engine",
        "NAME",
        "Run the hosts in this engine: mininet, or linux (virtual time, no root). [default: mininet]",
        _with_hosts,
        default=engines.MININET,
    )
)
@dataplane_options
def shell(
    topology: str,
    rate: float,
    queue: int,
    engine: str,
    **options: Any,
) -> int:
    """Open Mininet's prompt on a running network: refabric shell ft,4."""
    chosen = UserOptions.parsed(**options)
    topos.build(*topos.parse(topology))
    if engine == engines.LINUX:
        with unescaped():
            return _shell_in_a_guest(topology, rate, queue, chosen)
    from engines.emulation.hosts import shell as prompt  # noqa: PLC0415

    dataplane = chosen.settings.get("dataplane", FABRIC)
    with unescaped():
        return prompt.main(topology, rate, queue, dataplane=dataplane, openflow=openflow_of(chosen))


@click.command(short_help="Measure the highest link rate that this machine carries.")
@typed(replace(K, help="Measure for FatTrees of these sizes. [default: 8]", default=(8,)))
@json_option
def calibrate(k: tuple[int, ...], as_json: bool) -> None:
    """Measure the highest link rate that this machine carries, and keep it for later runs."""
    from engines.emulation import calibrate as measuring  # noqa: PLC0415

    human = sys.stderr if as_json else sys.stdout
    with interruptible():
        for size in k:
            topology = TopologySpec("fat_tree", {"k": size})
            rate_mbps = float(measuring.calibrate(topology, PlainProgress(human)))
            if as_json:
                write_json(sys.stdout, {"event": "rate", "k": size, "rate_mbps": rate_mbps})
            else:
                click.echo(f"k={size}: {rate_mbps:g} Mb/s")
