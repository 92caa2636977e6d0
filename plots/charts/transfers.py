"""Sequential transfers by TCP and MPTCP between hosts of a cloud: all by rank, and means by paths."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.quantities import GAIN_BETWEEN_RACKS
from analysis.sequential import PairTransfers, between_racks, gain, in_one_rack, pair_transfers
from harness.metrics.published import Published
from plots.data import Inputs, Panel
from plots.shared import kinds, saving, style
from plots.shared.kinds import Look
from plots.shared.sheet import Sheet
from workloads.sequential import TRANSPORTS

_MARKERS = {1: "s", 2: "v", 4: "o"}


def finding(of: Sequence[PairTransfers]) -> str:
    """Return the title: what the most subflows gain between racks, and inside one."""
    most = max(TRANSPORTS)
    parts = [
        f"{where} {value:.2f} times TCP"
        for where, some in (("between racks", between_racks(of)), ("inside one", in_one_rack(of)))
        if (value := gain(some, most)) is not None
    ]
    if not parts:
        return ""
    return f"{style.transport(most)}: {', '.join(parts)}"


@saving.per_panel()
def sequential_transfers(panel: Panel, inputs: Inputs) -> Figure | None:
    """Draw with the published multiple of TCP; other workloads have no such chart."""
    points = [point for n in panel.subflows for point in panel.best(n)]
    of = [turn for point in points for turn in pair_transfers(point.under_test)]
    if not of:
        return None
    sheet = Sheet((2.3, 1), (2.0, 1))
    (ranks,), (paths,) = sheet.axes
    ranked = between_racks(of) or of
    places = [100 * (i + 0.5) / len(ranked) for i in range(len(ranked))]
    doubt = any(point.suspect for point in points)
    most = max(TRANSPORTS)
    handles = [
        style.line(ranks, places, sorted(turn.mbps[n] for turn in ranked), n, most, doubt) for n in TRANSPORTS
    ]
    ranks.set_xlabel(f"{len(ranked)} transfers between racks, slowest first (%)")
    ranks.set_ylabel("Mb/s")
    ranks.set_ylim(bottom=0)
    beside = [
        level
        for level in inputs.levels
        if level.metric.quantity == GAIN_BETWEEN_RACKS
        and level.relation == "about"
        and inputs.is_beside(level, panel)
    ]
    _by_paths(paths, of, beside, doubt)
    published = style.published_key(beside, panel)
    for key in published:
        key.set_label(f"{key.get_label()}: {beside[0].value:g} times TCP")
    return sheet.finish(
        finding(of) or inputs.title,
        f"{style.network(panel.spec)}, {panel.hosts} hosts: transfers one at a time",
        style.parameters(panel),
        [
            *style.doubts(points),
            f"{len(of)} pairs of hosts, one transfer by each transport. Whiskers: 95 % interval.",
            "Dashed: the published multiple of our TCP's mean." if beside else "",
        ],
        handles,
        published,
    )


def _by_paths(axes: Axes, of: Sequence[PairTransfers], beside: Sequence[Published], doubt: bool) -> None:
    """Draw means for each number of paths; where there are several, also the published multiple of TCP."""
    counts = sorted({turn.paths for turn in of})
    for x, count in enumerate(counts):
        here = [turn for turn in of if turn.paths == count]
        for number, n in enumerate(TRANSPORTS):
            look = Look("", style.colour(n, max(TRANSPORTS)), _MARKERS.get(n, "D"))
            if mean := kinds.mean_of((turn.mbps[n] for turn in here), hollow=doubt):
                kinds.mark(axes, x + (number - 1) * 0.16, mean, look)
        if count > 1:
            for level in beside:
                kinds.published(axes, level.value * statistics.fmean(turn.mbps[1] for turn in here), x, 0.4)
    totals = {count: sum(turn.paths == count for turn in of) for count in counts}
    names = {1: "1\n(in a rack)"}
    axes.set_xticks(
        range(len(counts)), [f"{names.get(count, str(count))}\nn = {totals[count]}" for count in counts]
    )
    axes.set_xlabel("paths between the two hosts")
    axes.set_ylabel("mean (Mb/s)")
    axes.set_ylim(bottom=0)
