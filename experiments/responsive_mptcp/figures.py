"""responsive-mptcp: subflows that a controller adds where demand is not met, beside ECMP and Hedera.

After the slides of Duan (University of Hong Kong, 2015), whose Table I is from ns-3. Values that the slides
do not state are our assumptions, listed in docs/responsive-mptcp.md.

responsive-mptcp-assumptions: what the slides do not state, one assumption changed at a time.

Each of the schemes below runs with the usual assumptions and with each change that concerns it.

responsive-mptcp-real: real hosts beside simulated ones, flow by flow, at the rate that a machine carries.

Both have the same flows with the same addresses, ports and first paths. t_m follows the rate: it is 2 ms at
the slides' 1 Gb/s, which hosts in virtual time carry, and 200 ms at the default rate.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import replace
from statistics import fmean
from typing import Any

from analysis.quantities import Quantity
from engines.registry import SIMULATOR
from experiments.responsive_mptcp.statements import (
    ECMP2,
    ECMP4,
    ECMP8,
    FIRST_FIT,
    HEDERA,
    JOBS,
    MAX_SUBFLOWS,
    PERMUTATION,
    R2,
    R8,
    RANDOM,
    SHUFFLE,
    STACK,
    TABLE,
    THROUGHPUT,
    WITH_HEDERA,
    responsive,
)
from harness.experiment import Experiment, Figure
from harness.metrics.measures import across
from harness.metrics.metrics import Metric
from harness.metrics.published import Published, Relation, Source
from harness.options.options import ENGINE, UNSCHEDULED
from harness.plan.sweeps import PLAIN_TCP, Adapt, fat_trees, middle_third_s, points_on, with_core_failure
from harness.results.point_results import EnginePair, alike
from model.result import FlowRow, under_test
from model.schedulers import is_responsive
from model.spec import LINUX, RunSpec, SamplingSpec, SchedulerSpec, Settings

SCHEMES = (R2, R8, ECMP4, WITH_HEDERA)
QUEUES_PKTS = 25, 400
DELAYS_US = (40.0,)
MIN_RTOS_MS = 1.0, 200.0
DELAYED_ACKS_MS = 0.0, 40.0
"""The usual values are 100 packets, 10 us, 10 ms and 1 ms; 200 and 40 ms are Linux's."""
VARIATIONS = 0.02, 0.1
CHECKS = 2, 6
HEDERAS = SchedulerSpec("annealing", 100.0), SchedulerSpec("first_fit", 10.0)
OF_ALL: tuple[Settings, ...] = (
    *({"link.queue_pkts": pkts} for pkts in QUEUES_PKTS),
    *({"link.delay_us": us} for us in DELAYS_US),
    *({"stack.min_rto_ms": ms} for ms in MIN_RTOS_MS),
    *({"stack.delayed_ack_ms": ms} for ms in DELAYED_ACKS_MS),
)
OF_MONITORS: tuple[Settings, ...] = (
    *({"scheduler.rate_variation": share} for share in VARIATIONS),
    *({"scheduler.checks": count} for count in CHECKS),
)
OF_HEDERA: tuple[Settings, ...] = tuple({"scheduler": chosen} for chosen in HEDERAS)


def _assumptions() -> Iterator[Settings]:
    """Yield each scheme as usual, and with each assumption changed."""
    for scheme in SCHEMES:
        yield scheme.curve
        changes = [*OF_ALL, *(OF_MONITORS if is_responsive(scheme.scheduler) else ())]
        changes += OF_HEDERA if scheme.scheduler == HEDERA else ()
        yield from ({**scheme.curve, **change} for change in changes)


REAL_NAME = "responsive-mptcp-real"
K, RATE_MBPS, REPETITIONS = 4, 10.0, 3
SLIDES_MBPS, SLIDES_MONITOR_MS = 1000.0, 2.0
"""At a hundredth of the rate a packet takes a hundred times as long, and so do t_m and the warm-up."""
REAL_SHUFFLE = "map_reduce:0:maps=4:reduces=4:kb=1500"
"""Two jobs; a reducer gets 6 MB, which take 5.1 s on an idle link."""
WORKLOADS = ("one_to_one", "connections_per_host:1", REAL_SHUFFLE)
REAL_SAMPLE_MS = 200
CITATION = (
    "No publication: two engines send the same flows under the same controller (docs/responsive-mptcp.md)"
)
PAPER = "same flows"
SHARE = 0.06, "cross-check allows 5 points of optimal, of about 85"
COUNT = 0.4, "a tenth of four subflows, as for the published table"
SIGN = 0.0, "paths beyond the first depend on when flows ask, so only the sign is expected"


