"""Laws of TCP and of links beside measurements: a filled link, the sawtooth, waiting pings, the square-root
law, and conservation of packets.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from analysis import laws
from analysis.plausibility import Balance, balances, unaccounted, undelivered_bytes
from analysis.quantities import EMPTY_WAY_MS, WINDOW_TOP_PKTS
from model.result import Table
from plots.data import Inputs, Level, Panel, Point, common, panels, together
from plots.shared import axis_labels, saving, style
from plots.shared.sheet import Caption, Sheet, Text

_FILL_HEIGHT_IN, _FILL_RESIDUAL_IN = 2.6, 0.9
_COMPARED = ("link.rate_mbps", "seconds")


def draw_fill(inputs: Inputs) -> list[Path]:
    """Draw one chart per setting, link rates aside; see `registry.Chart.draw`."""
    measured = (panel for panel in panels(inputs.points, inputs.expected) if panel.best(1))
    of = [(group[0].spec.neutral(*_COMPARED), group) for group in together(measured, *_COMPARED)]
    return saving.draw_each("fill", of, inputs.out, _fill_chart)


def missed_bytes(point: Point) -> float:
    """Return the bytes that the link could carry and the point's slowest flow did not receive."""
    room = laws.fill_bytes(point.rate_mbps, point.spec.seconds)
    return max((room - flow.bytes_received for flow in point.flows), key=abs, default=room)


def fill_finding(points: Sequence[Point]) -> str:
    """Return the title: in bytes where they are few, else in percent."""
    worst = max(points, key=lambda point: abs(missed_bytes(point)))
    missed = missed_bytes(worst)
    rates = f"at {len(points)} link rates" if len(points) > 1 else f"at {worst.rate_mbps:g} Mb/s"
    if abs(missed) < laws.SEGMENT_BYTES:
        return f"A flow alone receives what its link can carry, within {abs(missed):.0f} bytes, {rates}"
    share = 100 - 100 * missed / laws.fill_bytes(worst.rate_mbps, worst.spec.seconds)
    return f"A flow alone reaches at least {share:.2f} % of the capacity of its link, {rates}"


def _fill_chart(of: Sequence[Panel]) -> Figure:
    points = [panel.best(1)[0] for panel in of]
    sheet = Sheet((_FILL_HEIGHT_IN, 1), (_FILL_RESIDUAL_IN, 1))
    axes, below = sheet.axes[0][0], sheet.axes[1][0]
    for point in points:
        _mark(axes, point)
    rates = [point.rate_mbps for point in points]
    ends = (min(rates) / 2, max(rates) * 2)
    axes.plot(
        ends, [laws.fill_bytes(rate, 8e-6) for rate in ends], color="black", ls=style.PUBLISHED_DASH, lw=1.2
    )
    style.log_axes(axes)
    axes.set_xlim(ends[0], ends[1] * 8)
    axes.set_ylabel(axis_labels.GOODPUT_MBPS)
    _fill_residuals(below, points)
    below.set_xlim(axes.get_xlim())
    theory = Line2D(
        [], [], color="black", ls=style.PUBLISHED_DASH, label="1448 payload bytes in a frame of 1514"
    )
    words = Text(
        fill_finding(points),
        f"{style.network(of[0].spec)}: one TCP flow, payload received",
        _fill_caption(of, points),
    )
    return sheet.finish(words, [theory])


def _fill_residuals(axes: Axes, points: Sequence[Point]) -> None:
    """Draw what each flow misses of the computed bytes, in segments."""
    axes.axhline(0, color="black", ls=style.PUBLISHED_DASH, lw=1.2)
    missed = [-missed_bytes(point) / laws.SEGMENT_BYTES for point in points]
    for point, segments in zip(points, missed, strict=True):
        face = "white" if point.suspect else style.TCP_COLOUR
        axes.plot(
            point.rate_mbps, segments, "s", color=style.TCP_COLOUR, markerfacecolor=face, ms=6, zorder=4
        )
    style.plain_log(axes.xaxis)
    reach = 1.3 * max(1.0, *map(abs, missed))
    axes.set_ylim(-reach, reach)
    axes.set_xlabel("link rate (Mb/s)")
    axes.set_ylabel("received minus\ncomputed (segments)", fontsize=8.5)


