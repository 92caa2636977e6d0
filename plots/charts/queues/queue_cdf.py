"""Distribution of queue lengths over ports and time: of all switch queues, and of each layer and direction.

A sample is one queue at one instant of the measured window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from plots.charts.queues import queue_lengths
from plots.data import Inputs, Panel, Picked, Point
from plots.shared import axis_labels, saving, style
from plots.shared.sheet import Caption, Sheet, Text

CHART = "queue_cdf"
_HEIGHT_IN, _LAYER_HEIGHT_IN = 2.4, 0.85
_MAX_CURVES, _COLUMNS = 5, 3
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


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart per setting; see `registry.Chart.draw`."""
    return saving.draw_panels(CHART, inputs, _chart)


def histogram(point: Point) -> Histogram | None:
    """Return counts of the point's sampled lengths; None where queues were not sampled."""
    lengths = queue_lengths.read(point)
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


def _chart(panel: Panel) -> Figure | None:
    picked = panel.first_of_each(_MAX_CURVES, histogram)
    rows = picked.items
    if not rows:
        return None
    known = {direction for row in rows for direction in row.by_direction}
    directions = [one for one in _DIRECTIONS if one in known]
    below = -(-len(directions) // _COLUMNS) if len(directions) == len(_DIRECTIONS) else 0
    sheet = Sheet((_HEIGHT_IN, 1), *[(_LAYER_HEIGHT_IN, _COLUMNS)] * below)
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
    words = Text(_finding(rows), subtitle, _caption(panel, picked), style.absences(picked.gaps))
    return sheet.finish(words, handles)


def _finding(rows: Sequence[Histogram]) -> str:
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


def _caption(panel: Panel, picked: Picked[Histogram]) -> Caption:
    points = [row.point for row in picked.items]
    return Caption(
        style.parameters(panel), [*style.doubts(points), *style.choice(panel, points, picked.left_out)]
    )
