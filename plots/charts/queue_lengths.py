"""Queue lengths: of every port over time (CS244 2013, figures 9, 10 and 12), as a distribution over ports and
time, and at the bottleneck under several transports (as Alizadeh et al., SIGCOMM 2010, figures 1 and 13).

Six hundred lines would be unreadable: bands show the length that 50 %, 90 % and 99 % of the queues do not
exceed, and the longest; the queues that are longest on average are drawn and named. The bottleneck is the
switch port that sent most.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from operator import mul
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from analysis.quantities import QUEUE_PKTS_MAX
from model.result import PortRow
from plots.data import Inputs, Level, Panel, Point, Selection, of_switch
from plots.shared import axis_labels, saving, style
from plots.shared.sheet import Caption, Sheet, Text
from plots.shared.transports import by_transport, colour, draw_joined, label

Indices = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Lengths:
    """`pkts[i, j]` is the length at `t_s[i]` of the queue of `ports[j]`; t_s counts from the opening of the
    measured window, the warm-up is negative."""

    point: Point
    ports: tuple[PortRow, ...]
    t_s: npt.NDArray[np.float64]
    pkts: npt.NDArray[np.int32]

    @property
    def of_switches(self) -> Lengths:
        """The lengths without the hosts' own queues."""
        kept = [i for i, port in enumerate(self.ports) if of_switch(port)]
        return Lengths(self.point, tuple(self.ports[i] for i in kept), self.t_s, self.pkts[:, kept])

    @property
    def window(self) -> npt.NDArray[np.int32]:
        """The lengths of the measured window alone; all of them where no sample falls into it."""
        measured = self.t_s >= 0
        return self.pkts[measured] if measured.any() else self.pkts


def read(point: Point) -> Lengths | None:
    """Return the queue length of every port at every sampled instant; None where they were not sampled.

    Zeros are left out of the table, so that the ports come from the point and the instants from their own
    table; without that one, from the instants at which any queue was not empty.
    """
    table = point.read_table("queues")
    if table is None or not point.ports:
        return None
    times = point.read_table("queue_times")
    t_s = np.unique((table if times is None else times)["t_s"].astype(float))
    if not len(t_s):
        return None
    ports = tuple(sorted(point.ports, key=lambda port: port.port))
    pkts = np.zeros((len(t_s), len(ports)), np.int32)
    instants, timed = _places(t_s, table["t_s"].astype(float))
    columns, known = _places(np.array([port.port for port in ports]), table["port"].astype(int))
    both = timed & known
    pkts[instants[both], columns[both]] = table["pkts"][both]
    return Lengths(point, ports, t_s, pkts)


def _places(ordered: npt.NDArray[Any], values: npt.NDArray[Any]) -> tuple[Indices, npt.NDArray[np.bool_]]:
    """Return the position of each value in `ordered`, and whether it is there."""
    found = np.searchsorted(ordered, values).clip(max=len(ordered) - 1)
    return found, ordered[found] == values


_QUEUES_HEIGHT_IN = 1.55
_MAX_ROWS, _QUEUES_MAX_BINS = 3, 160
_HEADROOM = 1.22
"""Height of the axes over the longest queue: room for the names of the worst queues."""
_BANDS = (
    (100, "#f0f0f0", "longest"),
    (99, "#dedede", "99 %"),
    (90, "#c4c4c4", "90 %"),
    (50, "#989898", "50 %"),
)
"""Percentile of the queues, its grey, and its name."""
_WORST_LINES = (("#000000", 1.2), ("#0072B2", 1.1), ("#CC79A7", 1.1))


def draw_queues(inputs: Inputs) -> list[Path]:
    """Draw one chart per setting; see `registry.Chart.draw`; levels of `QUEUE_PKTS_MAX`."""
    return saving.draw_panels("queues", inputs, lambda panel: _queues_chart(panel, inputs.levels))


def finding(panel: Panel, points: Sequence[Point]) -> str:
    """Return the title: how many queues ever drop, or how long the longest gets where none has a limit."""
    if panel.spec.link.queue_pkts:
        dropping = [(p, f"{100 * np.mean([port.drops > 0 for port in _ports(p)]):.0f} %") for p in points]
        return f"Queues that overflow: {style.with_transports(dropping)}"
    longest = [(point, max(port.max_queue_pkts for port in _ports(point))) for point in points]
    values = [(p, f"{pkts} packets ({style.milliseconds(panel.delay_ms(pkts))})") for p, pkts in longest]
    return f"Longest queue: {style.with_transports(values)}"