def _mark(axes: Axes, point: Point) -> None:
    goodput = sum(flow.goodput_mbps for flow in point.flows)
    received = sum(flow.bytes_received for flow in point.flows)
    face = "white" if point.suspect else style.TCP_COLOUR
    axes.plot([point.rate_mbps], [goodput], "s", color=style.TCP_COLOUR, markerfacecolor=face, ms=6, zorder=4)
    missed = round(missed_bytes(point))
    label = f"{received:,} bytes\n{abs(missed):,} {'more than computed' if missed < 0 else 'missing'}"
    axes.annotate(
        label.replace(",", "\N{THIN SPACE}"),
        (point.rate_mbps, goodput),
        (6, -4),
        textcoords="offset points",
        va="top",
        fontsize=7.5,
    )


def _fill_caption(of: Sequence[Panel], points: Sequence[Point]) -> Caption:
    return Caption(style.parameters(*of), style.doubts(points))


_SAWTOOTH_HEIGHT_IN, _SAWTOOTH_RESIDUAL_IN = 2.5, 0.9
_TEETH = 4


def draw_sawtooth(inputs: Inputs) -> list[Path]:
    """Draw one chart per setting; see `registry.Chart.draw`; the level of `WINDOW_TOP_PKTS` gives the
    textbook's sawtooth."""
    return saving.draw_panels("sawtooth", inputs, lambda panel: _sawtooth_chart(panel, inputs.levels))


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


def _sawtooth_chart(panel: Panel, levels: Sequence[Level]) -> Figure | None:
    point = next(iter(panel.best(1)), None)
    sockets = point.read_table("sockets") if point else None
    saws = laws.sawteeth(sockets) if sockets is not None else []
    if point is None or sockets is None or not saws:
        return None
    sheet = Sheet((_SAWTOOTH_HEIGHT_IN, 1), (_SAWTOOTH_RESIDUAL_IN, 1))
    axes, below = sheet.axes[0][0], sheet.axes[1][0]
    first, last = saws[0].start_s - 1, saws[min(_TEETH, len(saws)) - 1].end_s + 1
    shown = (sockets["flow"] == 0) & (sockets["t_s"] >= first) & (sockets["t_s"] <= last)
    style_of_line = style.SUSPECT_DASH if point.suspect else "-"
    axes.plot(
        sockets["t_s"][shown], sockets["cwnd_pkts"][shown], color=style.TCP_COLOUR, lw=1.6, ls=style_of_line
    )
    top = next((level.value for level in style.levels_of(panel, levels, WINDOW_TOP_PKTS)), None)
    if top is not None:
        _sawtooth_theory(axes, top, panel, saws[0].start_s, last)
        packet_s = laws.packet_ms(panel.spec.link.rate_mbps) / 1000
        _sawtooth_residuals(below, sockets, saws[:_TEETH], top, packet_s)
    below.set_xlim(first, last)
    axes.set_xlim(first, last)
    axes.set_ylim(0, 1.15 * max(saw.top_pkts for saw in saws))
    below.set_xlabel(axis_labels.SECONDS)
    below.set_ylabel("minus textbook\n(packets)", fontsize=8.5)
    axes.set_ylabel("congestion window (packets)")
    subtitle = f"{style.network(panel.spec)}: one TCP flow, a queue of {panel.spec.link.queue_pkts} packets"
    key = style.theory_key("W/2 round trips from W/2 to W, one for the repair") if top is not None else []
    return sheet.finish(Text(sawtooth_finding(saws), subtitle, _sawtooth_caption(panel, point, saws)), key)


def _sawtooth_residuals(
    axes: Axes, sockets: Table, saws: Sequence[laws.Sawtooth], top: float, packet_s: float
) -> None:
    """Draw the window minus the textbook's tooth, which begins with each tooth anew."""
    axes.axhline(0, color="black", ls=style.PUBLISHED_DASH, lw=1.2)
    for saw in saws:
        mine = (sockets["flow"] == 0) & (sockets["t_s"] > saw.start_s) & (sockets["t_s"] < saw.end_s)
        at_s = sockets["t_s"][mine].astype(float)
        t_s, window = (np.array(of[:62]) for of in textbook(top, packet_s, packet_s))
        off = sockets["cwnd_pkts"][mine] - np.interp(at_s - saw.start_s, t_s, window)
        axes.plot(at_s, off, color=style.TCP_COLOUR, lw=1.2)
    reach = 1.2 * max(1.0, float(abs(axes.dataLim.y0)), float(abs(axes.dataLim.y1)))
    axes.set_ylim(-reach, reach)


