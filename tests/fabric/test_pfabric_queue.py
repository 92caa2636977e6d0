"""pFabric's queue, and the 16 bands of the CS244 2017 reproduction, against slow models that keep a list."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from fabric._core import VirtualFabric
from fabric.plan import NetworkPlan
from tests.support.core_networks import BOTTLENECK, TCP, bottleneck, ip

BYTE_PS = 8_000
"""At 1 Gb/s."""
FOREVER = 10**17
NAMES = {"pfabric": (True, True), "pfabric_scheduling": (True, False), "pfabric_dropping": (False, True)}
"""Whether each discipline sends by rank, and drops by rank."""
LARGEST = 20_000 * 1460
BANDS = 16


@dataclass(frozen=True)
class Sent:
    """A packet: when it is at the bottleneck (ps), its size in bytes, rank, and flow."""

    at_ps: int
    size: int
    rank: int
    flow: int


def switch(discipline: str, queue_pkts: int = 0, queue_bytes: int = 0) -> NetworkPlan:
    """The senders' links have a negligible transmission time, the bottleneck 1 Gb/s."""
    limits = {"queue_pkts": queue_pkts, "queue_bytes": queue_bytes}
    return bottleneck(discipline, (8_000_000_000_000, 1_000_000_000), **limits)


def traffic(seed: int, packets: int = 300, load: float = 1.5, flows: int = 6, ranks: int = 8) -> list[Sent]:
    """Packets at distinct random times, `load` times what the port carries. Few ranks, so that many tie."""
    rng = random.Random(seed)
    span_ps = round(packets * 800 * BYTE_PS / load)
    times = sorted(rng.sample(range(span_ps), packets))
    return [Sent(t, rng.randint(40, 1500), rng.randrange(ranks), rng.randrange(flows)) for t in times]


def played(plan: NetworkPlan, sent: Sequence[Sent]) -> tuple[dict[int, int], set[int], VirtualFabric]:
    """Return when each packet has left the bottleneck, and those dropped, by place in `sent`."""
    fabric = VirtualFabric(plan)
    ids: dict[int, int] = {}
    left: dict[int, int] = {}
    dropped: set[int] = set()

    def note(until_ps: int) -> None:
        for packet, _, when, was_dropped, _ in fabric.run_until(until_ps):
            place = ids.pop(packet)
            if was_dropped:
                dropped.add(place)
            else:
                left[place] = when

    for place, each in enumerate(sent):
        injected_ps = each.at_ps - each.size
        note(injected_ps)
        flow = (ip("10.0.0.1"), ip("10.0.0.3"), TCP, 1000 + each.flow, 80)
        ids[fabric.inject(injected_ps, 0, each.size, flow, rank=each.rank)] = place
    note(FOREVER)
    assert not ids and fabric.counters()["in_flight"] == 0
    return left, dropped, fabric


class Model:
    """One port. The packet in transmission counts against both limits and cannot be dropped."""

    def __init__(self, by_rank: tuple[bool, bool], queue_pkts: int, queue_bytes: int) -> None:
        self.schedules, self.drops = by_rank
        self.queue_pkts, self.queue_bytes = queue_pkts, queue_bytes
        self.waiting: list[tuple[int, Sent]] = []
        self.sending: tuple[int, Sent, int] | None = None
        self.left: dict[int, int] = {}
        self.dropped: set[int] = set()
        self.pushed_out = 0

    def arrive(self, place: int, packet: Sent) -> None:
        self.advance(packet.at_ps)
        while not self._fits(packet):
            worst = max([*self.waiting, (place, packet)], key=lambda one: (one[1].rank, one[0]))
            if not self.drops or worst[0] == place:
                self.dropped.add(place)
                return
            self.waiting.remove(worst)
            self.dropped.add(worst[0])
            self.pushed_out += 1
        self.waiting.append((place, packet))
        if self.sending is None:
            self._begin(packet.at_ps)

    def advance(self, now_ps: int) -> None:
        while self.sending is not None and self.sending[2] <= now_ps:
            place, _, end_ps = self.sending
            self.left[place] = end_ps
            self.sending = None
            self._begin(end_ps)

    def _fits(self, packet: Sent) -> bool:
        here = [each for _, each in self.waiting] + ([self.sending[1]] if self.sending else [])
        full = self.queue_pkts and len(here) >= self.queue_pkts
        heavy = self.queue_bytes and sum(each.size for each in here) + packet.size > self.queue_bytes
        return not full and not heavy

    def _begin(self, at_ps: int) -> None:
        if not self.waiting:
            return
        first = self._next()
        self.waiting.remove(first)
        self.sending = (*first, at_ps + first[1].size * BYTE_PS)

    def _next(self) -> tuple[int, Sent]:
        if not self.schedules:
            return self.waiting[0]
        flow = min(self.waiting, key=lambda one: (one[1].rank, one[0]))[1].flow
        return next(one for one in self.waiting if one[1].flow == flow)


def modelled(model: Model, sent: Sequence[Sent]) -> Model:
    for place, packet in enumerate(sent):
        model.arrive(place, packet)
    model.advance(FOREVER)
    return model


@pytest.mark.parametrize("limits", [(0, 0), (8, 0), (1, 0), (0, 9_000), (12, 6_000)])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(4))
def test_each_packet_leaves_or_is_dropped_as_in_the_slow_model(
    name: str, limits: tuple[int, int], seed: int
) -> None:
    sent = traffic(seed)
    left, dropped, fabric = played(switch(name, *limits), sent)
    model = modelled(Model(NAMES[name], *limits), sent)
    assert left == model.left
    assert dropped == model.dropped
    counters = fabric.counters()
    assert int(counters["drops"][BOTTLENECK]) == len(dropped)
    assert int(counters["pushed_out"][BOTTLENECK]) == model.pushed_out
    assert bool(dropped) == (limits != (0, 0))


def test_packets_without_a_rank_go_last() -> None:
    fabric = VirtualFabric(switch("pfabric"))
    flows = [(ip("10.0.0.1"), ip("10.0.0.3"), TCP, port, 80) for port in (1, 2, 3)]
    first = fabric.inject(0, 0, 1500, flows[0])
    unranked = fabric.inject(10, 0, 100, flows[1])
    ranked = fabric.inject(20, 0, 100, flows[2], rank=2**31)
    assert [departure[0] for departure in fabric.run_until(FOREVER)] == [first, ranked, unranked]


def band(packet: Sent) -> int:
    return min(BANDS - 1, packet.rank // (LARGEST // BANDS))


class Bands(Model):
    """The earliest packet of the first band that has one goes next."""

    def _next(self) -> tuple[int, Sent]:
        return min(self.waiting, key=lambda one: (band(one[1]), one[0]))


@pytest.mark.parametrize("limits", [(0, 0), (8, 0), (0, 9_000)])
@pytest.mark.parametrize("seed", range(3))
def test_bands_are_served_in_order_and_a_full_queue_drops_the_newcomer(
    limits: tuple[int, int], seed: int
) -> None:
    sent = traffic(seed, ranks=LARGEST + LARGEST // 4)
    left, dropped, _ = played(switch("pfabric_bands", *limits), sent)
    model = modelled(Bands((True, False), *limits), sent)
    assert left == model.left
    assert dropped == model.dropped
    assert bool(dropped) == bool(any(limits))
