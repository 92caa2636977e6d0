"""Share of a bottleneck that an MPTCP flow has beside one TCP, against its subflows, by algorithm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.quantities import SHARE_OF_BOTTLENECK
from analysis.shares import bottleneck_shares_pct
from model import transports
from plots.data import Inputs, Level
from plots.shared import replicas, style
from plots.shared.replicas import Series, Spot
from plots.shared.sheet import Sheet, Text

CHART = "share"
_HEIGHT_IN = 3.1
_ROOM = 0.72
"""The part of a subflow count's width over which the algorithms are spread."""

Spots = Mapping[tuple[str, int], Spot]


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart per setting; see `registry.Chart.draw`; levels of `SHARE_OF_BOTTLENECK`."""
    return replicas.draw_groups(CHART, inputs, lambda series: _chart(series, inputs.levels))


def spots_of(series: Sequence[Series]) -> dict[tuple[str, int], Spot]:
    """Return the repetitions by algorithm and subflow count."""
    found = {
        (of.algorithm, n): of.spot(n, lambda point: bottleneck_shares_pct(point.flows))
        for of in series
        for n in of.panel.subflows
    }
    return {place: spot for place, spot in found.items() if spot is not None}


def finding(spots: Spots) -> str:
    """Return the title: the shares at the largest subflow count, uncoupled first. Suspect points do not
    count."""
    good = {place: spot.mean for place, spot in spots.items() if not spot.suspect}
    if not good:
        return "Share of the bottleneck beside one TCP"
    most = max(n for _, n in good)
    parts = [f"{transports.title(cc)} {mean:.0f} %" for (cc, n), mean in good.items() if n == most]
    return f"{most} subflows beside one TCP: {', '.join(parts)}"


def _chart(series: Sequence[Series], levels: Sequence[Level]) -> Figure | None:
    spots = spots_of(series)
    if not spots:
        return None
    counts = series[0].panel.subflows
    beside = replicas.levels_for(levels, SHARE_OF_BOTTLENECK, series)
    sheet = Sheet((_HEIGHT_IN, 1))
    axes = sheet.axes[0][0]
    step = _ROOM / len(series)
    for number, of in enumerate(series):
        for place, n in enumerate(counts):
            x = place + step * (number - (len(series) - 1) / 2)
            if spot := spots.get((of.algorithm, n)):
                replicas.mark(axes, x, spot, of.algorithm)
    for value, n in {(level.value, level.subflows) for level in beside}:
        replicas.theory(axes, counts.index(n) - 0.45, counts.index(n) + 0.45, value)
    _frame(axes, counts)
    subtitle = f"{style.network(series[0].panel.spec)}: one MPTCP flow and one TCP share a link"
    words = Text(finding(spots), subtitle, replicas.caption(series, spots.values(), beside))
    doubtful = any(spot.suspect for spot in spots.values())
    expected = replicas.theory_key("n/(n+1) uncoupled, 1/2 coupled") if beside else []
    return sheet.finish(words, replicas.legend(series, doubtful), expected)


def _frame(axes: Axes, counts: Sequence[int]) -> None:
    axes.set_ylim(0, 100)
    axes.set_yticks(range(0, 101, 20))
    axes.set_xlim(-0.55, len(counts) - 0.45)
    axes.set_xticks(range(len(counts)), [str(n) for n in counts])
    axes.set_xlabel("subflows of the MPTCP flow")
    axes.set_ylabel(SHARE_OF_BOTTLENECK.short_axis)