def _sawtooth_theory(axes: Axes, top: float, panel: Panel, start_s: float, until_s: float) -> None:
    t_s, window = textbook(top, laws.packet_ms(panel.spec.link.rate_mbps) / 1000, until_s - start_s)
    axes.plot(np.array(t_s) + start_s, window, color="black", ls=style.PUBLISHED_DASH, lw=1.2, zorder=4)
    for value, label in ((top, f"W = {top:.0f}"), (0.75 * top, "3/4 W"), (0.5 * top, "W / 2")):
        axes.axhline(value, color=style.FAINT, lw=0.6, zorder=1)
        axes.annotate(
            label, (0, value), (3, 2), xycoords=("axes fraction", "data"), textcoords="offset points",
            fontsize=7.5, color=style.FAINT, path_effects=style.halo(), zorder=6,
        )  # fmt: skip


def _sawtooth_caption(panel: Panel, point: Point, saws: Sequence[laws.Sawtooth]) -> Caption:
    shown = min(_TEETH, len(saws))
    return Caption(
        style.parameters(panel),
        [
            *style.doubts([point]),
            f"Shown: the first {shown} of {len(saws)} whole teeth; the title has the means of all.",
        ],
    )


_WAIT_HEIGHT_IN, _WAIT_RESIDUAL_IN = 2.5, 1.0


def draw_wait(inputs: Inputs) -> list[Path]:
    """Draw one chart per setting; see `registry.Chart.draw`; the line of theory begins at the level of
    `EMPTY_WAY_MS`."""
    return saving.draw_panels("wait", inputs, lambda panel: _wait_chart(panel, inputs.levels))


def found(point: Point) -> laws.Waits | None:
    """Return pings with the queue that they met; None if either was not sampled."""
    pings, queues, times = (point.read_table(name) for name in ("pings", "queues", "queue_times"))
    if pings is None or queues is None or times is None:
        return None
    return laws.waits(pings, queues, times, laws.way_out(point.ports))


def _wait_theory(axes: Axes, below: Axes, waits: laws.Waits, empty_ms: float, packet_ms: float) -> None:
    """Draw the delay that the packets before a ping explain, and below how far each ping is from it."""
    most = float(waits.queued.max())
    off = (waits.out_ms - empty_ms) / packet_ms - waits.queued
    below.plot(waits.queued, off, ".", color=style.TCP_COLOUR, ms=3, alpha=0.4, zorder=3)
    below.fill_between([0.0, most], -1, 0, color=style.GRID, zorder=1)
    below.axhline(0, color="black", ls=style.PUBLISHED_DASH, lw=1.2, zorder=4)
    queued = np.array([0.0, most])
    expected = empty_ms + packet_ms * queued
    axes.plot(queued, expected, color="black", ls=style.PUBLISHED_DASH, lw=1.2, zorder=4)
    axes.fill_between(queued, expected - packet_ms, expected, color=style.GRID, zorder=1)


def _wait_chart(panel: Panel, levels: Sequence[Level]) -> Figure | None:
    point = next(iter(panel.best(1)), None)
    waits = found(point) if point else None
    if point is None or waits is None:
        return None
    packet_ms = laws.packet_ms(panel.spec.link.rate_mbps)
    sheet = Sheet((_WAIT_HEIGHT_IN, 1), (_WAIT_RESIDUAL_IN, 1))
    axes, below = sheet.axes[0][0], sheet.axes[1][0]
    axes.plot(waits.queued, waits.out_ms, ".", color=style.TCP_COLOUR, ms=3, alpha=0.4, zorder=3)
    most = float(waits.queued.max())
    empty = next((level.value for level in style.levels_of(panel, levels, EMPTY_WAY_MS)), None)
    if empty is not None:
        _wait_theory(axes, below, waits, empty, packet_ms)
    axes.set_xlim(0, most * 1.03)
    axes.set_ylim(0, float(waits.out_ms.max()) * 1.08)
    below.set_xlim(axes.get_xlim())
    below.set_xlabel("packets queued before the ping")
    below.set_ylabel("off theory\n(packet times)", fontsize=8.5)
    axes.set_ylabel("one-way delay (ms)")
    slope, nothing_queued = waits.line
    each = f"{slope / packet_ms:.3f} packet times for each packet queued"
    title = f"A ping takes {nothing_queued:.1f} ms, and {each}"
    subtitle = f"{style.network(panel.spec)}: pings beside one TCP flow, {len(waits.queued)} of them"
    key = (
        style.theory_key("empty path and packets queued; grey: the first partly sent")
        if empty is not None
        else []
    )
    caption = Caption(
        style.parameters(panel),
        [
            *style.doubts([point]),
            f"A packet time is {packet_ms:.4g} ms; packets at faster links count for proportionally less.",
        ],
    )
    return sheet.finish(Text(title, subtitle, caption), key)


