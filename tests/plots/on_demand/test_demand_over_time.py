"""Goodput and subflows over time: what samples give, what is shaded, and the title."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from model.result import Table
from model.spec import LinkEvent, SchedulerSpec
from plots.charts.demand_over_time import down, over_time, over_time_curves, over_time_finding
from plots.data import Point, panels
from plots.registry import CHARTS
from tests.support.chart_points import changed, flow_row, point
from tests.support.svg_text import words_of

RESPONSIVE = SchedulerSpec("responsive", 2.0)


def sockets(mbps: float, slow_mbps: float) -> Table:
    """Two flows every 10 ms: flow 0 has a second subflow after 0.05 s; rates fall from 0.1 to 0.2 s."""
    times = np.arange(-0.05, 0.3001, 0.01)
    rate = np.where((times > 0.1001) & (times < 0.2001), slow_mbps, mbps)
    acked = np.cumsum(rate * 0.01 / 8e-6)
    rows = [(t, flow, 0, octets) for t, octets in zip(times, acked, strict=True) for flow in (0, 1)]
    rows += [(t, 0, 1, 1e-9 if t > 0.0501 else 0.0) for t in times]
    rows.sort()
    t_s, flow, subflow, octets = zip(*rows, strict=True)
    return Table({"t_s": np.array(t_s), "flow": np.array(flow), "subflow": np.array(subflow),
                  "bytes_acked": np.array(octets)})  # fmt: skip


def sampled(scheduler: SchedulerSpec, mbps: float, slow_mbps: float, subflows: int = 4) -> Point:
    cut = (LinkEvent(0.2, "p0a0", "c0"), LinkEvent(0.3, "p0a0", "c0", 1.0))
    table = sockets(mbps, slow_mbps)
    return changed(
        point(subflows), scheduler=scheduler, warmup_s=0.1, seconds=0.3, events=cut,
        flows=tuple(dataclasses.replace(flow_row(n)) for n in range(2)), read_table={"sockets": table}.get,
    )  # fmt: skip


def test_rates_and_subflows_are_per_flow() -> None:
    t_s, mbps, subflows = over_time(sockets(100.0, 50.0), 2)
    assert t_s[0] == pytest.approx(0.01)
    assert mbps[t_s < 0.05] == pytest.approx(100.0)
    assert subflows[0] == 1.0
    assert subflows[-1] == 1.5


def test_a_subflow_that_is_closed_takes_nothing_back() -> None:
    """Flow 0 has a second subflow at 1 Mb per interval that is missing at one instant, and then counts from 0
    as a new one of the kernel, or goes on. Sized flows, which come last, do not count."""
    for later in (250_000, 500_000):
        rows = [(t / 10, 0, 0, 125_000 * t) for t in range(6)]
        rows += [(0.1, 0, 1, 125_000), (0.2, 0, 1, 250_000), (0.4, 0, 1, later), (0.3, 1, 0, 9_000_000)]
        t_s, flow, subflow, octets = zip(*sorted(rows), strict=True)
        table = Table({"t_s": np.array(t_s), "flow": np.array(flow), "subflow": np.array(subflow),
                       "bytes_acked": np.array(octets)})  # fmt: skip
        _, mbps, subflows = over_time(table, 1)
        assert subflows.tolist() == [2, 2, 1, 2, 1]
        assert mbps[:3] == pytest.approx([20.0, 20.0, 10.0]) and mbps[4] == pytest.approx(10.0)
        assert mbps[3] == pytest.approx(30.0 if later == 500_000 else 10.0)


def test_what_is_down_and_when() -> None:
    of = sampled(RESPONSIVE, 100, 50)
    stopped = dataclasses.replace(RESPONSIVE, down_at_s=0.15, down_for_s=0.1)
    links, controller = down(of.spec), down(dataclasses.replace(of.spec, scheduler=stopped))
    assert links is not None and controller is not None
    assert (links[1], controller[1]) == ("links are down", "controller is down")
    assert list(links[0]) == pytest.approx([0.1, 0.2])
    assert list(controller[0]) == pytest.approx([0.05, 0.15])
    assert down(point(1).spec) is None
    monitors = down(dataclasses.replace(of.spec, scheduler=dataclasses.replace(stopped, down_monitors=0.5)))
    assert monitors is not None and monitors == (controller[0], "monitors are down")


def test_the_title_has_the_best_of_each_kind() -> None:
    points = [
        sampled(RESPONSIVE, 100, 80),
        sampled(SchedulerSpec(), 100, 40, subflows=2),
        sampled(SchedulerSpec(), 100, 60),
    ]
    (panel,) = panels(points, ignoring=("scheduler",))
    title = over_time_finding([curve for curve in over_time_curves(panel)], (0.1, 0.2))
    assert title.startswith("Mb/s per flow during the outage, best of each kind: ")
    assert "80 with 2 ms, gap 0.15" in title and "60 with MPTCP 4" in title


def test_points_without_samples_are_left_out(tmp_path: Path) -> None:
    chart = CHARTS["demand_over_time"]
    assert chart.draw([point(4)], tmp_path) == []
    (path,) = chart.draw([sampled(RESPONSIVE, 100, 80)], tmp_path)
    assert "links are down" in words_of(path)
