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

from analysis.quantities import ONE_WAY_S_MAX
from engines.registry import SIMULATED_HOSTS
from harness.results.point_results import PointResult
from model.result import FlowRow, Table
from plots.data import Inputs, Panel
from plots.kinds.axis import Axis
from plots.kinds.lines import Level, Line, Lines, published
from plots.picture import Page, Picture, Row, alike
from plots.shared import axis_labels, style
from plots.shared.kinds import Look

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


def _cwnd(panel: Panel, _: Inputs) -> Page | None:
    columns, absent, left_out = panel.first_of_each(_MAX_COLUMNS, windows)
    if not columns:
        return None
    names = max((list(column.flows) for column in columns), key=len)
    points = [column.point for column in columns]
    means = style.with_transports([(column.point, f"{column.mean_pkts:.0f} packets") for column in columns])
    subflows = max(point.subflows for point in points)
    keys = {0: "TCP, or first subflow", 1: "second", subflows - 1: "last"} if subflows > 1 else {}
    return Page(
        rows=[Row(1.2, [_flow(of, name, names) for of in columns], y=axis_labels.CWND) for name in names],
        about=style.subtitle(panel, "congestion windows"), numbers={"means": means}, points=points,
        settings=style.parameters(panel), one_scale=True,
        notes=[
            *style.choice(panel, points, left_out), "Seconds count from the opening of the measured window."
        ],
        keys=[Look(words, _colour(n, subflows), "").key() for n, words in keys.items()],
        gaps=style.absences(absent),
    )  # fmt: skip


cwnd = Picture(groups=alike(), page=_cwnd, finding="Mean congestion window: {{ means }}")


