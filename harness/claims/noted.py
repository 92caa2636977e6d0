"""Measurements of published statements that were made before, from the cache of a results folder."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

from common import records
from harness.metrics.measures import Measured
from harness.metrics.metric import Metric
from harness.metrics.published import Published
from harness.results.cache import ResultsCache
from harness.results.point_results import Judged

MeasureOf = Callable[[Metric, Sequence[Judged], Published], Measured | None]
"""Reads a metric off a figure's points for a statement."""


def anew(metric: Metric, points: Sequence[Judged], row: Published) -> Measured | None:
    """Measure, whatever was measured before."""
    return metric.measure(points, row)


def noting(cache: ResultsCache) -> MeasureOf:
    """Return a function that measures what is not in the cache, and adds it to them."""
    tokens: dict[int, tuple[Judged, str]] = {}

    def token(judged: Judged) -> str:
        known = tokens.get(id(judged))
        if known is None:
            known = tokens[id(judged)] = judged, _token(judged)
        return known[1]

    def measure(metric: Metric, points: Sequence[Judged], row: Published) -> Measured | None:
        about = json.dumps([*_about(metric, row), *map(token, points)])
        key = hashlib.sha256(about.encode()).hexdigest()
        try:
            found: Measured | None = _of(cache.measured[key])
        except (KeyError, ValueError):  # not measured before, or edited
            found = metric.measure(points, row)
        if found is not None:  # it may be missing because a table could not be read this time
            cache.add(key, dataclasses.asdict(found))
        return found

    return measure


def _of(noted: Any) -> Measured:
    """Raises ValueError."""
    return records.record(Measured, noted, "a measurement")


def _about(metric: Metric, row: Published) -> list[str]:
    """Return everything that tells a measurement from others of the same points."""
    fields = (field.name for field in dataclasses.fields(row) if field.name != "metric")
    statement = [f"{name}={getattr(row, name)!r}" for name in fields]
    return [metric.name, metric.unit, metric.about, metric.repeats, *statement]


def _token(judged: Judged) -> str:
    """Return a text that is the same only for the same files and the same judgement on them."""
    verdict = judged.status, judged.reasons, judged.cautions, judged.baseline_mbps, judged.as_intended
    return f"{judged.point.name} {judged.point.fingerprint} {verdict!r}"
