"""Columns of what programs measured are those that any point has, by group and name."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

from harness.metrics.metrics import measured_by_programs, of_programs
from harness.results.point_results import PointResult
from model.spec import LinkSpec, RunSpec, WorkloadSpec


def point(metrics: dict[str, float], **group: Any) -> PointResult:
    programs = json.dumps({"programs": [{"name": "client", "run": ["x"], **group}]})
    spec = RunSpec(LinkSpec(1.0), workload=WorkloadSpec("app", {"name": "a", "programs": programs}))
    return cast(PointResult, SimpleNamespace(spec=spec, metrics=metrics, metric=metrics.get))


def flows(metrics: dict[str, float]) -> PointResult:
    return cast(PointResult, SimpleNamespace(spec=RunSpec(LinkSpec(1.0)), metrics=metrics))


def test_only_groups_that_measure_have_columns() -> None:
    found = {"client_ms_count": 3.0, "client_ms_mean": 2.0, "client_ms_p99": 4.0, "other_count": 1.0}
    assert measured_by_programs([point(found, measure="json"), flows(found)]) == ["client_ms"]
    assert measured_by_programs([point(found), flows(found)]) == []


def test_a_column_reads_the_metric_of_its_name() -> None:
    one = point({"client_ms_count": 3.0, "client_ms_mean": 2.0, "client_ms_p99": 4.0}, measure="json")
    other = point({"client_bytes_count": 1.0, "client_bytes_mean": 9.0}, measure="json")
    columns = {metric.name: metric for metric in of_programs([one, other], ("mean", "p99"))}
    assert list(columns) == ["client_ms_mean", "client_ms_p99", "client_bytes_mean", "client_bytes_p99"]
    assert columns["client_ms_p99"].at(one) == 4 and columns["client_ms_p99"].at(other) is None