def _flow(column: FlowWindows, name: str, of_page: Sequence[str]) -> Lines:
    """Return a plot of the subflows of the flow that has this name."""
    point, flow, sockets = column.point, column.flows.get(name), column.sockets
    lines, of_flow = [], flow.flow if flow else None
    for number in range(point.subflows) if flow else ():
        mine = np.flatnonzero((sockets["flow"] == of_flow) & (sockets["subflow"] == number))
        mine = mine[:: max(1, -(-len(mine) // _MAX_SAMPLES))]
        look = Look("", _colour(number, point.subflows), "")
        lines.append(Line(sockets["t_s"][mine], sockets["cwnd_pkts"][mine], look, 1.0))
    last, title = name == of_page[-1], f"{style.name(point)}\n" if name == of_page[0] else ""
    if flow:
        title += f"{name}: {flow.goodput_mbps:.3g} Mb/s\n{flow.src}\N{RIGHTWARDS ARROW}{flow.dst}"
    low, high = float(sockets["t_s"].min()), max(float(sockets["t_s"].max()), 1e-3)
    x = Axis(axis_labels.SECONDS if last else "", low=low, high=high, bare=not last, grid=True)
    y = Axis(low=0, room=1.05, covers=(0, 4.2), most_ticks=4)
    return Lines(lines, x, y, title if flow else f"{title}no other flow", hatched=point.suspect)


def _colour(subflow: int, subflows: int) -> str:
    """Return the colour: the first subflow has TCP's, the others run from light to dark."""
    if subflow == 0:
        return style.TCP_COLOUR
    return style.colour(subflow + 1, subflows)


_MAX_ROWS, _MAX_FLOWS = 3, 160
_RANK = "rank of flow, shortest to longest mean RTT"
_PINGS = "Pings: the time of a small packet if no queue had changed meanwhile."
_LOG_FROM = 20
"""The axis is logarithmic from this ratio of the slowest flow's mean to the fastest's on."""


def _rtt(panel: Panel, inputs: Inputs) -> Page | None:
    """Draw levels of `ONE_WAY_S_MAX`, which round trips exceed, too."""
    rows, absent, left_out = panel.first_of_each(_MAX_ROWS, lambda point: point if _mean_ms(point) else None)
    if not rows:
        return None
    full, flows = panel.full_queue_ms, [flow for point in rows for flow in point.under_test]
    both = (ms for flow in flows for ms in (flow.srtt_ms_mean, flow.ping_ms_mean))
    every = [ms for ms in both if not math.isnan(ms)]
    log, unit = max(every) > _LOG_FROM * min(every), 1000.0 if max(every) >= 3000 else 1.0
    y = Axis(f"RTT ({'s' if unit > 1 else 'ms'})", log, None if log else 0, room=None if log else 1.1)
    found = [] if panel.spec.link.queue_pkts else inputs.beside(panel, ONE_WAY_S_MAX)
    levels = {of.subflows: published(1000 * of.value / unit) for of in found}
    full_queue = [Level(full / unit, ":", style.INK, 1.0)] if full else []
    plots = []
    for point in rows:
        beside = [levels[point.subflows]] if point.subflows in levels else []
        plots.append(_rtt_plot(point, max(panel.subflows), y, unit, [*full_queue, *beside]))
    means = [(row, style.milliseconds(mean)) for row in rows for mean in _mean_ms(row)]
    keys = style.published_key(found, panel)
    for key in keys:
        key.set_label(f"{key.get_label()}: longest delay one way, at least")
    *above, lowest = plots
    return Page(
        rows=[*(Row(1.5, [plot]) for plot in above), Row(1.5, [lowest], _RANK)],
        about=style.subtitle(panel, "round-trip time of every flow"), points=rows,
        numbers={"means": style.with_transports(means)}, settings=style.parameters(panel), one_scale=True,
        notes=[
            f"Dotted: what one full queue adds, {style.milliseconds(full)}." if full else "",
            _PINGS if panel.spec.engine in SIMULATED_HOSTS else "",
            *style.choice(panel, rows, left_out),
            "Deviations are drawn upwards only." if log else "",
            f"{_MAX_FLOWS} of the flows, evenly spaced in rank, are drawn."
            if any(len(point.under_test) > _MAX_FLOWS for point in rows) else "",
        ],
        keys=_rtt_legend(flows), more_keys=keys, gaps=style.absences(absent),
    )  # fmt: skip


rtt = Picture(groups=alike(), page=_rtt, finding="Mean RTT: {{ means }}")


def _mean_ms(point: PointResult) -> list[float]:
    """Return the mean over the flows by the kernel, else by pings; None where neither was measured."""
    for name in ("srtt_ms_mean", "ping_ms_mean"):
        known = [value for flow in point.under_test if not math.isnan(value := getattr(flow, name))]
        if known:
            return [statistics.fmean(known)]
    return []


def _rtt_plot(point: PointResult, most: int, y: Axis, unit: float, levels: Sequence[Level]) -> Lines:
    """Return a plot of the flows of one transport in the order of their mean RTT, in `unit` ms."""
    flows, colour = sorted(point.under_test, key=_order), style.colour(point.subflows, most)
    count, doubt = len(flows), point.suspect
    ranks = np.unique(np.linspace(1, count, min(count, _MAX_FLOWS)).round().astype(int))
    spread = [(f.srtt_ms_mean, f.srtt_ms_std, f.ping_ms_mean, f.ping_ms_std) for f in flows]
    srtt, srtt_std, ping, ping_std = np.array(spread)[ranks - 1].T / unit
    lost = [n for n, f in enumerate(flows, 1) if f.pings_sent and f.pings_lost == f.pings_sent]
    lines = [
        Line(ranks, srtt, Look("", colour, "s").doubted(doubt), 2, 6 if count == 1 else 0, std=srtt_std),
        Line(ranks, ping, Look("", style.INK, "o", ""), size=2.6, hollow=doubt, std=ping_std, whiskers=True),
        Line(lost, [0.96] * len(lost), Look("", style.INK, "x", ""), size=4, share=True),
    ]
    ends = max(count, 2)
    x = Axis(low=1 - 0.02 * ends, high=1.02 * ends, ticks=style.rank_ticks(count))
    return Lines(lines, x, y, _title(point), levels=levels, hatched=doubt)


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


def _rtt_legend(flows: Sequence[FlowRow]) -> list[Artist]:
    """Return the legend of the kinds of measurement, in grey; colours are those of transports."""
    srtt = Look("sender's srtt, band: std", style.FAINT, "").key(width=2)
    pings = Look("pings, whisker: std", style.INK).key(size=2.6, width=0.5)
    lost = Look("none came back", style.INK, "x", "").key(size=4)
    return [
        *([srtt] if any(not math.isnan(flow.srtt_ms_mean) for flow in flows) else []),
        *([pings] if any(not math.isnan(flow.ping_ms_mean) for flow in flows) else []),
        *([lost] if any(0 < flow.pings_sent == flow.pings_lost for flow in flows) else []),
    ]
