"""Metrics of pFabric: normalised completion times of one arm over those of another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from analysis.completion import ALL, LARGE, SMALL, Normalised, Range, normalised
from analysis.quantities import Quantity
from harness.metrics.measures import Measure, Measured, Subject, measured_over, points_about, ratio
from harness.metrics.metric import Metric
from harness.results.point_results import Judged
from model.arms import DCTCP, IDEAL, LINERATE, MINTCP, TCP, arm_of
from model.spec import RunSpec

Arms = Mapping[str, Judged]
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
class Reading:
    """A number of a point's flows in a range of sizes, and how many of these had not ended."""

    of: Range
    read: Callable[[Normalised], float | None]

    def __call__(self, point: Judged) -> float | None:
        """Return the number; None if the point has too few such flows."""
        return self.read(self._times(point))

    def unfinished_pct(self, point: Judged) -> float | None:
        """Return the share of these flows that had not ended, in percent; None without any."""
        return self._times(point).unfinished_pct

    def _times(self, point: Judged) -> Normalised:
        return normalised(point.point.flows, point.spec.seconds, self.of)


def mean_of(of: Range) -> Reading:
    """Return the reading of the mean normalised completion time of flows in a range of sizes."""
    return Reading(of, lambda times: times.mean)


def p99_of(of: Range) -> Reading:
    """Return the reading of the 99th percentile of the same."""
    return Reading(of, lambda times: times.p99)


def over(one: str, other: str, value_of: Reading) -> Measure:
    """Return a measure: `value_of` arm `one` over `value_of` arm `other`, at each seed."""

    def measure(points: Sequence[Judged], subject: Subject) -> Measured | None:
        seeds = _seeds(points_about(points, subject))
        rows = (_ratio(arms, one, other, value_of) for arms in seeds.values())
        return measured_over(rows, value_of.unfinished_pct)

    return measure


def growth(one: str, other: str, value_of: Reading) -> Measure:
    """Return a measure: `over` at the subject's load, divided by `over` at a load of 20 %."""

    def measure(points: Sequence[Judged], subject: Subject) -> Measured | None:
        here, low = _seeds(points_about(points, subject)), _seeds(low_of(points, subject))
        rows = []
        for seed in here.keys() & low.keys():
            at, behind = _ratio(here[seed], one, other, value_of)
            below, more = _ratio(low[seed], one, other, value_of)
            rows.append((ratio(at, below), [*behind, *more]))
        return measured_over(rows, value_of.unfinished_pct)

    return measure


def low_of(points: Sequence[Judged], subject: Subject) -> list[Judged]:
    """Return the points that have the subject's network and flow sizes at the low load."""
    return [p for p in of_sizes(points, subject) if p.spec.workload.params.get("load") == _LOW_LOAD]


def of_sizes(points: Sequence[Judged], subject: Subject) -> list[Judged]:
    """Return the points that have the subject's network and flow sizes, at any load."""
    sizes = {_sizes(point) for point in points_about(points, subject)}
    return [point for point in points if _sizes(point) in sizes and subject.is_on(point.spec.topology)]


def _sizes(point: Judged) -> int | str | None:
    return point.spec.workload.params.get("sizes")


def _seeds(points: Sequence[Judged]) -> dict[int, dict[str, Judged]]:
    seeds: dict[int, dict[str, Judged]] = {}
    for point in points:
        seeds.setdefault(point.spec.seed, {})[arm_of(point.spec)] = point
    return seeds


def _ratio(arms: Arms, one: str, other: str, value_of: Reading) -> tuple[float | None, list[Judged]]:
    if one not in arms or other not in arms:
        return None, []
    return ratio(value_of(arms[one]), value_of(arms[other])), [arms[one], arms[other]]


def _metric(name: str, unit: str, about: str, measure: Measure) -> Metric:
    return Metric(Quantity(name, unit, about), over=measure, setting=setting)


_MEAN = "the mean normalised completion time of all flows"
MINTCP_OVER_IDEAL = _metric(
    "mintcp_over_ideal", "x Ideal", f"{_MEAN} under minTCP + pFabric", over(MINTCP, IDEAL, mean_of(ALL))
)
LINERATE_OVER_IDEAL = _metric(
    "linerate_over_ideal", "x Ideal", f"{_MEAN} under LineRate + pFabric", over(LINERATE, IDEAL, mean_of(ALL))
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
    over(MINTCP, IDEAL, mean_of(SMALL)),
)  # fmt: skip
SMALL_P99_OVER_IDEAL = _metric(
    "small_p99_over_ideal", "x Ideal", "the 99th percentile of flows up to 100 kB under minTCP + pFabric",
    over(MINTCP, IDEAL, p99_of(SMALL)),
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