_LOSS_HEIGHT_IN, _LOSS_RESIDUAL_IN = 2.8, 1.1
_MODEL = (0, (1, 1.2))


@dataclass(frozen=True)
class Rate:
    """One loss rate: the share of packets lost, and packets per round trip of every flow."""

    point: Point
    loss: float
    pkts: tuple[float, ...]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.pkts)


def draw_loss_law(inputs: Inputs) -> list[Path]:
    """Draw one chart per setting, loss rates aside; see `registry.Chart.draw`."""
    measured = (p for p in panels(inputs.points, inputs.expected) if any(map(rate_of, p.best(1))))
    of = [(group[0].spec.neutral("link.loss"), group) for group in together(measured, "link.loss")]
    return saving.draw_each("loss_law", of, inputs.out, _loss_chart)


def rate_of(point: Point) -> Rate | None:
    """Return None where nothing was lost, or round trips were not sampled."""
    loss = laws.lost_share(point.ports)
    pkts = tuple(pkts for flow in point.flows if (pkts := laws.pkts_per_round(flow)) > 0)
    return Rate(point, loss, pkts) if loss > 0 and pkts else None


def loss_finding(rates: Sequence[Rate]) -> str:
    """Return the title: the constant where losses are rare."""
    rare = [rate.mean * rate.loss**0.5 for rate in rates if rate.loss < 1.2 * laws.TIMEOUTS_FROM]
    if not rare:
        return "Packets per round trip by the probability of loss"
    return f"With p up to 1 %, {statistics.fmean(rare):.2f} / \N{SQUARE ROOT}p packets per round trip"


def _loss_chart(of: Sequence[Panel]) -> Figure:
    rates = sorted(
        filter(None, (rate_of(p) for panel in of for p in panel.best(1))), key=lambda rate: rate.loss
    )
    sheet = Sheet((_LOSS_HEIGHT_IN, 1), (_LOSS_RESIDUAL_IN, 1))
    axes, below = sheet.axes[0][0], sheet.axes[1][0]
    for rate in rates:
        colour = style.TCP_COLOUR
        face = "white" if rate.point.suspect else colour
        axes.plot([rate.loss] * len(rate.pkts), rate.pkts, "o", color=colour, ms=2.2, alpha=0.45)
        axes.plot([rate.loss], [rate.mean], "s", color=colour, markerfacecolor=face, ms=6.5, zorder=5)
    legend = _laws(axes, rates)
    style.log_axes(axes)
    axes.set_ylabel("packets per round trip")
    _loss_residuals(below, rates)
    below.set_xlim(axes.get_xlim())
    subtitle = f"{style.network(of[0].spec)}: separate TCP flows, random losses"
    return sheet.finish(Text(loss_finding(rates), subtitle, _loss_caption(of, rates)), legend)


def _loss_residuals(axes: Axes, rates: Sequence[Rate]) -> None:
    """Draw how far each mean is from the square-root law and from the model with timeouts, in percent."""
    rto_rtts = _rto_rtts(rates)
    for rate in rates:
        for law, marker in ((laws.mathis_pkts(rate.loss), "s"), (laws.padhye_pkts(rate.loss, rto_rtts), "o")):
            face = style.TCP_COLOUR if marker == "s" and not rate.point.suspect else "white"
            off_pct = 100 * (rate.mean / law - 1)
            axes.plot(
                rate.loss, off_pct, marker, color=style.TCP_COLOUR, markerfacecolor=face, ms=5, zorder=4
            )
    axes.axhline(0, color="black", ls=style.PUBLISHED_DASH, lw=1.2)
    style.plain_log(axes.xaxis)
    axes.set_xlabel("share of packets lost, p")
    axes.set_ylabel("off theory (%)\nsquare: root law\nring: with timeouts", fontsize=8)


