"""Mean goodput and Jain's index against subflows, beside those of another simulator."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.quantities import JAIN, LINK_PCT_MEAN
from plots.data import Inputs, Level, Panel, Point
from plots.shared import axis_labels, saving, style
from plots.shared.fairness import jain
from plots.shared.intervals import interval_pct
from plots.shared.sheet import Caption, Sheet, Text

CHART = "other_simulator"
_HEIGHT_IN, _DIFFERENCE_IN = 1.3, 0.9
OURS = "#0072B2"


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart per setting; see `registry.Chart.draw`; levels of `LINK_PCT_MEAN` and `JAIN`."""
    return saving.draw_panels(CHART, inputs, lambda panel: _chart(panel, inputs.levels))


def of_link_pct(point: Point) -> float:
    """Mean goodput of the point's flows in % of the link rate."""
    return 100 * statistics.fmean(flow.goodput_mbps for flow in point.flows) / point.rate_mbps


def _chart(panel: Panel, levels: Sequence[Level]) -> Figure | None:
    measured = {n: [p for p in panel.best(n) if p.flows] for n in panel.subflows}
    measured = {n: points for n, points in measured.items() if points}
    if not measured:
        return None
    sheet = Sheet(*[(height, 1) for height in (_HEIGHT_IN, _DIFFERENCE_IN) * 2])
    goodput, off_goodput, fairness, off_fairness = (axes for (axes,) in sheet.axes)
    of_goodput, of_jain = (style.levels_of(panel, levels, each) for each in (LINK_PCT_MEAN, JAIN))
    off = _row(goodput, panel, measured, of_link_pct, of_goodput)
    _differences(off_goodput, panel, measured, of_link_pct, of_goodput)
    _row(fairness, panel, measured, jain, of_jain)
    _differences(off_fairness, panel, measured, jain, of_jain)
    goodput.set_ylim(0, 104)
    goodput.set_ylabel(axis_labels.on_two_lines(LINK_PCT_MEAN.axis))
    off_goodput.set_ylabel("ours minus\ntheirs (points)", fontsize=8.5)
    fairness.set_ylim(0, 1.03)
    fairness.set_ylabel(JAIN.axis)
    off_fairness.set_ylabel("ours minus\ntheirs", fontsize=8.5)
    off_fairness.set_xlabel(axis_labels.SUBFLOWS)
    papers = ", ".join(dict.fromkeys(level.paper for level in levels))
    title = "Goodput and fairness by subflows" if off is None else f"At most {off:.1f} points from {papers}"
    words = Text(title, style.subtitle(panel, "by subflows"), _caption(panel, measured, papers))
    return sheet.finish(words, _legend(papers))


def _row(
    axes: Axes,
    panel: Panel,
    measured: dict[int, list[Point]],
    value_of: Callable[[Point], float],
    beside: Sequence[Level],
) -> float | None:
    """Draw every seed as a dot and their mean as a marker; return the largest distance of a mean from the
    other simulator's."""
    theirs = {level.subflows: level.value for level in beside}
    off = []
    for n, points in measured.items():
        values = [value_of(point) for point in points]
        mean = statistics.fmean(values)
        axes.plot([n] * len(values), values, ls="", marker="o", ms=2.2, color=OURS, alpha=0.45, zorder=3)
        axes.errorbar(
            n, mean, yerr=interval_pct(values), marker="o", ms=6, color=OURS, capsize=2.5, zorder=4,
            markerfacecolor="white" if panel.dubious(n) else OURS,
        )  # fmt: skip
        if n in theirs:
            off.append(abs(mean - theirs[n]))
    axes.plot(
        list(theirs), list(theirs.values()), color="black", ls=style.PUBLISHED_DASH, marker="_", ms=9,
        lw=1.2, zorder=5, path_effects=style.halo(),
    )  # fmt: skip
    axes.set_xticks(panel.subflows)
    axes.set_xlim(min(panel.subflows) - 0.5, max(panel.subflows) + 0.5)
    return max(off, default=None)


def _differences(
    axes: Axes,
    panel: Panel,
    measured: dict[int, list[Point]],
    value_of: Callable[[Point], float],
    beside: Sequence[Level],
) -> None:
    """Draw every seed and the mean with its interval, minus that of the other simulator."""
    theirs = {level.subflows: level.value for level in beside}
    for n, points in measured.items():
        if n not in theirs:
            continue
        off = [value_of(point) - theirs[n] for point in points]
        axes.plot([n] * len(off), off, ls="", marker="o", ms=2.2, color=OURS, alpha=0.45, zorder=3)
        axes.errorbar(
            n, statistics.fmean(off), yerr=interval_pct(off), marker="o", ms=5, color=OURS, capsize=2.5,
            zorder=4, markerfacecolor="white" if panel.dubious(n) else OURS,
        )  # fmt: skip
    axes.axhline(0, color="black", ls=style.PUBLISHED_DASH, lw=1.2)
    axes.set_xticks(panel.subflows)
    axes.set_xlim(min(panel.subflows) - 0.5, max(panel.subflows) + 0.5)


def _legend(papers: str) -> list[Line2D]:
    ours = Line2D([], [], ls="", marker="o", ms=6, color=OURS, label="refabric, mean over seeds")
    dashes = Line2D([], [], color="black", ls=style.PUBLISHED_DASH, lw=1.2, label=papers)
    return [ours, *([dashes] if papers else [])]


def _caption(panel: Panel, measured: dict[int, list[Point]], papers: str) -> Caption:
    most = max(len(points) for points in measured.values())
    return Caption(
        style.parameters(panel),
        [
            *style.doubts([point for points in measured.values() for point in points]),
            *([f"Dashed: {papers} at the same parameters."] if papers else []),
            f"Dots: one seed each. {style.intervals(most)}",
        ],
    )
