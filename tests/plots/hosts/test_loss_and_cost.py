"""Charts of losses and cost."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from model.result import Status
from plots.charts.congestion_controls import cells_of, cost_finding
from plots.data import Point, panels
from plots.registry import CHARTS
from tests.support.chart_points import changed, flow_row, point, port_row
from tests.support.svg_text import words_of


def costing(cc: str, subflows: int, retransmits: int, seed: int = 1, cpu: float | None = None) -> Point:
    flows = tuple(
        dataclasses.replace(flow_row(n), bytes_received=144_800, retransmits=retransmits) for n in range(4)
    )
    ports = (port_row(0, "p0e0", "p0a0", "edge-agg"), port_row(1, "p0e0", "p0e0h0", "edge-host"))
    metrics = {} if cpu is None else {"cpu_s_per_gb": cpu}
    return changed(point(subflows, seed), cc=cc, flows=flows, ports=ports, metrics=metrics)


POINTS = [costing("lia", 1, 2), costing("lia", 8, 1), costing("reno", 8, 5)]


def test_congestion_controls_share_a_chart(tmp_path: Path) -> None:
    (path,) = CHARTS["loss_and_cost"].draw(POINTS, tmp_path)
    words = words_of(path)
    assert "Retransmitted per 100 delivered: MPTCP 8 1, uncoupled 5, TCP 2" in words
    assert "LIA" in words and "CPU seconds" not in words


def test_cpu_is_drawn_where_it_was_measured(tmp_path: Path) -> None:
    (path,) = CHARTS["loss_and_cost"].draw([costing("lia", 8, 1, cpu=12.0)], tmp_path)
    assert "CPU seconds" in words_of(path)


def test_good_seeds_stand_before_suspect_ones() -> None:
    doubtful = changed(costing("lia", 8, 9, seed=2), status=Status.SUSPECT)
    (panel,) = panels([costing("lia", 8, 1), doubtful])
    cells = cells_of(panel)
    assert [p.seed for p in cells["lia", 8]] == [1]
    assert "MPTCP 8 1" in cost_finding(cells)