def _rto_rtts(rates: Sequence[Rate]) -> float:
    """Return the minimum RTO in mean round trips."""
    rtt_ms = statistics.fmean(flow.srtt_ms_mean for rate in rates for flow in rate.point.flows)
    return laws.MIN_RTO_MS / rtt_ms


def _laws(axes: Axes, rates: Sequence[Rate]) -> list[Line2D]:
    """Draw the line of Mathis et al. and the curve of Padhye et al.; return their legend."""
    losses = np.geomspace(rates[0].loss / 1.5, min(0.5, rates[-1].loss * 1.5), 100)
    rto_rtts = _rto_rtts(rates)
    root, model = (
        "\N{SQUARE ROOT}",
        f"with timeouts of {rto_rtts:.1f} round trips (Padhye et al., SIGCOMM 1998)",
    )
    curves = (
        (
            [laws.mathis_pkts(p) for p in losses],
            style.PUBLISHED_DASH,
            f"{root}(3/2) / {root}p (Mathis et al., CCR 1997)",
        ),
        ([laws.padhye_pkts(p, rto_rtts) for p in losses], _MODEL, model),
    )
    return [
        axes.plot(losses, values, color="black", ls=dashes, lw=1.3, zorder=4, label=f"theory: {name}")[0]
        for values, dashes, name in curves
    ]


def _loss_caption(of: Sequence[Panel], rates: Sequence[Rate]) -> Caption:
    flows = max(len(rate.pkts) for rate in rates)
    return Caption(
        style.parameters(common(of, "link.loss")),
        [
            *style.doubts([rate.point for rate in rates]),
            f"Dots: one flow each, n = {flows} per rate; marker: their mean.",
        ],
    )


_ROW_IN = 0.62
_NAMES = {"edge": "edge", "agg": "aggregation", "core": "core"}
_ARRIVED, _SENT, _DROPPED = "#56B4E9", "#009E73", "#D55E00"


def draw_conserved(inputs: Inputs) -> list[Path]:
    """Draw one chart per setting with flows of given size; see `registry.Chart.draw`."""
    return saving.draw_panels("conserved", inputs, _conserved_chart)


def conserved_finding(point: Point) -> str:
    """Return the title."""
    lost = sum(port.drops + port.lost for port in point.ports)
    vanished, missing = unaccounted(point.ports), undelivered_bytes(point.flows)
    return (
        f"{lost:,} packets were dropped or lost, {vanished:,} are unaccounted for, "
        f"{missing:,} bytes not delivered"
    ).replace(",", "\N{THIN SPACE}", 1)


def _conserved_chart(panel: Panel) -> Figure | None:
    ran = [point for n in panel.subflows for point in panel.best(n)]
    point = next((p for p in ran if balances(p.ports) and any(f.size_bytes for f in p.flows)), None)
    if point is None:
        return None
    layers: dict[str, list[Balance]] = {}
    for balance in balances(point.ports):
        layers.setdefault(balance.layer, []).append(balance)
    sheet = Sheet((_ROW_IN * len(layers), 1))
    axes = sheet.axes[0][0]
    for row, (layer, of) in enumerate(layers.items()):
        _row(axes, row, of)
        axes.annotate(
            _NAMES.get(layer, layer), (0, row - 0.42), (2, 3), textcoords="offset points", fontsize=8.5
        )
    axes.set_ylim(len(layers) - 0.4, -0.65)
    axes.set_yticks([])
    axes.grid(axis="x", color=style.GRID, linewidth=0.8)
    axes.set_xlabel("packets, all switches of a layer")
    legend = [
        Patch(facecolor=_ARRIVED, label="received"),
        Patch(facecolor=_SENT, label="sent on"),
        Patch(facecolor=_DROPPED, label="dropped"),
    ]
    who = f"{style.network(panel.spec)}, {panel.hosts} hosts, {style.transport(point.subflows)}"
    subtitle = f"{who}: transfers, until the network is idle"
    return sheet.finish(Text(conserved_finding(point), subtitle, _conserved_caption(panel, point)), legend)


def _row(axes: Axes, row: int, of: Sequence[Balance]) -> None:
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


def _conserved_caption(panel: Panel, point: Point) -> Caption:
    lost = sum(port.lost for port in point.ports)
    return Caption(
        style.parameters(panel),
        [
            *style.doubts([point]),
            f"Counted at every port until the end; {lost} packets lost between switches are not in the bars.",
        ],
    )
