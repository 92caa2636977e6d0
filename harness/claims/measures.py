"""How a quantity is read off points: each point, beside TCP's, lane by lane, or all points of a seed. Pure,
but for reading samples.

A quantity is measured at each seed and then averaged over the seeds.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from common.errors import StoreError
from harness.claims.published import Published
from harness.results.across import Pair, pairs
from harness.results.summary import Judged
from model.result import Status, Table
from model.spec import RunSpec
from workloads import matrices


@dataclass(frozen=True)
class Measured:
    """A quantity over `n` repetitions (seeds, or lanes of them): mean, and the standard deviation between
    them (None for a single one).

    `suspect`: at least one point behind it is.
    """

    value: float
    spread: float | None
    n: int
    suspect: bool


Measure = Callable[[Sequence[Judged], Published], Measured | None]
OfPoint = Callable[[Judged], float | None]
BySubflows = dict[int, Judged]


def itself(spec: RunSpec) -> RunSpec:
    """The usual setting of a point."""
    return spec


@dataclass(frozen=True)
class Quantity:
    """A measurable thing: `unit` (empty for ratios), what it is, and how it is read off a figure's points;
    `repeats` is what its repetitions are. Points with the same `setting` are looked at together: those of two
    engines for some quantities, of several link rates or loss rates for others. `on_any_size`: its sign, or
    which side of 1 it is on, does not go by the network's size."""

    unit: str
    about: str
    measure: Measure
    repeats: str = "seed"
    setting: Callable[[RunSpec], RunSpec] = itself
    on_any_size: bool = False


def _workload(point: Judged) -> str:
    return matrices.label(point.spec.workload.matrix, point.spec.workload.params)


def is_about(row: Published, point: Judged) -> bool:
    return row.is_on(point.spec.topology) and _workload(point) == row.workload


def _seeds(points: Sequence[Judged], row: Published) -> list[BySubflows]:
    """The points of the statement's network and workload, one dictionary a seed."""
    seeds: dict[int, BySubflows] = {}
    for point in points:
        if is_about(row, point):
            seeds.setdefault(point.spec.seed, {})[point.spec.transport.subflows] = point
    return list(seeds.values())


def measured_over(values: Iterable[tuple[float | None, Iterable[Judged]]]) -> Measured | None:
    """The mean of the values there are, each with the points behind it; None without any."""
    known = [(value, list(behind)) for value, behind in values if value is not None]
    if not known:
        return None
    numbers = [value for value, _ in known]
    return Measured(
        statistics.fmean(numbers),
        statistics.stdev(numbers) if len(numbers) > 1 else None,
        len(numbers),
        any(point.status is Status.SUSPECT for _, behind in known for point in behind),
    )


def each(value_of: OfPoint) -> Measure:
    """`value_of` each point of the statement's number of subflows."""

    def measure(points: Sequence[Judged], row: Published) -> Measured | None:
        chosen = [seed[row.subflows] for seed in _seeds(points, row) if row.subflows in seed]
        return measured_over((value_of(point), [point]) for point in chosen)

    return measure


def each_lane(shares_of: Callable[[Judged], Sequence[float]]) -> Measure:
    """Every value of `shares_of` each point of the statement's number of subflows: lanes are repetitions."""

    def measure(points: Sequence[Judged], row: Published) -> Measured | None:
        chosen = [seed[row.subflows] for seed in _seeds(points, row) if row.subflows in seed]
        return measured_over((share, [point]) for point in chosen for share in shares_of(point))

    return measure


def over_tcp(value_of: OfPoint) -> Measure:
    """`value_of` at the statement's number of subflows, divided by TCP's with the same seed."""

    def measure(points: Sequence[Judged], row: Published) -> Measured | None:
        pairs = [(s[row.subflows], s[1]) for s in _seeds(points, row) if row.subflows in s and 1 in s]
        return measured_over((ratio(value_of(one), value_of(tcp)), (one, tcp)) for one, tcp in pairs)

    return measure


def over_topology(kind: str, value_of: OfPoint) -> Measure:
    """`value_of` on the statement's topology, divided by that on the usual `kind` of the same size and
    seed."""

    def measure(points: Sequence[Judged], row: Published) -> Measured | None:
        usual = dataclasses.replace(row, topology=kind, shape=())
        others = {_key(p): p for p in points if is_about(usual, p)}
        chosen = [seed[row.subflows] for seed in _seeds(points, row) if row.subflows in seed]
        pairs = [(point, others[_key(point)]) for point in chosen if _key(point) in others]
        return measured_over((ratio(value_of(one), value_of(other)), (one, other)) for one, other in pairs)

    return measure


def across(value_of: Callable[[Pair], float | None]) -> Measure:
    """`value_of` each point of the statement's number of subflows that two engines ran."""

    def measure(points: Sequence[Judged], row: Published) -> Measured | None:
        about = [p for p in points if is_about(row, p)]
        chosen = [p for p in about if p.spec.transport.subflows == row.subflows]
        return measured_over((value_of(pair), (pair.emulated, pair.simulated)) for pair in pairs(chosen))

    return measure


def _key(point: Judged) -> tuple[object, ...]:
    return point.spec.transport.subflows, point.spec.seed


def slope(value_of: OfPoint) -> Measure:
    """The least-squares slope of `value_of` against the number of subflows (TCP: 1), from 3 counts on."""

    def of(seed: BySubflows) -> float | None:
        known = [(count, value) for count, point in seed.items() if (value := value_of(point)) is not None]
        if len(known) < 3:
            return None
        counts, values = zip(*known, strict=True)
        return statistics.linear_regression(counts, values).slope

    def measure(points: Sequence[Judged], row: Published) -> Measured | None:
        return measured_over((of(seed), seed.values()) for seed in _seeds(points, row))

    return measure


def dip(value_of: OfPoint) -> Measure:
    """`value_of` at the statement's number of subflows less the mean of one fewer and one more."""

    def measure(points: Sequence[Judged], row: Published) -> Measured | None:
        n = row.subflows
        trios = [[s[n], s[n - 1], s[n + 1]] for s in _seeds(points, row) if {n, n - 1, n + 1} <= set(s)]
        return measured_over((_below_neighbours([value_of(p) for p in trio]), trio) for trio in trios)

    return measure


def _below_neighbours(values: Sequence[float | None]) -> float | None:
    here, before, after = values
    return None if here is None or before is None or after is None else here - (before + after) / 2


def ratio(a: float | None, b: float | None) -> float | None:
    return None if a is None or not b else a / b


def together(value_of: Callable[[Sequence[Judged]], float | None]) -> Measure:
    """`value_of` all points of the statement with one seed, whatever their setting leaves open."""

    def measure(points: Sequence[Judged], row: Published) -> Measured | None:
        seeds: dict[int, list[Judged]] = {}
        for point in points:
            if is_about(row, point) and point.spec.transport.subflows == row.subflows:
                seeds.setdefault(point.spec.seed, []).append(point)
        return measured_over((value_of(group), group) for group in seeds.values())

    return measure


def table(point: Judged, name: str) -> Table | None:
    """A sample table; None where it was not sampled or cannot be read, which the charts say too."""
    try:
        return point.point.sample(name) if name in point.point.sample_rows else None
    except StoreError:
        return None
