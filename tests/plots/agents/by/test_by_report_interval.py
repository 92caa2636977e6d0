"""Last completions of an incast by reporting interval: curves, the title."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from model.spec import AgentSpec, WorkloadSpec
from plots.charts.ccp_agents import curves, interval_finding
from plots.data import Point
from plots.registry import CHARTS
from tests.support.chart_points import changed, flow_row, point
from tests.support.svg_text import words_of


def made(cc: str, tail_s: float, report_us: int = 0, seed: int = 1, packets: int = 100) -> Point:
    flows = tuple(
        dataclasses.replace(flow_row(n), size_bytes=1000, completed_s=took, start_s=0.0)
        for n, took in enumerate((tail_s / 2, tail_s))
    )
    agent = AgentSpec(20.0, 0.0, report_us) if report_us else AgentSpec()
    workload = WorkloadSpec("incast", {"packets": packets})
    return changed(point(1, seed), cc=cc, agent=agent, flows=flows, workload=workload)


def both(seed: int = 1) -> list[Point]:
    return [made("reno", 2.0, seed=seed), made("ccp:reno", 2.0, 10, seed), made("ccp:reno", 5.0, 500, seed)]


def test_the_last_flow_counts_beside_the_same_seed() -> None:
    (curve,) = curves([*both(), *both(2), made("ccp:reno", 4.0, 10, seed=3)])
    assert curve.ratios == {10: (1.0, 1.0), 500: (2.5, 2.5)}
    assert interval_finding([curve]) == "The last flow takes 1.00 to 2.50 times as long as without an agent"


def test_an_unfinished_flow_makes_no_ratio() -> None:
    assert curves([made("reno", 2.0), made("ccp:reno", float("inf"), 10)]) == []


def test_sizes_are_curves(tmp_path: Path) -> None:
    (path,) = CHARTS["by_report_interval"].draw(both(), tmp_path)
    assert "100 packets" in words_of(path)
    assert "last completion" in words_of(path)
