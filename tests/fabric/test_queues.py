"""Disciplines of queues: what they admit, whom they serve next, and ranks that frames carry."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from fabric._core import VirtualFabric, rank_of_stamp
from fabric.plan import NetworkPlan
from fabric.readings import Departure
from model.network_plan import QUEUE_NUMBERS
from tests.support.core_networks import (
    BOTTLENECK,
    TCP,
    bottleneck,
    chain,
    ip,
    one_switch,
    with_setting,
)
from tests.support.dataplanes.rank_stamps import MANTISSA_BITS, stamp

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


BYTE_PS = 8_000_000
"""At 1 Mb/s, so that 125 bytes take a millisecond."""
LOW, HIGH = 0, 46
"""DSCP: best effort, and expedited forwarding, whose precedence is 5."""
ANY_TO_LAST = (ip("10.0.0.1"), ip("10.0.0.3"), TCP, 1000, 80)
SENDERS = 2


def switch(discipline: str, **limits: int) -> NetworkPlan:
    return bottleneck(discipline, (1_000_000_000, 1_000_000), **{"queue_pkts": 100, **limits})


Sent = tuple[int, int, int, int, int]
"""Time in ps, NIC, bytes, ECN, DSCP."""


def mixture(packets: int, seed: int, dscps: tuple[int, ...], load: float = 1.0) -> list[Sent]:
    """Return packets of random sizes at random times, `load` times what the bottleneck carries."""
    rng = random.Random(seed)
    span_ps = round(packets * 800 * BYTE_PS / load)
    times = sorted(rng.randrange(span_ps) for _ in range(packets))
    return [(t, rng.randrange(SENDERS), rng.randint(100, 1500), 2, rng.choice(dscps)) for t in times]


def played(plan: NetworkPlan, sent: list[Sent]) -> tuple[dict[int, Departure], VirtualFabric]:
    """Return the departure of each packet, by its place in `sent`, and the fabric."""
    fabric = VirtualFabric(plan)
    ids: dict[int, int] = {}
    ended: dict[int, Departure] = {}
    for place, (when, nic, size, ecn, dscp) in enumerate(sent):
        for departure in fabric.run_until(when):
            ended[ids.pop(departure[0])] = departure
        ids[fabric.inject(when, nic, size, ANY_TO_LAST, ecn, dscp)] = place
    for departure in fabric.run_until(FOREVER):
        ended[ids.pop(departure[0])] = departure
    assert not ids and fabric.counters()["in_flight"] == 0
    return ended, fabric


def arrival_ps(packet: Sent) -> int:
    """Return when a packet reaches the bottleneck, if its host's link was idle."""
    return packet[0] + packet[2] * 8 * 1000


def test_what_is_urgent_waits_for_the_transmission_under_way_and_nothing_else() -> None:
    rng = random.Random(3)
    backlog = [(0, 0, 1500, 0, LOW) for _ in range(80)]
    urgent = [(50 * MS + round(i * 11.7 * MS) + rng.randrange(MS), 1, 100, 0, HIGH) for i in range(60)]
    sent = backlog + urgent
    ended, _ = played(switch("priority"), sent)
    for place in range(len(backlog), len(sent)):
        waited_ps = ended[place][2] - arrival_ps(sent[place]) - 100 * BYTE_PS
        assert 0 <= waited_ps < 1500 * BYTE_PS
    fifo, _ = played(switch("fifo"), sent)
    assert fifo[len(backlog)][2] - arrival_ps(urgent[0]) > 60 * 1500 * BYTE_PS


def test_the_residual_time_is_exact() -> None:
    # 1500 bytes leave from 12 us on; 100 urgent bytes arrive at 5 ms and 0.8 us, which their host link takes.
    sent = [(0, 0, 1500, 0, LOW), (0, 0, 1500, 0, LOW), (5 * MS, 1, 100, 0, HIGH)]
    ended, _ = played(switch("priority"), sent)
    first = 1500 * 8 * 1000 + 1500 * BYTE_PS
    assert [ended[place][2] for place in (0, 2, 1)] == [first, first + 100 * BYTE_PS, first + 1600 * BYTE_PS]


