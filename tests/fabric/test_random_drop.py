"""Random drop in the last places of a queue: its probability, and its effect on senders in lockstep."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from fabric._core import VirtualFabric
from tests.support.core_networks import TCP, ip, one_switch, with_setting

FRAME_PS = 1500 * 8 * 100_000
"""At 10 Mb/s."""
LIMIT, CHANCE = 20, 4
MARGIN = 5
"""Standard deviations."""


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
            fabric.inject(burst * 30 * FRAME_PS, 0, 1500, (ip("10.0.0.1"), ip("10.0.0.2"), TCP, 1, 2))
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
            flow = (ip("10.0.0.1") + nic, ip("10.0.0.1"), TCP, 1, 2)
            fabric.inject(turn * FRAME_PS, nic, size, flow)
    fabric.run_until(3 * turns * FRAME_PS)
    packets, octets = (int(fabric.counters()[name][1]) for name in ("tx_packets", "tx_bytes"))
    second = packets * 1500 - octets
    return Counter({1: packets - second, 2: second})


def test_drop_tail_starves_one_of_two_in_lockstep_and_random_drop_does_not() -> None:
    starved, fair = arrived(0), arrived(CHANCE)
    assert min(starved.values()) < 0.05 * max(starved.values())
    assert min(fair.values()) > 0.5 * max(fair.values())
