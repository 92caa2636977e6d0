"""Metrics of the validation experiments: what arithmetic and theory say about links, windows and queues."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Sequence

from analysis import laws, quantities
from analysis.plausibility import unaccounted, undelivered_bytes
from analysis.quantities import Quantity
from harness.metrics.measures import Measure, each_replica, table, together
from harness.metrics.metric import Metric
from harness.results.point_results import Judged
from model.spec import RunSpec

PING_BYTES = 98
ROUNDING = 1e-3
"""Part of a packet: samples are rounded to nanoseconds."""


def _any_rate(spec: RunSpec) -> RunSpec:
    return dataclasses.replace(spec, link=dataclasses.replace(spec.link, rate_mbps=1.0))


def _any_loss(spec: RunSpec) -> RunSpec:
    return dataclasses.replace(spec, link=dataclasses.replace(spec.link, loss=0.0))


def _shortfall_bytes(points: Sequence[Judged]) -> float | None:
    """Return the bytes of its link's capacity that a single flow left unused, at the worst rate."""
    missed = [
        laws.fill_bytes(p.spec.link.rate_mbps, p.spec.seconds) - flow.bytes_received
        for p in points
        for flow in p.point.flows
    ]
    return max(missed, key=abs, default=None)


def _fill_pct(points: Sequence[Judged]) -> float | None:
    """Return the smallest share of its link's capacity, in %, that a flow used."""
    shares = [
        100 * flow.bytes_received / laws.fill_bytes(p.spec.link.rate_mbps, p.spec.seconds)
        for p in points
        for flow in p.point.flows
    ]
    return min(shares, default=None)


def _rounds(points: Sequence[Judged], within: Callable[[float], bool]) -> list[tuple[float, float, float]]:
    """Return the share lost, the packets per round trip, and the round trip in ms of each flow of points
    whose loss is `within`."""
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
    """Return packets per round trip over those of Padhye's model, at loss rates where timeouts matter."""
    found = _rounds(points, lambda loss: not _rare(loss))
    ratios = [pkts / laws.padhye_pkts(loss, laws.MIN_RTO_MS / rtt_ms) for loss, pkts, rtt_ms in found]
    return statistics.fmean(ratios) if ratios else None


def each_sawtooth(value_of: Callable[[laws.Sawtooth], float]) -> Measure:
    """Return a measure: `value_of` each sawtooth of the first flow's window."""

    def values(point: Judged) -> list[float]:
        sockets = table(point, "sockets")
        return [] if sockets is None else [value_of(saw) for saw in laws.sawteeth(sockets)]

    return each_replica(values)


def waits(point: Judged) -> laws.Waits | None:
    """Return the pings with the queue length that each found; None where either was not sampled."""
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
    """Return the share of pings that waited for the packets ahead, and at least for those still queued."""
    found = waits(point)
    if found is None:
        return None
    packet_ms, empty_ms = laws.packet_ms(point.spec.link.rate_mbps), empty_way_ms(point.spec)
    behind = (found.out_ms - empty_ms) / packet_ms
    least, most = found.queued - found.under_way - ROUNDING, found.queued + ROUNDING
    exact = (behind > least) & (behind < most)
    return 100 * float(exact.mean())


def empty_way_ms(spec: RunSpec) -> float:
    """Return the one-way delay of a ping through an empty dumbbell, in ms: three links, the outer ones
    `access` times as fast."""
    sent_ms = PING_BYTES * 8 / spec.link.rate_mbps / 1000
    return 3 * spec.link.delay_us / 1000 + sent_ms * (1 + 2 / spec.topology.number("access", 1))


SHORTFALL_BYTES = Metric(
    Quantity("shortfall_bytes", "bytes", "the bytes of its link's capacity that a flow does not use"),
    over=together(_shortfall_bytes), setting=_any_rate,
)  # fmt: skip
FILL_PCT = Metric(
    Quantity("fill_pct", "% of the payload that fits", "the goodput of a single flow"),
    over=together(_fill_pct), setting=_any_rate,
)  # fmt: skip
WINDOW_TOP_PKTS = Metric(
    quantities.WINDOW_TOP_PKTS, over=each_sawtooth(lambda saw: saw.top_pkts), repeats="cycle",
)  # fmt: skip
SAWTOOTH_ROUNDS = Metric(
    Quantity("saw_rounds", "round trips", "how long a window grows"),
    over=each_sawtooth(lambda saw: saw.rounds), repeats="cycle",
)  # fmt: skip
SAWTOOTH_MEAN_PCT = Metric(
    Quantity("saw_mean_pct", "% of its top", "the mean window over round trips"),
    over=each_sawtooth(lambda saw: saw.mean_pct), repeats="cycle",
)  # fmt: skip
MATHIS_SLOPE = Metric(
    Quantity("mathis_slope", "", "the slope of goodput against the loss rate, on log axes"),
    over=together(_mathis_slope), setting=_any_loss,
)  # fmt: skip
MATHIS_CONSTANT = Metric(
    Quantity("mathis_constant", "", "packets per round trip times sqrt(p)"),
    over=together(_mathis_constant), setting=_any_loss,
)  # fmt: skip
OVER_PADHYE = Metric(
    Quantity("over_padhye", "x the model", "the goodput where timeouts matter"),
    over=together(_over_padhye), setting=_any_loss,
)  # fmt: skip
WAIT_PKTS = Metric(
    Quantity("wait_pkts", "packet times", "how long a ping waits for each queued packet"), _wait_pkts
)
EMPTY_WAY_MS = Metric(quantities.EMPTY_WAY_MS, _empty_way_ms)
WAITS_EXACT_PCT = Metric(
    Quantity("waits_exact_pct", "% of pings", "pings that wait exactly for what is queued"), _waits_exact_pct
)
UNACCOUNTED_PKTS = Metric(
    Quantity("unaccounted_pkts", "packets", "packets that appear or vanish"),
    lambda p: float(unaccounted(p.point.ports)),
)  # fmt: skip
UNDELIVERED_BYTES = Metric(
    Quantity("undelivered_bytes", "bytes", "bytes sent and not received"),
    lambda p: float(undelivered_bytes(p.point.flows)),
)  # fmt: skip
