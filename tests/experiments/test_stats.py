"""Statistics of flows: bounds, invariances, and the values the definitions give."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments import stats

goodputs = st.lists(st.floats(0, 1e9, allow_nan=False), min_size=1, max_size=50)


@given(goodputs)
def test_jain_lies_between_one_over_n_and_one(values: list[float]) -> None:
    assert 1 / len(values) - 1e-9 <= stats.jain(values) <= 1


@given(st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=50), st.floats(1e-3, 1e3))
def test_jain_knows_no_unit(values: list[float], factor: float) -> None:
    assert stats.jain([factor * v for v in values]) == pytest.approx(stats.jain(values))


def test_jain_of_equal_shares_of_one_taker_and_of_nothing() -> None:
    assert stats.jain([3.0] * 7) == pytest.approx(1)
    assert stats.jain([5.0, 0, 0, 0]) == pytest.approx(0.25)
    assert stats.jain([0.0, 0.0]) == 1
    assert stats.jain([5e-324, 5e-324]) == pytest.approx(1), "squares must not vanish"


@pytest.mark.parametrize("values", [[], [1.0, -1.0]])
def test_jain_refuses_what_has_no_index(values: list[float]) -> None:
    with pytest.raises(ValueError, match=r"values|shares"):
        stats.jain(values)


@given(goodputs)
def test_spread_is_ordered(values: list[float]) -> None:
    s = stats.spread(values)
    assert s.minimum <= s.median <= s.maximum
    assert s.minimum * (1 - 1e-12) <= s.mean <= s.maximum * (1 + 1e-12)


def test_spread_in_percent_of_a_reference() -> None:
    assert stats.spread([1.0, 2.0, 6.0]).scaled(100 / 4) == stats.Spread(75.0, 25.0, 50.0, 150.0)
    with pytest.raises(ValueError, match="no values"):
        stats.spread([])
