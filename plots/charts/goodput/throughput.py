"""Mean goodput, in % of optimal, against the transport: TCP and MPTCP with a growing number of subflows.

The comparison of SIGCOMM 2011's throughput figure. One seed gives bars; several give every seed as a
point with the mean, and from six seeds on its 95 % interval (Student's t).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from pathlib import Path

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from analysis.quantities import GOODPUT_PCT_MEAN
from plots.data import MIN_SEEDS_FOR_INTERVAL, Cell, Inputs, Level, Panel
from plots.shared import axis_labels, saving, style
from plots.shared.intervals import interval_pct
from plots.shared.sheet import Caption, Sheet, Text

CHART = "throughput"
_HEIGHT_IN = 2.9
_BAR = 0.74
_LABEL = 0.055
"""Height of a line of text as a share of the goodput axis, roughly."""


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart per setting; see `registry.Chart.draw`; levels of `GOODPUT_PCT_MEAN` are drawn."""
    return saving.draw_panels(CHART, inputs, lambda panel: _chart(panel, inputs.levels))


def finding(panel: Panel) -> str:
    """Return the title: what TCP and the largest measured subflow count reach.

    If all points are suspect, the title says so and draws no conclusion.
    """
    good = {count: panel.cell(count).mean_pct for count in panel.subflows}
    known = {count: mean for count, mean in good.items() if mean is not None}
    if not known:
        return _sighting(panel)
    optimum = panel.optimum_pct
    shared = not math.isclose(optimum, 100.0)
    unit = "%" if shared else "% of optimal"
    most = f", of at most {optimum:.3g} %" if shared else ""
    tcp = f"TCP {known[1]:.0f} %" if 1 in known else ""
    if list(known) == [1]:
        return f"TCP reaches {known[1]:.0f} {unit}{most}"
    count = max(known)
    mptcp = f"MPTCP with {count} subflows reaches {known[count]:.0f} {unit}"
    return ", ".join(part for part in (mptcp, tcp) if part) + most


def _sighting(panel: Panel) -> str:
    seen = {
        count: statistics.fmean(p.mean_pct or 0.0 for p in panel.cell(count).suspect)
        for count in panel.subflows
        if panel.cell(count).suspect
    }
    ends = sorted({min(seen), max(seen)}) if seen else []
    values = ", ".join(f"{style.transport(count)} {seen[count]:.0f} %" for count in ends)
    return f"No finding, all points are suspect; what is seen: {values}" if values else "Mean goodput"


def _chart(panel: Panel, levels: Sequence[Level]) -> Figure | None:
    if all(point.only_transfers for point in panel.points):
        return None
    beside = style.levels_of(panel, levels, GOODPUT_PCT_MEAN)
    optimum = panel.optimum_pct
    sheet = Sheet((_HEIGHT_IN, 1))
    axes = sheet.axes[0][0]
    mark = _seeds if len(panel.seeds) > 1 else _bar
    tops = []
    for x, count in enumerate(panel.subflows):
        cell, here = panel.cell(count), [level for level in beside if level.subflows == count]
        top = mark(axes, x, cell, style.colour(count, max(panel.subflows)), _LABEL * optimum)
        _note_gap(axes, x, cell)
        tops.append(_published(axes, x, top, here, optimum) if here else top)
    style.percent_axis(axes, max(tops), optimum)
    axes.set_xlim(-0.6, len(panel.subflows) - 0.4)
    axes.set_xticks(range(len(panel.subflows)), ["TCP" if n == 1 else str(n) for n in panel.subflows])
    axes.set_xlabel(axis_labels.TRANSPORTS)
    axes.set_ylabel(GOODPUT_PCT_MEAN.axis_in(style.percent_of(panel)))
    subtitle = style.subtitle(panel, "mean goodput of the flows")
    return sheet.finish(Text(finding(panel), subtitle, _caption(panel, beside)), _legend(panel, beside))


def _caption(panel: Panel, beside: Sequence[Level]) -> Caption:
    return Caption(
        style.parameters(panel),
        [*style.doubts(panel.points), *_key(panel), style.definition(panel), *style.sources(beside)],
    )


def _legend(panel: Panel, beside: Sequence[Level]) -> list[Artist]:
    """Return the legend of marks that the axes do not name."""
    several = len(panel.seeds) > 1
    doubtful = any(panel.cell(count).suspect for count in panel.subflows)
    hatched = Patch(facecolor="white", edgecolor=style.FAINT, hatch=style.HATCH, label="suspect")
    hollow = Line2D([], [], color=style.FAINT, marker="o", markerfacecolor="white", lw=0, label="suspect")
    return [
        *style.published_key(beside, panel),
        *([hollow if several else hatched] if doubtful else []),
    ]


