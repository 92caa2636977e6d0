"""Fixed points: known values, order of the algorithms, and the equations they solve."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.shares import (
    _balia,
    bottleneck_share,
    bottleneck_shares_pct,
    congested_share,
    congested_shares_pct,
)
from model.result import FlowRow, PortRow


def flow(src: str, goodput_mbps: float) -> FlowRow:
    return FlowRow(0, src, "", "", "", 1100, 5201, "tcp", 1, 1, "reno", goodput_mbps, 1, 0, 0.1)


def port(node: str, peer: str, tx_bytes: int, layer: str = "host-edge") -> PortRow:
    return PortRow(0, node, peer, layer, 1, tx_bytes, 0, 1, 50.0)


def test_the_share_of_a_replica_is_that_of_its_first_flow() -> None:
    flows = [flow("l0h0", 3.0), flow("l1h0", 1.0), flow("l0h1", 1.0), flow("l1h1", 1.0), flow("l1h2", 2.0)]
    assert bottleneck_shares_pct(flows) == [75.0, 25.0]
    assert bottleneck_shares_pct([flow("p0e0h0", 1.0)]) == bottleneck_shares_pct([]) == []
    assert bottleneck_shares_pct([flow("l0h0", 0.0)]) == []


def test_only_a_sender_with_two_nics_has_a_worse_path() -> None:
    ports = [
        port("l0h0", "l0a", 100), port("l0a", "l0h0", 7, "edge-host"), port("l0h0", "l0b", 300),
        port("l0ah1", "l0a", 900), port("r0h0", "r0a", 5), port("r0h0", "r0b", 5),
    ]  # fmt: skip
    assert congested_shares_pct(ports) == [25.0] and congested_shares_pct([]) == []
    assert congested_shares_pct([dataclasses.replace(each, tx_bytes=0) for each in ports]) == []


@pytest.mark.parametrize("n", [1, 2, 4, 8, 32])
def test_uncoupled_subflows_are_so_many_tcps(n: int) -> None:
    assert bottleneck_share("reno", n) == pytest.approx(n / (n + 1))
    assert {bottleneck_share(cc, n) for cc in ("lia", "olia", "balia", "ewtcp")} == {0.5}


def test_shares_on_the_worse_link_with_three_tcps_against_one() -> None:
    """Uncoupled: a quarter of one link and half of the other. EWTCP: 1/7 and 1/3. LIA: 3 r + r^2 / (1 + r^2)
    = 1 + 1 / (1 + r^2) has the root r = 0.5233."""
    assert congested_share("reno", 3, 1) == pytest.approx(1 / 3)
    assert congested_share("ewtcp", 3, 1) == pytest.approx((1 / 7) / (1 / 7 + 1 / 3))
    assert congested_share("lia", 3, 1) == pytest.approx(0.5233**2 / (1 + 0.5233**2), abs=1e-3)
    assert congested_share("olia", 3, 1) == 0


@given(st.integers(1, 20), st.integers(1, 20))
def test_the_more_coupled_the_less_on_the_worse_link(second: int, more: int) -> None:
    first = second + more
    shares = [congested_share(cc, first, second) for cc in ("olia", "lia", "ewtcp", "reno")]
    assert all(0 <= share <= 0.5 for share in shares)
    assert shares == sorted(shares)
    assert 0 < congested_share("balia", first, second) < congested_share("ewtcp", first, second)


@given(st.floats(0.05, 0.99))
def test_balias_windows_balance_growth_and_cuts(r: float) -> None:
    worse, better = _balia(r)
    a = better / worse
    assert worse + better == pytest.approx(1)
    assert (1 + a) / 2 * (4 + a) / 5 == pytest.approx(min(a, 1.5) / r**2, rel=1e-6)
