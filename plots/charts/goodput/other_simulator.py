"""Mean goodput and Jain's index against subflows, beside those of another simulator."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from plots.charts.goodput.throughput import interval_pct
from plots.data import Level, Panel, Point
from plots.shared import saving, style
from plots.shared.sheet import Caption, Sheet, Text

CHART = "other_simulator"
_HEIGHT_IN = 1.9
OURS = "#0072B2"


def draw(
    points: Iterable[Point],
    out: Path,
    *,
    expected: Sequence[int] = (),
    levels: Sequence[Level] = (),
) -> list[Path]:
    """Draw one chart per setting; see `registry.Chart.draw`; levels of the metrics `link_pct_mean` and
    `jain`."""
    return saving.draw_panels(CHART, points, out, expected, lambda panel: _chart(panel, levels))


def of_link_pct(point: Point) -> float:
    """Mean goodput of the point's flows in % of the link rate."""
    return 100 * statistics.fmean(flow.goodput_mbps for flow in point.flows) / point.rate_mbps


def jain(point: Point) -> float:
    """Jain's index of the point's flows: 1 where all get the same."""
    goodputs = [flow.goodput_mbps for flow in point.flows]
    return sum(goodputs) ** 2 / (len(goodputs) * sum(x * x for x in goodputs)) if any(goodputs) else 0.0


def _chart(panel: Panel, levels: Sequence[Level]) -> Figure | None:
    measured = {n: [p for p in panel.best(n) if p.flows] for n in panel.subflows}
    measured = {n: points for n, points in measured.items() if points}
    if not measured:
        return None
    sheet = Sheet((_HEIGHT_IN, 1), (_HEIGHT_IN, 1))
    goodput, fairness = sheet.axes[0][0], sheet.axes[1][0]
    off = _row(goodput, panel, measured, of_link_pct, style.levels_of(panel, levels, "link_pct_mean"))
    _row(fairness, panel, measured, jain, style.levels_of(panel, levels, "jain"))
    goodput.set_ylim(0, 104)
    goodput.set_ylabel("mean goodput\n(% of the link rate)")
    fairness.set_ylim(top=1.005)
    fairness.set_ylabel("Jain's index")
    fairness.set_xlabel("subflows")
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
    """Every seed a dot, their mean a marker; the largest distance between means and reference."""
    reference = {level.subflows: level.value for level in beside}
    off = []
    for n, points in measured.items():
        values = [value_of(point) for point in points]
        mean = statistics.fmean(values)
        axes.plot([n] * len(values), values, ls="", marker="o", ms=2.2, color=OURS, alpha=0.45, zorder=3)
        axes.errorbar(
            n, mean, yerr=interval_pct(values), marker="o", ms=6, color=OURS, capsize=2.5, zorder=4,
            markerfacecolor="white" if panel.dubious(n) else OURS,
        )  # fmt: skip
        if n in reference:
            off.append(abs(mean - reference[n]))
    axes.plot(
        list(reference), list(reference.values()), color="black", ls=style.PUBLISHED_DASH, marker="_", ms=9,
        lw=1.2, zorder=5, path_effects=style.halo(),
    )  # fmt: skip
    axes.set_xticks(panel.subflows)
    axes.set_xlim(min(panel.subflows) - 0.5, max(panel.subflows) + 0.5)
    return max(off, default=None)


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
