"""Calls completed and setup time against the load, with the computed knees and the published loads
(`Inputs.marks`)."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.quantities import CALLS_COMPLETED_PER_S, PCSCF_KNEE_PER_S, SCSCF_KNEE_PER_S, SETUP_MS_P50
from plots.data import Inputs, Point
from plots.shared import calls, saving, style
from plots.shared.calls import Group
from plots.shared.sheet import Sheet, Text

CHART = "knee"
_HEIGHTS_IN = (2.3, 2.0)
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00")
Curve = tuple[int, int]
"""Instances of P-CSCF and of S-CSCF."""


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart per scale and engine; see `registry.Chart.draw`."""
    groups = calls.grouped(inputs.points, lambda point: (calls.of_scale(point), point.spec.engine))
    drawn = functools.partial(_chart, marks=inputs.marks)
    return saving.draw_each(
        CHART, [(group.points[0].spec, group) for group in groups], inputs.out, drawn, calls.named
    )


def curves(group: Group) -> dict[Curve, dict[int, list[Point]]]:
    """Return the points of each number of instances, by calls per second."""
    found: dict[Curve, dict[int, list[Point]]] = {}
    for point in group.points:
        ims = calls.ims_of(point)
        found.setdefault((ims.pcscf, ims.scscf), {}).setdefault(ims.calls, []).append(point)
    return {curve: dict(sorted(found[curve].items())) for curve in sorted(found)}


def knee_of(point: Point) -> float:
    """Return the load at which the first function is full, computed from service times."""
    of_each = calls.values([point], PCSCF_KNEE_PER_S), calls.values([point], SCSCF_KNEE_PER_S)
    return min(knee for knees in of_each for knee in knees)


def finding(group: Group) -> str:
    """Return the title: the curve with the smallest share of its best left at its highest load."""
    left = []
    for (pcscf, scscf), at in curves(group).items():
        rates = [statistics.fmean(calls.values(points, CALLS_COMPLETED_PER_S)) for points in at.values()]
        share = rates[-1] / max(rates) if max(rates) else 1.0
        left.append(
            (share, f"P{pcscf} S{scscf} completes {100 * share:.0f} % of its best at {[*at][-1]} calls/s")
        )
    return min(left)[1]


def _chart(group: Group, marks: Sequence[float]) -> Figure | None:
    sheet = Sheet(*((height, 1) for height in _HEIGHTS_IN))
    rate, setup = (row[0] for row in sheet.axes)
    handles = []
    for (curve, at), colour in zip(curves(group).items(), _COLOURS * 3, strict=False):
        _curve(rate, setup, at, colour)
        label = f"P{curve[0]} S{curve[1]}"
        handles.append(Line2D([], [], color=colour, marker="o", ms=4, label=label))
    most = max(calls.ims_of(point).calls for point in group.points)
    rate.plot([0, most], [0, most * group.share], color=style.FAINT, ls=":", lw=1)
    for axes in (rate, setup):
        for load in marks:
            axes.axvline(load, color="black", ls=style.PUBLISHED_DASH, lw=0.9)
    rate.set_ylabel(CALLS_COMPLETED_PER_S.axis)
    rate.set_ylim(bottom=0)
    setup.set_ylabel(SETUP_MS_P50.axis)
    calls.log_ms(setup)
    for axes in (rate, setup):
        axes.set_xlim(0, most * 1.03)
    setup.set_xlabel("offered (calls/s at the published scale)")
    if marks:
        handles.append(
            Line2D([], [], color="black", ls=style.PUBLISHED_DASH, lw=0.9, label="published loads")
        )
    handles.append(Line2D([], [], color=style.FAINT, ls=":", lw=1, label="all completed"))
    handles.append(Line2D([], [], color=style.INK, marker="v", ls="", ms=5, label="computed knee"))
    registrations = calls.ims_of(group.points[0]).registrations
    subtitle = f"P-CSCFs and S-CSCFs, {registrations} registrations per second{calls.scale_words(group)}"
    return sheet.finish(Text(finding(group), subtitle, calls.caption(group)), handles)


def _curve(rate: Axes, setup: Axes, at: dict[int, list[Point]], colour: str) -> None:
    for axes, quantity in ((rate, CALLS_COMPLETED_PER_S), (setup, SETUP_MS_P50)):
        known = [(load, calls.values(calls.good(points), quantity)) for load, points in at.items()]
        shown = [(load, statistics.fmean(found)) for load, found in known if found]
        axes.plot(*zip(*shown, strict=True), color=colour, marker="o", ms=3.5, lw=1.5)
    knee = knee_of(next(iter(at.values()))[0])
    rate.plot([knee], [0], marker="v", color=colour, ms=6, clip_on=False, zorder=6)
