"""Completion of sized flows, read off rows."""

from __future__ import annotations

import math

import pytest

from analysis.completion import completion_text, completions, percentile, slowdown
from model.result import NO_VALUE, FlowRow


def row(
    number: int, size: int, start_s: float, completed_s: float = NO_VALUE, ideal_s: float = 0.01
) -> FlowRow:
    return FlowRow(
        number, "a", "b", "", "", 1, 2, "tcp", 1, 1, "reno", 1.0, 1, 0, 0.0,
        completed_s=completed_s, size_bytes=size, start_s=start_s, ideal_s=ideal_s,
    )  # fmt: skip


ROWS = [
    row(0, 0, 0.0),
    row(1, 5000, -0.1, 0.05),
    row(2, 9000, 0.0, 0.04),
    row(3, 100, 1.0, 0.02),
    row(4, 100, 9.9),
    row(5, 100, NO_VALUE),
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
