"""The core's network against times computed by hand: rates, queues, losses, opportunities, chosen paths."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.groups import ecmp_groups
from controllers.hashing import FiveTuple
from controllers.routing import path
from engines.scheduling import numbers
from fabric._core import VirtualFabric
from fabric.plan import NetworkPlan
from fabric.readings import Departure
from model.network_plan import QUEUE_NUMBERS, network_plan, ports_along
from model.spec import LinkSpec
from tests.support.core_networks import TCP, chain, ip, one_switch
from topos import build

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


RATE_BPS = 1_000_000
SIZE = 125
"""1 ms at the links' rate."""


def lossy(loss: dict[int, float], seed: int = 1, links: int = 4) -> NetworkPlan:
    """Return a chain whose given ports lose packets; port 2i of link i transmits from A towards B."""
    plan = chain([RATE_BPS] * links, [0] * links, queue_pkts=0)
    probability = np.zeros(2 * links)
    for port, value in loss.items():
        probability[port] = value
    return dataclasses.replace(plan, loss=probability, seed=seed, max_packets=1 << 18)


def log_of(plan: NetworkPlan, packets: int, back: int = 0) -> tuple[list[Departure], VirtualFabric]:
    """Return the departures of packets sent at once from A to B and from B to A, and the fabric."""
    fabric = VirtualFabric(plan)
    for i in range(max(packets, back)):
        if i < packets:
            fabric.inject(0, 0, SIZE, (A, B, TCP, 1000, 80))
        if i < back:
            fabric.inject(0, 1, SIZE, (B, A, TCP, 80, 1000))
    return fabric.run_until(FOREVER), fabric


