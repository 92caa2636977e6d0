"""Congestion control in an agent (Narayan et al., SIGCOMM 2018): by its delay, its reporting interval and the
kind of link, and windows over time.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from analysis.completion import tail_ms
from analysis.quantities import DROPS
from ccp.names import is_agents
from model import transports
from model.links import CELL, DROP, FIXED, link_kind
from model.spec import AgentSpec
from plots.data import TRANSPORT, Inputs, Panel, Point, interval_pct, panels
from plots.shared import axis_labels, saving, style
from plots.shared.sheet import Caption, Sheet, Text
from plots.shared.transports import by_transport, draw_joined

_DELAY_HEIGHT_IN = 1.8
AGENTS = "agent"
"""The field in which the points differ."""


def draw_by_agent_delay(inputs: Inputs) -> list[Path]:
    """Draw one chart for points that differ at most in congestion control and agent; see
    `registry.Chart.draw`."""
    of = panels(inputs.points, inputs.expected, (*TRANSPORT, AGENTS))
    return saving.draw_panels("by_agent_delay", inputs, _delay_chart, of)


def _goodput(point: Point) -> float:
    return sum(flow.goodput_mbps for flow in point.flows)


def _dropped(point: Point) -> float:
    """Return the segments dropped in each second of the window."""
    return (point.recorded(DROPS) or 0.0) / point.spec.seconds


def _delay_chart(panel: Panel) -> Figure | None:
    usable = [point for point in panel.points if point.flows]
    if len({point.spec.agent for point in usable}) < 2:
        return None
    sheet = Sheet((_DELAY_HEIGHT_IN, 1), (_DELAY_HEIGHT_IN, 1))
    goodput, drops = sheet.axes[0][0], sheet.axes[1][0]
    names = sorted({point.cc for point in usable}, key=transports.rank)
    for axes, value in ((goodput, _goodput), (drops, _dropped)):
        for name in names:
            _delay_curve(axes, [point for point in usable if point.cc == name], name, value)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.set_ylim(0, 1.08 * axes.dataLim.y1 or 1.0)
    goodput.set_ylabel(axis_labels.GOODPUT_MBPS)
    drops.set_ylabel("drops per second")
    drops.set_xlabel("delay of the agent (ms)")
    legend = [_delay_key(name) for name in names]
    caption = Caption(style.parameters(panel, congestion=""), style.doubts(usable))
    words = Text("Goodput and drops by the delay of the agent", style.subtitle(panel, "all flows"), caption)
    return sheet.finish(words, legend)


def _delay_key(name: str) -> Line2D:
    look = transports.look(name)
    marker, line = (look.marker, "-") if is_agents(name) else ("", ":")
    return Line2D([], [], color=look.colour, marker=marker, ls=line, ms=4.5, label=look.label)


def _delay_curve(axes: Axes, points: Sequence[Point], name: str, value: Callable[[Point], float]) -> None:
    """Draw the mean over seeds at every delay; a control of the kernel has no agent and is a level."""
    look = transports.look(name)
    by_delay: dict[AgentSpec, list[float]] = {}
    for point in points:
        by_delay.setdefault(point.spec.agent, []).append(value(point))
    means = {agent.delay_us / 1000: statistics.fmean(of) for agent, of in by_delay.items()}
    if len(means) == 1:
        axes.axhline(next(iter(means.values())), color=look.colour, lw=1.2, ls=":")
        return
    at = sorted(means)
    axes.plot(at, [means[ms] for ms in at], color=look.colour, marker=look.marker, ms=4.5, lw=1.6)


LINK_APART = (*TRANSPORT, "link.trace", "link.loss", "link.queue_pkts")
"""Fields in which points of one chart may differ."""
KINDS = {FIXED: "fixed rate", CELL: "cellular", DROP: "random loss"}
_LINK_HEIGHT_IN = 2.0


@dataclass(frozen=True)
class LinkMark:
    """A congestion control on one kind of link: goodput in Mb/s and queueing delay in ms of each seed."""

    cc: str
    mbps: tuple[float, ...]
    delay_ms: tuple[float, ...]


def draw_by_link(inputs: Inputs) -> list[Path]:
    """Draw one chart for points that differ at most in congestion control and kind of link; see
    `registry.Chart.draw`."""
    of = panels((point for point in inputs.points if not point.failed), ignoring=LINK_APART)
    return saving.draw_panels("by_link", inputs, _link_chart, of)


def queueing_ms(point: Point) -> float | None:
    """Return the mean time that packets wait in queues: the senders' round-trip time less what the links'
    delay takes; None without a measured round trip."""
    hops = 3
    idle_ms = 2 * (hops * point.spec.link.delay_us + 2 * point.spec.link.host_delay_us) / 1000
    known = [flow.srtt_ms_mean for flow in point.flows if math.isfinite(flow.srtt_ms_mean)]
    return max(0.0, statistics.fmean(known) - idle_ms) if known else None


def marks(points: Sequence[Point]) -> list[LinkMark]:
    """Return a mark for each congestion control with a round trip, in the usual order."""
    found = []
    for cc in sorted({point.cc for point in points}, key=transports.rank):
        of = [point for point in points if point.cc == cc and point.flows]
        pairs = [(statistics.fmean(f.goodput_mbps for f in p.flows), queueing_ms(p)) for p in of]
        known = [(mbps, delay) for mbps, delay in pairs if delay is not None]
        if known:
            mbps, delays = zip(*known, strict=True)
            found.append(LinkMark(cc, mbps, delays))
    return found


def _link_chart(panel: Panel) -> Figure | None:
    by_kind = {
        kind: of
        for kind in KINDS
        if (of := marks([point for point in panel.points if link_kind(point.spec.link) == kind]))
    }
    if not by_kind:
        return None
    sheet = Sheet((_LINK_HEIGHT_IN, len(by_kind)))
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
    words = Text(link_finding(by_kind.values()), "One flow; filled: in an agent", _caption(panel))
    return sheet.finish(words, [_link_key(name) for name in names])


def _draw(axes: Axes, mark: LinkMark) -> None:
    look = transports.look(mark.cc)
    axes.errorbar(
        statistics.fmean(mark.delay_ms), statistics.fmean(mark.mbps), xerr=interval_pct(mark.delay_ms) or 0.0,
        yerr=interval_pct(mark.mbps) or 0.0, color=look.colour, marker=look.marker, ms=6, lw=1.0, capsize=2,
        markerfacecolor=look.colour if is_agents(mark.cc) else "white",
    )  # fmt: skip


def _link_key(name: str) -> Line2D:
    look = transports.look(name)
    face = look.colour if is_agents(name) else "white"
    label = look.label if is_agents(name) else f"{name} without an agent"
    return Line2D([], [], color=look.colour, marker=look.marker, ls="", markerfacecolor=face, label=label)


def link_finding(of: Iterable[Sequence[LinkMark]]) -> str:
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


INTERVAL_APART = (*TRANSPORT, "agent", "workload", "link.rate_mbps")
"""Fields in which points of one chart may differ."""
_INTERVAL_HEIGHT_IN = 2.0
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
_MARKERS = "osD^"


@dataclass(frozen=True)
class IncastCurve:
    """One workload at one rate: the ratio of each seed by interval in us."""

    rate_mbps: float
    packets: int
    cc: str
    ratios: dict[int, tuple[float, ...]]


def draw_by_report_interval(inputs: Inputs) -> list[Path]:
    """Draw one chart for points that differ at most in transport, agent, workload and rate; see
    `registry.Chart.draw`."""
    of = panels((point for point in inputs.points if not point.failed), ignoring=INTERVAL_APART)
    return saving.draw_panels("by_report_interval", inputs, _interval_chart, of)


def curves(points: Sequence[Point]) -> list[IncastCurve]:
    """Return the curves by rate and size; a seed counts where all flows completed, with the agent and
    without."""
    tails = {
        (p.rate_mbps, _packets(p), p.cc, p.spec.agent.report_us, p.seed): tail_ms(p.flows) for p in points
    }
    plain = {
        (rate, size, seed): tail for (rate, size, cc, _, seed), tail in tails.items() if not is_agents(cc)
    }
    found: dict[tuple[float, int, str], dict[int, list[float]]] = {}
    for (rate, size, cc, us, seed), tail in sorted(tails.items(), key=lambda pair: pair[0]):
        beside = plain.get((rate, size, seed))
        if is_agents(cc) and us and tail is not None and beside:
            found.setdefault((rate, size, cc), {}).setdefault(us, []).append(tail / beside)
    return [IncastCurve(*key, {us: tuple(of) for us, of in by_us.items()}) for key, by_us in found.items()]


def _packets(point: Point) -> int:
    return int(point.spec.workload.params.get("packets", 100))


def _interval_chart(panel: Panel) -> Figure | None:
    of = [curve for curve in curves(panel.points) if len(curve.ratios) > 1]
    rates = sorted({curve.rate_mbps for curve in of})
    if not rates:
        return None
    sheet = Sheet((_INTERVAL_HEIGHT_IN, len(rates)))
    sizes = sorted({curve.packets for curve in of})
    for axes, rate in zip(sheet.axes[0], rates, strict=True):
        axes.axhline(1.0, color="0.6", lw=0.8)
        for curve in (each for each in of if each.rate_mbps == rate):
            _interval_curve(axes, curve, sizes.index(curve.packets))
        axes.set_title(f"{rate / 1000:g} Gb/s", fontsize=8, loc="left")
        axes.tick_params(labelsize=6)
    top = max(axes.dataLim.y1 for axes in sheet.axes[0])
    for axes in sheet.axes[0]:
        axes.set_ylim(0, 1.1 * max(top, 1.5))
    sheet.axes[0][0].set_ylabel("last completion, x Reno's")
    sheet.axes[0][len(rates) // 2].set_xlabel("time between reports (us)")
    caption = Caption(
        [*style.unlike(panel.points), f"round trip {4 * panel.spec.link.delay_us:g} us",
         style.queue_limit(panel.spec.link.queue_pkts),
         f"agent answers after {_answer_us(panel):g} us"],
        [*style.doubts(panel.points), style.intervals(len(panel.seeds))],
    )  # fmt: skip
    words = Text(
        interval_finding(of), f"Incast of {panel.hosts - 1} flows to one host, {_names(of)}", caption
    )
    return sheet.finish(words, [_interval_key(number, size) for number, size in enumerate(sizes)])


def _answer_us(panel: Panel) -> float:
    return max(point.spec.agent.delay_us for point in panel.points if is_agents(point.cc))


def _names(of: Sequence[IncastCurve]) -> str:
    return ", ".join(sorted({transports.title(curve.cc) for curve in of}))


def _interval_curve(axes: Axes, curve: IncastCurve, number: int) -> None:
    at = sorted(curve.ratios)
    means = [statistics.fmean(curve.ratios[us]) for us in at]
    half_widths = [interval_pct(curve.ratios[us]) or 0.0 for us in at]
    axes.errorbar(
        at,
        means,
        yerr=half_widths,
        color=_COLOURS[number % 4],
        marker=_MARKERS[number % 4],
        ms=4,
        lw=1.4,
        capsize=2,
    )
    axes.set_xscale("log")
    axes.set_xticks(at)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())


def _interval_key(number: int, packets: int) -> Line2D:
    look = {"color": _COLOURS[number % 4], "marker": _MARKERS[number % 4]}
    return Line2D([], [], lw=1.4, ms=4, label=f"{packets} packets", **look)  # type: ignore[arg-type]


def interval_finding(of: Sequence[IncastCurve]) -> str:
    """Return the title: by how much the last completion differs from that without an agent."""
    means = [statistics.fmean(ratios) for curve in of for ratios in curve.ratios.values()]
    return f"The last flow takes {min(means):.2f} to {max(means):.2f} times as long as without an agent"


_WINDOWS_HEIGHT_IN = 1.5
_MAX_CURVES, _MAX_SAMPLES = 4, 400


def draw_windows_beside(inputs: Inputs) -> list[Path]:
    """Draw one chart for points that differ at most in congestion control; see `registry.Chart.draw`."""
    return draw_joined("windows_beside", inputs, _windows_chart)


def mean_pkts(point: Point) -> float | None:
    """Return the mean window of the first flow in the measured window; None without samples."""
    sockets = point.read_table("sockets")
    if sockets is None or not len(sockets):
        return None
    chosen = (sockets["t_s"] >= 0) & (sockets["flow"] == 0)
    return float(sockets["cwnd_pkts"][chosen].mean()) if chosen.any() else None


def _windows_chart(panel: Panel) -> Figure | None:
    shown = [group[0] for group in by_transport(panel) if mean_pkts(group[0]) is not None][:_MAX_CURVES]
    if len(shown) < 2:
        return None
    sheet = Sheet(*[(_WINDOWS_HEIGHT_IN, 1)] * len(shown))
    top = max(_windows_curve(row[0], point) for row, point in zip(sheet.axes, shown, strict=True))
    for row, point in zip(sheet.axes, shown, strict=True):
        row[0].set_ylim(0, 1.05 * top)
        row[0].set_ylabel(axis_labels.CWND, fontsize=8.5)
        row[0].set_title(f"{_name(point)}: mean {mean_pkts(point):.0f} packets")
    sheet.axes[-1][0].set_xlabel(axis_labels.SECONDS)
    means = ", ".join(f"{_name(point)} {mean_pkts(point):.0f}" for point in shown)
    caption = Caption(
        style.parameters(panel, congestion=""),
        [*style.doubts(shown), "Seconds count from the opening of the measured window."],
    )
    words = Text(f"Mean window in packets: {means}", style.subtitle(panel, "congestion windows"), caption)
    return sheet.finish(words, list[Line2D]())


def _name(point: Point) -> str:
    return transports.title(point.cc)


def _windows_curve(axes: Axes, point: Point) -> float:
    """Draw the window; return its largest value."""
    sockets = point.read_table("sockets")
    assert sockets is not None
    chosen = np.flatnonzero(sockets["flow"] == 0)
    chosen = chosen[:: max(1, len(chosen) // _MAX_SAMPLES)]
    t_s, cwnd = sockets["t_s"][chosen], sockets["cwnd_pkts"][chosen]
    dash = style.SUSPECT_DASH if point.suspect else "-"
    axes.plot(t_s, cwnd, color=transports.look(point.cc).colour, lw=1, ls=dash)
    if point.suspect:
        style.hatch(axes)
    axes.set_xlim(float(t_s.min()), max(float(t_s.max()), 1e-3))
    return float(cwnd.max())
