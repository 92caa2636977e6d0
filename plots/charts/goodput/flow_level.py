"""Flow-level models beside the packet-level simulator: mean goodput by subflows, and that of every flow.

Points belong together if they differ only in the engine: the same flows over the same paths. There is one
chart per network that more than one engine ran.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis.quantities import GOODPUT_PCT_MEAN
from engines.registry import FLOW_LEVEL, MAX_MIN, SIMULATOR
from plots.data import Inputs, Level, Panel, Point, panels
from plots.shared import axis_labels, ranks, saving, style
from plots.shared.sheet import Caption, Sheet, Text

CHART = "flow_level"
ENGINES = {
    SIMULATOR: ("packet level", "#111111"),
    FLOW_LEVEL: ("flow level, equilibrium", "#0072B2"),
    MAX_MIN: ("flow level, max-min", "#E69F00"),
}
"""Name and colour of each engine, the same in bars and curves."""
_MIN_APART_PCT = 8.0
"""Distance between labels of two published lines. If lines are closer, their labels are moved apart."""
_HEIGHT_IN = 1.9
_LABELS_WIDE = 0.22
"""Room for the labels of published lines, as a share of the bars."""


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart per network and setting that a model ran; see `registry.Chart.draw`; means are drawn."""
    of = [(panel.spec, panel) for panel in _panels(inputs.points)]
    return saving.draw_each(CHART, of, inputs.out, lambda panel: _chart(panel, inputs.levels))


def _panels(points: Iterable[Point]) -> list[Panel]:
    """Group points that differ at most in engine, subflows and seed."""
    usable = (p for p in points if p.flows_pct and not p.failed and p.spec.engine in ENGINES)
    return [
        dataclasses.replace(
            panel,
            spec=dataclasses.replace(panel.spec, engine=SIMULATOR),
            subflows=tuple(sorted({point.subflows for point in panel.points})),
        )
        for panel in panels(usable, ignoring=("engine",))
    ]


def mean_goodput_pct(panel: Panel, engine: str, subflows: int) -> float | None:
    """Return the mean goodput in % over the seeds; None if the engine did not run it."""
    means = [statistics.fmean(point.flows_pct) for point in _of(panel, engine, subflows)]
    return statistics.fmean(means) if means else None


def difference(panel: Panel, engine: str) -> tuple[float, float] | None:
    """Return the mean of a model minus that of packets, in points: on average over subflow counts, and the
    extreme."""
    off = [
        model - packets
        for count in panel.subflows
        if (model := mean_goodput_pct(panel, engine, count)) is not None
        and (packets := mean_goodput_pct(panel, SIMULATOR, count)) is not None
    ]
    return (statistics.fmean(off), max(off, key=abs)) if off else None


def finding(panel: Panel) -> str:
    """Return the title: the difference of the equilibrium from packets, or its goodput if there are no
    packets."""
    off = difference(panel, FLOW_LEVEL)
    if off is not None:
        return f"Equilibrium minus packets: {off[0]:+.1f} points on average, {off[1]:+.1f} at most"
    most = panel.subflows[-1]
    mean = mean_goodput_pct(panel, FLOW_LEVEL, most)
    return (
        "Flow level" if mean is None else f"{style.transport(most)} at equilibrium: {mean:.0f} % of optimal"
    )


def _of(panel: Panel, engine: str, subflows: int) -> list[Point]:
    return [point for point in panel.points if (point.spec.engine, point.subflows) == (engine, subflows)]


def _chart(panel: Panel, levels: Sequence[Level]) -> Figure:
    ends = sorted({panel.subflows[0], panel.subflows[-1]})
    beside = [level for level in style.levels_of(panel, levels, GOODPUT_PCT_MEAN) if not level.shape]
    sheet = Sheet((_HEIGHT_IN, 1), (_HEIGHT_IN, len(ends)))
    here = [engine for engine in ENGINES if any(point.spec.engine == engine for point in panel.points)]
    _bars(sheet.axes[0][0], panel, here, beside)
    for place, (axes, count) in enumerate(zip(sheet.axes[1], ends, strict=True)):
        _ranks(axes, panel, here, count)
        axes.set_ylabel(axis_labels.GOODPUT_PCT if place == 0 else "")
    text = Text(
        finding(panel), style.subtitle(panel, "mean, and goodput of every flow"), _caption(panel, beside)
    )
    return sheet.finish(text, _legend(here), style.published_key(beside, panel))


