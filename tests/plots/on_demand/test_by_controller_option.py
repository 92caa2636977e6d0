"""Options of a controller one at a time: which points make rows, in which order, and the title."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from model.spec import SchedulerSpec
from plots.charts.subflows_on_demand import messages, option_finding, rows
from plots.data import Point
from plots.registry import CHARTS
from tests.support.chart_points import changed, flow_row, point
from tests.support.svg_text import words_of

USUAL = SchedulerSpec("responsive", 2.0)


def led(mbps: float, subflows: int = 4, seed: int = 1, **options: Any) -> Point:
    flow = dataclasses.replace(flow_row(0), goodput_mbps=mbps, subflows_joined=subflows)
    return changed(
        point(subflows), seed=seed, flows=(flow,), scheduler=dataclasses.replace(USUAL, **options),
        metrics={"controller_messages": 400.0}, warmup_s=0.1, seconds=0.1,
    )  # fmt: skip


def sweep() -> list[Point]:
    return [
        *(led(800, seed=seed) for seed in (1, 2)),
        led(760, interval_ms=8.0),
        led(780, interval_ms=4.0),
        led(810, checks=1),
        led(790, one_per_tick=True),
        led(500, subflows=1),
        led(1, interval_ms=4.0, checks=9),
    ]


def test_rows_change_one_option_and_the_first_none() -> None:
    assert [row.label for row in rows(sweep())] == [
        "usual setting",
        "monitor interval 4 ms",
        "monitor interval 8 ms",
        "steady checks 1",
        "one flow per tick",
        "most subflows 1",
    ]
    assert len(rows(sweep())[0].points) == 2


def test_the_title_names_the_value_that_moves_goodput_most() -> None:
    assert option_finding(rows(sweep())) == "Most subflows 1 moves goodput most: -37.5 %"


def test_messages_are_of_the_whole_run() -> None:
    assert messages(led(800)) == pytest.approx(2.0)


def test_points_without_a_responsive_controller_are_left_out(tmp_path: Path) -> None:
    chart = CHARTS["by_controller_option"]
    assert chart.draw([point(8), led(800)], tmp_path) == []
    (path,) = chart.draw([point(8), *sweep()], tmp_path)
    assert all(words in words_of(path) for words in ("usual setting", "steady checks 1"))
