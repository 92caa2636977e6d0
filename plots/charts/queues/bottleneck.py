"""The queue where the flows meet, over time and as a distribution, under congestion controls with and without
marks. (Alizadeh et al., SIGCOMM 2010, figures 1 and 13, are of this kind.)

The bottleneck is the switch port that sent most. Each curve is the first good seed of one transport.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from model.result import PortRow
from plots.charts.queues import queue_lengths
from plots.data import Inputs, Panel, Point
from plots.shared import axis_labels, style
from plots.shared.sheet import Caption, Sheet, Text
from plots.shared.transports import by_transport, colour, draw_joined, label

CHART = "bottleneck"
_HEIGHT_IN = 1.5
_NEAR_S, _NEAR_THRESHOLDS = 2.0, 2.5
"""How much of the window, and up to how many thresholds, the magnified picture shows."""
_MAX_CURVES, _MAX_BINS = 4, 240
_LINEAR_PKTS = 10
"""The axis is linear up to here and logarithmic beyond, to show both a threshold and a full buffer."""


@dataclass(frozen=True, eq=False)
class Queue:
    """The bottleneck's length in packets at each sampled instant of the measured window."""

    point: Point
    port: PortRow
    t_s: npt.NDArray[np.float64]
    pkts: npt.NDArray[np.int32]

    @property
    def goodput_mbps(self) -> float:
        """The goodput of all flows together."""
        return sum(flow.goodput_mbps for flow in self.point.flows)


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart for points that differ at most in congestion control and marking; see
    `registry.Chart.draw`."""
    return draw_joined(CHART, inputs, _chart)


def queue(point: Point) -> Queue | None:
    """Return the bottleneck's queue; None where queues were not sampled."""
    lengths = queue_lengths.read(point)
    if lengths is None or not lengths.of_switches.ports:
        return None
    switches = lengths.of_switches
    column = max(range(len(switches.ports)), key=lambda i: switches.ports[i].tx_bytes)
    measured = switches.t_s >= 0
    if not measured.any():
        return None
    return Queue(point, switches.ports[column], switches.t_s[measured], switches.pkts[measured, column])


def _chart(panel: Panel) -> Figure | None:
    transports = by_transport(panel)
    queues = [next(filter(None, map(queue, group)), None) for group in transports]
    known = [one for one in queues if one]
    rows = known[:_MAX_CURVES]
    if not rows:
        return None
    thresholds = sorted({row.point.spec.link.ecn_pkts for row in rows} - {0})
    sheet = Sheet(*[(_HEIGHT_IN, 1)] * (3 if thresholds else 2))
    over_time, *near, distribution = (row[0] for row in sheet.axes)
    top = max(4, *(int(row.pkts.max()) for row in rows))
    end_s = max(float(row.t_s[-1]) for row in rows)
    handles = _over_time(over_time, rows, end_s, 1.05 * top, thresholds)
    for axes in near:
        _over_time(axes, rows, min(_NEAR_S, end_s), _NEAR_THRESHOLDS * thresholds[-1], thresholds)
        axes.set_title(f"the first {_NEAR_S:g} s, magnified", color=style.FAINT)
    sheet.axes[-2][0].set_xlabel(axis_labels.SECONDS_OF_WINDOW)
    _distribution(distribution, rows, top, thresholds)
    absent = [label(group[0]) for group, one in zip(transports, queues, strict=True) if one is None]
    words = Text(
        _finding(rows),
        style.subtitle(panel, f"queue at {rows[0].port.node}\N{RIGHTWARDS ARROW}{rows[0].port.peer}"),
        _caption(panel, rows, [label(row.point) for row in known[_MAX_CURVES:]]),
        f"failed or not sampled: {'; '.join(absent)}" if absent else "",
    )
    return sheet.finish(words, handles)


def _over_time(
    axes: Axes, rows: Sequence[Queue], end_s: float, top: float, thresholds: Sequence[int]
) -> list[Line2D]:
    """Draw the range of lengths of each short interval; return the curves for the legend."""
    lines = []
    for row in rows:
        t_s, pkts = row.t_s[row.t_s <= end_s], row.pkts[row.t_s <= end_s]
        starts = np.unique(np.linspace(0, len(t_s), _MAX_BINS, endpoint=False).astype(int))
        both = [extreme.reduceat(pkts, starts) for extreme in (np.minimum, np.maximum)]
        lines += axes.plot(
            np.repeat(t_s[starts], 2),
            np.column_stack(both).ravel(),
            color=colour(row.point),
            linewidth=1.1,
            linestyle=_dash(row),
            label=f"{label(row.point)}: {row.goodput_mbps:.1f} Mb/s",
        )
    for threshold in thresholds:
        axes.axhline(threshold, color=style.INK, linewidth=0.8, linestyle=":")
    axes.set_ylim(0, top)
    axes.set_xlim(0, end_s or 1.0)
    axes.set_ylabel(axis_labels.QUEUE)
    return lines


def _distribution(axes: Axes, rows: Sequence[Queue], top: int, thresholds: Sequence[int]) -> None:
    for row in rows:
        counts = np.bincount(row.pkts)
        share = 100 * np.cumsum(counts) / counts.sum()
        axes.plot(
            [0, *range(len(share)), 1.1 * top],
            [0, *share, 100],
            color=colour(row.point),
            linewidth=1.6,
            linestyle=_dash(row),
            drawstyle="steps-post",
        )
    for threshold in thresholds:
        axes.axvline(threshold, color=style.INK, linewidth=0.8, linestyle=":")
    ticks = [tick for tick in (0, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000) if tick <= top]
    axes.set_xscale("symlog", linthresh=_LINEAR_PKTS, linscale=1)
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_xlim(0, 1.1 * top)
    axes.set_ylim(0, 102)
    axes.set_yticks(range(0, 101, 25))
    axes.set_ylabel("no longer (% of time)")
    axes.set_xlabel(axis_labels.QUEUE)


def _dash(row: Queue) -> str | tuple[int, tuple[int, int]]:
    return style.SUSPECT_DASH if row.point.suspect else "-"


def _finding(rows: Sequence[Queue]) -> str:
    parts = (f"{np.median(row.pkts):.0f} packets with {label(row.point)}" for row in rows)
    return f"Median queue: {'; '.join(parts)}"


def _caption(panel: Panel, rows: Sequence[Queue], left_out: Sequence[str]) -> Caption:
    points = [row.point for row in rows]
    thresholds = sorted({point.spec.link.ecn_pkts for point in points} - {0})
    marks = f"Dotted: queues mark from {' or '.join(map(str, thresholds))} packets on." if thresholds else ""
    missing = f"Not shown: {'; '.join(left_out)}." if left_out else ""
    shown = dataclasses.replace(panel, points=tuple(points))
    notes = [*style.doubts(points), marks, missing, "Mb/s: goodput of all flows together."]
    return Caption(style.parameters(shown), list(filter(None, notes)))
