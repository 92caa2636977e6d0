"""The control law of each queue discipline, exactly: which packet it drops or marks, and when."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest

from fabric._core import VirtualFabric, queue_kinds
from fabric.readings import Departure
from tests.support.core_networks import BOTTLENECK, TCP, bottleneck, ip

MS = 10**9
ECT, CE = 2, 3
BYTES = 1250
"""A packet takes 1 ms at 10 Mb/s."""
SECOND = 1000


class Overload:
    """Packets that arrive at the bottleneck, which sends one a millisecond, whatever becomes of them."""

    def __init__(self, discipline: str, settings: dict[str, float], *, queue_pkts: int = 0) -> None:
        plan = bottleneck(discipline, (10**13, 10_000_000), queue_pkts=queue_pkts)
        self.fabric = VirtualFabric(replace(plan, queue_settings={discipline: settings}, max_packets=1 << 18))
        self.places: dict[int, int] = {}
        self.sent = 0
        self.ended: list[Departure] = []
        """With the place of each packet among all that were sent instead of its number."""

    def run(self, until_ps: int) -> None:
        for packet, where, when, dropped, ecn in self.fabric.run_until(until_ps):
            self.ended.append((self.places.pop(packet), where, when, dropped, ecn))

    def send(self, at_ms: float, *, flow: int = 1, size: int = BYTES, ecn: int = 0) -> int:
        self.run(round(at_ms * MS))
        five = (ip("10.0.0.1"), ip("10.0.0.3"), TCP, flow, 80)
        packet = self.fabric.inject(round(at_ms * MS), 0, size, five, ecn)
        self.places[packet] = self.sent
        self.sent += 1
        return self.places[packet]

    def constant(self, load: float, seconds: float, **packet: int) -> None:
        for place in range(round(load * SECOND * seconds)):
            self.send(place / load, **packet)

    def drops_ms(self) -> list[float]:
        """Return when packets were dropped, in milliseconds."""
        self.run(10**17)
        return [when / MS for _, _, when, dropped, _ in self.ended if dropped]

    def counter(self, name: str) -> int:
        return int(self.fabric.counters()[name][BOTTLENECK])  # type: ignore[literal-required]


CODEL = {"target_us": 5000.0, "interval_us": 100_000.0}


def due_ms(first_ms: float, drops: int) -> list[float]:
    """Return when CoDel's drops are due: interval / sqrt(n) after the nth (RFC 8289, section 3.3)."""
    gaps = (100 / math.sqrt(n) for n in range(1, drops))
    return list(itertools.accumulate(gaps, initial=first_ms))


@pytest.mark.parametrize("ecn", [0, 1])
def test_codel_acts_after_an_interval_and_then_faster_with_the_square_root_of_the_count(ecn: int) -> None:
    """Each drop happens at the first transmission after it is due: once a millisecond."""
    load = Overload("codel", {**CODEL, "ecn": float(ecn)})
    load.constant(2.0, 2.5, ecn=ECT if ecn else 0)
    # Packet n arrives at n / 2 ms and begins at n ms, so that number 10 is the first to wait for 5 ms.
    if ecn:
        load.run(2500 * MS)
        marked = [when / MS - 1 for _, _, when, dropped, field in load.ended if field == CE and not dropped]
        acted = marked
        assert load.counter("marks") >= len(marked) > 100
        assert load.counter("early_drops") == 0
    else:
        acted = [at for at in load.drops_ms() if at <= 2500]
        assert load.counter("early_drops") == load.counter("drops") == len(load.drops_ms())
    expected = [at for at in due_ms(110, 200) if at <= 2400]
    assert len(expected) > 100
    for due, at in zip(expected, acted, strict=False):
        assert due <= at + 1e-3 and at - due <= 1 + 1e-3


