"""Metrics and published numbers: what is read off points, and when a statement holds."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest

from analysis.quantities import Quantity
from common.errors import UsageError
from experiments.registry import EXPERIMENTS
from harness.experiment import Figure
from harness.metrics import metrics
from harness.metrics.measures import Estimate, goodput_mbps
from harness.metrics.metrics import Metric, ShownIn, between
from harness.metrics.published import Relation
from harness.results import point_results
from harness.results.point_results import PointResult
from harness.results.store import Store, load
from model.result import NO_VALUE, PortRow, RunResult, Table
from model.spec import RunSpec, TopologySpec
from tests.support import judged_points
from tests.support.statements import row
from tests.support.stored_points import flow_row, put, result_of, spec_of

PINGS = ("t_s", "flow", "subflow", "rtt_ms", "out_ms")


def judged(store: Store) -> list[PointResult]:
    return point_results.judge(load(store.directory))


def measured(metric: Metric, subflows: int, points: Sequence[PointResult]) -> Estimate | None:
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


class TestMetrics:
    def test_ratios_slopes_and_dips_pair_the_points_of_a_seed(self, store: Store) -> None:
        for seed, scale in ((1, 1.0), (2, 0.5)):
            for subflows, mbps in ((1, 2.0), (6, 4.0), (7, 3.0), (8, 4.0)):
                put(store, spec_of(subflows, seed=seed), result_of([scale * mbps]))
        points = judged(store)
        assert measured(metrics.GOODPUT_OVER_TCP, 8, points) == Estimate(2.0, 0.0, 2, False)
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
        assert measured(metrics.LINKS_BUSY_PCT, 8, judged(store)) == Estimate(25.0, None, 1, False)
        assert measured(metrics.LINKS_UNUSED_PCT, 8, judged(store)) == Estimate(25.0, None, 1, False)

    def test_a_star_has_no_links_between_switches(self, store: Store) -> None:
        put(store, spec_of(8), with_ports(result_of([1.0]), [("host-edge", 99, 1), ("edge-host", 99, 1)]))
        assert measured(metrics.LINKS_BUSY_PCT, 8, judged(store)) is None

    def test_the_worst_queue_is_a_switch_s(self, store: Store) -> None:
        ports = [("host-edge", 9, 900), ("edge-host", 9, 70), ("edge-agg", 9, 450)]
        put(store, spec_of(1), with_ports(result_of([1.0]), ports))
        assert measured(metrics.QUEUE_PKTS_MAX, 1, judged(store)) == Estimate(450.0, None, 1, False)

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
        assert measured(metrics.ONE_WAY_S_MAX, 1, judged(store)) == Estimate(5.2, None, 1, False)
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
        assert statement.metric.measure(judged(store), statement) == Estimate(1.5, None, 1, False)


def _all_figures() -> list[Figure]:
    return [figure for experiment in EXPERIMENTS.values() for figure in experiment.figures]


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


def test_a_metric_between_two_values_is_their_ratio_at_each_seed() -> None:
    """Points of other values and of one side alone do not count."""
    quantity = Quantity("short_over_long", "x", "the goodput with a short queue over that with a long one")
    metric = between(quantity, goodput_mbps, {"link.queue_pkts": 20}, {"link.queue_pkts": 100})
    of = ((20, 1), (100, 1), (20, 2), (100, 2), (20, 3), (50, 1))
    queues = ("link.queue_pkts", "link.nic_queue_pkts")
    specs = {(pkts, seed): spec_of(1, seed=seed).changed(dict.fromkeys(queues, pkts)) for pkts, seed in of}
    stored = [judged_points.stored(specs[pkts, seed], [float(pkts * seed)]) for pkts, seed in of]
    points = judged_points.judged(stored)
    found = metric.measure(points, row(metric, 1, Relation.BELOW, 1))
    assert found is not None and (found.value, found.n) == (0.2, 2)
    assert len({metric.setting(spec).key(ignoring=["seed"]) for spec in specs.values()}) == 1
    with pytest.raises(UsageError, match=r"link\.queue_pkts"):
        between(quantity, goodput_mbps, {"link.queue": 20}, {"link.queue_pkts": 100})
