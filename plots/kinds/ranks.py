"""Ranks: the values of every series, such as the goodput of its flows, from the smallest to the largest.

An average of every rank over the seeds would be a flow that nobody had: its slowest flow is faster than the
slowest one, and its fastest is slower. A curve here has every flow of all seeds, so its ends and its shares
are those of the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from harness.results.point_results import PointResult
from plots.kinds.axis import PLAIN, Axis
from plots.picture import Series
from plots.shared import style
from plots.shared.kinds import Floats

Values = Callable[[PointResult], Sequence[float]]


def flows_pct(point: PointResult) -> Sequence[float]:
    """Return the goodput of each flow in percent of the baseline."""
    return point.flows_pct


def percent(step: int = 20, label: str = "") -> Axis:
    """Return an axis in percent of all values, with a tick every `step`."""
    return Axis(label, low=-2, high=102, ticks=range(0, 101, step))


@dataclass(frozen=True, eq=False)
class Pooled:
    """All values of one or more samples (seeds), sorted together.

    `x_pct` is the middle of each value's share of the axis, in percent of all values. `low` and `high` are
    the lowest and the highest seed there: the value below which that seed alone has the same share. `values`
    are between them everywhere.
    """

    x_pct: Floats
    values: Floats
    low: Floats
    high: Floats
    seeds: int


def pooled(samples: Iterable[Iterable[float]]) -> Pooled | None:
    """Sort the values of all samples together; None where no sample has a value."""
    each = [ordered for sample in samples if len(ordered := np.sort(np.fromiter(sample, float)))]
    if not each:
        return None
    values = np.sort(np.concatenate(each))
    odd = 2 * np.arange(len(values)) + 1  # the middle of value i is odd[i] / (2 n); integers, as ceil() needs
    of_seeds = np.array([one[(odd * len(one) - 1) // (2 * len(values))] for one in each])
    x_pct = 100 * odd / (2 * len(values))
    return Pooled(x_pct, values, of_seeds.min(axis=0), of_seeds.max(axis=0), len(each))


@dataclass(frozen=True)
class Ranks:
    """One curve per series, of the `values` of its points: those of all seeds sorted together.

    `bands` shade from the lowest to the highest seed below the first and the last curve with several; with
    more bands none could be told from another. `levels` are places and values of dashed lines, `line` is a
    value to compare with. With an `optimum` the vertical axis is one of goodput in percent.
    """

    values: Values
    x: Axis = percent()  # noqa: RUF009  (immutable)
    y: Axis = PLAIN
    optimum: float | None = None
    title: str = ""
    bands: bool = False
    line: float | None = None
    levels: Sequence[tuple[Sequence[float], Sequence[float]]] = ()
    series: Sequence[Series] | None = None
    hatched: bool = False
    marks: int = 0
    """Of each curve, if not 0: large ones, beside those of the other curves."""

    def draw(self, axes: Axes, all_series: Sequence[Series], first: bool) -> None:
        del first
        series = all_series if self.series is None else self.series
        curves = [(curve, one.look) for one in series if (curve := pooled(map(self.values, one.points)))]
        several = [(curve, look) for curve, look in curves if curve.seeds > 1] if self.bands else []
        for curve, look in several[:1] + several[1:][-1:]:
            axes.fill_between(
                curve.x_pct, curve.low, curve.high, color=look.colour, alpha=0.18, lw=0, zorder=2
            )
        for number, (curve, look) in enumerate(curves):
            shown = style.thinned(len(curve.values))
            look_of_marks: dict[str, Any] = {
                "ms": 3.6 if look.marker == "s" else 2.6,
                "markevery": 1 if len(shown) <= style.FEW else (0.04, 0.115),
            }
            if self.marks:
                first_mark = int(number / len(curves) * len(shown) / self.marks)
                apart = first_mark, max(1, len(shown) // self.marks)
                look_of_marks = {"ms": 5.5, "markevery": apart, "mec": "white", "mew": 0.4}
            axes.plot(
                curve.x_pct[shown], curve.values[shown], color=look.colour, ls=look.dash, lw=look.width,
                marker=look.marker, zorder=3 + number / 100, **look_of_marks,
            )  # fmt: skip
        for x, y in self.levels:
            axes.plot(x, y, color="black", ls=style.PUBLISHED_DASH, lw=1.5, zorder=5)
        if self.line is not None:
            axes.axhline(self.line, color=style.FAINT, lw=0.8, zorder=1)
        if self.hatched:
            style.hatch(axes)
        if self.title:
            axes.set_title(self.title)
        if self.optimum is not None:
            style.percent_axis(
                axes, max([curve.values[-1] for curve, _ in curves], default=0.0), self.optimum
            )
        self.x.apply(axes, "x")
        self.y.apply(axes, "y")


def note(series: Sequence[Series], values: Values, what: str = "flows", shaded: bool = False) -> list[str]:
    """Return a sentence on what the curves have, and what the bands are; nothing with one seed."""
    counts = [list(filter(None, (len(values(point)) for point in one.points))) for one in series]
    seeds = max(map(len, counts), default=0)
    if seeds < 2:
        return []
    most = max(sum(of) for of in counts if len(of) == seeds)
    bands = "; bands: lowest to highest seed" if shaded else ""
    return [f"Curves: all {most} {what} of {seeds} seeds, sorted{bands}."]
