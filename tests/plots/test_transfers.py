"""The chart of sequential transfers."""

from __future__ import annotations

import dataclasses

import pytest

from analysis.sequential import MIN_PAIRS, pair_transfers
from model.result import FlowRow
from plots.charts.transfers import finding
from tests.support.chart_points import flow_row


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


def test_only_complete_transfers_of_the_window_count() -> None:
    first, second = pair_transfers(FLOWS)
    assert (first.paths, second.paths) == (6, 1)
    assert first.mbps == pytest.approx({1: 5, 2: 10, 4: 20})
    early = tuple(dataclasses.replace(flow, start_s=-1.0) for flow in FLOWS)
    assert pair_transfers(early) == [], "begun in the warm-up"


def test_the_title_tells_what_is_gained_where() -> None:
    title = finding(pair_transfers(MIN_PAIRS * FLOWS))
    assert "between racks 4.00 times TCP, inside one 1.00 times TCP" in title
    assert not finding(pair_transfers(FLOWS)), "too few pairs for a mean"
