"""Laws of TCP and of links beside measurements: a filled link, the sawtooth, waiting pings, the square-root
law, and conservation of packets.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis import laws
from analysis.plausibility import Balance, balances, unaccounted, undelivered_bytes
from analysis.quantities import EMPTY_WAY_MS, WINDOW_TOP_PKTS
from harness.results.point_results import PointResult
from model.result import Table
from model.spec import RunSpec
from plots.data import Inputs, Panel, common, panels, together
from plots.shared import axis_labels, kinds, saving, style
from plots.shared.sheet import Sheet

_COMPARED = ("link.rate_mbps", "seconds")


def _square(axes: Axes, x: float, y: float, doubt: bool, marker: str = "s", size: float = 6.0) -> None:
    face = "white" if doubt else style.TCP_COLOUR
    axes.plot(x, y, marker, color=style.TCP_COLOUR, markerfacecolor=face, ms=size, zorder=4)


def _theory_key(name: str) -> list[Artist]:
    return [kinds.dashed_key(f"theory: {name}")]


def _even(axes: Axes, reach: float, label: str) -> None:
    """Make the axis of what is off theory reach as far up as down, with a line at 0."""
    axes.axhline(0, color="black", ls=style.PUBLISHED_DASH, lw=1.2)
    axes.set_ylim(-reach, reach)
    axes.set_ylabel(label, fontsize=8.5)


def _of_rates(inputs: Inputs) -> Iterable[tuple[RunSpec, list[Panel]]]:
    measured = (panel for panel in panels(inputs.points, inputs.expected) if panel.best(1))
    for group in together(measured, *_COMPARED):
        yield group[0].spec.neutral(*_COMPARED), group


def missed_bytes(point: PointResult) -> float:
    """Return the bytes that the link could carry and the point's slowest flow did not receive."""
    room = laws.fill_bytes(point.rate_mbps, point.spec.seconds)
    return max((room - flow.bytes_received for flow in point.under_test), key=abs, default=room)


def fill_finding(points: Sequence[PointResult]) -> str:
    """Return the title: in bytes where they are few, else in percent."""
    worst = max(points, key=lambda point: abs(missed_bytes(point)))
    missed = missed_bytes(worst)
    rates = f"at {len(points)} link rates" if len(points) > 1 else f"at {worst.rate_mbps:g} Mb/s"
    if abs(missed) < laws.SEGMENT_BYTES:
        return f"A flow alone receives what its link can carry, within {abs(missed):.0f} bytes, {rates}"
    share = 100 - 100 * missed / laws.fill_bytes(worst.rate_mbps, worst.spec.seconds)
    return f"A flow alone reaches at least {share:.2f} % of the capacity of its link, {rates}"


@saving.per_group(_of_rates)
def fill(of: Sequence[Panel], _: Inputs) -> Figure:
    points = [panel.best(1)[0] for panel in of]
    sheet = Sheet((2.6, 1), (0.9, 1))
    axes, below = kinds.every(sheet.axes)
    rates = [point.rate_mbps for point in points]
    ends = (min(rates) / 2, max(rates) * 2)
    off = [-missed_bytes(point) / laws.SEGMENT_BYTES for point in points]
    for point, segments in zip(points, off, strict=True):
        _received(axes, point)
        _square(below, point.rate_mbps, segments, point.suspect)
    kinds.dashed(axes, ends, [laws.fill_bytes(rate, 8e-6) for rate in ends])
    style.log_axes(axes)
    axes.set_xlim(ends[0], ends[1] * 8)
    axes.set_ylabel(axis_labels.GOODPUT_MBPS)
    style.plain_log(below.xaxis)
    _even(below, 1.3 * max(1.0, *map(abs, off)), "received minus\ncomputed (segments)")
    below.set_xlabel("link rate (Mb/s)")
    below.set_xlim(axes.get_xlim())
    subtitle = f"{style.network(of[0].spec)}: one TCP flow, payload received"
    theory = kinds.dashed_key("1448 payload bytes in a frame of 1514")
    return sheet.finish(fill_finding(points), subtitle, style.parameters(*of), style.doubts(points), [theory])