def test_classes_leave_in_order_of_precedence_and_each_in_its_own_order() -> None:
    blocker = (0, 0, 1500, 0, LOW)
    rest = [(MS + i, 0, 125, 0, dscp) for i, dscp in enumerate((0, 8, 46, 0, 56, 8, 46, 40))]
    ended, _ = played(switch("priority"), [blocker, *rest])
    order = sorted(range(1, 9), key=lambda place: ended[place][2])
    assert [rest[place - 1][4] for place in order] == [56, 46, 46, 40, 8, 8, 0, 0]
    assert order == [5, 3, 7, 8, 2, 6, 1, 4]


@pytest.mark.parametrize("seed", range(3))
def test_the_port_works_whenever_it_has_work(seed: int) -> None:
    """Neither busy periods nor the bytes sent by the end of each depend on which packet goes first."""
    sent = mixture(400, seed, (LOW, HIGH, 8), load=0.9)
    ends = []
    for discipline in ("fifo", "priority"):
        ended, fabric = played(switch(discipline, queue_pkts=0), sent)
        done = sorted((ended[place][2], sent[place][2]) for place in ended)
        periods = [done[0][0] - done[0][1] * BYTE_PS]
        for (before, _), (after, size) in pairwise(done):
            assert after - before >= size * BYTE_PS
            if after - before > size * BYTE_PS:
                periods += [before, after - size * BYTE_PS]
        ends.append([*periods, done[-1][0]])
        assert int(fabric.counters()["tx_bytes"][BOTTLENECK]) == sum(size for _, _, size, _, _ in sent)
    assert ends[0] == ends[1]
    assert len(ends[0]) > 10


@pytest.mark.parametrize(
    "admission",
    [
        {"queue_bytes": 9000, "queue_pkts": 0},
        *({"queue_pkts": 12, name: 6} for name in ("ecn_pkts", "random_pkts")),
    ],
)
def test_with_one_class_it_is_a_fifo_to_the_picosecond(admission: dict[str, int]) -> None:
    sent = mixture(600, 5, (HIGH,), load=1.3)
    results = [played(switch(name, **{"queue_pkts": 12, **admission}), sent) for name in ("fifo", "priority")]
    outcomes = [{place: end[1:] for place, end in ended.items()} for ended, _ in results]
    assert outcomes[0] == outcomes[1]
    counters = [fabric.counters() for _, fabric in results]
    for name in ("tx_packets", "tx_bytes", "drops", "marks", "max_queue_pkts"):
        assert counters[0][name].tolist() == counters[1][name].tolist()
    assert counters[0]["drops"][BOTTLENECK] > 20


@pytest.mark.parametrize("limits", [{"queue_pkts": 10}, {"queue_pkts": 0, "queue_bytes": 8000}])
def test_a_full_queue_drops_the_lowest_class(limits: dict[str, int]) -> None:
    sent = mixture(900, 8, (LOW, LOW, LOW, 8, HIGH), load=2.0)
    ended, fabric = played(switch("priority", **limits), sent)
    lost = Counter(sent[place][4] for place, end in ended.items() if end[3])
    offered = Counter(dscp for *_, dscp in sent)
    assert lost[HIGH] == 0
    assert lost[8] / offered[8] < 0.1
    assert lost[LOW] / offered[LOW] > 0.5
    counters = fabric.counters()
    assert counters["drops"][BOTTLENECK] == sum(lost.values()) == counters["dropped"]
    assert counters["injected"] == len(sent) == counters["delivered"] + counters["dropped"]
    most = int(counters["max_queue_pkts"][BOTTLENECK])
    assert most == 10 if "queue_bytes" not in limits else most >= 8000 // 1500


