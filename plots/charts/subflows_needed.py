"""The smallest number of subflows with which the flows of a network reach 90 % on average, by number of
hosts.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from analysis.quantities import GOODPUT_PCT_MEAN
from engines.registry import FLOW_LEVEL, SIMULATOR
from harness.results.point_results import PointResult
from model.congestion import UNKNOWN_LOOK
from model.spec import RunSpec
from plots.data import Inputs, Panel, good
from plots.kinds.axis import Axis
from plots.kinds.curves import Curves
from plots.kinds.lines import Level, Lines
from plots.picture import Overlay, Page, Picture, Row, Series
from plots.shared import kinds, style
from plots.shared.kinds import Look, Mean
from topos import TOPOLOGIES

ENOUGH = 0.9
BY_PLATEAU = frozenset({"bcube"})
"""Networks whose servers forward packets, where links of other servers are the limit. There 100 % is what the
largest number of subflows reaches."""
LOOKS = {"fat_tree": ("#0072B2", "o"), "vl2": ("#D55E00", "s"), "bcube": ("#009E73", "^")}
_TICKS = (100, 300, 1000, 3000, 10_000)
Means = Mapping[int, float]


def needed(means: Means, by_plateau: bool) -> int | None:
    """Return the smallest count of `means` (in % by subflows) that reaches 90 %; None if none does."""
    optimum = means[max(means)] if by_plateau else 100.0
    return next((count for count in sorted(means) if means[count] >= ENOUGH * optimum), None)


def network(point: PointResult) -> str:
    return point.spec.topology.kind


def number(points: Sequence[PointResult]) -> Mean | None:
    """Return the subflows needed by one network; means are over all flows and seeds of good points, or of
    suspect ones where none is good."""
    by_count = kinds.grouped(points, lambda point: point.subflows)
    means = {n: statistics.fmean(v for p in good(of) for v in p.flows_pct) for n, of in by_count.items()}
    count = needed(means, network(points[0]) in BY_PLATEAU)
    return None if count is None else Mean(count, hollow=points[0].spec.engine == SIMULATOR)


def series(panel: Panel) -> list[Series]:
    """Return a series for each kind of network, at packet level below those at flow level."""
    made = []
    for engine, dash in ((SIMULATOR, ""), (FLOW_LEVEL, "-")):
        found = kinds.grouped([p for p in panel.points if p.spec.engine == engine], network)
        for kind in [kind for kind in (*LOOKS, *found.keys() - LOOKS.keys()) if kind in found]:
            look = Look(TOPOLOGIES[kind].title, *LOOKS.get(kind, UNKNOWN_LOOK), dash)
            made.append(Series(kind, look, found[kind]))
    return made


def _all(inputs: Inputs) -> list[tuple[RunSpec, Panel]]:
    """Return all points with goodput as one group."""
    usable = [p for p in inputs.points if not p.is_baseline and not p.failed and p.flows_pct]
    usable = [p for p in usable if p.spec.engine in {FLOW_LEVEL, SIMULATOR}]
    return [(usable[0].spec, Panel(usable[0].spec, (), tuple(usable)))] if usable else []


def _page(panel: Panel, inputs: Inputs) -> Page:
    """Draw all networks into one chart."""
    of, points = series(panel), panel.points
    packets, model = ([one for one in of if bool(one.look.dash) is flows] for flows in (False, True))
    counts = {
        (one.look, hosts): number(each)
        for one in of for hosts, each in sorted(kinds.grouped(one.points, lambda p: p.hosts).items())
    }  # fmt: skip
    about = [lv for lv in inputs.levels if all(inputs.applies(lv, point.spec) for point in points)]
    bound = [lv for lv in about if lv.topology == "fat_tree" and lv.metric.quantity == GOODPUT_PCT_MEAN][:1]
    ends = min(point.hosts for point in points), max(point.hosts for point in points)
    x = Axis("hosts", log=True, low=0.9 * min(ends[0], 100), high=1.1 * max(ends[1], 10_000), ticks=_TICKS)
    most = max(10.0, *(mean.value for mean in counts.values() if mean), 0)
    y = Axis("subflows needed for 90 %", low=0, high=most + 1, ticks=range(0, 12, 2))
    plots = [
        Curves(number, lambda point: point.hosts, size=size, series=each)
        for each, size in ((packets, 10), (model, 5.5))
    ]
    largest = {one.look.label: counts[one.look, max(p.hosts for p in one.points)] for one in model or packets}
    short = [f"{look.label} of {hosts} hosts" for (look, hosts), mean in counts.items() if mean is None]
    dashed = [Level(lv.subflows, style.PUBLISHED_DASH, "black", 1.3, counts=True) for lv in bound]
    levels = Lines((), x, y, levels=dashed)
    circle = Look("packet level", style.FAINT, "o", "").key(hollow=True, size=9)
    return Page(
        rows=[Row(2.9, [Overlay([*plots, levels])])],
        about=f"random permutation, {points[0].cc.upper()}, {ends[0]} to {ends[1]} hosts", points=points,
        numbers={"largest": [(name, f"{of.value:g}" if of else "more") for name, of in largest.items()]},
        settings=[
            *style.unlike(points), f"links of {panel.spec.link.rate_mbps:g} Mb/s", f"n = {len(panel.seeds)}",
            "curves: flow level",
        ],
        notes=[
            f"Not reached with the subflows tried: {', '.join(short)}." if short else "",
            *(f"Dashed: {lv.paper} ({lv.source}), up to 8192 hosts." for lv in bound),
            "BCube: 90 % of what the most subflows reach.",
        ],
        keys=[
            *(one.look.key(size=5.5) for one in {one.name: one for one in of}.values()),
            *([circle] if packets else []),
            *(kinds.dashed_key(f"published, {lv.paper}: at most, FatTree") for lv in bound),
        ],
    )  # fmt: skip


subflows_needed = Picture(
    groups=_all, page=_page, named=None,
    finding="Subflows that the largest need: {{ largest | listed('{}') }}",
)  # fmt: skip