def _received(axes: Axes, point: PointResult) -> None:
    goodput = sum(flow.goodput_mbps for flow in point.under_test)
    received = sum(flow.bytes_received for flow in point.under_test)
    _square(axes, point.rate_mbps, goodput, point.suspect)
    missed = round(missed_bytes(point))
    label = f"{received:,} bytes\n{abs(missed):,} {'more than computed' if missed < 0 else 'missing'}"
    axes.annotate(
        label.replace(",", "\N{THIN SPACE}"), (point.rate_mbps, goodput), (6, -4),
        textcoords="offset points", va="top", fontsize=7.5,
    )  # fmt: skip


_TEETH = 4


def textbook(top_pkts: float, packet_s: float, until_s: float) -> tuple[list[float], list[float]]:
    """Return seconds and packets of a window that starts at half its top at 0. It grows by one packet per
    round trip, which lasts as many packet times as the window has packets; the repair takes one more."""
    t_s, window = [0.0], [top_pkts / 2]
    while t_s[-1] < until_s:
        began = t_s[-1]
        for pkts in np.linspace(top_pkts / 2, top_pkts, 60):
            t_s.append(began + packet_s * (float(pkts) ** 2 - (top_pkts / 2) ** 2) / 2)
            window.append(float(pkts))
        t_s += [t_s[-1], t_s[-1] + packet_s * top_pkts]
        window += [top_pkts / 2, top_pkts / 2]
    return t_s, window


def sawtooth_finding(saws: Sequence[laws.Sawtooth]) -> str:
    """Return the title: height, length and mean of the measured teeth."""
    top, rounds, mean = (
        statistics.fmean(of) for of in zip(*((s.top_pkts, s.rounds, s.mean_pct) for s in saws), strict=True)
    )
    return f"Halved at {top:.0f} packets, every {rounds:.0f} round trips; mean window {mean:.0f} % of that"


@saving.per_panel()
def sawtooth(panel: Panel, inputs: Inputs) -> Figure | None:
    """Draw the window beside the textbook's, which follows from the level of `WINDOW_TOP_PKTS`."""
    point = next(iter(panel.best(1)), None)
    sockets = point.read_table("sockets") if point else None
    saws = laws.sawteeth(sockets) if sockets is not None else []
    if point is None or sockets is None or not saws:
        return None
    sheet = Sheet((2.5, 1), (0.9, 1))
    axes, below = kinds.every(sheet.axes)
    first, last = saws[0].start_s - 1, saws[min(_TEETH, len(saws)) - 1].end_s + 1
    drawn = (sockets["flow"] == 0) & (sockets["t_s"] >= first) & (sockets["t_s"] <= last)
    dash = style.SUSPECT_DASH if point.suspect else "-"
    axes.plot(sockets["t_s"][drawn], sockets["cwnd_pkts"][drawn], color=style.TCP_COLOUR, lw=1.6, ls=dash)
    level = next(iter(inputs.beside(panel, WINDOW_TOP_PKTS)), None)
    if level is not None:
        packet_s = laws.packet_ms(panel.spec.link.rate_mbps) / 1000
        _textbook(axes, level.value, packet_s, saws[0].start_s, last)
        _off_textbook(below, sockets, saws[:_TEETH], level.value, packet_s)
    axes.set_xlim(first, last)
    below.set_xlim(first, last)
    axes.set_ylim(0, 1.15 * max(saw.top_pkts for saw in saws))
    below.set_xlabel(axis_labels.SECONDS)
    below.set_ylabel("minus textbook\n(packets)", fontsize=8.5)
    axes.set_ylabel("congestion window (packets)")
    shown = min(_TEETH, len(saws))
    return sheet.finish(
        sawtooth_finding(saws),
        f"{style.network(panel.spec)}: one TCP flow, a queue of {panel.spec.link.queue_pkts} packets",
        style.parameters(panel),
        [
            *style.doubts([point]),
            f"Shown: the first {shown} of {len(saws)} whole teeth; the title has the means of all.",
        ],
        _theory_key("W/2 round trips from W/2 to W, one for the repair") if level else [],
    )