def _ratio(value_of: Callable[[FlowRow], float]) -> Callable[[EnginePair], float | None]:
    """Return the mean over flows of real hosts, over that of their twins; None where a value is missing."""

    def of(pair: EnginePair) -> float | None:
        real, simulated = _means(pair, value_of)
        return real / simulated if simulated > 0 else None

    return of


def _means(pair: EnginePair, value_of: Callable[[FlowRow], float]) -> tuple[float, float]:
    real, simulated = (
        fmean(value_of(flow) for flow in under_test(judged.flows))
        for judged in (pair.emulated, pair.simulated)
    )
    return real, simulated


def _more_subflows(pair: EnginePair) -> float:
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
    _row(COMPLETION, REAL_SHUFFLE, Relation.ABOUT, 1, "the same mean completion time", SHARE),
    *(_row(SUBFLOWS, each, Relation.ABOUT, 0, "the same number of subflows", COUNT) for each in WORKLOADS),
    *(_row(RANKS, each, Relation.ABOVE, 0, "the ranks of flows agree", SIGN) for each in WORKLOADS[:2]),
)
"""Written before any of these points was run."""


def _controlled(spec: RunSpec) -> RunSpec:
    """Return the point under the controller, unless --scheduler chose another."""
    if spec.scheduler != UNSCHEDULED:
        return spec
    monitor_ms = SLIDES_MONITOR_MS * SLIDES_MBPS / spec.link.rate_mbps
    return replace(spec, scheduler=responsive(monitor_ms, 0.15))


REAL = Figure(
    name=REAL_NAME,
    title="Real hosts beside simulated ones",
    about="Linux hosts under the controller, and their simulated twins: goodput and subflows of every flow, "
    "and the subflows of four flows over time. The subflows of real flows are counted by the kernel.",
    defaults={
        "k": (K,),
        "workload": WORKLOADS,
        "transport.subflows": (MAX_SUBFLOWS,),
        "engine": (SIMULATOR, ENGINE),
        "link.rate_mbps": RATE_MBPS,
        "warmup_s": 15.0,
        "seconds": 8.0,
        "seeds": REPETITIONS,
        "traffic": "native",
        "sampling": SamplingSpec(sockets_ms=REAL_SAMPLE_MS),
    },
    topologies=fat_trees,
    points=points_on(fat_trees, ({"transport.subflows": MAX_SUBFLOWS, "stack": LINUX},), _controlled),
    charts=("subflows_beside",),
    published=EXPECTED,
    relative=False,
)


NAME = "responsive-mptcp"
SEEDS = 6
OPTIONS = (
    "k", "workload", "engine", "seconds", "warmup", "seed", "seeds", "profile", "rate", "delay", "queue",
)  # fmt: skip
DEFAULTS: Settings = {
    "k": (8,), "workload": (RANDOM, PERMUTATION), "transport.subflows": (MAX_SUBFLOWS,),
    "engine": (SIMULATOR,),
    "link.rate_mbps": 1000.0, "warmup_s": 0.15, "seconds": 0.15, "seeds": SEEDS,
    "link.queue_pkts": 100, "link.delay_us": 10.0,
}  # fmt: skip
OUTAGES: Settings = {**DEFAULTS, "workload": (PERMUTATION,), "seconds": 0.6, "seeds": SEEDS}
SHUFFLES: Settings = {**DEFAULTS, "workload": (SHUFFLE,), "warmup_s": 0.0, "seconds": 3.0}
JOINING: Settings = {**OUTAGES, "workload": ("joined_permutation:350:kb=10000",)}
"""The second permutation begins 0.2 s after the opening of the window and lasts for about 0.2 s."""
LINKS_MS = 1.0
"""Time until the controller knows that a link has failed: our choice."""
ONE = responsive(2.0, 0.15)


def _one_by_one() -> tuple[Settings, ...]:
    """Return the fast setting with one option changed at a time, and M."""
    changes: tuple[dict[str, Any], ...] = (
        *({"interval_ms": ms} for ms in (1.0, 4.0, 8.0, 16.0, 32.0, 64.0)),
        *({"demand_gap": gap} for gap in (0.05, 0.25, 0.35, 0.5)),
        *({"rate_variation": share} for share in (0.01, 0.1, 0.2)),
        *({"checks": count} for count in (1, 2, 6, 12)),
        *({"message_ms": ms} for ms in (0.0, 1.0, 10.0)),
        {"message_loss": 0.1},
        {"one_per_tick": True},
    )
    return (
        R2.curve,
        *(_varied(dataclasses.replace(ONE, **change)) for change in changes),
        *(_varied(ONE, most) for most in (1, 2, 3, 6, 8)),
    )


def _varied(scheduler: SchedulerSpec, subflows: int = MAX_SUBFLOWS) -> Settings:
    return {**R2.curve, "scheduler": scheduler, "transport.subflows": subflows}


