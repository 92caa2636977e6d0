"""The congestion window of one flow over time by congestion control, on one scale (as in Narayan et al.,
SIGCOMM 2018)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from model import transports
from plots.data import Inputs, Panel, Point
from plots.shared import axis_labels, style
from plots.shared.sheet import Caption, Sheet, Text
from plots.shared.transports import by_transport, draw_joined

CHART = "windows_beside"
_HEIGHT_IN = 1.5
_MAX_CURVES, _MAX_SAMPLES = 4, 400


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart for points that differ at most in congestion control; see `registry.Chart.draw`."""
    return draw_joined(CHART, inputs, _chart)


def mean_pkts(point: Point) -> float | None:
    """Return the mean window of the first flow in the measured window; None without samples."""
    sockets = point.read_table("sockets")
    if sockets is None or not len(sockets):
        return None
    chosen = (sockets["t_s"] >= 0) & (sockets["flow"] == 0)
    return float(sockets["cwnd_pkts"][chosen].mean()) if chosen.any() else None


def _chart(panel: Panel) -> Figure | None:
    shown = [group[0] for group in by_transport(panel) if mean_pkts(group[0]) is not None][:_MAX_CURVES]
    if len(shown) < 2:
        return None
    sheet = Sheet(*[(_HEIGHT_IN, 1)] * len(shown))
    top = max(_curve(row[0], point) for row, point in zip(sheet.axes, shown, strict=True))
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


def _curve(axes: Axes, point: Point) -> float:
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
