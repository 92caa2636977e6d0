"""Assumptions one at a time: changes against the usual setting of the same scheme and seed, and the title."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from model.spec import SchedulerSpec, StackSpec
from plots.charts.subflows_on_demand import assumption_finding, changes, with_equal_seeds
from plots.data import Point
from plots.registry import CHARTS
from tests.support.chart_points import changed, flow_row, point
from tests.support.svg_text import words_of

RESPONSIVE, HEDERA = SchedulerSpec("responsive", 2.0), SchedulerSpec("annealing", 10.0)


def run(mbps: float, subflows: int = 4, seed: int = 1, joined: int = 4, **fields: object) -> Point:
    flow = dataclasses.replace(flow_row(0), goodput_mbps=mbps, subflows_joined=joined)
    return changed(point(subflows), seed=seed, flows=(flow,), **fields)


def sweep() -> list[Point]:
    return [
        *(run(800 * seed, seed=seed, scheduler=RESPONSIVE) for seed in (1, 2)),
        *(run(720 * seed, seed=seed, joined=3, scheduler=RESPONSIVE, queue_pkts=25) for seed in (1, 2)),
        run(770),
        run(385, stack=StackSpec(min_rto_ms=1.0)),
        run(840, 1, joined=1, scheduler=HEDERA),
        run(630, 1, joined=1, scheduler=SchedulerSpec("first_fit", 10.0)),
    ]


def test_changes_are_of_the_same_scheme_and_seed() -> None:
    found = changes([*sweep()[4:], *sweep()[:4]])
    assert list(found) == ["2 ms, gap 0.15", "MPTCP 4", "Hedera"]
    (queue,) = found["2 ms, gap 0.15"]
    assert (queue.label, queue.subflows) == ("queue 25 packets", (-1, -1))
    assert queue.goodput_pct == pytest.approx((-10, -10))
    assert [change.label for change in found["MPTCP 4"]] == ["min RTO 1 ms"]
    (first_fit,) = found["Hedera"]
    assert first_fit.label == "Hedera: first fit" and first_fit.goodput_pct == pytest.approx((-25,))


def test_seeds_that_one_setting_lacks_do_not_count() -> None:
    points = [run(800, seed=seed, queue_pkts=pkts) for pkts in (25, 100) for seed in (1, 2)]
    assert {point.seed for point in with_equal_seeds([*points, run(800, seed=3)])} == {1, 2}
    assert with_equal_seeds([run(800, seed=1), run(800, seed=2, queue_pkts=25)]) == []


def test_the_title_names_what_moves_goodput_most() -> None:
    assert assumption_finding(changes(sweep())) == "Min RTO 1 ms moves goodput most: -50 % (MPTCP 4)"


def test_schemes_without_a_change_are_left_out(tmp_path: Path) -> None:
    chart = CHARTS["by_assumption"]
    assert chart.draw([run(800)], tmp_path) == []
    (path,) = chart.draw(sweep(), tmp_path)
    assert all(words in words_of(path) for words in ("queue 25 packets", "Hedera: first fit", "MPTCP 4"))
