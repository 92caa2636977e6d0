"""Completion times of sized flows, and their slowdown by size, under several transports.

Slowdown is completion time over the time the flow would take alone on its path; shown as in pFabric (Alizadeh
et al., SIGCOMM 2013, figures 7 to 10) on average and at the 99th percentile. Flows of all seeds together.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from analysis.completion import Completions, completions, percentile, slowdown
from analysis.quantities import FCT_MS_MEAN, SLOWDOWN_MEAN, SLOWDOWN_P99
from model.result import FlowRow
from plots.data import Inputs, Panel, Point
from plots.shared import style
from plots.shared.sheet import Caption, Sheet, Text
from plots.shared.transports import by_transport, colour, draw_joined, label

CHART = "fct"
_HEIGHT_IN = 1.7
_EDGES = (1, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 10**15)
"""Flow sizes in bytes between which slowdowns are taken together."""
_MIN_FOR_P99 = 100
_SHORT_BYTES = 100_000


@dataclass(frozen=True)
class Curve:
    """One transport: a point to name it by, and the flows of all its seeds."""

    point: Point
    seeds: int
    sized: Completions


@dataclass(frozen=True)
class Bin:
    """Completed flows of similar sizes."""

    flows: tuple[FlowRow, ...]

    @property
    def size_bytes(self) -> float:
        """The geometric mean of their sizes."""
        return math.exp(statistics.fmean(math.log(flow.size_bytes) for flow in self.flows))

    @property
    def mean(self) -> float:
        return statistics.fmean(map(slowdown, self.flows))

    @property
    def p99(self) -> float | None:
        """The 99th percentile of their slowdowns; None for fewer than a hundred."""
        if len(self.flows) < _MIN_FOR_P99:
            return None
        return percentile([slowdown(flow) for flow in self.flows], 99)


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart for points that differ at most in transport and marking; see `registry.Chart.draw`."""
    return draw_joined(CHART, inputs, _chart)


def curve(group: Sequence[Point]) -> Curve | None:
    """Return the curve of one transport's good points, else of the suspect ones; None where no sized flow
    completed. Good points come first in `group`."""
    usable = [point for point in group if point.status is group[0].status and point.flows]
    sized = completions(flow for point in usable for flow in point.flows)
    return Curve(usable[0], len(usable), sized) if sized.completed else None


def bins(sized: Completions) -> list[Bin]:
    """Return completed flows by size, where their ideal times are known; without empty bins."""
    known = [flow for flow in sized.completed if math.isfinite(flow.ideal_s)]
    split = (tuple(flow for flow in known if low <= flow.size_bytes < high) for low, high in pairwise(_EDGES))
    return [Bin(flows) for flows in split if flows]


def _chart(panel: Panel) -> Figure | None:
    groups = by_transport(panel)
    found = [curve(group) for group in groups]
    rows = [row for row in found if row]
    if not rows:
        return None
    of_size = [bins(row.sized) for row in rows]
    with_slowdown = any(of_size)
    sheet = Sheet(*[(_HEIGHT_IN, 1)] * (3 if with_slowdown else 1))
    handles = _distribution(sheet.axes[0][0], rows)
    if with_slowdown:
        _by_size(sheet.axes[1][0], rows, of_size, lambda one: one.mean)
        _by_size(sheet.axes[2][0], rows, of_size, lambda one: one.p99)
        sheet.axes[1][0].set_ylabel(SLOWDOWN_MEAN.axis)
        sheet.axes[2][0].set_ylabel(SLOWDOWN_P99.axis)
        sheet.axes[2][0].set_xlabel("flow size")
    absent = [label(group[0]) for group, one in zip(groups, found, strict=True) if one is None]
    words = Text(
        _finding(rows),
        style.subtitle(panel, "completion of sized flows"),
        _caption(panel, rows, with_slowdown),
        f"failed or without completed flows: {'; '.join(absent)}" if absent else "",
    )
    return sheet.finish(words, handles)