def _off_textbook(
    axes: Axes, sockets: Table, saws: Sequence[laws.Sawtooth], top: float, packet_s: float
) -> None:
    """Draw the window minus the textbook's tooth, which begins with each tooth anew."""
    for saw in saws:
        mine = (sockets["flow"] == 0) & (sockets["t_s"] > saw.start_s) & (sockets["t_s"] < saw.end_s)
        at_s = sockets["t_s"][mine].astype(float)
        t_s, window = (np.array(of[:62]) for of in textbook(top, packet_s, packet_s))
        off = sockets["cwnd_pkts"][mine] - np.interp(at_s - saw.start_s, t_s, window)
        axes.plot(at_s, off, color=style.TCP_COLOUR, lw=1.2)
    reach = 1.2 * max(1.0, float(abs(axes.dataLim.y0)), float(abs(axes.dataLim.y1)))
    _even(axes, reach, "")


def _textbook(axes: Axes, top: float, packet_s: float, start_s: float, until_s: float) -> None:
    t_s, window = textbook(top, packet_s, until_s - start_s)
    kinds.dashed(axes, [start_s + t for t in t_s], window)
    for value, label in ((top, f"W = {top:.0f}"), (0.75 * top, "3/4 W"), (0.5 * top, "W / 2")):
        axes.axhline(value, color=style.FAINT, lw=0.6, zorder=1)
        axes.annotate(
            label, (0, value), (3, 2), xycoords=("axes fraction", "data"), textcoords="offset points",
            fontsize=7.5, color=style.FAINT, path_effects=style.halo(), zorder=6,
        )  # fmt: skip


def _waits(point: PointResult) -> laws.Waits | None:
    """Return pings with the queue that they met; None if either was not sampled."""
    pings, queues, times = (point.read_table(name) for name in ("pings", "queues", "queue_times"))
    if pings is None or queues is None or times is None:
        return None
    return laws.waits(pings, queues, times, laws.way_out(point.ports))


@saving.per_panel()
def wait(panel: Panel, inputs: Inputs) -> Figure | None:
    """Draw pings beside the delay that the packets before them explain, from the level of `EMPTY_WAY_MS` on;
    below how far each ping is from it."""
    point = next(iter(panel.best(1)), None)
    waits = _waits(point) if point else None
    if point is None or waits is None:
        return None
    packet_ms = laws.packet_ms(panel.spec.link.rate_mbps)
    sheet = Sheet((2.5, 1), (1.0, 1))
    axes, below = kinds.every(sheet.axes)
    most = float(waits.queued.max())
    dots: dict[str, Any] = {"color": style.TCP_COLOUR, "alpha": 0.4, "ls": "", "marker": ".", "ms": 3}
    axes.plot(waits.queued, waits.out_ms, zorder=3, **dots)
    level = next(iter(inputs.beside(panel, EMPTY_WAY_MS)), None)
    if level is not None:
        below.plot(waits.queued, (waits.out_ms - level.value) / packet_ms - waits.queued, zorder=3, **dots)
        below.fill_between([0.0, most], -1, 0, color=style.GRID, zorder=1)
        kinds.dashed(below, [0.0, most], [0.0, 0.0])
        expected = level.value + packet_ms * np.array([0.0, most])
        kinds.dashed(axes, [0.0, most], expected.tolist())
        axes.fill_between([0.0, most], expected - packet_ms, expected, color=style.GRID, zorder=1)
    if point.suspect:
        style.hatch(axes)
    axes.set_xlim(0, most * 1.03)
    axes.set_ylim(0, float(waits.out_ms.max()) * 1.08)
    below.set_xlim(axes.get_xlim())
    below.set_xlabel("packets queued before the ping")
    below.set_ylabel("off theory\n(packet times)", fontsize=8.5)
    axes.set_ylabel("one-way delay (ms)")
    slope, nothing_queued = waits.line
    each = f"{slope / packet_ms:.3f} packet times for each packet queued"
    return sheet.finish(
        f"A ping takes {nothing_queued:.1f} ms, and {each}",
        f"{style.network(panel.spec)}: pings beside one TCP flow, {len(waits.queued)} of them",
        style.parameters(panel),
        [
            *style.doubts([point]),
            f"A packet time is {packet_ms:.4g} ms; packets at faster links count for proportionally less.",
        ],
        _theory_key("empty path and packets queued; grey: the first partly sent") if level else [],
    )


