"""Where an MPTCP flow sends with one subflow through each of two bottlenecks, by congestion control."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.quantities import SHARE_ON_CONGESTED
from analysis.shares import congested_shares_pct
from model import transports
from plots.data import Inputs, Level
from plots.shared import replicas, style
from plots.shared.replicas import Series, Spot
from plots.shared.sheet import Sheet, Text

CHART = "shift"
_HEIGHT_IN = 2.9


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart per setting; see `registry.Chart.draw`; levels of `SHARE_ON_CONGESTED`."""
    return replicas.draw_groups(CHART, inputs, lambda series: _chart(series, inputs.levels))


def finding(spots: Sequence[tuple[str, Spot]]) -> str:
    """Return the title: the share of traffic that each algorithm sends over the more congested path."""
    parts = [f"{transports.title(cc)} {spot.mean:.0f} %" for cc, spot in spots if not spot.suspect]
    return (
        f"Sent over the more congested path: {', '.join(parts)}"
        if parts
        else "Traffic on the more congested of two paths"
    )


def _chart(series: Sequence[Series], levels: Sequence[Level]) -> Figure | None:
    """Draw the largest subflow count that was measured."""
    counts = [n for n in series[0].panel.subflows if n > 1 and any(of.panel.best(n) for of in series)]
    if not counts:
        return None
    n = max(counts)
    found = [(of, of.spot(n, lambda point: congested_shares_pct(point.ports))) for of in series]
    spots = [(of.algorithm, spot) for of, spot in found if spot is not None]
    if not spots:
        return None
    beside = [lv for lv in replicas.levels_for(levels, SHARE_ON_CONGESTED, series) if lv.subflows == n]
    sheet = Sheet((_HEIGHT_IN, 1))
    axes = sheet.axes[0][0]
    for x, (cc, spot) in enumerate(spots):
        replicas.mark(axes, x, spot, cc)
        for level in beside:
            if level.algorithm == cc:
                replicas.theory(axes, x - 0.33, x + 0.33, level.value)
    top = max(*(value for _, spot in spots for value in spot.values), *(lv.value for lv in beside), 40)
    _frame(axes, [transports.title(cc) for cc, _ in spots], top)
    subtitle = f"{style.network(series[0].panel.spec)}: an MPTCP flow with {n} subflows, one per path"
    words = Text(finding(spots), subtitle, replicas.caption(series, [spot for _, spot in spots], beside))
    doubtful = any(spot.suspect for _, spot in spots)
    expected = replicas.theory_key("equilibrium at equal round-trip times") if beside else []
    return sheet.finish(words, replicas.legend(series, doubtful)[len(series) :], expected)


def _frame(axes: Axes, names: Sequence[str], top: float) -> None:
    axes.set_ylim(0, min(102, 1.06 * top))
    axes.axhline(50, color=style.FAINT, linewidth=0.8, zorder=1)
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_xticks(range(len(names)), names)
    axes.set_ylabel(textwrap.fill(SHARE_ON_CONGESTED.short_axis, 20))
