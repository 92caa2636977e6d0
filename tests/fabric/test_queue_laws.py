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
        self.sent_ms: dict[int, float] = {}
        self.ended: list[Departure] = []

    def send(self, at_ms: float, *, flow: int = 1, size: int = BYTES, ecn: int = 0) -> int:
        self.ended += self.fabric.run_until(round(at_ms * MS))
        five = (ip("10.0.0.1"), ip("10.0.0.3"), TCP, flow, 80)
        packet = self.fabric.inject(round(at_ms * MS), 0, size, five, ecn)
        self.sent_ms[packet] = at_ms
        return packet

    def constant(self, load: float, seconds: float, **packet: int) -> None:
        for place in range(round(load * SECOND * seconds)):
            self.send(place / load, **packet)

    def drops_ms(self) -> list[float]:
        """Return when packets were dropped, in milliseconds."""
        self.ended += self.fabric.run_until(10**17)
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
        load.ended += load.fabric.run_until(round(2500 * MS))
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


def test_every_queue_states_usual_settings_in_their_range() -> None:
    for kind in queue_kinds():
        for setting in kind.settings:
            assert setting.least <= setting.usual <= setting.most, (kind.name, setting.name)
            assert setting.words
