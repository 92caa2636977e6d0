"""The experiment load-balancing: its points, and what its statements compare."""

from __future__ import annotations

import dataclasses

import pytest

from controllers.routing import check_routing, parse
from engines.registry import SIMULATOR, make
from experiments.load_balancing import DEFAULTS, MEAN_MS, NETWORK, REAL, STATEMENTS
from model.result import NO_VALUE
from tests.plots.test_completion_times import at_load
from tests.support.chart_points import Point, changed
from tests.support.figures import figure_of, points_of


def test_its_points_have_a_halved_link_and_run_in_the_simulator() -> None:
    points = points_of(figure_of("load-balancing"))
    policies = {(parse(point.routing)[0], point.transport.subflows) for point in points}
    assert policies == {("ecmp", 1), ("ecmp", 8), ("letflow", 1), ("conga", 1), ("drill", 1)}
    assert len(points) == len(policies) * 2 * 6
    for point in points:
        (event,) = point.events
        assert (event.t_s, event.share) == (0.0, 0.5)
        make(SIMULATOR).check(point)
        check_routing(point.routing, point.network())
    assert (DEFAULTS["link.rate_mbps"], REAL["link.rate_mbps"]) == (100.0, 10.0)


def under(routing: str, s: float, seed: int) -> Point:
    shape = {name: NETWORK.number(name) for name in ("spines", "hosts", "speed")}
    return changed(at_load(60, routing, s, seed=seed), topology=NETWORK.kind, k=NETWORK.k, shape=shape)


def test_statements_compare_mean_times_of_one_seed_and_tell_how_many_flows_have_not_ended() -> None:
    points = [
        under(routing, s * seed, seed)
        for seed in (1, 2, 3)
        for routing, s in (("ecmp", 3.0), ("conga:500:160", 1.0), ("letflow:500", 1.1))
    ]
    ecmp, letflow = (row.metric.measure(points, row) for row in STATEMENTS)
    assert ecmp and letflow
    expected = [MEAN_MS(points[3 * i]) / MEAN_MS(points[3 * i + 1]) for i in range(3)]  # type: ignore[operator]
    assert ecmp.value == pytest.approx(sum(expected) / 3)
    assert ecmp.n == 3
    assert ecmp.unfinished_pct == pytest.approx(100 / 120)
    assert 1.0 < letflow.value < 1.1


def test_a_seed_without_both_policies_says_nothing() -> None:
    assert STATEMENTS[0].metric.measure([under("ecmp", 3.0, 1)], STATEMENTS[0]) is None
    none_ended = [
        dataclasses.replace(f, start_s=-1.0, completed_s=NO_VALUE) for f in under("ecmp", 3.0, 1).flows
    ]
    assert MEAN_MS(changed(under("ecmp", 3.0, 1), flows=tuple(none_ended))) is None
