"""Sequential transfers by TCP and MPTCP between hosts of a cloud: all by rank, and means by paths."""

from __future__ import annotations

import statistics

from analysis.quantities import GAIN_BETWEEN_RACKS
from analysis.sequential import between_racks, gain, in_one_rack, pair_transfers
from plots.data import Inputs, Panel
from plots.kinds.axis import FROM_ZERO
from plots.kinds.bars import MEANS, Bars, Repeats
from plots.kinds.lines import Line, Lines
from plots.picture import Page, Picture, Row, alike
from plots.shared import style
from plots.shared.kinds import Look
from workloads.sequential import TRANSPORTS

_MARKERS = {1: "s", 2: "v", 4: "o"}
_IN_A_RACK = {1: "1\n(in a rack)"}
_MOST = max(TRANSPORTS)


def _transfers(panel: Panel, inputs: Inputs) -> Page | None:
    """Draw with the published multiple of TCP; other workloads have no such chart."""
    points = [point for n in panel.subflows for point in panel.best(n)]
    of = [turn for point in points for turn in pair_transfers(point.under_test)]
    if not of:
        return None
    ranked, doubt = between_racks(of) or of, any(point.suspect for point in points)
    looks = {
        n: Look(style.transport(n), style.colour(n, _MOST), _MARKERS[n], width=2.2 if n == 1 else 1.5)
        .doubted(doubt) for n in TRANSPORTS
    }  # fmt: skip
    at = [100 * (i + 0.5) / len(ranked) for i in range(len(ranked))]
    every = 1 if len(at) <= style.FEW else (0.04, 0.115)
    curves = [
        Line(at, sorted(turn.mbps[n] for turn in ranked), look, look.width, 3.0, every=every)
        for n, look in looks.items()
    ]
    beside = [
        level
        for level in inputs.levels
        if level.metric.quantity == GAIN_BETWEEN_RACKS
        and level.relation == "about"
        and inputs.is_beside(level, panel)
    ]
    means, levels = {}, {}
    for count in sorted({turn.paths for turn in of}):
        here = [turn for turn in of if turn.paths == count]
        name = f"{_IN_A_RACK.get(count, count)}\nn = {len(here)}"
        values = {n: [turn.mbps[n] for turn in here] for n in TRANSPORTS}
        means[name] = [
            Repeats(look, [] if doubt else values[n], values[n] if doubt else []) for n, look in looks.items()
        ]
        if count > 1:
            levels[name] = [(level.value * statistics.fmean(values[1]), "") for level in beside]
    published = style.published_key(beside, panel)
    for key in published:
        key.set_label(f"{key.get_label()}: {beside[0].value:g} times TCP")
    where = (("between racks", between_racks(of)), ("inside one", in_one_rack(of)))
    gains = {words: value for words, some in where if (value := gain(some, _MOST)) is not None}
    return Page(
        rows=[
            Row(2.3, [Lines(curves, y=FROM_ZERO)],
                f"{len(ranked)} transfers between racks, slowest first (%)", "Mb/s"),
            Row(2.0, [Bars(means, MEANS, FROM_ZERO, levels=levels, apart=0.48, reach=0.4)],
                "paths between the two hosts", "mean (Mb/s)"),
        ],
        about=f"{style.network(panel.spec)}, {panel.hosts} hosts: transfers one at a time",
        numbers={"most": style.transport(_MOST), "gains": gains} if gains else None, points=points,
        settings=style.parameters(panel),
        notes=[
            f"{len(of)} pairs of hosts, one transfer by each transport. Whiskers: 95 % interval.",
            "Dashed: the published multiple of our TCP's mean." if beside else "",
        ],
        keys=[look.key(size=4) for look in looks.values()], more_keys=published,
    )  # fmt: skip


sequential_transfers = Picture(
    groups=alike(), page=_transfers, finding="{{ most }}: {{ gains | listed('{:.2f} times TCP') }}"
)
