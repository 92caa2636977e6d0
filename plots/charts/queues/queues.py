"""Queue length of every port over time (CS244 2013, figures 9, 10 and 12).

One row per transport. Six hundred lines would be unreadable: bands show the length that 50 %, 90 % and 99 %
of the queues do not exceed, and the longest; the queues that are longest on average are drawn and named.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import mul
from pathlib import Path

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from analysis.quantities import QUEUE_PKTS_MAX
from model.result import PortRow
from plots.charts.queues import queue_lengths
from plots.charts.queues.queue_lengths import Lengths
from plots.data import Inputs, Level, Panel, Picked, Point, of_switch
from plots.shared import axis_labels, saving, style
from plots.shared.sheet import Caption, Sheet, Text

CHART = "queues"
_HEIGHT_IN = 1.55
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


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart per setting; see `registry.Chart.draw`; levels of `QUEUE_PKTS_MAX`."""
    return saving.draw_panels(CHART, inputs, lambda panel: _chart(panel, inputs.levels))


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


def _chart(panel: Panel, levels: Sequence[Level]) -> Figure | None:
    picked = panel.first_of_each(_MAX_ROWS, _of_switches)
    rows = picked.items
    if not rows:
        return None
    sheet = Sheet(*[(_HEIGHT_IN, 1)] * len(rows))
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
        _caption(panel, picked),
        style.absences(picked.gaps),
    )
    return sheet.finish(words, _legend(panel), style.published_key(found, panel))


def _of_switches(point: Point) -> Lengths | None:
    lengths = queue_lengths.read(point)
    return lengths.of_switches if lengths and _ports(point) else None


def _row(axes: Axes, row: Lengths) -> None:
    """Draw one transport: bands over all queues, and the longest ones by name."""
    t_s, pkts = row.t_s, row.pkts
    starts = np.unique(np.linspace(0, len(t_s), _MAX_BINS, endpoint=False).astype(int))
    shares = np.percentile(pkts, [share for share, _, _ in _BANDS], axis=1)
    for height, (_, grey, _) in zip(np.maximum.reduceat(shares, starts, axis=1), _BANDS, strict=True):
        axes.fill_between(t_s[starts], 0, height, color=grey, linewidth=0)
    for port, (colour, width) in zip(_worst(row), _WORST_LINES, strict=False):
        both = [extreme.reduceat(pkts[:, port], starts) for extreme in (np.minimum, np.maximum)]
        axes.plot(
            np.repeat(t_s[starts], 2), np.column_stack(both).ravel(), color=colour, linewidth=width,
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


def _caption(panel: Panel, picked: Picked[Lengths]) -> Caption:
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
