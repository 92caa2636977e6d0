"""Goodput and time in queues by kind of link: kinds, times, the title."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from model.links import link_kind
from model.spec import AgentSpec, LinkSpec, WorkloadSpec
from plots.charts.ccp_agents import incasts, interval_numbers, link_numbers, over_plain, queueing_ms
from plots.data import Panel, panels
from plots.shared.kinds import JOINED, by_transport
from tests.support.chart_points import Point, changed, flow_row, point

LINK = LinkSpec(96.0, 20_000 / 6)


def link_made(mbps: float, srtt_ms: float = 31.0, cc: str = "reno", **link: Any) -> Point:
    flow = dataclasses.replace(flow_row(0), goodput_mbps=mbps, srtt_ms_mean=srtt_ms)
    return changed(point(1), cc=cc, flows=(flow,), link=dataclasses.replace(LINK, **link))


def test_kinds_of_links() -> None:
    kinds = [
        link_kind(each.spec.link)
        for each in (link_made(90), link_made(5, trace="lte:1"), link_made(60, loss=0.0001))
    ]
    assert kinds == ["fixed", "cell", "drop"]


def test_time_in_queues_is_beyond_the_links_delay() -> None:
    assert queueing_ms(link_made(90)) == pytest.approx(11.0)
    assert queueing_ms(link_made(90, srtt_ms=float("nan"))) is None


def panel(*points: Point) -> Panel:
    return Panel(points[0].spec, (1,), points)


def test_the_title_has_the_largest_differences() -> None:
    pairs = [link_made(90), link_made(99, cc="ccp:reno")]
    pairs += [link_made(60, loss=0.0001), link_made(57, cc="ccp:reno", loss=0.0001)]
    assert link_numbers(panel(*pairs)) == {"low": -5, "high": 10}
    assert link_numbers(panel(pairs[0])) is None


def interval_made(cc: str, tail_s: float, report_us: int = 0, seed: int = 1, packets: int = 100) -> Point:
    flows = tuple(
        dataclasses.replace(flow_row(n), size_bytes=1000, completed_s=took, start_s=0.0)
        for n, took in enumerate((tail_s / 2, tail_s))
    )
    agent = AgentSpec(20.0, 0.0, report_us) if report_us else AgentSpec()
    workload = WorkloadSpec("incast", {"packets": packets})
    return changed(point(1, seed), cc=cc, agent=agent, flows=flows, workload=workload)


def both(seed: int = 1) -> list[Point]:
    return [
        interval_made("reno", 2.0, seed=seed),
        interval_made("ccp:reno", 2.0, 10, seed),
        interval_made("ccp:reno", 5.0, 500, seed),
    ]


def test_the_last_flow_counts_beside_the_same_seed() -> None:
    of = panel(*both(), *both(2), interval_made("ccp:reno", 4.0, 10, seed=3))
    (series,) = incasts(of)
    number = over_plain(of)
    means = {us: number([p for p in series.points if p.spec.agent.report_us == us]) for us in (10, 500)}
    assert {us: mean.value for us, mean in means.items() if mean} == {10: 1.0, 500: 2.5}
    assert interval_numbers(of) == {"low": 1.0, "high": 2.5}


def test_an_unfinished_flow_makes_no_ratio() -> None:
    of = panel(interval_made("reno", 2.0), interval_made("ccp:reno", float("inf"), 10))
    assert incasts(of) == [] and over_plain(of)(of.points[1:]) is None


def test_an_own_file_stands_beside_a_kernels_control_and_two_texts_stay_apart() -> None:
    kernel = link_made(90, cc="cubic")
    own = [
        dataclasses.replace(
            kernel, spec=kernel.spec.changed({"transport.cc": "mine.py", "transport.algorithm": text})
        )
        for text in ("a", "b")
    ]
    (joined,) = panels([kernel, *own], ignoring=JOINED)
    assert [len(group) for group in by_transport(joined)] == [1, 1, 1]
