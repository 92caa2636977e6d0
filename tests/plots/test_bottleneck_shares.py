"""Charts of replicas: all algorithms in one, theory beside them, what is suspect or missing never hidden."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.quantities import SHARE_OF_BOTTLENECK, SHARE_ON_CONGESTED
from model.result import FlowRow, PortRow, Status
from plots.charts import bottleneck_shares
from plots.data import Inputs, Level, Point, panels
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


def test_all_algorithms_share_a_chart_with_theory(tmp_path: Path) -> None:
    points = [of_replicas("lia"), of_replicas("reno")]
    (path,) = CHARTS["share"].draw(points, tmp_path, levels=LEVELS)
    words = words_of(path)
    assert "4 subflows beside one TCP: uncoupled (reno) 80 %, LIA 50 %" in words
    assert "theory: n/(n+1) uncoupled, 1/2 coupled" in words
    assert "Theory: NSDI'11, RFC 6356." in words
    assert "whisker: 95 % interval" in words
    assert "published" not in words


def test_shares_are_pooled_over_replicas_and_seeds() -> None:
    seeds = [changed(of_replicas("lia"), seed=seed) for seed in (1, 2)]
    spots = bottleneck_shares.spots_of([bottleneck_shares.Series(panel) for panel in panels(seeds)])
    assert len(spots["lia", 4].values) == 12
    assert spots["lia", 4].mean == pytest.approx(50)
    assert 0 < spots["lia", 4].half < 2


def test_few_repetitions_have_no_interval(tmp_path: Path) -> None:
    (path,) = bottleneck_shares.draw_share(Inputs([of_replicas("lia", count=5)], tmp_path))
    assert "interval" not in words_of(path)


def test_traffic_on_the_worse_path(tmp_path: Path) -> None:
    (path,) = CHARTS["shift"].draw([of_two("reno"), of_two("lia")], tmp_path, levels=LEVELS)
    words = words_of(path)
    assert "Sent over the more congested path: uncoupled (reno) 20 %, LIA 50 %" in words
    assert "theory: equilibrium at equal round-trip times" in words


@pytest.mark.parametrize(("chart", "made"), [("share", of_replicas), ("shift", of_two)])
def test_suspect_points_are_marked_and_in_no_title(
    chart: str, made: Callable[..., Point], tmp_path: Path
) -> None:
    (path,) = CHARTS[chart].draw([made("reno", status=Status.SUSPECT), made("lia")], tmp_path)
    words = words_of(path)
    assert "Suspect, not in means: reason of suspect." in words
    assert "suspect" in words
    assert "uncoupled (reno) 20 %" not in words and "uncoupled (reno) 80 %" not in words


def test_nothing_to_draw_draws_nothing(tmp_path: Path) -> None:
    assert bottleneck_shares.draw_share(Inputs([of_replicas("lia", Status.FAILED)], tmp_path)) == []
    assert bottleneck_shares.draw_shift(Inputs([of_two("lia", Status.FAILED)], tmp_path)) == []
    assert bottleneck_shares.draw_share(Inputs([point(4)], tmp_path)) == []
