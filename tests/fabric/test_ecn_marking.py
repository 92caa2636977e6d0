"""Marking at a threshold, counted by hand."""

from __future__ import annotations

from fabric._core import VirtualFabric
from tests.support.core_networks import TCP, ip, one_switch

A, B, C = ip("10.0.0.1"), ip("10.0.0.2"), ip("10.0.0.3")
MS, FOREVER = 1_000_000_000, 10**17
NOT_ECT, ECT1, ECT0, CE = 0, 1, 2, 3


def sent(count: int, ecn: int, ecn_pkts: int = 5, queue_pkts: int = 100) -> tuple[list[int], VirtualFabric]:
    """Return the ECN fields with which packets arrive that were all injected at once, and the fabric."""
    fabric = VirtualFabric(one_switch(rate_bps=1_000_000, queue_pkts=queue_pkts, ecn_pkts=ecn_pkts))
    for _ in range(count):
        fabric.inject(0, 0, 125, (A, B, TCP, 1000, 80), ecn)
    return [departure[4] for departure in fabric.run_until(FOREVER) if not departure[3]], fabric


def test_the_packet_that_finds_the_threshold_queued_is_the_first_marked() -> None:
    for ect in (ECT0, ECT1):
        fields, fabric = sent(12, ect)
        assert fields == [ect] * 5 + [CE] * 7
        # The switch's queue never holds two: its packets come one transmission time apart.
        assert fabric.counters()["marks"].tolist() == [7, 0, 0, 0]


def test_a_queue_below_the_threshold_marks_nothing() -> None:
    fields, fabric = sent(5, ECT0)
    assert set(fields) == {ECT0}
    assert not fabric.counters()["marks"].any()


def test_a_threshold_of_one_spares_only_packets_that_find_the_port_idle() -> None:
    fabric = VirtualFabric(one_switch(rate_bps=1_000_000, ecn_pkts=1))
    for when in (0, MS - 1, 2 * MS):  # the second finds the first in transmission, the third nothing
        fabric.inject(when, 0, 125, (A, B, TCP, 1000, 80), ECT0)
    assert [departure[4] for departure in fabric.run_until(FOREVER)] == [ECT0, CE, ECT0]


def test_packets_without_ecn_are_not_marked_and_meet_drop_tail() -> None:
    fields, fabric = sent(13, NOT_ECT, ecn_pkts=5, queue_pkts=10)
    counters = fabric.counters()
    assert fields == [NOT_ECT] * 10
    assert (counters["drops"][0], counters["marks"].sum()) == (3, 0)


def test_marking_makes_no_room() -> None:
    fields, fabric = sent(13, ECT0, ecn_pkts=5, queue_pkts=10)
    counters = fabric.counters()
    assert fields == [ECT0] * 5 + [CE] * 5
    assert (counters["drops"][0], counters["marks"][0]) == (3, 5)


def test_what_is_marked_already_is_not_counted_again() -> None:
    fields, fabric = sent(12, CE)
    assert set(fields) == {CE}
    assert not fabric.counters()["marks"].any()


def test_no_threshold_marks_nothing() -> None:
    fields, fabric = sent(90, ECT0, ecn_pkts=0)
    assert set(fields) == {ECT0}
    assert not fabric.counters()["marks"].any()


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