BESIDE = (
    *(scheme.curve for scheme in (*TABLE, ECMP8, FIRST_FIT)),
    {**PLAIN_TCP, "scheduler": UNSCHEDULED, "stack": STACK},
    {
        **PLAIN_TCP,
        "scheduler": UNSCHEDULED,
        "routing": "scatter",
        "stack": STACK,
    },
    {
        "transport.cc": "dctcp",
        "transport.subflows": 1,
        "scheduler": UNSCHEDULED,
        "link.ecn_pkts": 20,
        "stack": STACK,
    },
)
KNOWS_LINKS = _varied(dataclasses.replace(ONE, links_ms=LINKS_MS))
OUTAGE = (
    *(scheme.curve for scheme in (R2, R8, ECMP4, ECMP2)),
    KNOWS_LINKS,
    {**PLAIN_TCP, "scheduler": UNSCHEDULED, "stack": STACK},
)
"""Hedera is left out: our schedulers do not handle failing links."""
ALONE = (R2.curve, R8.curve)
JOINED = (R2.curve, _varied(dataclasses.replace(ONE, closes=True)), ECMP4.curve)
PRINTED = (R2.curve, _varied(dataclasses.replace(ONE, one_per_tick=True)))
SIZES = tuple(scheme.curve for scheme in (R2, R8, ECMP4, ECMP8))
STARTING: Settings = {**DEFAULTS, "workload": (PERMUTATION,), "warmup_s": 0.0, "seconds": 0.6}
STARTS = tuple(scheme.curve for scheme in (*TABLE, ECMP8))
SAMPLE_MS, START_SAMPLE_MS = 10, 2
LATE = (
    R2.curve,
    *(_varied(dataclasses.replace(ONE, down_monitors=share, down_for_s=1.0)) for share in (0.5, 1.0)),
)
"""All monitors run, or half or all of them start after a third of the window; the point determines when."""


def _with_failing_core(point: RunSpec) -> RunSpec:
    """Return the point with a quarter of the core down, sampled often enough to show the outage."""
    return _sampled(with_core_failure(point))


def _with_controller_down(point: RunSpec) -> RunSpec:
    """Return the point with the controller down in the middle third of the window."""
    return _sampled(_without_controller(point, *middle_third_s(point)))


def _with_late_controller(point: RunSpec) -> RunSpec:
    """Return the point with the controller down from the flows' start to a third of the window."""
    return _sampled(_without_controller(point, 0.0, middle_third_s(point)[0]))


def _with_late_monitors(point: RunSpec) -> RunSpec:
    """Return the point with its share of monitors down from the flows' start to a third of the window."""
    return _with_late_controller(point) if point.scheduler.down_monitors else _sampled(point)


def _without_controller(point: RunSpec, from_s: float, to_s: float) -> RunSpec:
    down = dataclasses.replace(point.scheduler, down_at_s=from_s, down_for_s=round(to_s - from_s, 9))
    return dataclasses.replace(point, scheduler=down)


def _often_sampled(point: RunSpec) -> RunSpec:
    return _sampled(point, START_SAMPLE_MS)


def _sampled(point: RunSpec, every_ms: int = SAMPLE_MS) -> RunSpec:
    return dataclasses.replace(point, sampling=SamplingSpec(sockets_ms=every_ms))


def _figure(
    name: str,
    title: str,
    about: str,
    defaults: Settings,
    curves: tuple[Settings, ...],
    adapt: Adapt | None = None,
    **more: object,
) -> Figure:
    return Figure(
        name=name, title=title, about=about, defaults=defaults, topologies=fat_trees,
        points=points_on(fat_trees, curves, adapt), relative=False,
        options=OPTIONS, **more,  # type: ignore[arg-type]
    )  # fmt: skip


