"""The congestion window of a flow that fills a queue, over time, beside the textbook's sawtooth."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import laws
from analysis.quantities import WINDOW_TOP_PKTS
from model.result import Table
from plots.data import Inputs, Level, Panel, Point
from plots.shared import axis_labels, replicas, saving, style
from plots.shared.sheet import Caption, Sheet, Text

CHART = "sawtooth"
_HEIGHT_IN, _RESIDUAL_IN = 2.5, 0.9
_TEETH = 4


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart per setting; see `registry.Chart.draw`; the level of `WINDOW_TOP_PKTS` gives the
    textbook's sawtooth."""
    return saving.draw_panels(CHART, inputs, lambda panel: _chart(panel, inputs.levels))


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


def finding(saws: Sequence[laws.Sawtooth]) -> str:
    """Return the title: height, length and mean of the measured teeth."""
    top, rounds, mean = (
        statistics.fmean(of) for of in zip(*((s.top_pkts, s.rounds, s.mean_pct) for s in saws), strict=True)
    )
    return f"Halved at {top:.0f} packets, every {rounds:.0f} round trips; mean window {mean:.0f} % of that"


def _chart(panel: Panel, levels: Sequence[Level]) -> Figure | None:
    point = next(iter(panel.best(1)), None)
    sockets = point.read_table("sockets") if point else None
    saws = laws.sawteeth(sockets) if sockets is not None else []
    if point is None or sockets is None or not saws:
        return None
    sheet = Sheet((_HEIGHT_IN, 1), (_RESIDUAL_IN, 1))
    axes, below = sheet.axes[0][0], sheet.axes[1][0]
    first, last = saws[0].start_s - 1, saws[min(_TEETH, len(saws)) - 1].end_s + 1
    shown = (sockets["flow"] == 0) & (sockets["t_s"] >= first) & (sockets["t_s"] <= last)
    style_of_line = style.SUSPECT_DASH if point.suspect else "-"
    axes.plot(
        sockets["t_s"][shown], sockets["cwnd_pkts"][shown], color=style.TCP_COLOUR, lw=1.6, ls=style_of_line
    )
    top = next((level.value for level in style.levels_of(panel, levels, WINDOW_TOP_PKTS)), None)
    if top is not None:
        _theory(axes, top, panel, saws[0].start_s, last)
        packet_s = laws.packet_ms(panel.spec.link.rate_mbps) / 1000
        _residuals(below, sockets, saws[:_TEETH], top, packet_s)
    below.set_xlim(first, last)
    axes.set_xlim(first, last)
    axes.set_ylim(0, 1.15 * max(saw.top_pkts for saw in saws))
    below.set_xlabel(axis_labels.SECONDS)
    below.set_ylabel("minus textbook\n(packets)", fontsize=8.5)
    axes.set_ylabel("congestion window (packets)")
    subtitle = f"{style.network(panel.spec)}: one TCP flow, a queue of {panel.spec.link.queue_pkts} packets"
    key = replicas.theory_key("W/2 round trips from W/2 to W, one for the repair") if top is not None else []
    return sheet.finish(Text(finding(saws), subtitle, _caption(panel, point, saws)), key)


def _residuals(
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


def _theory(axes: Axes, top: float, panel: Panel, start_s: float, until_s: float) -> None:
    t_s, window = textbook(top, laws.packet_ms(panel.spec.link.rate_mbps) / 1000, until_s - start_s)
    axes.plot(np.array(t_s) + start_s, window, color="black", ls=style.PUBLISHED_DASH, lw=1.2, zorder=4)
    for value, label in ((top, f"W = {top:.0f}"), (0.75 * top, "3/4 W"), (0.5 * top, "W / 2")):
        axes.axhline(value, color=style.FAINT, lw=0.6, zorder=1)
        axes.annotate(
            label, (0, value), (3, 2), xycoords=("axes fraction", "data"), textcoords="offset points",
            fontsize=7.5, color=style.FAINT, path_effects=style.halo(), zorder=6,
        )  # fmt: skip


def _caption(panel: Panel, point: Point, saws: Sequence[laws.Sawtooth]) -> Caption:
    shown = min(_TEETH, len(saws))
    return Caption(
        style.parameters(panel),
        [
            *style.doubts([point]),
            f"Shown: the first {shown} of {len(saws)} whole teeth; the title has the means of all.",
        ],
    )
