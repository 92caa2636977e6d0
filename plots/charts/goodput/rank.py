"""Goodput of every flow, slowest to fastest: TCP's and each subflow count's curve (SIGCOMM 2011, CS244 2013).

A flat high curve is a fair and well used network; a curve that starts low shows flows that collide.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.quantities import GOODPUT_PCT_MIN
from plots.data import Cell, Inputs, Level, Panel, Point, mean_ranks
from plots.shared import axis_labels, saving, style
from plots.shared.sheet import Caption, Sheet, Text

CHART = "rank"
_HEIGHT_IN = 2.9


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart per setting; see `registry.Chart.draw`; lower bounds of `GOODPUT_PCT_MIN` are drawn."""
    return saving.draw_panels(CHART, inputs, lambda panel: _chart(panel, inputs.levels))


def rank_curve(points: Sequence[Point]) -> list[float]:
    """Return the i-th slowest flow's goodput in %, averaged over the points (seeds); [] without flows."""
    return mean_ranks(point.flows_pct for point in points)


def finding(panel: Panel) -> str:
    """Return the title: the slowest flow's share under the most subflows and under TCP."""
    slowest = {}
    for count in panel.subflows:
        curve = rank_curve(panel.cell(count).ok)
        if curve:
            slowest[count] = curve[0]
    of = "% of optimal" if math.isclose(panel.optimum_pct, 100) else "%"
    tcp = slowest.pop(1, None)
    if not slowest:
        return "Goodput of every flow" if tcp is None else f"TCP's slowest flow gets {tcp:.0f} {of}"
    most = max(slowest)
    mptcp = f"With {most} subflows the slowest flow gets {slowest[most]:.0f} {of}"
    return mptcp if tcp is None else f"{mptcp}, with TCP {tcp:.0f} %"


def _chart(panel: Panel, levels: Sequence[Level]) -> Figure | None:
    bounds = style.levels_of(panel, levels, GOODPUT_PCT_MIN)
    beside = [level for level in bounds if level.relation == ">="]
    curves = {count: rank_curve(_drawable(panel.cell(count))) for count in panel.subflows}
    flows = max(map(len, curves.values()))
    if not flows:
        return None
    sheet = Sheet((_HEIGHT_IN, 1))
    axes = sheet.axes[0][0]
    handles = [
        style.line(
            axes, range(1, len(curve) + 1), curve, count, max(panel.subflows), not panel.cell(count).ok
        )
        for count, curve in curves.items()
        if curve
    ]  # fmt: skip
    published = [_level(axes, level, panel, flows) for level in beside]
    style.percent_axis(axes, max(max(curve, default=0.0) for curve in curves.values()), panel.optimum_pct)
    axes.set_xlim(1 - 0.02 * max(flows, 2), max(flows, 2) * 1.02)
    axes.set_xticks(style.rank_ticks(flows))
    axes.set_xlabel(axis_labels.RANK_UPWARDS)
    axes.set_ylabel(axis_labels.relative_goodput(panel))
    gaps = {count: panel.cell(count).gap or "no flows" for count, curve in curves.items() if not curve}
    subtitle = style.subtitle(panel, "goodput of every flow")
    words = Text(finding(panel), subtitle, _caption(panel, beside), style.absences(gaps))
    return sheet.finish(words, handles, published)


def _caption(panel: Panel, beside: Sequence[Level]) -> Caption:
    return Caption(
        style.parameters(panel),
        [
            *style.doubts(panel.points),
            style.definition(panel),
            *style.sources(beside),
            *(["Curves are averaged over the seeds, rank by rank."] if len(panel.seeds) > 1 else []),
        ],
    )


def _drawable(cell: Cell) -> Sequence[Point]:
    """Return the good points, or the suspect ones where none is good."""
    return cell.ok or cell.suspect


def _level(axes: Axes, level: Level, panel: Panel, flows: int) -> Line2D:
    """Draw a published bound of all flows as a dashed line; one of the slowest flow over the slowest
    alone."""
    of_all = level.relation == ">="
    whose = "every" if of_all else "slowest"
    cited, transport = level.cited(panel.spec.topology.k), style.transport(level.subflows)
    words = f"{cited}: {whose} flow of {transport} {level.bound}"
    (line,) = axes.plot(
        [1, flows if of_all else 1 + 0.15 * flows],
        [level.value, level.value],
        color="black",
        linestyle=style.PUBLISHED_DASH,
        linewidth=1.2,
        zorder=2,
        label=words,
    )
    return line
