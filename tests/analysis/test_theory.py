"""Fixed points: known values, order of the algorithms, and the equations they solve."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis import theory


@pytest.mark.parametrize("n", [1, 2, 4, 8, 32])
def test_uncoupled_subflows_are_so_many_tcps(n: int) -> None:
    assert theory.bottleneck_share("reno", n) == pytest.approx(n / (n + 1))
    assert {theory.bottleneck_share(cc, n) for cc in ("lia", "olia", "balia", "ewtcp")} == {0.5}


def test_shares_on_the_worse_link_with_three_tcps_against_one() -> None:
    """Uncoupled: a quarter of one link and half of the other. EWTCP: 1/7 and 1/3. LIA: 3 r + r^2 / (1 + r^2)
    = 1 + 1 / (1 + r^2) has the root r = 0.5233."""
    assert theory.congested_share("reno", 3, 1) == pytest.approx(1 / 3)
    assert theory.congested_share("ewtcp", 3, 1) == pytest.approx((1 / 7) / (1 / 7 + 1 / 3))
    assert theory.congested_share("lia", 3, 1) == pytest.approx(0.5233**2 / (1 + 0.5233**2), abs=1e-3)
    assert theory.congested_share("olia", 3, 1) == 0


@given(st.integers(1, 20), st.integers(1, 20))
def test_the_more_coupled_the_less_on_the_worse_link(second: int, more: int) -> None:
    first = second + more
    shares = [theory.congested_share(cc, first, second) for cc in ("olia", "lia", "ewtcp", "reno")]
    assert all(0 <= share <= 0.5 for share in shares)
    assert shares == sorted(shares)
    assert 0 < theory.congested_share("balia", first, second) < theory.congested_share("ewtcp", first, second)


@given(st.floats(0.05, 0.99))
def test_balias_windows_balance_growth_and_cuts(r: float) -> None:
    worse, better = theory._balia(r)
    a = better / worse
    assert worse + better == pytest.approx(1)
    assert (1 + a) / 2 * (4 + a) / 5 == pytest.approx(min(a, 1.5) / r**2, rel=1e-6)