def test_the_latest_of_the_lowest_class_gives_way_and_never_what_is_on_its_way_out() -> None:
    sent = [(i, 0, 1500, 0, LOW) for i in range(3)] + [(MS * 5 + i, 1, 125, 0, HIGH) for i in range(3)]
    ended, _ = played(switch("priority", queue_pkts=3), sent)
    assert [place for place, end in sorted(ended.items()) if end[3]] == [1, 2, 5]


def test_a_cut_loses_what_waits_and_what_is_sent_and_the_link_works_again() -> None:
    fabric = VirtualFabric(switch("priority"))
    for _ in range(5):
        fabric.inject(0, 0, 1250, ANY_TO_LAST, 0, LOW)  # 10 ms each
    fabric.set_port_up(BOTTLENECK, False, 25 * MS)
    fabric.inject(30 * MS, 0, 1250, ANY_TO_LAST, 0, HIGH)
    fabric.set_port_up(BOTTLENECK, True, 40 * MS)
    fabric.inject(50 * MS, 0, 1250, ANY_TO_LAST, 0, LOW)
    ended = fabric.run_until(FOREVER)
    counters = fabric.counters()
    assert (counters["delivered"], counters["dropped"], counters["in_flight"]) == (3, 4, 0)
    assert (counters["tx_packets"][BOTTLENECK], counters["drops"][BOTTLENECK]) == (3, 4)
    assert counters["queued_pkts"][BOTTLENECK] == 0
    on_host_link = 1250 * 8 * 1000
    delivered = [end[2] for end in ended if not end[3]]
    assert delivered == [t * MS + on_host_link for t in (10, 20, 60)]


def test_another_rate_holds_from_the_next_transmission_on() -> None:
    fabric = VirtualFabric(switch("priority"))
    for _ in range(3):
        fabric.inject(0, 0, 1250, ANY_TO_LAST, 0, LOW)
    fabric.set_port_rate(BOTTLENECK, 2_000_000, 5 * MS)
    on_host_link = 1250 * 8 * 1000
    assert [end[2] for end in fabric.run_until(FOREVER)] == [t * MS + on_host_link for t in (10, 15, 20)]


def test_what_is_on_the_wire_does_not_keep_the_next_from_leaving() -> None:
    plan = chain([1_000_000_000, 1_000_000, 1_000_000_000], [0, 50 * MS, 0])
    orders = plan.discipline.copy()
    orders[2] = QUEUE_NUMBERS["priority"]
    fabric = VirtualFabric(replace(plan, discipline=orders))
    for _ in range(3):
        fabric.inject(0, 0, 1250, (ip("10.0.0.1"), ip("10.0.0.2"), TCP, 1, 2))
    ends = [end[2] for end in fabric.run_until(FOREVER)]
    assert ends == [2 * 1250 * 8 * 1000 + (50 + 10 * i) * MS for i in (1, 2, 3)]


UNKNOWN, LAST = 0xFFFF, 2**32 - 1
POWERS = [2**n for n in range(MANTISSA_BITS, 32)]
RANKS = sorted({*range(5000), *(power + d for power in POWERS for d in (-1, 0, 1, power // 3))})


def test_small_ranks_are_read_exactly() -> None:
    assert [rank_of_stamp(stamp(rank)) for rank in range(2**MANTISSA_BITS)] == [*range(2**MANTISSA_BITS)]


def test_larger_ranks_are_read_within_half_a_thousandth_and_never_above() -> None:
    for rank in RANKS:
        read = rank_of_stamp(stamp(rank))
        assert read <= rank < read * (1 + 2.0 ** (1 - MANTISSA_BITS)) + 1


def test_stamps_and_what_is_read_from_them_keep_the_order_of_ranks() -> None:
    stamps = [stamp(rank) for rank in RANKS]
    assert all(a <= b for a, b in itertools.pairwise(stamps))
    read = [rank_of_stamp(value) for value in range(UNKNOWN)]
    assert all(a <= b for a, b in itertools.pairwise(read))


def test_a_frame_of_an_unknown_flow_goes_last() -> None:
    assert max(map(stamp, RANKS)) < UNKNOWN
    assert rank_of_stamp(UNKNOWN) == LAST
