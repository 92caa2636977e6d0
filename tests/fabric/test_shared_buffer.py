"""A switch with one buffer for all its ports: dynamic thresholds, exactly (Choudhury and Hahne, ToN 1998)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from fabric._core import VirtualFabric
from fabric.plan import NetworkPlan
from model.network_plan import QUEUE_NUMBERS
from tests.support.core_networks import TCP, ip, one_switch, with_setting

MS = 10**9
BYTES = 1250
"""A packet takes 1 ms at 10 Mb/s, and 1 ns on the way to the switch."""
ECT = 2
UPLINK_PS = 1000


def plan(hosts: int, buffer_pkts: int, alpha: float) -> NetworkPlan:
    """Hosts on fast links send to hosts behind ports of 10 Mb/s, which share a buffer."""
    out = one_switch(hosts=hosts, queue_pkts=0)
    rates, kinds = out.rate_bps.copy(), out.discipline.copy()
    rates[0::2] = 10**13
    kinds[1::2] = QUEUE_NUMBERS["shared"]
    settings = {"shared": {"buffer_bytes": float(buffer_pkts * BYTES), "alpha": alpha}}
    return replace(out, rate_bps=rates, discipline=kinds, queue_settings=settings, max_packets=1 << 16)


class Switch:
    def __init__(self, network: NetworkPlan) -> None:
        self.fabric = VirtualFabric(network)

    def send(self, at_ps: int, to: int, *, source: int = 0, ecn: int = 0) -> None:
        five = (ip("10.0.0.1") + source, ip("10.0.0.1") + to, TCP, 1, 80)
        self.fabric.inject(at_ps, source, BYTES, five, ecn)

    def overload(self, hosts: Sequence[int], from_ms: int, to_ms: int) -> None:
        """Send ten times the rate of each port, in turn."""
        for tenth in range(10 * from_ms, 10 * to_ms):
            for host in hosts:
                self.send(tenth * MS // 10, host)

    def of_hosts(self, name: str) -> list[int]:
        """Return a counter of the port towards each host."""
        found: list[int] = self.fabric.counters()[name][1::2].tolist()  # type: ignore[literal-required]
        return found


@pytest.mark.parametrize(
    ("alpha", "busy", "each"), [(1.0, 3, 30), (1.0, 1, 60), (0.5, 2, 30), (8.0, 1, 107), (0.25, 4, 15)]
)
def test_busy_queues_grow_to_their_fixed_point(alpha: float, busy: int, each: int) -> None:
    """alpha B / (1 + n alpha) of a buffer of B packets, with n busy ports; the rest stays free."""
    switch = Switch(plan(busy + 2, 120, alpha))
    switch.overload(range(1, busy + 1), 0, 400)
    switch.fabric.run_until(400 * MS - 1)
    assert each == math.ceil(alpha * 120 / (1 + busy * alpha))
    assert switch.of_hosts("queued_pkts") == [0, *[each] * busy, 0]
    drops = switch.of_hosts("drops")
    assert min(drops[1 : busy + 1]) > 0
    assert switch.of_hosts("early_drops") == [0] * (busy + 2), "a threshold is a limit"


def test_a_port_that_wakes_up_finds_room_and_then_has_as_much_as_the_others() -> None:
    switch = Switch(plan(4, 120, 1.0))
    switch.overload([1], 0, 200)
    for _ in range(40):
        switch.send(200 * MS, 2)
    switch.fabric.run_until(200 * MS + MS // 2)
    assert switch.of_hosts("queued_pkts")[1:3] == [59, 31], "31 are no fewer than the 30 that are free"
    assert switch.of_hosts("drops")[2] == 9
    switch.overload([1, 2], 201, 500)
    switch.fabric.run_until(500 * MS - 1)
    assert set(switch.of_hosts("queued_pkts")[1:3]) <= {40, 41}, "41 if the other has just sent one"


def test_a_buffer_is_never_overbooked_whatever_alpha() -> None:
    switch = Switch(plan(4, 20, 1000.0))
    switch.overload([1, 2, 3], 0, 50)
    switch.fabric.run_until(50 * MS - 1)
    assert sum(switch.of_hosts("queued_pkts")) == 20


def test_what_leaves_another_port_at_the_same_instant_makes_room() -> None:
    """The packets are under way before the departures are known: the order of events does not matter."""
    network = plan(5, 2, 1000.0)
    delays = network.delay_ps.copy()
    delays[[6, 8]] = 2 * MS  # of hosts 3 and 4
    switch = Switch(replace(network, delay_ps=delays))
    for source in (3, 4):
        switch.send(0, 1, source=source)
    for to, source in ((1, 0), (2, 1)):
        switch.send(MS, to, source=source)
    switch.fabric.run_until(2 * MS + UPLINK_PS)
    assert switch.of_hosts("drops") == [0] * 5
    assert switch.of_hosts("queued_pkts") == [0, 2, 0, 0, 0]


def test_a_cut_gives_its_part_of_the_buffer_back() -> None:
    switch = Switch(plan(4, 120, 1.0))
    switch.overload([1], 0, 200)
    switch.fabric.set_port_up(3, False, 200 * MS)
    switch.overload([2], 200, 400)
    switch.fabric.run_until(400 * MS - 1)
    assert switch.of_hosts("queued_pkts")[1:3] == [0, 60]


def test_hosts_and_other_switches_have_no_part_in_it_and_ports_keep_limits_of_their_own() -> None:
    switch = Switch(plan(3, 120, 1.0))
    switch.overload([1], 0, 20)
    for _ in range(500):
        switch.send(20 * MS, 1)
    assert switch.fabric.counters()["queued_pkts"][0] > 120, "the uplink of host 0"
    network = plan(3, 120, 1.0)
    limits = np.full(6, 10, np.uint32)
    limits[0] = 0
    switch = Switch(replace(network, queue_pkts=limits))
    switch.overload([1], 0, 20)
    switch.fabric.run_until(20 * MS - 1)
    assert switch.of_hosts("queued_pkts")[1] == 10


def test_it_marks_at_the_ports_threshold_as_the_switches_of_dctcp_do() -> None:
    switch = Switch(with_setting(plan(3, 120, 1.0), "ecn_pkts", 3, 20))
    for _ in range(25):
        switch.send(0, 1, ecn=ECT)
    switch.fabric.run_until(MS // 2)
    assert switch.of_hosts("marks")[1] == 5
