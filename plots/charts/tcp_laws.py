"""Laws of TCP and of links beside measurements: a filled link, the sawtooth, waiting pings, the square-root
law, and conservation of packets.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from analysis import laws
from analysis.plausibility import Balance, balances, unaccounted, undelivered_bytes
from analysis.quantities import EMPTY_WAY_MS, WINDOW_TOP_PKTS, Quantity
from harness.results.point_results import PointResult
from model.spec import RunSpec
from plots.data import Inputs, Panel, common, panels, together
from plots.kinds.axis import Axis
from plots.kinds.lines import Band, Level, Line, Lines
from plots.picture import Groups, Page, Picture, Row, Series, alike
from plots.shared import axis_labels, style
from plots.shared.kinds import Dash, Floats, Look

_SQUARE, _RING = (Look("", style.TCP_COLOUR, marker, "") for marker in "so")
_ZERO = Level(0, style.PUBLISHED_DASH, "black", 1.2, counts=True)
_DOT = Look("", style.TCP_COLOUR, ".", "")


def _theory(name: str, dash: Dash = style.PUBLISHED_DASH) -> Look:
    return Look(f"theory: {name}", "black", "", dash)


def _off(line: Sequence[Line], x: Axis, reach: float, label: str, bands: Sequence[Band] = ()) -> Row:
    """Return the plot of what is off theory, which reaches as far up as down, with a line at 0."""
    return Row(0.9, [Lines(line, x, Axis(label, low=-reach, high=reach, size=8.5), "", bands, [_ZERO])])


def _levels(panel: Panel, inputs: Inputs, quantity: Quantity) -> float | None:
    return next((level.value for level in inputs.beside(panel, quantity)), None)


def _together(where: Callable[[PointResult], object], *ignoring: str) -> Groups:
    """Return the points that differ in the fields `ignoring` too, if plain TCP has one for which `where`
    returns something."""

    def groups(inputs: Inputs) -> Iterator[tuple[RunSpec, Panel]]:
        of = panels(inputs.points, inputs.expected)
        for group in together((panel for panel in of if any(map(where, panel.best(1)))), *ignoring):
            panel = common(group, *ignoring)
            yield panel.spec, panel

    return groups


def missed_bytes(point: PointResult) -> float:
    """Return the bytes that the link could carry and the point's slowest flow did not receive."""
    room = laws.fill_bytes(point.rate_mbps, point.spec.seconds)
    return max((room - flow.bytes_received for flow in point.under_test), key=abs, default=room)


def _fill(panel: Panel, _: Inputs) -> Page:
    of = panels(panel.points)
    points = [each.best(1)[0] for each in of]
    rates, doubts = [point.rate_mbps for point in points], [point.suspect for point in points]
    goodput = [sum(flow.goodput_mbps for flow in point.under_test) for point in points]
    off = [-missed_bytes(point) / laws.SEGMENT_BYTES for point in points]
    theory, ends = _theory("1448 payload bytes in a frame of 1514"), (min(rates) / 2, max(rates) * 2)
    x = Axis(log=True, low=ends[0], high=ends[1] * 8)
    lines = [
        Line(rates, goodput, _SQUARE, size=6, hollow=doubts, words=list(map(_received, points))),
        Line(ends, [laws.fill_bytes(rate, 8e-6) for rate in ends], theory, 1.2),
    ]
    below = _off(
        [Line(rates, off, _SQUARE, size=6, hollow=doubts)], dataclasses.replace(x, label="link rate (Mb/s)"),
        1.3 * max(1.0, *map(abs, off)), "received minus\ncomputed (segments)",
    )  # fmt: skip
    worst = max(points, key=lambda point: abs(missed_bytes(point)))
    missed, room = missed_bytes(worst), laws.fill_bytes(worst.rate_mbps, worst.spec.seconds)
    return Page(
        rows=[Row(2.6, [Lines(lines, x, Axis(axis_labels.GOODPUT_MBPS, log=True))]), below], points=points,
        about=f"{style.network(panel.spec)}: one TCP flow, payload received", keys=[theory.key()],
        settings=style.parameters(*of),
        numbers={
            "rates": len(rates), "rate": worst.rate_mbps, "bytes": abs(missed),
            "pct": 100 - 100 * missed / room, "all": abs(missed) < laws.SEGMENT_BYTES,
        },
    )  # fmt: skip


fill = Picture(
    groups=_together(bool, "link.rate_mbps", "seconds"), page=_fill,
    finding="A flow alone {% if all %}receives what its link can carry, within {{ '%.0f' % bytes }} bytes"
    "{% else %}reaches at least {{ '%.2f' % pct }} % of the capacity of its link{% endif %}, "
    "{% if rates > 1 %}at {{ rates }} link rates{% else %}at {{ '%g' % rate }} Mb/s{% endif %}",
)  # fmt: skip


