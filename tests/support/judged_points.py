"""Points beside their baselines, made in memory, for tests of code that reads results."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.baseline import baseline_of
from harness.results import point_results
from harness.results.point_results import PointResult
from harness.results.store import point_name, row_metrics
from model.result import FlowRow, Status
from model.spec import RunSpec
from tests.support.reasons import of_text
from tests.support.stored_points import flow_row, result_of

BASELINE_MBPS = 5.0

SATURATED = (of_text("CPU: no idle time left in 9 of 40 seconds"),)


def stored(
    spec: RunSpec,
    goodputs: Sequence[float],
    status: Status = Status.OK,
    provenance: Mapping[str, Any] | None = None,
) -> PointResult:
    """Return a point with one flow per goodput in Mb/s; without any, the point has failed."""
    result = result_of(goodputs)
    flows = [dataclasses.replace(flow_row(n, mbps), src=f"h{n}") for n, mbps in enumerate(goodputs)]
    return PointResult(
        path=Path("results") / point_name(spec),
        spec=spec,
        status=status if goodputs else Status.FAILED,
        reasons=() if status is Status.OK and goodputs else SATURATED,
        hosts=16,
        elapsed_s=60.0,
        flows=tuple(flows),
        ports=result.ports,
        metrics={**result.metrics, **(row_metrics(spec, flows, result.ports) if goodputs else {})},
        attempts=(),
        provenance=provenance if provenance is not None else {"kernel": "6.18.0", "cpu": "Xeon"},
    )


def with_flows(point: PointResult, flows: Sequence[FlowRow]) -> PointResult:
    """Return the point with other flows, and their metrics."""
    metrics = {**point.metrics, **row_metrics(point.spec, flows, point.ports)}
    return dataclasses.replace(point, flows=tuple(flows), metrics=metrics, readings={})


def judged(points: Sequence[PointResult]) -> list[PointResult]:
    """Return the points and the baselines they need."""
    baselines = {baseline_of(p.spec).content_hash(): baseline_of(p.spec) for p in points}
    provenance = points[0].provenance
    extra = [stored(spec, [BASELINE_MBPS], provenance=provenance) for spec in baselines.values()]
    return point_results.judge([*points, *extra])


def with_times_alone(spec: RunSpec, times_alone: float, unfinished: int = 0) -> PointResult:
    """Return a point with 200 flows of 10 kB, each of which takes `times_alone` times as long as alone;
    `unfinished` of them have not ended."""
    row = dataclasses.replace(
        flow_row(0, 1.0), size_bytes=10_000, start_s=0.0, completed_s=times_alone * 1e-5, ideal_s=1e-5
    )
    late = dataclasses.replace(row, completed_s=math.nan)
    flows = (row,) * (200 - unfinished) + (late,) * unfinished
    points_of = judged([with_flows(stored(spec, [1.0]), flows)])
    return next(point for point in points_of if point.spec == spec)
