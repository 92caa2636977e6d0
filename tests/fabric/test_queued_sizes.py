"""A port stores its packets' sizes in another way from the fifth size and from the 129th packet on, and in
the first way again once it was empty. Departures, lengths and bytes must not depend on it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fabric._core import VirtualFabric
from tests.support.core_networks import TCP, ip, one_switch

US = 1_000_000
FLOW = (ip("10.0.0.1"), ip("10.0.0.2"), TCP, 1000, 80)

sizes = st.one_of(st.sampled_from([40, 1500]), st.sampled_from([40, 66, 590, 1500]), st.integers(40, 1500))
spells = st.tuples(st.lists(sizes, min_size=1, max_size=20), st.integers(1, 20), st.integers(0, 100_000))


@given(st.lists(spells, min_size=1, max_size=6))
def test_every_packet_takes_the_time_of_its_own_size(bursts: list[tuple[list[int], int, int]]) -> None:
    fabric = VirtualFabric(one_switch(rate_bps=8_000_000, queue_pkts=0))  # a byte in 1 us
    left: list[int] = [0]
    arrived: list[int] = [0]
    sent = now = 0
    for pattern, times, gap_us in bursts:
        now += gap_us * US
        for size in pattern * times:
            fabric.inject(now, 0, size, FLOW)
            sent += size
            left.append(max(left[-1], now) + size * US)
            arrived.append(max(arrived[-1], left[-1]) + size * US)
        assert fabric.counters()["queued_pkts"][0] == sum(1 for at in left if at > now)
    assert [departure[2] for departure in fabric.run_until(10**17)] == arrived[1:]
    assert list(fabric.counters()["tx_bytes"][[0, 3]]) == [sent, sent]
    assert list(fabric.counters()["tx_packets"][[0, 3]]) == [len(left) - 1] * 2
