"""The chart of sequential transfers."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from analysis.sequential import MIN_PAIRS, pair_transfers
from model.result import FlowRow
from plots.charts.transfers import finding
from plots.data import Point
from plots.registry import CHARTS
from tests.support.chart_points import changed, flow_row, point
from tests.support.svg_text import words_of


def turn(src: str, dst: str, *seconds: float) -> list[FlowRow]:
    """One transfer of 10 Mbit by each transport."""
    rows = zip((1, 2, 4), seconds, strict=True)
    return [
        dataclasses.replace(
            flow_row(),
            src=src,
            dst=dst,
            size_bytes=1_250_000,
            subflows_asked=n,
            start_s=1.0,
            completed_s=took,
        )
        for n, took in rows
    ]


FLOWS = (
    *turn("r0h0", "r1h0", 2.0, 1.0, 0.5),
    *turn("r0h0", "r0h1", 0.5, 0.5, 0.5),
    *turn("r0h0", "r3h0", 0.5, 0.5, float("nan")),
    dataclasses.replace(flow_row(), src="r0t0", dst="r1t0", size_bytes=5, completed_s=9.0),
)


def transfers(flows: tuple[FlowRow, ...] = FLOWS) -> Point:
    return changed(point(4), topology="cloud", k=40, workload="in_turn", flows=flows)


def test_only_complete_transfers_of_the_window_count() -> None:
    first, second = pair_transfers(FLOWS)
    assert (first.paths, second.paths) == (6, 1)
    assert first.mbps == pytest.approx({1: 5, 2: 10, 4: 20})
    early = tuple(dataclasses.replace(flow, start_s=-1.0) for flow in FLOWS)
    assert pair_transfers(early) == [], "begun in the warm-up"


def test_the_title_tells_what_is_gained_where(tmp_path: Path) -> None:
    title = finding(pair_transfers(MIN_PAIRS * FLOWS))
    assert title == "MPTCP 4: between racks 4.00 times TCP, inside one 1.00 times TCP"
    assert finding(pair_transfers(FLOWS)) == "Sequential transfers, too few pairs for a mean"
    (path,) = CHARTS["sequential_transfers"].draw([transfers()], tmp_path)
    assert "(in a rack)" in words_of(path) and "n = 1" in words_of(path)


def test_other_workloads_have_no_such_chart(tmp_path: Path) -> None:
    assert CHARTS["sequential_transfers"].draw([transfers((flow_row(),))], tmp_path) == []
