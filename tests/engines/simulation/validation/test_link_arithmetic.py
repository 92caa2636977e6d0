"""Links and queues by arithmetic: a link is filled to the byte, times are exact to the picosecond, and no
packet appears or vanishes."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from fabric._core import Simulation
from model.links import downlink, uplink
from model.spec import LinkSpec, TopologySpec
from tests.support import simulated_networks as lab

STAR = TopologySpec("star", {"n": 2})
THREE = TopologySpec("star", {"n": 3})
RATE_MBPS = 100.0
DELAY_US = 50.0
DATA_PS = lab.transmission_ps(lab.PACKET_BYTES, RATE_MBPS)
ACK_PS = lab.transmission_ps(lab.ACK_BYTES, RATE_MBPS)
DELAY_PS = round(DELAY_US * lab.US)
HOPS = 2
EMPTY_RTT_PS = HOPS * (DATA_PS + DELAY_PS) + HOPS * (ACK_PS + DELAY_PS)
LINK = LinkSpec(RATE_MBPS, DELAY_US, queue_pkts=200, clock_ppm=0.0)


def completed_ps(simulation: Simulation) -> list[int]:
    return [int(at) for at in simulation.flows()["completed_ps"]]


def between_two(size_pkts: int, stack: dict[str, object]) -> Simulation:
    spec = lab.spec_of(STAR, LINK, dataclasses.replace(lab.PLAIN, **stack))  # type: ignore[arg-type]
    return lab.simulate(spec, [lab.flow(lab.build(spec), 0, ("s1h0", "s1h1"), size_pkts=size_pkts)])


def test_a_flow_fills_its_link_to_the_byte() -> None:
    simulation = between_two(0, {})
    last_link = downlink(1)
    simulation.run_until(100 * lab.MS)
    opened, opened_ports = simulation.flows()["delivered_bytes"][0], simulation.ports()["tx_bytes"][last_link]
    simulation.run_until(100 * lab.MS + 5000 * DATA_PS)
    closed, closed_ports = simulation.flows()["delivered_bytes"][0], simulation.ports()["tx_bytes"][last_link]
    assert closed - opened == 5000 * lab.PLAIN.payload_bytes
    assert closed_ports - opened_ports == 5000 * lab.PACKET_BYTES
    assert simulation.ports()["dropped"] == 0


@pytest.mark.parametrize("segments", [1, 2, 10])
def test_a_burst_takes_its_transmissions_and_delays(segments: int) -> None:
    simulation = between_two(segments, {"initial_window": 10})
    simulation.run_until(lab.S)
    assert completed_ps(simulation) == [HOPS * (DATA_PS + DELAY_PS) + (segments - 1) * DATA_PS]


@pytest.mark.parametrize("segments", [2, 7])
def test_with_one_packet_in_flight_each_takes_an_empty_round_trip(segments: int) -> None:
    simulation = between_two(segments, {"receive_buffer": 1})
    simulation.run_until(lab.S)
    one_way = HOPS * (DATA_PS + DELAY_PS)
    assert completed_ps(simulation) == [(segments - 1) * EMPTY_RTT_PS + one_way]
    assert int(simulation.subflows()["srtt_ps"][0]) == EMPTY_RTT_PS


@pytest.mark.parametrize("window", [10, 25, 60])
def test_packets_beyond_the_path_wait_in_a_queue_and_nowhere_else(window: int) -> None:
    """A window of W packets takes W packet times or an empty round trip, whichever is longer."""
    simulation = between_two(0, {"receive_buffer": window})
    simulation.run_until(100 * lab.MS)
    before = simulation.flows()["delivered_bytes"][0]
    round_trip = max(window * DATA_PS, EMPTY_RTT_PS)
    simulation.run_until(100 * lab.MS + 20 * round_trip)
    assert simulation.flows()["delivered_bytes"][0] - before == 20 * window * lab.PLAIN.payload_bytes
    # The mean is held in whole picoseconds and moves by eighths: it ends at most 7 ps off.
    assert round_trip - 8 < int(simulation.subflows()["srtt_ps"][0]) < round_trip + 8


def test_what_stands_in_a_queue_is_waited_for_to_the_picosecond() -> None:
    """Two hosts send bursts to a third at once: they arrive in pairs and leave one by one. One more packet
    finds just what has not left."""
    spec = lab.spec_of(
        TopologySpec("star", {"n": 4}), LINK, dataclasses.replace(lab.PLAIN, initial_window=20)
    )
    network = lab.build(spec)
    probe_starts = 20 * DATA_PS
    flows = [
        lab.flow(network, 0, ("s1h0", "s1h3"), size_pkts=20),
        lab.flow(network, 1, ("s1h1", "s1h3"), size_pkts=20),
        lab.flow(network, 2, ("s1h2", "s1h3"), size_pkts=1, start_ps=probe_starts),
    ]
    simulation = lab.simulate(spec, flows)
    simulation.run_until(lab.S)
    found = 40 - 20
    empty_way = HOPS * (DATA_PS + DELAY_PS)
    assert completed_ps(simulation)[2] - probe_starts == empty_way + found * DATA_PS
    assert simulation.ports()["max_queue_pkts"][downlink(3)] == 21


@pytest.mark.parametrize("sack", [True, False])
@pytest.mark.parametrize("random_pkts", [0, 5])
def test_no_packet_appears_or_vanishes(sack: bool, random_pkts: int) -> None:
    """Two flows with a long tail of losses: what was sent has arrived or was dropped, nothing twice."""
    link = dataclasses.replace(LINK, queue_pkts=15, random_pkts=random_pkts)
    spec = lab.spec_of(THREE, link, dataclasses.replace(lab.PLAIN, sack=sack))
    network = lab.build(spec)
    sizes = (3000, 2000)
    flows = [lab.flow(network, i, (f"s1h{i}", "s1h2"), size_pkts=size) for i, size in enumerate(sizes)]
    simulation = lab.simulate(spec, flows)
    simulation.run_until(60 * lab.S)
    ports, subflows = simulation.ports(), simulation.subflows()
    assert ports["injected"] == ports["delivered"] + ports["dropped"]
    assert ports["dropped"] == int(ports["drops"].sum()) > 0
    assert list(simulation.flows()["delivered_bytes"]) == [n * lab.PLAIN.payload_bytes for n in sizes]
    sent = ports["tx_packets"][[uplink(0), uplink(1)]]
    assert list(sent) == [n + int(again) for n, again in zip(sizes, subflows["retransmits"], strict=True)]
    acks = ports["injected"] - int(sent.sum())
    assert acks == int(sent.sum()) - ports["dropped"], "every segment that arrived was answered"
    assert not np.any(ports["queued_pkts"])


def test_what_a_link_loses_at_random_was_sent_and_did_not_arrive() -> None:
    link = LinkSpec(RATE_MBPS, DELAY_US, loss=0.01)
    spec = lab.spec_of(TopologySpec("dumbbell", {"n": 2, "lanes": 1}), link)
    flows = [lab.flow(lab.build(spec), 0, ("l0h0", "r0h0"), size_pkts=5000)]
    simulation = lab.simulate(spec, flows)
    simulation.run_until(60 * lab.S)
    ports = simulation.ports()
    assert ports["lost"] == int(ports["losses"].sum()) > 0
    assert ports["injected"] == ports["delivered"] + ports["dropped"] + ports["lost"]
    assert int(simulation.flows()["delivered_bytes"][0]) == 5000 * lab.PLAIN.payload_bytes