def test_codel_spares_a_queue_that_is_long_for_less_than_an_interval_or_holds_one_packet() -> None:
    burst = Overload("codel", CODEL)
    for _ in range(100):
        burst.send(0)
    assert burst.drops_ms() == []
    slow = Overload("codel", {**CODEL, "target_us": 1.0, "interval_us": 1.0})
    for at in range(0, 2000, 2):  # two at once: the second waits for 1 ms, but nothing waits behind it
        slow.send(at), slow.send(at)
    assert slow.drops_ms() == []


def test_codel_resumes_near_the_rate_at_which_it_stopped() -> None:
    """RFC 8289, section 5.6: count goes on from the difference if the pause was shorter than 16 intervals."""

    def second_gap_ms(pause_ms: float) -> float:
        load = Overload("codel", CODEL)
        load.constant(2.0, 1.0)
        queue_empty_ms = 2000.0
        for place in range(4000):
            load.send(queue_empty_ms + pause_ms + place / 2)
        again = [at for at in load.drops_ms() if at > queue_empty_ms + pause_ms]
        return again[1] - again[0]

    assert second_gap_ms(5000) == pytest.approx(100, abs=1.5)
    assert second_gap_ms(100) < 30


FAIR = {"flows": 65_536.0}
"""So many queues that the few flows of a test do not share one."""
BULK = 10


def delivered(load: Overload) -> list[tuple[int, float]]:
    """Return the packets that arrived and when, in milliseconds, in order."""
    load.run(10**17)
    return [(packet, when / MS) for packet, _, when, dropped, _ in load.ended if not dropped]


