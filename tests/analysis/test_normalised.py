"""Normalised completion times: which flows count, and how unfinished flows count."""

from __future__ import annotations

import dataclasses
import math

import pytest

from analysis.normalised import ALL, LARGE, MIDDLE, SMALL, counted, normalised
from model.result import FlowRow
from tests.support.chart_points import flow_row


def flow(size: int, start_s: float, completed_s: float = math.nan, ideal_s: float = 1.0) -> FlowRow:
    return dataclasses.replace(
        flow_row(), size_bytes=size, start_s=start_s, completed_s=completed_s, ideal_s=ideal_s
    )


def test_flows_of_the_warm_up_and_of_the_tail_do_not_count() -> None:
    flows = [flow(1000, start, 1.0) for start in (-0.1, 0.0, 5.9, 6.0, 9.0)]
    counts = counted(flows, 10.0)
    assert [flow.start_s for flow, is_in in zip(flows, counts, strict=True) if is_in] == [0.0, 5.9]


def test_a_flow_that_has_not_ended_counts_with_its_time_so_far() -> None:
    found = normalised([flow(1000, 1.0, 2.0), flow(1000, 1.0)], 10.0)
    assert found.values == (2.0, 9.0) and found.unfinished == 1
    assert found.mean == pytest.approx(5.5)


def test_a_range_contains_its_upper_end_only() -> None:
    flows = [flow(size, 0.0, 2.0) for size in (100_000, 100_001, 10_000_000, 10_000_001)]
    assert [len(normalised(flows, 10.0, of).values) for of in (SMALL, MIDDLE, LARGE, ALL)] == [1, 2, 1, 4]


def test_no_percentile_of_few_flows_and_no_mean_of_none() -> None:
    few = normalised([flow(1000, 0.0, 2.0)] * 99, 10.0)
    assert few.p99 is None and few.mean == 2.0
    assert normalised([flow(1000, 0.0, 2.0)] * 100, 10.0).p99 == 2.0
    assert normalised([], 10.0).mean is None
