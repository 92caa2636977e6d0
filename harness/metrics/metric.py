"""The record of a metric: its quantity, how it is read off results, and which tables show it."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from analysis.quantities import Quantity
from common.text import three_digits
from harness.metrics.measures import Measure, Measured, OfPoint, Subject, each
from harness.results.point_results import Judged
from model.spec import RunSpec


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

    def measure(self, points: Sequence[Judged], subject: Subject) -> Measured | None:
        """Read it off a figure's points for a statement; None where they do not have it."""
        if self.over is not None:
            return self.over(points, subject)
        measured = each(self.at)(points, subject)
        if measured is None or not self.of_completed:
            return measured
        unfinished = each(_unfinished_pct)(points, subject)
        return dataclasses.replace(measured, unfinished_pct=unfinished.value if unfinished else None)

    def at(self, point: Judged) -> float | None:
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


def _unfinished_pct(point: Judged) -> float | None:
    found = point.point.numbers
    return 100 * (found.started - found.completed) / found.started if found.started else None


def shown_in(table: ShownIn, metrics: Iterable[Metric]) -> tuple[Metric, ...]:
    """The metrics that have a column in `table`, in their order."""
    return tuple(metric for metric in metrics if metric.shown & table)
