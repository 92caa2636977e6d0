"""Calls lost against the time that instances ran, by policy."""

from __future__ import annotations

import statistics
from pathlib import Path

from matplotlib.figure import Figure

from analysis import quantities
from plots.data import Inputs, Point
from plots.shared import calls, saving, style
from plots.shared.calls import Group
from plots.shared.sheet import Sheet, Text

CHART = "policies"


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart per load over time; see `registry.Chart.draw`."""
    groups = calls.grouped(inputs.points, lambda p: (calls.of_scale(p), calls.ims_of(p).load, p.spec.engine))
    several = [(group.points[0].spec, group) for group in groups if len(policies(group)) > 1]
    return saving.draw_each(CHART, several, inputs.out, _chart, calls.named)


def policies(group: Group) -> dict[str, list[Point]]:
    """Return the points of each policy by its name; static ones by their instances."""
    found: dict[str, list[Point]] = {}
    for point in group.points:
        ims = calls.ims_of(point)
        late = f", after {ims.react_s} s" if ims.react_s > 1 else ""
        name = f"static, P{ims.pcscf} S{ims.scscf}" if ims.policy == "static" else ims.policy + late
        found.setdefault(name, []).append(point)
    return found


def _chart(group: Group) -> Figure | None:
    of = {name: calls.good(points) for name, points in policies(group).items()}
    lost = {
        name: statistics.fmean(calls.values(points, quantities.CALLS_LOST_PCT)) for name, points in of.items()
    }
    spent = {
        name: statistics.fmean(calls.values(points, quantities.INSTANCE_S)) for name, points in of.items()
    }
    order = sorted(of, key=lambda name: -lost[name])
    sheet = Sheet((0.32 * len(order) + 0.4, 2))
    for axes, values, unit in zip(sheet.axes[0], (lost, spent), ("%", ""), strict=True):
        axes.barh(order, [values[name] for name in order], color=calls.CALLS_COLOUR, height=0.6)
        for place, name in enumerate(order):
            shown = f"{values[name]:.1f} %" if unit else f"{values[name]:.0f}"
            axes.annotate(
                shown, (values[name], place), xytext=(4, 0), textcoords="offset points", va="center",
                fontsize=8, color=style.INK,
            )  # fmt: skip
        axes.set_xlim(0, 1.35 * max(values.values()))
        axes.grid(visible=False)
    sheet.axes[0][0].set_xlabel(quantities.CALLS_LOST_PCT.short_axis)
    sheet.axes[0][1].set_xlabel(quantities.INSTANCE_S.axis)
    sheet.axes[0][1].set_yticklabels([])
    subtitle = calls.load_words(group)
    title = f"By policy, {lost[order[-1]]:.1f} to {lost[order[0]]:.1f} % of calls are lost"
    return sheet.finish(Text(title, subtitle, calls.caption(group)))
