"""Quantities about central schedulers: what hosts get with one beside what they get without. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from harness.claims.measures import (
    Measure,
    Measured,
    Quantity,
    is_about,
    measured_over,
    ratio,
)
from harness.claims.published import Published
from harness.results.summary import Judged
from model.result import under_test
from model.schedulers import scheduled, scheduler_title
from model.spec import RunSpec, SchedulerSpec

OVER_FIRST_FIT = {ms: f"mptcp_over_first_fit_{ms:g}ms" for ms in (0.0, 10.0, 500.0, 1000.0)}
"""Quantities' names by the interval; 0 is ideal."""


def whoever_leads(spec: RunSpec) -> RunSpec:
    """The same for specs that differ in congestion control and scheduler: transports and schedulers beside
    each other."""
    transport = dataclasses.replace(spec.transport, cc="any")
    return dataclasses.replace(spec, transport=transport, scheduler=SchedulerSpec())


def carried_mbps(point: Judged) -> float:
    """Payload a second of all flows together: of flows that come and go, a mean flow says nothing."""
    return sum(flow.goodput_mbps for flow in under_test(point.point.flows))


def over(chosen: SchedulerSpec) -> Measure:
    """What the statement's number of subflows carries, over TCP under that scheduler with the same seed."""

    def measure(points: Sequence[Judged], row: Published) -> Measured | None:
        about = [point for point in points if is_about(row, point)]
        led = {point.spec.seed: point for point in about if point.spec.scheduler == chosen}
        alone = [p for p in about if p.spec.transport.subflows == row.subflows and not scheduled(p.spec)]
        pairs = [(point, led[point.spec.seed]) for point in alone if point.spec.seed in led]
        return measured_over((ratio(carried_mbps(a), carried_mbps(b)), (a, b)) for a, b in pairs)

    return measure


def _over_first_fit(interval_ms: float) -> Quantity:
    chosen = SchedulerSpec("first_fit", interval_ms)
    about = f"what MPTCP carries over TCP with {scheduler_title(chosen)}"
    return Quantity("x first fit", about, over(chosen), setting=whoever_leads)


SCHEDULING = {name: _over_first_fit(ms) for ms, name in OVER_FIRST_FIT.items()}
