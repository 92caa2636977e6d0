"""Charts of pFabric's arms: lower bounds, intervals, and flows of Linux hosts beside simulated ones."""

from __future__ import annotations

import dataclasses
import math

import pytest

from analysis.completion import ALL
from experiments.registry import CATALOGUE
from harness.options.options import resolve
from model.arms import ARMS, ON_LINUX, TWINS, arm_of
from model.spec import RunSpec
from plots.charts import normalised_times
from plots.charts.normalised_times import Twins, twins
from tests.support.chart_points import Point, flow_row, point
from tests.support.options import options_typed

MEAN = normalised_times.value_of(ALL, lambda times: times.mean)


def specs() -> list[RunSpec]:
    (figure,) = CATALOGUE.find("cs244-2017-hosts").figures
    options = resolve(options_typed(workload="pairs:40", engine="both"), figure.defaults)
    return figure.points(options, lambda _: 10.0)


def ran(spec: RunSpec, times_alone: float, unfinished: int = 0, seed: int = 1, flows: int = 100) -> Point:
    """Return a point whose flow n takes `times_alone` times its time alone, and n percent more."""
    rows = [
        dataclasses.replace(
            flow_row(n), size_bytes=10_000, start_s=0.0, ideal_s=1e-5,
            completed_s=math.nan if n < unfinished else times_alone * (1 + n / 100) * 1e-5,
        )
        for n in range(flows)
    ]  # fmt: skip
    return dataclasses.replace(point(1), spec=dataclasses.replace(spec, seed=seed), flows=tuple(rows))


@pytest.mark.parametrize(("unfinished", "bound"), [(5, False), (6, True)])
def test_a_mean_with_many_flows_under_way_is_a_lower_bound(unfinished: int, bound: bool) -> None:
    found = normalised_times.number_of([ran(specs()[0], 2.0, unfinished)], MEAN, ALL)
    assert found is not None and found.hollow is bound and found.half == 0


@pytest.mark.parametrize(("name", "least"), [("linux-tcp", 3), ("twin-tcp", 3), ("tcp", 6)])
def test_an_interval_needs_six_seeds_or_three_of_real_hosts_and_their_twins(name: str, least: int) -> None:
    spec = specs()[0].changed(ARMS[name].settings)
    assert arm_of(spec) == name
    of = [ran(spec, 2.0 + seed / 10, seed=seed) for seed in range(least)]
    half_widths = [found.half for few in (of[:-1], of) if (found := normalised_times.number_of(few, MEAN))]
    assert half_widths[0] == 0 < half_widths[1]


def test_flows_pair_by_seed_and_number_where_both_ended() -> None:
    times = dict(zip((*ON_LINUX, *TWINS), (9.0, 2.0, 3.0, 3.0, 1.0, 1.5), strict=True))
    points = [ran(spec, times[arm_of(spec)], 10 if arm_of(spec) == "linux-tcp" else 0) for spec in specs()]
    (panel,) = normalised_times.studies(points)
    found = twins(panel, 40)
    assert [of.arm for of in found] == list(ON_LINUX)
    assert [len(of.linux) for of in found] == [90, 100, 100]
    assert [of.ratio for of in found] == pytest.approx([3.0, 2.0, 2.0])
    assert found[0].agreement == pytest.approx(1.0)
    assert Twins("linux-tcp", (1.0, 2.0), (1.0, 3.0)).agreement is None, "two flows have no correlation"
