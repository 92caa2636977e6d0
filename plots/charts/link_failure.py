"""Goodput over time while links fail and come back, and what each flow gets meanwhile."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from analysis import robustness
from harness.results.point_results import PointResult
from model.links import outage
from model.result import Table
from plots.data import MIN_SEEDS_FOR_INTERVAL, Inputs, Panel, interval_pct
from plots.shared import axis_labels, kinds, ranks, saving, style
from plots.shared.sheet import Sheet

Outage = tuple[float, float]


def _failures(points: Iterable[PointResult]) -> Iterator[tuple[PointResult, Outage, Table]]:
    """Yield points, when links of theirs are down (in s from the opening of the window), and their sampled
    goodput. Points without an outage or without samples are left out."""
    for point in points:
        outage_s = outage(point.spec)
        goodput = point.read_table("goodput") if outage_s else None
        if outage_s and goodput:
            yield point, outage_s, goodput


def over_time(points: Iterable[PointResult]) -> tuple[list[float], list[list[float]]]:
    """Return the instants that all points (seeds) have, and the goodput of all flows of each point then,
    in % of that before the failure."""
    series = [
        found
        for _, outage_s, goodput in _failures(points)
        if (found := robustness.of_before_pct(goodput, outage_s)) is not None
    ]
    if not series:
        return [], []
    # Clocks of real runs differ by milliseconds.
    count = min(len(times) for times, _ in series)
    return series[0][0][:count].tolist(), [pct[:count].tolist() for _, pct in series]


def while_down_pct(points: Iterable[PointResult]) -> list[list[float]]:
    """Return the goodput of each point's flows while links are down, in % of a link."""
    return [
        [100 * mbps / point.rate_mbps for mbps in robustness.while_down_mbps(goodput, outage_s)]
        for point, outage_s, goodput in _failures(points)
    ]


def stalled_pct(points: Iterable[PointResult]) -> float | None:
    """Return how many flows stand still while links are down, in percent, averaged over the points."""
    stalled = [
        value
        for point, outage_s, goodput in _failures(points)
        if (value := robustness.stalled_pct(goodput, outage_s, point.rate_mbps)) is not None
    ]
    return statistics.fmean(stalled) if stalled else None


def finding(stalled: Mapping[int, float]) -> str:
    """Return the title: how many flows of TCP and of the largest number of subflows stand still."""
    if not stalled:
        return ""
    least, most = min(stalled), max(stalled)
    flows = f"{_share(stalled[least])} of the {style.transport(least)} flows"
    besides = f", {_share(stalled[most])} of {style.transport(most)}'s" if most != least else ""
    return f"While links are down {flows} stand still{besides}"


def _share(pct: float) -> str:
    return f"{pct:.0f} %" if round(pct) else "none"


@saving.per_panel()
def failure(panel: Panel, inputs: Inputs) -> Figure | None:
    points = {n: of for n in panel.subflows if (of := panel.best(n))}
    outage_s = next(filter(None, (outage(point.spec) for point in panel.points)), None)
    curves = {n: over_time(of) for n, of in points.items()}
    if outage_s is None or not any(times for times, _ in curves.values()):
        return None
    sheet = Sheet((2.4, 1), (2.1, 1))
    (above,), (below,) = sheet.axes
    handles = _lines(above, panel, curves, outage_s)
    down = ranks.each_pooled({n: while_down_pct(of) for n, of in points.items()})
    for n, curve in down.items():
        ranks.line(below, curve, n, max(panel.subflows), panel.dubious(n))
    below.set_ylim(0, max(100.0, below.get_ylim()[1]))
    above.set_ylabel("all flows (% of before)")
    above.set_xlabel(axis_labels.SECONDS_OF_WINDOW)
    below.set_ylabel("goodput (% of a link)")
    ranks.axis(below, "flows while links are down, slowest first (%)")
    stalled = {n: value for n, of in points.items() if (value := stalled_pct(of)) is not None}
    gaps = {n: panel.absence(n) or "no goodput" for n in panel.subflows if n not in points}
    bands = "; bands: 95 % interval" if len(panel.seeds) >= MIN_SEEDS_FOR_INTERVAL else ""
    return sheet.finish(
        finding(stalled) or inputs.title,
        style.subtitle(panel, "while links fail"),
        style.parameters(panel),
        [
            *style.doubts(panel.points),
            f"Above: means over the seeds{bands}." if len(panel.seeds) > 1 else "",
            *(words.replace("Curves", "Below", 1) for words in ranks.note(down.values())),
            "Routing does not learn of the failure.",
        ],
        [*handles, Patch(facecolor=kinds.SHADE, label="links are down")],
        gaps=style.absences(gaps),
    )


def _lines(
    axes: Axes,
    panel: Panel,
    curves: Mapping[int, tuple[list[float], list[list[float]]]],
    outage_s: Outage,
) -> list[Line2D]:
    """Draw a curve of steps for each transport, averaged over the seeds, with a band from six of them on.

    A sample covers the second before it.
    """
    axes.axvspan(*outage_s, color=kinds.SHADE, zorder=0)
    for when_s, what in zip(outage_s, ("cut", "repaired"), strict=True):
        axes.axvline(when_s, color=style.INK, lw=0.9, ls=":", zorder=2)
        axes.annotate(
            what, (when_s, 0), (3, 3), xycoords="data", textcoords="offset points", fontsize=7.5,
            color=style.INK, path_effects=style.halo(), zorder=6,
        )  # fmt: skip
    axes.axhline(100, color=style.FAINT, lw=0.8, zorder=1)
    handles = []
    for n, (times, series) in curves.items():
        if not series:
            continue
        values = np.array(series)
        mean = values.mean(axis=0)
        steps = [times[0] - min(1.0, times[0]), *times]
        line = style.line(axes, steps, [mean[0], *mean.tolist()], n, max(panel.subflows), panel.dubious(n))
        line.set(drawstyle="steps-pre", marker="")
        handles.append(line)
        half_widths = [interval_pct(column.tolist()) for column in values.T]
        if all(half is not None for half in half_widths):
            half = np.array(half_widths, float)
            axes.fill_between(
                times, mean - half, mean + half, color=style.colour(n, max(panel.subflows)), alpha=0.2, lw=0,
                step="pre",
            )  # fmt: skip
    axes.set_ylim(bottom=0)
    return handles
