"""responsive-mptcp-real: real hosts beside simulated ones, flow by flow, at the rate that a machine carries.

Both have the same flows with the same addresses, ports and first paths. t_m follows the rate: it is 2 ms at
the slides' 1 Gb/s, which hosts in virtual time carry, and 200 ms at the default rate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from statistics import fmean

from analysis.quantities import Quantity
from engines.registry import SIMULATOR
from experiments.responsive_mptcp.schemes import MAX_SUBFLOWS, responsive
from harness.experiment import Figure, RateOf
from harness.metrics.measures import across
from harness.metrics.metric import Metric
from harness.metrics.published import Published, Relation, Source
from harness.options.options import ENGINE, UNSCHEDULED, Defaults, SweepOptions
from harness.plan.sweeps import Variant, fat_trees, points_on
from harness.results.point_results import Pair, alike
from model.result import FlowRow, under_test
from model.spec import LINUX, RunSpec, SamplingSpec

NAME = "responsive-mptcp-real"
K, RATE_MBPS, REPETITIONS = 4, 10.0, 3
SLIDES_MBPS, SLIDES_MONITOR_MS = 1000.0, 2.0
"""At a hundredth of the rate a packet takes a hundred times as long, and so do t_m and the warm-up."""
SHUFFLE = "map_reduce:0:maps=4:reduces=4:kb=1500"
"""Two jobs; a reducer gets 6 MB, which take 5.1 s on an idle link."""
WORKLOADS = ("one_to_one", "connections_per_host:1", SHUFFLE)
SAMPLE_MS = 200
CITATION = (
    "No publication: two engines send the same flows under the same controller (docs/responsive-mptcp.md)"
)
PAPER = "same flows"
SHARE = 0.06, "cross-check allows 5 points of optimal, of about 85"
COUNT = 0.4, "a tenth of four subflows, as for the published table"
SIGN = 0.0, "paths beyond the first depend on when flows ask, so only the sign is expected"


def _ratio(value_of: Callable[[FlowRow], float]) -> Callable[[Pair], float | None]:
    """Return the mean over flows of real hosts, over that of their twins; None where a value is missing."""

    def of(pair: Pair) -> float | None:
        real, simulated = _means(pair, value_of)
        return real / simulated if simulated > 0 else None

    return of


def _means(pair: Pair, value_of: Callable[[FlowRow], float]) -> tuple[float, float]:
    real, simulated = (
        fmean(value_of(flow) for flow in under_test(judged.point.flows))
        for judged in (pair.emulated, pair.simulated)
    )
    return real, simulated


def _more_subflows(pair: Pair) -> float:
    real, simulated = _means(pair, lambda flow: flow.subflows_joined)
    return real - simulated


GOODPUT = Metric(
    Quantity("real_over_twin", "x simulated", "the mean goodput of real flows"),
    setting=alike,
    over=across(_ratio(lambda flow: flow.goodput_mbps)),
)
COMPLETION = Metric(
    Quantity("real_time_over_twin", "x simulated", "the mean completion time of real transfers"),
    setting=alike,
    over=across(_ratio(lambda flow: flow.completed_s)),
)
SUBFLOWS = Metric(
    Quantity("real_subflows_more", "subflows", "real subflows per flow, minus those of the simulated twin"),
    setting=alike,
    over=across(_more_subflows),
)
RANKS = Metric(
    Quantity("real_ranks", "", "the rank correlation of real and simulated flows"),
    setting=alike,
    over=across(lambda pair: pair.rank_correlation),
)


def _row(
    metric: Metric, workload: str, relation: Relation, value: float, words: str, within: tuple[float, str]
) -> Published:
    return Published(
        metric, "fat_tree", K, workload, MAX_SUBFLOWS, relation, value, Source.EXPECTED, words, PAPER,
        CITATION, *within,
    )  # fmt: skip


EXPECTED = (
    *(_row(GOODPUT, each, Relation.ABOUT, 1, "the same mean goodput", SHARE) for each in WORKLOADS[:2]),
    _row(COMPLETION, SHUFFLE, Relation.ABOUT, 1, "the same mean completion time", SHARE),
    *(_row(SUBFLOWS, each, Relation.ABOUT, 0, "the same number of subflows", COUNT) for each in WORKLOADS),
    *(_row(RANKS, each, Relation.ABOVE, 0, "the ranks of flows agree", SIGN) for each in WORKLOADS[:2]),
)
"""Written before any of these points was run."""


def _points(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
    variant = Variant(subflows=(MAX_SUBFLOWS,), simulated=LINUX)
    return [_controlled(spec) for spec in points_on(fat_trees, (variant,))(options, rate_of)]


def _controlled(spec: RunSpec) -> RunSpec:
    """Return the point under the controller, unless --scheduler chose another."""
    if spec.scheduler != UNSCHEDULED:
        return spec
    monitor_ms = SLIDES_MONITOR_MS * SLIDES_MBPS / spec.link.rate_mbps
    return replace(spec, scheduler=responsive(monitor_ms, 0.15))


REAL = Figure(
    name=NAME,
    title="Real hosts beside simulated ones",
    about="Linux hosts under the controller, and their simulated twins: goodput and subflows of every flow, "
    "and the subflows of four flows over time. The subflows of real flows are counted by the kernel.",
    defaults=Defaults(
        ks=(K,),
        workloads=WORKLOADS,
        subflows=(MAX_SUBFLOWS,),
        rate_mbps=RATE_MBPS,
        seconds=8.0,
        warmup_s=15.0,
        seeds=REPETITIONS,
        engines=(SIMULATOR, ENGINE),
        traffic="native",
        sampling=SamplingSpec(sockets_ms=SAMPLE_MS),
    ),
    topologies=fat_trees,
    points=_points,
    charts=("subflows_beside",),
    published=EXPECTED,
    relative=False,
)
