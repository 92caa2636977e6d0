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
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from analysis.quantities import QUEUE_PKTS_MAX
from harness.results.point_results import PointResult
from model.result import PortRow
from plots.data import Inputs, Panel, of_switch
from plots.shared import axis_labels, kinds, saving, style
from plots.shared.kinds import JOINED, by_transport, transport_label, transport_look
from plots.shared.sheet import Sheet

Indices = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Lengths:
    """`pkts[i, j]` is the length at `t_s[i]` of the queue of `ports[j]`; t_s counts from the opening of the
    measured window, the warm-up is negative."""

    point: PointResult
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


def read(point: PointResult) -> Lengths | None:
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


_MAX_ROWS, _MAX_BINS = 3, 160
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


def _bins(count: int, most: int = _MAX_BINS) -> npt.NDArray[np.int64]:
    """Return where each of at most `most` short intervals begins."""
    return np.unique(np.linspace(0, count, most, endpoint=False).astype(np.int64))


def _extremes(
    t_s: kinds.Floats, pkts: npt.NDArray[np.int32], starts: npt.NDArray[np.int64]
) -> tuple[Any, Any]:
    """Return a line through the shortest and the longest length of each interval."""
    both = [extreme.reduceat(pkts, starts) for extreme in (np.minimum, np.maximum)]
    return np.repeat(t_s[starts], 2), np.column_stack(both).ravel()


def finding(panel: Panel, points: Sequence[PointResult]) -> str:
    """Return the title: how many queues ever drop, or how long the longest gets where none has a limit."""
    if panel.spec.link.queue_pkts:
        dropping = [(p, f"{100 * np.mean([port.drops > 0 for port in _ports(p)]):.0f} %") for p in points]
        return f"Queues that overflow: {style.with_transports(dropping)}"
    longest = [(point, max(port.max_queue_pkts for port in _ports(point))) for point in points]
    values = [(p, f"{pkts} packets ({style.milliseconds(panel.delay_ms(pkts))})") for p, pkts in longest]
    return f"Longest queue: {style.with_transports(values)}"


def _ports(point: PointResult) -> list[PortRow]:
    return [port for port in point.ports if of_switch(port)]


@saving.per_panel()
def queues(panel: Panel, inputs: Inputs) -> Figure | None:
    rows, absent, left_out = panel.first_of_each(_MAX_ROWS, _of_switches)
    if not rows:
        return None
    sheet = Sheet(*[(1.55, 1)] * len(rows))
    limit = panel.spec.link.queue_pkts
    found = [] if limit else inputs.beside(panel, QUEUE_PKTS_MAX)
    top = float(max(limit, *(row.pkts.max() for row in rows)))
    for (axes,), row in zip(sheet.axes, rows, strict=True):
        _row(axes, row)
        beside = [level for level in found if level.subflows == row.point.subflows]
        for level in beside:
            style.published_line(axes, level.value)
        _scale(axes, max(top, 4.0, *(level.value for level in beside)), panel)
    sheet.axes[-1][0].set_xlabel(axis_labels.SECONDS_OF_WINDOW)
    points = [row.point for row in rows]
    shades = [Patch(color=grey, label=name) for _, grey, name in reversed(_BANDS)]
    line = Line2D([], [], color=style.INK, linewidth=0.8, label="limit")
    return sheet.finish(
        finding(panel, points),
        style.subtitle(panel, f"{rows[0].pkts.shape[1]} switch queues over time"),
        style.parameters(panel),
        [
            *style.doubts(points),
            "Left of the dotted line: warm-up." if any(row.t_s[0] < 0 for row in rows) else "",
            *style.choice(panel, points, left_out),
        ],
        [*shades, *([line] if limit else [])],
        style.published_key(found, panel),
        gaps=style.absences(absent),
    )


def _of_switches(point: PointResult) -> Lengths | None:
    lengths = read(point)
    return lengths.of_switches if lengths and _ports(point) else None


