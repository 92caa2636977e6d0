"""Metrics of robustness: retransmissions beside those of uncoupled subflows, and what link failures cost."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from analysis import robustness
from analysis.quantities import Quantity
from harness.metrics.measures import OfPoint, over_tcp, ratio, table, together
from harness.metrics.metric import Metric
from harness.results.point_results import Judged
from model.congestion import BASELINE, COUPLED_DEFAULT
from model.links import outage
from model.result import Table
from model.spec import RunSpec
from model.transports import algorithm


def _any_cc(spec: RunSpec) -> RunSpec:
    return dataclasses.replace(spec, transport=dataclasses.replace(spec.transport, cc=BASELINE))


def _while_down(value_of: Callable[[Table, tuple[float, float]], float | None]) -> OfPoint:
    """Return a function: `value_of` a point's goodput over time and its outage (start and end in s); None
    without either."""

    def of(point: Judged) -> float | None:
        goodput, down = table(point, "goodput"), outage(point.spec)
        return value_of(goodput, down) if goodput is not None and down else None

    return of


def _stalled_pct(point: Judged) -> float | None:
    rate_mbps = point.spec.link.rate_mbps
    return _while_down(lambda goodput, down: robustness.stalled_pct(goodput, down, rate_mbps))(point)


def _retransmitted_over_uncoupled(points: Sequence[Judged]) -> float | None:
    percent = {_algorithm(p.spec): robustness.retransmitted_pct(p.point.flows) for p in points}
    return ratio(percent.get(COUPLED_DEFAULT), percent.get(BASELINE))


def _algorithm(spec: RunSpec) -> str:
    return algorithm(spec.transport.cc, spec.transport.subflows, spec.routing)


RETRANSMITTED_OVER_UNCOUPLED = Metric(
    Quantity(
        "resent_over_uncoupled",
        "x uncoupled",
        "segments retransmitted for each delivered one, over those of uncoupled subflows",
    ),
    over=together(_retransmitted_over_uncoupled),
    setting=_any_cc,
)
KEPT_OVER_TCP = Metric(
    Quantity(
        "kept_over_tcp", "x TCP", "the share of the goodput that remains while links are down, over TCP's"
    ),
    over=over_tcp(_while_down(robustness.kept_pct)),
)
STALLED_OVER_TCP = Metric(
    Quantity("stalled_over_tcp", "x TCP", "the share of flows that stall while links are down, over TCP's"),
    over=over_tcp(_stalled_pct),
)
