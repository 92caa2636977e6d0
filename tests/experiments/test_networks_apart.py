"""Networks of one kind and size that differ in another parameter are never taken for one another."""

from __future__ import annotations

import csv
import dataclasses
from pathlib import Path

import pytest

from experiments.registry import EXPERIMENTS
from harness.claims.claims import AGREES, DIFFERS, NOT_MEASURED, verdicts
from harness.claims.own_settings import OwnSettings
from harness.compare.compare import conditions, match
from harness.experiment import Figure
from harness.metrics import published, summary_csv
from harness.metrics.metrics import GOODPUT_PCT_MEAN
from harness.metrics.published import Published, Relation, Source
from harness.report import figures
from harness.results import point_results
from harness.results.point_results import PointResult
from harness.results.store import Store, load
from model.spec import RunSpec, TopologySpec
from plots.data import panels
from plots.shared import style
from tests.support.stored_points import EXPERIMENT, put, put_baseline, result_of, spec_of

PLAIN = Published(
    GOODPUT_PCT_MEAN, "fat_tree", 4, "one_to_one", 1, Relation.ABOUT, 80, Source.TEXT, "words", "paper",
    "citation", 1.0, "because",
)  # fmt: skip
FOUR = dataclasses.replace(PLAIN.on(oversubscription=4), value=20)
FIGURE: Figure = dataclasses.replace(EXPERIMENTS[EXPERIMENT].figures[0], published=(PLAIN, FOUR))


def spec(oversubscription: int) -> RunSpec:
    params = {"k": 4} if oversubscription == 1 else {"k": 4, "oversubscription": oversubscription}
    return dataclasses.replace(spec_of(), topology=TopologySpec("fat_tree", params))


@pytest.fixture
def points(tmp_path: Path) -> list[PointResult]:
    """Return both trees with their baselines; flows of the oversubscribed tree reach a quarter."""
    store = Store.open(tmp_path, EXPERIMENT)
    for times, mbps in ((1, 4.0), (4, 1.0)):
        put_baseline(store, spec(times), 5.0)
        put(store, spec(times), result_of([mbps]))
    return point_results.judge(load(store.directory))


def test_each_verdict_is_of_its_own_network(points: list[PointResult]) -> None:
    words = [(v.word, v.measured.value if v.measured else None) for v in verdicts(FIGURE, points)]
    assert words == [(AGREES, 80.0), (AGREES, 20.0)]
    swapped = [p for p in points if p.spec.topology.params.get("oversubscription") == 4]
    assert [v.word for v in verdicts(FIGURE, swapped)] == [NOT_MEASURED, AGREES]
    wrong = dataclasses.replace(FIGURE, published=(dataclasses.replace(FOUR, value=80),))
    assert [v.word for v in verdicts(wrong, points)] == [DIFFERS]


def test_a_network_given_with_its_defaults_is_the_same(points: list[PointResult]) -> None:
    given = dataclasses.replace(PLAIN, shape=(("oversubscription", 1),))
    assert given.is_on(TopologySpec("fat_tree", {"k": 4}))
    (verdict,) = verdicts(dataclasses.replace(FIGURE, published=(given,)), points)
    assert verdict.word == AGREES


def test_a_level_is_drawn_on_its_own_network(points: list[PointResult]) -> None:
    levels = figures.published_levels(FIGURE.published, OwnSettings([FIGURE]))
    of = panels(map(figures.loaded, points))
    shown = [
        [level.value for level in style.levels_of(panel, levels, GOODPUT_PCT_MEAN.quantity)] for panel in of
    ]
    assert shown == [[80], [20]]


def test_tables_show_the_number_published_for_that_network() -> None:
    known = (PLAIN, FOUR)
    found = [
        published.find(known, GOODPUT_PCT_MEAN, spec(times).topology, "one_to_one", 1, "tcp")
        for times in (1, 4, 2)
    ]
    assert found == [PLAIN, FOUR, None]


def test_the_summary_tells_them_apart(tmp_path: Path, points: list[PointResult]) -> None:
    store = Store.open(tmp_path, EXPERIMENT)
    summary_csv.write(store, [judged.point for judged in points])
    with (store.directory / "summary.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["workload"] != "reference"]
    assert [(row["k"], row["topology_params"]) for row in rows] == [("4", ""), ("4", "oversubscription=4")]


def test_two_folders_are_compared_network_by_network(points: list[PointResult]) -> None:
    of = conditions(judged for judged in points if judged.spec.workload.matrix != "reference")
    found = match(of, of)
    assert len(found.pairs) == 2
    assert not (found.ambiguous or found.only_a or found.only_b)
    assert all(pair.differing == () for pair in found.pairs)
