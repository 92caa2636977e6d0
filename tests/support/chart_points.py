"""Points for chart tests: deterministic, shaped like the paper's."""

from __future__ import annotations

import dataclasses
import functools
import tempfile
from collections.abc import Collection
from pathlib import Path

from engines.engine import Silent
from engines.fake import FakeEngine
from model.result import FlowRow, PortRow, RunResult, Status
from model.spec import LinkSpec, RunSpec, SamplingSpec, TopologySpec, TransportSpec
from plots.data import Level, PointSummary

SIGCOMM11_LEVELS = (
    Level("fat_tree", "one_to_one", "mean", 1, "<", 50, 8, "SIGCOMM'11", "text"),
    Level("fat_tree", "one_to_one", "mean", 8, "about", 95, 8, "SIGCOMM'11", "text"),
    Level("fat_tree", "one_to_one", "min", 8, ">=", 70, 8, "SIGCOMM'11", "text"),
)

MEANS = {1: 47.0, 2: 64.0, 3: 73.0, 4: 79.0, 5: 83.0, 6: 85.0, 7: 86.0, 8: 88.0}


def flow_row(flow: int = 0) -> FlowRow:
    """A flow of plain TCP, from and to nowhere."""
    return FlowRow(flow, "", "", "", "", 40000, 5001, "tcp", 1, 1, "reno", 2.0, 10**7, 3, 0.01)


def port_row(port: int, node: str, peer: str, layer: str, utilisation_pct: float = 50.0) -> PortRow:
    return PortRow(port, node, peer, layer, 1000, 1_500_000, 0, 50, utilisation_pct, utilisation_pct)


def point(subflows: int, seed: int = 1, status: Status = Status.OK, k: int = 4) -> PointSummary:
    """A point whose flows are evenly spread around its mean; failed ones have no numbers."""
    hosts = k**3 // 4
    mean = MEANS[subflows] + 0.5 * (seed - 1)
    spread = 30.0 / subflows
    flows = tuple(mean + spread * (2 * (i + 0.5) / hosts - 1) for i in range(hosts))
    summary = PointSummary(
        engine="mininet",
        dataplane="fabric",
        topology="fat_tree",
        k=k,
        hosts=hosts,
        workload="one_to_one",
        subflows=subflows,
        cc="reno",
        rate_mbps=5.0,
        queue_pkts=100,
        seconds=40.0,
        seed=seed,
        status=status,
        reasons=() if status is Status.OK else (f"reason of {status}",),
        goodput_pct_mean=mean,
        reference_mbps=4.71,
        flows_pct=flows,
        rate_choice="auto",
        kernel="Linux 6.1.0",
    )
    if status is Status.FAILED:
        return dataclasses.replace(summary, goodput_pct_mean=None, reference_mbps=None, flows_pct=())
    return summary


@functools.cache
def _fake_result(subflows: int, k: int, queue_pkts: int) -> RunResult:
    spec = RunSpec(
        link=LinkSpec(5.0, queue_pkts=queue_pkts),
        topology=TopologySpec("fat_tree", {"k": k}),
        transport=TransportSpec(subflows),
        engine="fake",
        seconds=6.0,
        warmup_s=2.0,
        sampling=SamplingSpec(queues_ms=200, sockets_ms=500, pings_ms=1000),
    )
    with tempfile.TemporaryDirectory() as raw:
        return FakeEngine().run(spec, Silent(), Path(raw))


def sampled(
    subflows: int,
    seed: int = 1,
    status: Status = Status.OK,
    k: int = 4,
    queue_pkts: int = 100,
    without: Collection[str] = (),
) -> PointSummary:
    """A point with flows, ports, metrics and every sample table, but those called in `without`."""
    bare = dataclasses.replace(point(subflows, seed, status, k), queue_pkts=queue_pkts)
    if status is Status.FAILED:
        return bare
    result = _fake_result(subflows, k, queue_pkts)
    tables = {name: table for name, table in result.samples.items() if name not in without}
    return dataclasses.replace(
        bare, flows=result.flows, ports=result.ports, metrics=result.metrics, read_table=tables.get
    )