def _bar(axes: Axes, x: int, cell: Cell, colour: str, label: float) -> float:
    """Draw one seed as a bar with its value, hatched if suspect; return its height."""
    for point in (*cell.ok, *cell.suspect):
        height = point.mean_pct or 0.0
        if point in cell.ok:
            axes.bar(x, height, _BAR, color=colour)
            return _value(axes, x, height, (height, height), label, _readable_on(colour))
        axes.bar(x, height, _BAR, color="white", edgecolor=colour, hatch=style.HATCH, linewidth=1.2)
        return _value(axes, x, height, (height, height), label, style.INK)
    return 0.0


def _seeds(axes: Axes, x: int, cell: Cell, colour: str, label: float) -> float:
    """Draw each seed as a dot (hollow if suspect), the mean of the good ones, and its interval from six
    seeds on; return their height."""
    points = (*cell.ok, *cell.suspect)
    values = [point.mean_pct or 0.0 for point in points]
    step = min(0.11, 0.44 / max(len(points), 1))
    for i, (point, value) in enumerate(zip(points, values, strict=True)):
        face = colour if point in cell.ok else "white"
        where = x + step * (i - (len(points) - 1) / 2)
        axes.plot(where, value, marker="o", markersize=3.6, color=colour, markerfacecolor=face, zorder=3)
    mean, half = cell.mean_pct, interval_pct(cell.means_pct) or 0.0
    if mean is None:
        return max(values, default=0.0) + label / 2
    axes.hlines(mean, x - 0.3, x + 0.3, color=colour, linewidth=2.2, zorder=4)
    if half:
        axes.errorbar(x + 0.38, mean, yerr=half, color=colour, capsize=2, linewidth=1.4, zorder=4)
    reach = (min(*values, mean - half), max(*values, mean + half))
    return _value(axes, x, mean, reach, label, style.INK) + label / 2


def _value(axes: Axes, x: int, value: float, reach: tuple[float, float], label: float, colour: str) -> float:
    """Write the value at the foot, in a row with the others, or above its mark if that `reach`es so low.

    Returns how high mark and text reach.
    """
    lowest, highest = reach
    at_foot = lowest > 2 * label
    words = axes.annotate(
        f"{value:.0f}",
        (x, 0 if at_foot else highest),
        xytext=(0, 4 if at_foot else 2),
        textcoords="offset points",
        ha="center",
        va="bottom",
        color=colour if at_foot else style.INK,
        zorder=6,
    )
    if at_foot and colour == style.INK:
        words.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1})
    return highest if at_foot else highest + label


def _readable_on(colour: str) -> str:
    """Return black for a light bar, white for a dark one."""
    red, green, blue = to_rgb(colour)
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.6 else "white"


def _note_gap(axes: Axes, x: int, cell: Cell) -> None:
    """Write what is missing: upright in an empty place, small above the value if some seeds are lost."""
    if not (cell.gap or cell.lost):
        return
    axes.annotate(
        cell.gap or f"{len(cell.lost)} failed",
        (x, 0),
        xytext=(0, 4 if cell.gap else 17),
        textcoords="offset points",
        ha="center",
        va="bottom",
        rotation=90,
        fontsize=9 if cell.gap else 7.5,
        color=style.FAINT,
    )


def _published(axes: Axes, x: int, top: float, levels: Sequence[Level], optimum: float) -> float:
    """Draw published values as dashed lines over their place, with their text above them and above our marks.

    Returns how high they reach.
    """
    papers = {level.paper for level in levels}
    for level in levels:
        axes.hlines(
            level.value, x - 0.46, x + 0.46, color="black", ls=style.PUBLISHED_DASH, lw=1.5, zorder=5,
            path_effects=style.halo(),
        )  # fmt: skip
    lines = [level.bound if len(papers) == 1 else f"{level.paper} {level.bound}" for level in levels]
    foot = max(top, *(level.value for level in levels))
    axes.annotate(
        "\n".join(lines),
        (x, foot),
        xytext=(0, 3),
        textcoords="offset points",
        ha="center",
        va="bottom",
        fontsize=8,
        linespacing=1.1,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
        zorder=6,
    )
    return foot + (0.3 + len(lines)) * _LABEL * optimum


def _key(panel: Panel) -> list[str]:
    """Return how to read the marks if there are several seeds."""
    if len(panel.seeds) < 2:
        return []
    good = max(len(panel.cell(count).ok) for count in panel.subflows)
    spread = "; whisker: 95 % interval" if good >= MIN_SEEDS_FOR_INTERVAL else ""
    return [f"Dots: seeds; line: mean{spread}."]
