"""The registry: each chart is drawn from good, suspect and flowless points, and costs nothing before."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from engines.engine import Silent
from engines.simulation.engine import SimulatorEngine
from model.arms import ARMS, MINTCP, ON_LINUX, TCP, TWINS
from model.noise import stalls_of
from model.result import NO_VALUE, FlowRow, Status
from model.spec import (
    OF_ALL,
    AgentSpec,
    LinkEvent,
    LinkSpec,
    RunSpec,
    SchedulerSpec,
    TopologySpec,
    TransportSpec,
    WorkloadSpec,
)
from plots.data import Inputs
from plots.registry import CHARTS
from tests.support.chart_points import Point, changed, flow_row, point, port_row, sampled, with_mean
from tests.support.reasons import of_text
from tests.support.svg_text import words_of
from workloads import matrices

SIZED = tuple(
    dataclasses.replace(
        flow_row(n), size_bytes=70_000, start_s=0.1, completed_s=0.01 + n / 1000, ideal_s=0.005, src="r0h0",
        dst="r1h0", subflows_asked=n,
    )
    for n in (1, 2, 4)
)  # fmt: skip
"""Completed transfers by TCP and by MPTCP."""
PORTS = (
    port_row(0, "l0h0", "l0a", "host-edge"),
    port_row(1, "l0h0", "l0b", "host-edge"),
    dataclasses.replace(port_row(2, "l0a", "r0a", "edge-agg"), lost=10),
    port_row(3, "r0a", "r0h0", "agg-host"),
    port_row(4, "l0b", "r0a", "edge-agg"),
    port_row(5, "r0h0", "r0a", "host-agg"),
)
BESIDE_TCP = tuple(dataclasses.replace(flow_row(n), src=f"l0h{n}", srtt_ms_mean=10.0) for n in range(2))
OUTAGE = (LinkEvent(12.0, "p0a0", "c0"), LinkEvent(14.0, "p0a0", "c0", 1.0))
STALLED = stalls_of(OF_ALL, 8)


def against_tcp(kind: str, k: int) -> list[Point]:
    return [changed(point(2), topology=kind, k=k, workload="against_tcp", flows=BESIDE_TCP, ports=PORTS)]


def with_flows(flows: tuple[FlowRow, ...], **fields: object) -> list[Point]:
    return [changed(point(1), flows=flows, **fields)]


def in_engines(*engines: str) -> list[Point]:
    return [changed(point(n), engine=engine) for n in (1, 8) for engine in engines]


def of_arms(names: Sequence[str] = (MINTCP, TCP)) -> list[Point]:
    """Points of these arms at a load of 80 %, whose queues were sampled."""
    found = []
    for name in names:
        point = changed(sampled(1), flows=SIZED, workload=WorkloadSpec("pairs", {"load": 80}))
        found.append(dataclasses.replace(point, spec=point.spec.changed(ARMS[name].settings)))
    return found


def loaded(percent: int) -> Point:
    flows = tuple(dataclasses.replace(flow_row(n), src=f"h{n}") for n in range(percent // 10))
    return changed(point(1), flows=flows, workload=WorkloadSpec("connections", {"percent": percent}))


def of_calls(*workloads: str) -> list[Point]:
    """Short simulated points about SIP calls, on a small star."""
    found = []
    for text in workloads:
        matrix, params = matrices.parse(text)
        spec = RunSpec(
            LinkSpec(100.0), TopologySpec("star", {"n": 14}), TransportSpec(1), WorkloadSpec(matrix, params),
            engine="simulator", warmup_s=0.0, seconds=6.0,
        )  # fmt: skip
        result = SimulatorEngine().run(spec, Silent(), Path())
        found.append(Point(spec, Status.OK, 14, metrics=result.metrics, tables=dict(result.samples).get))
    return found


POINTS: dict[str, Callable[[], list[Point]]] = {
    "noise": lambda: [changed(p, noise=STALLED) for p in in_engines("simulator")] + in_engines("simulator"),
    "fct": lambda: with_flows(SIZED),
    "short_and_long": lambda: with_flows((*SIZED, flow_row())),
    "share": lambda: against_tcp("dumbbell", 2),
    "shift": lambda: against_tcp("two_bottlenecks", 3),
    "by_load": lambda: [loaded(50), loaded(100)],
    "loss_law": lambda: with_flows(BESIDE_TCP, ports=PORTS, loss=0.01),
    "conserved": lambda: with_flows(SIZED, ports=PORTS),
    "cross_check": lambda: in_engines("mininet", "simulator"),
    "flow_level": lambda: in_engines("flow-level"),
    "subflows_needed": lambda: in_engines("flow-level"),
    "failure": lambda: [changed(sampled(n), events=OUTAGE) for n in (1, 8)],
    "scheduling": lambda: [point(8), changed(point(1), scheduler=SchedulerSpec("first_fit", 500))],
    **{name: of_arms for name in CHARTS if name.startswith("normalised_") or name == "queue_by_arm"},
    "normalised_by_flow": lambda: of_arms((*ON_LINUX, *TWINS)),
    "by_agent_delay": lambda: [
        changed(point(1), cc="ccp:reno", agent=AgentSpec(delay_us)) for delay_us in (300.0, 3000.0)
    ],
    "by_report_interval": lambda: [
        changed(point(1), cc=cc, agent=AgentSpec(20.0, 0.0, us), flows=SIZED)
        for cc, us in (("reno", 0), ("ccp:reno", 10), ("ccp:reno", 50))
    ],
    "by_controller_option": lambda: [
        changed(point(4), scheduler=SchedulerSpec("responsive", interval_ms)) for interval_ms in (2.0, 4.0)
    ],
    "by_assumption": lambda: [point(4), changed(point(4), queue_pkts=25)],
    "subflows_beside": lambda: [
        changed(sampled(4), engine=engine, scheduler=SchedulerSpec("responsive", 200.0))
        for engine in ("mininet", "simulator")
    ],
    "ladder": lambda: of_calls("sip:130", "sip:130:scscf=2", "sip:180:scscf=2"),
    "knee": lambda: of_calls("sip:90", "sip:130", "sip:90:scscf=2"),
    "controlled": lambda: of_calls("sip:130:policy=queue"),
    "policies": lambda: of_calls("sip:130:policy=queue", "sip:130", "sip:130:policy=queue:react_s=3"),
    "sequential_transfers": lambda: with_flows(SIZED, topology="cloud", k=40),
}
"""For charts that are not of any sampled points."""


def test_published_loads_are_marked_where_a_figure_names_them(tmp_path: Path) -> None:
    (marked,) = CHARTS["knee"].draw(Inputs(POINTS["knee"](), tmp_path, marks=(130, 180)))
    assert "published loads" in words_of(marked)
    (plain,) = CHARTS["knee"].draw(Inputs(POINTS["knee"](), tmp_path))
    assert "published loads" not in words_of(plain)


def points_for(name: str) -> list[Point]:
    return POINTS[name]() if name in POINTS else [sampled(1), sampled(8)]


@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_is_drawn(name: str, tmp_path: Path) -> None:
    files = CHARTS[name].draw(Inputs(points_for(name), tmp_path, expected=(1, 8)))
    assert files, "nothing was drawn"
    for path in files:
        assert path.name.startswith(name) and path.is_file()
        assert len(words_of(path)) > 100


def doubtful(of: Point) -> Point:
    """Return a suspect point of an earlier seed, whose flows are three times as slow."""
    flows = tuple(
        dataclasses.replace(
            flow, goodput_mbps=flow.goodput_mbps / 3, completed_s=3 * flow.completed_s,
            srtt_ms_mean=3 * flow.srtt_ms_mean, retransmits=9 * flow.retransmits + 7,
        )
        for flow in of.flows
    )  # fmt: skip
    reasons = (of_text("reason of suspect"),)
    pct = of.goodput_pct and dataclasses.replace(of.goodput_pct, mean=of.goodput_pct.mean / 3)
    return with_mean(changed(of, seed=0, status=Status.SUSPECT, reasons=reasons, flows=flows), pct)


def titles_of(paths: Sequence[Path]) -> list[str]:
    """Return the lines of the titles: texts of the largest size."""
    found = []
    for path in paths:
        sized = re.findall(r"font-size: ([\d.]+)px[^>]*>([^<]*)<", path.read_text())
        largest = max(float(size) for size, _ in sized)
        found += [text for size, text in sized if float(size) == largest]
    return found


@pytest.mark.parametrize("name", CHARTS)
def test_suspect_points_are_named_and_in_no_title_beside_good_ones(name: str, tmp_path: Path) -> None:
    """The chart of the noise leaves them out."""
    good = points_for(name)
    bad = [doubtful(each) for each in good]
    of_good, of_both, of_bad = (
        CHARTS[name].draw(Inputs(points, tmp_path / folder, expected=(1, 8)))
        for folder, points in (("good", good), ("both", [*good, *bad]), ("bad", bad))
    )
    assert titles_of(of_good) == titles_of(of_both) != []
    assert all("suspect" in words_of(path).lower() for path in of_bad)
    assert of_bad or name == "noise"


def endless(flows: Sequence[FlowRow]) -> tuple[FlowRow, ...]:
    return tuple(dataclasses.replace(flow, completed_s=NO_VALUE, size_bytes=0) for flow in flows)


@pytest.mark.parametrize("name", CHARTS)
def test_no_chart_fails_for_want_of_flows(name: str, tmp_path: Path) -> None:
    """None of them has a size and ends, or there is none."""
    points = points_for(name)
    without = [changed(each, flows=()) for each in points]
    unsized = [changed(each, flows=endless(each.flows)) for each in points]
    sized = any(flow.size_bytes for each in points for flow in each.flows)
    for left in (without, unsized) if sized else (without,):
        for path in CHARTS[name].draw(Inputs(left, tmp_path, expected=(1, 8))):
            assert not re.search(r"\b(nan|inf)\b", words_of(path))


@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_explains_itself(name: str, tmp_path: Path) -> None:
    chart = CHARTS[name]
    assert chart.draw(Inputs([], tmp_path)) == []
    assert chart.name == name and chart.title and chart.reading


def test_baselines_alone_are_in_no_chart(tmp_path: Path) -> None:
    baselines = [changed(point(1), workload="reference")]
    assert [name for name, chart in CHARTS.items() if chart.draw(Inputs(baselines, tmp_path))] == []


def test_knowing_the_charts_does_not_import_matplotlib() -> None:
    code = "import sys, plots.registry; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