def _ports(point: Point) -> list[PortRow]:
    return [port for port in point.ports if of_switch(port)]


def _queues_chart(panel: Panel, levels: Sequence[Level]) -> Figure | None:
    picked = panel.first_of_each(_MAX_ROWS, _of_switches)
    rows = picked.items
    if not rows:
        return None
    sheet = Sheet(*[(_QUEUES_HEIGHT_IN, 1)] * len(rows))
    unbounded = panel.spec.link.queue_pkts == 0
    found = style.levels_of(panel, levels, QUEUE_PKTS_MAX) if unbounded else []
    top = float(max(panel.spec.link.queue_pkts, *(row.pkts.max() for row in rows)))
    for (axes,), row in zip(sheet.axes, rows, strict=True):
        _row(axes, row)
        beside = [level for level in found if level.subflows == row.point.subflows]
        for level in beside:
            style.published_line(axes, level.value)
        _scale(axes, max(top, 4.0, *(level.value for level in beside)), panel)
    sheet.axes[-1][0].set_xlabel(axis_labels.SECONDS_OF_WINDOW)
    subtitle = style.subtitle(panel, f"{rows[0].pkts.shape[1]} switch queues over time")
    words = Text(
        finding(panel, [row.point for row in rows]),
        subtitle,
        _queues_caption(panel, picked),
        style.absences(picked.gaps),
    )
    return sheet.finish(words, _legend(panel), style.published_key(found, panel))


def _of_switches(point: Point) -> Lengths | None:
    lengths = read(point)
    return lengths.of_switches if lengths and _ports(point) else None


def _row(axes: Axes, row: Lengths) -> None:
    """Draw one transport: bands over all queues, and the longest ones by name."""
    t_s, pkts = row.t_s, row.pkts
    starts = np.unique(np.linspace(0, len(t_s), _QUEUES_MAX_BINS, endpoint=False).astype(int))
    shares = np.percentile(pkts, [share for share, _, _ in _BANDS], axis=1)
    for height, (_, grey, _) in zip(np.maximum.reduceat(shares, starts, axis=1), _BANDS, strict=True):
        axes.fill_between(t_s[starts], 0, height, color=grey, linewidth=0)
    for port, (shade, width) in zip(_worst(row), _WORST_LINES, strict=False):
        both = [extreme.reduceat(pkts[:, port], starts) for extreme in (np.minimum, np.maximum)]
        axes.plot(
            np.repeat(t_s[starts], 2), np.column_stack(both).ravel(), color=shade, linewidth=width,
            linestyle=style.SUSPECT_DASH if row.point.suspect else "-",
            label=f"{row.ports[port].node}\N{RIGHTWARDS ARROW}{row.ports[port].peer}",
        )  # fmt: skip
    if row.point.suspect:
        style.hatch(axes)
    axes.set_title(f"{style.name(row.point)}: mean {row.window.mean():.1f} packets")
    axes.set_xlim(t_s[0], max(t_s[starts[-1]], t_s[0] + 1e-3))
    if t_s[0] < 0 < t_s[-1]:
        axes.axvline(0, ymax=1 / _HEADROOM, color=style.INK, linewidth=0.8, linestyle=":")


def _worst(row: Lengths) -> list[int]:
    """Return the columns of the queues that are longest on average, the longest first."""
    means = row.window.mean(axis=0)
    return [int(port) for port in np.argsort(-means, kind="stable")[: len(_WORST_LINES)] if means[port] > 0]


def _scale(axes: Axes, top: float, panel: Panel) -> None:
    """Set one scale for all rows, with room for the names; the right axis shows the delay."""
    axes.set_ylim(0, _HEADROOM * top)
    ticks = MaxNLocator(4, integer=True).tick_values(0, top)
    axes.set_yticks([tick for tick in ticks if 0 <= tick <= top])
    axes.set_ylabel(axis_labels.QUEUE)
    seconds = panel.delay_ms(top) >= 2000
    unit_ms = panel.delay_ms(1) / (1000 if seconds else 1)
    right = axes.secondary_yaxis("right", functions=(partial(mul, unit_ms), partial(mul, 1 / unit_ms)))
    right.set_ylabel(f"delay ({'s' if seconds else 'ms'})")
    ticks = MaxNLocator(4).tick_values(0, top * unit_ms)
    right.set_yticks([tick for tick in ticks if 0 <= tick <= top * unit_ms])
    if panel.spec.link.queue_pkts:
        axes.axhline(panel.spec.link.queue_pkts, color=style.INK, linewidth=0.8)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(
            loc="upper left", ncols=3, fontsize=8, frameon=False, borderaxespad=0, borderpad=0.2,
            handlelength=1.3, columnspacing=1, handletextpad=0.4,
        )  # fmt: skip


