"""The flow-by-flow chart of two engines."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.quantities import GOODPUT_PCT_MEAN
from plots.charts import subflows_needed
from plots.charts.cross_checks import scale
from plots.data import Level, Point
from plots.registry import CHARTS
from tests.support.chart_points import SIGCOMM11_LEVELS, changed, point, with_goodputs
from tests.support.svg_text import words_of


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
    (path,) = CHARTS["flow_level"].draw([*BOTH, by("max-min", 1, -3)], tmp_path, levels=SIGCOMM11_LEVELS)
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
    bound = Level("fat_tree", "one_to_one", GOODPUT_PCT_MEAN, 8, ">=", 90, 32, "SIGCOMM'11", "text")
    (path,) = CHARTS["subflows_needed"].draw(points, tmp_path, levels=(bound,))
    words = words_of(path)
    assert "FatTree 8, BCube 8" in words and "published, SIGCOMM'11" in words and "Not reached" in words
