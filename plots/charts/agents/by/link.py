"""Goodput against queueing delay of a flow on each kind of link, in an agent and in the kernel."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ccp.names import is_agents
from model import transports
from model.link_traces import CELL, DROP, FIXED, link_kind
from plots.data import TRANSPORT, Inputs, Panel, Point, panels
from plots.shared import axis_labels, saving, style
from plots.shared.intervals import interval_pct
from plots.shared.sheet import Caption, Sheet, Text

CHART = "by_link"
APART = (*TRANSPORT, "link.trace", "link.loss", "link.queue_pkts")
"""Fields in which points of one chart may differ."""
KINDS = {FIXED: "fixed rate", CELL: "cellular", DROP: "random loss"}
_HEIGHT_IN = 2.0


@dataclass(frozen=True)
class Mark:
    """A congestion control on one kind of link: goodput in Mb/s and queueing delay in ms of each seed."""

    cc: str
    mbps: tuple[float, ...]
    delay_ms: tuple[float, ...]


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart for points that differ at most in congestion control and kind of link; see
    `registry.Chart.draw`."""
    of = panels((point for point in inputs.points if not point.failed), ignoring=APART)
    return saving.draw_each(CHART, [(panel.spec, panel) for panel in of], inputs.out, _chart)


def queueing_ms(point: Point) -> float | None:
    """Return the mean time that packets wait in queues: the senders' round-trip time less what the links'
    delay takes; None without a measured round trip."""
    hops = 3
    idle_ms = 2 * (hops * point.spec.link.delay_us + 2 * point.spec.link.host_delay_us) / 1000
    known = [flow.srtt_ms_mean for flow in point.flows if math.isfinite(flow.srtt_ms_mean)]
    return max(0.0, statistics.fmean(known) - idle_ms) if known else None


def marks(points: Sequence[Point]) -> list[Mark]:
    """Return a mark for each congestion control with a round trip, in the usual order."""
    found = []
    for cc in sorted({point.cc for point in points}, key=transports.rank):
        of = [point for point in points if point.cc == cc and point.flows]
        pairs = [(statistics.fmean(f.goodput_mbps for f in p.flows), queueing_ms(p)) for p in of]
        known = [(mbps, delay) for mbps, delay in pairs if delay is not None]
        if known:
            mbps, delays = zip(*known, strict=True)
            found.append(Mark(cc, mbps, delays))
    return found


def _chart(panel: Panel) -> Figure | None:
    by_kind = {
        kind: of
        for kind in KINDS
        if (of := marks([point for point in panel.points if link_kind(point.spec.link) == kind]))
    }
    if not by_kind:
        return None
    sheet = Sheet((_HEIGHT_IN, len(by_kind)))
    for axes, (kind, of) in zip(sheet.axes[0], by_kind.items(), strict=True):
        for mark in of:
            _draw(axes, mark)
        axes.set_title(KINDS[kind], fontsize=8, loc="left")
        axes.set_ylim(0, 1.15 * max(max(mark.mbps) for mark in of))
        axes.set_xlim(0, 1.25 * max(1.0, *(max(mark.delay_ms) for mark in of)))
        axes.tick_params(labelsize=7)
    sheet.axes[0][0].set_ylabel(axis_labels.GOODPUT_MBPS)
    sheet.axes[0][len(by_kind) // 2].set_xlabel("time in queues (ms)")
    names = dict.fromkeys(mark.cc for of in by_kind.values() for mark in of)
    words = Text(finding(by_kind.values()), "One flow; filled: in an agent", _caption(panel))
    return sheet.finish(words, [_key(name) for name in names])


def _draw(axes: Axes, mark: Mark) -> None:
    look = transports.look(mark.cc)
    axes.errorbar(
        statistics.fmean(mark.delay_ms), statistics.fmean(mark.mbps), xerr=interval_pct(mark.delay_ms) or 0.0,
        yerr=interval_pct(mark.mbps) or 0.0, color=look.colour, marker=look.marker, ms=6, lw=1.0, capsize=2,
        markerfacecolor=look.colour if is_agents(mark.cc) else "white",
    )  # fmt: skip


def _key(name: str) -> Line2D:
    look = transports.look(name)
    face = look.colour if is_agents(name) else "white"
    label = look.label if is_agents(name) else f"{name} without an agent"
    return Line2D([], [], color=look.colour, marker=look.marker, ls="", markerfacecolor=face, label=label)


def finding(of: Iterable[Sequence[Mark]]) -> str:
    """Return the title: the largest difference in goodput between an agent and the kernel."""
    shares = []
    for kind in of:
        mbps = {mark.cc: statistics.fmean(mark.mbps) for mark in kind}
        shares += [
            100 * (value / mbps[plain] - 1)
            for cc, value in mbps.items()
            if is_agents(cc) and (plain := cc.partition(":")[2]) in mbps
        ]
    if not shares:
        return "Goodput and time in queues by kind of link"
    low, high = (round(end) for end in (min(shares), max(shares)))
    return f"In an agent, goodput differs by {low:+d} to {high:+d} % from goodput without one"


def _caption(panel: Panel) -> Caption:
    settings = [f"round trip {6 * panel.spec.link.delay_us / 1000:g} ms", f"{panel.spec.seconds:g} s"]
    notes = [*style.doubts(panel.points), style.intervals(len(panel.seeds))]
    return Caption([*style.unlike(panel.points), *settings, panel.spec.engine], notes)
