"""Real hosts beside simulated ones under a controller that opens subflows: goodput and subflows of every
flow, and the subflows of some flows over time."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from engines.registry import LINUX_HOSTS, SIMULATED_HOSTS
from model.responsive import is_responsive
from model.result import Status, Table
from plots.charts.on_demand.trade_off import APART
from plots.data import Inputs, Panel, Point, panels
from plots.shared import axis_labels, saving, style
from plots.shared.sheet import Caption, Sheet, Text

CHART = "subflows_beside"
REAL, SIMULATED = "#D55E00", "#0072B2"
MAX_FLOWS = 4
STARTS_TOGETHER = "native"
_HEIGHTS_IN = 2.0, 0.7
_SPREAD = 0.12
"""Marks of equal numbers of subflows lie beside each other."""
Series = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Twins:
    """The same point between real hosts and simulated, with flows in the same order."""

    real: Point
    simulated: Point

    @property
    def suspect(self) -> bool:
        return self.real.status is not Status.OK


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart per network and workload that both kinds of hosts ran; see `registry.Chart.draw`."""
    ours = (point for point in inputs.points if not point.failed and is_responsive(point.spec.scheduler))
    of = [_of_both(panel) for panel in panels(ours, ignoring=(*APART, "engine", "stack", "traffic"))]
    return saving.draw_each(CHART, [(panel.spec, panel) for panel in of], inputs.out, _chart)


def _of_both(panel: Panel) -> Panel:
    """Return the panel with a spec that names both engines, and the traffic whose flows start together."""
    engines = " and ".join(sorted({point.spec.engine for point in panel.points}))
    return dataclasses.replace(
        panel, spec=dataclasses.replace(panel.spec, engine=engines, traffic=STARTS_TOGETHER)
    )


def twins(panel: Panel) -> list[Twins]:
    """Return the pairs of a panel by seed; points of one engine alone are left out."""
    kinds: list[dict[int, Point]] = [{}, {}]
    for point in panel.points:
        for found, engines in zip(kinds, (LINUX_HOSTS, SIMULATED_HOSTS), strict=True):
            if point.spec.engine in engines and point.flows:
                found[point.spec.seed] = point
    real, simulated = kinds
    return [Twins(real[seed], simulated[seed]) for seed in sorted(real) if seed in simulated]


def subflows_over_time(sockets: Table, flow: int) -> tuple[Series, Series]:
    """Return instants in s and the open subflows of a flow at them."""
    times = np.unique(sockets["t_s"].astype(np.float64))
    ours = sockets["t_s"][sockets["flow"] == flow].astype(np.float64)
    position = np.searchsorted(times, ours)
    return times, np.bincount(position, minlength=len(times)).astype(np.float64)


def shown(pair: Twins) -> list[int]:
    """Return the flows whose subflows are drawn over time: spread over the ranks of real goodput."""
    ranked = sorted(pair.real.flows, key=lambda flow: (flow.goodput_mbps, flow.flow))
    last, count = len(ranked) - 1, min(MAX_FLOWS, len(ranked))
    return [ranked[round(i * last / max(1, count - 1))].flow for i in range(count)]


def _value(point: Point, flow: int) -> float:
    """Return a flow's goodput in Mb/s, or its completion time in s if it has a size."""
    row = point.flows[flow]
    return row.completed_s if row.size_bytes else row.goodput_mbps


def _chart(panel: Panel) -> Figure | None:
    of = twins(panel)
    if not of:
        return None
    sampled = [
        pair for pair in of if pair.real.read_table("sockets") and pair.simulated.read_table("sockets")
    ]
    flows = shown(sampled[0]) if sampled else []
    sheet = Sheet((_HEIGHTS_IN[0], 2), *((_HEIGHTS_IN[1], 1) for _ in flows))
    _values(sheet.axes[0][0], of)
    _counts(sheet.axes[0][1], of)
    for (axes,), flow in zip(sheet.axes[1:], flows, strict=True):
        _over_time(axes, sampled[0], flow, flow == flows[-1])
    words = Text(
        finding(of),
        f"{style.network(panel.spec)}, {style.workload(panel.spec)}",
        _caption(panel, of, sampled),
    )
    return sheet.finish(words, _legend() if flows else [])


