"""Congestion control in an agent (Narayan et al., SIGCOMM 2018): by its delay, its reporting interval and the
kind of link, and windows over time.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from analysis.completion import tail_ms
from analysis.quantities import DROPS
from ccp.names import is_agents
from harness.results.point_results import PointResult
from model import transports
from model.links import CELL, DROP, FIXED, link_kind
from plots.data import TRANSPORT, Inputs, Panel, good
from plots.shared import axis_labels, kinds, saving, style
from plots.shared.kinds import JOINED, Look, Mean, by_transport
from plots.shared.sheet import Sheet


def _goodput(point: PointResult) -> float:
    return sum(flow.goodput_mbps for flow in point.under_test)


def _dropped(point: PointResult) -> float:
    """Return the segments dropped in each second of the window."""
    return (point.metric(DROPS.name) or 0.0) / point.spec.seconds


def _agent_look(cc: str) -> Look:
    look = transports.look(cc)
    return (
        Look(look.label, look.colour, look.marker)
        if is_agents(cc)
        else Look(look.label, look.colour, "", ":")
    )


@saving.per_panel((*TRANSPORT, "agent"))
def by_agent_delay(panel: Panel, inputs: Inputs) -> Figure | None:
    """Draw points that differ at most in congestion control and agent."""
    usable = [point for point in panel.points if point.under_test]
    if len({point.spec.agent for point in usable}) < 2:
        return None
    sheet = Sheet((1.8, 1), (1.8, 1))
    of = kinds.grouped(sorted(usable, key=lambda point: transports.rank(point.cc)), lambda point: point.cc)
    shown = ((axis_labels.GOODPUT_MBPS, _goodput), ("drops per second", _dropped))
    for (axes,), (words, value) in zip(sheet.axes, shown, strict=True):
        for cc, points in of.items():
            _by_delay(axes, points, _agent_look(cc), value)
        style.plain_log(axes.xaxis)
        axes.set_ylim(0, 1.08 * axes.dataLim.y1 or 1.0)
        axes.set_ylabel(words)
    sheet.axes[1][0].set_xlabel("delay of the agent (ms)")
    settings = style.parameters(panel, congestion="")
    keys = [_agent_look(cc).key(size=4.5) for cc in of]
    return sheet.finish(
        inputs.title, style.subtitle(panel, "all flows"), settings, style.doubts(usable), keys
    )


def _by_delay(
    axes: Axes, points: Sequence[PointResult], look: Look, value: Callable[[PointResult], float]
) -> None:
    """Draw the mean over seeds at every delay; a control of the kernel has no agent and is a level."""
    by_agent = kinds.grouped(points, lambda point: point.spec.agent)
    means = {agent.delay_us / 1000: kinds.mean_over(of, value) for agent, of in by_agent.items()}
    if len(means) > 1:
        kinds.curve(axes, dict(sorted(means.items())), look)
    elif level := next(iter(means.values())):
        axes.axhline(level.value, color=look.colour, lw=1.2, ls=":")


KINDS = {FIXED: "fixed rate", CELL: "cellular", DROP: "random loss"}


def queueing_ms(point: PointResult) -> float | None:
    """Return the mean time that packets wait in queues: the senders' round-trip time less what the links'
    delay takes; None without a measured round trip."""
    hops = 3
    idle_ms = 2 * (hops * point.spec.link.delay_us + 2 * point.spec.link.host_delay_us) / 1000
    known = [flow.srtt_ms_mean for flow in point.under_test if math.isfinite(flow.srtt_ms_mean)]
    return max(0.0, statistics.fmean(known) - idle_ms) if known else None


def mean_mbps(point: PointResult) -> float:
    """Return the mean goodput of the point's flows."""
    return statistics.fmean(flow.goodput_mbps for flow in point.under_test)


Marks = Mapping[str, Sequence[PointResult]]
"""The points of each congestion control on one kind of link."""


def marks(points: Sequence[PointResult]) -> Marks:
    """Return the good points of each congestion control that have a round trip, in the usual order; the
    suspect ones where none is good."""
    found = {}
    for cc in sorted({point.cc for point in points}, key=transports.rank):
        of = good([point for point in points if point.cc == cc and point.under_test])
        if known := [point for point in of if queueing_ms(point) is not None]:
            found[cc] = known
    return found


