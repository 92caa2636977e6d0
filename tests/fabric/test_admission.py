"""What a port does on arrival: it marks from a threshold on, and drops at random near its limit."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from fabric._core import VirtualFabric
from tests.support.core_networks import TCP, ip, one_switch, with_setting

A, B, C = ip("10.0.0.1"), ip("10.0.0.2"), ip("10.0.0.3")
MS, FOREVER = 1_000_000_000, 10**17
NOT_ECT, ECT1, ECT0, CE = 0, 1, 2, 3
FRAME_PS = 1500 * 8 * 100_000
"""At 10 Mb/s."""
LIMIT, CHANCE = 20, 4
MARGIN = 5
"""Standard deviations."""


@pytest.mark.parametrize(
    ("count", "ecn", "limits", "marked", "dropped"),
    [
        (12, ECT0, (5, 100), 7, 0),
        (12, ECT1, (5, 100), 7, 0),
        (5, ECT0, (5, 100), 0, 0),
        (90, ECT0, (0, 100), 0, 0),  # no threshold
        (12, CE, (5, 100), 0, 0),  # marked already, and not counted again
        (13, ECT0, (5, 10), 5, 3),  # marking makes no room
        (13, NOT_ECT, (5, 10), 0, 3),  # nothing to mark, and drop-tail as ever
    ],
)
def test_packets_that_find_the_threshold_queued_are_marked(
    count: int, ecn: int, limits: tuple[int, int], marked: int, dropped: int
) -> None:
    """At the sender's port: the switch's queue never holds two, since packets come one by one."""
    fabric = VirtualFabric(one_switch(rate_bps=1_000_000, ecn_pkts=limits[0], queue_pkts=limits[1]))
    for _ in range(count):
        fabric.inject(0, 0, 125, (A, B, TCP, 1000, 80), ecn)
    fields = [departure[4] for departure in fabric.run_until(FOREVER) if not departure[3]]
    assert fields == [ecn] * (count - dropped - marked) + [CE] * marked
    assert fabric.counters()["marks"].tolist() == [marked, 0, 0, 0]
    assert fabric.counters()["drops"].tolist() == [dropped, 0, 0, 0]


def test_a_threshold_of_one_spares_only_packets_that_find_the_port_idle() -> None:
    fabric = VirtualFabric(one_switch(rate_bps=1_000_000, ecn_pkts=1))
    for when in (0, MS - 1, 2 * MS):  # the second finds the first in transmission, the third nothing
        fabric.inject(when, 0, 125, (A, B, TCP, 1000, 80), ECT0)
    assert [departure[4] for departure in fabric.run_until(FOREVER)] == [ECT0, CE, ECT0]


def test_the_switch_marks_where_two_senders_meet() -> None:
    fabric = VirtualFabric(one_switch(hosts=3, rate_bps=1_000_000, ecn_pkts=4))
    for turn in range(10):
        for nic, source in ((0, A), (1, B)):
            fabric.inject(turn * MS, nic, 125, (source, C, TCP, 1000, 80), ECT0)
    # From 1 ms on two come each ms and one leaves: a pair finds turn and turn + 1 packets, of 0 to 9.
    found = [queued for turn in range(10) for queued in (turn, turn + 1)]
    fields = [departure[4] for departure in fabric.run_until(FOREVER)]
    assert fields == [CE if queued >= 4 else ECT0 for queued in found]
    assert fabric.counters()["marks"].tolist() == [0, 0, 0, 0, 0, 13]


def with_chance(places: int, port: int, hosts: int = 2) -> VirtualFabric:
    """Port `port` holds LIMIT packets, with random drop in the last `places`; other queues have no limit."""
    plan = one_switch(hosts=hosts, queue_pkts=0)
    limit = plan.queue_pkts.copy()
    limit[port] = LIMIT
    return VirtualFabric(with_setting(replace(plan, queue_pkts=limit), "random_pkts", port, places))


def test_the_ith_of_the_last_n_places_is_refused_with_i_of_n_plus_1() -> None:
    fabric = with_chance(CHANCE, port=0)
    tried, refused = np.zeros(LIMIT + 1, int), np.zeros(LIMIT + 1, int)
    for burst in range(300):
        queued, drops = 0, int(fabric.counters()["drops"][0])
        for _ in range(LIMIT + 20):
            fabric.inject(burst * 30 * FRAME_PS, 0, 1500, (A, B, TCP, 1, 2))
            lost = int(fabric.counters()["drops"][0]) - drops
            tried[queued] += 1
            refused[queued] += lost
            queued, drops = queued + 1 - lost, drops + lost
    certain = LIMIT - CHANCE
    assert not refused[:certain].any() and tried[:certain].min() == 300
    assert refused[LIMIT] == tried[LIMIT] > 0
    for i in range(1, CHANCE + 1):
        n, p = int(tried[certain + i - 1]), i / (CHANCE + 1)
        assert abs(int(refused[certain + i - 1]) - n * p) < MARGIN * (n * p * (1 - p)) ** 0.5


def arrived(places: int, turns: int = 1500) -> Counter[int]:
    """Count the packets that arrive of two senders that meet at a full queue, always in the same order.

    They are told apart by their size, so that what has arrived of each follows from packets and bytes."""
    fabric = with_chance(places, port=1, hosts=3)
    sizes = {1: 1500, 2: 1499}
    for turn in range(turns):
        for nic, size in sizes.items():
            fabric.inject(turn * FRAME_PS, nic, size, (A + nic, A, TCP, 1, 2))
    fabric.run_until(3 * turns * FRAME_PS)
    packets, octets = (int(fabric.counters()[name][1]) for name in ("tx_packets", "tx_bytes"))
    second = packets * 1500 - octets
    return Counter({1: packets - second, 2: second})


def test_drop_tail_starves_one_of_two_in_lockstep_and_random_drop_does_not() -> None:
    starved, fair = arrived(0), arrived(CHANCE)
    assert min(starved.values()) < 0.05 * max(starved.values())
    assert min(fair.values()) > 0.5 * max(fair.values())
