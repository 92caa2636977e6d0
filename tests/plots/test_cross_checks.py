"""Engines flow by flow, and gains over networks, loads and matrices: which points are compared."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from analysis.quantities import GOODPUT_PCT_MEAN
from analysis.stats import spread
from model.result import Status
from model.spec import WorkloadSpec
from plots.charts import subflows_needed
from plots.charts.cross_checks import scale
from plots.charts.gains import by_gain, curves, gain, networks, per_host_pct, per_sender_pct, reached, studies
from plots.data import Inputs
from plots.registry import CHARTS
from tests.support.chart_points import (
    SIGCOMM11_LEVELS,
    Point,
    changed,
    flow_row,
    level,
    point,
    with_goodputs,
    with_mean,
)
from tests.support.reasons import of_text
from tests.support.svg_text import words_of
from workloads import matrices


@pytest.mark.parametrize(
    ("values", "ticks"),
    [([62.0, 99.0], [60, 80, 100]), ([62.0, 100.63], [60, 80, 100]), ([3.9, 98.9], [0, 50, 100])],
)
def test_ticks_are_round_also_where_a_flow_exceeds_100_percent(
    values: list[float], ticks: list[float]
) -> None:
    (low, high), shown = scale(values)
    assert shown == ticks
    assert low == ticks[0]
    assert high > max(100, *values)


def by(engine: str, subflows: int, more: float = 0.0, hosts: int = 16, kind: str = "fat_tree") -> Point:
    """Return a point of `chart_points` whose flows all get `more` percentage points more."""
    usual = point(subflows)
    better = with_goodputs(usual, [goodput + more for goodput in usual.flows_pct])
    return changed(better, engine=engine, hosts=hosts, topology=kind, k=4 if kind == "fat_tree" else 6)


BOTH = [by(engine, n, more) for engine, more in (("simulator", 0), ("flow-level", 2)) for n in (1, 2, 8)]


def test_the_title_tells_how_far_the_model_is_off(tmp_path: Path) -> None:
    (path,) = CHARTS["flow_level"].draw(
        Inputs([*BOTH, by("max-min", 1, -3)], tmp_path, levels=SIGCOMM11_LEVELS)
    )
    words = words_of(path)
    assert "+2.0 points on average, +2.0 at most" in words and "-3.0 points on average" in words


@pytest.mark.parametrize(
    ("means", "by_plateau", "count"),
    [
        ({1: 50.0, 4: 89.9, 8: 90.0, 9: 95.0}, False, 8),
        ({1: 50.0, 4: 80.0}, False, None),
        ({1: 40.0, 3: 73.0, 16: 80.0}, True, 3),
    ],
)
def test_the_smallest_count_that_reaches_ninety_percent(
    means: dict[int, float], by_plateau: bool, count: int | None
) -> None:
    assert subflows_needed.needed(means, by_plateau) == count


def test_every_network_has_its_mark_and_the_published_bound_its_line(tmp_path: Path) -> None:
    points = [by("flow-level", n, 3, hosts) for n in (1, 4, 8) for hosts in (16, 128)]
    points += [by("flow-level", n, 0, 216, "bcube") for n in (1, 4, 8)]
    points += [by("simulator", n) for n in (1, 8)]
    bound = level("fat_tree", "one_to_one", GOODPUT_PCT_MEAN, 8, ">=", 90, 32, "SIGCOMM'11", "text")
    (path,) = CHARTS["subflows_needed"].draw(Inputs(points, tmp_path, levels=(bound,)))
    words = words_of(path)
    assert "FatTree 8, BCube 8" in words and "published, SIGCOMM'11" in words and "Not reached" in words


def loaded(topology: str, subflows: int, flows: int, mbps: float, seed: int = 1, matrix: str = "") -> Point:
    """k=4, 16 hosts, links of 5 Mb/s; flow n comes from host n."""
    rows = tuple(dataclasses.replace(flow_row(n), goodput_mbps=mbps, src=f"h{n}") for n in range(flows))
    return changed(
        point(subflows, seed), topology=topology, flows=rows,
        workload=WorkloadSpec(*matrices.parse(matrix or f"connections:{flows}")),
    )  # fmt: skip


LOADS = [
    loaded("fat_tree", 1, 4, 2.0),
    loaded("fat_tree", 8, 4, 3.0),
    loaded("fat_tree", 1, 16, 1.0),
    loaded("fat_tree", 8, 16, 1.0),
    loaded("dual_homed_fat_tree", 8, 4, 5.0),
    loaded("dual_homed_fat_tree", 8, 16, 0.9),
]


def test_gains_are_over_tcp_on_the_first_network_with_the_same_seed() -> None:
    other = [changed(one, seed=2) for one in LOADS[1:]]
    (study,) = studies([*LOADS, *other], lambda p: p.spec.workload.matrix)
    assert networks(study) == ["FatTree k=4", "Dual-homed FatTree k=4"]
    dual = curves(study)[-1]
    assert dual.name == "MPTCP 8, Dual-homed FatTree k=4"
    without_tcp = [point for point in dual.points if point.seed == 2]
    gained = {
        load: gain(study, per_host_pct)([point for point in dual.points if point.matrix == load])
        for load in ("connections:4", "connections:16")
    }
    assert {load: mean.value for load, mean in gained.items() if mean} == {
        "connections:4": 2.5, "connections:16": 0.9
    }  # fmt: skip
    assert gain(study, per_host_pct)([p for p in without_tcp if p.matrix == "connections:4"]) is None


def test_what_a_host_gets() -> None:
    two_of_one = changed(LOADS[0], flows=(LOADS[0].flows[0],) * 2)
    assert per_host_pct(LOADS[0]) == 100 * 8 / 16 / 5
    assert per_sender_pct(LOADS[0]) == 40
    assert per_sender_pct(two_of_one) == 80


def test_suspect_points_stand_in_only_where_there_is_no_good_one() -> None:
    doubt = changed(LOADS[1], status=Status.SUSPECT, reasons=(of_text("CPU: busy"),))
    (study,) = studies([*LOADS, changed(doubt, seed=2)], lambda p: p.spec.workload.matrix)
    at_four = [p for p in study.points if p.matrix == "connections:4" and p.subflows == 8]
    good = reached(study, per_host_pct)([p for p in at_four if p.spec.topology.kind == "fat_tree"])
    assert good is not None and good.value == per_host_pct(LOADS[1]) and not good.hollow
    (dubious,) = studies([LOADS[0], doubt], lambda p: p.spec.workload.matrix)
    hollow = {one.name: reached(dubious, per_host_pct)(one.points) for one in curves(dubious)}
    assert {name: mean.hollow for name, mean in hollow.items() if mean} == {"TCP": False, "MPTCP 8": True}


def test_a_chart_by_load_tells_the_largest_gain(tmp_path: Path) -> None:
    (path,) = CHARTS["by_load"].draw(Inputs(LOADS, tmp_path))
    assert "up to 2.50 times TCP on FatTree k=4, at 0.25" in words_of(path)


def test_a_chart_by_matrix_has_its_rows_by_gain() -> None:
    local = [loaded("fat_tree", n, 8, 4.0, matrix="local:80") for n in (1, 8)]
    points = [*(p for p in LOADS if p.spec.topology.kind == "fat_tree"), *local]
    (study,) = studies(points, lambda _: "any")
    assert list(by_gain(study)) == ["connections:4", "connections:16", "local:80"]


def on(topology: str, subflows: int, pct: float, **shape: int) -> Point:
    flows = tuple(dataclasses.replace(flow_row(n), goodput_mbps=1.0 + n) for n in range(2))
    return with_mean(changed(point(subflows), topology=topology, flows=flows, shape=shape), spread([pct]))


POINTS = [
    on("fat_tree", 1, 40),
    on("fat_tree", 8, 80),
    on("fat_tree", 1, 20, oversubscription=4),
    on("fat_tree", 8, 24, oversubscription=4),
    on("vl2", 1, 90),
    on("vl2", 8, 99),
]


def test_one_chart_has_all_networks(tmp_path: Path) -> None:
    (path,) = CHARTS["by_network"].draw(Inputs(POINTS, tmp_path, expected=(1, 8)))
    assert "most on FatTree k=4, 2.00 times TCP, least on VL2 da=4, 1.10 times" in words_of(path)
