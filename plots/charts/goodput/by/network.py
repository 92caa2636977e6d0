"""Several networks under the same traffic, by transport: mean goodput, and how evenly flows share it."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.quantities import GOODPUT_PCT_MEAN, JAIN
from controllers.routing import DIGITS
from model.transports import USUAL_ROUTING
from plots.data import Inputs, Panel, Point, panels, together
from plots.shared import saving, style
from plots.shared.fairness import jain
from plots.shared.intervals import interval_pct
from plots.shared.sheet import Caption, Sheet, Text

CHART = "by_network"
_ROW_IN, _MIN_IN = 0.36, 1.0
_APART = 0.12
"""Rows between the marks of two transports, so that none hides another."""
_MARKERS = {1: "s", 2: "v", 4: "o", 8: "^"}
_OTHER = "D"


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart per setting, its networks side by side; see `registry.Chart.draw`."""
    measured = (p for p in panels(inputs.points, inputs.expected) if any(_points(p, n) for n in p.subflows))
    of = [
        (group[0].spec.neutral("topology"), sorted(group, key=lambda panel: -(gain(panel) or 0.0)))
        for group in together(map(_usually_routed, measured), "topology")
    ]
    return saving.draw_each(CHART, of, inputs.out, _chart, lambda spec: spec.workload.matrix)


def _usually_routed(panel: Panel) -> Panel:
    """Give BCube's own routing the name of the usual one, so that its row stands beside the others."""
    if panel.spec.routing != DIGITS:
        return panel
    return dataclasses.replace(panel, spec=dataclasses.replace(panel.spec, routing=USUAL_ROUTING))


def _points(panel: Panel, subflows: int) -> list[Point]:
    return [point for point in panel.best(subflows) if point.mean_pct is not None and point.flows]


def _goodput(point: Point) -> float:
    return point.mean_pct or 0.0


def gain(panel: Panel) -> float | None:
    """Return the goodput with the largest number of subflows over that of TCP; None without either."""
    most = max(panel.subflows)
    tcp, mptcp = _points(panel, 1), _points(panel, most)
    if most == 1 or not mptcp or not any(map(_goodput, tcp)):
        return None
    return statistics.fmean(map(_goodput, mptcp)) / statistics.fmean(map(_goodput, tcp))


def finding(of: Sequence[Panel]) -> str:
    """Return the title: where the largest number of subflows gains most over TCP, and where least."""
    most = max(of[0].subflows)
    gains = {style.network(panel.spec): gained for panel in of if (gained := gain(panel))}
    if not gains:
        return "Goodput and fairness by network"
    best, least = max(gains, key=gains.__getitem__), min(gains, key=gains.__getitem__)
    rest = f", least on {least}, {gains[least]:.2f} times" if len(gains) > 1 else ""
    return f"MPTCP {most} gains most on {best}, {gains[best]:.2f} times TCP{rest}"


def _chart(of: Sequence[Panel]) -> Figure:
    height = max(_MIN_IN, _ROW_IN * len(of))
    sheet = Sheet((height, 1), (height, 1))
    goodput, fairness = sheet.axes[0][0], sheet.axes[1][0]
    for axes, value_of in ((goodput, _goodput), (fairness, jain)):
        _rows(axes, of, value_of)
    goodput.set_xlim(left=0)
    goodput.axvline(100, color=style.FAINT, lw=0.8, zorder=1)
    goodput.set_xlabel(GOODPUT_PCT_MEAN.axis_in(style.OF_ONE_FLOW))
    fairness.set_xlim(0, 1.03)
    fairness.set_xlabel(JAIN.about)
    counts = [n for n in of[0].subflows if any(_points(panel, n) for panel in of)]
    legend = [_key(n) for n in counts]
    shown = [point for panel in of for n in counts for point in _points(panel, n)]
    subtitle = f"{style.workload(of[0].spec)} on {len(of)} network{'s' * (len(of) > 1)}"
    return sheet.finish(Text(finding(of), subtitle, _caption(of, shown)), legend)


def _key(subflows: int) -> Line2D:
    return Line2D(
        [], [], ls="", ms=6, color=style.colour(subflows), marker=_MARKERS.get(subflows, _OTHER),
        label=style.transport(subflows),
    )  # fmt: skip


def _rows(axes: Axes, of: Sequence[Panel], value_of: Callable[[Point], float]) -> None:
    axes.grid(axis="y", visible=False)
    for y, panel in enumerate(of):
        axes.axhline(y, color=style.GRID, lw=0.8, zorder=0)
        off = _APART * (len(panel.subflows) - 1) / 2
        for place, n in enumerate(panel.subflows):
            values = [value_of(point) for point in _points(panel, n)]
            if values:
                axes.errorbar(
                    statistics.fmean(values), y + _APART * place - off, xerr=interval_pct(values), ls="",
                    ms=6.5, capsize=2.5,
                    color=style.colour(n), marker=_MARKERS.get(n, _OTHER), zorder=4,
                    markerfacecolor="white" if panel.dubious(n) else style.colour(n),
                )  # fmt: skip
    axes.set_yticks(range(len(of)), [f"{style.network(p.spec)}\n{p.hosts} hosts" for p in of], fontsize=7.5)
    axes.set_ylim(len(of) - 0.5, -0.5)


def _caption(of: Sequence[Panel], shown: Sequence[Point]) -> Caption:
    most = max(len(panel.seeds) for panel in of)
    return Caption(style.parameters(*of), [*style.doubts(shown), style.intervals(most), "Networks by gain."])
