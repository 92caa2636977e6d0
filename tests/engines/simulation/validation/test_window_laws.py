"""Laws of windows: Reno's sawtooth, Mathis et al.'s square root of the loss rate, fair shares."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from fabric._core import Simulation
from model.flows import PlannedFlow
from model.links import uplink
from model.spec import LinkSpec, TopologySpec
from tests.support import simulated_networks as lab

RATE_MBPS = 10.0
PACKET_PS = lab.transmission_ps(lab.PACKET_BYTES, RATE_MBPS)
PATH_PKTS = 50
ONE_PAIR = TopologySpec("dumbbell", {"n": 2, "lanes": 1})
MIDDLE = 4
"""The dumbbell's link between its switches, after those of its four hosts."""


def long_flows(count: int, cc: str = "reno") -> list[PlannedFlow]:
    network = lab.build(
        lab.spec_of(TopologySpec("dumbbell", {"n": max(count, 2), "lanes": 1}), LinkSpec(1.0))
    )
    return [
        lab.flow(network, i, (f"l0h{i}", f"r0h{i}"), start_ps=i * 37 * lab.MS, cc=cc) for i in range(count)
    ]


def one_saw(sack: bool) -> Simulation:
    """Simulate one flow through a slow port whose queue holds as much as the path."""
    delay_us = PATH_PKTS * PACKET_PS / lab.US / 6
    link = LinkSpec(RATE_MBPS, delay_us, queue_pkts=PATH_PKTS)
    stack = dataclasses.replace(lab.PLAIN, sack=sack, ssthresh=PATH_PKTS)
    return lab.simulate(lab.spec_of(ONE_PAIR, link, stack), long_flows(1), slow_ports=[uplink(MIDDLE)])


@pytest.mark.parametrize("sack", [True, False])
def test_one_flow_follows_the_textbook_sawtooth(sack: bool) -> None:
    """If the queue holds as much as the path, the window swings between that and twice that, and the link is
    never idle. A sawtooth is W / 2 round trips of growing length, 3/8 W^2 packets, and one round trip of W
    for the repair. W is one more than path and queue hold when a packet is dropped, and one more when the
    sender knows."""
    simulation = one_saw(sack)
    windows, drops, sent = [], [], []
    for t_ps in range(10 * lab.S, 60 * lab.S, 10 * lab.MS):
        simulation.run_until(t_ps)
        windows.append(float(simulation.subflows()["window_pkts"][0]))
        ports = simulation.ports()
        drops.append(int(ports["drops"].sum()))
        sent.append(int(ports["tx_packets"][uplink(MIDDLE)]))
    top = 2 * PATH_PKTS + 2
    falls = np.nonzero(np.diff(drops))[0]
    assert max(np.diff(drops)) == 1, "one packet is lost per sawtooth"
    assert len(falls) >= 8
    assert np.diff(np.array(sent)[falls]) == pytest.approx(3 / 8 * top**2 + top, rel=0.005)
    growing = [w for w in windows if w <= top]
    assert max(growing) == pytest.approx(top, abs=0.5)
    assert min(growing) == pytest.approx(top / 2, abs=1.1)
    assert np.mean(growing) == pytest.approx(7 / 9 * top, rel=0.02), "over time; over round trips it is 3/4"
    busy = (sent[-1] - sent[0]) * PACKET_PS / (49.99 * lab.S)
    assert busy == pytest.approx(1, abs=1e-3)


def mathis_constant(loss: float, flows: int, *, sack: bool = True, delayed_ms: float = 0.0) -> float:
    """Return rate x RTT x sqrt(p) of flows that meet only random loss, with p as measured."""
    link = LinkSpec(1000.0, 5000.0, queue_pkts=0, nic_queue_pkts=10_000, loss=loss)
    stack = dataclasses.replace(lab.PLAIN, sack=sack, delayed_ack_ms=delayed_ms)
    topology = TopologySpec("dumbbell", {"n": flows, "lanes": 1})
    simulation = lab.simulate(lab.spec_of(topology, link, stack), long_flows(flows))
    rtt_s = 0.030
    window = math.sqrt(1.5 / loss)
    warmup_s, seconds = 6 * window * rtt_s, 12 * window * rtt_s
    simulation.run_until(round(warmup_s * lab.S))
    opened, lost = simulation.subflows()["acked_pkts"].astype(float), simulation.ports()
    simulation.run_until(round((warmup_s + seconds) * lab.S))
    closed, after = simulation.subflows()["acked_pkts"].astype(float), simulation.ports()
    port = uplink(2 * flows)
    measured_p = float(after["losses"][port] - lost["losses"][port]) / float(
        after["tx_packets"][port] - lost["tx_packets"][port]
    )
    mean_rtt = float(simulation.subflows()["srtt_ps"].mean()) / lab.S
    return float(np.mean(closed - opened)) / seconds * mean_rtt * math.sqrt(measured_p)


def test_rates_follow_the_square_root_of_the_loss() -> None:
    """Mathis et al., CCR 27(3), 1997: C = sqrt(3/2) with one acknowledgement per segment."""
    losses, flows = (1e-4, 1e-3, 1e-2), (12, 16, 24)
    constants = [mathis_constant(loss, n) for loss, n in zip(losses, flows, strict=True)]
    assert constants == pytest.approx([math.sqrt(3 / 2)] * 3, rel=0.15)
    slope = np.polyfit(np.log(losses), np.log(constants) - 0.5 * np.log(losses), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.03)


@pytest.mark.parametrize("sack", [True, False])
def test_growth_is_by_packets_not_by_acknowledgements(sack: bool) -> None:
    """C = sqrt(3/4) with one acknowledgement for two segments holds for stacks that count acknowledgements.
    Ours counts acknowledged packets, as Linux does (RFC 3465), and has sqrt(3/2)."""
    constant = mathis_constant(1e-3, 16, sack=sack, delayed_ms=40.0)
    assert constant == pytest.approx(math.sqrt(3 / 2), rel=0.15)
