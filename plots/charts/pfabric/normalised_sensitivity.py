"""Normalised completion times of minTCP + pFabric by buffer size and by timeout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter, NullLocator

from analysis.completion import ALL, LARGE, SMALL
from model.arms import PFABRIC_QUEUE_BYTES, PFABRIC_RTO_MS
from plots.data import Inputs, Point
from plots.shared import arms, axis_labels
from plots.shared.sheet import Sheet, Text

CHART = "normalised_sensitivity"
_HEIGHT_IN = 1.7
_CURVES = (
    ("all flows, mean", "#0072B2", "o", ALL, arms.value_of(ALL, lambda one: one.mean)),
    ("(0, 100 kB], 99th percentile", "#D55E00", "s", SMALL, arms.value_of(SMALL, lambda one: one.p99)),
    ("above 10 MB, mean", "#009E73", "^", LARGE, arms.value_of(LARGE, lambda one: one.mean)),
)


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart per network and distribution of sizes; see `registry.Chart.draw`."""
    return arms.draw_each(CHART, inputs.points, inputs.out, _chart)


def buffer_kb(point: Point) -> float:
    """Return the buffer of a port in units of 1024 bytes."""
    return point.spec.link.queue_bytes / 1024


def rto_us(point: Point) -> float:
    """Return the fixed timeout in us."""
    return 1000 * point.spec.stack.min_rto_ms


def _chart(study: arms.Study) -> Figure | None:
    buffers = [p for p in study.points if p.spec.stack.min_rto_ms == PFABRIC_RTO_MS]
    timeouts = [p for p in study.points if p.spec.link.queue_bytes == PFABRIC_QUEUE_BYTES]
    read = _CURVES[0][4]
    means = [value for point in study.points if (value := read(point)) is not None]
    if not buffers or not timeouts or not means:
        return None
    sheet = Sheet((_HEIGHT_IN, 1), (_HEIGHT_IN, 1))
    _curves(sheet.axes[0][0], buffers, buffer_kb)
    _curves(sheet.axes[1][0], timeouts, rto_us)
    sheet.axes[0][0].set_xlabel("buffer of a port (kB of 1024 bytes)")
    sheet.axes[1][0].set_xlabel("timeout (us)")
    words = Text(
        f"Mean over all flows: {min(means):.2f} to {max(means):.2f} times the time alone",
        f"{arms.network_words(study)}: load {study.loads[-1]} %, minTCP + pFabric",
        arms.caption(study, arms.HOLLOW, means=True),
    )
    handles = [Line2D([], [], color=c, marker=m, ms=4.5, lw=1.5, label=label) for label, c, m, *_ in _CURVES]
    return sheet.finish(words, handles)


def _curves(axes: Axes, points: Sequence[Point], where: Callable[[Point], float]) -> None:
    places = sorted({where(point) for point in points})
    for _, colour, marker, of, read in _CURVES:
        found = {x: arms.number_of([p for p in points if where(p) == x], read, of) for x in places}
        arms.line(axes, {x: number for x, number in found.items() if number}, colour, marker)
    axes.set_xscale("log")
    axes.set_xticks(places, [f"{place:g}" for place in places])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    arms.times_axis(axes)
    axes.set_ylabel(axis_labels.OVER_ALONE)