def finding(of: Sequence[Twins]) -> str:
    """Return the title: subflows per flow of both kinds of hosts."""
    real, simulated = (
        statistics.fmean(flow.subflows_joined for point in points for flow in point.flows)
        for points in ([pair.real for pair in of], [pair.simulated for pair in of])
    )
    return f"Subflows per flow: {real:.2f} real, {simulated:.2f} simulated"


def _values(axes: Axes, of: Sequence[Twins]) -> None:
    sized = any(flow.size_bytes for flow in of[0].real.flows)
    for pair in of:
        rows = [row.flow for row in pair.real.flows]
        points = [(_value(pair.simulated, flow), _value(pair.real, flow)) for flow in rows]
        x, y = zip(*points, strict=True)
        axes.scatter(x, y, s=14, lw=0.8, edgecolors=REAL, facecolors="none" if pair.suspect else REAL)
    what = "completion, s" if sized else "goodput, Mb/s"
    axes.set_title(f"{what}, of each flow", fontsize=8, loc="left")
    _diagonal(axes)


def _counts(axes: Axes, of: Sequence[Twins]) -> None:
    pairs = [
        (pair.simulated.flows[row.flow].subflows_joined, row.subflows_joined)
        for pair in of
        for row in pair.real.flows
    ]
    place = np.random.default_rng(1).uniform(-_SPREAD, _SPREAD, (len(pairs), 2))
    x, y = (np.array(pairs, np.float64) + place).T
    axes.scatter(x, y, s=10, lw=0, alpha=0.7, color=REAL)
    axes.set_title("subflows of each flow", fontsize=8, loc="left")
    _diagonal(axes)
    most = max(max(pair) for pair in pairs)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks(range(most + 1))


def _diagonal(axes: Axes) -> None:
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    most = max(axes.get_xlim()[1], axes.get_ylim()[1])
    axes.set_xlim(0, most)
    axes.set_ylim(0, most)
    axes.plot([0, most], [0, most], color=style.GRID, lw=1.0, zorder=0)
    axes.set_xlabel("simulated")
    axes.set_ylabel("real")


def _over_time(axes: Axes, pair: Twins, flow: int, is_last: bool) -> None:
    for point, colour, line in ((pair.real, REAL, "-"), (pair.simulated, SIMULATED, "--")):
        table = point.read_table("sockets")
        assert table is not None
        axes.step(*subflows_over_time(table, flow), where="post", color=colour, ls=line, lw=1.4)
    row = pair.real.flows[flow]
    axes.set_title(f"{row.src} to {row.dst}: subflows", fontsize=8, loc="left")
    axes.set_ylim(0, pair.real.subflows + 0.5)
    axes.set_yticks(range(0, pair.real.subflows + 1, 2))
    if is_last:
        axes.set_xlabel(axis_labels.SECONDS_OF_WINDOW)


def _legend() -> list[Artist]:
    looks = ((REAL, "-", "real hosts"), (SIMULATED, "--", "simulated"))
    return [Line2D([], [], color=colour, ls=line, lw=1.6, label=label) for colour, line, label in looks]


def _caption(panel: Panel, of: Sequence[Twins], sampled: Sequence[Twins]) -> Caption:
    bare = dataclasses.replace(panel, spec=panel.spec.neutral(*APART))
    over_time = f"Over time: seed {sampled[0].real.spec.seed}." if sampled else ""
    notes = [f"{len(of)} seeds, one mark per flow; hollow: suspect.", over_time, *style.doubts(panel.points)]
    return Caption(style.parameters(bare, congestion=""), list(filter(None, notes)))