def _received(point: PointResult) -> str:
    received, missed = sum(flow.bytes_received for flow in point.under_test), round(missed_bytes(point))
    beside = "more than computed" if missed < 0 else "missing"
    return f"{_spaced(received)} bytes\n{_spaced(abs(missed))} {beside}"


def _spaced(number: int) -> str:
    return f"{number:,}".replace(",", "\N{THIN SPACE}")


_TEETH = 4


def textbook(top_pkts: float, packet_s: float, until_s: float) -> tuple[Floats, Floats]:
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
    return np.array(t_s), np.array(window)


def _sawtooth(panel: Panel, inputs: Inputs) -> Page | None:
    """Draw the window beside the textbook's, which follows from the level of `WINDOW_TOP_PKTS`, and below it
    what is off the textbook's tooth, which begins with each tooth anew."""
    point = next(iter(panel.best(1)), None)
    sockets = point.read_table("sockets") if point else None
    saws = laws.sawteeth(sockets) if sockets is not None else []
    if point is None or sockets is None or not saws:
        return None
    of_flow = sockets["flow"] == 0
    t_s, cwnd = sockets["t_s"][of_flow].astype(float), sockets["cwnd_pkts"][of_flow]
    shown, theory = saws[:_TEETH], _theory("W/2 round trips from W/2 to W, one for the repair")
    first, last = shown[0].start_s - 1, shown[-1].end_s + 1
    look = Look("", style.TCP_COLOUR, "", style.SUSPECT_DASH if point.suspect else "-")
    drawn, top = (t_s >= first) & (t_s <= last), _levels(panel, inputs, WINDOW_TOP_PKTS)
    lines, off, levels = [Line(t_s[drawn], cwnd[drawn], look, 1.6)], list[Line](), list[Level]()
    if top is not None:
        packet_s = laws.packet_ms(panel.spec.link.rate_mbps) / 1000
        textbook_s, window = textbook(top, packet_s, last - shown[0].start_s)
        lines.append(Line(shown[0].start_s + textbook_s, window, theory, 1.2))
        names = {f"W = {top:.0f}": top, "3/4 W": 0.75 * top, "W / 2": 0.5 * top}
        levels = [Level(value, width=0.6, name=name) for name, value in names.items()]
        for saw in shown:
            mine = (t_s > saw.start_s) & (t_s < saw.end_s)
            tooth = np.interp(t_s[mine] - saw.start_s, textbook_s[:62], window[:62])
            off.append(Line(t_s[mine], cwnd[mine] - tooth, look, 1.2))
    reach = 1.2 * max([1.0, *(float(np.abs(line.y).max(initial=0)) for line in off)])
    y = Axis("congestion window (packets)", low=0, high=1.15 * max(saw.top_pkts for saw in saws))
    x = Axis(axis_labels.SECONDS, low=first, high=last)
    return Page(
        rows=[
            Row(2.5, [Lines(lines, dataclasses.replace(x, label=""), y, levels=levels)]),
            _off(off, x, reach, "minus textbook\n(packets)"),
        ],
        about=f"{style.network(panel.spec)}: one TCP flow, a queue of {panel.spec.link.queue_pkts} packets",
        points=[point], settings=style.parameters(panel), keys=[theory.key()] if top else [],
        notes=[
            f"Shown: the first {len(shown)} of {len(saws)} whole teeth; the title has the means of all."
        ],
        numbers={
            name: statistics.fmean(getattr(saw, name) for saw in saws)
            for name in ("top_pkts", "rounds", "mean_pct")
        },
    )  # fmt: skip


sawtooth = Picture(
    groups=alike(), page=_sawtooth,
    finding="Halved at {{ '%.0f' % top_pkts }} packets, every {{ '%.0f' % rounds }} round trips; "
    "mean window {{ '%.0f' % mean_pct }} % of that",
)  # fmt: skip


def _waits(point: PointResult) -> laws.Waits | None:
    """Return pings with the queue that they met; None if either was not sampled."""
    pings, queues, times = (point.read_table(name) for name in ("pings", "queues", "queue_times"))
    if pings is None or queues is None or times is None:
        return None
    return laws.waits(pings, queues, times, laws.way_out(point.ports))


