"""Congestion windows over time, subflow by subflow, of the fastest, the median and the slowest flow.

One column per transport, each with its own scale: TCP beside the largest number of subflows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from model.result import FlowRow, Table
from plots.data import Inputs, Panel, Picked, Point
from plots.shared import axis_labels, saving, style
from plots.shared.sheet import Caption, Sheet, Text

CHART = "cwnd"
_HEIGHT_IN = 1.2
_MAX_COLUMNS, _MAX_SAMPLES = 2, 160


@dataclass(frozen=True, eq=False)
class Windows:
    """The flows chosen of a point (fastest, median, slowest), its samples, and the mean window in packets."""

    point: Point
    flows: dict[str, FlowRow]
    sockets: Table
    mean_pkts: float


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart per setting; see `registry.Chart.draw`."""
    return saving.draw_panels(CHART, inputs, _chart)


def chosen_flows(flows: Sequence[FlowRow]) -> dict[str, FlowRow]:
    """Return the fastest, the median and the slowest flow; fewer where there are fewer than three."""
    ranked = sorted(flows, key=lambda flow: -flow.goodput_mbps)
    if len(ranked) < 3:
        return dict(zip(("fastest", "slowest"), ranked, strict=False))
    return {"fastest": ranked[0], "median": ranked[len(ranked) // 2], "slowest": ranked[-1]}


def windows(point: Point) -> Windows | None:
    """Return what to draw of a point; None where sockets were not sampled."""
    sockets = point.read_table("sockets")
    if sockets is None or not len(sockets):
        return None
    sampled = set(np.unique(sockets["flow"]).tolist())
    flows = chosen_flows([flow for flow in point.flows if flow.flow in sampled])
    if not flows:
        return None
    measured = sockets["t_s"] >= 0
    return Windows(
        point, flows, sockets, float(sockets["cwnd_pkts"][measured if measured.any() else ...].mean())
    )


def _chart(panel: Panel) -> Figure | None:
    picked = panel.first_of_each(_MAX_COLUMNS, windows)
    columns = picked.items
    if not columns:
        return None
    kinds = max((list(column.flows) for column in columns), key=len)
    sheet = Sheet(*[(_HEIGHT_IN, len(columns))] * len(kinds))
    for row, kind in zip(sheet.axes, kinds, strict=True):
        for axes, column in zip(row, columns, strict=True):
            _flow(axes, column, kind)
            axes.tick_params(labelbottom=row is sheet.axes[-1])
        row[0].set_ylabel(axis_labels.CWND, fontsize=8.5)
    for column, of_column in zip(columns, zip(*sheet.axes, strict=True), strict=True):
        _scale(of_column)
        of_column[0].set_title(f"{style.name(column.point)}\n{of_column[0].get_title(loc='left')}")
        of_column[-1].set_xlabel(axis_labels.SECONDS)
    mean = [(column.point, f"{column.mean_pkts:.0f} packets") for column in columns]
    title = f"Mean congestion window: {style.with_transports(mean)}"
    subtitle = style.subtitle(panel, "congestion windows")
    words = Text(title, subtitle, _caption(panel, picked), style.absences(picked.gaps))
    return sheet.finish(words, _legend(columns))


def _scale(column: Sequence[Axes]) -> None:
    """Set one scale for all flows of a transport, to compare them."""
    top = max(4.0, *(float(axes.dataLim.y1) for axes in column))
    for axes in column:
        axes.set_ylim(0, 1.05 * top)
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))


def _flow(axes: Axes, column: Windows, kind: str) -> None:
    """Draw the subflows of one flow, over seconds since the opening of the measured window."""
    flow, point = column.flows.get(kind), column.point
    axes.grid(axis="x", color=style.GRID, linewidth=0.8)
    if flow is None:
        axes.set_title("no other flow")
        return
    of_flow = column.sockets["flow"] == flow.flow
    t_s, subflow, cwnd = (column.sockets[name][of_flow] for name in ("t_s", "subflow", "cwnd_pkts"))
    for number in range(point.subflows):
        mine = subflow == number
        step = max(1, -(-int(mine.sum()) // _MAX_SAMPLES))
        axes.plot(
            t_s[mine][::step], cwnd[mine][::step], color=_colour(number, point.subflows), linewidth=1,
        )  # fmt: skip
    if point.suspect:
        style.hatch(axes)
    axes.set_title(f"{kind}: {flow.goodput_mbps:.3g} Mb/s\n{flow.src}\N{RIGHTWARDS ARROW}{flow.dst}")
    axes.set_xlim(float(column.sockets["t_s"].min()), max(float(column.sockets["t_s"].max()), 1e-3))


def _colour(subflow: int, subflows: int) -> str:
    """Return the colour: the first subflow has TCP's, the others run from light to dark."""
    if subflow == 0:
        return style.TCP_COLOUR
    return style.colour(subflow + 1, subflows)


def _legend(columns: Sequence[Windows]) -> list[Line2D]:
    subflows = max(column.point.subflows for column in columns)
    names = {0: "TCP, or first subflow", 1: "second", subflows - 1: "last"} if subflows > 1 else {}
    return [Line2D([], [], color=_colour(n, subflows), label=label) for n, label in names.items()]


def _caption(panel: Panel, picked: Picked[Windows]) -> Caption:
    points = [column.point for column in picked.items]
    return Caption(
        style.parameters(panel),
        [
            *style.doubts(points),
            *style.choice(panel, points, picked.left_out),
            "Seconds count from the opening of the measured window.",
        ],
    )
