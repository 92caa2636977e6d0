"""Verdicts: which points count for a statement, and what is said of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import pytest

from experiments.registry import EXPERIMENTS
from harness.claims.claims import (
    AGREES,
    DIFFERS,
    NOT_MEASURED,
    SUSPECT,
    UNDECIDED,
    Verdict,
    verdict_fields,
    verdicts,
)
from harness.metrics import metrics
from harness.metrics.measures import Estimate
from harness.metrics.published import Published, Relation
from harness.report import sentences
from harness.results import point_results
from harness.results.point_results import PointResult
from harness.results.store import Store, load
from model.result import Status
from tests.support.statements import row
from tests.support.stored_points import EXPERIMENT, put, put_baseline, result_of, spec_of

CPU = "CPU: no idle time left in 9 of 10 seconds"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store.open(tmp_path, EXPERIMENT)
    put_baseline(made, spec_of(), 5.0)
    return made


def judged(store: Store) -> list[PointResult]:
    return point_results.judge(load(store.directory))


def verdict_on(statement: Published, points: Sequence[PointResult]) -> Verdict:
    figure = dataclasses.replace(EXPERIMENTS[EXPERIMENT].figures[0], published=(statement,))
    (verdict,) = verdicts(figure, points)
    assert verdict.published == statement
    return verdict


class TestVerdicts:
    def test_good_points_agree_or_differ(self, store: Store) -> None:
        put(store, spec_of(1), result_of([2.0, 3.0]))
        agreeing = verdict_on(row(metrics.GOODPUT_PCT_MEAN, 1, Relation.BELOW, 50, 1.0), judged(store))
        assert (agreeing.word, agreeing.measured) == (AGREES, Estimate(50.0, None, 1, False))
        assert agreeing.setting == "5 Mb/s links, 100-packet queues, 40 s"
        differing = verdict_on(row(metrics.GOODPUT_PCT_MEAN, 1, Relation.BELOW, 40), judged(store))
        assert (differing.word, differing.why) == (DIFFERS, "10 off; because")

    def test_seeds_are_averaged(self, store: Store) -> None:
        for seed, mbps in ((1, 2.0), (2, 3.0)):
            put(store, spec_of(1, seed=seed), result_of([mbps]))
        found = verdict_on(row(metrics.GOODPUT_PCT_MEAN, 1, Relation.ABOUT, 50), judged(store)).measured
        assert found is not None
        assert (found.value, found.n) == (50.0, 2)
        assert found.spread == pytest.approx(14.1, abs=0.1)

    def test_three_seeds_are_shown_with_the_interval_that_judges_them(self, store: Store) -> None:
        for seed, mbps in ((1, 2.0), (2, 2.5), (3, 3.0)):
            put(store, spec_of(1, seed=seed), result_of([mbps]))
        found = verdict_on(row(metrics.GOODPUT_PCT_MEAN, 1, Relation.ABOUT, 50), judged(store))
        shown = sentences.measured_text(found.measured, found.published.metric)
        assert "50.0 \N{PLUS-MINUS SIGN} 25" in shown

        above, below = (
            verdict_on(row(metrics.GOODPUT_PCT_MEAN, 1, relation, 49), judged(store))
            for relation in (Relation.ABOVE, Relation.BELOW)
        )
        assert (above.word, above.why) == (UNDECIDED, "because")
        assert (below.word, below.why) == (UNDECIDED, "1 off; because")

    def test_suspect_points_say_nothing_but_why(self, store: Store) -> None:
        put(store, spec_of(1), result_of([2.0], Status.SUSPECT, CPU))
        found = verdict_on(row(metrics.GOODPUT_PCT_MEAN, 1, Relation.BELOW, 50), judged(store))
        assert (found.word, found.why) == (SUSPECT, CPU)
        assert found.measured == Estimate(40.0, None, 1, True)

    def test_a_good_seed_counts_where_another_is_suspect(self, store: Store) -> None:
        put(store, spec_of(1, seed=1), result_of([1.0], Status.SUSPECT, CPU))
        put(store, spec_of(1, seed=2), result_of([3.0]))
        found = verdict_on(row(metrics.GOODPUT_PCT_MEAN, 1, Relation.ABOUT, 60), judged(store))
        assert (found.word, found.measured) == (AGREES, Estimate(60.0, None, 1, False))

    def test_a_claim_about_a_saturated_machine_needs_one(self, store: Store) -> None:
        statement = row(metrics.GOODPUT_OVER_TCP, 8, Relation.BELOW, 1).of_saturated()
        put(store, spec_of(1), result_of([4.0]))
        eight = put(store, spec_of(8), result_of([2.0]))
        carried = verdict_on(statement, judged(store))
        assert carried.word == NOT_MEASURED
        assert "give a higher --rate" in carried.why
        put(store, eight.spec, result_of([2.0], Status.SUSPECT, CPU))
        saturated = verdict_on(statement, judged(store))
        assert (saturated.word, saturated.measured) == (AGREES, Estimate(0.5, None, 1, True))

    def test_another_size_is_not_what_was_published(self, store: Store) -> None:
        put_baseline(store, spec_of(k=6), 5.0)
        put(store, spec_of(1, k=6), result_of([2.0]))
        found = verdict_on(row(metrics.GOODPUT_PCT_MEAN, 1, Relation.BELOW, 50), judged(store))
        assert (found.word, found.measured) == (NOT_MEASURED, None)
        assert found.why == "about one_to_one at k=4, not k=6"
        assert "which was not run" in verdict_on(found.published, []).why

    def test_an_algorithm_that_was_not_run_is_named(self, store: Store) -> None:
        put(store, spec_of(8), result_of([2.0]))
        statement = row(metrics.GOODPUT_PCT_MEAN, 8, Relation.ABOVE, 50).under("lia")
        assert verdict_on(statement, judged(store)).why == "about LIA with 8 subflows, which was not run"

    def test_failed_points_and_missing_ones_are_not_measured(self, store: Store) -> None:
        put(store, spec_of(1), result_of([], Status.FAILED, "no"))
        statement = row(metrics.GOODPUT_PCT_MEAN, 1, Relation.BELOW, 50)
        assert verdict_on(statement, judged(store)).word == NOT_MEASURED
        put(store, spec_of(8), result_of([2.0]))
        found = verdict_on(statement, judged(store))
        assert (found.word, found.why) == (NOT_MEASURED, "no point of TCP has a result")

    def test_the_setting_with_most_points_counts(self, store: Store) -> None:
        for rate_mbps, seeds in ((5.0, (1, 2)), (20.0, (1,))):
            put_baseline(store, spec_of(rate_mbps=rate_mbps), rate_mbps)
            for seed in seeds:
                put(store, spec_of(1, seed=seed, rate_mbps=rate_mbps), result_of([rate_mbps / 4]))
        found = verdict_on(row(metrics.GOODPUT_PCT_MEAN, 1, Relation.ABOUT, 25), judged(store))
        assert found.measured is not None
        assert (found.measured.n, found.setting[:6]) == (2, "5 Mb/s")

    def test_a_setting_that_can_tell_goes_before_one_with_more_points(self, store: Store) -> None:
        for seed in (1, 2, 3):
            put(store, spec_of(1, seed=seed), result_of([2.0]))
        for subflows in (1, 8):
            put(store, spec_of(subflows, rate_mbps=20.0), result_of([8.0]))
        found = verdict_on(row(metrics.GOODPUT_OVER_TCP, 8, Relation.ABOUT, 1), judged(store))
        assert (found.word, found.setting[:7]) == (AGREES, "20 Mb/s")

    def test_a_good_setting_goes_before_a_suspect_one(self, store: Store) -> None:
        for rate_mbps, status in ((5.0, Status.OK), (20.0, Status.SUSPECT)):
            put_baseline(store, spec_of(rate_mbps=rate_mbps), rate_mbps)
            reasons = () if status is Status.OK else (CPU,)
            for seed in (1,) if status is Status.OK else (1, 2):
                point = spec_of(1, seed=seed, rate_mbps=rate_mbps)
                put(store, point, result_of([rate_mbps / 4], status, *reasons))
        found = verdict_on(row(metrics.GOODPUT_PCT_MEAN, 1, Relation.ABOUT, 25), judged(store))
        assert (found.word, found.setting[:6]) == (AGREES, "5 Mb/s")

    def test_json_has_everything(self, store: Store) -> None:
        put(store, spec_of(1), result_of([2.0]))
        figure = EXPERIMENTS[EXPERIMENT].figures[0]
        shown = verdict_fields(
            figure, verdict_on(row(metrics.GOODPUT_PCT_MEAN, 1, Relation.BELOW, 50), judged(store))
        )
        assert shown["figure"] == EXPERIMENT
        assert (shown["verdict"], shown["value"], shown["unit"]) == (AGREES, 50, "% of optimal")
        assert shown["measured"] == {
            "value": 40.0, "spread": None, "n": 1, "suspect": False, "unfinished_pct": None,
        }  # fmt: skip
