"""Charts of losses and cost, and of failing links."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from model.result import Status, Table
from model.spec import LinkEvent
from plots.charts.goodput.failure import finding as failure_finding
from plots.charts.goodput.failure import over_time, ranks_pct, stalled_pct
from plots.charts.hosts.loss_and_cost import cells_of, finding
from plots.data import Point, panels
from plots.registry import CHARTS
from tests.support.chart_points import changed, flow_row, point, port_row
from tests.support.svg_text import words_of


def costing(cc: str, subflows: int, resent: int, seed: int = 1, cpu: float | None = None) -> Point:
    flows = tuple(
        dataclasses.replace(flow_row(n), bytes_received=144_800, retransmits=resent) for n in range(4)
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
    assert "MPTCP 8 1" in finding(cells)


EVENTS = (LinkEvent(12.0, "p0a0", "c0"), LinkEvent(14.0, "p0a0", "c0", 1.0))
"""Links are down from 2 to 4 s after the warm-up of 10 s."""


def failing(subflows: int, kept: float, seed: int = 1) -> Point:
    """Two flows of 10 Mb/s together, of which the second stands still while links are down."""
    rows = [
        (
            t_s,
            flow,
            (kept / 10 if flow == 0 else 0.0) if t_s in {3.0, 4.0} else 5.0,
        )
        for t_s in (1.0, 2.0, 3.0, 4.0, 5.0)
        for flow in (0, 1)
    ]
    table = Table.from_rows(("t_s", "flow", "mbps"), rows)
    return changed(point(subflows, seed), cc="lia", rate_mbps=10.0, events=EVENTS, read_table=lambda _: table)


def test_the_failure_is_drawn_over_time_and_by_rank(tmp_path: Path) -> None:
    made = [failing(1, 40), failing(8, 75)]
    (path,) = CHARTS["failure"].draw(made, tmp_path)
    words = words_of(path)
    assert "While links are down 50 % of the TCP flows stand still, 50 % of MPTCP 8's" in words
    assert "links are down" in words
    assert over_time(made[1:])[1] == [[100, 100, 75, 75, 100]]
    assert ranks_pct(made[:1]) == pytest.approx([0, 40])
    assert stalled_pct([failing(8, 70), failing(8, 0, seed=2)]) == pytest.approx(75)
    assert failure_finding({1: 47.0, 8: 0.0}).endswith("47 % of the TCP flows stand still, none of MPTCP 8's")


def test_without_a_failure_there_is_no_chart(tmp_path: Path) -> None:
    whole = changed(failing(8, 75), events=())
    assert CHARTS["failure"].draw([whole], tmp_path) == []
    assert failure_finding({}) == "Goodput while links fail"
