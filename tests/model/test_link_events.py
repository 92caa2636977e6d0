"""A simulated link that is cut carries nothing from that instant on; a degraded one carries its share."""

from __future__ import annotations

from dataclasses import replace

import pytest

from common.errors import UsageError
from engines.simulation.engine import SimulatorEngine
from model.result import PortRow
from model.spec import LinkEvent, LinkSpec, RunSpec, TopologySpec, TransportSpec, WorkloadSpec
from tests.support.simulated_networks import result_of

WIRE = 1514 / 1448
"""Bytes on the wire per byte of payload."""
BELL = RunSpec(
    LinkSpec(10.0, 100.0, queue_pkts=30), TopologySpec("dumbbell", {"n": 1, "lanes": 1}),
    TransportSpec(1, "reno"), WorkloadSpec("reference"),
    engine="simulator", warmup_s=1.0, seconds=4.0,
)  # fmt: skip
HOMES = replace(
    BELL,
    topology=TopologySpec("dual_homed_fat_tree", {"k": 4}),
    transport=TransportSpec(2, "lia"),
    warmup_s=2.0,
)


def mbps(spec: RunSpec) -> float:
    (flow,) = result_of(spec).flows
    return flow.goodput_mbps


def port_of(spec: RunSpec) -> PortRow:
    return next(port for port in result_of(spec).ports if (port.node, port.peer) == ("l0", "r0"))


def test_a_cut_stops_tcp_and_a_repair_lets_it_go_on() -> None:
    cut = (LinkEvent(3.0, "l0", "r0"),)
    whole, stopped = mbps(BELL), mbps(replace(BELL, events=cut))
    assert whole == pytest.approx(10 / WIRE, rel=0.01)
    assert stopped == pytest.approx(whole / 2, rel=0.01), "two of four seconds"
    repaired = mbps(replace(BELL, events=(*cut, LinkEvent(3.1, "l0", "r0", 1.0))))
    assert 0.8 * whole < repaired < 0.98 * whole, "a timeout's worth is lost, no more"
    other_order = (LinkEvent(3.1, "r0", "l0", 1.0), *cut)
    assert mbps(replace(BELL, events=other_order)) == repaired


def test_the_cut_happens_at_its_instant() -> None:
    """What crosses the link is what it carries until then, to the packet."""
    for t_s in (2.0, 2.5):
        spec = replace(BELL, warmup_s=1.0, seconds=3.0, events=(LinkEvent(t_s, "l0", "r0"),))
        port = port_of(spec)
        assert port.tx_packets == pytest.approx((t_s - 1.0) * 10e6 / 8 / 1514, abs=1)
        assert port.drops > 0


@pytest.mark.parametrize("share", [0.5, 0.1])
def test_a_degraded_link_carries_its_share(share: float) -> None:
    link = replace(BELL.link, queue_pkts=0)
    degraded = replace(BELL, link=link, events=(LinkEvent(0.0, "l0", "r0", share),))
    assert mbps(degraded) == pytest.approx(share * 10 / WIRE, rel=0.005)
    assert port_of(degraded).tx_packets == pytest.approx(share * 10e6 / 8 / 1514 * 4, abs=1)


def test_mptcp_goes_on_over_the_other_link_of_its_host() -> None:
    cut = (LinkEvent(1.0, "p0e0h0", "p0e0"),)
    assert mbps(HOMES) == pytest.approx(20 / WIRE, rel=0.03)
    assert mbps(replace(HOMES, events=cut)) == pytest.approx(10 / WIRE, rel=0.03)
    assert mbps(replace(HOMES.as_tcp(), events=cut)) == 0.0


@pytest.mark.parametrize(
    ("event", "complaint"),
    [
        (LinkEvent(1.0, "l0", "r9"), "event 1:l0-r9:0: dumbbell has no node called 'r9'"),
        (LinkEvent(1.0, "l0h0", "r0"), "no link between l0h0 and r0"),
        (LinkEvent(5.0, "l0", "r0"), "the run lasts from 0 to 5 s"),
    ],
)
def test_impossible_events_are_refused(event: LinkEvent, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        SimulatorEngine().check(replace(BELL, events=(event,)))
