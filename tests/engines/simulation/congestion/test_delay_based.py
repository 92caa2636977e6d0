"""Swift and TIMELY in the simulator: the delay that they hold, and how flows share a link."""

from __future__ import annotations

import dataclasses
import statistics

import pytest

from ccp.algorithms import swift
from model.result import RunResult, Status
from model.spec import NoiseSpec, RunSpec, TopologySpec, WorkloadSpec
from tests.engines.simulation.congestion.test_agents import (
    QUEUE_PKTS,
    RATE_MBPS,
    RTT_MS,
    goodput,
    mean_window,
    point,
)
from tests.support.simulated_networks import result_of

BDP_PKTS = RATE_MBPS * RTT_MS * 1000 / 8 / 1514


def pairs(cc: str, n: int) -> RunSpec:
    """n hosts on either side send to n on the other, and these to them."""
    topology = TopologySpec("dumbbell", {"n": n, "access": 10})
    spec = point(cc, topology=topology, workload=WorkloadSpec("stride"))
    return dataclasses.replace(spec, warmup_s=10.0, seconds=20.0)


def mean_srtt_ms(result: RunResult) -> float:
    return float(result.samples["sockets"].columns["srtt_ms"].mean())


def shares(result: RunResult, side: str) -> list[float]:
    """Return what flows from this side have, over their mean."""
    found = [flow.goodput_mbps for flow in result.flows if flow.src.startswith(side)]
    return [each / statistics.mean(found) for each in found]


def test_swifts_target_grows_as_the_window_shrinks() -> None:
    targets = [swift.target_us(cwnd, 1000.0) for cwnd in (1000.0, 100.0, 25.0, 4.0, 1.0, 0.1, 0.01)]
    assert targets[:2] == pytest.approx([1000 * swift.BASE] * 2)
    assert targets[-2:] == pytest.approx([1000 * (swift.BASE + swift.FS_RANGE)] * 2)
    assert targets[1:-1] == sorted(set(targets[1:-1]))
    # Equal steps of 1 / sqrt(cwnd) are equal steps of the target: 0.2 to 0.5, and 0.5 to 0.8.
    at = [swift.target_us(1 / x**2, 1000.0) for x in (0.2, 0.5, 0.8)]
    assert at[1] - at[0] == pytest.approx(at[2] - at[1])


def test_one_flow_of_swift_holds_the_delay_at_the_target() -> None:
    result = result_of(point("ccp:swift"))
    assert result.status is Status.OK
    assert mean_window(result) == pytest.approx(swift.BASE * BDP_PKTS, rel=0.03)
    assert goodput(result) > 0.95 * RATE_MBPS
    assert result.metrics["drops"] == result.metrics["timeouts"] == 0


def test_the_more_flows_the_longer_is_swifts_queue() -> None:
    delays = [mean_srtt_ms(result_of(pairs("ccp:swift", n))) for n in (1, 2, 4)]
    assert RTT_MS < delays[0] < delays[1] < delays[2] < RTT_MS * (swift.BASE + swift.FS_RANGE)


def test_timely_converges_on_one_bottleneck_without_a_loss() -> None:
    result = result_of(point("ccp:timely"))
    assert result.status is Status.OK
    assert goodput(result) > 0.92 * RATE_MBPS
    assert result.metrics["drops"] == result.metrics["timeouts"] == 0
    longest_ms = result.samples["sockets"].columns["srtt_ms"].max()
    assert mean_srtt_ms(result) < 1.4 * RTT_MS
    assert longest_ms < RTT_MS * (1 + 0.8 * QUEUE_PKTS / BDP_PKTS)


def test_delays_of_hosts_are_no_gradient_to_timely() -> None:
    """CPUs that stall add up to half a round trip to some packets. By each report's last delay instead of its
    lowest, the rate fell to a tenth."""
    stalls = NoiseSpec("hosts", every_ms=20.0, least_ms=2.0, most_ms=10.0)
    assert goodput(result_of(point("ccp:timely", noise=stalls))) > 0.6 * RATE_MBPS


@pytest.mark.parametrize("cc", ["ccp:swift", "ccp:timely"])
@pytest.mark.parametrize("side", ["l", "r"])
def test_two_flows_share_a_link_equally(cc: str, side: str) -> None:
    assert shares(result_of(pairs(cc, 2)), side) == pytest.approx([1, 1], abs=0.1)
