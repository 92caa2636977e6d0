"""Several traffic matrices: throughput per sending host by network and transport, and the gain over TCP on
the first network (SIGCOMM 2011: it depends on the matrix)."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from plots.data import Inputs
from plots.shared import saving, style
from plots.shared.intervals import interval_pct
from plots.shared.sheet import Sheet, Text
from plots.shared.studies import Curve, Study, per_sender_pct, studies

CHART = "by_matrix"
_ROW_IN, _MIN_IN = 0.3, 0.9


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart per size with all its matrices; see `registry.Chart.draw`."""
    of = studies(inputs.points, lambda _: "matrices")
    return saving.draw_each(
        CHART, [(study.named(), study) for study in of], inputs.out, _chart, lambda s: f"k{s.topology.k}"
    )


def by_gain(study: Study) -> dict[str, float]:
    """Return the gain of the last curve (most subflows, last network) by matrix, the largest first; 0 without
    TCP."""
    last = study.curves[-1]
    gains = {matrix: study.mean_gain(last, matrix, per_sender_pct) or 0.0 for matrix in study.matrices}
    return dict(sorted(gains.items(), key=lambda pair: -pair[1]))


def finding(study: Study) -> str:
    """Return the title: under which matrix the last curve gains most, and under which least."""
    gains = {matrix: gain for matrix, gain in by_gain(study).items() if gain}
    if not gains or study.curves[-1].subflows == 1:
        return "Throughput by traffic matrix"
    most, *_, least = [*gains, *gains]
    who = study.label(study.curves[-1]) + (" (suspect)" if study.dubious(study.curves[-1]) else "")
    words = study.words
    rest = f", {gains[least]:.2f} with {words[least]}" if most != least else ""
    return f"{who}: {gains[most]:.2f} times {study.baseline} with {words[most]}{rest}"


def _chart(study: Study) -> Figure:
    rows = list(by_gain(study))
    height = max(_MIN_IN, _ROW_IN * len(rows))
    sheet = Sheet((height, 1), (height, 1))
    throughput, gain = sheet.axes[0][0], sheet.axes[1][0]
    for place, curve in enumerate(study.curves):
        off = (place - (len(study.curves) - 1) / 2) * 0.5 / len(study.curves)
        reached = {m: [per_sender_pct(point) for point in study.of(curve, m)] for m in rows}
        gains = {m: study.gains(curve, m, per_sender_pct) for m in rows}
        _marks(throughput, curve, reached, off, study.dubious(curve))
        _marks(gain, curve, gains, off, study.dubious(curve))
    for axes in (throughput, gain):
        axes.grid(axis="y", visible=False)
        axes.grid(axis="x", color=style.GRID, linewidth=0.8)
        axes.set_yticks(range(len(rows)), [study.words[matrix] for matrix in rows], fontsize=8)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.margins(x=0.06)
        axes.set_xlim(left=0)
    throughput.set_xlabel("goodput per sending host (% of one NIC)")
    gain.axvline(1, color=style.FAINT, lw=0.8, zorder=1)
    gain.set_xlabel(study.gain_axis)
    subtitle = f"{' and '.join(study.networks)}, by traffic matrix"
    legend = [
        Line2D([], [], ls="", ms=6, color=c.colour, marker=c.marker, label=study.label(c))
        for c in study.curves
    ]
    return sheet.finish(Text(finding(study), subtitle, study.caption), legend)


def _marks(
    axes: Axes, curve: Curve, values: Mapping[str, Sequence[float]], off: float, dubious: bool
) -> None:
    """Draw one row per matrix; the curves' marks are slightly apart, so that none hides another."""
    for y, of in enumerate(values.values()):
        if of:
            axes.errorbar(
                statistics.fmean(of), y + off, xerr=interval_pct(of), ls="", ms=6, capsize=2.5,
                color=curve.colour, marker=curve.marker, zorder=4,
                markerfacecolor="white" if dubious else curve.colour,
            )  # fmt: skip
