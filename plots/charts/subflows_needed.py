"""The smallest number of subflows with which the flows of a network reach 90 % on average, by number of
hosts.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.quantities import GOODPUT_PCT_MEAN
from engines.registry import FLOW_LEVEL, SIMULATOR
from harness.results.point_results import PointResult
from model.congestion import UNKNOWN_LOOK
from model.spec import RunSpec
from plots.data import Inputs, Panel, good
from plots.shared import kinds, saving, style
from plots.shared.kinds import Look
from plots.shared.sheet import Sheet
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


def curves(points: Iterable[PointResult]) -> dict[str, dict[int, int | None]]:
    """Return the subflows needed by kind of network and hosts; means are over all flows and seeds of good
    points, or of suspect ones where none is good."""
    networks = kinds.grouped(points, lambda point: (point.spec.topology.kind, point.hosts))
    found: dict[str, dict[int, int | None]] = {}
    for (kind, hosts), of in sorted(networks.items(), key=_place):
        by_count = kinds.grouped(of, lambda point: point.subflows)
        means = {
            n: statistics.fmean(v for p in good(each) for v in p.flows_pct) for n, each in by_count.items()
        }
        found.setdefault(kind, {})[hosts] = needed(means, kind in BY_PLATEAU)
    return found


def _place(item: tuple[tuple[str, int], object]) -> tuple[int, int]:
    """Return the sort key: kinds in the order of `LOOKS`, unknown ones last; then size."""
    (kind, hosts), _ = item
    return list(LOOKS).index(kind) if kind in LOOKS else len(LOOKS), hosts


def _all(inputs: Inputs) -> list[tuple[RunSpec, Sequence[PointResult]]]:
    """Return all points with goodput as one group."""
    usable = [p for p in inputs.points if not p.is_baseline and not p.failed and p.flows_pct]
    usable = [p for p in usable if p.spec.engine in {FLOW_LEVEL, SIMULATOR}]
    return [(usable[0].spec, usable)] if usable else []


@saving.per_group(_all, named=None)
def subflows_needed(points: Sequence[PointResult], inputs: Inputs) -> Figure:
    """Draw all networks into one chart."""
    model, packets = (curves(p for p in points if p.spec.engine == each) for each in (FLOW_LEVEL, SIMULATOR))
    sheet = Sheet((2.9, 1))
    axes = sheet.axes[0][0]
    looks = {
        kind: Look(TOPOLOGIES[kind].title, *LOOKS.get(kind, UNKNOWN_LOOK)) for kind in [*model, *packets]
    }
    for of in (model, packets):
        for kind, by_hosts in of.items():
            known = {hosts: count for hosts, count in by_hosts.items() if count is not None}
            axes.plot(
                list(known), list(known.values()), color=looks[kind].colour, marker=looks[kind].marker,
                lw=1.5 if of is model else 0, ms=5.5 if of is model else 10, zorder=3, clip_on=False,
                markerfacecolor=looks[kind].colour if of is model else "none",
            )  # fmt: skip
    about = [lv for lv in inputs.levels if all(inputs.applies(lv, point.spec) for point in points)]
    bound = [lv for lv in about if lv.topology == "fat_tree" and lv.metric.quantity == GOODPUT_PCT_MEAN]
    if bound:
        axes.axhline(bound[0].subflows, color="black", ls=style.PUBLISHED_DASH, lw=1.3, zorder=2)
    hosts = [point.hosts for point in points]
    counts = {
        (kind, n): count for of in (model, packets) for kind, by in of.items() for n, count in by.items()
    }
    axes.set_xscale("log")
    axes.set_xticks(_TICKS, [str(tick) for tick in _TICKS])
    axes.set_xticks([], minor=True)
    axes.set_xlim(min(*hosts, 100) * 0.9, max(*hosts, 10_000) * 1.1)
    axes.set_ylim(0, max(10, *(count or 0 for count in counts.values())) + 1)
    axes.set_yticks(range(0, 12, 2))
    axes.set_xlabel("hosts")
    axes.set_ylabel("subflows needed for 90 %")
    largest = ", ".join(f"{looks[k].label} {of[max(of)] or 'more'}" for k, of in (model or packets).items())
    short = ", ".join(f"{looks[k].label} of {n} hosts" for (k, n), count in counts.items() if count is None)
    circle = Line2D(
        [], [], color=style.FAINT, marker="o", ms=9, lw=0, markerfacecolor="none", label="packet level"
    )
    panel, spec = Panel(points[0].spec, (), tuple(points)), points[0].spec
    return sheet.finish(
        f"Subflows that the largest need: {largest}",
        f"random permutation, {points[0].cc.upper()}, {min(hosts)} to {max(hosts)} hosts",
        [
            *style.unlike(points),
            f"links of {spec.link.rate_mbps:g} Mb/s",
            f"n = {len(panel.seeds)}",
            "curves: flow level",
        ],
        [
            *style.doubts(points),
            f"Not reached with the subflows tried: {short}." if short else "",
            f"Dashed: {bound[0].paper} ({bound[0].source}), up to 8192 hosts." if bound else "",
            "BCube: 90 % of what the most subflows reach.",
        ],
        [
            *(look.key(size=5.5) for look in looks.values()),
            *([circle] if packets else []),
            *([kinds.dashed_key(f"published, {bound[0].paper}: at most, FatTree")] if bound else []),
        ],
    )
