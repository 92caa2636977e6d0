"""Shared parts of charts of replicated networks: all algorithms of a setting in one chart.

Every replica is a repetition. A series is one algorithm; each of its marks pools the replicas of all good
points, or of the suspect ones (hollow) where no point is good.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.quantities import Quantity
from model import transports
from plots.data import MIN_SEEDS_FOR_INTERVAL, Inputs, Level, Panel, Point, panels, together
from plots.shared import saving, style
from plots.shared.intervals import interval_pct
from plots.shared.sheet import Caption

ValuesOf = Callable[[Point], Sequence[float]]


@dataclass(frozen=True)
class Spot:
    """The repetitions of one algorithm at one subflow count, in %, and whether they are suspect."""

    values: tuple[float, ...]
    suspect: bool

    @property
    def mean(self) -> float:
        return statistics.fmean(self.values)

    @property
    def reach(self) -> list[list[float]] | None:
        """How far the interval reaches below and above the mean, within 0 and 100 %; None without one."""
        if not self.half:
            return None
        return [[min(self.half, self.mean)], [min(self.half, max(0.0, 100 - self.mean))]]

    @property
    def half(self) -> float:
        """Half the width of the mean's 95 % interval; 0 if there are too few values for one."""
        return interval_pct(self.values) or 0.0


@dataclass(frozen=True)
class Series:
    """One algorithm's panel."""

    panel: Panel

    @property
    def algorithm(self) -> str:
        return self.panel.spec.transport.cc

    def spot(self, subflows: int, values_of: ValuesOf) -> Spot | None:
        """Return the repetitions at a subflow count; None if nothing was measured."""
        values = tuple(value for point in self.panel.best(subflows) for value in values_of(point))
        return Spot(values, self.panel.dubious(subflows)) if values else None


def draw_groups(chart: str, inputs: Inputs, drawn: Callable[[Sequence[Series]], Figure | None]) -> list[Path]:
    """Draw one chart per setting, its congestion controls side by side; return the files written."""
    of = [
        (
            group[0].spec.neutral("transport.cc"),
            sorted(map(Series, group), key=lambda series: transports.rank(series.algorithm)),
        )
        for group in together(panels(inputs.points, inputs.expected), "transport.cc")
    ]
    return saving.draw_each(chart, of, inputs.out, drawn)


def mark(axes: Axes, x: float, spot: Spot, algorithm: str) -> None:
    """Draw every replica as a faint dot and their mean with its interval as the algorithm's marker; hollow if
    suspect."""
    colour = transports.look(algorithm).colour
    look: Any = {"color": colour, "markeredgecolor": colour}
    face = "white" if spot.suspect else colour
    axes.plot(
        [x] * len(spot.values), spot.values, ls="", marker="o", ms=2.2, alpha=0.45, zorder=3,
        clip_on=False, **look,
    )  # fmt: skip
    axes.errorbar(
        x, spot.mean, yerr=spot.reach, marker=transports.look(algorithm).marker, ms=6.5,
        markerfacecolor=face, capsize=2.5, linewidth=1.4, zorder=5, **look,
    )  # fmt: skip


def legend(series: Sequence[Series], doubtful: bool) -> list[Artist]:
    """Return the legend of the algorithms, and what hollow means if anything is hollow."""
    handles: list[Artist] = [
        Line2D(
            [], [], ls="", ms=6, color=transports.look(of.algorithm).colour,
            marker=transports.look(of.algorithm).marker, label=transports.title(of.algorithm),
        )
        for of in series
    ]  # fmt: skip
    hollow = Line2D([], [], ls="", marker="o", color=style.FAINT, markerfacecolor="white", label="suspect")
    return [*handles, *([hollow] if doubtful else [])]


def theory(axes: Axes, left: float, right: float, value: float) -> None:
    """Draw an expected value as a dashed line over its place."""
    axes.hlines(
        value, left, right, color="black", ls=style.PUBLISHED_DASH, lw=1.3, zorder=4,
        path_effects=style.halo(),
    )  # fmt: skip


def theory_key(name: str) -> list[Artist]:
    """Return the legend entry of expected values."""
    return [Line2D([], [], color="black", ls=style.PUBLISHED_DASH, lw=1.3, label=f"theory: {name}")]


def levels_for(levels: Sequence[Level], quantity: Quantity, series: Sequence[Series]) -> list[Level]:
    """Return the expected values that belong in this chart."""
    return [
        level
        for of in series
        for level in style.levels_of(of.panel, levels, quantity)
        if level.algorithm == of.algorithm
    ]


def caption(series: Sequence[Series], spots: Iterable[Spot], beside: Sequence[Level]) -> Caption:
    """Return the caption: settings, suspect points, the marks, and the sources of expected values."""
    most = max((len(spot.values) for spot in spots), default=0)
    enough = "; whisker: 95 % interval" if most >= MIN_SEEDS_FOR_INTERVAL else ""
    formulas = ", ".join(dict.fromkeys(level.paper for level in beside))
    points = [point for of in series for point in of.panel.points]
    return Caption(
        style.parameters(*(of.panel for of in series), congestion=""),
        [
            *style.doubts(points),
            f"Dots: at most {most} repetitions; marker: mean{enough}.",
            *([f"Theory: {formulas}."] if formulas else []),
        ],
    )