def _legend(panel: Panel) -> list[Artist]:
    shades = [Patch(color=grey, label=name) for _, grey, name in reversed(_BANDS)]
    limit = Line2D([], [], color=style.INK, linewidth=0.8, label="limit")
    return [*shades, *([limit] if panel.spec.link.queue_pkts else [])]


def _queues_caption(panel: Panel, picked: Selection[Lengths]) -> Caption:
    points = [row.point for row in picked.items]
    warm = any(row.t_s[0] < 0 for row in picked.items)
    return Caption(
        style.parameters(panel),
        [
            *style.doubts(points),
            *(["Left of the dotted line: warm-up."] if warm else []),
            *style.choice(panel, points, picked.left_out),
        ],
    )


_CDF_HEIGHT_IN, _LAYER_HEIGHT_IN = 2.4, 0.85
_CDF_MAX_CURVES, _COLUMNS = 5, 3
_DIRECTIONS = ("host-edge", "edge-agg", "agg-core", "edge-host", "agg-edge", "core-agg")
"""The first row of charts is the way up, the second the way down."""
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Histogram:
    """How many samples of a point had each length from 0 up: of its switches' queues, which are `ports`, and
    by direction, the hosts' own among them."""

    point: Point
    ports: int
    switches: Counts
    by_direction: dict[str, Counts]


def draw_queue_cdf(inputs: Inputs) -> list[Path]:
    """Draw one chart per setting; see `registry.Chart.draw`."""
    return saving.draw_panels("queue_cdf", inputs, _cdf_chart)


def histogram(point: Point) -> Histogram | None:
    """Return counts of the point's sampled lengths; None where queues were not sampled."""
    lengths = read(point)
    if lengths is None:
        return None
    pkts = lengths.window
    directions = np.array([port.layer for port in lengths.ports])
    by_direction = {
        str(one): np.bincount(pkts[:, directions == one].ravel()) for one in dict.fromkeys(directions)
    }
    switches = lengths.of_switches.window
    if not switches.size:
        return None
    return Histogram(point, switches.shape[1], np.bincount(switches.ravel()), by_direction)


def quantile(counts: Counts, share_pct: float) -> int:
    """Return the shortest length that at least `share_pct` % of the samples do not exceed."""
    return int(np.searchsorted(np.cumsum(counts), share_pct / 100 * counts.sum()))


