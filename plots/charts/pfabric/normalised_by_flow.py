"""Normalised completion times of Linux hosts against simulated ones, flow by flow: the same flows at the same
times. One column per arm, at the highest load that both ran."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from analysis.completion import ended_times
from analysis.stats import rank_correlation
from model.arms import ARMS, ON_LINUX, TWINS
from plots.data import Inputs, Point
from plots.shared import arms, axis_labels, style
from plots.shared.sheet import Sheet, Text

CHART = "normalised_by_flow"
_HEIGHT_IN = 1.9
_MOST_TICKS = 20


@dataclass(frozen=True)
class Pairs:
    """Times over times alone of the flows that ended in both, in one order."""

    arm: str
    linux: tuple[float, ...]
    simulated: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """The median of the Linux hosts' time over the simulated one."""
        return statistics.median(a / b for a, b in zip(self.linux, self.simulated, strict=True))

    @property
    def agreement(self) -> float | None:
        """Spearman's rank correlation; None for fewer than three flows."""
        return rank_correlation(self.linux, self.simulated) if len(self.linux) > 2 else None


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart per network and distribution of sizes; see `registry.Chart.draw`."""
    return arms.draw_each(CHART, inputs.points, inputs.out, _chart)


def pairs(study: arms.Study, load: int) -> list[Pairs]:
    """Return the flows of all seeds at a load, for each arm that both kinds of hosts ran."""
    found = []
    for linux, simulated in zip(ON_LINUX, TWINS, strict=True):
        real = {point.seed: _times(point) for point in study.of(linux, load)}
        twin = {point.seed: _times(point) for point in study.of(simulated, load)}
        both = [
            (real[seed][flow], twin[seed][flow])
            for seed in sorted(real.keys() & twin.keys())
            for flow in sorted(real[seed].keys() & twin[seed].keys())
        ]
        if both:
            found.append(Pairs(linux, tuple(a for a, _ in both), tuple(b for _, b in both)))
    return found


def _times(point: Point) -> dict[int, float]:
    return ended_times(point.flows, point.spec.seconds)


def _chart(study: arms.Study) -> Figure | None:
    with_pairs = [load for load in study.loads if pairs(study, load)]
    if not with_pairs:
        return None
    load = with_pairs[-1]
    found = pairs(study, load)
    sheet = Sheet((_HEIGHT_IN, len(found)))
    for axes, of in zip(sheet.axes[0], found, strict=True):
        _scatter(axes, of)
    sheet.axes[0][0].set_ylabel(f"simulated: {axis_labels.OVER_ALONE}")
    sheet.axes[0][len(found) // 2].set_xlabel(f"Linux: {axis_labels.OVER_ALONE}")
    ratios = [f"{ARMS[of.arm].sender} {of.ratio:.2f}" for of in found]
    words = Text(
        f"Median of each flow's time between Linux hosts over the simulated one: {', '.join(ratios)}",
        f"{arms.network_words(study)}: load {load} %, flow by flow",
        arms.caption(study, "Flows that ended in both are drawn."),
    )
    return sheet.finish(words)


def _scatter(axes: Axes, of: Pairs) -> None:
    limit = 1.2 * max((*of.linux, *of.simulated))
    chosen = _some(len(of.linux))
    axes.plot([1, limit], [1, limit], color="#999999", lw=1, ls="--")
    axes.plot(
        [of.linux[i] for i in chosen], [of.simulated[i] for i in chosen], linestyle="none",
        marker=".", ms=3, alpha=0.6, color=ARMS[of.arm].colour,
    )  # fmt: skip
    axes.set(xscale="log", yscale="log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=_subs(axis.axis_name, limit), numticks=_MOST_TICKS))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.set(xlim=(0.9, limit), ylim=(0.9, limit))
    axes.set_title(ARMS[of.arm].sender, fontsize=7, loc="left")
    agreement = of.agreement
    words = f"{len(of.linux)} flows" + ("" if agreement is None else f"\nrank corr. {agreement:.2f}")
    axes.text(0.05, 0.95, words, transform=axes.transAxes, fontsize=6.5, va="top")


def _subs(axis: str, limit: float) -> Sequence[float]:
    """Return the multiples of powers of ten that an axis labels; a column is narrower than high."""
    if limit <= 10:
        return (1.0, 2.0, 5.0)
    return (1.0,) if axis == "x" else (1.0, 3.0)


def _some(count: int) -> Sequence[int]:
    """Return the places of the flows that are drawn: all, or as many as a chart may hold."""
    step = max(1, math.ceil(count / style.MOST_POINTS))
    return range(0, count, step)
