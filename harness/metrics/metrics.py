"""The metrics of every experiment: those with a column in a table, and those that several papers state.

A paper's own metrics are in its package. A metric in TABLES gets its columns by its own `shown`.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis import quantities
from analysis.quantities import Quantity
from common.text import three_digits
from harness.metrics import measures, where
from harness.metrics.measures import (
    Estimate,
    Measure,
    OfPoint,
    Subject,
    across,
    dip,
    each,
    over_tcp,
    over_topology,
    slope,
)
from harness.results.point_results import PointResult, alike
from model.spec import RunSpec
from workloads import app


class ShownIn(enum.Flag):
    """Tables that have a column for a metric."""

    NONE = 0
    SUMMARY = enum.auto()
    """summary.csv, and the JSON event of a point."""
    RUN = enum.auto()
    """The table that `refabric run` prints."""
    REPORT = enum.auto()
    """The report's table of points."""
    COMPARE = enum.auto()
    """The table of `refabric compare`."""
    TRANSFERS = enum.auto()
    """The tables of `refabric run` and of the report for points whose flows all have a size."""
    MEANS = enum.auto()
    """The tables of means over seeds that `refabric run` prints of many points."""


def itself(spec: RunSpec) -> RunSpec:
    """Return the spec unchanged: the setting of most metrics."""
    return spec


@dataclass(frozen=True)
class Metric:
    """One number that results are shown, compared and judged by.

    `quantity` has its name, unit and words, also for charts (analysis/quantities.py).
    `of` reads it off one point; None where it takes several points. `over` reads it off a figure's points
    for a statement; by default it is `of` each of the statement's points.
    Tables that show it (`shown`) use `head`, the short unit, and `decimals`.
    """

    quantity: Quantity
    of: OfPoint | None = None
    over: Measure | None = None
    repeats: str = "seed"
    """What its repetitions are: seeds, or replicas of a network."""
    setting: Callable[[RunSpec], RunSpec] = itself
    """Points whose specs this maps to one spec are read together, e.g. those of all link rates."""
    on_any_size: bool = False
    """Whether its sign, or the side of 1 it is on, does not depend on the size of the network."""
    of_completed: bool = False
    """Whether it is over completed flows only, so that readers must know how many were unfinished."""
    head: str = ""
    decimals: int = 1
    shown: ShownIn = ShownIn.NONE

    def __post_init__(self) -> None:
        if self.of is None and (self.over is None or self.shown):
            raise ValueError(f"metric {self.name}: no function reads it off one point")

    def measure(self, points: Sequence[PointResult], subject: Subject) -> Estimate | None:
        """Read it off a figure's points for a statement; None where they do not have it."""
        if self.over is not None:
            return self.over(points, subject)
        measured = each(self.at)(points, subject)
        if measured is None or not self.of_completed:
            return measured
        unfinished = each(_unfinished_pct)(points, subject)
        return dataclasses.replace(measured, unfinished_pct=unfinished.value if unfinished else None)

    def at(self, point: PointResult) -> float | None:
        """Read it off one point; None where the point does not have it."""
        return None if self.of is None else self.of(point)

    @property
    def name(self) -> str:
        """Its name in CSV and JSON."""
        return self.quantity.name

    @property
    def unit(self) -> str:
        """The unit in sentences."""
        return self.quantity.unit

    @property
    def short_unit(self) -> str:
        """The unit in the head of a column."""
        return self.quantity.short_unit

    @property
    def about(self) -> str:
        """What it is, in a sentence."""
        return self.quantity.about

    def cell(self, value: float) -> str:
        """A value in a column of a table, without its unit."""
        return f"{value:.{self.decimals}f}"

    def text(self, value: float) -> str:
        """A value in a sentence, without its unit: one decimal of a percentage, else three digits."""
        return f"{value:.1f}" if self.short_unit == "%" else three_digits(value)


