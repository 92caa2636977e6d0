"""Ways to read a metric off a figure's points: at each point, over TCP, per replica, or over all points of a
seed. Pure, apart from reading sample tables.

A metric is read at each seed and then averaged over the seeds.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import topos
from analysis.stats import t_quantile
from common.errors import StoreError
from harness.results.point_results import Judged, Pair, pairs
from model.result import Status, Table
from model.spec import TopologySpec
from workloads import matrices


@dataclass(frozen=True)
class Measured:
    """A metric over `n` repetitions (seeds or replicas): the mean, and the standard deviation between them.

    `spread` is None for a single repetition. `suspect`: at least one point behind it is suspect.
    """

    value: float
    spread: float | None
    n: int
    suspect: bool
    unfinished_pct: float | None = None
    """Share of the flows that had not ended, where the metric leaves them out or counts them with a lower
    bound."""

    @property
    def half(self) -> float | None:
        """Half the 95 % confidence interval of the mean (Student's t); None for fewer than MIN_REPEATS."""
        if self.spread is None or self.n < MIN_REPEATS:
            return None
        return t_quantile(0.975, self.n - 1) * self.spread / math.sqrt(self.n)


class Subject(Protocol):
    """What a statement is about: a network, a workload, and a number of subflows."""

    @property
    def k(self) -> int: ...
    @property
    def workload(self) -> str: ...
    @property
    def subflows(self) -> int: ...
    def is_on(self, network: TopologySpec) -> bool: ...


MIN_REPEATS = 3
"""An interval needs at least this many repetitions."""
Measure = Callable[[Sequence[Judged], Subject], Measured | None]
OfPoint = Callable[[Judged], float | None]
BySubflows = dict[int, Judged]


def is_about(subject: Subject, point: Judged) -> bool:
    """Whether the point has the subject's network and workload."""
    return subject.is_on(point.spec.topology) and _has_workload(subject, point)


def points_about(points: Sequence[Judged], subject: Subject) -> list[Judged]:
    """Return the points that have the subject's network and workload."""
    return [point for point in points if is_about(subject, point)]


def _has_workload(subject: Subject, point: Judged) -> bool:
    workload = point.spec.workload
    return matrices.label(workload.matrix, workload.params) == subject.workload


def _seeds(points: Sequence[Judged], subject: Subject) -> list[BySubflows]:
    """The points of the subject's network and workload: one dictionary per seed."""
    seeds: dict[int, BySubflows] = {}
    for point in points:
        if is_about(subject, point):
            seeds.setdefault(point.spec.seed, {})[point.spec.transport.subflows] = point
    return list(seeds.values())


def _chosen(points: Sequence[Judged], subject: Subject) -> list[Judged]:
    """The points with the subject's number of subflows: one per seed."""
    return [seed[subject.subflows] for seed in _seeds(points, subject) if subject.subflows in seed]


def measured_over(
    values: Iterable[tuple[float | None, Iterable[Judged]]], unfinished_pct: OfPoint | None = None
) -> Measured | None:
    """Average the values that are not None, each given with the points behind it; None without any.

    `unfinished_pct` reads the share of a point's flows that had not ended. The largest one of each value's
    points is averaged.
    """
    known = [(value, list(behind)) for value, behind in values if value is not None]
    if not known:
        return None
    numbers = [value for value, _ in known]
    return Measured(
        statistics.fmean(numbers),
        statistics.stdev(numbers) if len(numbers) > 1 else None,
        len(numbers),
        any(point.status is Status.SUSPECT for _, behind in known for point in behind),
        _unfinished(unfinished_pct, [behind for _, behind in known]) if unfinished_pct else None,
    )


def _unfinished(share_of: OfPoint, groups: Sequence[Sequence[Judged]]) -> float | None:
    shares = [[share for point in group if (share := share_of(point)) is not None] for group in groups]
    largest = [max(of) for of in shares if of]
    return statistics.fmean(largest) if largest else None


def each(value_of: OfPoint) -> Measure:
    """`value_of` each point with the subject's number of subflows."""

    def measure(points: Sequence[Judged], subject: Subject) -> Measured | None:
        return measured_over((value_of(point), [point]) for point in _chosen(points, subject))

    return measure


def each_replica(values_of: Callable[[Judged], Sequence[float]]) -> Measure:
    """All values of each point with the subject's number of subflows: every value is a repetition."""

    def measure(points: Sequence[Judged], subject: Subject) -> Measured | None:
        chosen = _chosen(points, subject)
        return measured_over((value, [point]) for point in chosen for value in values_of(point))

    return measure


def over_tcp(value_of: OfPoint) -> Measure:
    """`value_of` at the subject's number of subflows, divided by TCP's with the same seed."""

    def measure(points: Sequence[Judged], subject: Subject) -> Measured | None:
        seeds = [seed for seed in _seeds(points, subject) if {subject.subflows, 1} <= set(seed)]
        beside = [(seed[subject.subflows], seed[1]) for seed in seeds]
        return measured_over((ratio(value_of(one), value_of(tcp)), (one, tcp)) for one, tcp in beside)

    return measure


def over_topology(kind: str, value_of: OfPoint) -> Measure:
    """`value_of` on the subject's network, divided by its value on the usual `kind` of the same size, at the
    same seed."""

    def measure(points: Sequence[Judged], subject: Subject) -> Measured | None:
        usual = TopologySpec(kind, {topos.TOPOLOGIES[kind].size.name: subject.k})
        others = {
            _key(point): point
            for point in points
            if _is_same_network(point.spec.topology, usual) and _has_workload(subject, point)
        }
        chosen = [point for point in _chosen(points, subject) if _key(point) in others]
        beside = [(point, others[_key(point)]) for point in chosen]
        return measured_over((ratio(value_of(one), value_of(other)), (one, other)) for one, other in beside)

    return measure


def _is_same_network(one: TopologySpec, other: TopologySpec) -> bool:
    """Whether they are equal apart from the number of replicas."""
    return topos.identity(one.kind, one.params) == topos.identity(other.kind, other.params)


def _key(point: Judged) -> tuple[object, ...]:
    return point.spec.transport.subflows, point.spec.seed


def across(value_of: Callable[[Pair], float | None]) -> Measure:
    """`value_of` each point with the subject's number of subflows that two engines ran."""

    def measure(points: Sequence[Judged], subject: Subject) -> Measured | None:
        about = points_about(points, subject)
        chosen = [p for p in about if p.spec.transport.subflows == subject.subflows]
        return measured_over((value_of(pair), (pair.emulated, pair.simulated)) for pair in pairs(chosen))

    return measure


def slope(value_of: OfPoint) -> Measure:
    """The least-squares slope of `value_of` against the number of subflows (TCP: 1); from 3 counts on."""

    def of(seed: BySubflows) -> float | None:
        known = [(count, value) for count, point in seed.items() if (value := value_of(point)) is not None]
        if len(known) < 3:
            return None
        counts, values = zip(*known, strict=True)
        return statistics.linear_regression(counts, values).slope

    def measure(points: Sequence[Judged], subject: Subject) -> Measured | None:
        return measured_over((of(seed), seed.values()) for seed in _seeds(points, subject))

    return measure


def dip(value_of: OfPoint) -> Measure:
    """`value_of` at the subject's number of subflows minus the mean of its values at one fewer and one
    more."""

    def measure(points: Sequence[Judged], subject: Subject) -> Measured | None:
        n = subject.subflows
        seeds = [seed for seed in _seeds(points, subject) if {n, n - 1, n + 1} <= set(seed)]
        trios = [[seed[n], seed[n - 1], seed[n + 1]] for seed in seeds]
        return measured_over((_below_neighbours([value_of(p) for p in trio]), trio) for trio in trios)

    return measure


def _below_neighbours(values: Sequence[float | None]) -> float | None:
    here, before, after = values
    return None if here is None or before is None or after is None else here - (before + after) / 2


def together(value_of: Callable[[Sequence[Judged]], float | None]) -> Measure:
    """`value_of` all points of a seed that differ in congestion control, link rate or loss rate."""

    def measure(points: Sequence[Judged], subject: Subject) -> Measured | None:
        seeds: dict[int, list[Judged]] = {}
        for point in points:
            if is_about(subject, point) and point.spec.transport.subflows == subject.subflows:
                seeds.setdefault(point.spec.seed, []).append(point)
        return measured_over((value_of(group), group) for group in seeds.values())

    return measure


def ratio(a: float | None, b: float | None) -> float | None:
    """a / b; None where either is unknown or b is 0."""
    return a / b if a is not None and b else None


def table(point: Judged, name: str) -> Table | None:
    """A sample table of the point; None where it was not sampled or cannot be read."""
    try:
        return point.point.sample(name) if name in point.point.sample_rows else None
    except StoreError:
        return None
