"""Points for chart tests: deterministic, shaped like the paper's."""

from __future__ import annotations

import dataclasses
import functools
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analysis.quantities import GOODPUT_PCT_MEAN, GOODPUT_PCT_MIN, Quantity
from analysis.stats import Spread, spread
from engines.engine import Silent
from harness.metrics.metrics import Metric
from harness.metrics.published import Published, Relation, Source
from harness.results.point_results import PointResult
from harness.results.run_json import Attempt
from model.reasons import Reason
from model.result import FlowRow, PortRow, RunResult, Status, Table
from model.spec import LinkSpec, RunSpec, SamplingSpec, TopologySpec, TransportSpec, WorkloadSpec
from tests.support.fake_engine import FakeEngine
from tests.support.reasons import of_text
from topos import TOPOLOGIES


@dataclass(frozen=True, kw_only=True)
class Point(PointResult):
    """A point that is not stored: `tables` gives its samples, and some fields have usual values."""

    path: Path = Path()
    elapsed_s: float = 0.0
    reasons: tuple[Reason, ...] = ()
    metrics: Mapping[str, float] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    attempts: tuple[Attempt, ...] = ()
    tables: Callable[[str], Table | None] = field(default=lambda _name: None, compare=False)

    def read_table(self, name: str) -> Table | None:
        return self.tables(name)


def level(
    topology: str, workload: str, quantity: Quantity, subflows: int, relation: str, value: float, k: int,
    paper: str, source: str, algorithm: str = "",
) -> Published:  # fmt: skip
    """Return a published number about a quantity."""
    metric = Metric(quantity, lambda _point: None)
    return Published(
        metric, topology, k, workload, subflows, Relation(relation), value, Source(source), "", paper, paper,
        algorithm=algorithm,
    )  # fmt: skip


SIGCOMM11_LEVELS = (
    level("fat_tree", "one_to_one", GOODPUT_PCT_MEAN, 1, "<", 50, 8, "SIGCOMM'11", "text"),
    level("fat_tree", "one_to_one", GOODPUT_PCT_MEAN, 8, "about", 95, 8, "SIGCOMM'11", "text"),
    level("fat_tree", "one_to_one", GOODPUT_PCT_MIN, 8, ">=", 70, 8, "SIGCOMM'11", "text"),
)

MEANS = {1: 47.0, 2: 64.0, 3: 73.0, 4: 79.0, 5: 83.0, 6: 85.0, 7: 86.0, 8: 88.0}
BASELINE_MBPS = 4.71
_OF_POINT = {field.name for field in dataclasses.fields(Point)} - {"spec"}
_OF_PART = {
    "rate_mbps": "link", "queue_pkts": "link", "ecn_pkts": "link", "loss": "link",
    "cc": "transport", "subflows": "transport", "join_after_ms": "transport", "join_after_bytes": "transport",
    "sysctls": "transport", "write_bytes": "transport",
}  # fmt: skip
"""Fields of a spec's parts that `changed` takes by their name alone."""


def flow_row(flow: int = 0) -> FlowRow:
    """Return a flow of plain TCP without hosts."""
    return FlowRow(flow, "", "", "", "", 40000, 5001, "tcp", 1, 1, "reno", 2.0, 10**7, 3, 0.01)


def port_row(port: int, node: str, peer: str, layer: str, utilisation_pct: float = 50.0) -> PortRow:
    return PortRow(port, node, peer, layer, 1000, 1_500_000, 0, 50, utilisation_pct, utilisation_pct)


def point(subflows: int, seed: int = 1, status: Status = Status.OK, k: int = 4) -> Point:
    """Return a point whose flows are evenly spread around its mean; a failed point has no numbers."""
    hosts = k**3 // 4
    mean = MEANS[subflows] + 0.5 * (seed - 1)
    width = 30.0 / subflows
    bare = Point(
        spec=RunSpec(
            link=LinkSpec(5.0),
            topology=TopologySpec("fat_tree", {"k": k}),
            transport=TransportSpec(subflows),
            seed=seed,
            traffic="native",
        ),
        status=status,
        hosts=hosts,
        reasons=() if status is Status.OK else (of_text(f"reason of {status}"),),
    )
    if status is Status.FAILED:
        return bare
    return with_goodputs(bare, [mean + width * (2 * (i + 0.5) / hosts - 1) for i in range(hosts)])


def with_goodputs(of: Point, flows_pct: Sequence[float]) -> Point:
    """Return the same point with flows of these goodputs, in percent of the baseline."""
    baseline_mbps = of.baseline_mbps or BASELINE_MBPS
    flows = tuple(
        dataclasses.replace(flow_row(i), src=f"h{i}", dst=f"g{i}", goodput_mbps=pct * baseline_mbps / 100)
        for i, pct in enumerate(flows_pct)
    )
    made = dataclasses.replace(of, flows=flows, baseline_mbps=baseline_mbps)
    return with_mean(made, spread(flows_pct)) if flows_pct else made


def with_mean(of: Point, pct: Spread | None) -> Point:
    """Return the same point whose stored metrics have this goodput, in percent of the baseline."""
    names = [f"goodput_mbps_{name}" for name in ("mean", "min", "median", "max")]
    others = {name: value for name, value in of.metrics.items() if name not in names}
    values = dataclasses.astuple(pct.scaled((of.baseline_mbps or 0.0) / 100)) if pct else ()
    return dataclasses.replace(of, metrics={**others, **dict(zip(names, values, strict=False))})


def changed(of: Point, **fields: Any) -> Point:
    """Return the same point with other values of its own fields, of its spec's or of those in `_OF_PART`, or
    with another network (`topology`, `k`, `shape`) or `workload`."""
    spec = of.spec
    network: Mapping[str, Any] = {
        "topology": spec.topology.kind, "k": spec.topology.k, "shape": {},
        **{name: fields.pop(name) for name in ("topology", "k", "shape") if name in fields},
    }  # fmt: skip
    size = TOPOLOGIES[network["topology"]].size.name
    params = {size: network["k"], **network["shape"]}
    spec = dataclasses.replace(spec, topology=TopologySpec(network["topology"], params))
    if isinstance(fields.get("workload"), str):
        fields["workload"] = WorkloadSpec(fields["workload"])
    of_point = {name: fields.pop(name) for name in list(fields) if name in _OF_POINT}
    if "metrics" in of_point:
        of_point["metrics"] = {**of.metrics, **of_point["metrics"]}
    for name in [name for name in fields if name in _OF_PART]:
        part = _OF_PART[name]
        inner = dataclasses.replace(getattr(spec, part), **{name: fields.pop(name)})
        spec = dataclasses.replace(spec, **{part: inner})
    return dataclasses.replace(of, spec=dataclasses.replace(spec, **fields), **of_point)


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
) -> Point:
    """Return a point with flows, ports, metrics and every sample table, except those in `without`."""
    bare = changed(point(subflows, seed, status, k), queue_pkts=queue_pkts)
    if status is Status.FAILED:
        return bare
    result = _fake_result(subflows, k, queue_pkts)
    tables = {name: table for name, table in result.samples.items() if name not in without}
    return dataclasses.replace(
        bare,
        flows=result.flows,
        ports=result.ports,
        metrics={**bare.metrics, **result.metrics},
        tables=tables.get,
    )
