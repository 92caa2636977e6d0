"""A simulated link that is cut carries nothing from that instant on; a degraded one carries its share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from common.errors import UsageError
from engines.simulation.engine import SimulatorEngine
from model.links import check_reroute
from model.result import PortRow
from model.spec import (
    LinkEvent,
    LinkSpec,
    RunSpec,
    SchedulerSpec,
    StackSpec,
    TopologySpec,
    TransportSpec,
    WorkloadSpec,
)
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
    assert mbps(HOMES.changed({"transport.subflows": 1, "events": cut})) == 0.0


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


SPINES = RunSpec(
    LinkSpec(10.0, 100.0, queue_pkts=0, clock_ppm=0.0),
    TopologySpec("leaf_spine", {"leaves": 2, "spines": 2, "hosts": 2, "speed": 1}),
    TransportSpec(1, "reno"), WorkloadSpec("reference"),
    engine="simulator", routing="spanning-tree", warmup_s=1.0, seconds=5.0,
    events=(LinkEvent(2.0, "l1", "s0"), LinkEvent(4.0, "l1", "s0", 1.0)),
)  # fmt: skip
"""All packets pass spine 0, unless routing leaves it out."""


def packets_over(spec: RunSpec) -> dict[str, int]:
    """Return the packets that each spine has sent."""
    ports = result_of(spec).ports
    return {spine: sum(port.tx_packets for port in ports if port.node == spine) for spine in ("s0", "s1")}


@pytest.mark.parametrize("delay_ms", [0.001, 50.0, 300.0])
def test_packets_of_constant_rate_are_lost_for_the_delay_and_then_none(delay_ms: float) -> None:
    spec = replace(
        SPINES, workload=WorkloadSpec("constant_rate", {"percent": 40}), reroute_ms=delay_ms, seed=2
    )
    per_s = 4e6 / (1514 * 8)
    rerouted, not_rerouted = result_of(spec), result_of(replace(spec, reroute_ms=0.0))
    over = [flow.src[:2] != flow.dst[:2] for flow in rerouted.flows]
    assert any(over)
    for flow, other, passes in zip(rerouted.flows, not_rerouted.flows, over, strict=True):
        assert flow.lost_pkts == pytest.approx(passes * delay_ms / 1000 * per_s, abs=3)
        assert other.lost_pkts == pytest.approx(passes * 2 * per_s, abs=3)
    assert packets_over(spec)["s1"] == pytest.approx(sum(over) * 2 * per_s, abs=6), "for two seconds"


def test_tcp_goes_on_over_another_spine() -> None:
    whole, stopped = mbps(replace(SPINES, events=())), mbps(replace(SPINES, events=SPINES.events[:1]))
    assert stopped == pytest.approx(whole / 5, rel=0.01)
    rerouted = mbps(replace(SPINES, reroute_ms=50.0))
    assert 0.85 * whole < rerouted < 0.98 * whole, "a timeout's worth is lost, no more"


@pytest.mark.parametrize("routing", ["hashed", "scatter"])
def test_ndp_goes_on_over_another_spine(routing: str) -> None:
    spec = replace(
        SPINES,
        link=replace(SPINES.link, discipline="trim"),
        transport=TransportSpec(protocol="ndp:window_pkts=20"),
        routing=routing,
    )
    rerouted = replace(spec, reroute_ms=50.0)
    assert mbps(rerouted) > 0.9 * mbps(replace(spec, events=()))
    over = packets_over(rerouted)
    assert over["s1"] > 1.2 * over["s0"] > 0


def test_mptcp_keeps_a_path_that_no_other_replaces() -> None:
    """Where routing has no path left, subflows keep theirs, and go on when the link is back."""
    cut = (*SPINES.events, LinkEvent(2.0, "l1", "s1"), LinkEvent(4.0, "l1", "s1", 1.0))
    for routing in ("spanning-tree", "scatter", "letflow"):
        goodput = mbps(
            replace(SPINES, routing=routing, transport=TransportSpec(2, "lia"), events=cut, reroute_ms=50.0)
        )
        assert 0.3 * 10 < goodput < 0.6 * 10 / WIRE


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"events": ()}, "--reroute 50: no link of this run fails"),
        (
            {
                "topology": TopologySpec("bcube", {"n": 4, "k": 1}), "routing": "hashed",
                "events": (LinkEvent(2.0, "h0", "b0"),),
            },
            "hosts of bcube forward",
        ),
        ({"stack": StackSpec(replacement=False), "routing": "hashed"}, "replacement=off chooses the paths"),
        ({"scheduler": SchedulerSpec("responsive", 100)}, "the scheduler responsive chooses paths"),
    ],
)  # fmt: skip
def test_rerouting_where_routing_chooses_no_path_is_refused(asked: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        check_reroute(replace(SPINES, reroute_ms=50.0, **asked), replace(SPINES, **asked).network())


def test_points_without_rerouting_keep_their_names() -> None:
    assert "reroute" not in SPINES.canonical()
    assert replace(SPINES, reroute_ms=50.0).content_hash() != SPINES.content_hash()
    rerouted = replace(SPINES, reroute_ms=50.0)
    assert RunSpec.from_json(rerouted.to_json()) == rerouted
    stored = SPINES.to_json()
    del stored["reroute_ms"]
    assert RunSpec.from_json(stored) == SPINES
