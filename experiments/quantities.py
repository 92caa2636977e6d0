"""What published statements are about, as numbers read off stored points. Pure, but for reading samples.

A quantity is measured at each seed and then averaged over the seeds.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engines.result import Status
from experiments.published import Published
from experiments.summary import Judged


@dataclass(frozen=True)
class Measured:
    """A quantity over `n` seeds: mean, and the standard deviation between seeds (None for a single one).

    `suspect`: at least one point behind it is.
    """

    value: float
    spread: float | None
    n: int
    suspect: bool


Measure = Callable[[Sequence[Judged], Published], Measured | None]


@dataclass(frozen=True)
class Quantity:
    """A measurable thing: `unit` (empty for ratios), what it is, and how it is read off a figure's points."""

    unit: str
    about: str
    measure: Measure


def points_of(points: Sequence[Judged], row: Published, subflows: int | None = None) -> list[Judged]:
    """The points a statement is about: its network, workload and subflows (or those given)."""
    key = (row.topology, row.k, row.workload, subflows or row.subflows)
    return [p for p in points if _place(p) == key]


def _place(point: Judged) -> tuple[str, int, str, int]:
    spec = point.spec
    return spec.topology.kind, spec.topology.k, spec.workload.matrix, spec.transport.subflows


def over_seeds(points: Sequence[Judged], value_of: Callable[[Judged], float | None]) -> Measured | None:
    """The mean of `value_of` over the points that have one; None without any."""
    values = [(value, p) for p in points if (value := value_of(p)) is not None]
    if not values:
        return None
    numbers = [value for value, _ in values]
    spread = statistics.stdev(numbers) if len(numbers) > 1 else None
    suspect = any(p.status is Status.SUSPECT for _, p in values)
    return Measured(statistics.fmean(numbers), spread, len(numbers), suspect)


def each(value_of: Callable[[Judged], float | None]) -> Measure:
    """The measure that takes `value_of` each of the points a statement is about."""

    def measure(points: Sequence[Judged], row: Published) -> Measured | None:
        return over_seeds(points_of(points, row), value_of)

    return measure


def _goodput(of: str) -> Measure:
    return each(lambda p: getattr(p.goodput_pct, of) if p.goodput_pct else None)


QUANTITIES: dict[str, Quantity] = {
    "goodput_pct_mean": Quantity("% of optimal", "the mean goodput of the flows", _goodput("mean")),
    "goodput_pct_min": Quantity("% of optimal", "the goodput of the slowest flow", _goodput("minimum")),
    "goodput_pct_median": Quantity("% of optimal", "the goodput of the median flow", _goodput("median")),
    "cpu_busy_pct": Quantity("% of the machine", "busy CPU time", each(lambda p: p.metric("cpu_busy_pct"))),
}