def _distribution(axes: Axes, rows: Sequence[Curve]) -> list[Line2D]:
    lines = []
    for row in rows:
        took = np.sort(np.array(row.sized.took_ms))
        share = 100 * np.arange(1, len(took) + 1) / len(took)
        shown = np.unique(np.linspace(0, len(took) - 1, style.MOST_POINTS).round().astype(int))
        lines += axes.plot(
            took[shown],
            share[shown],
            color=colour(row.point),
            linewidth=1.6,
            linestyle=_dash(row),
            label=f"{label(row.point)}: {style.milliseconds(statistics.fmean(row.sized.took_ms))} on average",
        )
    _log_scale(axes, [ms for row in rows for ms in row.sized.took_ms])
    axes.set_ylim(0, 102)
    axes.set_yticks(range(0, 101, 25))
    axes.set_ylabel("flows done (%)")
    axes.set_xlabel(FCT_MS_MEAN.words)
    axes.xaxis.set_major_formatter(FuncFormatter(_time))
    axes.xaxis.set_minor_formatter(NullFormatter())
    return lines


def _by_size(
    axes: Axes, rows: Sequence[Curve], of_size: Sequence[Sequence[Bin]], value: Callable[[Bin], float | None]
) -> None:
    for row, of_row in zip(rows, of_size, strict=True):
        known = [(one.size_bytes, found) for one in of_row if (found := value(one)) is not None]
        axes.plot(
            [size for size, _ in known],
            [found for _, found in known],
            color=colour(row.point),
            linewidth=1.6,
            linestyle=_dash(row),
            marker="o",
            markersize=3.5,
        )
    _log_scale(axes, [one.size_bytes for of_row in of_size for one in of_row])
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.9)
    axes.xaxis.set_major_formatter(FuncFormatter(_bytes))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda factor, _: f"{factor:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _log_scale(axes: Axes, values: Sequence[float]) -> None:
    """Set a logarithmic scale with room on both sides, even if all values are equal."""
    axes.set_xlim(0.8 * min(values), 1.25 * max(values))
    axes.set_xscale("log")


def _time(ms: float, _: object) -> str:
    return f"{ms * 1000:g} us" if ms < 1 else f"{ms:g} ms" if ms < 1000 else f"{ms / 1000:g} s"


def _bytes(size: float, _: object) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:g} {unit}"
    return f"{size:g} B"


def _dash(row: Curve) -> str | tuple[int, tuple[int, int]]:
    return style.SUSPECT_DASH if row.point.suspect else "-"


def _finding(rows: Sequence[Curve]) -> str:
    """Return the title: the 99th percentile of short flows, or of all where none is short."""
    short = [[flow for flow in row.sized.completed if flow.size_bytes < _SHORT_BYTES] for row in rows]
    which, flows = ("Short flows", short) if all(short) else ("Flows", [row.sized.completed for row in rows])
    parts = (
        f"{style.milliseconds(percentile([1000 * flow.completed_s for flow in of_row], 99))} "
        f"with {label(row.point)}"
        for row, of_row in zip(rows, flows, strict=True)
    )
    return f"{which}, 99 of 100 done within: {'; '.join(parts)}"


def _caption(panel: Panel, rows: Sequence[Curve], with_slowdown: bool) -> Caption:
    unfinished = [f"{label(row.point)} {row.sized.unfinished}" for row in rows if row.sized.unfinished]
    completed = ", ".join(f"{len(row.sized.completed)} of {row.sized.started}" for row in rows)
    return Caption(
        style.parameters(panel),
        [
            *style.doubts([row.point for row in rows]),
            f"Flows completed: {completed}.",
            *([f"Unfinished, not in the curves: {'; '.join(unfinished)}."] if unfinished else []),
            *([f"p99 from {_MIN_FOR_P99} flows on."] if with_slowdown else []),
            f"Short: below {_SHORT_BYTES // 1000} kB.",
        ],
    )
