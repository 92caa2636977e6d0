"""Time from a flow's start to its demand: demands, the first time, and the title."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from model.result import Table
from model.spec import SchedulerSpec
from plots.charts.demand_over_time import TimeCurve, demands_mbps, reached_s, time_finding
from plots.charts.subflows_on_demand import HASHED, RESPONSIVE
from plots.registry import CHARTS
from tests.support.chart_points import changed, flow_row, point
from tests.support.svg_text import words_of

STEP_S = 0.002


def flow(number: int, src: str, dst: str) -> object:
    return dataclasses.replace(flow_row(number), src=src, dst=dst)


def sockets(*rates_mbps: list[float]) -> Table:
    """One list of rates per flow, one rate per step; half of the bytes are of a second subflow."""
    rows = []
    for number, rates in enumerate(rates_mbps):
        octets = np.concatenate([[0.0], np.cumsum(np.array(rates) * STEP_S / 8e-6)])
        rows += [(STEP_S * i, number, sub, each / 2) for i, each in enumerate(octets) for sub in (0, 1)]
    t_s, of, subflow, acked = zip(*sorted(rows), strict=True)
    return Table({"t_s": np.array(t_s), "flow": np.array(of), "subflow": np.array(subflow),
                  "bytes_acked": np.array(acked)})  # fmt: skip


def test_flows_of_one_sender_or_receiver_share_its_link() -> None:
    rows = [flow(0, "a", "b"), flow(1, "a", "c"), flow(2, "d", "c"), flow(3, "e", "f")]
    assert demands_mbps(rows, 100.0) == pytest.approx([50.0, 50.0, 50.0, 100.0])  # type: ignore[arg-type]


def test_the_first_of_three_steady_samples_by_hand() -> None:
    """The average is .8 of the first rate; a burst of two samples does not count; flow 1 never gets there."""
    first = [900.0, 900.0, 0.0, 0.0, *[1000.0] * 4]
    found = reached_s(sockets(first, [100.0] * 8), np.array([1000.0, 1000.0]))
    assert found[0] == pytest.approx(6 * STEP_S)  # after one sample of 1000 the average is 816
    assert np.isinf(found[1])


def test_the_title_has_both_medians() -> None:
    of = [
        TimeCurve("2 ms, gap 0.15", RESPONSIVE, np.array([0.01, 0.05, 0.2])),
        TimeCurve("MPTCP 4", HASHED, np.array([0.1, np.inf, np.inf])),
    ]
    assert time_finding(of) == (
        "Half of the flows have 85 % of their demand after 50 ms on demand, more than the run with MPTCP 4"
    )


def test_points_without_samples_are_left_out(tmp_path: Path) -> None:
    chart = CHARTS["time_to_demand"]
    assert chart.draw([point(4)], tmp_path) == []
    flows = (flow(0, "a", "b"), flow(1, "c", "d"))
    sampled = changed(
        point(4), scheduler=SchedulerSpec("responsive", 2.0), rate_mbps=1000.0, flows=flows,
        read_table={"sockets": sockets([950.0] * 30, [400.0] * 30)}.get, warmup_s=0.0, seconds=0.06,
    )  # fmt: skip
    (path,) = chart.draw([sampled], tmp_path)
    assert "2 ms, gap 0.15" in words_of(path)