def _row(axes: Axes, row: Lengths) -> None:
    """Draw one transport: bands over all queues, and the longest ones by name."""
    t_s, pkts = row.t_s, row.pkts
    starts = _bins(len(t_s))
    shares = np.percentile(pkts, [share for share, _, _ in _BANDS], axis=1)
    for height, (_, grey, _) in zip(np.maximum.reduceat(shares, starts, axis=1), _BANDS, strict=True):
        axes.fill_between(t_s[starts], 0, height, color=grey, linewidth=0)
    for port, (shade, width) in zip(_worst(row), _WORST_LINES, strict=False):
        axes.plot(
            *_extremes(t_s, pkts[:, port], starts), color=shade, linewidth=width,
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


_MAX_CURVES, _COLUMNS = 5, 3
_DIRECTIONS = ("host-edge", "edge-agg", "agg-core", "edge-host", "agg-edge", "core-agg")
"""The first row of charts is the way up, the second the way down."""
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Histogram:
    """How many samples of a point had each length from 0 up: of its switches' queues, which are `ports`, and
    by direction, the hosts' own among them."""

    point: PointResult
    ports: int
    switches: Counts
    by_direction: dict[str, Counts]


def histogram(point: PointResult) -> Histogram | None:
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


@saving.per_panel()
def queue_cdf(panel: Panel, _: Inputs) -> Figure | None:
    rows, absent, left_out = panel.first_of_each(_MAX_CURVES, histogram)
    if not rows:
        return None
    known = {direction for row in rows for direction in row.by_direction}
    directions = [one for one in _DIRECTIONS if one in known]
    below = -(-len(directions) // _COLUMNS) if len(directions) == len(_DIRECTIONS) else 0
    sheet = Sheet((2.4, 1), *[(0.85, _COLUMNS)] * below)
    top = max(panel.spec.link.queue_pkts, *(len(row.switches) - 1 for row in rows), 4)
    axes = sheet.axes[0][0]
    handles = _curves(axes, [(row.point, row.switches) for row in rows], panel, top)
    axes.set_ylabel("queues this long or shorter (%)")
    axes.set_xlabel(axis_labels.QUEUE)
    for one, direction in zip(kinds.every(sheet.axes[1:]), directions, strict=False):
        _curves(one, [(row.point, row.by_direction[direction]) for row in rows], panel, top)
        one.set_title(direction.replace("-", " \N{RIGHTWARDS ARROW} "), color=style.FAINT)
        one.tick_params(labelleft=one in [row[0] for row in sheet.axes], labelbottom=one in sheet.axes[-1])
    longest = [(row.point, f"{quantile(row.switches, 99)} packets") for row in rows]
    ends = style.with_transports([longest[0], *longest[1:][-1:]])
    points = [row.point for row in rows]
    return sheet.finish(
        f"99 % of the time a queue is no longer than {ends}",
        style.subtitle(panel, f"lengths of {rows[0].ports} switch queues"),
        style.parameters(panel),
        [*style.doubts(points), *style.choice(panel, points, left_out)],
        handles,
        gaps=style.absences(absent),
    )


def _up_to(counts: Counts, end: float) -> tuple[list[float], list[float]]:
    """Return lengths, and the share of samples in % that are no longer, up to the end of the axis."""
    share = 100 * np.cumsum(counts) / counts.sum()
    return [0, *range(len(share)), end], [0, *share.tolist(), 100]


def _curves(axes: Axes, counts: Sequence[tuple[PointResult, Counts]], panel: Panel, top: int) -> list[Line2D]:
    most = max(panel.subflows)
    lines = [
        style.line(axes, *_up_to(of, top * 1.03), point.subflows, most, point.suspect) for point, of in counts
    ]
    for line in lines:
        line.set_drawstyle("steps-post")
    axes.set_xlim(0, top * 1.03)
    axes.set_ylim(0, 102)
    axes.set_yticks(range(0, 101, 25 if axes.bbox.height > 300 else 50))
    axes.xaxis.set_major_locator(MaxNLocator(6 if axes.bbox.width > 500 else 3, integer=True))
    return lines


_NEAR_S, _NEAR_THRESHOLDS = 2.0, 2.5
"""How much of the window, and up to how many thresholds, the magnified picture shows."""
_MOST_TRANSPORTS, _MORE_BINS = 4, 240
_LINEAR_PKTS = 10
"""The axis is linear up to here and logarithmic beyond, to show both a threshold and a full buffer."""


def queue(point: PointResult) -> Lengths | None:
    """Return the bottleneck's queue alone, in the measured window; None where queues were not sampled."""
    lengths = read(point)
    if lengths is None or not lengths.of_switches.ports:
        return None
    switches = lengths.of_switches
    busiest = max(range(len(switches.ports)), key=lambda i: switches.ports[i].tx_bytes)
    measured = switches.t_s >= 0
    if not measured.any():
        return None
    pkts = switches.pkts[measured][:, [busiest]]
    return Lengths(point, (switches.ports[busiest],), switches.t_s[measured], pkts)


@saving.per_panel(JOINED)
def bottleneck(panel: Panel, _: Inputs) -> Figure | None:
    """Draw points that differ at most in congestion control and marking."""
    groups = by_transport(panel)
    found = [next(filter(None, map(queue, group)), None) for group in groups]
    known = [one for one in found if one]
    rows, left_out = known[:_MOST_TRANSPORTS], known[_MOST_TRANSPORTS:]
    if not rows:
        return None
    points = [row.point for row in rows]
    thresholds = sorted({point.spec.link.ecn_pkts for point in points} - {0})
    sheet = Sheet(*[(1.5, 1)] * (3 if thresholds else 2))
    over_time, *near, distribution = (row[0] for row in sheet.axes)
    top = max(4, *(int(row.pkts.max()) for row in rows))
    end_s = max(float(row.t_s[-1]) for row in rows)
    handles = _over_time(over_time, rows, end_s, 1.05 * top, thresholds)
    for axes in near:
        _over_time(axes, rows, min(_NEAR_S, end_s), _NEAR_THRESHOLDS * thresholds[-1], thresholds)
        axes.set_title(f"the first {_NEAR_S:g} s, magnified", color=style.FAINT)
    sheet.axes[-2][0].set_xlabel(axis_labels.SECONDS_OF_WINDOW)
    _distribution(distribution, rows, top, thresholds)
    absent = [transport_label(group[0]) for group, one in zip(groups, found, strict=True) if one is None]
    medians = "; ".join(
        f"{np.median(row.pkts):.0f} packets with {transport_label(row.point)}" for row in rows
    )
    marks = " or ".join(map(str, thresholds))
    others = "; ".join(transport_label(row.point) for row in left_out)
    (port,) = rows[0].ports
    return sheet.finish(
        f"Median queue: {medians}",
        style.subtitle(panel, f"queue at {port.node}\N{RIGHTWARDS ARROW}{port.peer}"),
        style.parameters(dataclasses.replace(panel, points=tuple(points))),
        [
            *style.doubts(points),
            f"Dotted: queues mark from {marks} packets on." if marks else "",
            f"Not shown: {others}." if others else "",
            "Mb/s: goodput of all flows together.",
        ],
        handles,
        gaps=f"failed or not sampled: {'; '.join(absent)}" if absent else "",
    )


def _over_time(
    axes: Axes, rows: Sequence[Lengths], end_s: float, top: float, thresholds: Sequence[int]
) -> list[Line2D]:
    """Draw the range of lengths of each short interval; return the curves for the legend."""
    lines = []
    for row in rows:
        early = row.t_s <= end_s
        mbps, drawn = sum(flow.goodput_mbps for flow in row.point.under_test), transport_look(row.point)
        lines += axes.plot(
            *_extremes(row.t_s[early], row.pkts[early], _bins(int(early.sum()), _MORE_BINS)),
            color=drawn.colour, lw=1.1, ls=drawn.dash, label=f"{drawn.label}: {mbps:.1f} Mb/s",
        )  # fmt: skip
    for threshold in thresholds:
        axes.axhline(threshold, color=style.INK, linewidth=0.8, linestyle=":")
    axes.set_ylim(0, top)
    axes.set_xlim(0, end_s or 1.0)
    axes.set_ylabel(axis_labels.QUEUE)
    return lines


def _distribution(axes: Axes, rows: Sequence[Lengths], top: int, thresholds: Sequence[int]) -> None:
    for row in rows:
        drawn = transport_look(row.point)
        axes.plot(
            *_up_to(np.bincount(row.pkts.ravel()), 1.1 * top), color=drawn.colour, lw=1.6, ls=drawn.dash,
            drawstyle="steps-post",
        )  # fmt: skip
    for threshold in thresholds:
        axes.axvline(threshold, color=style.INK, linewidth=0.8, linestyle=":")
    ticks = [tick for tick in (0, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000) if tick <= top]
    axes.set_xscale("symlog", linthresh=_LINEAR_PKTS, linscale=1)
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_xlim(0, 1.1 * top)
    kinds.share_axis(axes, "no longer (% of time)")
    axes.set_xlabel(axis_labels.QUEUE)
