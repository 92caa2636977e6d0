"""Settings of simulated hosts that are compared with real ones: sizes on the wire, queues that drop, and
immediate acknowledgements."""

from __future__ import annotations

import dataclasses

import pytest

from fabric._core import Simulation
from fabric.readings import SimulatedCounters
from model.flows import planned_flows
from model.links import downlink, uplink
from model.spec import LINUX, LinkSpec, RunSpec, StackSpec, TopologySpec, TransportSpec, WorkloadSpec
from tests.support import simulated_networks as lab
from tests.support.scenarios.divided_networks import made, run

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