def between(
    quantity: Quantity, value_of: OfPoint, one: Mapping[str, Any], other: Mapping[str, Any]
) -> Metric:
    """Return the metric of a statement that compares two values: `value_of` the points of the statement's
    network and workload that have the values `one`, over that of those with `other`, at the same seed.

    Both are by path, as in `Published.where`, and may have `transport.subflows`. Raises UsageError.
    """
    this, that = (where.parse(each, more=("transport.subflows",)) for each in (one, other))

    def by_seed(points: Iterable[PointResult], values: where.Where) -> dict[int, PointResult]:
        return {
            point.spec.seed: point
            for point in points
            if all(where.has(point.spec, path, of) for path, of in values.items())
        }

    def measure(points: Sequence[PointResult], subject: Subject) -> Estimate | None:
        about = measures.points_about(points, subject)
        ones, others = by_seed(about, this), by_seed(about, that)
        pairs = [(ones[seed], others[seed]) for seed in ones if seed in others]
        return measures.measured_over((measures.ratio(value_of(a), value_of(b)), (a, b)) for a, b in pairs)

    paths = {*this, *that}
    if "link.queue_pkts" in paths:  # hosts' own queues follow it
        paths.add("link.nic_queue_pkts")
    return Metric(quantity, over=measure, setting=lambda spec: spec.neutral(*paths))


def _unfinished_pct(point: PointResult) -> float | None:
    unfinished = measures.flows_unfinished(point)
    return None if unfinished is None else 100 * unfinished / point.metrics["flows_started"]


def shown_in(table: ShownIn, metrics: Iterable[Metric]) -> tuple[Metric, ...]:
    """The metrics that have a column in `table`, in their order."""
    return tuple(metric for metric in metrics if metric.shown & table)


_EVERYWHERE = ShownIn.SUMMARY | ShownIn.RUN | ShownIn.REPORT | ShownIn.COMPARE
_TRANSFERS = ShownIn.SUMMARY | ShownIn.TRANSFERS


def _recorded(quantity: Quantity, **more: Any) -> Metric:
    """Return the metric of a number that the engine recorded in run.json."""
    return Metric(quantity, measures.recorded(quantity.name), **more)


def _kept(quantity: Quantity, of: OfPoint) -> Metric:
    """Return the metric of a number that is read off a point's rows or samples once."""
    return Metric(quantity, measures.kept(quantity.name, of))


GOODPUT_MBPS_MEAN = _recorded(
    quantities.GOODPUT_MBPS_MEAN,
    head="mean goodput", decimals=3, shown=ShownIn.SUMMARY,
)  # fmt: skip
GOODPUT_PCT_MEAN = Metric(
    quantities.GOODPUT_PCT_MEAN, measures.goodput_pct("mean"),
    head="mean", shown=ShownIn.SUMMARY | ShownIn.RUN | ShownIn.REPORT | ShownIn.MEANS,
)  # fmt: skip
GOODPUT_PCT_MIN = Metric(
    quantities.GOODPUT_PCT_MIN, measures.goodput_pct("minimum"), head="min", shown=_EVERYWHERE
)
GOODPUT_PCT_MEDIAN = Metric(
    Quantity("goodput_pct_median", "% of optimal", "the median flow's goodput"),
    measures.goodput_pct("median"), head="median", shown=ShownIn.SUMMARY | ShownIn.RUN | ShownIn.REPORT,
)  # fmt: skip
JAIN = _recorded(quantities.JAIN, head="Jain", decimals=3, shown=_EVERYWHERE)
CPU_BUSY_PCT = _recorded(
    quantities.CPU_BUSY_PCT, head="CPU", decimals=0, shown=_EVERYWHERE | ShownIn.TRANSFERS
)
FCT_MS_MEAN = _recorded(quantities.FCT_MS_MEAN, of_completed=True, head="mean FCT", shown=_TRANSFERS)

CALLS_OFFERED_PER_S = _recorded(quantities.CALLS_OFFERED_PER_S, head="offered", shown=_EVERYWHERE)
CALLS_COMPLETED_PER_S = _recorded(
    quantities.CALLS_COMPLETED_PER_S, head="completed", shown=_EVERYWHERE | ShownIn.MEANS
)
SETUP_MS_P50 = _recorded(quantities.SETUP_MS_P50, head="setup p50", shown=_EVERYWHERE)
SETUP_MS_P95 = _recorded(quantities.SETUP_MS_P95, head="setup p95", shown=_EVERYWHERE)
PCSCF_FILL_PCT = _recorded(quantities.PCSCF_FILL_PCT, head="P queue", decimals=0, shown=_EVERYWHERE)
SCSCF_FILL_PCT = _recorded(quantities.SCSCF_FILL_PCT, head="S queue", decimals=0, shown=_EVERYWHERE)

