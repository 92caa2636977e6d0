"""Metrics of robustness: losses by layer, and goodput while links are down."""

from __future__ import annotations

import dataclasses
import functools

import pytest

from analysis import robustness
from harness.plan.sweeps import core_failure
from model.links import events_words, outage
from model.result import FlowRow, PortRow, RunResult, Table
from model.spec import LinkEvent, LinkSpec, RunSpec, TopologySpec, TransportSpec, WorkloadSpec
from tests.support.simulated_networks import result_of

TREE = TopologySpec("fat_tree", {"k": 4})
DOWN = (2.0, 4.0)


def port(layer: str, sent: int, drops: int) -> PortRow:
    return PortRow(0, "a", "b", layer, sent, 1500 * sent, drops, 100, 50.0)


def flow(received: int, retransmits: int) -> FlowRow:
    return FlowRow(0, "", "", "", "", 1, 2, "tcp", 1, 1, "reno", 1.0, received, retransmits, 0.0)


def two_flows() -> Table:
    """Return samples of a flow that stalls from 2 to 4 s and of one that gets faster, with a warm-up."""
    rates = {-1.0: (99, 99), 1.0: (4, 6), 2.0: (6, 4), 3.0: (0, 8), 4.0: (0, 8), 5.0: (5, 5)}
    rows = [(t_s, number, mbps) for t_s, both in rates.items() for number, mbps in enumerate(both)]
    return Table.from_rows(("t_s", "flow", "mbps"), rows)


def test_losses_are_reported_by_layer() -> None:
    rows = [("edge-agg", 90, 10), ("core-agg", 100, 0), ("edge-host", 99, 1), ("host-edge", 9, 9)]
    ports = [port(*row) for row in rows]
    assert robustness.core_lost_pct(ports) == pytest.approx(5)
    assert robustness.access_lost_pct(ports) == pytest.approx(1), (
        "drops in hosts' own queues are not losses of the network"
    )
    assert robustness.core_lost_pct(ports[2:]) is None


def test_retransmissions_are_a_percentage_of_delivered_segments() -> None:
    assert robustness.retransmitted_pct([flow(144_800, 1), flow(144_800, 0)]) == pytest.approx(0.5)
    assert robustness.retransmitted_pct([flow(0, 3)]) is None


def test_kept_goodput_is_a_percentage_of_goodput_before() -> None:
    goodput = two_flows()
    times, mbps = robustness.in_all(goodput)
    assert times.tolist() == [1, 2, 3, 4, 5] and mbps.tolist() == [10, 10, 8, 8, 10]
    assert robustness.kept_pct(goodput, DOWN) == pytest.approx(80)
    assert robustness.while_down_mbps(goodput, DOWN) == [0, 8]
    assert robustness.stalled_pct(goodput, DOWN, 10.0) == 50
    assert robustness.kept_pct(goodput, (0.0, 1.0)) is None, "there is no sample before"
    assert robustness.while_down_mbps(goodput, (7.0, 8.0)) == []


def test_clocks_that_are_late_by_milliseconds_change_nothing() -> None:
    goodput = two_flows()
    late = Table({**goodput.columns, "t_s": goodput["t_s"] + 0.004})
    assert robustness.kept_pct(late, DOWN) == pytest.approx(80)
    assert robustness.while_down_mbps(late, DOWN) == [0, 8]


def test_an_outage_lasts_from_the_first_cut_until_all_is_as_before() -> None:
    spec = RunSpec(LinkSpec(10.0), warmup_s=2.0, events=core_failure(TREE, 6.0, 8.0))
    assert outage(spec) == (4.0, 6.0)
    assert outage(dataclasses.replace(spec, events=spec.events[:-1])) is None, "one link stays down"
    slower = (LinkEvent(3.0, "p0a0", "c0", 0.5),)
    assert outage(dataclasses.replace(spec, events=slower)) is None


def test_many_events_have_short_texts_that_differ() -> None:
    many, later = core_failure(TREE, 6.0, 8.0), core_failure(TREE, 6.0, 8.0)[::-1]
    assert len(events_words(many)) < 50
    assert len({events_words(events) for events in (many, later, many[:1], many[1:])}) == 4


@functools.cache
def failing(subflows: int) -> tuple[RunSpec, RunResult]:
    spec = RunSpec(
        LinkSpec(20.0, 10.0), TREE, TransportSpec(subflows, "lia"), WorkloadSpec("stride"),
        engine="simulator", warmup_s=1.0, seconds=6.0, events=core_failure(TREE, 3.0, 5.0),
    )  # fmt: skip
    return spec, result_of(spec)


def test_a_failing_core_stops_tcp_flows_and_no_mptcp_flow() -> None:
    """All flows cross the core. That all of 8 subflows are cut has probability (7/16)^8."""
    stalled = {}
    for subflows in (1, 8):
        spec, result = failing(subflows)
        down = outage(spec)
        assert down == (2.0, 4.0)
        stalled[subflows] = robustness.stalled_pct(result.samples["goodput"], down, 20.0)
        kept = robustness.kept_pct(result.samples["goodput"], down)
        assert kept is not None and 20 < kept < 100
    assert stalled[8] == 0
    assert stalled[1] is not None and stalled[1] > 15


def test_nothing_crosses_a_failed_core_switch() -> None:
    """In 6 s its ports send no more than fits into the 4 s in which they are up."""
    spec, result = failing(8)
    of_core = [p.tx_bytes for p in result.ports if "c0" in (p.node, p.peer)]
    assert max(of_core) <= 20e6 / 8 * 4 + 1514
    assert spec.events[0].a and max(p.tx_bytes for p in result.ports if p.node == "c1") > max(of_core)
