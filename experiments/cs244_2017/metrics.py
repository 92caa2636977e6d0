"""Metrics of the CS244 2017 figures: one arm over another, and real hosts over simulated ones."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence

from analysis.completion import ALL, LARGE, ended_times
from analysis.quantities import Quantity
from analysis.stats import rank_correlation
from experiments.pfabric.metrics import Reading, growth, low_of, mean_of, of_sizes, over, p99_of, setting
from harness.metrics.measures import Measure, Measured, Subject, is_about, measured_over, points_about, ratio
from harness.metrics.metric import Metric
from harness.results.point_results import Judged
from model.arms import arm_of
from model.spec import RunSpec

_MEAN = "the mean normalised completion time of all flows"
MEAN, P99 = mean_of(ALL), p99_of(ALL)
_LARGE = "the mean normalised completion time of flows above 10 MB"


def _setting(spec: RunSpec) -> RunSpec:
    """Return what all arms have in common, whatever their hosts."""
    return setting(spec).neutral("traffic")


def _metric(name: str, unit: str, about: str, measure: Measure) -> Metric:
    return Metric(Quantity(name, unit, about), over=measure, setting=_setting)


def at_load(arm: str, value_of: Reading) -> Measure:
    """Return a measure: `value_of` of one arm."""

    def measure(points: Sequence[Judged], subject: Subject) -> Measured | None:
        chosen = [p for p in points if is_about(subject, p) and arm_of(p.spec) == arm]
        return measured_over(((value_of(point), [point]) for point in chosen), value_of.unfinished_pct)

    return measure


def with_load(arm: str, value_of: Reading) -> Measure:
    """Return a measure: `value_of` of one arm over the same at a load of 20 %, at each seed."""

    def measure(points: Sequence[Judged], subject: Subject) -> Measured | None:
        mine = [point for point in points if arm_of(point.spec) == arm]
        low = {p.spec.seed: p for p in low_of(points, subject) if arm_of(p.spec) == arm}
        rows = [
            (ratio(value_of(point), value_of(low[point.spec.seed])), [point, low[point.spec.seed]])
            for point in mine
            if is_about(subject, point) and point.spec.seed in low
        ]
        return measured_over(rows, value_of.unfinished_pct)

    return measure


def flows_alike(one: str, other: str) -> Measure:
    """Return a measure: the rank correlation of the times of the flows that ended in both arms."""

    def measure(points: Sequence[Judged], subject: Subject) -> Measured | None:
        about = points_about(points, subject)
        arms = {(arm_of(point.spec), point.spec.seed): point for point in about}
        pairs = [
            (point, arms[(other, seed)])
            for (name, seed), point in arms.items()
            if name == one and (other, seed) in arms
        ]
        return measured_over(((_alike(*pair), pair) for pair in pairs), MEAN.unfinished_pct)

    return measure


def _alike(one: Judged, other: Judged) -> float | None:
    times = [ended_times(judged.point.flows, judged.spec.seconds) for judged in (one, other)]
    both = sorted(times[0].keys() & times[1].keys())
    if len(both) < 2:
        return None
    return rank_correlation([times[0][flow] for flow in both], [times[1][flow] for flow in both])


def p99_against_mean(arm: str) -> Measure:
    """Return a measure: the share of steps between loads, in percent, at which the mean and the 99th
    percentile of the times move in opposite directions."""

    def measure(points: Sequence[Judged], subject: Subject) -> Measured | None:
        seeds: dict[int, list[Judged]] = {}
        for point in of_sizes(points, subject):
            if arm_of(point.spec) == arm:
                seeds.setdefault(point.spec.seed, []).append(point)
        return measured_over(((_opposite_pct(of), of) for of in seeds.values()), MEAN.unfinished_pct)

    return measure


def _opposite_pct(points: Sequence[Judged]) -> float | None:
    ordered = sorted(points, key=lambda point: int(point.spec.workload.params["load"]))
    found = [(MEAN(point), P99(point)) for point in ordered]
    known = [(mean, p99) for mean, p99 in found if mean is not None and p99 is not None]
    steps = list(itertools.pairwise(known))
    if not steps:
        return None
    opposite = [(after[0] > before[0]) != (after[1] > before[1]) for before, after in steps]
    return 100 * statistics.fmean(opposite)


TCP_OVER_QUEUE = _metric(
    "star_tcp_over_mintcp", "x minTCP + pFabric", f"{_MEAN} under TCP, on the star at 100 Mb/s",
    over("star-tcp", "star-mintcp", mean_of(ALL)),
)  # fmt: skip
TCP_OVER_BANDS = _metric(
    "star_tcp_over_bands", "x minTCP + 16 bands", f"{_MEAN} under TCP, on the star at 100 Mb/s",
    over("star-tcp", "star-bands", mean_of(ALL)),
)  # fmt: skip
LARGE_QUEUE_OVER_TCP = _metric(
    "star_large_over_tcp", "x TCP", f"{_LARGE} under minTCP + pFabric",
    over("star-mintcp", "star-tcp", mean_of(LARGE)),
)  # fmt: skip
LARGE_BANDS_OVER_TCP = _metric(
    "star_large_bands_over_tcp", "x TCP", f"{_LARGE} under minTCP + 16 bands",
    over("star-bands", "star-tcp", mean_of(LARGE)),
)  # fmt: skip
GAP_GROWTH = _metric(
    "star_gap_growth", "x that at load 20 %", "how far TCP is from minTCP + pFabric on the star",
    growth("star-tcp", "star-mintcp", mean_of(ALL)),
)  # fmt: skip
GROWTH_OF_QUEUE = _metric(
    "star_growth", "x that at load 20 %", f"{_MEAN} under minTCP + pFabric on the star",
    with_load("star-mintcp", mean_of(ALL)),
)  # fmt: skip
GROWTH_OF_BANDS = _metric(
    "star_growth_bands", "x that at load 20 %", f"{_MEAN} under minTCP + 16 bands",
    with_load("star-bands", mean_of(ALL)),
)  # fmt: skip
TIMES_ALONE_OF_QUEUE = _metric(
    "star_times_alone", "x alone", f"{_MEAN} under minTCP + pFabric on the star",
    at_load("star-mintcp", mean_of(ALL)),
)  # fmt: skip
TIMES_ALONE_OF_BANDS = _metric(
    "star_times_alone_bands", "x alone", f"{_MEAN} under minTCP + 16 bands",
    at_load("star-bands", mean_of(ALL)),
)  # fmt: skip
P99_AGAINST_MEAN = _metric(
    "star_p99_against_mean", "%", "steps of the load at which mean and 99th percentile part, 16 bands",
    p99_against_mean("star-bands"),
)  # fmt: skip
LINUX_TCP_OVER_MINTCP = _metric(
    "linux_tcp_over_mintcp", "x minTCP + pFabric", f"{_MEAN} under TCP, between real hosts",
    over("linux-tcp", "linux-mintcp", mean_of(ALL)),
)  # fmt: skip
REAL_OVER_TWIN_TCP = _metric(
    "linux_over_twin_tcp", "x simulated", f"{_MEAN} of real hosts under TCP",
    over("linux-tcp", "twin-tcp", mean_of(ALL)),
)  # fmt: skip
REAL_OVER_TWIN_MINTCP = _metric(
    "linux_over_twin_mintcp", "x simulated", f"{_MEAN} of real hosts under minTCP + pFabric",
    over("linux-mintcp", "twin-mintcp", mean_of(ALL)),
)  # fmt: skip
FLOWS_ALIKE_MINTCP = _metric(
    "linux_alike_mintcp", "", "the rank correlation of flows' times, real beside simulated, minTCP + pFabric",
    flows_alike("linux-mintcp", "twin-mintcp"),
)  # fmt: skip
FLOWS_ALIKE_TCP = _metric(
    "linux_alike_tcp", "", "the rank correlation of flows' times, real beside simulated, TCP",
    flows_alike("linux-tcp", "twin-tcp"),
)  # fmt: skip