TABLES = (
    GOODPUT_MBPS_MEAN,
    Metric(
        Quantity("reference_mbps", "Mb/s", "the goodput of the baseline"), lambda p: p.baseline_mbps,
        head="baseline", decimals=3, shown=ShownIn.SUMMARY,
    ),
    GOODPUT_PCT_MEAN,
    GOODPUT_PCT_MIN,
    GOODPUT_PCT_MEDIAN,
    Metric(
        Quantity("goodput_pct_max", "% of optimal", "the fastest flow's goodput"),
        measures.goodput_pct("maximum"), head="max", shown=ShownIn.SUMMARY,
    ),
    JAIN,
    _recorded(
        Quantity("retransmits", "", "segments that all flows retransmitted"),
        head="retransmits", decimals=0, shown=_EVERYWHERE | ShownIn.TRANSFERS,
    ),
    _recorded(
        quantities.DROPS,
        head="drops", decimals=0, shown=ShownIn.SUMMARY | ShownIn.REPORT | ShownIn.COMPARE,
    ),
    CPU_BUSY_PCT,
    _recorded(
        Quantity("late_p99_us", "\N{MICRO SIGN}s", "how late frames were delivered, 99th percentile"),
        head="late p99", decimals=0, shown=_EVERYWHERE | ShownIn.TRANSFERS,
    ),
    _recorded(
        Quantity("flows_started", "", "sized flows that started in the measured window"),
        head="started", decimals=0, shown=ShownIn.SUMMARY,
    ),
    _recorded(
        Quantity("flows_completed", "", "sized flows that completed"),
        head="completed", decimals=0, shown=_TRANSFERS,
    ),
    FCT_MS_MEAN,
    _recorded(
        Quantity("fct_ms_median", "ms", "the median completion time of sized flows"),
        head="median FCT", shown=ShownIn.SUMMARY,
    ),
    _recorded(
        Quantity("fct_ms_p99", "ms", "the completion time of sized flows, 99th percentile"),
        head="p99 FCT", shown=_TRANSFERS,
    ),
    _recorded(
        quantities.SLOWDOWN_MEAN, head="mean slowdown", decimals=2, shown=_TRANSFERS | ShownIn.MEANS
    ),
    _recorded(quantities.SLOWDOWN_P99, head="p99 slowdown", shown=ShownIn.SUMMARY),
    CALLS_OFFERED_PER_S,
    CALLS_COMPLETED_PER_S,
    SETUP_MS_P50,
    SETUP_MS_P95,
    PCSCF_FILL_PCT,
    SCSCF_FILL_PCT,
)  # fmt: skip
"""In the order in which tables show them (summary.csv: harness/metrics/summary_csv.py)."""

OF_PROGRAMS = ("count", "mean", "p50", "p99", "max", "per_s")
"""Statistics of what programs measured (engines/app.py), in the order of tables."""


def measured_by_programs(points: Iterable[PointResult]) -> list[str]:
    """Return what programs measured at any of the points: `client_latency_ms`."""
    found: dict[str, None] = {}
    for point in points:
        if point.spec.workload.matrix == app.NAME:
            groups = app.parsed(str(point.spec.workload.params["programs"])).programs
            beginnings = tuple(f"{group.name}_" for group in groups if group.measure)
            counted = (name for name in point.metrics if beginnings and name.startswith(beginnings))
            found |= dict.fromkeys(name.removesuffix("_count") for name in counted if name.endswith("_count"))
    return list(found)


def of_programs(points: Iterable[PointResult], statistics: Sequence[str] = OF_PROGRAMS) -> tuple[Metric, ...]:
    """Return a column for each of these statistics of what the programs of the points measured."""
    return tuple(
        _recorded(Quantity(f"{name}_{each}", "", f"{each} of {name}, by programs"), head=f"{name} {each}")
        for name in measured_by_programs(points)
        for each in statistics
    )


