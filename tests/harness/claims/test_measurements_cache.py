"""What was measured for a statement holds until the points, or the judgement on them, change."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.claims.claims import MeasureOf, cached_measure
from harness.metrics import metrics
from harness.metrics.measures import Estimate
from harness.metrics.metrics import Metric
from harness.metrics.published import Published, Relation
from harness.results.cache import ResultsCache
from harness.results.point_results import PointResult
from model.result import Status
from tests.support.judged_points import judged, stored
from tests.support.statements import row
from tests.support.stored_points import spec_of

ROW = row(metrics.GOODPUT_PCT_MEAN, 1, Relation.ABOUT, 50)


class Counting:
    """Metric.measure, counted; `missing` measures nothing."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls, self.missing = 0, False
        really: Callable[..., Any] = Metric.measure

        def measure(metric: Metric, *given: Any) -> Estimate | None:
            self.calls += 1
            return None if self.missing else really(metric, *given)

        monkeypatch.setattr(Metric, "measure", measure)


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Counting:
    return Counting(monkeypatch)


def points() -> list[PointResult]:
    return [point for point in judged([stored(spec_of(), [2.0])]) if point.spec == spec_of()]


def asked(measure: MeasureOf, of: list[PointResult], statement: Published = ROW) -> Estimate | None:
    return measure(statement.metric, of, statement)


def test_a_second_command_measures_nothing(tmp_path: Path, counting: Counting) -> None:
    cache = ResultsCache(tmp_path)
    first = asked(cached_measure(cache), points())
    assert first is not None and counting.calls == 1
    cache.write([])
    assert asked(cached_measure(ResultsCache.read(tmp_path)), points()) == first
    assert counting.calls == 1


@pytest.mark.parametrize(
    "change", [{"status": Status.SUSPECT}, {"baseline_mbps": 4.0}, {"as_intended": True}], ids=str
)
def test_another_judgement_on_the_points_is_measured(
    tmp_path: Path, counting: Counting, change: dict[str, Any]
) -> None:
    measure, (point,) = cached_measure(ResultsCache(tmp_path)), points()
    asked(measure, [point])
    asked(measure, [dataclasses.replace(point, **change)])
    assert counting.calls == 2


def test_another_statement_is_measured(tmp_path: Path, counting: Counting) -> None:
    measure, of = cached_measure(ResultsCache(tmp_path)), points()
    for other in (ROW, dataclasses.replace(ROW, subflows=8), dataclasses.replace(ROW, workload="stride")):
        asked(measure, of, other)
    assert counting.calls == 3


def test_what_could_not_be_measured_is_tried_again(tmp_path: Path, counting: Counting) -> None:
    cache, counting.missing = ResultsCache(tmp_path), True
    assert asked(cached_measure(cache), points()) is None
    counting.missing = False
    assert asked(cached_measure(cache), points()) is not None


def test_an_edited_measurement_is_made_again(tmp_path: Path, counting: Counting) -> None:
    cache = ResultsCache(tmp_path)
    first = asked(cached_measure(cache), points())
    (key,) = cache.measured
    cache.measured[key] = {"value": "many"}
    assert asked(cached_measure(cache), points()) == first
    assert counting.calls == 2
