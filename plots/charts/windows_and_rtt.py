"""Congestion windows over time, and the round-trip time of every flow with its deviation (CS244 2013, figure
11).

Windows: the subflows of the fastest, the median and the slowest flow; one column per transport, each with its
own scale. Round-trip times: one row per transport, flows sorted by the sender's own smoothed estimate (line
and band); pings that took the same paths are drawn over it (dots and whiskers).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from analysis.quantities import ONE_WAY_S_MAX
from engines.registry import SIMULATED_HOSTS
from harness.results.point_results import PointResult
from model.result import FlowRow, Table
from plots.data import Inputs, Panel
from plots.shared import axis_labels, kinds, saving, style
from plots.shared.kinds import Floats
from plots.shared.sheet import Sheet

_MAX_COLUMNS, _MAX_SAMPLES = 2, 160


@dataclass(frozen=True, eq=False)
class FlowWindows:
    """The flows chosen of a point (fastest, median, slowest), its samples, and the mean window in packets."""

    point: PointResult
    flows: dict[str, FlowRow]
    sockets: Table
    mean_pkts: float


def chosen_flows(flows: Sequence[FlowRow]) -> dict[str, FlowRow]:
    """Return the fastest, the median and the slowest flow; fewer where there are fewer than three."""
    ranked = sorted(flows, key=lambda flow: -flow.goodput_mbps)
    if len(ranked) < 3:
        return dict(zip(("fastest", "slowest"), ranked, strict=False))
    return {"fastest": ranked[0], "median": ranked[len(ranked) // 2], "slowest": ranked[-1]}


def windows(point: PointResult) -> FlowWindows | None:
    """Return what to draw of a point; None where sockets were not sampled."""
    sockets = point.read_table("sockets")
    if sockets is None or not len(sockets):
        return None
    sampled = set(np.unique(sockets["flow"]).tolist())
    flows = chosen_flows([flow for flow in point.under_test if flow.flow in sampled])
    if not flows:
        return None
    measured = sockets["t_s"] >= 0
    return FlowWindows(
        point, flows, sockets, float(sockets["cwnd_pkts"][measured if measured.any() else ...].mean())
    )


@saving.per_panel()
def cwnd(panel: Panel, _: Inputs) -> Figure | None:
    columns, absent, left_out = panel.first_of_each(_MAX_COLUMNS, windows)
    if not columns:
        return None
    names = max((list(column.flows) for column in columns), key=len)
    sheet = Sheet(*[(1.2, len(columns))] * len(names))
    for row, name in zip(sheet.axes, names, strict=True):
        for axes, column in zip(row, columns, strict=True):
            _flow(axes, column, name)
            axes.tick_params(labelbottom=row is sheet.axes[-1])
        row[0].set_ylabel(axis_labels.CWND, fontsize=8.5)
    for column, of_column in zip(columns, zip(*sheet.axes, strict=True), strict=True):
        top = max(4.0, *(float(axes.dataLim.y1) for axes in of_column))
        for axes in of_column:  # one scale, to compare the flows of a transport
            axes.set_ylim(0, 1.05 * top)
            axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        of_column[0].set_title(f"{style.name(column.point)}\n{of_column[0].get_title(loc='left')}")
        of_column[-1].set_xlabel(axis_labels.SECONDS)
    points = [column.point for column in columns]
    mean = style.with_transports([(column.point, f"{column.mean_pkts:.0f} packets") for column in columns])
    subflows = max(point.subflows for point in points)
    keys = {0: "TCP, or first subflow", 1: "second", subflows - 1: "last"} if subflows > 1 else {}
    return sheet.finish(
        f"Mean congestion window: {mean}",
        style.subtitle(panel, "congestion windows"),
        style.parameters(panel),
        [
            *style.doubts(points),
            *style.choice(panel, points, left_out),
            "Seconds count from the opening of the measured window.",
        ],
        [Line2D([], [], color=_colour(n, subflows), label=words) for n, words in keys.items()],
        gaps=style.absences(absent),
    )


def _flow(axes: Axes, column: FlowWindows, kind: str) -> None:
    """Draw the subflows of one flow, over seconds since the opening of the measured window."""
    flow, point = column.flows.get(kind), column.point
    axes.grid(axis="x", color=style.GRID, linewidth=0.8)
    if flow is None:
        axes.set_title("no other flow")
        return
    of_flow = column.sockets["flow"] == flow.flow
    t_s, subflow, cwnd = (column.sockets[name][of_flow] for name in ("t_s", "subflow", "cwnd_pkts"))
    for number in range(point.subflows):
        mine = subflow == number
        step = max(1, -(-int(mine.sum()) // _MAX_SAMPLES))
        axes.plot(
            t_s[mine][::step], cwnd[mine][::step], color=_colour(number, point.subflows), linewidth=1,
        )  # fmt: skip
    if point.suspect:
        style.hatch(axes)
    axes.set_title(f"{kind}: {flow.goodput_mbps:.3g} Mb/s\n{flow.src}\N{RIGHTWARDS ARROW}{flow.dst}")
    axes.set_xlim(float(column.sockets["t_s"].min()), max(float(column.sockets["t_s"].max()), 1e-3))


def _colour(subflow: int, subflows: int) -> str:
    """Return the colour: the first subflow has TCP's, the others run from light to dark."""
    if subflow == 0:
        return style.TCP_COLOUR
    return style.colour(subflow + 1, subflows)


