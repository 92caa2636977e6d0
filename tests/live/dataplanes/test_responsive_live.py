"""A controller gives real MPTCP connections a second subflow where their demand is not met, at k=4."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from engines.emulation.engine import MininetEngine
from model.spec import (
    LinkSpec,
    RunSpec,
    SchedulerSpec,
    TopologySpec,
    TransportSpec,
    WorkloadSpec,
)
from tests.support.machine_noise import run_once

pytestmark = [pytest.mark.emulation, pytest.mark.physics]

CROWDED = RunSpec(
    link=LinkSpec(10.0),
    topology=TopologySpec("fat_tree", {"k": 4}),
    transport=TransportSpec(3, "reno"),
    workload=WorkloadSpec("one_to_one"),
    traffic="native",
    warmup_s=6.0,
    seconds=3.0,
    scheduler=SchedulerSpec("responsive", 200.0, demand_gap=0.1),
)
"""Three subflows at most. A flow alone carries 95.6 % of its link, so those that share a link ask."""
CONTENT = dataclasses.replace(CROWDED, scheduler=dataclasses.replace(CROWDED.scheduler, demand_gap=1.0))
"""A gap that no flow can have: nothing is asked."""


def test_kernel_has_the_subflows_that_the_controller_opened(engine: MininetEngine, tmp_path: Path) -> None:
    """`subflows_joined` is read from the sender's kernel (INET_DIAG). Subflows that were opened within the
    last moments may not have joined yet."""
    result = run_once(engine, CROWDED, tmp_path)
    joined = [flow.subflows_joined for flow in result.flows]
    assert min(joined) >= 1 and max(joined) in {2, 3}
    opened = result.metrics["subflows_opened"]
    assert 0 < sum(joined) - len(joined) <= opened
    assert result.metrics["controller_messages"] > opened


def test_flows_whose_demand_counts_as_met_keep_one_subflow(engine: MininetEngine, tmp_path: Path) -> None:
    result = run_once(engine, CONTENT, tmp_path)
    assert {flow.subflows_joined for flow in result.flows} == {1}
    assert result.metrics["subflow_requests"] == 0
