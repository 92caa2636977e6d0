"""What theory's statements are about (statements.py), as numbers read off stored points."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Sequence

from analysis import laws
from analysis.conservation import unaccounted, undelivered_bytes
from harness.claims.measures import (
    Measure,
    Quantity,
    each,
    each_lane,
    table,
    together,
)
from harness.results.summary import Judged
from model.spec import RunSpec

PING_BYTES = 98
ROUNDING = 1e-3
"""Of a packet: samples are rounded to nanoseconds."""


def _any_rate(spec: RunSpec) -> RunSpec:
    return dataclasses.replace(spec, link=dataclasses.replace(spec.link, rate_mbps=1.0))


def _any_loss(spec: RunSpec) -> RunSpec:
    return dataclasses.replace(spec, link=dataclasses.replace(spec.link, loss=0.0))


def _shortfall_bytes(points: Sequence[Judged]) -> float | None:
    """By how much a single flow misses what arithmetic gives it, at that of several link rates where it is
    most."""
    missed = [
        laws.fill_bytes(p.spec.link.rate_mbps, p.spec.seconds) - flow.bytes_received
        for p in points
        for flow in p.point.flows
    ]
    return max(missed, key=abs, default=None)


def _fill_pct(points: Sequence[Judged]) -> float | None:
    """The least share of it that a flow had."""
    shares = [
        100 * flow.bytes_received / laws.fill_bytes(p.spec.link.rate_mbps, p.spec.seconds)
        for p in points
        for flow in p.point.flows
    ]
    return min(shares, default=None)


def _rounds(points: Sequence[Judged], within: Callable[[float], bool]) -> list[tuple[float, float, float]]:
    """Of every flow of points whose loss is `within`: what share was lost, packets a round trip, and the
    round trip in ms."""
    shares = [(laws.lost_share(p.point.ports), p) for p in points]
    return [
        (loss, pkts, flow.srtt_ms_mean)
        for loss, p in shares
        if loss > 0 and within(p.spec.link.loss)
        for flow in p.point.flows
        if (pkts := laws.pkts_per_round(flow)) > 0
    ]


def _rare(loss: float) -> bool:
    return loss <= laws.TIMEOUTS_FROM


def _mathis_slope(points: Sequence[Judged]) -> float | None:
    found = _rounds(points, _rare)
    if len({loss for loss, _, _ in found}) < 3:
        return None
    logs = [(math.log(loss), math.log(pkts)) for loss, pkts, _ in found]
    return statistics.linear_regression(*zip(*logs, strict=True)).slope


def _mathis_constant(points: Sequence[Judged]) -> float | None:
    found = [pkts * math.sqrt(loss) for loss, pkts, _ in _rounds(points, _rare)]
    return statistics.fmean(found) if found else None


def _over_padhye(points: Sequence[Judged]) -> float | None:
    """Of what it gives, at probabilities where timeouts tell."""
    found = _rounds(points, lambda loss: not _rare(loss))
    ratios = [pkts / laws.padhye_pkts(loss, laws.MIN_RTO_MS / rtt_ms) for loss, pkts, rtt_ms in found]
    return statistics.fmean(ratios) if ratios else None


def each_saw(value_of: Callable[[laws.Sawtooth], float]) -> Measure:
    """`value_of` every saw of the first flow's window."""

    def values(point: Judged) -> list[float]:
        sockets = table(point, "sockets")
        return [] if sockets is None else [value_of(saw) for saw in laws.sawteeth(sockets)]

    return each_lane(values)


def waits(point: Judged) -> laws.Waits | None:
    """Pings beside the queue they found; None where either was not sampled."""
    tables = [table(point, name) for name in ("pings", "queues", "queue_times")]
    pings, queues, times = tables
    if pings is None or queues is None or times is None:
        return None
    return laws.waits(pings, queues, times, laws.way_out(point.point.ports))


def _wait_pkts(point: Judged) -> float | None:
    found = waits(point)
    return None if found is None else found.line[0] / laws.packet_ms(point.spec.link.rate_mbps)


def _empty_way_ms(point: Judged) -> float | None:
    found = waits(point)
    return None if found is None else found.line[1]


def _waits_exact_pct(point: Judged) -> float | None:
    """Pings that waited for the packets before them, and no less than for those not yet under way."""
    found = waits(point)
    if found is None:
        return None
    packet_ms, empty_ms = laws.packet_ms(point.spec.link.rate_mbps), empty_way_ms(point.spec)
    behind = (found.out_ms - empty_ms) / packet_ms
    least, most = found.queued - found.under_way - ROUNDING, found.queued + ROUNDING
    exact = (behind > least) & (behind < most)
    return 100 * float(exact.mean())


def empty_way_ms(spec: RunSpec) -> float:
    """One way of a ping through an empty dumbbell: three links, the outer ones `access` times as fast."""
    sent_ms = PING_BYTES * 8 / spec.link.rate_mbps / 1000
    return 3 * spec.link.delay_us / 1000 + sent_ms * (1 + 2 / spec.topology.params.get("access", 1))


LAWS: dict[str, Quantity] = {
    "shortfall_bytes": Quantity(
        "bytes", "what a flow misses of what its link carries", together(_shortfall_bytes), setting=_any_rate
    ),
    "fill_pct": Quantity(
        "% of the payload there is room for",
        "a single flow's goodput",
        together(_fill_pct),
        setting=_any_rate,
    ),
    "window_top_pkts": Quantity(
        "packets", "the window when it is halved", each_saw(lambda s: s.top_pkts), "saw"
    ),
    "saw_rounds": Quantity("round trips", "how long a window grows", each_saw(lambda s: s.rounds), "saw"),
    "saw_mean_pct": Quantity(
        "% of its top", "the mean window over round trips", each_saw(lambda s: s.mean_pct), "saw"
    ),
    "mathis_slope": Quantity(
        "", "how goodput follows the loss rate, on log axes", together(_mathis_slope), setting=_any_loss
    ),
    "mathis_constant": Quantity(
        "", "packets a round trip times sqrt(p)", together(_mathis_constant), setting=_any_loss
    ),
    "over_padhye": Quantity(
        "x the model", "goodput where timeouts tell", together(_over_padhye), setting=_any_loss
    ),
    "wait_pkts": Quantity("packet times", "what a ping waits for each packet queued", each(_wait_pkts)),
    "empty_way_ms": Quantity("ms", "a ping's way out without a queue", each(_empty_way_ms)),
    "waits_exact_pct": Quantity(
        "% of pings", "pings that wait for what is queued and for nothing else", each(_waits_exact_pct)
    ),
    "unaccounted_pkts": Quantity(
        "packets", "packets that appear or vanish", each(lambda p: float(unaccounted(p.point.ports)))
    ),
    "undelivered_bytes": Quantity(
        "bytes", "bytes sent and not received", each(lambda p: float(undelivered_bytes(p.point.flows)))
    ),
}
