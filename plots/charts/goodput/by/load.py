"""Throughput of a host against the number of connections it has, by network and transport, and the gain over
TCP on the first network (SIGCOMM 2011, on oversubscribed and dual-homed FatTrees)."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from plots.data import Inputs, Point
from plots.shared import saving, style
from plots.shared.intervals import interval_pct
from plots.shared.sheet import Sheet, Text
from plots.shared.studies import Curve, Study, per_host_pct, studies

CHART = "by_load"
_HEIGHTS_IN = (2.1, 1.7)


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart per size and matrix that ran at several loads and differs in nothing else; see
    `registry.Chart.draw`."""
    of = [
        study
        for study in studies(inputs.points, lambda point: point.spec.workload.matrix)
        if _is_by_load(study)
    ]
    return saving.draw_each(
        CHART,
        [(study.named(), study) for study in of],
        inputs.out,
        _chart,
        lambda s: f"k{s.topology.k}-{s.workload.matrix}",
    )


def load(point: Point) -> float:
    """Return the mean number of connections per host."""
    return len(point.flows) / point.hosts


def _loads(study: Study) -> dict[str, float]:
    """Return the connections per host of each matrix, ascending, from the first network that has it."""
    found: dict[str, float] = {}
    for point in study.points:
        found.setdefault(point.matrix, load(point))
    return dict(sorted(found.items(), key=lambda pair: pair[1]))


def _is_by_load(study: Study) -> bool:
    loads = list(_loads(study).values())
    return len(set(loads)) == len(loads) > 1


def finding(study: Study) -> str:
    """Return the title: which curve gains most over TCP on the first network, and at what load.

    Curves with suspect points count only if there are no others.
    """
    others = [curve for curve in study.curves if curve.subflows > 1 or curve.place]
    good = [curve for curve in others if not study.dubious(curve)]
    gains = {
        (curve, matrix): gain
        for curve in good or others
        for matrix in study.matrices
        if (gain := study.mean_gain(curve, matrix, per_host_pct)) is not None
    }
    if not gains:
        return "Throughput by load"
    curve, matrix = max(gains, key=gains.__getitem__)
    at = f"at {_loads(study)[matrix]:.2g} connections per host"
    doubt = " (suspect)" if study.dubious(curve) else ""
    return f"{study.label(curve)}{doubt}: up to {gains[curve, matrix]:.2f} times {study.baseline}, {at}"


def _chart(study: Study) -> Figure:
    sheet = Sheet(*((height, 1) for height in _HEIGHTS_IN))
    throughput, gain = sheet.axes[0][0], sheet.axes[1][0]
    loads = _loads(study)
    for curve in study.curves:
        reached = {m: [per_host_pct(point) for point in study.of(curve, m)] for m in loads}
        gains = {m: study.gains(curve, m, per_host_pct) for m in loads}
        _curve(throughput, curve, loads, reached, study.dubious(curve))
        _curve(gain, curve, loads, gains, study.dubious(curve))
    for axes in (throughput, gain):
        _load_axis(axes, list(loads.values()))
    throughput.set_ylabel("goodput per host\n(% of one NIC)")
    gain.set_ylabel(study.gain_axis.replace(" on ", "\non "))
    gain.axhline(1, color=style.FAINT, lw=0.8, zorder=1)
    gain.set_xlabel("mean number of connections per host")
    subtitle = f"{' and '.join(study.networks)}: {style.workload(study.points[0].spec)}, by load"
    legend = [
        Line2D([], [], color=c.colour, ls=c.line, marker=c.marker, ms=4.5, label=study.label(c))
        for c in study.curves
    ]
    return sheet.finish(Text(finding(study), subtitle, study.caption), legend)


def _curve(
    axes: Axes, curve: Curve, loads: Mapping[str, float], values: Mapping[str, Sequence[float]], dubious: bool
) -> None:
    """Draw the mean over the seeds at every load that was measured."""
    at = [(loads[matrix], of) for matrix, of in values.items() if of]
    if at:
        axes.errorbar(
            [x for x, _ in at], [statistics.fmean(of) for _, of in at],
            yerr=[interval_pct(of) or 0.0 for _, of in at], color=curve.colour, ls=curve.line,
            marker=curve.marker, ms=4.5, lw=1.6, capsize=2.5, zorder=3 + curve.place,
            markerfacecolor="white" if dubious else curve.colour,
        )  # fmt: skip


def _load_axis(axes: Axes, loads: Sequence[float]) -> None:
    """Make the axis logarithmic, with a tick at every load."""
    axes.set_xscale("log")
    axes.set_xticks(loads, [f"{round(load, 2):g}" for load in loads])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_ylim(bottom=0)
