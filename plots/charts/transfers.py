"""Sequential transfers by TCP and MPTCP between hosts of a cloud: all by rank, and means by paths."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.quantities import GAIN_BETWEEN_RACKS
from analysis.sequential import PairTransfers, between_racks, gain, in_one_rack, pair_transfers
from plots.data import Inputs, Level, Panel, Point, interval_pct
from plots.shared import saving, style
from plots.shared.sheet import Caption, Sheet, Text
from workloads.sequential import TRANSPORTS

_RANK_IN, _PATHS_IN = 2.3, 2.0
_MARKERS = {1: "s", 2: "v", 4: "o"}
_APART = 0.16


def draw_sequential_transfers(inputs: Inputs) -> list[Path]:
    """Draw one chart per setting; see `registry.Chart.draw`; levels of `GAIN_BETWEEN_RACKS`. Other
    workloads have no such chart."""
    return saving.draw_panels(
        "sequential_transfers", inputs, lambda panel: _sequential_chart(panel, inputs.levels)
    )


def finding(of: Sequence[PairTransfers]) -> str:
    """Return the title: what the most subflows gain between racks, and inside one."""
    most = max(TRANSPORTS)
    parts = [
        f"{where} {value:.2f} times TCP"
        for where, some in (("between racks", between_racks(of)), ("inside one", in_one_rack(of)))
        if (value := gain(some, most)) is not None
    ]
    if not parts:
        return "Sequential transfers, too few pairs for a mean"
    return f"{style.transport(most)}: {', '.join(parts)}"


def _sequential_chart(panel: Panel, levels: Sequence[Level]) -> Figure | None:
    points = [point for n in panel.subflows for point in panel.best(n)]
    of = [turn for point in points for turn in pair_transfers(point.flows)]
    if not of:
        return None
    sheet = Sheet((_RANK_IN, 1), (_PATHS_IN, 1))
    (ranks,), (paths,) = sheet.axes
    handles = _ranks(ranks, between_racks(of) or of)
    beside = [level for level in levels if level.quantity == GAIN_BETWEEN_RACKS and level.relation == "about"]
    beside = [level for level in beside if level.is_beside(panel)]
    _by_paths(paths, of, beside)
    subtitle = f"{style.network(panel.spec)}, {panel.hosts} hosts: transfers one at a time"
    text = Text(finding(of), subtitle, _caption(panel, points, of))
    published = style.published_key(beside, panel)
    for key in published:
        key.set_label(f"{key.get_label()}: {beside[0].value:g} times TCP")
    return sheet.finish(text, handles, published)


def _ranks(axes: Axes, of: Sequence[PairTransfers]) -> list[Line2D]:
    positions = [100 * (i + 0.5) / len(of) for i in range(len(of))]
    handles = [
        style.line(axes, positions, sorted(turn.mbps[n] for turn in of), n, max(TRANSPORTS), False)
        for n in TRANSPORTS
    ]
    axes.set_xlabel(f"{len(of)} transfers between racks, slowest first (%)")
    axes.set_ylabel("Mb/s")
    axes.set_ylim(bottom=0)
    return handles


def _by_paths(axes: Axes, of: Sequence[PairTransfers], beside: Sequence[Level]) -> None:
    """Draw means for each number of paths; where there are several, also the published multiple of TCP."""
    counts = sorted({turn.paths for turn in of})
    for x, count in enumerate(counts):
        for number, n in enumerate(TRANSPORTS):
            values = [turn.mbps[n] for turn in of if turn.paths == count]
            axes.errorbar(
                x + (number - 1) * _APART, statistics.fmean(values), yerr=interval_pct(values), ls="", ms=6,
                marker=_MARKERS.get(n, "D"), capsize=2.5, color=style.colour(n, max(TRANSPORTS)),
            )  # fmt: skip
        if count > 1:
            tcp = statistics.fmean(turn.mbps[1] for turn in of if turn.paths == count)
            for level in beside:
                axes.hlines(
                    level.value * tcp, x - 0.4, x + 0.4, color="black", ls=style.PUBLISHED_DASH, lw=1.5,
                    zorder=5, path_effects=style.halo(),
                )  # fmt: skip
    totals = {count: sum(turn.paths == count for turn in of) for count in counts}
    names = {1: "1\n(in a rack)"}
    axes.set_xticks(
        range(len(counts)), [f"{names.get(count, str(count))}\nn = {totals[count]}" for count in counts]
    )
    axes.set_xlabel("paths between the two hosts")
    axes.set_ylabel("mean (Mb/s)")
    axes.set_ylim(bottom=0)


def _caption(panel: Panel, points: Sequence[Point], of: Sequence[PairTransfers]) -> Caption:
    return Caption(
        style.parameters(panel),
        [
            *style.doubts(points),
            f"{len(of)} pairs of hosts made a transfer by each transport. Whiskers: 95 % interval.",
            "Dashed: the published multiple of our TCP's mean.",
        ],
    )
