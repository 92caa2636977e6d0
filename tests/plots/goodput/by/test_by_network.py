"""Networks side by side: each has its row, its transports their marks."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from analysis.stats import spread
from plots.charts.gains import network_finding
from plots.data import Point, panels
from plots.registry import CHARTS
from tests.support.chart_points import changed, flow_row, point
from tests.support.svg_text import words_of


def on(topology: str, subflows: int, pct: float, **shape: int) -> Point:
    flows = tuple(dataclasses.replace(flow_row(n), goodput_mbps=1.0 + n) for n in range(2))
    return changed(
        point(subflows), topology=topology, goodput_pct=spread([pct]), flows=flows, shape=shape,
    )  # fmt: skip


POINTS = [
    on("fat_tree", 1, 40),
    on("fat_tree", 8, 80),
    on("fat_tree", 1, 20, oversubscription=4),
    on("fat_tree", 8, 24, oversubscription=4),
    on("vl2", 1, 90),
    on("vl2", 8, 99),
]


def test_one_chart_has_all_networks(tmp_path: Path) -> None:
    (path,) = CHARTS["by_network"].draw(POINTS, tmp_path, expected=(1, 8))
    words = words_of(path)
    assert "MPTCP 8 gains most on FatTree k=4, 2.00 times TCP, least on VL2 da=4, 1.10 times" in words
    assert "FatTree k=4, 4:1" in words


def test_without_tcp_there_is_no_gain_to_tell() -> None:
    assert network_finding(panels([on("fat_tree", 8, 80)])) == "Goodput and fairness by network"


def test_other_traffic_has_a_chart_of_its_own(tmp_path: Path) -> None:
    local = [changed(one, workload="stride") for one in POINTS]
    assert len(CHARTS["by_network"].draw([*POINTS, *local], tmp_path)) == 2
