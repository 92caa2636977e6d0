"""The chart of what stalls change: pairs by seed, one file per workload, no points without a pair."""

from __future__ import annotations

from pathlib import Path

import pytest

from model.noise import QUIET, stalls_of
from model.reasons import GOODPUT, JAIN, SLOWEST
from model.result import FlowRow, Status
from model.spec import OF_ALL, OF_FABRIC, NoiseSpec
from plots.charts.cpu_stalls import StallSeries, effects, noise, numbers
from plots.data import Inputs
from plots.picture import said
from plots.registry import CHARTS
from tests.support import chart_points
from tests.support.chart_points import Point, changed


def point(seed: int, mbps: tuple[float, ...], noise: NoiseSpec = QUIET) -> Point:
    flows = tuple(
        FlowRow(i, "a", "b", "10.0.0.1", "10.0.0.2", 1, 2, "tcp", 1, 1, "reno", rate, int(rate * 1e6), 0, 0.0)
        for i, rate in enumerate(mbps)
    )
    of = chart_points.point(1, seed)
    return changed(of, engine="simulator", rate_mbps=10.0, baseline_mbps=10.0, flows=flows, noise=noise)


def test_changes_are_between_points_of_one_seed() -> None:
    noise = stalls_of(OF_FABRIC, 4)
    points = [point(1, (4.0, 8.0)), point(2, (6.0, 6.0)), point(1, (3.0, 8.0), noise)]
    found = effects([*points, point(3, (1.0, 1.0), noise)])
    (of,) = found.values()
    assert list(found) == [StallSeries(1, OF_FABRIC, "elastic")]
    assert {c.metric: c.change for c in of} == pytest.approx(
        {GOODPUT: -5.0, SLOWEST: -10.0, JAIN: 121 / 146 - 0.9}
    )


def test_suspect_points_are_no_evidence() -> None:
    quiet, noisy = point(1, (4.0,)), point(1, (3.0,), stalls_of(OF_ALL, 4))
    assert effects([quiet, noisy])
    assert not effects([quiet, changed(noisy, status=Status.SUSPECT)])


def many(by: float, p99_ms: float) -> list[Point]:
    noise = stalls_of(OF_ALL, p99_ms)
    quiet = [point(seed, (5.0, 6.0)) for seed in range(1, 8)]
    return [*quiet, *(point(s, (5.0 + by, 6.0 + by + s / 100), noise) for s in range(1, 8))]


def test_the_title_says_how_late_packets_may_be() -> None:
    late, never = (said(noise.finding, numbers(effects(many(by, 8.0)))) for by in (0.0, -1.0))
    assert "up to 0.1 of" in late
    assert never.startswith("No lateness")


def test_it_is_drawn_once_per_workload(tmp_path: Path) -> None:
    other = [changed(p, workload="stride") for p in many(0.1, 36.0)]
    paths = CHARTS["noise"].draw(Inputs([*many(0.0, 8.0), *other], tmp_path))
    assert len({path.stem for path in paths}) == 2
