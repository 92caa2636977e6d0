"""Goodput of every flow, slowest to fastest: TCP's and each subflow count's curve (SIGCOMM 2011, CS244 2013).

The flows of several seeds are sorted together, and a band shows the seeds (plots/shared/ranks.py).
A flat high curve is a fair and well used network; a curve that starts low shows flows that collide.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.quantities import GOODPUT_PCT_MIN
from plots.data import Inputs, Level, Panel
from plots.shared import axis_labels, ranks, saving, style
from plots.shared.sheet import Caption, Sheet, Text

CHART = "rank"
_HEIGHT_IN = 2.9


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart per setting; see `registry.Chart.draw`; lower bounds of `GOODPUT_PCT_MIN` are drawn."""
    return saving.draw_panels(CHART, inputs, lambda panel: _chart(panel, inputs.levels))


def finding(panel: Panel) -> str:
    """Return the title: the share of the slowest of all flows under the most subflows and under TCP."""
    good = {n: [p for p in panel.cell(n).ok if p.flows_pct] for n in panel.subflows}
    slowest = {n: min(min(point.flows_pct) for point in points) for n, points in good.items() if points}
    whose = " of all seeds" if any(len(points) > 1 for points in good.values()) else ""
    of = "% of optimal" if math.isclose(panel.optimum_pct, 100) else "%"
    tcp = slowest.pop(1, None)
    if not slowest:
        return "Goodput of every flow" if tcp is None else f"TCP's slowest flow{whose} gets {tcp:.0f} {of}"
    most = max(slowest)
    mptcp = f"With {most} subflows the slowest flow{whose} gets {slowest[most]:.0f} {of}"
    return mptcp if tcp is None else f"{mptcp}, with TCP {tcp:.0f} %"


def _chart(panel: Panel, levels: Sequence[Level]) -> Figure | None:
    bounds = style.levels_of(panel, levels, GOODPUT_PCT_MIN)
    beside = [level for level in bounds if level.relation == ">="]
    cells = {count: panel.cell(count) for count in panel.subflows}
    curves = ranks.each_pooled(
        {count: [p.flows_pct for p in cell.ok or cell.suspect] for count, cell in cells.items()}
    )
    if not curves:
        return None
    sheet = Sheet((_HEIGHT_IN, 1))
    axes = sheet.axes[0][0]
    most = max(panel.subflows)
    ranks.bands(axes, curves, most)
    handles = [ranks.line(axes, curve, count, most, not cells[count].ok) for count, curve in curves.items()]
    published = [_level(axes, level, panel) for level in beside]
    style.percent_axis(axes, max(curve.values[-1] for curve in curves.values()), panel.optimum_pct)
    ranks.axis(axes, axis_labels.FLOWS)
    axes.set_ylabel(axis_labels.relative_goodput(panel))
    gaps = {count: cell.gap or "no flows" for count, cell in cells.items() if count not in curves}
    subtitle = style.subtitle(panel, "goodput of every flow")
    words = Text(finding(panel), subtitle, _caption(panel, curves, beside), style.absences(gaps))
    return sheet.finish(words, handles, published)


def _caption(panel: Panel, curves: Mapping[int, ranks.Ranks], beside: Sequence[Level]) -> Caption:
    return Caption(
        style.parameters(panel),
        [
            *style.doubts(panel.points),
            *ranks.note(curves.values(), shaded=True),
            style.definition(panel),
            *style.sources(beside),
        ],
    )


def _level(axes: Axes, level: Level, panel: Panel) -> Line2D:
    """Draw a published lower bound of all flows as a dashed line."""
    cited, transport = level.cited(panel.spec.topology.k), style.transport(level.subflows)
    words = f"{cited}: every flow of {transport} {level.bound}"
    (line,) = axes.plot(
        [0, 100],
        [level.value, level.value],
        color="black",
        linestyle=style.PUBLISHED_DASH,
        linewidth=1.2,
        zorder=2,
        label=words,
    )
    return line