def _wait(panel: Panel, inputs: Inputs) -> Page | None:
    """Draw pings beside the delay that the packets before them explain, from the level of `EMPTY_WAY_MS` on;
    below how far each ping is from it."""
    point = next(iter(panel.best(1)), None)
    waits = _waits(point) if point else None
    if point is None or waits is None:
        return None
    packet_ms, most = laws.packet_ms(panel.spec.link.rate_mbps), float(waits.queued.max())
    theory = _theory("empty path and packets queued; grey: the first partly sent")
    lines = [Line(waits.queued, waits.out_ms, _DOT, size=3, alpha=0.4)]
    off, bands, off_bands = list[Line](), list[Band](), list[Band]()
    empty_ms, ends = _levels(panel, inputs, EMPTY_WAY_MS), np.array([0.0, most])
    if empty_ms is not None:
        expected = empty_ms + packet_ms * ends
        lines.append(Line(ends, expected, theory, 1.2))
        bands = [Band(ends, expected - packet_ms, expected)]
        beyond = (waits.out_ms - empty_ms) / packet_ms - waits.queued
        off, off_bands = [Line(waits.queued, beyond, _DOT, size=3, alpha=0.4)], [Band(ends, -1, 0)]
    x, y = Axis(low=0, high=most * 1.03), Axis("one-way delay (ms)", low=0, room=1.08)
    slope, nothing_queued = waits.line
    return Page(
        rows=[
            Row(2.5, [Lines(lines, x, y, "", bands, hatched=point.suspect)]),
            Row(1.0, [Lines(off, dataclasses.replace(x, label="packets queued before the ping"),
                            Axis("off theory\n(packet times)", size=8.5), "", off_bands,
                            [_ZERO])]),
        ],
        about=f"{style.network(panel.spec)}: pings beside one TCP flow, {len(waits.queued)} of them",
        points=[point], settings=style.parameters(panel), keys=[theory.key()] if off else [],
        notes=[
            f"A packet time is {packet_ms:.4g} ms; packets at faster links count for proportionally less."
        ],
        numbers={"empty_ms": nothing_queued, "times": slope / packet_ms},
    )  # fmt: skip


wait = Picture(
    groups=alike(), page=_wait,
    finding="A ping takes {{ '%.1f' % empty_ms }} ms, and {{ '%.3f' % times }} packet times for each packet "
    "queued",
)  # fmt: skip


@dataclass(frozen=True)
class Rate:
    """One loss rate: the share of packets lost, and packets per round trip of every flow."""

    point: PointResult
    loss: float
    pkts: tuple[float, ...]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.pkts)


def rate_of(point: PointResult) -> Rate | None:
    """Return None where nothing was lost, or round trips were not sampled."""
    loss = laws.lost_share(point.ports)
    pkts = tuple(pkts for flow in point.under_test if (pkts := laws.pkts_per_round(flow)) > 0)
    return Rate(point, loss, pkts) if loss > 0 and pkts else None


def _loss_law(panel: Panel, _: Inputs) -> Page:
    found = (rate_of(point) for each in panels(panel.points) for point in each.best(1))
    rates = sorted(filter(None, found), key=lambda rate: rate.loss)
    points, losses = [rate.point for rate in rates], [rate.loss for rate in rates]
    doubts, means = [point.suspect for point in points], [rate.mean for rate in rates]
    rtt_ms = statistics.fmean(flow.srtt_ms_mean for point in points for flow in point.under_test)
    rto_rtts, root = laws.MIN_RTO_MS / rtt_ms, "\N{SQUARE ROOT}"
    curve = np.geomspace(losses[0] / 1.5, min(0.5, losses[-1] * 1.5), 100)
    x = Axis("share of packets lost, p", log=True, low=curve[0], high=curve[-1])
    theories: dict[Look, Callable[[float], float]] = {
        _theory(f"{root}(3/2) / {root}p (Mathis et al., CCR 1997)"): laws.mathis_pkts,
        _theory(f"with timeouts of {rto_rtts:.1f} round trips (Padhye et al., SIGCOMM 1998)", (0, (1, 1.2))):
            lambda loss: laws.padhye_pkts(loss, rto_rtts),
    }  # fmt: skip
    flows = max(len(rate.pkts) for rate in rates)
    each = np.array([(rate.loss, pkts) for rate in rates for pkts in rate.pkts]).T
    lines = [
        Line(each[0], each[1], _RING, size=2.2, alpha=0.45),
        Line(losses, means, _SQUARE, size=6, hollow=doubts),
        *(Line(curve, [law(loss) for loss in curve], look, 1.3) for look, law in theories.items()),
    ]
    marks: tuple[tuple[Look, Sequence[bool]], ...] = ((_SQUARE, doubts), (_RING, [True] * len(rates)))
    off = [
        Line(losses, [100 * (rate.mean / law(rate.loss) - 1) for rate in rates], look, size=5, hollow=hollow)
        for law, (look, hollow) in zip(theories.values(), marks, strict=True)
    ]
    rare = [rate.mean * rate.loss**0.5 for rate in rates if rate.loss < 1.2 * laws.TIMEOUTS_FROM]
    up = Axis("packets per round trip", log=True)
    y = Axis("off theory (%)\nsquare: root law\nring: with timeouts", size=8)
    return Page(
        rows=[
            Row(2.8, [Lines(lines, dataclasses.replace(x, label=""), up)]),
            Row(1.1, [Lines(off, x, y, levels=[_ZERO])]),
        ],
        about=f"{style.network(panel.spec)}: separate TCP flows, random losses", points=points,
        settings=style.parameters(panel), keys=[look.key(width=1.3) for look in theories],
        notes=[f"Dots: one flow each, n = {flows} per rate; marker: their mean."],
        numbers={"constant": statistics.fmean(rare)} if rare else None,
    )  # fmt: skip