_MAX_ROWS, _MAX_FLOWS = 3, 160
_LOG_FROM = 20
"""The axis is logarithmic from this ratio of the slowest flow's mean to the fastest's on."""


@saving.per_panel()
def rtt(panel: Panel, inputs: Inputs) -> Figure | None:
    """Draw levels of `ONE_WAY_S_MAX`, which round trips exceed, too."""
    rows, absent, left_out = panel.first_of_each(_MAX_ROWS, lambda point: point if _mean_ms(point) else None)
    if not rows:
        return None
    sheet = Sheet(*[(1.5, 1)] * len(rows))
    log, full = _unlike(rows), panel.full_queue_ms
    found = [] if panel.spec.link.queue_pkts else inputs.beside(panel, ONE_WAY_S_MAX)
    for (axes,), point in zip(sheet.axes, rows, strict=True):
        _row(axes, point, max(panel.subflows), log)
        for level in found:
            if level.subflows == point.subflows:
                style.published_line(axes, 1000 * level.value)
    _rtt_scale(kinds.every(sheet.axes), log, panel)
    sheet.axes[-1][0].set_xlabel("rank of flow, shortest to longest mean RTT")
    means = [(row, style.milliseconds(mean)) for row in rows for mean in _mean_ms(row)]
    keys = style.published_key(found, panel)
    for key in keys:
        key.set_label(f"{key.get_label()}: longest delay one way, at least")
    simulated = panel.spec.engine in SIMULATED_HOSTS
    thinned = any(len(point.under_test) > _MAX_FLOWS for point in rows)
    return sheet.finish(
        f"Mean RTT: {style.with_transports(means)}",
        style.subtitle(panel, "round-trip time of every flow"),
        style.parameters(panel),
        [
            *style.doubts(rows),
            f"Dotted: what one full queue adds, {style.milliseconds(full)}." if full else "",
            "Pings: the time of a small packet if no queue had changed meanwhile." if simulated else "",
            *style.choice(panel, rows, left_out),
            "Deviations are drawn upwards only." if log else "",
            f"{_MAX_FLOWS} of the flows, evenly spaced in rank, are drawn." if thinned else "",
        ],
        _rtt_legend(rows),
        keys,
        gaps=style.absences(absent),
    )


def _mean_ms(point: PointResult) -> list[float]:
    """Return the mean over the flows by the kernel, else by pings; None where neither was measured."""
    for name in ("srtt_ms_mean", "ping_ms_mean"):
        known = [value for flow in point.under_test if not math.isnan(value := getattr(flow, name))]
        if known:
            return [statistics.fmean(known)]
    return []


def _unlike(rows: Sequence[PointResult]) -> bool:
    """Return whether the means of the flows differ too much for a linear axis."""
    means = [
        m for p in rows for f in p.under_test for m in (f.srtt_ms_mean, f.ping_ms_mean) if not math.isnan(m)
    ]
    return max(means) > _LOG_FROM * min(means)


