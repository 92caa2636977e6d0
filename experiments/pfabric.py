"""pfabric: completion times under pFabric, DCTCP, TCP and an ideal scheduler, by load and by flow size.

After Alizadeh et al., pFabric, SIGCOMM 2013 (section 5: 144 hosts below 9 leaves and 4 spines), and its
workshop paper, HotNets 2012 (54 hosts of a FatTree). Hosts are simulated; cs244-2017 has Linux hosts.
Every point of a workload carries the same number of bytes: at a lower load it runs longer.

The statements have the papers' words as numbers. Directions are judged by ratios. Tolerances were set before
any run.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from analysis.completion import ALL, LARGE, SMALL, Range, normalised
from analysis.quantities import Quantity
from engines.registry import IDEAL, SIMULATOR
from harness.experiment import Experiment, Figure, RateOf
from harness.metrics.measures import Estimate, Measure, Subject, kept, measured_over, points_about, ratio
from harness.metrics.metrics import Metric
from harness.metrics.published import ABOUT_ONE, ABOVE_ONE, BELOW, BELOW_ONE, Bound, Published, Source
from harness.options.options import SweepOptions
from harness.plan.sweeps import Curves, Points, Topologies, points_on
from harness.results.point_results import PointResult
from model.arms import (
    ARMS,
    COMPARED,
    DCTCP,
    LINERATE,
    MAX_WINDOW,
    MINTCP,
    MINTCP_STACK,
    PARTS,
    TCP,
    Arm,
    arm_of,
)
from model.arms import IDEAL as IDEAL_ARM
from model.spec import RunSpec, SamplingSpec, Settings, StackSpec, TopologySpec

LOADS = (10, 20, 30, 40, 50, 60, 70, 80)
HIGHEST_LOAD = 80
"""In percent. SECONDS and WARMUP_S are for this load."""
WEB_SEARCH, DATA_MINING = "websearch", "datamining"
SIZES = (WEB_SEARCH, DATA_MINING)
WEB_STEPS, MINING_STEPS = "websearch-steps", "datamining-steps"
"""The same without sizes between the published points, as the CS244 2017 reproduction drew them."""
SECONDS, WARMUP_S, WHOLE_S = 0.05, 0.01, 0.2
"""About 4000 flows of web search, and 17 000 in the profile `paper`."""
SIZE_PARTS = {DATA_MINING: 2.0, MINING_STEPS: 2.0}
"""Factor by which points with these sizes run longer, because their flows are fewer and larger."""
BRIEF_PART = 0.4
"""Fraction of the seconds in a brief profile, which only tests that everything works."""
RATE_MBPS = 10_000.0
LINK_DELAY_US, HOST_DELAY_US = 0.2, 2.5
"""A round trip of 14.6 us across a spine and 13.3 us below a leaf, for a packet of 1500 bytes and its ACK."""
HOTNETS_HOST_DELAY_US = 0.55
"""A round trip of 12 us over the six links between pods of a FatTree (recalled), which hold 10 packets."""
LEAF_SPINE = TopologySpec("leaf_spine", {"leaves": 9, "spines": 4, "hosts": 16, "speed": 4})
SMALL_LEAF_SPINE = TopologySpec("leaf_spine", {"leaves": 3, "spines": 2, "hosts": 4, "speed": 2})
FAT_TREE = TopologySpec("fat_tree", {"k": 6})
SMALL_FAT_TREE = TopologySpec("fat_tree", {"k": 4})
STAR = TopologySpec("star", {"n": 28})
SMALL_STAR = TopologySpec("star", {"n": 6})
QUEUE_SAMPLE_MS = 1


def workload(sizes: str, load: int) -> str:
    """Return a workload as a user types it."""
    name = f"pairs:{load}"
    return name if sizes == WEB_SEARCH else f"{name}:sizes={sizes}"


def defaults(
    loads: Sequence[int], sizes: Sequence[str] = SIZES, host_delay_us: float = HOST_DELAY_US
) -> Settings:
    """Return the defaults of a figure at these loads."""
    return {
        "k": (LEAF_SPINE.k,), "workload": tuple(workload(name, load) for name in sizes for load in loads),
        "transport.subflows": (1,), "engine": (SIMULATOR, IDEAL),
        "link.rate_mbps": RATE_MBPS, "warmup_s": WARMUP_S, "seconds": SECONDS, "paper.seconds": WHOLE_S,
        "link.host_delay_us": host_delay_us, "link.clock_ppm": 0.0, "link.delay_us": LINK_DELAY_US,
        "sampling": SamplingSpec(queues_ms=QUEUE_SAMPLE_MS),
    }  # fmt: skip


def one_of(whole: TopologySpec, small: TopologySpec) -> Topologies:
    """Return the network, or a small one of its kind where the profile is brief."""
    return lambda options: [small if options.profile.brief else whole]


def of_arms(names: Sequence[str]) -> tuple[Settings, ...]:
    """Return the settings of these arms, with the engine of each."""
    return tuple(settings_of(ARMS[name]) for name in names)


def settings_of(arm: Arm) -> Settings:
    """Return the settings of this arm's points."""
    return {**arm.settings, "engine": arm.engine or SIMULATOR}


