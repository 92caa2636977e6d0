"""Goodput and subflows over time, and central schedulers by interval: what is drawn, and the title."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from harness.results.point_results import EnginePair
from model.result import Status, Table
from model.spec import LinkEvent, SchedulerSpec
from plots.charts.demand_over_time import (
    demands_mbps,
    down,
    over_time,
    reached_s,
    shown,
    subflows_over_time,
    time_numbers,
    time_to_demand,
    twins,
)
from plots.charts.flow_scheduling import carried_pct, numbers, series, workloads
from plots.data import Inputs, panels
from plots.picture import said
from plots.registry import CHARTS
from tests.support.chart_points import Point, changed, flow_row, point
from tests.support.svg_text import words_of

OVER_TIME_RESPONSIVE = SchedulerSpec("responsive", 2.0)


def columns(names: str, rows: Sequence[tuple[float, ...]]) -> Table:
    """Return a table of these rows, in the order of their instants."""
    values = zip(*sorted(rows), strict=True)
    return Table({name: np.array(of) for name, of in zip(names.split(), values, strict=True)})


def over_time_sockets(mbps: float, slow_mbps: float) -> Table:
    """Two flows every 10 ms: flow 0 has a second subflow after 0.05 s; rates fall from 0.1 to 0.2 s."""
    times = np.arange(-0.05, 0.3001, 0.01)
    rate = np.where((times > 0.1001) & (times < 0.2001), slow_mbps, mbps)
    acked = np.cumsum(rate * 0.01 / 8e-6)
    rows = [(t, flow, 0, octets) for t, octets in zip(times, acked, strict=True) for flow in (0, 1)]
    rows += [(t, 0, 1, 1e-9 if t > 0.0501 else 0.0) for t in times]
    return columns("t_s flow subflow bytes_acked", rows)


def sampled(scheduler: SchedulerSpec, mbps: float, slow_mbps: float, subflows: int = 4) -> Point:
    cut = (LinkEvent(0.2, "p0a0", "c0"), LinkEvent(0.3, "p0a0", "c0", 1.0))
    table = over_time_sockets(mbps, slow_mbps)
    return changed(
        point(subflows), scheduler=scheduler, warmup_s=0.1, seconds=0.3, events=cut,
        flows=tuple(dataclasses.replace(flow_row(n)) for n in range(2)), tables={"sockets": table}.get,
    )  # fmt: skip


def test_rates_and_subflows_are_per_flow() -> None:
    t_s, mbps, subflows = over_time(over_time_sockets(100.0, 50.0), 2)
    assert t_s[0] == pytest.approx(0.01)
    assert mbps[t_s < 0.05] == pytest.approx(100.0)
    assert subflows[0] == 1.0
    assert subflows[-1] == 1.5


def test_a_subflow_that_is_closed_takes_nothing_back() -> None:
    """Flow 0 has a second subflow at 1 Mb per interval that is missing at one instant, and then counts from 0
    as a new one of the kernel, or goes on. Sized flows, which come last, do not count."""
    for later, mbps_then in ((125_000, 20.0), (250_000, 10.0), (500_000, 30.0)):
        rows = [(t / 10, 0, 0, 125_000 * t) for t in range(6)]
        rows += [(0.1, 0, 1, 125_000), (0.2, 0, 1, 250_000), (0.4, 0, 1, later), (0.3, 1, 0, 9_000_000)]
        _, mbps, subflows = over_time(columns("t_s flow subflow bytes_acked", rows), 1)
        assert subflows.tolist() == [2, 2, 1, 2, 1]
        assert mbps[:3] == pytest.approx([20.0, 20.0, 10.0]) and mbps[4] == pytest.approx(10.0)
        assert mbps[3] == pytest.approx(mbps_then)


def test_what_is_down_and_when() -> None:
    of = sampled(OVER_TIME_RESPONSIVE, 100, 50)
    stopped = dataclasses.replace(OVER_TIME_RESPONSIVE, down_at_s=0.15, down_for_s=0.1)
    links, controller = down(of.spec), down(dataclasses.replace(of.spec, scheduler=stopped))
    assert links is not None and controller is not None
    assert (links[1], controller[1]) == ("links are down", "controller is down")
    assert list(links[0]) == pytest.approx([0.1, 0.2])
    assert list(controller[0]) == pytest.approx([0.05, 0.15])
    assert down(point(1).spec) is None
    monitors = down(dataclasses.replace(of.spec, scheduler=dataclasses.replace(stopped, down_monitors=0.5)))
    assert monitors is not None and monitors == (controller[0], "monitors are down")


def test_over_time_points_without_samples_are_left_out(tmp_path: Path) -> None:
    chart = CHARTS["demand_over_time"]
    assert chart.draw(Inputs([point(4)], tmp_path)) == []
    (path,) = chart.draw(Inputs([sampled(OVER_TIME_RESPONSIVE, 100, 80)], tmp_path))
    assert "links are down" in words_of(path)


STEP_S = 0.002


def flow(number: int, src: str, dst: str) -> object:
    return dataclasses.replace(flow_row(number), src=src, dst=dst)


def time_sockets(*rates_mbps: list[float]) -> Table:
    """One list of rates per flow, one rate per step; half of the bytes are of a second subflow."""
    rows = []
    for number, rates in enumerate(rates_mbps):
        octets = np.concatenate([[0.0], np.cumsum(np.array(rates) * STEP_S / 8e-6)])
        rows += [(STEP_S * i, number, sub, each / 2) for i, each in enumerate(octets) for sub in (0, 1)]
    return columns("t_s flow subflow bytes_acked", rows)


def test_flows_of_one_sender_or_receiver_share_its_link() -> None:
    rows = [flow(0, "a", "b"), flow(1, "a", "c"), flow(2, "d", "c"), flow(3, "e", "f")]
    assert demands_mbps(rows, 100.0) == pytest.approx([50.0, 50.0, 50.0, 100.0])  # type: ignore[arg-type]


def test_the_first_of_three_steady_samples_by_hand() -> None:
    """The average is .8 of the first rate; a burst of two samples does not count; flow 1 never gets there."""
    first = [900.0, 900.0, 0.0, 0.0, *[1000.0] * 4]
    found = reached_s(time_sockets(first, [100.0] * 8), np.array([1000.0, 1000.0]))
    assert found[0] == pytest.approx(6 * STEP_S)  # after one sample of 1000 the average is 816
    assert np.isinf(found[1])


def test_the_title_has_both_medians() -> None:
    times = {"2 ms, gap 0.15": np.array([0.01, 0.05, 0.2]), "MPTCP 4": np.array([0.1, np.inf, np.inf])}
    numbers = time_numbers(times, ["2 ms, gap 0.15"])
    title = said(time_to_demand.finding, numbers)
    assert "after 50 ms on demand, more than the run with MPTCP 4" in title


def test_time_points_without_samples_are_left_out(tmp_path: Path) -> None:
    chart = CHARTS["time_to_demand"]
    assert chart.draw(Inputs([point(4)], tmp_path)) == []
    flows = (flow(0, "a", "b"), flow(1, "c", "d"))
    sampled = changed(
        point(4), scheduler=SchedulerSpec("responsive", 2.0), rate_mbps=1000.0, flows=flows,
        tables={"sockets": time_sockets([950.0] * 30, [400.0] * 30)}.get, warmup_s=0.0, seconds=0.06,
    )  # fmt: skip
    (path,) = chart.draw(Inputs([sampled], tmp_path))
    assert "2 ms, gap 0.15" in words_of(path)


APART = ("scheduler", "engine", "stack", "traffic")


def beside_sockets(second_from_s: float) -> Table:
    """One subflow of flows 0 to 5 at five instants, and a second one of flow 0 from a time on."""
    times = (0.0, 0.2, 0.4, 0.6, 0.8)
    rows = [(t, flow, 0) for t in times for flow in range(6)]
    return columns("t_s flow subflow", [*rows, *((t, 0, 1) for t in times if t >= second_from_s)])


def ran(engine: str, joined: int, *, seed: int = 1) -> Point:
    flows = tuple(
        dataclasses.replace(flow_row(n), goodput_mbps=5.0 + n, subflows_joined=joined) for n in range(6)
    )
    return changed(
        point(4, seed), engine=engine, scheduler=SchedulerSpec("responsive", 200.0), flows=flows,
        tables={"sockets": beside_sockets(0.1 * joined)}.get,
    )  # fmt: skip


def test_points_pair_up_by_seed(tmp_path: Path) -> None:
    points = [ran("mininet", 2), ran("simulator", 3), ran("simulator", 3, seed=2), ran("mininet", 2, seed=3)]
    (panel,) = panels(points, ignoring=APART)
    [pair] = twins(panel)
    assert (pair.emulated.spec.engine, pair.simulated.spec.engine) == ("mininet", "simulator")
    (path,) = CHARTS["subflows_beside"].draw(Inputs(points[:2], tmp_path))
    assert "2.00 real, 3.00 simulated" in words_of(path)


def test_subflows_are_counted_at_each_instant() -> None:
    times, count = subflows_over_time(beside_sockets(0.4), 0)
    assert times.tolist() == [0.0, 0.2, 0.4, 0.6, 0.8]
    assert count.tolist() == [1, 1, 2, 2, 2]
    assert subflows_over_time(beside_sockets(0.4), 5)[1].tolist() == [1] * 5


def test_flows_over_all_ranks_are_shown() -> None:
    assert shown(EnginePair(ran("mininet", 2), ran("simulator", 2))) == [0, 2, 3, 5]


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
    (panel,) = workloads(sweep())
    found = numbers(panel)
    assert found is not None and found["of"] == [(0, pytest.approx(80)), (500, pytest.approx(50))]
    assert [one.name for one in series(panel)] == [
        "TCP",
        "MPTCP 8 uncoupled (reno)",
        "first_fit",
        "annealing",
    ]


def test_what_is_suspect_is_shown_hollow_and_in_no_mean_with_what_is_good() -> None:
    bad = changed(led(2, SchedulerSpec("first_fit", 500)), status=Status.SUSPECT, seed=2)
    alone = changed(led(3, SchedulerSpec("first_fit", 1000)), status=Status.SUSPECT)
    slow = changed(led(9, subflows=4), status=Status.SUSPECT)
    (panel,) = workloads([*sweep(), bad, alone, slow])
    of = {one.name: one.points for one in series(panel)}
    at = {p.spec.scheduler.interval_ms: p for p in of["first_fit"]}
    assert {ms for ms, point in at.items() if point.suspect} == {1000}
    assert carried_pct(at[500]) == carried_pct(led(10)) and len(of["first_fit"]) == 3
    assert any(name.endswith("(suspect)") for name in of)
