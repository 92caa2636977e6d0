"""Statistics of flows: bounds, invariances, and the values the definitions give."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis import stats
from analysis.stats import correlation, rank_correlation

goodputs = st.lists(st.floats(0, 1e9, allow_nan=False), min_size=1, max_size=50)


@given(goodputs)
def test_jain_lies_between_one_over_n_and_one(values: list[float]) -> None:
    assert 1 / len(values) - 1e-9 <= stats.jain(values) <= 1


@given(st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=50), st.floats(1e-3, 1e3))
def test_jain_does_not_depend_on_the_unit(values: list[float], factor: float) -> None:
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


def test_spread_in_percent_of_a_baseline() -> None:
    assert stats.spread([1.0, 2.0, 6.0]).scaled(100 / 4) == stats.Spread(75.0, 25.0, 50.0, 150.0)
    with pytest.raises(ValueError, match="no values"):
        stats.spread([])


@pytest.mark.parametrize(
    ("p", "freedom", "table"),
    [(0.975, 1, 12.706), (0.975, 2, 4.303), (0.975, 5, 2.571), (0.975, 30, 2.042), (0.95, 10, 1.812),
     (0.995, 7, 3.499), (0.975, 1e6, 1.95997)],
)  # fmt: skip
def test_t_quantiles_are_those_of_printed_tables(p: float, freedom: float, table: float) -> None:
    assert stats.t_quantile(p, freedom) == pytest.approx(table, abs=5e-4)


def test_t_quantile_between_whole_degrees_integrates_the_density() -> None:
    freedom, steps = 2.5, 20_000
    end = stats.t_quantile(0.9, freedom)
    peak = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    width = end / steps
    below = sum((1 + ((i + 0.5) * width) ** 2 / freedom) ** (-(freedom + 1) / 2) for i in range(steps))
    assert 0.5 + peak * below * width == pytest.approx(0.9, abs=1e-7)


@given(st.floats(0.01, 0.99), st.floats(0.5, 500))
def test_t_quantiles_are_symmetric(p: float, freedom: float) -> None:
    assert stats.t_quantile(p, freedom) == pytest.approx(-stats.t_quantile(1 - p, freedom), abs=1e-9)


@pytest.mark.parametrize(("p", "freedom"), [(0, 3), (1, 3), (0.5, 0), (math.nan, 3), (0.5, math.nan)])
def test_t_quantile_refuses_undefined_arguments(p: float, freedom: float) -> None:
    with pytest.raises(ValueError, match="no t quantile"):
        stats.t_quantile(p, freedom)


def test_mean_interval_of_a_worked_example() -> None:
    # sd 2, n 4: 2.5 +- 3.182446 * 2 / 2
    interval = stats.mean_interval([0.5, 2.5 - 3**0.5, 4.5, 2.5 + 3**0.5])
    spread = math.sqrt((4 + 4 + 3 + 3) / 3)
    assert interval.value == pytest.approx(2.5)
    assert interval.half == pytest.approx(3.182446 * spread / 2, rel=1e-6)


def test_pairs_cancel_what_they_have_in_common() -> None:
    a, b = [40.0, 60.0, 50.0], [41.0, 61.2, 50.8]
    assert stats.paired_difference(a, b).value == pytest.approx(1.0)
    assert stats.paired_difference(a, b).excludes_zero
    assert not stats.welch_difference(a, b).excludes_zero, "unpaired, the permutations' spread hides it"


def test_welch_difference_of_a_worked_example() -> None:
    # Variances 1 and 12.8 over 3 and 5 values.
    a, b = [9.0, 10.0, 11.0], [8.0, 12.0, 12.0, 12.0, 18.0]
    of_a, of_b = 1 / 3, 12.8 / 5
    freedom = (of_a + of_b) ** 2 / (of_a**2 / 2 + of_b**2 / 4)
    interval = stats.welch_difference(a, b)
    assert interval.value == pytest.approx(2.4)
    assert interval.half == pytest.approx(stats.t_quantile(0.975, freedom) * math.sqrt(of_a + of_b))


def test_a_difference_needs_repetitions() -> None:
    with pytest.raises(ValueError, match="at least two values"):
        stats.welch_difference([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="at least two values"):
        stats.paired_difference([1.0], [2.0])
    assert stats.welch_difference([1.0, 1.0], [3.0, 3.0]) == stats.Interval(2.0, 0.0)


def test_ranks_alone_count_for_the_second() -> None:
    xs, ys = [1.0, 2.0, 3.0, 4.0], [1.0, 8.0, 27.0, 1000.0]
    assert rank_correlation(xs, ys) == pytest.approx(1)
    pearson = correlation(xs, ys)
    assert pearson is not None
    assert 0.7 < pearson < 0.9


def test_equal_values_share_a_rank() -> None:
    """Ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4: covariance 4.5, variances 4.5 and 5."""
    assert rank_correlation([1, 5, 5, 9], [1, 2, 3, 4]) == pytest.approx(4.5 / (4.5 * 5) ** 0.5)


def test_a_falling_line_is_minus_one_and_nothing_to_correlate_has_no_number() -> None:
    assert correlation([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert correlation([1, 2], [1, 2]) is None
    assert correlation([1, 1, 1], [1, 2, 3]) is None
    assert rank_correlation([1, 2, 3], [4, 4, 4]) is None
