"""What statements on robustness are about (robustness_statements.py), as numbers read off stored points."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from analysis import robustness
from harness.claims.measures import (
    OfPoint,
    Quantity,
    over_tcp,
    ratio,
    table,
    together,
)
from harness.results.summary import Judged
from model.congestion import BASELINE, COUPLED_DEFAULT
from model.link_events import outage
from model.result import Table
from model.spec import RunSpec
from model.transports import algorithm


def _any_cc(spec: RunSpec) -> RunSpec:
    return dataclasses.replace(spec, transport=dataclasses.replace(spec.transport, cc=BASELINE))


def _while_down(value_of: Callable[[Table, tuple[float, float]], float | None]) -> OfPoint:
    """`value_of` a point's goodput over time and its outage; None without either."""

    def of(point: Judged) -> float | None:
        goodput, down = table(point, "goodput"), outage(point.spec)
        return value_of(goodput, down) if goodput is not None and down else None

    return of


def _stalled_pct(point: Judged) -> float | None:
    rate_mbps = point.spec.link.rate_mbps
    return _while_down(lambda goodput, down: robustness.stalled_pct(goodput, down, rate_mbps))(point)


def _resent_over_uncoupled(points: Sequence[Judged]) -> float | None:
    resent = {_algorithm(p.spec): robustness.retransmitted_pct(p.point.flows) for p in points}
    return ratio(resent.get(COUPLED_DEFAULT), resent.get(BASELINE))


def _algorithm(spec: RunSpec) -> str:
    return algorithm(spec.transport.cc, spec.transport.subflows, spec.routing)


_kept = _while_down(robustness.kept_pct)

ROBUSTNESS: dict[str, Quantity] = {
    "resent_over_uncoupled": Quantity(
        "x uncoupled",
        "segments sent again for each delivered over uncoupled subflows'",
        together(_resent_over_uncoupled),
        setting=_any_cc,
    ),
    "kept_over_tcp": Quantity("x TCP", "what is kept while links are down over TCP's", over_tcp(_kept)),
    "stalled_over_tcp": Quantity(
        "x TCP", "flows that stand still while links are down over TCP's", over_tcp(_stalled_pct)
    ),
}
