"""Schedulers by interval beside TCP and MPTCP: what is drawn, and what the title tells."""

from __future__ import annotations

import dataclasses

import pytest

from model.result import Status
from model.spec import SchedulerSpec
from plots.charts.flow_scheduling import carried_pct, finding, rows
from plots.data import Point
from tests.support.chart_points import changed, flow_row, point

UNSCHEDULED = SchedulerSpec()


def led(mbps: float, scheduler: SchedulerSpec = UNSCHEDULED, subflows: int = 1, size: int = 0) -> Point:
    """Return a point of 16 hosts with eight flows of `mbps`; one flow alone would get 10."""
    flows = tuple(dataclasses.replace(flow_row(n), goodput_mbps=mbps, size_bytes=size) for n in range(8))
    return changed(
        point(subflows), flows=flows, hosts=16, baseline_mbps=10.0, scheduler=scheduler,
    )  # fmt: skip


def sweep(size: int = 0) -> list[Point]:
    return [
        led(8, size=size),
        led(16, SchedulerSpec("first_fit"), size=size),
        led(10, SchedulerSpec("first_fit", 500), size=size),
        led(15, SchedulerSpec("annealing", 500), size=size),
        led(20, subflows=8, size=size),
    ]


def test_what_a_host_gets_is_all_payload_over_the_hosts() -> None:
    assert carried_pct(led(8)) == pytest.approx(100 * 8 * 8 / 16 / 10)
    assert carried_pct(changed(led(8), baseline_mbps=None)) is None
    assert carried_pct(changed(led(8), status=Status.FAILED)) is None


def test_the_title_tells_how_much_of_mptcps_a_scheduler_carries() -> None:
    (row,) = rows(sweep())
    assert "80 % (ideal), 50 % (every 500 ms)" in finding(row)
    assert {name: list(by) for name, by in row.scheduled.items()} == {
        "first_fit": [0.0, 500.0],
        "annealing": [500.0],
    }


def test_what_is_suspect_is_shown_hollow_and_in_no_mean_with_what_is_good() -> None:
    bad = changed(led(2, SchedulerSpec("first_fit", 500)), status=Status.SUSPECT, seed=2)
    alone = changed(led(3, SchedulerSpec("first_fit", 1000)), status=Status.SUSPECT)
    slow = changed(led(9, subflows=4), status=Status.SUSPECT)
    (row,) = rows([*sweep(), bad, alone, slow])
    assert row.doubtful == {("first_fit", 1000.0)}
    assert row.scheduled["first_fit"][500.0] == [carried_pct(led(10))]
    assert any(who.endswith("(suspect)") for _, who in row.alone)
