"""Pause frames (IEEE 802.1Qbb, one class): when ports stop, what that costs, and when nobody goes on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from common.errors import UsageError
from controllers.routing import tables_of
from fabric._core import VirtualFabric
from fabric.plan import NetworkPlan
from fabric.readings import Counters
from model.network_plan import QUEUE_NUMBERS, network_plan, ports_along
from model.spec import LinkSpec
from tests.support.core_networks import BOTTLENECK, TCP, chain, ip, one_switch
from topos.topology import Builder, Layer

US, SECOND = 10**6, 10**12
BYTES = 1250
FULL_PS = 100 * US
"""A packet at 100 Mb/s."""
FRAME_PS = 5_120_000
"""A pause frame at 100 Mb/s."""
SLOW_PS = 10 * SECOND
"""A packet at 1 kb/s, which is nearly never."""
LIMITS = {"xoff_bytes": 10.0 * BYTES, "xon_bytes": 8.0 * BYTES, "headroom_bytes": 100.0 * BYTES}
LAST = 4
"""The slow port in front of the receiver."""


def lossless(plan: NetworkPlan, **limits: float) -> NetworkPlan:
    everywhere = np.full(len(plan.rate_bps), QUEUE_NUMBERS["pfc"], np.uint8)
    return replace(plan, discipline=everywhere, queue_settings={"pfc": {**LIMITS, **limits}})


def line(delay_ps: int, first_bps: int = 10**8, **limits: float) -> VirtualFabric:
    """A host, two switches 100 Mb/s and `delay_ps` apart, and a host behind a link of 1 kb/s."""
    return VirtualFabric(lossless(chain([first_bps, 10**8, 1000], [0, delay_ps, 0], queue_pkts=0), **limits))


def send(fabric: VirtualFabric, packets: int, src: str, dst: str, *, nic: int = 0, at_ps: int = 0) -> None:
    for _ in range(packets):
        fabric.inject(at_ps, nic, BYTES, (ip(src), ip(dst), TCP, 1, 80))


def counted(fabric: VirtualFabric, until_ps: int) -> Counters:
    fabric.run_until(until_ps)
    return fabric.counters()


def arriving(delay_ps: int) -> int:
    """Return how many packets begin from the arrival of the tenth until the pause frame is there."""
    return (2 * delay_ps + FRAME_PS) // FULL_PS + 1


EXACT_PS = (4 * FULL_PS - FRAME_PS) // 2
"""With this delay a packet begins at the instant at which the pause frame arrives: it is sent."""
DELAYS_PS = [0, 200 * US, 333 * US, EXACT_PS - 1]


@pytest.mark.parametrize("delay_ps", DELAYS_PS)
def test_nothing_is_lost_with_a_headroom_of_what_is_under_way_and_every_port_is_stopped_in_turn(
    delay_ps: int,
) -> None:
    more = arriving(delay_ps)
    assert more * BYTES <= (2 * delay_ps / FULL_PS + 2) * BYTES, "2 * delay * rate and two packets"
    fabric = line(delay_ps, headroom_bytes=float(more * BYTES))
    send(fabric, 100, "10.0.0.1", "10.0.0.2")
    ports = counted(fabric, SECOND)
    # All that the second switch holds waits for the slow link; the first switch stopped the host.
    assert ports["queued_pkts"][[0, 2, LAST]].tolist() == [100 - (10 + more) - 11, 11, 10 + more]
    assert ports["pause_frames"][[0, 2, LAST]].tolist() == [1, 1, 0]
    ports = counted(fabric, 100 * SLOW_PS + SECOND)
    assert (ports["delivered"], ports["drops"].sum()) == (100, 0)
    assert fabric.deadlocked() == []


@pytest.mark.parametrize("delay_ps", [*DELAYS_PS, EXACT_PS])
def test_a_byte_less_of_headroom_costs_a_packet(delay_ps: int) -> None:
    for missing in (0, 1):
        headroom = float(arriving(delay_ps) * BYTES - missing)
        fabric = line(delay_ps, 10**9, headroom_bytes=headroom)
        send(fabric, 100, "10.0.0.1", "10.0.0.2")
        ports = counted(fabric, SECOND)
        assert ports["drops"][LAST] == missing
        assert ports["early_drops"].sum() == 0
        assert missing or ports["drops"].sum() == 0


def test_a_port_is_stopped_from_xoff_to_xon() -> None:
    """With 15 packets behind it, 7 must leave, one each 10 s from the arrival of the first."""
    delay_ps = 200 * US
    fabric = line(delay_ps)
    send(fabric, 15, "10.0.0.1", "10.0.0.2")
    ports = counted(fabric, 200 * SECOND)
    assert ports["pause_frames"].tolist() == [0, 0, 1, 0, 0, 0]
    assert ports["paused_ps"].tolist() == [0, 0, 7 * SLOW_PS - 9 * FULL_PS, 0, 0, 0]


def test_the_time_in_which_a_port_is_still_stopped_counts() -> None:
    fabric = line(0)
    send(fabric, 15, "10.0.0.1", "10.0.0.2")
    begun = FULL_PS * 11 + FRAME_PS  # the host's link, ten packets, and the frame
    for now_ps in (SECOND, 20 * SECOND):
        assert counted(fabric, now_ps)["paused_ps"][2] == now_ps - begun


def test_a_victim_has_the_share_of_its_packets_in_the_queue_that_is_stopped() -> None:
    """Nine of ten packets of a host of 10 Mb/s are for a link of 1 Mb/s; without pause frames the tenth
    has 1 Mb/s, too."""
    delivered = {}
    for kind in ("fifo", "pfc"):
        plan = one_switch(hosts=3, queue_pkts=0)
        rates = plan.rate_bps.copy()
        rates[BOTTLENECK] = 1_000_000
        plan = replace(plan, rate_bps=rates, max_packets=1 << 16)
        fabric = VirtualFabric(lossless(plan) if kind == "pfc" else plan)
        for _ in range(1000):
            send(fabric, 9, "10.0.0.1", "10.0.0.3")
            send(fabric, 1, "10.0.0.1", "10.0.0.2")
        ports = counted(fabric, 10 * SECOND)
        assert ports["drops"].sum() == 0
        delivered[kind] = [int(ports["tx_packets"][port]) for port in (BOTTLENECK, 3)]
    assert delivered["fifo"] == [pytest.approx(1000, abs=1), pytest.approx(1000, abs=1)]
    assert delivered["pfc"] == [pytest.approx(1000, abs=1), pytest.approx(1000 / 9, abs=2)]


def ring(hops: int) -> tuple[VirtualFabric, Sequence[int]]:
    """Three switches in a ring, each with a host, which sends 200 packets clockwise over so many links
    between switches. Returns the network, and the ports that packets take in the order of their hosts."""
    net = Builder("ring", {"n": 3})
    hosts = [net.host(f"h{i}") for i in range(3)]
    switches = [net.switch(f"s{i}", Layer.EDGE) for i in range(3)]
    for i in range(3):
        net.attach(hosts[i], switches[i], f"10.0.{i}.2")
    for i in range(3):
        net.link(switches[i], switches[(i + 1) % 3])
    topology = net.build()
    link = LinkSpec(100.0, queue_pkts=0, nic_queue_pkts=0, clock_ppm=0.0, discipline="pfc")
    plan = network_plan(topology, tables_of(topology, "hashed"), link, "hashed", 1)
    fabric = VirtualFabric(lossless(plan))
    taken: list[int] = []
    for i in range(3):
        there = (i + hops) % 3
        flow = (ip(f"10.0.{i}.2"), ip(f"10.0.{there}.2"), TCP, 1, 80)
        over = [switches[(i + step) % 3] for step in range(hops + 1)]
        path = ports_along(topology, [hosts[i], *over, hosts[there]])
        fabric.set_path(flow, path)
        taken += path[:2]
    for i in range(3):
        send(fabric, 200, f"10.0.{i}.2", f"10.0.{(i + hops) % 3}.2", nic=i)
    return fabric, taken


def test_a_cycle_of_ports_that_wait_for_one_another_is_found() -> None:
    """Each link of the ring has packets of two hosts, all of which wait for the next link."""
    fabric, taken = ring(2)
    ports = counted(fabric, SECOND)
    assert ports["delivered"] < 600
    assert fabric.deadlocked() == sorted(taken), "the ring's ports, and the hosts' behind them"
    later = counted(fabric, 100 * SECOND)
    assert later["delivered"] == ports["delivered"]
    assert later["drops"].sum() == 0


def test_no_deadlock_without_a_cycle() -> None:
    fabric, _ = ring(1)
    for now_us in range(0, 30_000, 500):
        fabric.run_until(now_us * US)
        assert fabric.deadlocked() == []
    assert fabric.counters()["delivered"] == 600


def test_a_cut_lets_senders_go_on_into_the_cut_port() -> None:
    """What waits in it is lost; nothing is left in the switch's count of the link behind."""
    fabric = line(200 * US)
    send(fabric, 100, "10.0.0.1", "10.0.0.2")
    fabric.run_until(SECOND)
    fabric.set_port_up(LAST, False, SECOND)
    ports = counted(fabric, 20 * SECOND)
    assert ports["queued_pkts"].sum() == 0
    assert ports["drops"][LAST] == 100
    fabric.set_port_up(LAST, True, 20 * SECOND)
    send(fabric, 11, "10.0.0.1", "10.0.0.2", at_ps=20 * SECOND)
    again = counted(fabric, 20 * SECOND + 100 * SLOW_PS)
    assert again["delivered"] == 11
    assert again["pause_frames"][2] == ports["pause_frames"][2] + 1


def test_lossless_ports_are_all_or_none() -> None:
    plan = lossless(one_switch(hosts=3, queue_pkts=0))
    mixed = plan.discipline.copy()
    mixed[0] = 0
    with pytest.raises(ValueError, match="either all ports are lossless or none"):
        VirtualFabric(replace(plan, discipline=mixed))


def test_thresholds_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(UsageError, match="xoff_bytes must be larger"):
        LinkSpec(10.0, discipline="pfc:xoff_bytes=1000,xon_bytes=1000")
    assert math.isclose(LinkSpec(10.0, discipline="pfc:xon_bytes=0").queue_settings["xon_bytes"], 0)