LINK_PCT_MEAN = Metric(quantities.LINK_PCT_MEAN, measures.goodput_of_link_pct)
JAIN_OVER_TCP = Metric(
    Quantity("jain_over_tcp", "x TCP", "Jain's index over TCP's"), over=over_tcp(JAIN.at), on_any_size=True
)
GOODPUT_OVER_TCP = Metric(
    Quantity("goodput_over_tcp", "x TCP", "the mean goodput over TCP's"),
    over=over_tcp(measures.goodput_mbps), on_any_size=True,
)  # fmt: skip
GOODPUT_SLOPE = Metric(
    Quantity("goodput_slope", "% of a link per subflow", "how goodput grows with subflows"),
    over=slope(measures.goodput_of_link_pct), on_any_size=True,
)  # fmt: skip
GOODPUT_DIP = Metric(
    Quantity("goodput_dip", "% of a link", "the goodput minus that at one subflow fewer and one more"),
    over=dip(measures.goodput_of_link_pct),
)  # fmt: skip
GOODPUT_OVER_SINGLE_HOMED = Metric(
    Quantity("goodput_over_single_homed", "x FatTree", "the mean goodput over the FatTree's"),
    over=over_topology("fat_tree", measures.goodput_mbps), on_any_size=True,
)  # fmt: skip
FCT_VARIATION_PCT = _recorded(
    Quantity("fct_variation_pct", "% of mean", "the standard deviation of sized flows' completion times"),
    of_completed=True,
)  # fmt: skip
LINKS_USED_PCT = _kept(quantities.LINKS_USED_PCT, measures.links_used_pct)
LINKS_BUSY_PCT = _kept(
    quantities.LINKS_BUSY_PCT,
    measures.share_of_links_pct(lambda port: port.utilisation_pct > quantities.BUSY_LINK_PCT),
)
LINKS_UNUSED_PCT = _kept(
    quantities.LINKS_UNUSED_PCT,
    measures.share_of_links_pct(lambda port: port.utilisation_pct < quantities.UNUSED_LINK_PCT),
)
ACROSS_MEAN = Metric(
    Quantity("across_mean", "points of optimal", "the simulated mean minus the emulated one"),
    over=across(lambda pair: pair.mean_difference), setting=alike,
)  # fmt: skip
ACROSS_SPEARMAN = Metric(
    Quantity("across_spearman", "", "the rank correlation of emulated and simulated flows"),
    over=across(lambda pair: pair.rank_correlation), setting=alike,
)  # fmt: skip
CPU_SLOPE = Metric(
    Quantity("cpu_slope", "% of CPU per subflow", "how CPU use grows with subflows"),
    over=slope(measures.recorded(quantities.CPU_BUSY_PCT.name)),
)  # fmt: skip
QUEUE_PKTS_MAX = _kept(quantities.QUEUE_PKTS_MAX, measures.longest_queue_pkts)
BOTTLENECK_PKTS = _kept(
    Quantity("bottleneck_pkts", "packets", "the median queue of the busiest port"),
    measures.bottleneck_queue_pkts(50),
)
BUFFER_PCT = _kept(
    Quantity("buffer_pct", "% of the buffer", "the busiest port's queue length, 99th percentile over time"),
    measures.buffer_needed_pct,
)  # fmt: skip
QUEUE_GROWTH = _kept(
    Quantity("queue_growth", "x", "packets queued late in the run over those early in it"),
    measures.queue_growth,
)
QUEUE_VARIATION_PCT = _kept(
    Quantity("queue_variation_pct", "% of mean", "the deviation of queue lengths"),
    measures.queue_variation_pct,
)
ONE_WAY_S_MAX = _kept(quantities.ONE_WAY_S_MAX, measures.longest_one_way_s)
RTT_VARIATION_PCT = _kept(
    Quantity("rtt_variation_pct", "% of mean", "the deviation of round-trip times"),
    measures.rtt_variation_pct,
)
