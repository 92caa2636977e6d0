"""Goodput of every flow, slowest to fastest: TCP's and each subflow count's curve (SIGCOMM 2011, CS244 2013).

A flat high curve is a fair and well used network; a curve that starts low shows flows that collide.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from plots import style
from plots.data import Level, Panel, PointSummary, file_stems, panels

CHART = "rank"
_FEW_FLOWS = 40


def draw(
    points: Iterable[PointSummary],
    out: Path,
    *,
    expected: Sequence[int] = (),
    levels: Sequence[Level] = (),
) -> list[Path]:
    """One chart a setting (k, topology, workload, ...) into folder `out`; returns the files written.

    Takes and raises what `throughput.draw` does.
    """
    drawn = panels(points, expected)
    paths: list[Path] = []
    for panel, stem in zip(drawn, file_stems(CHART, drawn), strict=True):
        with style.look():
            paths += _chart(panel, levels, out, stem)
    return paths


def rank_curve(points: Sequence[PointSummary]) -> list[float]:
    """The i-th slowest flow's goodput in %, averaged over the points (seeds); [] without flows.

    Points of unequal numbers of flows are cut to the smallest, which a finished sweep never needs.
    """
    ranked = [sorted(point.flows_pct) for point in points if point.flows_pct]
    return [statistics.fmean(at_rank) for at_rank in zip(*ranked, strict=False)]


def finding(panel: Panel) -> str:
    """The title: the slowest flow's share under the most subflows and under TCP."""
    slowest = {}
    for count in panel.subflows:
        curve = rank_curve(panel.cell(count).ok)
        if curve:
            slowest[count] = curve[0]
    tcp = slowest.pop(1, None)
    if not slowest:
        return "Goodput of every flow" if tcp is None else f"TCP's slowest flow gets {tcp:.0f} % of optimal"
    most = max(slowest)
    mptcp = f"With {most} subflows the slowest flow gets {slowest[most]:.0f} % of optimal"
    return mptcp if tcp is None else f"{mptcp}, with TCP {tcp:.0f} %"


def _chart(panel: Panel, levels: Sequence[Level], out: Path, stem: str) -> list[Path]:
    beside = style.levels_of(panel, levels, "min")
    averaged = len(panel.seeds) > 1
    caption = [
        style.parameters(panel),
        style.definition(panel),
        *(["Curves are averaged rank by rank over the seeds."] if averaged else []),
        *style.doubts(panel),
        *style.sources(beside),
    ]
    subtitle = style.subtitle(panel, "goodput of every flow")
    fig, axes = style.figure(style.Text(finding(panel), subtitle, caption))
    handles, highest, flows = [], 0.0, 2
    for count in panel.subflows:
        handle, curve = _curve(axes, panel, count)
        handles.append(handle)
        highest = max([highest, *curve])
        flows = max(flows, len(curve))
    published = [_level(axes, level, panel, flows) for level in beside]
    style.percent_axis(axes, highest)
    axes.set_xlim(1 - 0.02 * flows, flows * 1.02)
    axes.set_xticks(_ticks(flows))
    axes.set_xlabel("rank of flow, slowest to fastest")
    axes.set_ylabel("goodput (% of optimal)")
    axes.legend(
        handles=[*handles[::-1], *published],
        loc="lower right",
        fontsize=7.5,
        handlelength=2.6,
        labelspacing=0.35,
        framealpha=1.0,
        edgecolor="none",
    )
    return style.save(fig, out, stem)


def _curve(axes: Axes, panel: Panel, count: int) -> tuple[Line2D, list[float]]:
    """Draw one transport's curve; its legend entry says so when it is suspect or not there."""
    cell = panel.cell(count)
    curve = rank_curve(cell.ok or cell.suspect)
    colour = style.colour(count, max(panel.subflows))
    name = style.transport(count)
    if not curve:
        handle = Line2D([], [], color=colour, alpha=0.0, label=f"{name}: {cell.gap or 'no flows'}")
        return handle, []
    dubious = not cell.ok
    (line,) = axes.plot(
        range(1, len(curve) + 1),
        curve,
        color=colour,
        linewidth=2.2 if count == 1 else 1.6,
        linestyle=(0, (4, 2)) if dubious else "-",
        marker=("s" if count == 1 else "o") if len(curve) <= _FEW_FLOWS else "",
        markersize=3,
        label=f"{name} (suspect)" if dubious else name,
        zorder=3 + (count == 1),
    )
    return line, curve


def _level(axes: Axes, level: Level, panel: Panel, flows: int) -> Line2D:
    """A published bound of all flows, as a dashed line across; a level of the slowest, over those alone."""
    size = level.size(panel.setting.k, ", ")
    of_all = level.relation == ">="
    whose = "every flow" if of_all else "slowest flows"
    words = f"{level.paper}, {size}{whose}\nof {style.transport(level.subflows)} {level.bound}"
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


def _ticks(flows: int) -> list[int]:
    """First, last, and round ranks between them."""
    step = next((s for s in (1, 2, 5, 10, 20, 50, 100, 200, 500) if flows / s <= 8), 1000)
    between = [rank for rank in range(step, flows, step) if rank > 1 and flows - rank > 0.6 * step]
    return [1, *between, flows]