def _row(axes: Axes, point: PointResult, most: int, log: bool) -> None:
    """Draw the flows of one transport in the order of their mean RTT."""
    flows = sorted(point.under_test, key=_order)
    ranks = np.unique(np.linspace(1, len(flows), min(len(flows), _MAX_FLOWS)).round().astype(int))
    shown = [flows[rank - 1] for rank in ranks]
    suspect = point.suspect
    mean, low, high = _reach([(flow.srtt_ms_mean, flow.srtt_ms_std) for flow in shown], log)
    (line,) = axes.plot(
        ranks, mean, color=style.colour(point.subflows, most), lw=2, zorder=3,
        ls=style.SUSPECT_DASH if suspect else "-", marker="s" if len(ranks) == 1 else "",
    )  # fmt: skip
    axes.fill_between(ranks, low, high, color=line.get_color(), alpha=0.25, lw=2 if len(ranks) == 1 else 0)
    mean, low, high = _reach([(flow.ping_ms_mean, flow.ping_ms_std) for flow in shown], log)
    axes.vlines(ranks, low, high, color=style.FAINT, lw=0.5, zorder=4)
    axes.plot(
        ranks, mean, ls="", marker="o", markersize=2.6, color=style.INK,
        markerfacecolor="white" if suspect else style.INK, markeredgewidth=0.6, zorder=5,
    )  # fmt: skip
    deaf = [
        rank for rank, flow in enumerate(flows, 1) if flow.pings_sent and flow.pings_lost == flow.pings_sent
    ]
    axes.plot(
        deaf, [0.96] * len(deaf), "x", color=style.INK, markersize=4, transform=axes.get_xaxis_transform()
    )
    axes.set_title(_title(point))
    axes.set_xlim(1 - 0.02 * max(len(flows), 2), 1.02 * max(len(flows), 2))
    axes.set_xticks(style.rank_ticks(len(flows)))
    if suspect:
        style.hatch(axes)


def _reach(spread: Sequence[tuple[float, float]], log: bool) -> tuple[Floats, Floats, Floats]:
    """Return the means and the ends of their deviation.

    On a logarithmic axis it is drawn upwards only, because a deviation as large as its mean has no lower end
    there.
    """
    mean, std = np.array(spread).T
    return mean, mean if log else np.maximum(mean - std, 0), mean + std


def _order(flow: FlowRow) -> tuple[bool, float]:
    """Return the order of the flows: by the kernel's mean, else by that of pings, unmeasured ones last."""
    mean = flow.ping_ms_mean if math.isnan(flow.srtt_ms_mean) else flow.srtt_ms_mean
    return (math.isnan(mean), mean)


def _title(point: PointResult) -> str:
    sent, lost = (
        sum(getattr(flow, f"pings_{what}") for flow in point.under_test) for what in ("sent", "lost")
    )
    loss = f"; {100 * lost / sent:.1f} % of {sent} pings lost" if sent else ""
    return f"{style.name(point)}{loss}"


def _rtt_scale(every: Sequence[Axes], log: bool, panel: Panel) -> None:
    """Set one scale for all rows, in seconds if flows wait for seconds, and draw the delay of a full queue as
    a line."""
    low = min(float(axes.dataLim.minposy) for axes in every)
    high = max(float(axes.dataLim.y1) for axes in every)
    for axes in every:
        if log:
            axes.set_yscale("log")
            axes.set_ylim(low / 1.5, 1.5 * high)
        else:
            axes.set_ylim(0, 1.1 * high)
            axes.yaxis.set_major_locator(MaxNLocator(5))
        axes.yaxis.set_major_formatter(lambda ms, _: f"{ms / 1000:g}" if high >= 3000 else f"{ms:g}")
        axes.set_ylabel(f"RTT ({'s' if high >= 3000 else 'ms'})")
        if panel.full_queue_ms:
            axes.axhline(panel.full_queue_ms, color=style.INK, linestyle=":", linewidth=1, zorder=2)


def _rtt_legend(rows: Sequence[PointResult]) -> list[Artist]:
    """Return the legend of the kinds of measurement, in grey; colours are those of transports."""
    flows = [flow for point in rows for flow in point.under_test]
    sender = Line2D([], [], color=style.FAINT, lw=2, label="sender's srtt, band: std")
    pings = Line2D([], [], color=style.INK, marker="o", markersize=2.6, lw=0.5, label="pings, whisker: std")
    lost = Line2D([], [], color=style.INK, marker="x", markersize=4, lw=0, label="none came back")
    return [
        *([sender] if any(not math.isnan(flow.srtt_ms_mean) for flow in flows) else []),
        *([pings] if any(not math.isnan(flow.ping_ms_mean) for flow in flows) else []),
        *([lost] if any(0 < flow.pings_sent == flow.pings_lost for flow in flows) else []),
    ]
