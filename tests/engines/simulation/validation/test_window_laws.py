"""Laws of windows: the square root of the loss, fair shares, the worse path, and recovery."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from analysis.shares import bottleneck_share, congested_share, congested_shares_pct
from engines.registry import SIMULATOR
from fabric._core import Simulation
from model.flows import PlannedFlow
from model.links import uplink
from model.spec import LinkSpec, RunSpec, StackSpec, TopologySpec, TransportSpec, WorkloadSpec
from tests.support import simulated_networks as lab
from tests.support.simulated_networks import result_of

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


LANES = 8


def delivered(simulation: Simulation, warmup_ps: int, ends_ps: int) -> list[float]:
    simulation.run_until(warmup_ps)
    opened = simulation.flows()["delivered_bytes"].astype(float)
    simulation.run_until(ends_ps)
    return list(simulation.flows()["delivered_bytes"].astype(float) - opened)


@pytest.mark.parametrize("flows", [2, 8, 16])
def test_equal_flows_share_a_link_fairly(flows: int) -> None:
    """Jain's index above 0.95 with random drop near full, which keeps flows from losing in step."""
    topology = TopologySpec("dumbbell", {"n": flows, "lanes": 1})
    spec = lab.spec_of(topology, LinkSpec(100.0, 500.0, queue_pkts=100, random_pkts=30))
    network = lab.build(spec)
    rng = np.random.default_rng(1)
    starts = rng.integers(0, 500 * lab.MS, flows).tolist()
    sent = [lab.flow(network, i, (f"l0h{i}", f"r0h{i}"), start_ps=start) for i, start in enumerate(starts)]
    got = delivered(lab.simulate(spec, sent), 5 * lab.S, 35 * lab.S)
    capacity = 100e6 / 8 * 30 * lab.PLAIN.payload_bytes / lab.PACKET_BYTES
    assert sum(got) == pytest.approx(capacity, rel=1e-3)
    assert sum(got) ** 2 / (flows * sum(x * x for x in got)) > 0.95


def share(cc: str, subflows: int, loss: float = 0.001) -> float:
    """Return the share of one MPTCP flow beside one TCP, both with the same random loss, over replicas."""
    topology = TopologySpec("dumbbell", {"n": 2, "lanes": LANES})
    stack = dataclasses.replace(lab.PLAIN, reinject=False)
    spec = lab.spec_of(
        topology, LinkSpec(100.0, 5000.0, queue_pkts=2000, nic_queue_pkts=2000, loss=loss), stack
    )
    network = lab.build(spec)
    sent = [
        lab.flow(network, 2 * lane + i, (f"l{lane}h{i}", f"r{lane}h{i}"), subflows=n, cc=name)
        for lane in range(LANES)
        for i, (n, name) in enumerate(((subflows, cc), (1, "reno")))
    ]
    got = np.array(delivered(lab.simulate(spec, sent), 4 * lab.S, 34 * lab.S)).reshape(LANES, 2)
    return float(np.mean(got[:, 0] / got.sum(axis=1)))


@pytest.mark.parametrize("subflows", [2, 4])
def test_uncoupled_subflows_take_a_share_each(subflows: int) -> None:
    assert share("reno", subflows) == pytest.approx(bottleneck_share("reno", subflows), abs=0.03)


@pytest.mark.parametrize(("subflows", "fluctuating"), [(2, 0.523), (4, 0.548), (8, 0.572)])
def test_lia_takes_what_one_tcp_takes(subflows: int, fluctuating: float) -> None:
    """A half if windows stood still. LIA grows by the largest window, which exceeds the mean because windows
    oscillate: `fluctuating` is what benchmarks/window_model.py gives at this loss rate."""
    got = share("lia", subflows)
    assert got == pytest.approx(fluctuating, abs=0.03)


PAIRS = 24


def on_worse_path_pct(stack: StackSpec) -> float:
    """Return LIA's share of traffic on the worse of two paths as in coupled-shift, mean over replicas."""
    spec = RunSpec(
        LinkSpec(10.0, 5000.0, queue_pkts=100, random_pkts=5),
        TopologySpec("two_bottlenecks", {"first": 3, "second": 1, "lanes": PAIRS}),
        workload=WorkloadSpec("against_tcp"),
        transport=TransportSpec(2, "lia"),
        engine=SIMULATOR,
        stack=dataclasses.replace(stack, recovery="linux", start_spread_ms=1000.0),
        warmup_s=30.0,
        seconds=40.0,
    )
    return float(np.mean(congested_shares_pct(result_of(spec).ports)))


def test_every_second_packet_acknowledged_gives_the_formulas_share_on_the_worse_path() -> None:
    theory = 100 * congested_share("lia", 3, 1)
    assert on_worse_path_pct(StackSpec()) == pytest.approx(theory, abs=4)


def test_acknowledged_packet_by_packet_lia_leaves_the_worse_path_further() -> None:
    """Single packets meet a full queue one by one, where a pair is lost together and cuts its window once."""
    assert on_worse_path_pct(StackSpec(ack_gaps=True)) < 0.8 * on_worse_path_pct(StackSpec())


@pytest.mark.parametrize("sack", [True, False])
def test_many_flows_at_a_small_queue_send_little_in_vain(sack: bool) -> None:
    """Acknowledgements that close long gaps must not open windows by all they cover: without SACK each
    timeout would end in a burst that overflows the queue, and in the next timeout."""
    topology = TopologySpec("dumbbell", {"n": 16, "lanes": 1})
    link = LinkSpec(100.0, 10.0, queue_pkts=100, random_pkts=3)
    spec = lab.spec_of(topology, link, dataclasses.replace(lab.PLAIN, sack=sack, ssthresh=100))
    network = lab.build(spec)
    flows = [lab.flow(network, i, (f"l0h{i}", f"r0h{i}"), start_ps=i * lab.MS) for i in range(16)]
    simulation = lab.simulate(spec, flows)
    simulation.run_until(20 * lab.S)
    ports, subflows = simulation.ports(), simulation.subflows()
    retransmitted, dropped = int(subflows["retransmits"].sum()), ports["dropped"]
    assert dropped < 0.03 * ports["injected"]
    assert retransmitted < (1.1 if sack else 2.0) * dropped
    delivered = float(simulation.flows()["delivered_bytes"].sum())
    assert delivered > 0.97 * 20 * 100e6 / 8 * lab.PLAIN.payload_bytes / lab.PACKET_BYTES
