"""Metrics and verdicts: what is read off points, and which points count for a statement."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import pytest

from analysis.quantities import Quantity
from experiments.registry import EXPERIMENTS
from harness.claims import metrics
from harness.claims.measures import Measured
from harness.claims.metric import Metric, ShownIn
from harness.claims.published import Published, Relation, Source
from harness.claims.verdicts import (
    AGREES,
    DIFFERS,
    NOT_MEASURED,
    SUSPECT,
    Verdict,
    fields,
    verdicts,
)
from harness.experiment import Figure
from harness.results import summary
from harness.results.store import Store, load
from harness.results.summary import Judged
from model.result import NO_VALUE, PortRow, RunResult, Status, Table
from model.spec import RunSpec, TopologySpec
from tests.support.stored_points import (
    EXPERIMENT,
    flow_row,
    put,
    put_baseline,
    result_of,
    spec_of,
)

PINGS = ("t_s", "flow", "subflow", "rtt_ms", "out_ms")
CPU = "CPU: no idle time left in 9 of 10 seconds"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path, EXPERIMENT)


def row(metric: Metric, subflows: int, relation: Relation, value: float, tolerance: float = 0.0) -> Published:
    """Return a statement on one_to_one at k=4, like the points of `spec_of`."""
    return Published(
        metric, "fat_tree", 4, "one_to_one", subflows, relation, value, Source.TEXT, "words", "paper",
        "citation", tolerance, "because",
    )  # fmt: skip


def judged(store: Store) -> list[Judged]:
    return summary.judge(load(store.directory))


def verdict_on(statement: Published, points: Sequence[Judged]) -> Verdict:
    figure = dataclasses.replace(EXPERIMENTS[EXPERIMENT].figures[0], published=(statement,))
    (verdict,) = verdicts(figure, points)
    assert verdict.published == statement
    return verdict


def measured(metric: Metric, subflows: int, points: Sequence[Judged]) -> Measured | None:
    return metric.measure(points, row(metric, subflows, Relation.ABOUT, 0))


def with_ports(result: RunResult, ports: Sequence[tuple[str, float, int]]) -> RunResult:
    """`result` with ports of (layer, utilisation in %, longest queue in packets)."""
    rows = (
        PortRow(number, "a", "b", layer, 0, 0, 0, longest, used)
        for number, (layer, used, longest) in enumerate(ports)
    )
    return dataclasses.replace(result, ports=tuple(rows))


def with_samples(result: RunResult, **tables: Table) -> RunResult:
    return dataclasses.replace(result, samples={**result.samples, **tables})


@pytest.mark.parametrize(
    ("relation", "agreeing", "differing"),
    [
        (Relation.BELOW, (49.0, 50.0, 54.9), (55.0, 90.0)),
        (Relation.ABOUT, (45.0, 50.0, 55.0), (44.9, 55.1)),
        (Relation.AT_LEAST, (45.0, 90.0), (44.9,)),
        (Relation.ABOVE, (45.1, 90.0), (45.0, 10.0)),
    ],
)
def test_relations_with_a_tolerance_of_five(
    relation: Relation, agreeing: Sequence[float], differing: Sequence[float]
) -> None:
    assert all(relation.holds(value, 50.0, 5.0) for value in agreeing)
    assert not any(relation.holds(value, 50.0, 5.0) for value in differing)


class TestVerdicts:
    def test_good_points_agree_or_differ(self, store: Store) -> None:
        put_baseline(store, spec_of(), 5.0)
        put(store, spec_of(1), result_of([2.0, 3.0]))
        agreeing = verdict_on(row(metrics.GOODPUT_PCT_MEAN, 1, Relation.BELOW, 50, 1.0), judged(store))
        assert (agreeing.word, agreeing.measured) == (AGREES, Measured(50.0, None, 1, False))
        assert agreeing.setting == "5 Mb/s links, 100-packet queues, 40 s"
        differing = verdict_on(row(metrics.GOODPUT_PCT_MEAN, 1, Relation.BELOW, 40), judged(store))
        assert (differing.word, differing.why) == (DIFFERS, "10 off; because")

    def test_seeds_are_averaged(self, store: Store) -> None:
        put_baseline(store, spec_of(), 5.0)
        for seed, mbps in ((1, 2.0), (2, 3.0)):
            put(store, spec_of(1, seed=seed), result_of([mbps]))
        found = verdict_on(row(metrics.GOODPUT_PCT_MEAN, 1, Relation.ABOUT, 50), judged(store)).measured
        assert found is not None
        assert (found.value, found.n) == (50.0, 2)
        assert found.spread == pytest.approx(14.1, abs=0.1)

    def test_suspect_points_say_nothing_but_why(self, store: Store) -> None:
        put_baseline(store, spec_of(), 5.0)
        put(store, spec_of(1), result_of([2.0], Status.SUSPECT, CPU))
        found = verdict_on(row(metrics.GOODPUT_PCT_MEAN, 1, Relation.BELOW, 50), judged(store))
        assert (found.word, found.why) == (SUSPECT, CPU)
        assert found.measured == Measured(40.0, None, 1, True)

    def test_a_good_seed_counts_where_another_is_suspect(self, store: Store) -> None:
        put_baseline(store, spec_of(), 5.0)
        put(store, spec_of(1, seed=1), result_of([1.0], Status.SUSPECT, CPU))
        put(store, spec_of(1, seed=2), result_of([3.0]))
        found = verdict_on(row(metrics.GOODPUT_PCT_MEAN, 1, Relation.ABOUT, 60), judged(store))
        assert (found.word, found.measured) == (AGREES, Measured(60.0, None, 1, False))

    def test_a_claim_about_a_saturated_machine_needs_one(self, store: Store) -> None:
        statement = row(metrics.GOODPUT_OVER_TCP, 8, Relation.BELOW, 1).of_saturated()
        put(store, spec_of(1), result_of([4.0]))
        eight = put(store, spec_of(8), result_of([2.0]))
        carried = verdict_on(statement, judged(store))
        assert carried.word == NOT_MEASURED
        assert "give a higher --rate" in carried.why
        put(store, eight.spec, result_of([2.0], Status.SUSPECT, CPU))
        saturated = verdict_on(statement, judged(store))
        assert (saturated.word, saturated.measured) == (AGREES, Measured(0.5, None, 1, True))

    def test_another_size_is_not_what_was_published(self, store: Store) -> None:
        put_baseline(store, spec_of(k=6), 5.0)
        put(store, spec_of(1, k=6), result_of([2.0]))
        found = verdict_on(row(metrics.GOODPUT_PCT_MEAN, 1, Relation.BELOW, 50), judged(store))
        assert (found.word, found.measured) == (NOT_MEASURED, None)
        assert found.why == "about one_to_one at k=4, not k=6"
        assert "which was not run" in verdict_on(found.published, []).why

    def test_an_algorithm_that_was_not_run_is_named(self, store: Store) -> None:
        put_baseline(store, spec_of(), 5.0)
        put(store, spec_of(8), result_of([2.0]))
        statement = row(metrics.GOODPUT_PCT_MEAN, 8, Relation.ABOVE, 50).under("lia")
        assert verdict_on(statement, judged(store)).why == "about LIA with 8 subflows, which was not run"

    def test_failed_points_and_missing_ones_are_not_measured(self, store: Store) -> None:
        put(store, spec_of(1), result_of([], Status.FAILED, "no"))
        statement = row(metrics.GOODPUT_PCT_MEAN, 1, Relation.BELOW, 50)
        assert verdict_on(statement, judged(store)).word == NOT_MEASURED
        put(store, spec_of(8), result_of([2.0]))
        found = verdict_on(statement, judged(store))
        assert (found.word, found.why) == (
            NOT_MEASURED,
            "no point of TCP has a result",
        )

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
        put_baseline(store, spec_of(), 5.0)
        put(store, spec_of(1), result_of([2.0]))
        figure = EXPERIMENTS[EXPERIMENT].figures[0]
        shown = fields(
            figure, verdict_on(row(metrics.GOODPUT_PCT_MEAN, 1, Relation.BELOW, 50), judged(store))
        )
        assert shown["figure"] == EXPERIMENT
        assert (shown["verdict"], shown["value"], shown["unit"]) == (AGREES, 50, "% of optimal")
        assert shown["measured"] == {
            "value": 40.0, "spread": None, "n": 1, "suspect": False, "unfinished_pct": None,
        }  # fmt: skip


class TestMetrics:
    def test_ratios_slopes_and_dips_pair_the_points_of_a_seed(self, store: Store) -> None:
        for seed, scale in ((1, 1.0), (2, 0.5)):
            for subflows, mbps in ((1, 2.0), (6, 4.0), (7, 3.0), (8, 4.0)):
                put(store, spec_of(subflows, seed=seed), result_of([scale * mbps]))
        points = judged(store)
        assert measured(metrics.GOODPUT_OVER_TCP, 8, points) == Measured(2.0, 0.0, 2, False)
        assert measured(metrics.GOODPUT_OVER_TCP, 5, points) is None
        # Of a 5 Mb/s link: 60 % against the mean of 80 and 80, and half of that.
        found = measured(metrics.GOODPUT_DIP, 7, points)
        assert found is not None
        assert (found.value, found.n) == (-15.0, 2)

    def test_a_slope_is_of_the_link_rate(self, store: Store) -> None:
        for subflows, mbps in ((1, 2.0), (3, 3.0), (5, 4.0)):
            put(store, spec_of(subflows), result_of([mbps]))
        found = measured(metrics.GOODPUT_SLOPE, 8, judged(store))
        assert found is not None
        assert found.value == pytest.approx(10.0)

    def test_a_slope_needs_three_counts(self, store: Store) -> None:
        for subflows in (1, 8):
            put(store, spec_of(subflows), result_of([2.0]))
        assert measured(metrics.GOODPUT_SLOPE, 8, judged(store)) is None

    def test_links_are_those_between_switches(self, store: Store) -> None:
        ports = [("host-edge", 99, 1), ("edge-host", 99, 1), ("edge-agg", 51, 1), ("agg-edge", 50, 1),
                 ("agg-core", 4.9, 1), ("core-agg", 5, 1)]  # fmt: skip
        put(store, spec_of(8), with_ports(result_of([1.0]), ports))
        assert measured(metrics.LINKS_BUSY_PCT, 8, judged(store)) == Measured(25.0, None, 1, False)
        assert measured(metrics.LINKS_UNUSED_PCT, 8, judged(store)) == Measured(25.0, None, 1, False)

    def test_a_star_has_no_links_between_switches(self, store: Store) -> None:
        put(store, spec_of(8), with_ports(result_of([1.0]), [("host-edge", 99, 1), ("edge-host", 99, 1)]))
        assert measured(metrics.LINKS_BUSY_PCT, 8, judged(store)) is None

    def test_the_worst_queue_is_a_switch_s(self, store: Store) -> None:
        ports = [("host-edge", 9, 900), ("edge-host", 9, 70), ("edge-agg", 9, 450)]
        put(store, spec_of(1), with_ports(result_of([1.0]), ports))
        assert measured(metrics.QUEUE_PKTS_MAX, 1, judged(store)) == Measured(450.0, None, 1, False)

    def test_queues_that_grow_and_queues_that_swing(self, store: Store) -> None:
        """Port 1 grows by one packet per sample; port 2 is 20 or 0 in turn; port 0, a host's, is left out."""
        ports = [("host-edge", 9, 900), ("edge-agg", 9, 40), ("agg-core", 9, 20)]
        instants = [0.1 * n for n in range(40)]
        rows = [(t, 0, 900) for t in instants] + [(t, 1, n) for n, t in enumerate(instants) if n]
        rows += [(t, 2, 20) for n, t in enumerate(instants) if n % 2]
        samples = {
            "queues": Table.from_rows(("t_s", "port", "pkts"), rows),
            "queue_times": Table.from_rows(("t_s",), [(t,) for t in instants]),
        }
        put(store, spec_of(1), with_samples(with_ports(result_of([1.0]), ports), **samples))
        growth = measured(metrics.QUEUE_GROWTH, 1, judged(store))
        assert growth is not None
        assert growth.value == pytest.approx((34.5 + 10) / (14.5 + 10))
        swing = measured(metrics.QUEUE_VARIATION_PCT, 1, judged(store))
        assert swing is not None
        assert swing.value == pytest.approx((100 + 100 * 11.54 / 19.5) / 2, abs=0.1)

    def test_without_samples_there_is_no_number(self, store: Store) -> None:
        put(store, spec_of(1), result_of([1.0]))
        for metric in (
            metrics.QUEUE_GROWTH,
            metrics.QUEUE_VARIATION_PCT,
            metrics.ONE_WAY_S_MAX,
            metrics.RTT_VARIATION_PCT,
        ):
            assert measured(metric, 1, judged(store)) is None, metric.name

    def test_empty_queues_and_lost_pings_have_no_number_either(self, store: Store) -> None:
        samples = {
            "queues": Table.from_rows(("t_s", "port", "pkts"), []),
            "queue_times": Table.from_rows(("t_s",), [(0.1 * n,) for n in range(40)]),
            "pings": Table.from_rows(PINGS, [(0.0, 0, 0, NO_VALUE, NO_VALUE)]),
        }
        put(store, spec_of(1), with_samples(result_of([1.0]), **samples))
        for metric in (metrics.QUEUE_GROWTH, metrics.QUEUE_VARIATION_PCT, metrics.ONE_WAY_S_MAX):
            assert measured(metric, 1, judged(store)) is None, metric.name

    def test_round_trips(self, store: Store) -> None:
        lost = (1.0, 0, 0, NO_VALUE, NO_VALUE)
        pings = Table.from_rows(PINGS, [(0.0, 0, 0, 7100.0, 5200.0), lost, (2.0, 0, 0, 9.0, 8.0)])
        flows = tuple(
            dataclasses.replace(flow_row(n, 1.0), ping_ms_mean=100.0 * (n + 1), ping_ms_std=std)
            for n, std in enumerate((20.0, 60.0))
        )
        put(store, spec_of(1), dataclasses.replace(with_samples(result_of([1.0]), pings=pings), flows=flows))
        assert measured(metrics.ONE_WAY_S_MAX, 1, judged(store)) == Measured(5.2, None, 1, False)
        variation = measured(metrics.RTT_VARIATION_PCT, 1, judged(store))
        assert variation is not None
        # Means of 100 and 200 ms deviate by 50; in time, 20 and 60.
        assert variation.value == pytest.approx(100 * (50**2 + (20**2 + 60**2) / 2) ** 0.5 / 150)

    def test_a_damaged_sample_costs_its_own_number(self, store: Store) -> None:
        pings = Table.from_rows(PINGS, [(0.0, 0, 0, 5.0, 4.0)])
        point = put(store, spec_of(1), with_samples(result_of([1.0]), pings=pings))
        (point.path / "samples" / "pings.csv.gz").write_bytes(b"not gzip")
        assert measured(metrics.ONE_WAY_S_MAX, 1, judged(store)) is None

    def test_trees_are_compared_at_the_same_size_seed_and_subflows(self, store: Store) -> None:
        def on(kind: str, spec: RunSpec) -> RunSpec:
            return dataclasses.replace(spec, topology=TopologySpec(kind, {"k": 4}))

        put(store, on("dual_homed_fat_tree", spec_of(8)), result_of([3.0]))
        put(store, on("fat_tree", spec_of(8)), result_of([2.0]))
        put(store, on("fat_tree", spec_of(8, seed=2)), result_of([1.0]))
        statement = dataclasses.replace(
            row(metrics.GOODPUT_OVER_SINGLE_HOMED, 8, Relation.ABOVE, 1), topology="dual_homed_fat_tree"
        )
        assert verdict_on(statement, judged(store)).measured == Measured(1.5, None, 1, False)


def _all_figures() -> list[Figure]:
    return [figure for experiment in EXPERIMENTS.values() for figure in experiment.figures]


def test_every_statement_says_what_it_is_about_and_what_agrees() -> None:
    rows = [statement for figure in _all_figures() for statement in figure.published]
    assert len(rows) > 25
    for statement in rows:
        assert statement.metric.about
        assert statement.because and statement.words and statement.citation
        assert statement.tolerance >= 0


def test_every_metric_is_used_and_has_a_name_of_its_own() -> None:
    stated = {statement.metric for figure in _all_figures() for statement in figure.published}
    general = {metric for metric in vars(metrics).values() if isinstance(metric, Metric)}
    assert general <= stated | {metric for metric in metrics.TABLES if metric.shown}
    everything = general | stated | set(metrics.TABLES)
    assert len({metric.name for metric in everything}) == len(everything)


def test_a_metric_that_nothing_reads_is_refused() -> None:
    with pytest.raises(ValueError, match="metric x"):
        Metric(Quantity("x", "", "nothing"))
    with pytest.raises(ValueError, match="off one point"):
        Metric(Quantity("x", "", "a ratio"), over=metrics.GOODPUT_OVER_TCP.over, shown=ShownIn.REPORT)
