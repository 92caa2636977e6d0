"""Real hosts beside their simulated twins: pairs, subflows over time, the flows that are shown, and texts."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from model.result import Status, Table
from model.spec import SchedulerSpec
from plots.charts.demand_over_time import Twins, beside_finding, shown, subflows_over_time, twins
from plots.data import Point, panels
from plots.registry import CHARTS
from tests.support.chart_points import changed, flow_row, point
from tests.support.svg_text import words_of

APART = ("scheduler", "engine", "stack", "traffic")


def sockets(second_from_s: float) -> Table:
    """One subflow of flows 0 to 5 at five instants, and a second one of flow 0 from a time on."""
    times = (0.0, 0.2, 0.4, 0.6, 0.8)
    rows = [(t, flow, 0) for t in times for flow in range(6)] + [
        (t, 0, 1) for t in times if t >= second_from_s
    ]
    t_s, flow, subflow = zip(*sorted(rows), strict=True)
    return Table({"t_s": np.array(t_s), "flow": np.array(flow), "subflow": np.array(subflow)})


def ran(engine: str, joined: int, *, seed: int = 1, status: Status = Status.OK) -> Point:
    flows = tuple(
        dataclasses.replace(
            flow_row(n), src=f"a{n}", dst=f"b{n}", goodput_mbps=5.0 + n, subflows_joined=joined
        )
        for n in range(6)
    )
    return changed(
        point(4, seed),
        engine=engine,
        scheduler=SchedulerSpec("responsive", 200.0),
        flows=flows,
        status=status,
        read_table={"sockets": sockets(0.1 * joined)}.get,
    )


def test_points_pair_up_by_seed() -> None:
    points = [ran("mininet", 2), ran("simulator", 3), ran("simulator", 3, seed=2), ran("mininet", 2, seed=3)]
    (panel,) = panels(points, ignoring=APART)
    [pair] = twins(panel)
    assert (pair.real.spec.engine, pair.simulated.spec.engine, pair.suspect) == (
        "mininet",
        "simulator",
        False,
    )
    assert beside_finding([pair]) == "Subflows per flow: 2.00 real, 3.00 simulated"


def test_subflows_are_counted_at_each_instant() -> None:
    times, count = subflows_over_time(sockets(0.4), 0)
    assert times.tolist() == [0.0, 0.2, 0.4, 0.6, 0.8]
    assert count.tolist() == [1, 1, 2, 2, 2]
    assert subflows_over_time(sockets(0.4), 5)[1].tolist() == [1] * 5


def test_flows_over_all_ranks_are_shown() -> None:
    assert shown(Twins(ran("mininet", 2), ran("simulator", 2))) == [0, 2, 3, 5]


@pytest.mark.parametrize("status", [Status.OK, Status.SUSPECT])
def test_chart_says_what_it_shows(tmp_path: Path, status: Status) -> None:
    chart = CHARTS["subflows_beside"]
    assert chart.draw([ran("simulator", 3)], tmp_path) == []
    (path,) = chart.draw([ran("mininet", 2, status=status), ran("simulator", 3)], tmp_path)
    words = words_of(path)
    assert "Subflows per flow: 2.00 real, 3.00 simulated" in words
    assert "a0 to b0: subflows" in words and "real hosts" in words
