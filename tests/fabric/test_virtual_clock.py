"""The core against departure times computed by hand."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric._core import VirtualFabric
from tests.support.core_networks import TCP, chain, ip, one_switch

A, B, C = ip("10.0.0.1"), ip("10.0.0.2"), ip("10.0.0.3")
US, MS, S = 1_000_000, 1_000_000_000, 1_000_000_000_000
FOREVER = 10**17


def flow(src: int, dst: int, sport: int = 1000) -> tuple[int, int, int, int, int]:
    return (src, dst, TCP, sport, 80)


def test_a_hop_takes_transmission_plus_propagation() -> None:
    fabric = VirtualFabric(chain([10_000_000, 5_000_000, 20_000_000], [1 * US, 2 * US, 3 * US]))
    packet = fabric.inject(7 * US, 0, 1500, flow(A, B))
    # 12000 bits at 10, 5 and 20 Mb/s: 1.2, 2.4 and 0.6 ms; propagation 6 us in all
    assert fabric.run_until(FOREVER) == [(packet, 1, 7 * US + 4200 * US + 6 * US, False, 0)]


def test_a_rate_that_does_not_divide_a_second_keeps_no_error() -> None:
    fabric = VirtualFabric(one_switch(rate_bps=7_000_000_000))
    fabric.inject(0, 0, 1514, flow(A, B))
    once = 1514 * 8 * S // 7_000_000_000
    assert fabric.run_until(FOREVER)[0][2] == 2 * once


def test_the_queue_holds_exactly_its_limit_and_drops_the_tail() -> None:
    fabric = VirtualFabric(one_switch(rate_bps=1_000_000, queue_pkts=10))
    ids = [fabric.inject(0, 0, 125, flow(A, B)) for _ in range(13)]
    counters = fabric.counters()
    assert counters["drops"][0] == 3
    assert counters["queued_pkts"][0] == 10
    log = fabric.run_until(FOREVER)
    assert [d[3] for d in log[:3]] == [True] * 3
    assert len({d[0] for d in log}) <= len(ids)
    assert fabric.counters()["tx_packets"][0] == 10


def test_room_appears_the_instant_the_head_has_left() -> None:
    fabric = VirtualFabric(one_switch(rate_bps=1_000_000, queue_pkts=1))
    fabric.inject(0, 0, 125, flow(A, B))
    fabric.inject(1 * MS - 1, 0, 125, flow(A, B))
    fabric.inject(1 * MS, 0, 125, flow(A, B))
    fabric.run_until(FOREVER)
    counters = fabric.counters()
    assert (counters["tx_packets"][0], counters["drops"][0]) == (2, 1)


def test_a_limit_in_bytes_counts_bytes() -> None:
    fabric = VirtualFabric(one_switch(rate_bps=1_000_000, queue_pkts=0, queue_bytes=3000))
    for size in (1500, 1000, 600, 400):
        fabric.inject(0, 0, size, flow(A, B))
    fabric.run_until(FOREVER)
    counters = fabric.counters()
    assert (counters["tx_packets"][0], counters["drops"][0], counters["tx_bytes"][0]) == (3, 1, 2900)


def test_what_is_queued_when_the_rate_changes_keeps_its_times() -> None:
    fabric = VirtualFabric(chain([1_000_000, 1_000_000_000], [0, 0], queue_pkts=3))

    def inject(*times_ps: int) -> None:
        for when in times_ps:
            fabric.inject(when, 0, 125, flow(A, B))

    inject(0, 0, 0)  # leave at 1, 2, 3 ms
    fabric.set_port_rate(0, 2_000_000, 1500 * US)
    inject(1500 * US)  # at 3.5 ms
    fabric.set_port_rate(0, 4_000_000, 1500 * US)
    # A place is free the instant the first has left, not before: at 2, 3, 3.5, 3.75 ms.
    for free in (2 * MS, 3 * MS, 3500 * US, 3750 * US):
        inject(free - 1, free)
    log = fabric.run_until(FOREVER)
    arrived = [d[2] - 1 * US for d in log if not d[3]]
    assert arrived == [1 * MS, 2 * MS, 3 * MS, *(at * US for at in (3500, 3750, 4000, 4250, 4500))]
    assert (fabric.counters()["drops"][0], fabric.counters()["tx_bytes"][0]) == (4, 8 * 125)


def test_a_cut_link_loses_what_is_queued_and_on_the_wire_and_heals() -> None:
    fabric = VirtualFabric(one_switch(rate_bps=1_000_000, delay_ps=100 * MS))
    for _ in range(3):
        fabric.inject(0, 0, 125, flow(A, B))
    fabric.set_port_up(0, False, 2 * MS)
    fabric.inject(3 * MS, 0, 125, flow(A, B))
    fabric.set_port_up(0, True, 4 * MS)
    fabric.inject(5 * MS, 0, 125, flow(A, B))
    log = fabric.run_until(FOREVER)
    assert [d[3] for d in log] == [True, True, True, True, False]
    assert log[-1][2] == 5 * MS + 2 * (1 * MS + 100 * MS)
    counters = fabric.counters()
    assert (counters["injected"], counters["delivered"], counters["dropped"]) == (5, 1, 4)
    assert counters["in_flight"] == 0


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(64, 1514), st.integers(0, 3_000)),
        max_size=120,
    ),
    st.integers(1, 20),
)
def test_every_packet_is_delivered_or_dropped_once_and_flows_keep_their_order(
    sends: list[tuple[int, int, int, int]], queue: int
) -> None:
    fabric = VirtualFabric(one_switch(hosts=4, rate_bps=10_000_000, queue_pkts=queue))
    live: dict[int, tuple[tuple[int, int], int]] = {}
    arrived: dict[tuple[int, int], list[int]] = {}
    lost = now = 0

    def settle(until: int) -> None:
        nonlocal lost
        for packet, _, _, dropped, _ in fabric.run_until(until):
            pair, serial = live.pop(packet)
            lost += dropped
            if not dropped:
                arrived.setdefault(pair, []).append(serial)

    sends = [send for send in sends if send[0] != send[1]]
    for serial, (src, dst, size, gap) in enumerate(sends):
        now += gap * US
        settle(now)
        live[fabric.inject(now, src, size, flow(A + src, A + dst))] = ((src, dst), serial)
    settle(FOREVER)
    counters = fabric.counters()
    assert not live
    assert counters["in_flight"] == 0
    assert counters["injected"] == len(sends)
    assert counters["delivered"] == sum(map(len, arrived.values()))
    assert counters["dropped"] == int(counters["drops"].sum()) == lost
    for serials in arrived.values():
        assert serials == sorted(serials)


@pytest.mark.parametrize("queued", [33, 129, 257, 600])
def test_packets_of_many_sizes_leave_one_by_one(queued: int) -> None:
    fabric = VirtualFabric(one_switch(rate_bps=8_000_000, queue_pkts=0))  # a byte in 1 us
    lengths = [100 + i for i in range(queued)]
    for length in lengths:
        fabric.inject(0, 0, length, flow(A, B))
    for number, end_us in enumerate(accumulate(lengths), 1):
        fabric.run_until(end_us * US)
        assert fabric.counters()["queued_pkts"][0] == queued - number


sizes = st.one_of(st.sampled_from([40, 1500]), st.sampled_from([40, 66, 590, 1500]), st.integers(40, 1500))
spells = st.tuples(st.lists(sizes, min_size=1, max_size=20), st.integers(1, 20), st.integers(0, 100_000))


@given(st.lists(spells, min_size=1, max_size=6))
def test_every_packet_takes_the_time_of_its_own_size(bursts: list[tuple[list[int], int, int]]) -> None:
    """A port stores sizes in another way from the fifth size and from the 129th packet on, and in the first
    way again once it was empty."""
    fabric = VirtualFabric(one_switch(rate_bps=8_000_000, queue_pkts=0))  # a byte in 1 us
    left: list[int] = [0]
    arrived: list[int] = [0]
    sent = now = most = 0
    for pattern, times, gap_us in bursts:
        now += gap_us * US
        for size in pattern * times:
            fabric.inject(now, 0, size, flow(A, B))
            sent += size
            left.append(max(left[-1], now) + size * US)
            arrived.append(max(arrived[-1], left[-1]) + size * US)
        most = max(most, sum(1 for at in left if at > now))
        assert fabric.counters()["queued_pkts"][0] == sum(1 for at in left if at > now)
        assert fabric.counters()["max_queue_pkts"][0] == most
    assert [departure[2] for departure in fabric.run_until(10**17)] == arrived[1:]
    assert list(fabric.counters()["tx_bytes"][[0, 3]]) == [sent, sent]
    assert list(fabric.counters()["tx_packets"][[0, 3]]) == [len(left) - 1] * 2
