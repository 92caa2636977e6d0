"""Replicated networks: the share of a bottleneck beside TCP, and traffic on the more congested of two paths.

Every replica is a repetition. A series is one algorithm; each of its marks pools the replicas of all good
points, or of the suspect ones (hollow) where no point is good.
"""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.quantities import SHARE_OF_BOTTLENECK, SHARE_ON_CONGESTED, Quantity
from analysis.shares import bottleneck_shares_pct, congested_shares_pct
from model import transports
from plots.data import MIN_SEEDS_FOR_INTERVAL, Inputs, Level, Panel, Point, interval_pct, panels, together
from plots.shared import saving, style
from plots.shared.sheet import Caption, Sheet, Text

ValuesOf = Callable[[Point], Sequence[float]]


@dataclass(frozen=True)
class ReplicaShares:
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

    def spot(self, subflows: int, values_of: ValuesOf) -> ReplicaShares | None:
        """Return the repetitions at a subflow count; None if nothing was measured."""
        values = tuple(value for point in self.panel.best(subflows) for value in values_of(point))
        return ReplicaShares(values, self.panel.dubious(subflows)) if values else None


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


def mark(axes: Axes, x: float, spot: ReplicaShares, algorithm: str) -> None:
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


def levels_for(levels: Sequence[Level], quantity: Quantity, series: Sequence[Series]) -> list[Level]:
    """Return the expected values that belong in this chart."""
    return [
        level
        for of in series
        for level in style.levels_of(of.panel, levels, quantity)
        if level.algorithm == of.algorithm
    ]


def caption(series: Sequence[Series], spots: Iterable[ReplicaShares], beside: Sequence[Level]) -> Caption:
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


_SHARE_HEIGHT_IN = 3.1
_ROOM = 0.72
"""The part of a subflow count's width over which the algorithms are spread."""

Spots = Mapping[tuple[str, int], ReplicaShares]


def draw_share(inputs: Inputs) -> list[Path]:
    """Draw one chart per setting; see `registry.Chart.draw`; levels of `SHARE_OF_BOTTLENECK`."""
    return draw_groups("share", inputs, lambda series: _share_chart(series, inputs.levels))


def spots_of(series: Sequence[Series]) -> dict[tuple[str, int], ReplicaShares]:
    """Return the repetitions by algorithm and subflow count."""
    found = {
        (of.algorithm, n): of.spot(n, lambda point: bottleneck_shares_pct(point.flows))
        for of in series
        for n in of.panel.subflows
    }
    return {place: spot for place, spot in found.items() if spot is not None}


def share_finding(spots: Spots) -> str:
    """Return the title: the shares at the largest subflow count, uncoupled first. Suspect points do not
    count."""
    good = {place: spot.mean for place, spot in spots.items() if not spot.suspect}
    if not good:
        return "Share of the bottleneck beside one TCP"
    most = max(n for _, n in good)
    parts = [f"{transports.title(cc)} {mean:.0f} %" for (cc, n), mean in good.items() if n == most]
    return f"{most} subflows beside one TCP: {', '.join(parts)}"


def _share_chart(series: Sequence[Series], levels: Sequence[Level]) -> Figure | None:
    spots = spots_of(series)
    if not spots:
        return None
    counts = series[0].panel.subflows
    beside = levels_for(levels, SHARE_OF_BOTTLENECK, series)
    sheet = Sheet((_SHARE_HEIGHT_IN, 1))
    axes = sheet.axes[0][0]
    step = _ROOM / len(series)
    for number, of in enumerate(series):
        for place, n in enumerate(counts):
            x = place + step * (number - (len(series) - 1) / 2)
            if spot := spots.get((of.algorithm, n)):
                mark(axes, x, spot, of.algorithm)
    for value, n in {(level.value, level.subflows) for level in beside}:
        theory(axes, counts.index(n) - 0.45, counts.index(n) + 0.45, value)
    _share_frame(axes, counts)
    subtitle = f"{style.network(series[0].panel.spec)}: one MPTCP flow and one TCP share a link"
    words = Text(share_finding(spots), subtitle, caption(series, spots.values(), beside))
    doubtful = any(spot.suspect for spot in spots.values())
    expected = style.theory_key("n/(n+1) uncoupled, 1/2 coupled") if beside else []
    return sheet.finish(words, legend(series, doubtful), expected)


def _share_frame(axes: Axes, counts: Sequence[int]) -> None:
    axes.set_ylim(0, 100)
    axes.set_yticks(range(0, 101, 20))
    axes.set_xlim(-0.55, len(counts) - 0.45)
    axes.set_xticks(range(len(counts)), [str(n) for n in counts])
    axes.set_xlabel("subflows of the MPTCP flow")
    axes.set_ylabel(SHARE_OF_BOTTLENECK.short_axis)


_SHIFT_HEIGHT_IN = 2.9


def draw_shift(inputs: Inputs) -> list[Path]:
    """Draw one chart per setting; see `registry.Chart.draw`; levels of `SHARE_ON_CONGESTED`."""
    return draw_groups("shift", inputs, lambda series: _shift_chart(series, inputs.levels))


def shift_finding(spots: Sequence[tuple[str, ReplicaShares]]) -> str:
    """Return the title: the share of traffic that each algorithm sends over the more congested path."""
    parts = [f"{transports.title(cc)} {spot.mean:.0f} %" for cc, spot in spots if not spot.suspect]
    return (
        f"Sent over the more congested path: {', '.join(parts)}"
        if parts
        else "Traffic on the more congested of two paths"
    )


def _shift_chart(series: Sequence[Series], levels: Sequence[Level]) -> Figure | None:
    """Draw the largest subflow count that was measured."""
    counts = [n for n in series[0].panel.subflows if n > 1 and any(of.panel.best(n) for of in series)]
    if not counts:
        return None
    n = max(counts)
    found = [(of, of.spot(n, lambda point: congested_shares_pct(point.ports))) for of in series]
    spots = [(of.algorithm, spot) for of, spot in found if spot is not None]
    if not spots:
        return None
    beside = [lv for lv in levels_for(levels, SHARE_ON_CONGESTED, series) if lv.subflows == n]
    sheet = Sheet((_SHIFT_HEIGHT_IN, 1))
    axes = sheet.axes[0][0]
    for x, (cc, spot) in enumerate(spots):
        mark(axes, x, spot, cc)
        for level in beside:
            if level.algorithm == cc:
                theory(axes, x - 0.33, x + 0.33, level.value)
    top = max(*(value for _, spot in spots for value in spot.values), *(lv.value for lv in beside), 40)
    _shift_frame(axes, [transports.title(cc) for cc, _ in spots], top)
    subtitle = f"{style.network(series[0].panel.spec)}: an MPTCP flow with {n} subflows, one per path"
    words = Text(shift_finding(spots), subtitle, caption(series, [spot for _, spot in spots], beside))
    doubtful = any(spot.suspect for _, spot in spots)
    expected = style.theory_key("equilibrium at equal round-trip times") if beside else []
    return sheet.finish(words, legend(series, doubtful)[len(series) :], expected)


def _shift_frame(axes: Axes, names: Sequence[str], top: float) -> None:
    axes.set_ylim(0, min(102, 1.06 * top))
    axes.axhline(50, color=style.FAINT, linewidth=0.8, zorder=1)
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_xticks(range(len(names)), names)
    axes.set_ylabel(textwrap.fill(SHARE_ON_CONGESTED.short_axis, 20))
