"""The flow-by-flow chart of two engines."""

from __future__ import annotations

import pytest

from plots.charts.cross_checks import scale


@pytest.mark.parametrize(
    ("values", "ticks"),
    [([62.0, 99.0], [60, 80, 100]), ([62.0, 100.63], [60, 80, 100]), ([3.9, 98.9], [0, 50, 100])],
)
def test_ticks_are_round_also_where_a_flow_exceeds_100_percent(
    values: list[float], ticks: list[float]
) -> None:
    (low, high), shown = scale(values)
    assert shown == ticks
    assert low == ticks[0]
    assert high > max(100, *values)