def _cdf_chart(panel: Panel) -> Figure | None:
    picked = panel.first_of_each(_CDF_MAX_CURVES, histogram)
    rows = picked.items
    if not rows:
        return None
    known = {direction for row in rows for direction in row.by_direction}
    directions = [one for one in _DIRECTIONS if one in known]
    below = -(-len(directions) // _COLUMNS) if len(directions) == len(_DIRECTIONS) else 0
    sheet = Sheet((_CDF_HEIGHT_IN, 1), *[(_LAYER_HEIGHT_IN, _COLUMNS)] * below)
    top = max(panel.spec.link.queue_pkts, *(len(row.switches) - 1 for row in rows), 4)
    axes = sheet.axes[0][0]
    handles = _curves(axes, [(row.point, row.switches) for row in rows], panel, top)
    axes.set_ylabel("queues this long or shorter (%)")
    axes.set_xlabel(axis_labels.QUEUE)
    small = [one for row in sheet.axes[1:] for one in row]
    for one, direction in zip(small, directions, strict=False):
        _curves(one, [(row.point, row.by_direction[direction]) for row in rows], panel, top)
        one.set_title(direction.replace("-", " \N{RIGHTWARDS ARROW} "), color=style.FAINT)
        one.tick_params(labelleft=one in [row[0] for row in sheet.axes], labelbottom=one in sheet.axes[-1])
    subtitle = style.subtitle(panel, f"lengths of {rows[0].ports} switch queues")
    words = Text(_cdf_finding(rows), subtitle, _cdf_caption(panel, picked), style.absences(picked.gaps))
    return sheet.finish(words, handles)


def _cdf_finding(rows: Sequence[Histogram]) -> str:
    longest = [(row.point, f"{quantile(row.switches, 99)} packets") for row in rows]
    ends = [longest[0], *longest[1:][-1:]]
    return f"99 % of the time a queue is no longer than {style.with_transports(ends)}"


def _curves(axes: Axes, counts: Sequence[tuple[Point, Counts]], panel: Panel, top: int) -> list[Line2D]:
    lines = []
    for point, of in counts:
        share = 100 * np.cumsum(of) / of.sum()
        line = style.line(
            axes,
            [0, *range(len(share)), top * 1.03],
            [0, *share, 100],
            point.subflows,
            max(panel.subflows),
            point.suspect,
        )
        line.set_drawstyle("steps-post")
        lines.append(line)
    axes.set_xlim(0, top * 1.03)
    axes.set_ylim(0, 102)
    axes.set_yticks(range(0, 101, 25 if axes.bbox.height > 300 else 50))
    axes.xaxis.set_major_locator(MaxNLocator(6 if axes.bbox.width > 500 else 3, integer=True))
    return lines


def _cdf_caption(panel: Panel, picked: Selection[Histogram]) -> Caption:
    points = [row.point for row in picked.items]
    return Caption(
        style.parameters(panel), [*style.doubts(points), *style.choice(panel, points, picked.left_out)]
    )


_BOTTLENECK_HEIGHT_IN = 1.5
_NEAR_S, _NEAR_THRESHOLDS = 2.0, 2.5
"""How much of the window, and up to how many thresholds, the magnified picture shows."""
_BOTTLENECK_MAX_CURVES, _BOTTLENECK_MAX_BINS = 4, 240
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


def draw_bottleneck(inputs: Inputs) -> list[Path]:
    """Draw one chart for points that differ at most in congestion control and marking; see
    `registry.Chart.draw`."""
    return draw_joined("bottleneck", inputs, _bottleneck_chart)


def queue(point: Point) -> Queue | None:
    """Return the bottleneck's queue; None where queues were not sampled."""
    lengths = read(point)
    if lengths is None or not lengths.of_switches.ports:
        return None
    switches = lengths.of_switches
    column = max(range(len(switches.ports)), key=lambda i: switches.ports[i].tx_bytes)
    measured = switches.t_s >= 0
    if not measured.any():
        return None
    return Queue(point, switches.ports[column], switches.t_s[measured], switches.pkts[measured, column])


def _bottleneck_chart(panel: Panel) -> Figure | None:
    transports = by_transport(panel)
    queues = [next(filter(None, map(queue, group)), None) for group in transports]
    known = [one for one in queues if one]
    rows = known[:_BOTTLENECK_MAX_CURVES]
    if not rows:
        return None
    thresholds = sorted({row.point.spec.link.ecn_pkts for row in rows} - {0})
    sheet = Sheet(*[(_BOTTLENECK_HEIGHT_IN, 1)] * (3 if thresholds else 2))
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
        _bottleneck_finding(rows),
        style.subtitle(panel, f"queue at {rows[0].port.node}\N{RIGHTWARDS ARROW}{rows[0].port.peer}"),
        _bottleneck_caption(panel, rows, [label(row.point) for row in known[_BOTTLENECK_MAX_CURVES:]]),
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
        starts = np.unique(np.linspace(0, len(t_s), _BOTTLENECK_MAX_BINS, endpoint=False).astype(int))
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


def _bottleneck_finding(rows: Sequence[Queue]) -> str:
    parts = (f"{np.median(row.pkts):.0f} packets with {label(row.point)}" for row in rows)
    return f"Median queue: {'; '.join(parts)}"


def _bottleneck_caption(panel: Panel, rows: Sequence[Queue], left_out: Sequence[str]) -> Caption:
    points = [row.point for row in rows]
    thresholds = sorted({point.spec.link.ecn_pkts for point in points} - {0})
    marks = f"Dotted: queues mark from {' or '.join(map(str, thresholds))} packets on." if thresholds else ""
    missing = f"Not shown: {'; '.join(left_out)}." if left_out else ""
    shown = dataclasses.replace(panel, points=tuple(points))
    notes = [*style.doubts(points), marks, missing, "Mb/s: goodput of all flows together."]
    return Caption(style.parameters(shown), list(filter(None, notes)))
