"""One-way delay of pings against the packets that were queued before each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import laws
from analysis.quantities import EMPTY_WAY_MS
from plots.data import Inputs, Level, Panel, Point
from plots.shared import replicas, saving, style
from plots.shared.sheet import Caption, Sheet, Text

CHART = "wait"
_HEIGHT_IN, _RESIDUAL_IN = 2.5, 1.0


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart per setting; see `registry.Chart.draw`; the line of theory begins at the level of
    `EMPTY_WAY_MS`."""
    return saving.draw_panels(CHART, inputs, lambda panel: _chart(panel, inputs.levels))


def found(point: Point) -> laws.Waits | None:
    """Return pings with the queue that they met; None if either was not sampled."""
    pings, queues, times = (point.read_table(name) for name in ("pings", "queues", "queue_times"))
    if pings is None or queues is None or times is None:
        return None
    return laws.waits(pings, queues, times, laws.way_out(point.ports))


def _theory(axes: Axes, below: Axes, waits: laws.Waits, empty_ms: float, packet_ms: float) -> None:
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


def _chart(panel: Panel, levels: Sequence[Level]) -> Figure | None:
    point = next(iter(panel.best(1)), None)
    waits = found(point) if point else None
    if point is None or waits is None:
        return None
    packet_ms = laws.packet_ms(panel.spec.link.rate_mbps)
    sheet = Sheet((_HEIGHT_IN, 1), (_RESIDUAL_IN, 1))
    axes, below = sheet.axes[0][0], sheet.axes[1][0]
    axes.plot(waits.queued, waits.out_ms, ".", color=style.TCP_COLOUR, ms=3, alpha=0.4, zorder=3)
    most = float(waits.queued.max())
    empty = next((level.value for level in style.levels_of(panel, levels, EMPTY_WAY_MS)), None)
    if empty is not None:
        _theory(axes, below, waits, empty, packet_ms)
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
        replicas.theory_key("empty path and packets queued; grey: the first partly sent")
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
