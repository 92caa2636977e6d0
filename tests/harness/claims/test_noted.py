"""What was measured for a statement holds until the points, or the judgement on them, change."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.claims.noted import MeasureOf, noting
from harness.metrics import metrics
from harness.metrics.measures import Measured
from harness.metrics.metric import Metric
from harness.metrics.published import Published, Relation
from harness.results.cache import ResultsCache
from harness.results.point_results import Judged
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

        def measure(metric: Metric, *given: Any) -> Measured | None:
            self.calls += 1
            return None if self.missing else really(metric, *given)

        monkeypatch.setattr(Metric, "measure", measure)


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Counting:
    return Counting(monkeypatch)


def points() -> list[Judged]:
    return [point for point in judged([stored(spec_of(), [2.0])]) if point.spec == spec_of()]


def asked(measure: MeasureOf, of: list[Judged], statement: Published = ROW) -> Measured | None:
    return measure(statement.metric, of, statement)


def test_a_second_command_measures_nothing(tmp_path: Path, counting: Counting) -> None:
    notes = ResultsCache(tmp_path)
    first = asked(noting(notes), points())
    assert first is not None and counting.calls == 1
    notes.write([])
    assert asked(noting(ResultsCache.read(tmp_path)), points()) == first
    assert counting.calls == 1


@pytest.mark.parametrize(
    "change",
    [
        {"status": Status.SUSPECT},
        {"baseline_mbps": 4.0},
        {"as_intended": True},
    ],
    ids=str,
)
def test_another_judgement_on_the_points_is_measured(
    tmp_path: Path, counting: Counting, change: dict[str, Any]
) -> None:
    measure, (point,) = noting(ResultsCache(tmp_path)), points()
    asked(measure, [point])
    asked(measure, [dataclasses.replace(point, **change)])
    assert counting.calls == 2


def test_another_statement_is_measured(tmp_path: Path, counting: Counting) -> None:
    measure, of = noting(ResultsCache(tmp_path)), points()
    for other in (ROW, dataclasses.replace(ROW, subflows=8), dataclasses.replace(ROW, workload="stride")):
        asked(measure, of, other)
    assert counting.calls == 3


def test_what_could_not_be_measured_is_tried_again(tmp_path: Path, counting: Counting) -> None:
    notes, counting.missing = ResultsCache(tmp_path), True
    assert asked(noting(notes), points()) is None
    counting.missing = False
    assert asked(noting(notes), points()) is not None


def test_an_edited_measurement_is_made_again(tmp_path: Path, counting: Counting) -> None:
    notes = ResultsCache(tmp_path)
    first = asked(noting(notes), points())
    (key,) = notes.measured
    notes.measured[key] = {"value": "many"}
    assert asked(noting(notes), points()) == first
    assert counting.calls == 2
