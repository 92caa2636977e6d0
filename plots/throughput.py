"""Mean goodput, in % of optimal, against the transport: TCP and MPTCP with a growing number of subflows.

The comparison of SIGCOMM 2011's throughput figure. One seed gives bars; several give every seed as a
point with the mean, and from six seeds on its 95 % interval (Student's t).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from plots import style
from plots.data import (
    MIN_SEEDS_FOR_INTERVAL,
    Cell,
    Level,
    Panel,
    PointSummary,
    file_stems,
    panels,
)

CHART = "throughput"
_BAR = 0.72
_LABEL_PCT = 5.0
"""Height of a line of text on the goodput axis, roughly."""
_T975 = (2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110)
"""Student's t, 97.5 % quantile, for 5 .. 17 degrees of freedom."""


def draw(
    points: Iterable[PointSummary],
    out: Path,
    *,
    expected: Sequence[int] = (),
    levels: Sequence[Level] = (),
) -> list[Path]:
    """One chart a setting (k, topology, workload, ...) into folder `out`; returns the files written.

    `expected` are subflow counts that belong on the axis even if no point has them. Without points there is
    no chart. Raises StoreError when `out` cannot be written.
    """
    drawn = panels(points, expected)
    paths: list[Path] = []
    for panel, stem in zip(drawn, file_stems(CHART, drawn), strict=True):
        with style.look():
            paths += _chart(panel, levels, out, stem)
    return paths


def interval_pct(means_pct: Sequence[float]) -> float | None:
    """Half the width of the 95 % interval of the mean, in points; None for fewer than six values."""
    n = len(means_pct)
    if n < MIN_SEEDS_FOR_INTERVAL:
        return None
    # Beyond the table, 2.1 errs on the wide side by at most 7 %.
    t = _T975[n - MIN_SEEDS_FOR_INTERVAL] if n - MIN_SEEDS_FOR_INTERVAL < len(_T975) else 2.1
    return t * statistics.stdev(means_pct) / math.sqrt(n)


def finding(panel: Panel) -> str:
    """The title: what TCP and the best measured subflow count reach, from points that are not suspect."""
    means = {count: panel.cell(count).mean_pct for count in panel.subflows}
    known = {count: mean for count, mean in means.items() if mean is not None}
    tcp = known.pop(1, None)
    if not known:
        return "Mean goodput" if tcp is None else f"TCP reaches {tcp:.0f} % of optimal"
    most = max(known)
    mptcp = f"MPTCP with {most} subflows reaches {known[most]:.0f} % of optimal"
    return mptcp if tcp is None else f"{mptcp}, TCP {tcp:.0f} %"


def _chart(panel: Panel, levels: Sequence[Level], out: Path, stem: str) -> list[Path]:
    beside = style.levels_of(panel, levels, "mean")
    caption = [
        style.parameters(panel),
        style.definition(panel),
        *_key(panel),
        *style.doubts(panel),
        *style.sources(beside),
    ]
    subtitle = style.subtitle(panel, "mean goodput of the flows")
    fig, axes = style.figure(style.Text(finding(panel), subtitle, caption))
    several = len(panel.seeds) > 1
    level_of = {level.subflows: level for level in beside}
    tops = []
    for x, count in enumerate(panel.subflows):
        cell, level = panel.cell(count), level_of.get(count)
        colour = style.colour(count, max(panel.subflows))
        top = _seeds(axes, x, cell, colour) if several else _bar(axes, x, cell, colour, level)
        _note_gap(axes, x, cell)
        tops.append(top if level is None else _level(axes, x, top, level, panel.setting.k))
    style.percent_axis(axes, max(tops))
    axes.set_xlim(-0.6, len(panel.subflows) - 0.4)
    axes.set_xticks(range(len(panel.subflows)), ["TCP" if n == 1 else str(n) for n in panel.subflows])
    axes.set_xlabel("TCP, and MPTCP by its number of subflows")
    axes.set_ylabel("mean goodput (% of optimal)")
    return style.save(fig, out, stem)


