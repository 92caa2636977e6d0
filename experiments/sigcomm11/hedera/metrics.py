"""Metrics of central flow schedulers: the goodput of MPTCP over that of TCP under a scheduler. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from analysis.quantities import Quantity
from harness.metrics.measures import Measure, Measured, Subject, measured_over, points_about, ratio
from harness.metrics.metric import Metric
from harness.results.point_results import Judged
from model.result import under_test
from model.schedulers import scheduled, scheduler_title
from model.spec import RunSpec, SchedulerSpec


def any_scheduler(spec: RunSpec) -> RunSpec:
    """Return the same for specs that differ only in congestion control and scheduler."""
    transport = dataclasses.replace(spec.transport, cc="any")
    return dataclasses.replace(spec, transport=transport, scheduler=SchedulerSpec())


def carried_mbps(point: Judged) -> float:
    """Return the total goodput of all flows, in Mb/s. The mean is meaningless where flows come and go."""
    return sum(flow.goodput_mbps for flow in under_test(point.point.flows))


def _over_scheduled_tcp(chosen: SchedulerSpec) -> Measure:
    """Return a measure: the goodput at the subject's number of subflows over that of TCP under `chosen`, at
    the same seed."""

    def measure(points: Sequence[Judged], subject: Subject) -> Measured | None:
        about = points_about(points, subject)
        with_scheduler = {point.spec.seed: point for point in about if point.spec.scheduler == chosen}
        without = [
            point
            for point in about
            if point.spec.transport.subflows == subject.subflows and not scheduled(point.spec)
        ]
        beside = [(point, with_scheduler[point.spec.seed]) for point in without
                  if point.spec.seed in with_scheduler]  # fmt: skip
        return measured_over((ratio(carried_mbps(a), carried_mbps(b)), (a, b)) for a, b in beside)

    return measure


def _over_first_fit(interval_ms: float) -> Metric:
    chosen = SchedulerSpec("first_fit", interval_ms)
    return Metric(
        Quantity(
            f"mptcp_over_first_fit_{interval_ms:g}ms",
            "x first fit",
            f"the goodput of MPTCP over that of TCP with {scheduler_title(chosen)}",
        ),
        over=_over_scheduled_tcp(chosen),
        setting=any_scheduler,
    )


OVER_FIRST_FIT = {interval_ms: _over_first_fit(interval_ms) for interval_ms in (0.0, 10.0, 500.0, 1000.0)}
"""By the scheduler's interval in ms; 0 is ideal."""