def lost_at(log: list[Departure], port: int) -> list[int]:
    """Return when packets were lost behind this port, in packet times."""
    return [when // MS for _, where, when, gone, _ in log if gone and where == port]


@pytest.mark.parametrize("loss", [0.0001, 0.01, 0.5])
def test_as_many_are_lost_as_the_probability_says(loss: float) -> None:
    packets = 100_000
    log, fabric = log_of(lossy({2: loss}), packets)
    counters = fabric.counters()
    lost = int(counters["losses"][2])
    assert abs(lost - packets * loss) < 5 * math.sqrt(packets * loss * (1 - loss))
    assert lost == counters["lost"] == counters["losses"].sum() == sum(departure[3] for departure in log)
    assert counters["dropped"] == counters["drops"].sum() == 0
    assert counters["injected"] == packets == counters["delivered"] + lost
    assert counters["in_flight"] == 0


def test_losses_do_not_come_in_a_pattern() -> None:
    """After a loss the next packet is lost as often as any other: pairs are binomial too."""
    packets, loss = 100_000, 0.1
    lost = set(lost_at(log_of(lossy({2: loss}), packets)[0], 2))
    pairs = sum(when + 1 in lost for when in lost)
    expected = packets * loss**2
    assert abs(pairs - expected) < 5 * math.sqrt(expected)


def test_what_is_lost_was_transmitted_and_takes_its_time() -> None:
    """Lost on the wire, not before: the port was as busy as without, and the next packet no earlier."""
    clean, without = log_of(lossy({}), 1000)
    log, fabric = log_of(lossy({2: 0.3}), 1000)
    counters = fabric.counters()
    assert counters["tx_packets"][2] == 1000
    assert counters["tx_bytes"][2] == 1000 * SIZE
    assert counters["max_queue_pkts"].tolist() == without.counters()["max_queue_pkts"].tolist()
    assert counters["tx_packets"][4] == 1000 - counters["lost"]
    arrived = {packet: when for packet, _, when, gone, _ in log if not gone}
    undisturbed = {packet: when for packet, _, when, _, _ in clean}
    assert all(undisturbed[packet] == when for packet, when in arrived.items())


def test_the_same_injections_lose_the_same_packets() -> None:
    plan = lossy({2: 0.1, 5: 0.2})
    assert log_of(plan, 2000, back=2000)[0] == log_of(plan, 2000, back=2000)[0]


def test_another_seed_loses_others() -> None:
    logs = [lost_at(log_of(lossy({2: 0.1}, seed=seed), 2000)[0], 2) for seed in (1, 2)]
    assert logs[0] != logs[1]
    shared = len(set(logs[0]) & set(logs[1]))
    assert abs(shared - 2000 * 0.01) < 5 * math.sqrt(2000 * 0.01)


def test_ports_draw_independently_of_each_other() -> None:
    """Neither traffic nor loss elsewhere, nor further links, change which packets a port loses; and two
    ports lose together as often as independent ones do."""
    alone = lost_at(log_of(lossy({2: 0.1}), 5000)[0], 2)
    both, _ = log_of(lossy({2: 0.1, 5: 0.1}), 5000, back=5000)
    assert lost_at(both, 2) == alone
    assert lost_at(log_of(lossy({2: 0.1}, links=6), 5000)[0], 2) == alone
    first, second = set(alone), set(lost_at(both, 5))
    assert abs(len(first & second) - 50) < 5 * math.sqrt(50)


def test_no_loss_draws_nothing() -> None:
    """Without loss, not a bit differs: not even where other ports do lose."""
    plan = lossy({})
    log, fabric = log_of(plan, 500)
    assert not fabric.counters()["losses"].any()
    assert [departure[2] for departure in log] == [(4 + i) * MS for i in range(500)]
    assert log == log_of(lossy({3: 0.5}), 500)[0]


def test_a_cut_link_is_no_random_loss() -> None:
    fabric = VirtualFabric(lossy({2: 0.5}))
    for _ in range(100):
        fabric.inject(0, 0, SIZE, (A, B, TCP, 1000, 80))
    fabric.set_port_up(2, False, 50 * MS)
    fabric.run_until(FOREVER)
    counters = fabric.counters()
    assert counters["dropped"] == counters["drops"].sum() > 0
    assert counters["lost"] == counters["losses"].sum() > 0
    assert counters["injected"] == counters["delivered"] + counters["dropped"] + counters["lost"]


FRAME = 1514
TRACED_PORT = 2
IN_ORDER = QUEUE_NUMBERS["in-order"]


def traced(at_ms: Sequence[int], period_ms: int, queue_pkts: int = 1000) -> NetworkPlan:
    """Three links; the middle one follows the trace from A to B. The others take 1 ps per byte."""
    plan = chain([8 * 10**12] * 3, [0] * 3, queue_pkts=queue_pkts)
    columns = np.zeros(6, np.uint8), np.zeros(6, np.uint8)
    columns[0][TRACED_PORT], columns[1][TRACED_PORT] = IN_ORDER, 1
    return dataclasses.replace(
        plan, discipline=columns[0], traced=columns[1],
        opportunities_ps=np.array(at_ms, np.int64) * MS, opportunities_period_ps=period_ms * MS,
    )  # fmt: skip


def leaves_ms(plan: NetworkPlan, packets: Sequence[tuple[int, int]]) -> list[float]:
    """Send (ms, bytes) packets from A to B; return when each reaches B, less the other links' time, in ms."""
    fabric = VirtualFabric(plan)
    for at_ms, size in packets:
        fabric.inject(at_ms * MS, 0, size, (A, B, TCP, 1000, 80))
    arrived = [when for _, _, when, gone, _ in fabric.run_until(FOREVER) if not gone]
    return [round(when / MS, 3) for when in arrived]


def model(at_ms: Sequence[int], period_ms: int, packets: Sequence[tuple[int, int]]) -> list[int]:
    """Return when packets leave: an opportunity carries up to a frame of earlier data; its rest is lost."""
    waiting, left, n = [list(packet) for packet in packets], [], 0
    while waiting:
        now = n // len(at_ms) * period_ms + at_ms[n % len(at_ms)]
        room = FRAME
        while waiting and waiting[0][0] < now and room:
            sent = min(room, waiting[0][1])
            room -= sent
            waiting[0][1] -= sent
            if not waiting[0][1]:
                left.append(now)
                waiting.pop(0)
        n += 1
    return left


def test_small_packets_share_an_opportunity_and_large_ones_take_several_as_the_trace_repeats() -> None:
    assert leaves_ms(traced([2, 2, 5], 10), [(0, FRAME)] * 5) == [2, 2, 5, 12, 12]
    assert leaves_ms(traced([3, 6], 6), [(0, 500)] * 4) == [3, 3, 3, 6]
    assert leaves_ms(traced([3, 6], 6), [(0, 4000), (0, 500)]) == [9, 9]


@given(
    st.lists(st.integers(1, 20), min_size=1, max_size=12).map(sorted),
    st.lists(st.tuples(st.integers(0, 60), st.integers(1, 4000)), min_size=1, max_size=40).map(sorted),
)
def test_packets_leave_a_traced_port_as_the_model_says(
    at_ms: list[int], packets: list[tuple[int, int]]
) -> None:
    """Packets reach the port within 4 ns of their millisecond, which the model takes as before the next."""
    assert leaves_ms(traced(at_ms, 20), packets) == model(at_ms, 20, packets)


def test_counts_and_the_queue_limit_of_a_traced_port_hold() -> None:
    plan = traced([10], 10, queue_pkts=3)
    fabric = VirtualFabric(plan)
    for ms in range(5):
        fabric.inject(ms * MS, 0, FRAME, (A, B, TCP, 1000, 80))
    fabric.run_until(FOREVER)
    counters = fabric.counters()
    assert (counters["drops"][TRACED_PORT], counters["tx_packets"][TRACED_PORT]) == (2, 3)
    assert counters["injected"] == 5 == counters["delivered"] + counters["dropped"]


def test_a_cut_loses_what_waits_and_the_link_goes_on_after_it() -> None:
    fabric = VirtualFabric(traced([10], 10))
    for _ in range(3):
        fabric.inject(0, 0, FRAME, (A, B, TCP, 1000, 80))
    fabric.set_port_up(TRACED_PORT, False, 15 * MS)
    fabric.set_port_up(TRACED_PORT, True, 25 * MS)
    fabric.inject(26 * MS, 0, FRAME, (A, B, TCP, 1000, 80))
    arrived = [round(when / MS, 3) for _, _, when, gone, _ in fabric.run_until(FOREVER) if not gone]
    assert arrived == [10, 30]


@pytest.mark.parametrize(
    ("at_ms", "period_ms"), [([0, 1], 5), ([3, 2], 5), ([6], 5)], ids=["at 0", "not in order", "late"]
)
def test_what_is_no_trace_is_refused(at_ms: list[int], period_ms: int) -> None:
    with pytest.raises(ValueError, match="delivery opportunities"):
        VirtualFabric(traced(at_ms, period_ms))


def test_a_traced_port_needs_a_trace_and_a_discipline() -> None:
    plan = traced([1], 1)
    with pytest.raises(ValueError, match="opportunities"):
        VirtualFabric(dataclasses.replace(plan, opportunities_ps=np.zeros(0, np.int64)))
    with pytest.raises(ValueError, match="one by one"):
        VirtualFabric(dataclasses.replace(plan, discipline=np.zeros(6, np.uint8)))


FT4 = build("ft", {"k": 4})
TABLES = ecmp_groups(FT4)
FLOW = FiveTuple("10.0.0.2", "10.3.1.3", 6, 40000, 5001)
OTHER = FiveTuple("10.0.0.2", "10.3.1.3", 6, 40001, 5001)


def _fabric() -> VirtualFabric:
    return VirtualFabric(network_plan(FT4, TABLES, LinkSpec(10.0), "hashed", 5))


def _carried(fabric: VirtualFabric, flow: FiveTuple, when_ps: int) -> set[int]:
    """Return the ports that a packet passes."""
    before = fabric.counters()["tx_packets"].copy()
    fabric.inject(when_ps, 0, 1000, numbers(flow))
    [(_, _, _, dropped, _)] = fabric.run_until(when_ps + 10**11)
    assert not dropped
    return set((fabric.counters()["tx_packets"] - before).nonzero()[0].tolist())


def _elsewhere() -> list[int]:
    usual = path(FT4, TABLES, "hashed", 5, FLOW)
    return next(ports_along(FT4, p) for p in FT4.shortest_paths(usual[0], usual[-1]) if p != usual)


def test_the_chosen_path_is_taken_by_its_flow_alone() -> None:
    fabric, chosen = _fabric(), _elsewhere()
    usual, others = _carried(fabric, FLOW, 0), _carried(fabric, OTHER, 10**12)
    assert usual == set(ports_along(FT4, path(FT4, TABLES, "hashed", 5, FLOW)))
    fabric.set_path(numbers(FLOW), chosen)
    assert _carried(fabric, FLOW, 2 * 10**12) == set(chosen) != usual
    assert _carried(fabric, OTHER, 3 * 10**12) == others
    fabric.clear_path(numbers(FLOW))
    assert _carried(fabric, FLOW, 4 * 10**12) == usual
    fabric.clear_path(numbers(FLOW))


def test_packets_under_way_go_on_as_they_began() -> None:
    fabric, chosen = _fabric(), _elsewhere()
    usual = ports_along(FT4, path(FT4, TABLES, "hashed", 5, FLOW))
    fabric.inject(0, 0, 1000, numbers(FLOW))
    fabric.set_path(numbers(FLOW), chosen)
    fabric.run_until(FOREVER)
    assert fabric.counters()["tx_packets"].nonzero()[0].tolist() == sorted(usual)


@pytest.mark.parametrize(
    ("ports", "complaint"),
    [
        ([], "no link"),
        ([0, 10**6], "does not exist"),
        ([2, 3], "does not join"),
        ([0, 2], "does not join"),
        ([0] * 11, "more than 10 links"),
    ],
)
def test_what_is_no_path_of_the_flow_is_refused(ports: list[int], complaint: str) -> None:
    with pytest.raises((ValueError, IndexError), match=complaint):
        _fabric().set_path(numbers(FLOW), ports)
    with pytest.raises(ValueError, match="no host"):
        _fabric().set_path(numbers(FiveTuple("10.0.0.2", "10.99.0.1", 6, 1, 2)), _elsewhere())