def by_load(topologies: Topologies, curves: Curves) -> Points:
    """Return the points of these curves, which run longer at a lower load."""

    def points(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
        brief = BRIEF_PART if options.profile.brief else 1
        return [_for_its_load(spec, brief) for spec in points_on(topologies, curves)(options, rate_of)]

    return points


def _for_its_load(spec: RunSpec, brief: float) -> RunSpec:
    traffic = spec.workload.params
    part = HIGHEST_LOAD / max(1, int(traffic.get("load", HIGHEST_LOAD)))
    part *= SIZE_PARTS.get(str(traffic.get("sizes", WEB_SEARCH)), 1.0) * brief
    return replace(spec, seconds=round(spec.seconds * part, 9), warmup_s=round(spec.warmup_s * part, 9))


Arms = Mapping[str, PointResult]
"""The points of one seed by the name of their arm."""
_APART = (
    "engine", "transport.cc", "link.discipline", "link.queue_bytes", "link.ecn_pkts", "link.nic_queue_pkts",
    "routing", "stack", "warmup_s", "seconds",
)  # fmt: skip
"""Fields in which arms and loads differ."""
_LOW_LOAD = 20


def setting(spec: RunSpec) -> RunSpec:
    """Return what all arms at all loads have in common."""
    return spec.neutral(*_APART)


@dataclass(frozen=True)
class ArmReading:
    """A statistic of a point's flows in a range of sizes, and how many of these had not ended."""

    of: Range
    statistic: str

    def __call__(self, point: PointResult) -> float | None:
        """Return the number; None if the point has too few such flows."""
        return self._read(point, self.statistic)

    def unfinished_pct(self, point: PointResult) -> float | None:
        """Return the share of these flows that had not ended, in percent; None without any."""
        return self._read(point, "unfinished_pct")

    def _read(self, point: PointResult, name: str) -> float | None:
        def of(point: PointResult) -> float | None:
            value: float | None = getattr(normalised(point.flows, point.spec.seconds, self.of), name)
            return value

        return kept(f"times_alone_{name} of {self.of.label}", of)(point)


def mean_of(of: Range) -> ArmReading:
    """Return the reading of the mean normalised completion time of flows in a range of sizes."""
    return ArmReading(of, "mean")


def p99_of(of: Range) -> ArmReading:
    """Return the reading of the 99th percentile of the same."""
    return ArmReading(of, "p99")


def over(one: str, other: str, value_of: ArmReading) -> Measure:
    """Return a measure: `value_of` arm `one` over `value_of` arm `other`, at each seed."""

    def measure(points: Sequence[PointResult], subject: Subject) -> Estimate | None:
        seeds = _seeds(points_about(points, subject))
        rows = (_ratio(arms, one, other, value_of) for arms in seeds.values())
        return measured_over(rows, value_of.unfinished_pct)

    return measure


def growth(one: str, other: str, value_of: ArmReading) -> Measure:
    """Return a measure: `over` at the subject's load, divided by `over` at a load of 20 %."""

    def measure(points: Sequence[PointResult], subject: Subject) -> Estimate | None:
        here, low = _seeds(points_about(points, subject)), _seeds(low_of(points, subject))
        rows = []
        for seed in here.keys() & low.keys():
            at, behind = _ratio(here[seed], one, other, value_of)
            below, more = _ratio(low[seed], one, other, value_of)
            rows.append((ratio(at, below), [*behind, *more]))
        return measured_over(rows, value_of.unfinished_pct)

    return measure


def low_of(points: Sequence[PointResult], subject: Subject) -> list[PointResult]:
    """Return the points that have the subject's network and flow sizes at the low load."""
    return [p for p in of_sizes(points, subject) if p.spec.workload.params.get("load") == _LOW_LOAD]


def of_sizes(points: Sequence[PointResult], subject: Subject) -> list[PointResult]:
    """Return the points that have the subject's network and flow sizes, at any load."""
    sizes = {_sizes(point) for point in points_about(points, subject)}
    return [point for point in points if _sizes(point) in sizes and subject.is_on(point.spec.topology)]


def _sizes(point: PointResult) -> int | str | None:
    return point.spec.workload.params.get("sizes")


def _seeds(points: Sequence[PointResult]) -> dict[int, dict[str, PointResult]]:
    seeds: dict[int, dict[str, PointResult]] = {}
    for point in points:
        seeds.setdefault(point.spec.seed, {})[arm_of(point.spec)] = point
    return seeds


def _ratio(arms: Arms, one: str, other: str, value_of: ArmReading) -> tuple[float | None, list[PointResult]]:
    if one not in arms or other not in arms:
        return None, []
    return ratio(value_of(arms[one]), value_of(arms[other])), [arms[one], arms[other]]


def _metric(name: str, unit: str, about: str, measure: Measure) -> Metric:
    return Metric(Quantity(name, unit, about), over=measure, setting=setting)


_MEAN = "the mean normalised completion time of all flows"
MINTCP_OVER_IDEAL = _metric(
    "mintcp_over_ideal", "x Ideal", f"{_MEAN} under minTCP + pFabric", over(MINTCP, IDEAL_ARM, mean_of(ALL))
)
LINERATE_OVER_IDEAL = _metric(
    "linerate_over_ideal",
    "x Ideal",
    f"{_MEAN} under LineRate + pFabric",
    over(LINERATE, IDEAL_ARM, mean_of(ALL)),
)
DCTCP_OVER_MINTCP = _metric(
    "dctcp_over_mintcp", "x minTCP + pFabric", f"{_MEAN} under DCTCP", over(DCTCP, MINTCP, mean_of(ALL))
)
TCP_OVER_MINTCP = _metric(
    "tcp_over_mintcp", "x minTCP + pFabric", f"{_MEAN} under TCP", over(TCP, MINTCP, mean_of(ALL))
)
TCP_GAP_GROWTH = _metric(
    "tcp_gap_growth", "x that at load 20 %", "how far TCP is from minTCP + pFabric",
    growth(TCP, MINTCP, mean_of(ALL)),
)  # fmt: skip
SMALL_MEAN_OVER_IDEAL = _metric(
    "small_mean_over_ideal", "x Ideal", "the mean of flows up to 100 kB under minTCP + pFabric",
    over(MINTCP, IDEAL_ARM, mean_of(SMALL)),
)  # fmt: skip
SMALL_P99_OVER_IDEAL = _metric(
    "small_p99_over_ideal", "x Ideal", "the 99th percentile of flows up to 100 kB under minTCP + pFabric",
    over(MINTCP, IDEAL_ARM, p99_of(SMALL)),
)  # fmt: skip
LARGE_OVER_DCTCP = _metric(
    "large_over_dctcp", "x DCTCP", "the mean of flows above 10 MB under minTCP + pFabric",
    over(MINTCP, DCTCP, mean_of(LARGE)),
)  # fmt: skip
DCTCP_SMALL_P99_OVER_TCP = _metric(
    "dctcp_small_p99_over_tcp", "x TCP", "the 99th percentile of flows up to 100 kB under DCTCP",
    over(DCTCP, TCP, p99_of(SMALL)),
)  # fmt: skip
DCTCP_LARGE_OVER_TCP = _metric(
    "dctcp_large_over_tcp",
    "x TCP",
    "the mean of flows above 10 MB under DCTCP",
    over(DCTCP, TCP, mean_of(LARGE)),
)


CITATION = "Alizadeh et al., pFabric: Minimal Near-Optimal Datacenter Transport, SIGCOMM 2013"
NEAR = 0.25, "the paper says near ideal and gives no number; a quarter above it is the limit here"
DIRECTION = 0.0, "the direction alone is stated"
ALIKE = 0.25, "alike without a number; a quarter either way is the limit here"
RECALLED_MEAN = 0.05, "recalled with low confidence, from a curve"
RECALLED_P99 = 0.15, "recalled with low confidence, from a curve, for the tail of a shorter run"


_OVERALL = "near ideal, far below both, the gap grows with load"
_DCTCP = "clearly better below 100 kB, most in the 99th percentile; alike for large flows"
SAID: Mapping[Metric, str] = {
    **dict.fromkeys(
        (MINTCP_OVER_IDEAL, LINERATE_OVER_IDEAL, DCTCP_OVER_MINTCP, TCP_OVER_MINTCP, TCP_GAP_GROWTH), _OVERALL
    ),
    **dict.fromkeys((DCTCP_SMALL_P99_OVER_TCP, DCTCP_LARGE_OVER_TCP), _DCTCP),
    LARGE_OVER_DCTCP: "very large web-search flows",
}
"""What the paper says of each metric, in the words of our notes."""


def _row(
    metric: Metric, sizes: str, bound: Bound, words: str, tolerance: tuple[float, str],
    source: Source = Source.TEXT,
) -> Published:  # fmt: skip
    row = Published(
        metric, "leaf_spine", LEAF_SPINE.k, workload(sizes, HIGHEST_LOAD), 1, *bound, source, words,
        "pFabric", CITATION, *tolerance,
    )  # fmt: skip
    shape = {name: LEAF_SPINE.number(name) for name in LEAF_SPINE.params if name != "leaves"}
    said = SAID.get(metric, "") if source is Source.TEXT else ""
    return replace(row.on(**shape), section="evaluation", quote=said)


OVERALL = tuple(
    row
    for sizes in (WEB_SEARCH, DATA_MINING)
    for row in (
        _row(MINTCP_OVER_IDEAL, sizes, ABOUT_ONE, "minTCP + pFabric is near ideal", NEAR),
        _row(LINERATE_OVER_IDEAL, sizes, ABOUT_ONE, "LineRate + pFabric is near ideal", NEAR),
        _row(DCTCP_OVER_MINTCP, sizes, ABOVE_ONE, "pFabric is far below DCTCP", DIRECTION),
        _row(TCP_OVER_MINTCP, sizes, ABOVE_ONE, "pFabric is far below TCP with drop-tail", DIRECTION),
        _row(TCP_GAP_GROWTH, sizes, ABOVE_ONE, "the gap to TCP grows with the load", DIRECTION),
    )
)
BY_SIZE = (
    *(
        row
        for sizes in (WEB_SEARCH, DATA_MINING)
        for row in (
            _row(
                SMALL_MEAN_OVER_IDEAL, sizes, (BELOW, 1.134),
                "small flows are 1.3 to 13.4 % above ideal on average", RECALLED_MEAN, Source.RECALLED,
            ),
            _row(
                SMALL_P99_OVER_IDEAL, sizes, (BELOW, 1.29),
                "and 3.3 to 29 % at the 99th percentile", RECALLED_P99, Source.RECALLED,
            ),
            _row(
                DCTCP_SMALL_P99_OVER_TCP, sizes, BELOW_ONE,
                "DCTCP is better than TCP for small flows, most in the tail", DIRECTION,
            ),
        )
    ),
    _row(
        LARGE_OVER_DCTCP, WEB_SEARCH, ABOVE_ONE,
        "very large web-search flows are the one case in which pFabric is not better", DIRECTION,
    ),
    _row(DCTCP_LARGE_OVER_TCP, WEB_SEARCH, ABOUT_ONE, "DCTCP and TCP are alike for large flows", ALIKE),
)  # fmt: skip


NAME = "pfabric"
OPTIONS = (
    "workload",
    "engine",
    "seconds",
    "warmup",
    "seed",
    "seeds",
    "profile",
    "rate",
    "delay",
    "host_delay",
)
_NETWORK = one_of(LEAF_SPINE, SMALL_LEAF_SPINE)
_COMPARISON = by_load(_NETWORK, of_arms(COMPARED))
BUFFERS_KB = (6, 12, 18, 24, 36, 72, 144)
"""Half a bandwidth-delay product to eight of them."""
RTOS_MS = (0.015, 0.03, 0.045, 0.09, 0.2, 1.0)
FEW_LOADS = (20, 50, 80)


def _one_by_one() -> tuple[Settings, ...]:
    """Return minTCP + pFabric with other buffers, then with other timeouts."""
    base = settings_of(ARMS[MINTCP])
    buffers = ({**base, "link.queue_bytes": kb * 1024, "stack": _window(kb)} for kb in BUFFERS_KB)
    timeouts = ({**base, "stack": StackSpec(**{**MINTCP_STACK, "min_rto_ms": ms})} for ms in RTOS_MS)
    known = list(buffers)
    return (*known, *(one for one in timeouts if one not in known))


def _window(kb: int) -> StackSpec:
    """Return a stack whose window is at most the buffer less one packet, and at most the paper's."""
    limit = max(1, min(MAX_WINDOW, kb * 1024 // 1500 - 1))
    stack: dict[str, Any] = {**MINTCP_STACK, "max_window": limit}
    return StackSpec(**{**stack, "initial_window": min(stack["initial_window"], limit)})


_figure = functools.partial(
    Figure, topologies=_NETWORK, points=_COMPARISON, sized=False, relative=False, options=OPTIONS
)
"""By default a figure compares all arms on the leaf-spine."""
FIGURES = (
    _figure(
        name=f"{NAME}-overall",
        title="Completion times of all flows, by load",
        about=(
            "Flows arrive at random between all pairs of 144 hosts. Each chart shows the mean of their "
            "completion times over their times alone. pFabric stays near the ideal scheduler at every load, "
            "and DCTCP and TCP move away from it as the load grows."
        ),
        defaults=defaults(LOADS),
        charts=("normalised_by_load",),
        published=OVERALL,
    ),
    _figure(
        name=f"{NAME}-sizes",
        title="Completion times by flow size and load",
        about=(
            "The same points by flow size, as the paper groups them: up to 100 kB, on average and at the "
            "99th percentile, up to 10 MB, and above. Small flows gain most from priorities; the largest "
            "flows pay for them."
        ),
        defaults=defaults(LOADS),
        charts=("normalised_by_size",),
        published=BY_SIZE,
    ),
    _figure(
        name=f"{NAME}-distribution",
        title="Distribution of completion times",
        about="Every flow at a load of 60 %, by its completion time over its time alone. The tail shows "
        "which flows wait.",
        defaults=defaults((60,)),
        charts=("normalised_cdf",),
    ),
    _figure(
        name=f"{NAME}-losses",
        title="Packets dropped and retransmitted, by load",
        about=(
            "pFabric's queues are short and drop what can wait, so it loses more packets than DCTCP. What "
            "counts is that small flows do not lose them."
        ),
        defaults=defaults(LOADS),
        charts=("normalised_losses",),
    ),
    _figure(
        name=f"{NAME}-queues",
        title="Queue lengths of switches",
        about=(
            "How long the switches' queues are at a load of 80 %, sampled every millisecond. Long queues of "
            "pFabric hold what can wait."
        ),
        defaults=defaults((HIGHEST_LOAD,)),
        charts=("queue_by_arm",),
    ),
    _figure(
        name=f"{NAME}-parts",
        title="What each part of pFabric contributes",
        about=(
            "minTCP + pFabric at a load of 80 %, with one part changed at a time: the order in which queues "
            "send, what they drop, spraying, the size of the buffer, the sender, and what a priority is. The "
            "distance from the full design is what that part contributes."
        ),
        defaults=defaults((HIGHEST_LOAD,)),
        points=by_load(_NETWORK, of_arms(PARTS)),
        charts=("normalised_parts",),
    ),
    _figure(
        name=f"{NAME}-sensitivity",
        title="Sensitivity to buffer and timeout",
        about=(
            "minTCP + pFabric at a load of 80 %, with smaller and larger buffers, and with shorter and "
            "longer timeouts. The paper's values are 36 kB, two bandwidth-delay products, and 45 us, three "
            "round trips."
        ),
        defaults=defaults((HIGHEST_LOAD,), (WEB_SEARCH,)),
        points=by_load(_NETWORK, _one_by_one()),
        charts=("normalised_sensitivity",),
    ),
    _figure(
        name=f"{NAME}-fat-tree",
        title="The same on a FatTree of 54 hosts",
        about=(
            "The network of the workshop paper (HotNets 2012), with its round trip of 12 us and the arms of "
            "the later paper. Paths between pods have six links; those of the leaf-spine have four."
        ),
        defaults=defaults(FEW_LOADS, (WEB_SEARCH,), HOTNETS_HOST_DELAY_US),
        topologies=one_of(FAT_TREE, SMALL_FAT_TREE),
        points=by_load(one_of(FAT_TREE, SMALL_FAT_TREE), of_arms(COMPARED)),
        charts=("normalised_by_load",),
    ),
    _figure(
        name=f"{NAME}-star",
        title="The same on a star of 28 hosts",
        about=(
            "The network of the CS244 2017 reproduction, at 10 Gb/s and with the paper's delays. One switch "
            "has all queues."
        ),
        defaults=defaults(FEW_LOADS, (WEB_SEARCH,)),
        topologies=one_of(STAR, SMALL_STAR),
        points=by_load(one_of(STAR, SMALL_STAR), of_arms(COMPARED)),
        charts=("normalised_by_load",),
    ),
)
EXPERIMENT = Experiment(
    name=NAME,
    title="pFabric beside DCTCP, TCP and an ideal scheduler, by load (SIGCOMM 2013, HotNets 2012)",
    folder=NAME,
    figures=FIGURES,
    shared_options=OPTIONS,
)
SINGLE = tuple(figure.alone(NAME, OPTIONS) for figure in FIGURES)
