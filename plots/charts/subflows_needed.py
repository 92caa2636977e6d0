"""The smallest number of subflows with which the flows of a network reach 90 % on average, by number of
hosts.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.quantities import GOODPUT_PCT_MEAN
from engines.registry import FLOW_LEVEL, SIMULATOR
from model.congestion import UNKNOWN_LOOK
from plots.data import Inputs, Level, Panel, Point
from plots.shared import saving, style
from plots.shared.sheet import Caption, Sheet, Text
from topos import TOPOLOGIES

ENOUGH = 0.9
BY_PLATEAU = frozenset({"bcube"})
"""Networks whose servers forward packets, where links of other servers are the limit. There 100 % is what the
largest number of subflows reaches."""
LOOKS = {"fat_tree": ("#0072B2", "o"), "vl2": ("#D55E00", "s"), "bcube": ("#009E73", "^")}
_HEIGHT_IN = 2.9
_TICKS = (100, 300, 1000, 3000, 10_000)
_ENGINES = (FLOW_LEVEL, SIMULATOR)
Means = Mapping[int, float]


def draw_subflows_needed(inputs: Inputs) -> list[Path]:
    """Draw one chart of all networks; see `registry.Chart.draw`."""
    usable = [p for p in inputs.points if not p.is_baseline and not p.failed and p.flows_pct]
    found = {engine: curves(p for p in usable if p.spec.engine == engine) for engine in _ENGINES}
    if not any(found.values()):
        return []
    with style.look():
        return saving.save(_needed_chart(usable, found, inputs.levels), inputs.out, "subflows_needed")


def needed(means: Means, by_plateau: bool) -> int | None:
    """Return the smallest count of `means` (in % by subflows) that reaches 90 %; None if none does."""
    optimum = means[max(means)] if by_plateau else 100.0
    return next((count for count in sorted(means) if means[count] >= ENOUGH * optimum), None)


def curves(points: Iterable[Point]) -> dict[str, dict[int, int | None]]:
    """Return the subflows needed by kind of network and hosts; means are over all flows and seeds."""
    flows: dict[tuple[str, int], dict[int, list[float]]] = {}
    for point in points:
        by_count = flows.setdefault((point.spec.topology.kind, point.hosts), {})
        by_count.setdefault(point.subflows, []).extend(point.flows_pct)
    found: dict[str, dict[int, int | None]] = {}
    for (kind, hosts), by_count in sorted(flows.items(), key=_place):
        means = {count: statistics.fmean(values) for count, values in by_count.items()}
        found.setdefault(kind, {})[hosts] = needed(means, kind in BY_PLATEAU)
    return found


def _place(item: tuple[tuple[str, int], object]) -> tuple[int, int]:
    """Return the sort key: kinds in the order of `LOOKS`, unknown ones last; then size."""
    (kind, hosts), _ = item
    return list(LOOKS).index(kind) if kind in LOOKS else len(LOOKS), hosts


def finding(found: Mapping[str, Mapping[int, int | None]]) -> str:
    """Return the title: what the largest network of each kind needs."""
    parts = [f"{TOPOLOGIES[kind].title} {of[max(of)] or 'more'}" for kind, of in found.items()]
    return f"Subflows that the largest need: {', '.join(parts)}"


def _needed_chart(
    points: Sequence[Point],
    found: Mapping[str, Mapping[str, Mapping[int, int | None]]],
    levels: Sequence[Level],
) -> Figure:
    sheet = Sheet((_HEIGHT_IN, 1))
    axes = sheet.axes[0][0]
    for engine, of in found.items():
        for kind, by_hosts in of.items():
            _curve(axes, kind, by_hosts, engine == FLOW_LEVEL)
    bound = [
        level
        for level in levels
        if level.topology == "fat_tree" and level.quantity == GOODPUT_PCT_MEAN
        if all(level.applies(point.spec) for point in points)
    ]
    if bound:
        axes.axhline(bound[0].subflows, color="black", ls=style.PUBLISHED_DASH, lw=1.3, zorder=2)
    hosts = [point.hosts for point in points]
    axes.set_xscale("log")
    axes.set_xticks(_TICKS, [str(tick) for tick in _TICKS])
    axes.set_xticks([], minor=True)
    axes.set_xlim(min(*hosts, 100) * 0.9, max(*hosts, 10_000) * 1.1)
    axes.set_ylim(0, max(10, *(n or 0 for of in found.values() for k in of.values() for n in k.values())) + 1)
    axes.set_yticks(range(0, 12, 2))
    axes.set_xlabel("hosts")
    axes.set_ylabel("subflows needed for 90 %")
    shown = next(of for of in found.values() if of)
    panel = Panel(points[0].spec, (), tuple(points))
    subtitle = f"random permutation, {points[0].cc.upper()}, {min(hosts)} to {max(hosts)} hosts"
    return sheet.finish(Text(finding(shown), subtitle, _caption(panel, bound, found)), _legend(found, bound))


def _curve(axes: Axes, kind: str, by_hosts: Mapping[int, int | None], model: bool) -> None:
    colour, marker = LOOKS.get(kind, UNKNOWN_LOOK)
    known = {hosts: count for hosts, count in by_hosts.items() if count is not None}
    axes.plot(
        list(known), list(known.values()), color=colour, marker=marker, lw=1.5 if model else 0,
        ms=5.5 if model else 10, markerfacecolor=colour if model else "none", zorder=3, clip_on=False,
    )  # fmt: skip


def _legend(
    found: Mapping[str, Mapping[str, Mapping[int, int | None]]], bound: Sequence[Level]
) -> list[Line2D]:
    kinds = dict.fromkeys(kind for of in found.values() for kind in of)
    looks = {kind: LOOKS.get(kind, UNKNOWN_LOOK) for kind in kinds}
    marks = [
        Line2D([], [], color=colour, marker=marker, ms=5.5, lw=1.5, label=TOPOLOGIES[kind].title)
        for kind, (colour, marker) in looks.items()
    ]
    packets = Line2D([], [], color=style.FAINT, marker="o", ms=9, lw=0, markerfacecolor="none")
    packets.set_label("packet level")
    dashes = Line2D([], [], color="black", ls=style.PUBLISHED_DASH, lw=1.3)
    dashes.set_label(f"published, {bound[0].paper if bound else ''}: at most, FatTree")
    return [*marks, *([packets] if found.get(SIMULATOR) else []), *([dashes] if bound else [])]


def _caption(
    panel: Panel, bound: Sequence[Level], found: Mapping[str, Mapping[str, Mapping[int, int | None]]]
) -> Caption:
    short = [
        f"{TOPOLOGIES[kind].title} of {hosts} hosts"
        for of in found.values()
        for kind, by_hosts in of.items()
        for hosts, count in by_hosts.items()
        if count is None
    ]
    spec = panel.spec
    return Caption(
        [
            *style.unlike(panel.points),
            f"links of {spec.link.rate_mbps:g} Mb/s",
            f"n = {len(panel.seeds)}",
            "curves: flow level",
        ],
        [
            *([f"Not reached with the subflows tried: {', '.join(short)}."] if short else []),
            *([f"Dashed: {bound[0].paper} ({bound[0].source}), up to 8192 hosts."] if bound else []),
            "BCube: 90 % of what the most subflows reach.",
        ],
    )