@saving.per_panel((*TRANSPORT, "link.trace", "link.loss", "link.queue_pkts"), lambda point: not point.failed)
def by_link(panel: Panel, inputs: Inputs) -> Figure | None:
    """Draw points that differ at most in congestion control and kind of link."""
    of_kind = kinds.grouped(panel.points, lambda point: link_kind(point.spec.link))
    by_kind = {kind: of for kind in KINDS if (of := marks(of_kind.get(kind, [])))}
    if not by_kind:
        return None
    sheet = Sheet((2.0, len(by_kind)))
    for axes, (kind, of) in zip(sheet.axes[0], by_kind.items(), strict=True):
        for cc, points in of.items():
            _link_mark(axes, cc, points)
        axes.set_title(KINDS[kind], fontsize=8)
        every = [point for points in of.values() for point in points]
        axes.set_ylim(0, 1.15 * max(map(mean_mbps, every)))
        axes.set_xlim(0, 1.25 * max(1.0, *(queueing_ms(point) or 0.0 for point in every)))
        axes.tick_params(labelsize=7)
    sheet.axes[0][0].set_ylabel(axis_labels.GOODPUT_MBPS)
    sheet.axes[0][len(by_kind) // 2].set_xlabel("time in queues (ms)")
    round_trip = f"round trip {6 * panel.spec.link.delay_us / 1000:g} ms"
    settings = [*style.unlike(panel.points), round_trip, f"{panel.spec.seconds:g} s", panel.spec.engine]
    notes = [*style.doubts(panel.points), style.intervals(len(panel.seeds))]
    looks = {cc: _link_look(cc) for of in by_kind.values() for cc in of}
    keys = [look.key(hollow=not is_agents(cc), size=6) for cc, look in looks.items()]
    title = link_finding(by_kind.values()) or inputs.title
    return sheet.finish(title, "One flow; filled: in an agent", settings, notes, keys)


def _link_look(cc: str) -> Look:
    look = transports.look(cc)
    return Look(look.label if is_agents(cc) else f"{cc} without an agent", look.colour, look.marker, "")


def _link_mark(axes: Axes, cc: str, points: Sequence[PointResult]) -> None:
    x, y = (
        kinds.mean_of(map(of, points), hollow=not is_agents(cc)) or Mean(0.0)
        for of in (queueing_ms, mean_mbps)
    )
    kinds.mark(axes, x, y, _link_look(cc))
    if points[0].suspect:
        kinds.write(axes, "?", x.value, y.value)


def link_finding(of: Iterable[Marks]) -> str:
    """Return the title: the largest difference in goodput between an agent and the kernel."""
    shares = []
    for kind in of:
        mbps = {cc: statistics.fmean(map(mean_mbps, points)) for cc, points in kind.items()}
        shares += [
            100 * (value / mbps[plain] - 1)
            for cc, value in mbps.items()
            if is_agents(cc) and (plain := cc.partition(":")[2]) in mbps
        ]
    if not shares:
        return ""
    low, high = (round(end) for end in (min(shares), max(shares)))
    return f"In an agent, goodput differs by {low:+d} to {high:+d} % from goodput without one"


_INCASTS = (("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "D"), ("#CC79A7", "^"))


Incast = tuple[float, int, str]
"""The rate in Mb/s, the packets of each flow, and the congestion control."""


def curves(points: Sequence[PointResult]) -> dict[Incast, dict[int, Mean | None]]:
    """Return how many times as long the last completion takes with an agent, by the interval in us.

    A seed counts where all flows completed, with the agent and without. Suspect points count where none is
    good."""
    alike = kinds.grouped(points, lambda p: (p.rate_mbps, _packets(p), p.cc, p.spec.agent.report_us))
    chosen = [point for key in sorted(alike) for point in sorted(good(alike[key]), key=lambda p: p.seed)]
    plain = {(p.rate_mbps, _packets(p), p.seed): tail_ms(p.under_test) for p in chosen if not is_agents(p.cc)}
    found: dict[Incast, dict[int, list[float]]] = {}
    doubt = set()
    for point in chosen:
        key, us = (point.rate_mbps, _packets(point), point.cc), point.spec.agent.report_us
        tail, beside = tail_ms(point.under_test), plain.get((*key[:2], point.seed))
        if is_agents(point.cc) and us and tail is not None and beside:
            found.setdefault(key, {}).setdefault(us, []).append(tail / beside)
            doubt |= {key} if point.suspect else set()
    return {
        key: {us: kinds.mean_of(by_us[us], hollow=key in doubt) for us in sorted(by_us)}
        for key, by_us in found.items()
    }


def _packets(point: PointResult) -> int:
    return int(point.spec.workload.params.get("packets", 100))


@saving.per_panel((*TRANSPORT, "agent", "workload", "link.rate_mbps"), lambda point: not point.failed)
def by_report_interval(panel: Panel, inputs: Inputs) -> Figure | None:
    """Draw points that differ at most in transport, agent, workload and rate."""
    of = {key: means for key, means in curves(panel.points).items() if len(means) > 1}
    rates = sorted({rate for rate, _, _ in of})
    if not rates:
        return None
    sheet = Sheet((2.0, len(rates)))
    sizes = sorted({packets for _, packets, _ in of})
    looks = {
        size: Look(f"{size} packets", *_INCASTS[number % len(_INCASTS)]) for number, size in enumerate(sizes)
    }
    for axes, rate in zip(sheet.axes[0], rates, strict=True):
        axes.axhline(1.0, color="0.6", lw=0.8)
        for means, packets in ((means, key[1]) for key, means in of.items() if key[0] == rate):
            kinds.curve(axes, means, looks[packets], 4)
            style.plain_log(axes.xaxis)
            axes.set_xticks(list(means))
            axes.xaxis.set_minor_locator(NullLocator())
        axes.set_title(f"{rate / 1000:g} Gb/s", fontsize=8)
        axes.tick_params(labelsize=6)
    top = max(axes.dataLim.y1 for axes in sheet.axes[0])
    for axes in sheet.axes[0]:
        axes.set_ylim(0, 1.1 * max(top, 1.5))
    sheet.axes[0][0].set_ylabel("last completion, x Reno's")
    sheet.axes[0][len(rates) // 2].set_xlabel("time between reports (us)")
    answer_us = max(point.spec.agent.delay_us for point in panel.points if is_agents(point.cc))
    names = ", ".join(sorted({transports.title(cc) for _, _, cc in of}))
    return sheet.finish(
        interval_finding(of) or inputs.title,
        f"Incast of {panel.hosts - 1} flows to one host, {names}",
        [
            *style.unlike(panel.points),
            f"round trip {4 * panel.spec.link.delay_us:g} us",
            style.queue_limit(panel.spec.link.queue_pkts),
            f"agent answers after {answer_us:g} us",
        ],
        [*style.doubts(panel.points), style.intervals(len(panel.seeds))],
        [look.key(size=4, width=1.4) for look in looks.values()],
    )


def interval_finding(of: Mapping[Incast, Mapping[int, Mean | None]]) -> str:
    """Return the title: by how much the last completion differs from that without an agent."""
    means = [mean.value for curve in of.values() for mean in curve.values() if mean]
    if not means:
        return ""
    return f"The last flow takes {min(means):.2f} to {max(means):.2f} times as long as without an agent"


_MAX_CURVES, _MAX_SAMPLES = 4, 400


@saving.per_panel(JOINED)
def windows_beside(panel: Panel, _: Inputs) -> Figure | None:
    """Draw the first flow's window of points that differ at most in congestion control."""
    firsts = [group[0] for group in by_transport(panel)]
    shown = [(one, *found) for one in firsts if (found := _window(one)) is not None][:_MAX_CURVES]
    if len(shown) < 2:
        return None
    sheet = Sheet(*[(1.5, 1)] * len(shown))
    top = 0.0
    for (axes,), (point, t_s, cwnd, mean) in zip(sheet.axes, shown, strict=True):
        dash = style.SUSPECT_DASH if point.suspect else "-"
        axes.plot(t_s, cwnd, color=transports.look(point.cc).colour, lw=1, ls=dash)
        if point.suspect:
            style.hatch(axes)
        axes.set_xlim(float(t_s.min()), max(float(t_s.max()), 1e-3))
        top = max(top, float(cwnd.max()))
        axes.set_ylabel(axis_labels.CWND, fontsize=8.5)
        axes.set_title(f"{transports.title(point.cc)}: mean {mean:.0f} packets")
    for (axes,) in sheet.axes:
        axes.set_ylim(0, 1.05 * top)
    sheet.axes[-1][0].set_xlabel(axis_labels.SECONDS)
    means = ", ".join(f"{transports.title(point.cc)} {mean:.0f}" for point, _, _, mean in shown)
    return sheet.finish(
        f"Mean window in packets: {means}",
        style.subtitle(panel, "congestion windows"),
        style.parameters(panel, congestion=""),
        [
            *style.doubts([point for point, *_ in shown]),
            "Seconds count from the opening of the measured window.",
        ],
    )


def _window(point: PointResult) -> tuple[kinds.Floats, kinds.Floats, float] | None:
    """Return instants, the first flow's window at them, and its mean in the measured window; None without
    samples."""
    sockets = point.read_table("sockets")
    if sockets is None or not len(sockets):
        return None
    first = np.flatnonzero(sockets["flow"] == 0)
    t_s, cwnd = sockets["t_s"][first], sockets["cwnd_pkts"][first]
    if not (t_s >= 0).any():
        return None
    step = max(1, len(first) // _MAX_SAMPLES)
    return t_s[::step], cwnd[::step], float(cwnd[t_s >= 0].mean())
