"""The simulated socket beside Linux: its stack's settings, and its clock."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from fabric._core import Simulation
from fabric.readings import SimulatedCounters
from model.flows import planned_flows
from model.links import downlink, uplink
from model.spec import LINUX, LinkSpec, RunSpec, StackSpec, TopologySpec, TransportSpec, WorkloadSpec
from tests.support import simulated_networks as lab
from tests.support.scenarios.divided_networks import made, run
from tests.support.simulated_hosts import (
    ACK_PS,
    MS,
    PACKET_PS,
    PAYLOAD,
    TWO_PATHS,
    S,
    network,
    stack,
    tcp,
    with_rate,
)

BURST_PKTS = 46
"""Packets that may have arrived on one subflow while another is in the middle of its 64 kB."""
ONE_FLOW = WorkloadSpec("reference")


def simulate(spec: RunSpec, seconds: float = 2.0) -> tuple[Simulation, SimulatedCounters]:
    simulation = run(made(spec), seconds)
    return simulation, simulation.ports()


def star(subflows: int, stack: StackSpec, nic_queue_pkts: int = 100) -> RunSpec:
    link, network = LinkSpec(10.0, nic_queue_pkts=nic_queue_pkts), TopologySpec("star", {"n": 2})
    return RunSpec(link, network, TransportSpec(subflows), ONE_FLOW, engine="simulator", stack=stack)


@pytest.mark.parametrize(("subflows", "payload", "ack"), [(1, 1448, 66), (2, 1424, 78)])
def test_frames_have_the_sizes_captured_on_linux(subflows: int, payload: int, ack: int) -> None:
    simulation, ports = simulate(star(subflows, dataclasses.replace(LINUX, nic_waits=True)))
    arrived, answered = downlink(1), uplink(1)
    packets = int(ports["tx_packets"][arrived])
    assert int(ports["tx_bytes"][arrived]) == 1514 * packets
    assert int(ports["tx_bytes"][answered]) == ack * int(ports["tx_packets"][answered])
    delivered = int(simulation.flows()["delivered_bytes"][0])
    assert delivered % payload == 0
    assert payload * (packets - BURST_PKTS) <= delivered <= payload * packets


def test_a_sized_flow_over_mptcp_is_delivered_to_the_byte() -> None:
    spec = star(2, dataclasses.replace(LINUX, nic_waits=True))
    (flow,) = planned_flows(spec, lab.build(spec))
    simulation = lab.simulate(spec, [dataclasses.replace(flow, size_bytes=100_001)])
    simulation.run_until(lab.S)
    assert int(simulation.flows()["delivered_bytes"][0]) == 100_001
    assert int(simulation.ports()["tx_packets"][downlink(1)]) == -(-100_001 // 1424)


def test_a_hosts_queue_drops_unless_senders_wait_for_room() -> None:
    for waits in (True, False):
        stack = dataclasses.replace(LINUX, nic_waits=waits)
        simulation, ports = simulate(star(1, stack, nic_queue_pkts=20))
        assert (int(ports["dropped"]) > 0) is not waits
        assert int(ports["max_queue_pkts"][uplink(0)]) <= 20
        assert (int(simulation.subflows()["retransmits"].sum()) > 0) is not waits


def answers_a_packet(spec: RunSpec) -> float:
    """Return the acknowledgements sent per data packet sent."""
    simulation, ports = simulate(spec, seconds=4.0)
    readings = simulation.subflows()
    data = sum(int(readings[name].sum()) for name in ("acked_pkts", "unacked_pkts", "retransmits"))
    return (int(ports["injected"]) - data) / data


def test_data_beyond_a_gap_is_acknowledged_at_once() -> None:
    """Eight subflows over unequal paths leave gaps most of the time, one TCP flow alone leaves none."""
    network = TopologySpec("fat_tree", {"k": 4})
    mptcp = RunSpec(LinkSpec(20.0), network, TransportSpec(8), engine="simulator", stack=LINUX)
    delayed = dataclasses.replace(mptcp, stack=dataclasses.replace(LINUX, ack_gaps=False))
    assert answers_a_packet(mptcp) > 0.85
    assert answers_a_packet(delayed) < 0.75
    alone = dataclasses.replace(mptcp, transport=TransportSpec(), workload=ONE_FLOW)
    assert answers_a_packet(alone) == pytest.approx(0.5, abs=0.05)


DELAY_PS = 20 * MS
ROUND_TRIP_PS = 2 * PACKET_PS + 2 * ACK_PS + 4 * DELAY_PS
"""Of a packet over two links and its acknowledgement, alone."""


def values_at(simulation: Simulation, name: str, at_ps: int) -> list[int]:
    simulation.run_until(at_ps)
    column = simulation.subflows()[name]  # type: ignore[literal-required]
    return [int(value) for value in column]


def test_busy_from_the_first_segment_to_the_last_acknowledgement() -> None:
    simulation = Simulation(network(), stack(receive_buffer=5000), [tcp(pkts=5, start_ps=7 * MS)])
    took_ps = 6 * PACKET_PS + 2 * ACK_PS
    assert values_at(simulation, "busy_ps", 5 * MS) == [0]
    assert values_at(simulation, "busy_ps", 7 * MS + 1000) == [1000]
    assert values_at(simulation, "busy_ps", 7 * MS + took_ps - 1) == [took_ps - 1]
    assert values_at(simulation, "busy_ps", 3 * S) == [took_ps]
    assert values_at(simulation, "rwnd_limited_ps", 3 * S) == [0]


def test_what_the_window_leaves_of_a_file_is_not_sent() -> None:
    simulation = Simulation(network(delay_ps=DELAY_PS), stack(initial_window=2.0), [tcp(pkts=5)])
    assert values_at(simulation, "notsent_bytes", 0) == [3 * PAYLOAD]
    assert values_at(simulation, "notsent_bytes", ROUND_TRIP_PS - 1) == [3 * PAYLOAD]
    assert values_at(simulation, "notsent_bytes", ROUND_TRIP_PS) == [1 * PAYLOAD]  # two more for the first
    assert values_at(simulation, "notsent_bytes", ROUND_TRIP_PS + PACKET_PS) == [0]
    assert values_at(simulation, "busy_ps", 10 * S) == [2 * ROUND_TRIP_PS + 2 * PACKET_PS]


def test_a_send_buffer_is_full_of_what_is_sent_and_what_is_not() -> None:
    plan = network(delay_ps=DELAY_PS)
    simulation = Simulation(plan, stack(initial_window=2.0, send_buffer=30), [tcp()])
    assert values_at(simulation, "notsent_bytes", 0) == [28 * PAYLOAD]
    assert values_at(simulation, "notsent_bytes", ROUND_TRIP_PS) == [27 * PAYLOAD]  # one gone, two sent
    assert values_at(simulation, "busy_ps", 5 * S) == [5 * S]


def test_limited_by_the_receiver_from_when_the_own_window_has_room() -> None:
    # 4 places: the third acknowledgement, of what left a round trip after the start, opens the window to 5.
    options = stack(initial_window=2.0, receive_buffer=4)
    simulation = Simulation(network(delay_ps=DELAY_PS), options, [tcp()])
    assert values_at(simulation, "rwnd_limited_ps", 2 * ROUND_TRIP_PS) == [0]
    assert values_at(simulation, "rwnd_limited_ps", 2 * ROUND_TRIP_PS + MS) == [MS]
    assert values_at(simulation, "rwnd_limited_ps", 9 * S) == [9 * S - 2 * ROUND_TRIP_PS]
    assert values_at(simulation, "busy_ps", 9 * S) == [9 * S]


def test_of_two_subflows_the_one_without_data_is_idle() -> None:
    simulation = Simulation(network(4), stack(), [tcp(TWO_PATHS, pkts=1)])
    busy = values_at(simulation, "busy_ps", S)
    assert sorted(busy) == [0, 2 * PACKET_PS + 2 * ACK_PS]
    assert values_at(simulation, "notsent_bytes", S) == [0, 0]


@pytest.mark.parametrize("scheduler", ["min_rtt", "round_robin", "burst"])
def test_what_is_busy_holds_something(scheduler: str) -> None:
    """At any instant a subflow has unsent or unacknowledged data and its busy clock runs, or neither."""
    plan = with_rate(network(4, delay_ps=MS), {1: 400_000, 3: 400_000})
    options = stack(scheduler=scheduler, send_buffer=60)
    simulation = Simulation(plan, options, [tcp(TWO_PATHS, pkts=300)])
    found_idle, before, held = 0, np.zeros(2, np.int64), np.zeros(2, bool)
    for step in range(1, 3000):
        simulation.run_until(step * 2 * MS)
        now = simulation.subflows()
        if int(simulation.flows()["completed_ps"][0]) < 60 * S:
            break
        grown = now["busy_ps"] - before
        assert ((grown >= 0) & (grown <= 2 * MS)).all()
        holds = (now["notsent_bytes"] > 0) | (now["unacked_pkts"] > 0)
        assert (grown[held] > 0).all()
        found_idle += int((grown < 2 * MS).sum())
        before, held = now["busy_ps"], holds
        if scheduler != "burst":
            assert not now["notsent_bytes"].any()
    else:
        pytest.fail("300 segments take less than 6 s")
    simulation.run_until(60 * S)
    last = simulation.subflows()
    assert int(simulation.flows()["delivered_bytes"][0]) == 300 * PAYLOAD
    assert not last["notsent_bytes"].any()
    assert (last["busy_ps"] < 60 * S).all()
    assert found_idle > 0


def test_bound_data_waits_in_its_own_subflows_socket() -> None:
    plan = with_rate(network(4, delay_ps=MS), {1: 100_000, 3: 100_000})
    plan = dataclasses.replace(plan, max_packets=1 << 12)
    simulation = Simulation(plan, stack(scheduler="burst", send_buffer=200), [tcp(TWO_PATHS)])
    simulation.run_until(2 * S)
    found = simulation.subflows()
    unsent, unacked = found["notsent_bytes"].astype(int), found["unacked_pkts"].astype(int)
    assert unsent[1] > 0 and (unsent % PAYLOAD == 0).all()
    assert unsent.sum() // PAYLOAD + unacked.sum() <= 200
