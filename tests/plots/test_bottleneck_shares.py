"""Charts of replicas: all algorithms in one, theory beside them, what is suspect or missing never hidden."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.quantities import SHARE_OF_BOTTLENECK, SHARE_ON_CONGESTED
from model.result import FlowRow, PortRow, Status
from plots.charts import bottleneck_shares
from plots.data import Level, Point, panels
from plots.registry import CHARTS
from tests.support.chart_points import changed, flow_row, point
from tests.support.svg_text import words_of

SHARES = {"reno": 0.8, "lia": 0.5}
ONE, TWO = ("dumbbell", "against_tcp"), ("two_bottlenecks", "against_tcp")
LEVELS = [
    Level(*ONE, SHARE_OF_BOTTLENECK, 4, "about", 80, 2, "NSDI'11", "theory", "reno"),
    Level(*ONE, SHARE_OF_BOTTLENECK, 4, "about", 50, 2, "RFC 6356", "theory", "lia"),
    Level(*TWO, SHARE_ON_CONGESTED, 2, "about", 21.5, 3, "RFC 6356", "theory", "lia"),
]


def of_replicas(cc: str, status: Status = Status.OK, count: int = 6) -> Point:
    """`count` replicas around the algorithm's shares, of one link and of two."""
    flows: list[FlowRow] = []
    ports: list[PortRow] = []
    for lane in range(count):
        mine = SHARES[cc] + 0.01 * (lane - (count - 1) / 2)
        for pair, goodput in enumerate((mine, 1 - mine)):
            flows.append(dataclasses.replace(flow_row(), src=f"l{lane}h{pair}", goodput_mbps=goodput))
        for path, sent in (("a", 1 - mine), ("b", mine)):
            ends = (f"l{lane}h0", f"l{lane}{path}", "host-edge")
            ports.append(PortRow(len(ports), *ends, 1, round(1e6 * sent), 0, 1, 50.0))
    return changed(
        point(4, status=status), topology="dumbbell", k=2, workload="against_tcp", cc=cc,
        flows=() if status is Status.FAILED else tuple(flows), ports=tuple(ports),
    )  # fmt: skip


def of_two(cc: str, status: Status = Status.OK) -> Point:
    return changed(of_replicas(cc, status), topology="two_bottlenecks", k=3, subflows=2)


@pytest.mark.parametrize(
    ("chart", "made", "shares"),
    [
        ("share", of_replicas, "uncoupled (reno) 80 %, LIA 50 %"),
        ("shift", of_two, "uncoupled (reno) 20 %, LIA 50 %"),
    ],
)
def test_all_algorithms_share_a_chart_with_theory(
    chart: str, made: Callable[..., Point], shares: str, tmp_path: Path
) -> None:
    (path,) = CHARTS[chart].draw([made("lia"), made("reno")], tmp_path, levels=LEVELS)
    words = words_of(path)
    assert shares in words and "theory" in words and "published" not in words


def test_shares_are_pooled_over_replicas_and_seeds() -> None:
    seeds = [changed(of_replicas("lia"), seed=seed) for seed in (1, 2)]
    shares = bottleneck_shares.shares_of([bottleneck_shares.Series(panel) for panel in panels(seeds)])
    assert len(shares["lia", 4].values) == 12
    assert shares["lia", 4].mean.value == pytest.approx(50)
    assert 0 < shares["lia", 4].mean.half < 2


def test_few_repetitions_have_no_interval(tmp_path: Path) -> None:
    (path,) = CHARTS["share"].draw([of_replicas("lia", count=5)], tmp_path)
    assert "interval" not in words_of(path)
