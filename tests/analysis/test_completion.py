"""Completion of sized flows, read off rows."""

from __future__ import annotations

import dataclasses
import math

import pytest

from analysis.completion import (
    ALL,
    LARGE,
    MIDDLE,
    SMALL,
    completion_text,
    completions,
    counted,
    normalised,
    percentile,
    slowdown,
)
from model.result import NO_VALUE, FlowRow
from tests.support.chart_points import flow_row


def sized(
    size: int, start_s: float, completed_s: float = NO_VALUE, ideal_s: float = 1.0, flow: int = 0
) -> FlowRow:
    row = dataclasses.replace(flow_row(), flow=flow, size_bytes=size, start_s=start_s)
    return dataclasses.replace(row, completed_s=completed_s, ideal_s=ideal_s)


ROWS = [
    sized(0, 0.0),
    sized(5000, -0.1, 0.05, 0.01, flow=1),
    sized(9000, 0.0, 0.04, 0.01, flow=2),
    sized(100, 1.0, 0.02, 0.01, flow=3),
    sized(100, 9.9, flow=4),
    sized(100, NO_VALUE, flow=5),
]


def test_sized_flows_of_the_window_count() -> None:
    """Endless flows, flows of the warm-up and flows that never started do not count."""
    of = completions(ROWS)
    assert [flow.flow for flow in of.completed] == [3, 2]
    assert (of.started, of.unfinished) == (3, 1)
    assert of.took_ms == [20, 40]
    assert "2 of 3 sized flows" in completion_text(of) and "1 unfinished" in completion_text(of)
    assert of.slowdowns == [2, 4]
    assert slowdown(ROWS[1]) == pytest.approx(5)


def test_percentiles_are_values_that_were_measured() -> None:
    values = [float(v) for v in range(200, 0, -1)]
    assert percentile(values, 99) == 198
    assert percentile(values, 100) == 200
    assert percentile([7.0], 1) == 7
    assert math.isclose(percentile(values, 50), 100)


def test_flows_of_the_warm_up_and_of_the_tail_do_not_count() -> None:
    flows = [sized(1000, start, 1.0) for start in (-0.1, 0.0, 5.9, 6.0, 9.0)]
    counts = counted(flows, 10.0)
    assert [flow.start_s for flow, is_in in zip(flows, counts, strict=True) if is_in] == [0.0, 5.9]


def test_a_flow_that_has_not_ended_counts_with_its_time_so_far() -> None:
    found = normalised([sized(1000, 1.0, 2.0), sized(1000, 1.0)], 10.0)
    assert found.values == (2.0, 9.0) and found.unfinished == 1
    assert found.mean == pytest.approx(5.5)


def test_a_range_contains_its_upper_end_only() -> None:
    flows = [sized(size, 0.0, 2.0) for size in (100_000, 100_001, 10_000_000, 10_000_001)]
    assert [len(normalised(flows, 10.0, of).values) for of in (SMALL, MIDDLE, LARGE, ALL)] == [1, 2, 1, 4]


def test_no_percentile_of_few_flows_and_no_mean_of_none() -> None:
    few = normalised([sized(1000, 0.0, 2.0)] * 99, 10.0)
    assert few.p99 is None and few.mean == 2.0
    assert normalised([sized(1000, 0.0, 2.0)] * 100, 10.0).p99 == 2.0
    assert normalised([], 10.0).mean is None