FIGURES = (
    _figure(
        f"{NAME}-throughput",
        "Throughput and subflows of long flows",
        "Every host sends one flow, to a random host or to its partner of a permutation. A controller adds "
        "subflows to flows below their demand. It carries what 4 subflows on hashed paths do, or more, with "
        "fewer subflows, because it knows which paths are free.",
        DEFAULTS,
        tuple(scheme.curve for scheme in TABLE),
        charts=("trade_off",),
        published=THROUGHPUT,
    ),
    _figure(
        f"{NAME}-shuffle",
        "Completion of map-reduce jobs",
        "Eight hosts send to each of eight others, and eight such jobs run at once. The demand of a flow is "
        "an eighth of a link, so that most flows need one subflow only. A job ends with its last transfer.",
        SHUFFLES,
        tuple(scheme.curve for scheme in TABLE),
        charts=("trade_off",),
        published=JOBS,
    ),
    _figure(
        f"{NAME}-options",
        "What the settings of monitors and controller do",
        "The setting of 2 ms and .15 with one option changed at a time: interval, demand gap, rate "
        "variation, checks, delay and loss of messages, the loop as printed, and the most subflows of a "
        "connection. The subject is a permutation.",
        {**DEFAULTS, "workload": (PERMUTATION,)},
        _one_by_one(),
        charts=("by_controller_option",),
    ),
    _figure(
        f"{NAME}-printed",
        "The monitors' loop as printed",
        "As the slides print it, the loop ends with the first flow that asks, so a monitor serves one flow "
        "per tick. That matters where a sender has several flows: here it is the shuffle, with eight.",
        SHUFFLES,
        PRINTED,
        charts=("trade_off",),
    ),
    _figure(
        f"{NAME}-assumptions",
        "What the slides do not state",
        "One assumption changed at a time, for two settings of the monitors, 4 subflows and Hedera: queues, "
        "delays, minimum RTO, delayed acknowledgements, rate variation, checks, and Hedera's algorithm and "
        "interval. The subject is a permutation.",
        {**DEFAULTS, "workload": (PERMUTATION,)},
        tuple(_assumptions()),
        charts=("by_assumption",),
    ),
    _figure(
        f"{NAME}-start",
        "From a flow's start to its demand",
        "All flows of a permutation begin at once. A flow has reached its demand when its smoothed rate is "
        "85 % of it or more in three checks in a row, as a monitor would see it.",
        STARTING,
        STARTS,
        _often_sampled,
        charts=("time_to_demand",),
    ),
    _figure(
        f"{NAME}-beside",
        "Beside what the slides leave out",
        "The schemes of the table beside 8 subflows, TCP on hashed paths, packets that choose paths one by "
        "one, DCTCP, and Hedera's first fit. The subject is a permutation.",
        {**DEFAULTS, "workload": (PERMUTATION,)},
        BESIDE,
        charts=("trade_off",),
    ),
    _figure(
        f"{NAME}-failure",
        "A quarter of the core fails and recovers",
        "In the middle third of the window the links of a quarter of the core switches are down, and routing "
        "does not know. Monitors see rates fall and ask for other paths. A flow whose only path is cut has "
        "no rate at all, so its monitor finds no steady checks and does not ask. With links=1 the "
        "controller knows after 1 ms and moves subflows.",
        OUTAGES,
        OUTAGE,
        _with_failing_core,
        charts=("demand_over_time",),
    ),
    _figure(
        f"{NAME}-joined",
        "Flows whose demand falls and rises",
        "After 0.2 s a second flow begins at every host, so that demands fall by half; it ends 0.2 s later. "
        "The chart shows the first flows. With the option close the controller closes subflows that they do "
        "not need.",
        JOINING,
        JOINED,
        _sampled,
        charts=("demand_over_time",),
    ),
    _figure(
        f"{NAME}-sizes",
        "FatTrees from 16 to 1024 hosts",
        "The permutation at k = 4, 8 and 16. A larger tree has more paths to choose from, and hashed "
        "subflows collide in more places.",
        {**DEFAULTS, "k": (4, 8, 16), "workload": (PERMUTATION,)},
        SIZES,
        charts=("trade_off",),
    ),
    REAL,
    _figure(
        f"{NAME}-controller",
        "A controller that is down and starts again",
        "The controller is down in the middle third of the window. Flows go on with the subflows that they "
        "have. When it starts again it has forgotten all, and asks the monitors for their flows.",
        OUTAGES,
        ALONE,
        _with_controller_down,
        charts=("demand_over_time",),
    ),
    _figure(
        f"{NAME}-late-controller",
        "A controller that starts after the flows",
        "The controller is down until a third of the window has passed. Flows begin with one subflow on its "
        "hashed path. When the controller starts, flows that share links get paths and subflows.",
        OUTAGES,
        ALONE,
        _with_late_controller,
        charts=("demand_over_time",),
    ),
    _figure(
        f"{NAME}-late-monitors",
        "Monitors that start after the flows",
        "Half of the monitors, or all, are down until a third of the window has passed. Their flows have one "
        "subflow on its hashed path, and the controller does not know of them: it takes the paths that they "
        "use for free. The others get paths and subflows from the start.",
        OUTAGES,
        LATE,
        _with_late_monitors,
        charts=("demand_over_time",),
    ),
)
EXPERIMENT = Experiment(
    name=NAME,
    title="Subflows where demand is not met: responsive multipath TCP beside ECMP and Hedera (HKU, 2015)",
    folder=NAME,
    figures=FIGURES[:2],
    shared_options=OPTIONS,
)
SINGLE = tuple(figure.alone(NAME, OPTIONS) for figure in FIGURES)