loss_law = Picture(
    groups=_together(rate_of, "link.loss"), page=_loss_law,
    finding="With p up to 1 %, {{ '%.2f' % constant }} / \N{SQUARE ROOT}p packets per round trip",
)  # fmt: skip
_NAMES = {"edge": "edge", "agg": "aggregation", "core": "core"}
_PACKETS = "packets, all switches of a layer"
_ARRIVED, _SENT, _DROPPED = "#56B4E9", "#009E73", "#D55E00"


@dataclass(frozen=True)
class _Balances:
    """Bars of what switches received above those of what they sent on and dropped, by layer."""

    layers: Mapping[str, Sequence[Balance]]
    suspect: bool

    def draw(self, axes: Axes, all_series: Sequence[Series], first: bool) -> None:
        del all_series, first
        for row, (layer, of) in enumerate(self.layers.items()):
            arrived, sent, dropped = (sum(getattr(b, n) for b in of) for n in ("arrived", "sent", "dropped"))
            axes.barh(row - 0.12, arrived, 0.26, color=_ARRIVED)
            axes.barh(row + 0.18, sent, 0.26, color=_SENT)
            axes.barh(row + 0.18, dropped, 0.26, left=sent, color=_DROPPED)
            left = sum(abs(b.unaccounted) for b in of)
            words = f"{left} of {arrived} unaccounted for" if left else f"{arrived} = {sent} + {dropped}"
            axes.annotate(
                words, (0, row + 0.18), (4, 0), textcoords="offset points", va="center", fontsize=8,
                color="white",
            )  # fmt: skip
            axes.annotate(
                _NAMES.get(layer, layer), (0, row - 0.42), (2, 3), textcoords="offset points", fontsize=8.5
            )
        if self.suspect:
            style.hatch(axes)
        axes.set_ylim(len(self.layers) - 0.4, -0.65)
        axes.set_yticks([])
        axes.grid(axis="x", color=style.GRID, linewidth=0.8)


def _conserved(panel: Panel, _: Inputs) -> Page | None:
    """Draw a point with flows of given size."""
    ran = [point for n in panel.subflows for point in panel.best(n)]
    point = next((p for p in ran if balances(p.ports) and any(f.size_bytes for f in p.under_test)), None)
    if point is None:
        return None
    layers: dict[str, list[Balance]] = {}
    for balance in balances(point.ports):
        layers.setdefault(balance.layer, []).append(balance)
    lost, drops = (sum(getattr(port, name) for port in point.ports) for name in ("lost", "drops"))
    who = f"{style.network(panel.spec)}, {panel.hosts} hosts, {style.transport(point.subflows)}"
    shown = ((_ARRIVED, "received"), (_SENT, "sent on"), (_DROPPED, "dropped"))
    return Page(
        rows=[Row(0.62 * len(layers), [_Balances(layers, point.suspect)], _PACKETS)],
        about=f"{who}: transfers, until the network is idle", points=[point],
        settings=style.parameters(panel),
        notes=[
            f"Counted at every port until the end; {lost} packets lost between switches are not in the bars."
        ],
        keys=[Patch(facecolor=colour, label=words) for colour, words in shown],
        numbers={
            "lost": _spaced(drops + lost), "vanished": _spaced(unaccounted(point.ports)),
            "bytes": _spaced(undelivered_bytes(point.under_test)),
        },
    )  # fmt: skip


conserved = Picture(
    groups=alike(), page=_conserved,
    finding="{{ lost }} packets were dropped or lost, {{ vanished }} are unaccounted for, "
    "{{ bytes }} bytes not delivered",
)  # fmt: skip
