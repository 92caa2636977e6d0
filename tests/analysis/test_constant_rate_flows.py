"""Flows of constant rate from a RunSpec to rows: exact where nothing is in the way, conserved otherwise."""

from __future__ import annotations

import dataclasses
import statistics

import numpy as np
import pytest

import topos
from common.errors import UsageError
from engines.core_setup.setup import plan_of
from engines.core_setup.stack import core_datagrams, core_flows, transport_options
from engines.emulation.engine import MininetEngine
from engines.simulation.engine import SimulatorEngine
from fabric._core import Datagrams, Simulation
from model.flows import planned_flows
from model.result import UDP, under_test
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec, WorkloadSpec
from tests.support.simulated_networks import result_of

FRAME, PAYLOAD = 1514, 1448
RATE_MBPS = 20.0


def spec(matrix: str = "constant_rate", discipline: str = "fifo", **params: int | str) -> RunSpec:
    return RunSpec(
        LinkSpec(RATE_MBPS, 10.0, discipline=discipline), TopologySpec("fat_tree", {"k": 4}),
        TransportSpec(1), WorkloadSpec(matrix, params), engine="simulator", warmup_s=1.0, seconds=4.0,
    )  # fmt: skip


def test_what_fits_arrives_at_its_rate_and_nothing_is_lost() -> None:
    of = dataclasses.replace(spec(percent=20), topology=TopologySpec("star", {"n": 6}))
    rows = result_of(of).flows
    packets = of.seconds * 0.2 * RATE_MBPS * 1e6 / 8 / FRAME
    assert len(rows) == 6
    for row in rows:
        assert (row.transport, row.subflows_asked, row.cc, row.rate_mbps) == (UDP, 0, "none", 0.2 * RATE_MBPS)
        assert row.lost_pkts == row.retransmits == 0
        assert abs(row.sent_pkts - packets) <= 1
        assert abs(row.bytes_received / PAYLOAD - packets) <= 1
        assert row.goodput_mbps == pytest.approx(0.2 * RATE_MBPS * PAYLOAD / FRAME, rel=1e-3)


def test_a_host_that_sends_twice_what_its_link_carries_loses_half() -> None:
    of = dataclasses.replace(spec(percent=200), topology=TopologySpec("star", {"n": 4}))
    for row in result_of(of).flows:
        assert row.lost_pkts / row.sent_pkts == pytest.approx(0.5, abs=0.002)
        assert row.goodput_mbps == pytest.approx(RATE_MBPS * PAYLOAD / FRAME, rel=1e-3)


@pytest.mark.parametrize("seed", range(1, 4))
def test_what_was_sent_has_arrived_or_is_lost(seed: int) -> None:
    """Account for every packet on overloaded links, once those in flight have arrived."""
    of = dataclasses.replace(spec(percent=80), seed=seed)
    topology = topos.build("fat_tree", {"k": 4})
    flows = planned_flows(of, topology)
    ends = core_datagrams(topology, flows)
    for each in ends:
        each.packets = 500
    simulation = Simulation(
        plan_of(of, topology), transport_options(of), core_flows(of, topology, flows), ends
    )
    simulation.run_until(10**13)
    found, ports = simulation.datagrams(), simulation.ports()
    accounted = found["received_pkts"] + found["lost_pkts"] + found["refused_pkts"]
    assert accounted.tolist() == [500] * 16
    assert found["lost_pkts"].sum() == ports["drops"].sum() > 0
    assert simulation.descriptors_in_use() == 0


def test_two_at_an_overloaded_port_share_it_by_their_rates() -> None:
    """Random drop keeps the arrivals of both flows out of step with the departures."""
    link, star = LinkSpec(RATE_MBPS, 10.0, random_pkts=50), TopologySpec("star", {"n": 4})
    of = dataclasses.replace(spec(percent=10), topology=star, link=link)
    topology = topos.build("star", {"n": 4})
    rates = [round(share * RATE_MBPS * 1e6) for share in (1.0, 0.5)]
    ends = [Datagrams(rate_bps=rate, path=(nic, 3, 5, 5)) for nic, rate in enumerate(rates)]
    simulation = Simulation(plan_of(of, topology), transport_options(of), [], ends)
    simulation.run_until(20 * 10**12)
    received = simulation.datagrams()["received_pkts"].astype(np.int64)
    assert received.sum() == pytest.approx(20 * RATE_MBPS * 1e6 / 8 / FRAME, rel=0.001)
    assert received[0] / received[1] == pytest.approx(2.0, rel=0.02)


def test_beside_tcp_the_first_rows_are_tcp_and_means_are_of_these() -> None:
    rows = result_of(spec("beside_constant_rate", percent=20, senders=50)).flows
    assert [row.transport for row in rows] == ["tcp"] * 16 + [UDP] * 8
    assert list(under_test(rows)) == list(rows[:16])
    assert all(row.goodput_mbps < RATE_MBPS for row in rows)


def test_a_higher_class_loses_nothing_and_leaves_the_rest() -> None:
    """On one switch, where the higher class alone overloads no link."""
    star = TopologySpec("star", {"n": 8})
    urgent = spec("beside_constant_rate", "priority", percent=30, dscp=46)
    rows = result_of(dataclasses.replace(urgent, topology=star)).flows
    constant = [row for row in rows if row.transport == UDP]
    assert constant
    assert sum(row.lost_pkts for row in constant) == 0
    assert all(
        row.goodput_mbps == pytest.approx(0.3 * RATE_MBPS * PAYLOAD / FRAME, rel=1e-2) for row in constant
    )
    rest = RATE_MBPS * PAYLOAD / FRAME * 0.7
    tcp = [row.goodput_mbps for row in under_test(rows)]
    assert 0.85 * rest < statistics.mean(tcp) <= rest * 1.001


def test_short_flows_of_a_higher_class_hardly_notice_the_long_ones() -> None:
    def slowdown(discipline: str, dscp: int) -> float:
        of = spec("short_and_long", discipline, long=50, size=20_000, gap_ms=100, dscp=dscp)
        rows = result_of(dataclasses.replace(of, seconds=3.0)).flows
        sized = [row for row in rows if row.size_bytes and row.start_s >= 0 and row.completed_s > 0]
        return statistics.median(row.completed_s / row.ideal_s for row in sized)

    assert slowdown("priority", 46) < 1.6
    assert slowdown("fifo", 0) > 3


def test_the_emulator_has_no_senders_of_constant_rate() -> None:
    with pytest.raises(UsageError, match="real hosts cannot send at a constant rate yet"):
        MininetEngine().check(dataclasses.replace(spec(), engine="mininet", traffic="native"))


@pytest.mark.parametrize(
    ("of", "complaint"),
    [
        (spec(percent=0), "percent must be from 1 to 1000"),
        (spec(dscp=64), "dscp must be from 0 to 63"),
        (spec("beside_constant_rate", flows="constant_rate"), "has a constant rate itself"),
        (spec("beside_constant_rate", flows="moon"), "unknown workload 'moon'"),
        (spec(discipline="magic"), "queue discipline 'magic': choose fifo or priority"),
    ],
)
def test_what_makes_no_sense_is_named(of: RunSpec, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        SimulatorEngine().check(of)
