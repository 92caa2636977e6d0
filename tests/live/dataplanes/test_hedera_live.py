"""A central scheduler leads real TCP flows at k=4: each ends on links of its own, and all get more."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from engines.emulation.engine import MininetEngine
from model.result import RunResult
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

RATE_MBPS = 10.0
STRIDE = RunSpec(
    link=LinkSpec(RATE_MBPS),
    topology=TopologySpec("fat_tree", {"k": 4}),
    transport=TransportSpec(1),
    workload=WorkloadSpec("stride", {"i": 4}),
    traffic="native",
    warmup_s=4.0,
    seconds=4.0,
)
FIRST_FIT = dataclasses.replace(STRIDE, scheduler=SchedulerSpec("first_fit", 200))


def mean_mbps(result: RunResult) -> float:
    return sum(flow.goodput_mbps for flow in result.flows) / len(result.flows)


def used(result: RunResult) -> int:
    """Return the number of links between switches that carry data. The acknowledgements of a flow at full
    rate take only a fortieth of a link."""
    return sum(port.utilisation_pct > 20 for port in result.ports if "host" not in port.layer)


def test_first_fit_gives_flows_of_a_stride_links_of_their_own(engine: MininetEngine, tmp_path: Path) -> None:
    """16 flows cross the core by four hops each, and there are 64 between switches: all are used, unless
    the last flow to be seen finds no free path."""
    hashed, led = run_once(engine, STRIDE, tmp_path), run_once(engine, FIRST_FIT, tmp_path)
    assert led.metrics["scheduler_moves"] >= 1 and led.metrics["scheduler_ticks"] >= 5
    assert "scheduler_ticks" not in hashed.metrics
    assert led.metrics["scheduler_looks"] >= 5
    assert used(led) >= 60 > used(hashed), (hashed.reasons, led.reasons)
    assert mean_mbps(led) > 1.1 * mean_mbps(hashed), (hashed.reasons, led.reasons)