_MODEL = (0, (1, 1.2))


@dataclass(frozen=True)
class Rate:
    """One loss rate: the share of packets lost, and packets per round trip of every flow."""

    point: PointResult
    loss: float
    pkts: tuple[float, ...]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.pkts)


def _of_losses(inputs: Inputs) -> Iterable[tuple[RunSpec, list[Panel]]]:
    measured = (p for p in panels(inputs.points, inputs.expected) if any(map(rate_of, p.best(1))))
    for group in together(measured, "link.loss"):
        yield group[0].spec.neutral("link.loss"), group


def rate_of(point: PointResult) -> Rate | None:
    """Return None where nothing was lost, or round trips were not sampled."""
    loss = laws.lost_share(point.ports)
    pkts = tuple(pkts for flow in point.under_test if (pkts := laws.pkts_per_round(flow)) > 0)
    return Rate(point, loss, pkts) if loss > 0 and pkts else None


def loss_finding(rates: Sequence[Rate]) -> str:
    """Return the title: the constant where losses are rare."""
    rare = [rate.mean * rate.loss**0.5 for rate in rates if rate.loss < 1.2 * laws.TIMEOUTS_FROM]
    if not rare:
        return ""
    return f"With p up to 1 %, {statistics.fmean(rare):.2f} / \N{SQUARE ROOT}p packets per round trip"


@saving.per_group(_of_losses)
def loss_law(of: Sequence[Panel], inputs: Inputs) -> Figure:
    found = (rate_of(point) for panel in of for point in panel.best(1))
    rates = sorted(filter(None, found), key=lambda rate: rate.loss)
    sheet = Sheet((2.8, 1), (1.1, 1))
    axes, below = kinds.every(sheet.axes)
    rto_rtts = _rto_rtts(rates)
    for rate in rates:
        axes.plot([rate.loss] * len(rate.pkts), rate.pkts, "o", color=style.TCP_COLOUR, ms=2.2, alpha=0.45)
        _square(axes, rate.loss, rate.mean, rate.point.suspect)
        for law, marker in ((laws.mathis_pkts(rate.loss), "s"), (laws.padhye_pkts(rate.loss, rto_rtts), "o")):
            hollow = marker == "o" or rate.point.suspect
            _square(below, rate.loss, 100 * (rate.mean / law - 1), hollow, marker, 5)
    losses = np.geomspace(rates[0].loss / 1.5, min(0.5, rates[-1].loss * 1.5), 100)
    root = "\N{SQUARE ROOT}"
    theories = (
        (laws.mathis_pkts, style.PUBLISHED_DASH, f"{root}(3/2) / {root}p (Mathis et al., CCR 1997)"),
        (lambda p: laws.padhye_pkts(p, rto_rtts), _MODEL,
         f"with timeouts of {rto_rtts:.1f} round trips (Padhye et al., SIGCOMM 1998)"),
    )  # fmt: skip
    keys: list[Artist] = []
    for law_of, dashes, name in theories:
        look: dict[str, Any] = {"color": "black", "ls": dashes, "lw": 1.3, "zorder": 4}
        keys += axes.plot(losses, [law_of(p) for p in losses], label=f"theory: {name}", **look)
    style.log_axes(axes)
    axes.set_ylabel("packets per round trip")
    below.axhline(0, color="black", ls=style.PUBLISHED_DASH, lw=1.2)
    style.plain_log(below.xaxis)
    below.set_xlabel("share of packets lost, p")
    below.set_ylabel("off theory (%)\nsquare: root law\nring: with timeouts", fontsize=8)
    below.set_xlim(axes.get_xlim())
    flows = max(len(rate.pkts) for rate in rates)
    return sheet.finish(
        loss_finding(rates) or inputs.title,
        f"{style.network(of[0].spec)}: separate TCP flows, random losses",
        style.parameters(common(of, "link.loss")),
        [
            *style.doubts([rate.point for rate in rates]),
            f"Dots: one flow each, n = {flows} per rate; marker: their mean.",
        ],
        keys,
    )