@pytest.mark.parametrize("name", ["drr", "fq_codel"])
def test_bulk_flows_share_the_link_by_bytes_whatever_their_packets(name: str) -> None:
    load = Overload(name, FAIR)
    flows: dict[int, tuple[int, int]] = {}
    for flow, size in enumerate((1500, 750, 300, 100)):
        for _ in range(600_000 // size):
            flows[load.send(0, flow=flow, size=size)] = (flow, size)
    octets = [0] * 4
    for packet, at in delivered(load):
        if at < 1000:
            octets[flows[packet][0]] += flows[packet][1]
    # Within the deficit of a round: a quantum and a packet.
    assert max(octets) - min(octets) <= 1514 + 1500
    assert sum(octets) == pytest.approx(1_250_000, rel=0.01)


def test_a_sparse_flow_of_fq_codel_waits_for_one_packet_of_bulk_at_most() -> None:
    """RFC 8290, section 4.2: a queue that was empty is new, and new queues go first."""
    load = Overload("fq_codel", {**FAIR, "target_us": 1e9})
    for flow in range(BULK):
        for _ in range(100):
            load.send(0, flow=10 + flow)
    sparse = {load.send(50.3 + 20 * turn, flow=1, size=125): 50.3 + 20 * turn for turn in range(40)}
    waited = [at - sparse[packet] for packet, at in delivered(load) if packet in sparse]
    assert len(waited) == 40
    assert max(waited) <= 1.0 + 0.1 + 1e-3, "the rest of a packet of 1 ms, and its own 0.1 ms"


def test_a_full_fq_codel_drops_half_of_the_longest_flow_or_64_packets_from_its_head() -> None:
    load = Overload("fq_codel", {**FAIR, "target_us": 1e9}, queue_pkts=300)
    heavy = [load.send(0, flow=1) for _ in range(200)]
    for _ in range(99):
        load.send(0, flow=2, size=1000)
    last = load.send(0, flow=2, size=1000)  # the 300th: the port is full
    load.run(MS // 2)
    assert load.counter("drops") == 0
    newcomer = load.send(0.5, flow=2, size=1000)
    load.run(MS // 2 + 2000)
    assert {packet for packet, *_, dropped, _ in load.ended if dropped} == set(heavy[1:65])
    assert load.counter("pushed_out") == 64 and load.counter("early_drops") == 0
    assert {last, newcomer} <= {packet for packet, _ in delivered(load)}


def test_a_full_drr_drops_the_latest_packet_of_the_longest_flow() -> None:
    load = Overload("drr", FAIR, queue_pkts=10)
    long = [load.send(0, flow=1) for _ in range(8)]
    short = [load.send(0, flow=2) for _ in range(4)]
    left = [packet for packet, _ in delivered(load)]
    assert left == [
        long[0],
        long[1],
        short[0],
        long[2],
        short[1],
        long[3],
        short[2],
        long[4],
        short[3],
        long[5],
    ]
    assert load.counter("pushed_out") == 2


def test_gaps_between_the_drops_of_red_are_uniform() -> None:
    """Floyd and Jacobson 1993, section 7: uniform in 1 .. 1/p. Every packet finds ten waiting."""
    load = Overload("red", {"weight": 1.0, "max_p": 0.2})  # p = 0.2 (10 - 5) / (15 - 5)
    gap, gaps = 0, list[int]()
    for at in range(6000):
        now_ms = at + (0.5 if at else 0.0)
        load.run(round(now_ms * MS))
        while load.counter("queued_pkts") < 12:  # one in transmission; again, until the queue has taken one
            before = load.counter("drops")
            load.send(now_ms)
            load.run(round(now_ms * MS) + 1500)
            now_ms, gap = now_ms + 2e-6, gap + 1
            if load.counter("drops") > before:
                gaps.append(gap)
                gap = 0
    gaps = gaps[20:]  # without the time in which the queue was filled
    assert len(gaps) > 800
    assert set(gaps) == set(range(1, 11))
    counts = [gaps.count(each) for each in range(1, 11)]
    mean = sum(counts) / 10
    assert sum((count - mean) ** 2 / mean for count in counts) < 27.9, "chi-squared, 9 degrees, 0.001"


def test_the_average_of_red_is_exponential_and_falls_while_the_port_is_idle() -> None:
    weight, limit = 0.01, 5.0
    load = Overload("red", {"weight": weight, "min_pkts": limit - 1e-6, "max_pkts": limit, "gentle": 0})
    average, dropped_from = 0.0, 0
    for place in range(100):  # the first one is in transmission
        average += weight * (max(0, place - 1) - average)
        dropped_from = dropped_from or (place if average >= limit else 0)
        load.send(0)
    first = len([1 for each in delivered(load)])
    assert first == dropped_from > 10
    # 1000 bytes an idle 0.8 ms: the average is a hundredth after 459 of them.
    idle_from = load.ended[-1][2] / MS
    load.send(idle_from + 0.8 * 459)
    taken = [load.send(idle_from + 0.8 * 459) for _ in range(20)]
    assert set(taken) <= {packet for packet, _ in delivered(load)}


def test_adaptive_red_keeps_the_average_half_way_between_its_thresholds() -> None:
    held: dict[float, list[int]] = {}
    for adaptive in (0.0, 1.0):
        load = Overload("red", {"max_p": 0.02, "adaptive": adaptive})
        held[adaptive] = []
        for place in range(round(1.2 * 60 * SECOND)):
            load.send(place / 1.2)
            if place % 10 == 0 and place > 1.2 * 30 * SECOND:
                held[adaptive].append(load.counter("queued_pkts"))
    means = {adaptive: sum(found) / len(found) for adaptive, found in held.items()}
    assert means[0.0] > 15
    assert 8.5 < means[1.0] < 12.5, "5 to 15, and one in transmission"


def test_pie_spares_a_burst_that_follows_a_rest() -> None:
    """RFC 8033, section 4.4: 150 ms."""
    load = Overload("pie", {})
    load.constant(2.0, 0.149)
    load.send(5000)
    for place in range(200):
        load.send(5000.3 + place / 2)
    assert load.drops_ms() == []


@pytest.mark.parametrize("ratio", [1.1, 1.25])
def test_pie_holds_the_wait_at_its_target_whatever_the_overload(ratio: float) -> None:
    load = Overload("pie", {})
    load.constant(ratio, 40)
    drops = [at for at in load.drops_ms() if 20_000 < at < 40_000]
    assert len(drops) / (20 * SECOND * ratio) == pytest.approx(1 - 1 / ratio, rel=0.05)
    waited = [when / MS - place / ratio for place, _, when, dropped, _ in load.ended
              if not dropped and 20_000 < place / ratio < 40_000]  # fmt: skip
    assert sum(waited) / len(waited) == pytest.approx(15 + 1, abs=1), "and its own transmission"
    # Section 5.4: the probabilities of the packets in between sum up to 0.85 at least.
    packets = [place for place, *_, dropped, _ in load.ended if dropped and place > 20_000 * ratio]
    assert min(after - before for before, after in itertools.pairwise(sorted(packets))) >= 2


def test_pie_drops_what_it_could_mark_above_a_probability_of_a_tenth() -> None:
    marks = {}
    for ratio in (1.02, 1.5):
        load = Overload("pie", {"ecn": 1.0}, queue_pkts=1000)
        load.constant(ratio, 20, ecn=ECT)
        load.run(10**17)
        marks[ratio] = (load.counter("marks"), load.counter("early_drops"))
    assert marks[1.02][0] > 0
    assert marks[1.5][1] > marks[1.5][0] > 0


def test_the_phantom_queue_marks_when_its_excess_over_the_drain_has_come_to_the_threshold() -> None:
    """At 96 % of the rate each packet leaves 1250 (1 - 95/96) bytes to the one behind it."""
    for load_pct, first in ((94, None), (96, 2 + math.floor(3000 / (BYTES / 96)))):
        load = Overload("phantom", {"mark_bytes": 3000.0})
        load.constant(load_pct / 100, 2, ecn=ECT)
        load.run(10**17)
        assert load.counter("max_queue_pkts") == 1
        fields = [field for *_, field in sorted(load.ended)]
        marked = [place for place, field in enumerate(fields, 1) if field == CE]
        assert marked == (list(range(first, len(fields) + 1)) if first else [])


def test_the_phantom_queue_marks_neither_a_lone_packet_nor_a_short_burst() -> None:
    load = Overload("phantom", {})
    load.constant(0.1, 2, ecn=ECT)
    for _ in range(5):
        load.send(3000, ecn=ECT)
    load.run(10**17)
    assert load.counter("marks") == 0


def test_red_takes_packets_of_an_idle_port_again() -> None:
    """Refused packets leave it idle, so its average falls on."""
    load = Overload("red", {"gentle": 0.0, "weight": 0.1})
    for _ in range(100):
        load.send(0)
    load.run(MS)
    assert load.counter("early_drops") > 0
    probes = [load.send(1000 + 2 * number) for number in range(2000)]
    arrived = {packet for packet, _ in delivered(load)}
    assert len(arrived.intersection(probes)) > 1900


@pytest.mark.parametrize("name", ["codel", "fq_codel", "red"])
def test_a_queue_with_ecn_marks_those_who_can_be_marked_and_drops_the_others(name: str) -> None:
    for ecn in (0, ECT):
        load = Overload(name, {"ecn": 1.0})
        load.constant(1.15, 3, ecn=ecn)
        dropped = len(load.drops_ms())
        assert load.counter("early_drops") == load.counter("drops") == dropped
        marked = len([1 for *_, field in load.ended if field == CE])
        assert load.counter("marks") == marked
        assert (marked > 20) == (ecn == ECT)
        assert (dropped > 20) == (ecn == 0) or name == "red", "RED drops beyond twice max_pkts"


def test_every_queue_states_usual_settings_in_their_range() -> None:
    for kind in queue_kinds():
        for setting in kind.settings:
            assert setting.least <= setting.usual <= setting.most, (kind.name, setting.name)
            assert setting.words
