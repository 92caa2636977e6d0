"""Correlations of paired values, against values worked out by hand."""

from __future__ import annotations

import pytest

from analysis.agreement import correlation, rank_correlation


def test_a_line_is_one_and_a_falling_line_minus_one() -> None:
    assert correlation([1, 2, 3], [10, 20, 30]) == pytest.approx(1)
    assert correlation([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)


def test_ranks_alone_count_for_the_second() -> None:
    xs, ys = [1.0, 2.0, 3.0, 4.0], [1.0, 8.0, 27.0, 1000.0]
    assert rank_correlation(xs, ys) == pytest.approx(1)
    pearson = correlation(xs, ys)
    assert pearson is not None
    assert 0.7 < pearson < 0.9


def test_equal_values_share_a_rank() -> None:
    """Ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4: covariance 4.5, variances 4.5 and 5."""
    assert rank_correlation([1, 5, 5, 9], [1, 2, 3, 4]) == pytest.approx(4.5 / (4.5 * 5) ** 0.5)


def test_nothing_to_correlate_has_no_number() -> None:
    assert correlation([1, 2], [1, 2]) is None
    assert correlation([1, 1, 1], [1, 2, 3]) is None
    assert rank_correlation([1, 2, 3], [4, 4, 4]) is None
