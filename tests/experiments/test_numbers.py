"""Numbers of this version at reduced size, with the interval of their seeds: a change that moves one fails.

`baselines/numbers.json` holds them. After a change that is meant to move a number, run
`python tests/experiments/test_numbers.py`, and say why in the commit.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.stats import jain, mean_interval
from engines.engine import Silent
from engines.simulation.engine import SimulatorEngine
from model.result import RunResult
from model.spec import LinkSpec, RunSpec, StackSpec, TopologySpec, TransportSpec, WorkloadSpec

BASELINES = Path(__file__).resolve().parents[2] / "baselines" / "numbers.json"
SEEDS = (1, 2, 3)
TREE = RunSpec(
    LinkSpec(20.0, 100.0, queue_pkts=50),
    TopologySpec("fat_tree", {"k": 4}),
    TransportSpec(1, "reno"),
    WorkloadSpec("one_to_one"),
    engine="simulator",
    warmup_s=2.0,
    seconds=6.0,
    stack=StackSpec(min_rto_ms=10.0, delayed_ack_ms=0.0, start_spread_ms=50.0),
)
DCTCP = replace(
    TREE,
    link=LinkSpec(100.0, 50.0, ecn_pkts=20),
    topology=TopologySpec("star", {"n": 5}),
    transport=TransportSpec(1, "dctcp"),
    workload=WorkloadSpec("one_to_several", {"clients": 4, "servers": 1}),
    warmup_s=0.5,
    seconds=1.0,
)
SHARE = replace(
    TREE,
    link=LinkSpec(20.0, 5000.0, queue_pkts=50, random_pkts=25),
    topology=TopologySpec("dumbbell", {"n": 2, "lanes": 6}),
    transport=TransportSpec(2, "lia"),
    workload=WorkloadSpec("against_tcp"),
)


def _goodput_pct(result: RunResult, spec: RunSpec) -> float:
    return 100 * statistics.fmean(flow.goodput_mbps for flow in result.flows) / spec.link.rate_mbps


def _jain(result: RunResult, _spec: RunSpec) -> float:
    return jain([flow.goodput_mbps for flow in result.flows])


def _queue_max_pkts(result: RunResult, _spec: RunSpec) -> float:
    return max(port.max_queue_pkts for port in result.ports if not port.node.startswith("h"))


def _share(result: RunResult, _spec: RunSpec) -> float:
    """Return MPTCP's goodput over that of the TCP flows beside it, over all replicas of the bottleneck."""
    of = {kind: sum(f.goodput_mbps for f in result.flows if f.transport == kind) for kind in ("mptcp", "tcp")}
    return of["mptcp"] / of["tcp"]


def _tree(subflows: int) -> RunSpec:
    return replace(TREE, transport=TransportSpec(subflows, "reno" if subflows == 1 else "lia"))


NUMBERS: dict[str, tuple[RunSpec, Callable[[RunResult, RunSpec], float]]] = {
    **{f"k=4, {n} subflows: goodput, % of the link": (_tree(n), _goodput_pct) for n in (1, 2, 8)},
    "k=4, 8 subflows: Jain's index": (_tree(8), _jain),
    "DCTCP, threshold 20: longest queue, packets": (DCTCP, _queue_max_pkts),
    "LIA beside TCP on one bottleneck: share over TCP's": (SHARE, _share),
}


def measured(name: str) -> list[float]:
    """Return the number at each seed."""
    spec, read = NUMBERS[name]
    runs = (replace(spec, seed=seed) for seed in SEEDS)
    return [read(SimulatorEngine().run(run, Silent(), Path("/none")), run) for run in runs]


@pytest.mark.parametrize("name", NUMBERS)
def test_the_number_is_that_of_this_version(name: str) -> None:
    baseline = json.loads(BASELINES.read_text())[name]
    values = measured(name)
    assert values == pytest.approx(baseline["values"], rel=1e-3), (
        f"{name} moved: {statistics.fmean(values):.4g}, interval {mean_interval(values).half:.2g}; "
        f"before {statistics.fmean(baseline['values']):.4g}"
    )


def test_more_subflows_bring_more_as_published() -> None:
    known = json.loads(BASELINES.read_text())
    one, two, eight = (known[f"k=4, {n} subflows: goodput, % of the link"]["values"] for n in (1, 2, 8))
    gains = [b - a for few, many in ((one, two), (two, eight)) for a, b in zip(few, many, strict=True)]
    assert min(gains) > 0
    assert mean_interval([b - a for a, b in zip(one, eight, strict=True)]).excludes_zero


if __name__ == "__main__":
    BASELINES.parent.mkdir(exist_ok=True)
    found = {name: measured(name) for name in NUMBERS}
    half_widths = {name: mean_interval(values).half for name, values in found.items()}
    known = {name: {"values": found[name], "half_95": half_widths[name]} for name in found}
    BASELINES.write_text(f"{json.dumps(known, indent=2)}\n")