def _bar(axes: Axes, x: int, cell: Cell, colour: str, level: Level | None) -> float:
    """One seed: a bar with its value; hatched on white if suspect. Returns how high it reaches."""
    for point in (*cell.ok, *cell.suspect):
        height = point.goodput_pct_mean or 0.0
        if point in cell.ok:
            axes.bar(x, height, _BAR, color=colour)
        else:
            axes.bar(x, height, _BAR, color="white", edgecolor=colour, hatch="////", linewidth=1.2)
        inside = height > 2 * _LABEL_PCT
        # The value stands under the published line where that would strike it through.
        struck = level is not None and height - 1.4 * _LABEL_PCT < level.value < height + 1
        ceiling = min(height, level.value) if level is not None and struck else height
        label = axes.text(
            x,
            ceiling - 1.8 if inside else height + 1.2,
            f"{height:.0f}",
            ha="center",
            va="top" if inside else "bottom",
            color=_readable_on(colour) if inside and point in cell.ok else style.INK,
        )
        if point in cell.suspect:
            label.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1.5})
        return height if inside else height + _LABEL_PCT
    return 0.0


def _readable_on(colour: str) -> str:
    """Black on a light bar, white on a dark one."""
    red, green, blue = to_rgb(colour)
    return style.INK if 0.299 * red + 0.587 * green + 0.114 * blue > 0.6 else "white"


def _seeds(axes: Axes, x: int, cell: Cell, colour: str) -> float:
    """Several seeds: a point each (hollow if suspect), the good ones' mean, and its interval if earned.
    Returns how high they reach."""
    points = (*cell.ok, *cell.suspect)
    step = min(0.11, 0.44 / max(len(points), 1))
    for i, point in enumerate(points):
        axes.plot(
            x + step * (i - (len(points) - 1) / 2),
            point.goodput_pct_mean or 0.0,
            marker="o",
            markersize=4,
            color=colour,
            markerfacecolor=colour if point in cell.ok else "white",
            zorder=3,
        )
    values = [point.goodput_pct_mean or 0.0 for point in points]
    mean = cell.mean_pct
    if mean is None:
        return max(values, default=0.0) + 2
    axes.hlines(mean, x - 0.3, x + 0.3, color=colour, linewidth=2.2, zorder=4)
    half = interval_pct(cell.means_pct) or 0.0
    if half:
        axes.errorbar(x + 0.36, mean, yerr=half, color=colour, capsize=2.5, linewidth=1.4, zorder=4)
    axes.text(x, min(*values, mean - half) - 2.5, f"{mean:.0f}", ha="center", va="top")
    return max(*values, mean + half) + 2


def _note_gap(axes: Axes, x: int, cell: Cell) -> None:
    """Say what is not there: upright in an empty place, small at the foot where some seeds are lost."""
    if cell.gap:
        axes.text(x, 3, cell.gap, ha="center", va="bottom", rotation=90, fontsize=8.5, color=style.FAINT)
    elif cell.lost:
        lost = f"{len(cell.lost)} failed"
        axes.text(x, 1.5, lost, ha="center", va="bottom", fontsize=7, color=style.FAINT)


def _level(axes: Axes, x: int, top: float, level: Level, k: int) -> float:
    """A published value as a dashed line over its place, with its words above it and above our marks.
    Returns how high they reach."""
    axes.hlines(
        level.value,
        x - 0.47,
        x + 0.47,
        color="black",
        linestyle=style.PUBLISHED_DASH,
        linewidth=1.5,
        zorder=5,
    )
    foot = max(level.value, top) + 1.5
    axes.text(
        x,
        foot,
        f"{level.paper}\n{level.size(k, ': ')}{level.bound}",
        ha="center",
        va="bottom",
        fontsize=6.8,
        linespacing=1.1,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
        zorder=6,
    )
    return foot + 2 * _LABEL_PCT


def _key(panel: Panel) -> list[str]:
    """How to read the marks when there are several seeds."""
    if len(panel.seeds) < 2:
        return []
    counts = {len(panel.cell(count).ok) for count in panel.subflows}
    enough = max(counts) >= MIN_SEEDS_FOR_INTERVAL
    spread = "whisker: 95 % interval of the mean (Student's t), drawn from 6 good seeds on" if enough else ""
    return ["; ".join(part for part in ("Dots: one seed each; bar: their mean", spread) if part) + "."]
