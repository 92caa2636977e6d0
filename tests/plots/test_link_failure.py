"""Charts of failing links."""

from __future__ import annotations

from pathlib import Path

import pytest

from model.result import Table
from model.spec import LinkEvent
from plots.charts.link_failure import over_time, stalled_pct, while_down_pct
from plots.data import Point
from plots.registry import CHARTS
from tests.support.chart_points import changed, point
from tests.support.svg_text import words_of

EVENTS = (LinkEvent(12.0, "p0a0", "c0"), LinkEvent(14.0, "p0a0", "c0", 1.0))
"""Links are down from 2 to 4 s after the warm-up of 10 s."""


def failing(subflows: int, kept: float, seed: int = 1) -> Point:
    """Two flows of 10 Mb/s together, of which the second stands still while links are down."""
    rows = [
        (t_s, flow, (kept / 10 if flow == 0 else 0.0) if t_s in {3.0, 4.0} else 5.0)
        for t_s in (1.0, 2.0, 3.0, 4.0, 5.0)
        for flow in (0, 1)
    ]
    table = Table.from_rows(("t_s", "flow", "mbps"), rows)
    return changed(point(subflows, seed), cc="lia", rate_mbps=10.0, events=EVENTS, read_table=lambda _: table)


def test_the_failure_is_drawn_over_time_and_by_rank(tmp_path: Path) -> None:
    made = [failing(1, 40), failing(8, 75)]
    (path,) = CHARTS["failure"].draw(made, tmp_path)
    assert "50 % of the TCP flows stand still, 50 % of MPTCP 8's" in words_of(path)
    assert over_time(made[1:])[1] == [[100, 100, 75, 75, 100]]
    assert [sorted(flows) for flows in while_down_pct(made[:1])] == [pytest.approx([0, 40])]
    assert stalled_pct([failing(8, 70), failing(8, 0, seed=2)]) == pytest.approx(75)
