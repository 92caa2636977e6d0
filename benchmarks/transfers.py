"""Throughput that MPTCP's transfers lose to the receive buffer and to Linux's scheduler; simulated hosts.

The cloud of the real hosts (docs/experiments/sigcomm11.md), with one property of the hosts changed at a
time: mean throughput between racks by TCP, MPTCP 2 and MPTCP 4, and the last over the first
(docs/experiments/subflow-idle.md). A run takes seconds and gives the same numbers on every machine.

    python -m benchmarks.transfers --minutes 10
"""

from __future__ import annotations

import dataclasses
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from analysis.sequential import between_racks, pair_transfers
from engines.engine import Silent
from engines.registry import SIMULATOR, make
from experiments.sigcomm11.ec2 import EMULATED_CLOUD, EMULATED_WORKLOAD
from model.spec import (
    LINUX,
    LinkSpec,
    RunSpec,
    StackSpec,
    TopologySpec,
    TransportSpec,
    WorkloadSpec,
)
from workloads import matrices
from workloads.sequential import TRANSPORTS

RECEIVE_BUFFERS = (45, 90, 180, 360, 720)
"""Receive buffers in segments; Linux begins with 128 kB, half of which is window: 45 segments."""


def stacks() -> Iterator[tuple[str, StackSpec]]:
    yield "our defaults", StackSpec()
    yield "as Linux", LINUX
    yield (
        "as Linux, min_rtt",
        dataclasses.replace(LINUX, scheduler="min_rtt", send_buffer=0, subflow_buffer=0),
    )
    for segments in RECEIVE_BUFFERS:
        yield f"as Linux, {segments} segments", dataclasses.replace(LINUX, receive_buffer=segments)


def between(stack: StackSpec, minutes: float) -> tuple[int, list[float]]:
    """Return the number of pairs between racks, and the mean Mb/s of their transfers by each transport."""
    matrix, params = matrices.parse(EMULATED_WORKLOAD)
    spec = RunSpec(
        LinkSpec(20.0),
        TopologySpec("cloud", EMULATED_CLOUD),
        TransportSpec(TRANSPORTS[-1], "lia"),
        WorkloadSpec(matrix, params),
        engine=SIMULATOR,
        warmup_s=5.0,
        seconds=60 * minutes,
        stack=stack,
    )
    with tempfile.TemporaryDirectory() as raw:
        result = make(SIMULATOR).run(spec, Silent(), Path(raw))
    pairs = between_racks(pair_transfers(result.flows))
    return len(pairs), [statistics.fmean(pair.mbps[n] for pair in pairs) for n in TRANSPORTS]


@click.command()
@click.option(
    "--minutes", default=10.0, show_default=True, type=click.FloatRange(min=1), help="Simulated minutes."
)
def main(minutes: float) -> None:
    """Print mean Mb/s between racks by TCP, MPTCP 2 and 4, and the gain of MPTCP 4 over TCP."""
    for name, stack in stacks():
        pairs, mbps = between(stack, minutes)
        columns = " ".join(f"{value:5.1f}" for value in mbps)
        click.echo(f"{name:24s} {pairs:4d} pairs  {columns}  gain {mbps[-1] / mbps[0]:.2f}")


if __name__ == "__main__":
    main()