def _bars(axes: Axes, panel: Panel, here: Sequence[str], beside: Sequence[Level]) -> None:
    width = 0.8 / len(here)
    for place, engine in enumerate(here):
        for x, count in enumerate(panel.subflows):
            height = mean_goodput_pct(panel, engine, count)
            if height is not None:
                axes.bar(
                    x + (place - (len(here) - 1) / 2) * width, height, 0.92 * width, color=ENGINES[engine][1]
                )
    _published(axes, panel, beside)
    style.percent_axis(axes, 100.0)
    axes.set_xlim(-0.6, len(panel.subflows) - 0.4 + (_LABELS_WIDE * len(panel.subflows) if beside else 0))
    axes.set_xticks(range(len(panel.subflows)), ["TCP" if n == 1 else str(n) for n in panel.subflows])
    axes.set_xlabel(axis_labels.TRANSPORTS)
    axes.set_ylabel(axis_labels.on_two_lines(GOODPUT_PCT_MEAN.axis))


def _published(axes: Axes, panel: Panel, beside: Sequence[Level]) -> None:
    """Draw each published value as a line over its bars, with a label at the right that says whose it is."""
    last, below = len(panel.subflows) - 1, math.inf
    for level in sorted(beside, key=lambda one: -one.value):
        x = panel.subflows.index(level.subflows)
        axes.hlines(
            level.value, x - 0.46, x + 0.46, color="black", ls=style.PUBLISHED_DASH, lw=1.5, zorder=5,
            path_effects=style.halo(),
        )  # fmt: skip
        if x == last:
            below = min(level.value, below - _MIN_APART_PCT)
            where, words = (x + 0.5, below), f"{level.bound}, k={level.k}"
        else:
            where, words = (x - 0.46, level.value + 2), level.bound
        axes.annotate(
            words, where, ha="left", va="center" if x == last else "bottom", fontsize=7.5, zorder=6,
            path_effects=style.halo(),
        )  # fmt: skip


def _curve(panel: Panel, engine: str, count: int) -> ranks.Ranks | None:
    return ranks.pooled(point.flows_pct for point in _of(panel, engine, count))


def _ranks(axes: Axes, panel: Panel, here: Sequence[str], count: int) -> None:
    """Draw the flows of all seeds, slowest first, one curve per engine."""
    for place, engine in enumerate(here):
        curve = _curve(panel, engine, count)
        if curve:
            axes.plot(
                curve.x_pct, curve.values, color=ENGINES[engine][1], lw=1.5, zorder=3 + place,
                ls=("-", (0, (5, 1.5)), (0, (1.5, 1.5)))[place],
            )  # fmt: skip
    axes.set_ylim(0, 106)
    axes.set_yticks([0, 25, 50, 75, 100])
    ranks.axis(axes, axis_labels.FLOWS, 50)
    axes.set_title(style.transport(count))


def _legend(here: Sequence[str]) -> list[Artist]:
    return [Patch(facecolor=ENGINES[e][1], label=ENGINES[e][0]) for e in here]


def _caption(panel: Panel, beside: Sequence[Level]) -> Caption:
    off = difference(panel, MAX_MIN)
    packets = any(point.spec.engine == SIMULATOR for point in panel.points)
    return Caption(
        style.parameters(panel),
        [
            *ranks.note([curve for e in ENGINES if (curve := _curve(panel, e, panel.subflows[-1]))]),
            *([f"Max-min minus packets: {off[0]:+.1f} points on average."] if off else []),
            *([] if packets else ["No packet-level points here."]),
            style.definition(panel),
            *style.sources(beside),
        ],
    )
