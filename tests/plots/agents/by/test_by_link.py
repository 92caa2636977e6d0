"""Goodput and time in queues by kind of link: kinds, times, the title."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from model.links import link_kind
from model.spec import LinkSpec
from plots.charts.ccp_agents import link_finding, marks, queueing_ms
from plots.data import Point
from plots.registry import CHARTS
from tests.support.chart_points import changed, flow_row, point
from tests.support.svg_text import words_of

LINK = LinkSpec(96.0, 20_000 / 6)


def made(mbps: float, srtt_ms: float = 31.0, cc: str = "reno", **link: Any) -> Point:
    flow = dataclasses.replace(flow_row(0), goodput_mbps=mbps, srtt_ms_mean=srtt_ms)
    return changed(point(1), cc=cc, flows=(flow,), link=dataclasses.replace(LINK, **link))


def test_kinds_of_links() -> None:
    kinds = [link_kind(each.spec.link) for each in (made(90), made(5, trace="lte:1"), made(60, loss=0.0001))]
    assert kinds == ["fixed", "cell", "drop"]


def test_time_in_queues_is_beyond_the_links_delay() -> None:
    assert queueing_ms(made(90)) == pytest.approx(11.0)
    assert queueing_ms(made(90, srtt_ms=float("nan"))) is None


def test_the_title_has_the_largest_differences() -> None:
    kinds = [marks([made(90), made(99, cc="ccp:reno")]), marks([made(60), made(57, cc="ccp:reno")])]
    assert link_finding(kinds) == "In an agent, goodput differs by -5 to +10 % from goodput without one"


def test_each_kind_has_a_small_chart(tmp_path: Path) -> None:
    points = [made(90), made(88, cc="ccp:reno"), made(5, trace="lte:1", queue_pkts=50)]
    (path,) = CHARTS["by_link"].draw(points, tmp_path)
    words = words_of(path)
    assert "fixed rate" in words and "cellular" in words and "random loss" not in words
