"""Changes that noise makes, by share of delay, and the shares up to which they stay within tolerance."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from analysis.noise_effects import (
    TOLERANCES,
    Change,
    ShareBin,
    binned,
    changes,
    delay_share,
    largest_share,
    metrics,
)
from model.noise import stalls_of
from model.reasons import COMPLETION, GOODPUT, JAIN, METRICS, RTT, SLOWEST
from model.result import FlowRow
from model.spec import LinkSpec, RunSpec


def flow(number: int, mbps: float, **more: Any) -> FlowRow:
    row = FlowRow(
        number, "a", "b", "10.0.0.1", "10.0.0.2", 1, 2, "tcp", 1, 1, "reno", mbps, int(mbps * 1e6), 0, 0.0
    )
    return dataclasses.replace(row, **more)


def test_every_metric_that_a_reason_can_doubt_has_a_tolerance() -> None:
    assert set(TOLERANCES) == set(METRICS)


def test_long_flows_have_goodput_fairness_and_round_trips() -> None:
    found = metrics([flow(0, 4.0, srtt_ms_mean=10.0), flow(1, 8.0, srtt_ms_mean=30.0)], 10.0)
    assert found == pytest.approx({GOODPUT: 60.0, SLOWEST: 40.0, JAIN: 12**2 / (2 * 80), RTT: 20.0})


def test_sized_flows_have_completion_times() -> None:
    short = [flow(n, 0.1, size_bytes=70_000, start_s=1.0, completed_s=0.1 * n) for n in (1, 2, 3)]
    assert metrics([flow(0, 4.0), *short], 10.0) == pytest.approx({COMPLETION: 200.0})


def test_changes_are_points_or_percent() -> None:
    quiet = {GOODPUT: 80.0, RTT: 200.0, JAIN: 0.9}
    found = changes(quiet, {GOODPUT: 79.0, RTT: 210.0})
    assert found == pytest.approx({GOODPUT: -1.0, RTT: 5.0})


def test_the_share_is_lateness_over_the_delay_of_the_path() -> None:
    """4 ms beside a queue of 121.1 ms and six frames of 1.2 ms."""
    spec = RunSpec(LinkSpec(10.0), noise=stalls_of("all", 4))
    assert delay_share(spec) == pytest.approx(4 / (121.12 + 6 * 1.2112), rel=1e-4)
    assert delay_share(RunSpec(LinkSpec(10.0))) == 0


def change(share: float, by: float, setting: str = "a", quiet: str = "a1") -> Change:
    return Change(GOODPUT, share, by, setting, quiet)


def test_a_quiet_point_counts_once_however_many_are_compared_with_it() -> None:
    found = [change(0.3, 1, "a", "1"), change(0.4, 3, "b", "1"), change(0.3, 4, "a", "2"), change(7.0, 9)]
    low, high = binned(found, lambda values: float(len(values)))
    assert (low.low, low.high, low.n, low.half) == (0.2, 0.5, 2, 2.0)
    assert low.mean == pytest.approx((2 + 4) / 2)
    assert low.worst == 3
    assert (high.low, high.high, high.mean) == (5.0, math.inf, 9)


def test_the_limit_is_where_the_first_bin_leaves_the_tolerance() -> None:
    def at(low: float, high: float, mean: float, half: float) -> ShareBin:
        return ShareBin(low, high, low, mean, half, 6, mean)

    bins = [at(0, 0.02, -0.5, 0.4), at(0.02, 0.05, 1.0, 0.9), at(0.05, 0.1, 1.5, 0.6), at(0.1, 0.2, 0, 0)]
    assert largest_share(bins, 2.0) == 0.05
    assert largest_share(bins, 0.5) == 0.0
    assert largest_share(bins[:2], 2.0) == 0.05
    assert largest_share([at(0, 0.02, 0, math.nan)], 2.0) == 0.0
