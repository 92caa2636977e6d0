"""Controllers between real hosts at k=4: a central scheduler moves TCP flows to links of their own, and
another one gives MPTCP connections a second subflow where their demand is not met.

Slow messages, monitors that are down and demands that are met: tests/controllers/responsive/test_loop.py.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from engines.emulation.engine import MininetEngine
from model.result import RunResult
from model.spec import LinkSpec, RunSpec, SchedulerSpec, TopologySpec, TransportSpec, WorkloadSpec
from tests.support.machine_noise import run_once

pytestmark = [pytest.mark.emulation, pytest.mark.physics]

STRIDE = RunSpec(
    link=LinkSpec(10.0),
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
SOON_S = 2.0
"""Warm-up where nothing may happen: monitors have looked ten times by then."""


def test_kernel_has_the_subflows_that_the_controller_opened(engine: MininetEngine, tmp_path: Path) -> None:
    """`subflows_joined` is read from the sender's kernel (INET_DIAG). Subflows that were opened within the
    last moments may not have joined yet."""
    result = run_once(engine, CROWDED, tmp_path)
    joined = [flow.subflows_joined for flow in result.flows]
    assert min(joined) >= 1 and max(joined) in {2, 3}
    opened = result.metrics["subflows_opened"]
    assert 0 < sum(joined) - len(joined) <= opened
    assert result.metrics["controller_messages"] > opened


def test_open_vswitch_carries_subflows_on_paths_by_rules(engine: MininetEngine, tmp_path: Path) -> None:
    """The controller sets a subflow's path over the control socket, then the kernel opens the subflow. How
    paths are set in each mode: test_ovs.py."""
    openflow = dataclasses.replace(CROWDED.openflow, mode="hybrid")
    result = run_once(
        engine, dataclasses.replace(CROWDED, dataplane="ovs", openflow=openflow, warmup_s=8.0), tmp_path
    )
    joined = [flow.subflows_joined for flow in result.flows]
    assert min(joined) >= 1 and max(joined) in {2, 3}
    assert 0 < sum(joined) - len(joined) <= result.metrics["subflows_opened"]
    assert result.metrics["controller_rules"] >= 5 * result.metrics["subflows_opened"]


def with_options(warmup_s: float = CROWDED.warmup_s, **changes: Any) -> RunSpec:
    scheduler = dataclasses.replace(CROWDED.scheduler, **changes)
    return dataclasses.replace(CROWDED, scheduler=scheduler, warmup_s=warmup_s)


def test_a_controller_that_is_down_throughout_leaves_flows_alone(
    engine: MininetEngine, tmp_path: Path
) -> None:
    """Flows keep their first subflow and go on; the point counts the monitors' messages as unheard."""
    result = run_once(engine, with_options(SOON_S, down_for_s=100.0), tmp_path)
    assert {flow.subflows_joined for flow in result.flows} == {1}
    assert min(flow.goodput_mbps for flow in result.flows) > 0.5
    assert result.metrics["subflows_opened"] == 0
    unheard, sent = (result.metrics[f"controller_messages{end}"] for end in ("_unheard", ""))
    assert 0 < unheard <= sent <= unheard + len(result.flows), "all but what is under way at the end"


def test_a_controller_that_starts_again_opens_no_subflow_twice(engine: MininetEngine, tmp_path: Path) -> None:
    """It is down from 3 to 5 s, and knows nothing then. The kernel never has more than M subflows."""
    result = run_once(engine, with_options(down_at_s=3.0, down_for_s=2.0), tmp_path)
    joined = [flow.subflows_joined for flow in result.flows]
    assert max(joined) <= 3 and sum(joined) > len(joined)
    assert sum(joined) - len(joined) <= result.metrics["subflows_opened"] <= 2 * len(joined)
    assert result.metrics["controller_messages_unheard"] > 0


def test_a_flow_whose_demand_falls_loses_a_subflow_in_the_kernel(
    engine: MininetEngine, tmp_path: Path
) -> None:
    """A second flow begins at each host after 4 s. The kernel's count follows the controller's: some of the
    subflows of first flows are closed, and all flows go on."""
    spec = dataclasses.replace(
        with_options(closes=True),
        workload=WorkloadSpec("joined_permutation", {"after_ms": 4000, "kb": 20_000}),
    )
    result = run_once(engine, spec, tmp_path)
    closed, opened = result.metrics["subflows_closed"], result.metrics["subflows_opened"]
    assert 0 < closed <= opened
    left = opened - closed
    extra = sum(flow.subflows_joined - 1 for flow in result.flows if flow.subflows_joined)
    assert left - 4 <= extra <= left + 4, "but for those under way at the end of the window"
    assert min(flow.goodput_mbps for flow in result.flows) > 0
