"""Normalised completion time by flow size: the completion time over that on an idle path."""

from __future__ import annotations

import math
import statistics

from analysis.completion import slowdown
from analysis.quantities import Quantity
from harness.metrics.measures import OfPoint
from harness.metrics.metrics import Metric
from harness.results.point_results import PointResult

SMALL_BYTES, LARGE_BYTES = 100_000, 1_000_000


def _normalised(above: float, up_to: float) -> OfPoint:
    def of(point: PointResult) -> float | None:
        completed = point.completions.completed
        found = [slowdown(flow) for flow in completed if above < flow.size_bytes <= up_to]
        return statistics.fmean(found) if found else None

    return of


NFCT_SMALL = Metric(
    Quantity("nfct_small", "", "the mean normalised completion time of flows up to 100 kB"),
    _normalised(0, SMALL_BYTES),
)  # fmt: skip
NFCT_LARGE = Metric(
    Quantity("nfct_large", "", "the mean normalised completion time of flows above 1 MB"),
    _normalised(LARGE_BYTES, math.inf),
)  # fmt: skip
