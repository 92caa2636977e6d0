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


def sized_row(
    number: int, size: int, start_s: float, completed_s: float = NO_VALUE, ideal_s: float = 0.01
) -> FlowRow:
    return FlowRow(
        number, "a", "b", "", "", 1, 2, "tcp", 1, 1, "reno", 1.0, 1, 0, 0.0,
        completed_s=completed_s, size_bytes=size, start_s=start_s, ideal_s=ideal_s,
    )  # fmt: skip


ROWS = [
    sized_row(0, 0, 0.0),
    sized_row(1, 5000, -0.1, 0.05),
    sized_row(2, 9000, 0.0, 0.04),
    sized_row(3, 100, 1.0, 0.02),
    sized_row(4, 100, 9.9),
    sized_row(5, 100, NO_VALUE),
]


def test_sized_flows_of_the_window_count() -> None:
    """Endless flows, flows of the warm-up and flows that never started do not count."""
    of = completions(ROWS)
    assert [flow.flow for flow in of.completed] == [3, 2]
    assert (of.started, of.unfinished) == (3, 1)
    assert of.took_ms == [20, 40]
    assert of.slowdowns == [2, 4]
    assert slowdown(ROWS[1]) == pytest.approx(5)


def test_the_text_counts_unfinished_flows() -> None:
    assert completion_text(completions(ROWS)).startswith(
        "2 of 3 sized flows completed (1 unfinished), in 30 ms"
    )
    assert completion_text(completions(ROWS[4:])) == "0 of 1 sized flows completed (1 unfinished)"


def test_percentiles_are_values_that_were_measured() -> None:
    values = [float(v) for v in range(200, 0, -1)]
    assert percentile(values, 99) == 198
    assert percentile(values, 100) == 200
    assert percentile([7.0], 1) == 7
    assert math.isclose(percentile(values, 50), 100)


def sized_flow(size: int, start_s: float, completed_s: float = math.nan, ideal_s: float = 1.0) -> FlowRow:
    return dataclasses.replace(
        flow_row(), size_bytes=size, start_s=start_s, completed_s=completed_s, ideal_s=ideal_s
    )


def test_flows_of_the_warm_up_and_of_the_tail_do_not_count() -> None:
    flows = [sized_flow(1000, start, 1.0) for start in (-0.1, 0.0, 5.9, 6.0, 9.0)]
    counts = counted(flows, 10.0)
    assert [flow.start_s for flow, is_in in zip(flows, counts, strict=True) if is_in] == [0.0, 5.9]


def test_a_flow_that_has_not_ended_counts_with_its_time_so_far() -> None:
    found = normalised([sized_flow(1000, 1.0, 2.0), sized_flow(1000, 1.0)], 10.0)
    assert found.values == (2.0, 9.0) and found.unfinished == 1
    assert found.mean == pytest.approx(5.5)


def test_a_range_contains_its_upper_end_only() -> None:
    flows = [sized_flow(size, 0.0, 2.0) for size in (100_000, 100_001, 10_000_000, 10_000_001)]
    assert [len(normalised(flows, 10.0, of).values) for of in (SMALL, MIDDLE, LARGE, ALL)] == [1, 2, 1, 4]


def test_no_percentile_of_few_flows_and_no_mean_of_none() -> None:
    few = normalised([sized_flow(1000, 0.0, 2.0)] * 99, 10.0)
    assert few.p99 is None and few.mean == 2.0
    assert normalised([sized_flow(1000, 0.0, 2.0)] * 100, 10.0).p99 == 2.0
    assert normalised([], 10.0).mean is None