def _rto_rtts(rates: Sequence[Rate]) -> float:
    """Return the minimum RTO in mean round trips."""
    rtt_ms = statistics.fmean(flow.srtt_ms_mean for rate in rates for flow in rate.point.under_test)
    return laws.MIN_RTO_MS / rtt_ms


_NAMES = {"edge": "edge", "agg": "aggregation", "core": "core"}
_ARRIVED, _SENT, _DROPPED = "#56B4E9", "#009E73", "#D55E00"


def conserved_finding(point: PointResult) -> str:
    """Return the title."""
    lost = sum(port.drops + port.lost for port in point.ports)
    vanished, missing = unaccounted(point.ports), undelivered_bytes(point.under_test)
    return (
        f"{lost:,} packets were dropped or lost, {vanished:,} are unaccounted for, "
        f"{missing:,} bytes not delivered"
    ).replace(",", "\N{THIN SPACE}", 1)


@saving.per_panel()
def conserved(panel: Panel, _: Inputs) -> Figure | None:
    """Draw a point with flows of given size."""
    ran = [point for n in panel.subflows for point in panel.best(n)]
    point = next((p for p in ran if balances(p.ports) and any(f.size_bytes for f in p.under_test)), None)
    if point is None:
        return None
    layers: dict[str, list[Balance]] = {}
    for balance in balances(point.ports):
        layers.setdefault(balance.layer, []).append(balance)
    sheet = Sheet((0.62 * len(layers), 1))
    axes = sheet.axes[0][0]
    for row, (layer, of) in enumerate(layers.items()):
        _balance(axes, row, of)
        axes.annotate(
            _NAMES.get(layer, layer), (0, row - 0.42), (2, 3), textcoords="offset points", fontsize=8.5
        )
    if point.suspect:
        style.hatch(axes)
    axes.set_ylim(len(layers) - 0.4, -0.65)
    axes.set_yticks([])
    axes.grid(axis="x", color=style.GRID, linewidth=0.8)
    axes.set_xlabel("packets, all switches of a layer")
    shown = ((_ARRIVED, "received"), (_SENT, "sent on"), (_DROPPED, "dropped"))
    who = f"{style.network(panel.spec)}, {panel.hosts} hosts, {style.transport(point.subflows)}"
    lost = sum(port.lost for port in point.ports)
    return sheet.finish(
        conserved_finding(point),
        f"{who}: transfers, until the network is idle",
        style.parameters(panel),
        [
            *style.doubts([point]),
            f"Counted at every port until the end; {lost} packets lost between switches are not in the bars.",
        ],
        [Patch(facecolor=colour, label=words) for colour, words in shown],
    )


def _balance(axes: Axes, row: int, of: Sequence[Balance]) -> None:
    arrived, sent, dropped = (sum(getattr(b, name) for b in of) for name in ("arrived", "sent", "dropped"))
    axes.barh(row - 0.12, arrived, 0.26, color=_ARRIVED)
    axes.barh(row + 0.18, sent, 0.26, color=_SENT)
    axes.barh(row + 0.18, dropped, 0.26, left=sent, color=_DROPPED)
    left_over = sum(abs(b.unaccounted) for b in of)
    label = (
        f"{arrived} = {sent} + {dropped}" if not left_over else f"{left_over} of {arrived} unaccounted for"
    )
    axes.annotate(
        label, (0, row + 0.18), (4, 0), textcoords="offset points", va="center", fontsize=8, color="white"
    )
