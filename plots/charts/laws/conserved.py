"""Packets received by switches beside those sent on and dropped: none appears, none vanishes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis.plausibility import Balance, balances, unaccounted, undelivered_bytes
from plots.data import Inputs, Panel, Point
from plots.shared import saving, style
from plots.shared.sheet import Caption, Sheet, Text

CHART = "conserved"
_ROW_IN = 0.62
_NAMES = {"edge": "edge", "agg": "aggregation", "core": "core"}
_ARRIVED, _SENT, _DROPPED = "#56B4E9", "#009E73", "#D55E00"


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart per setting with flows of given size; see `registry.Chart.draw`."""
    return saving.draw_panels(CHART, inputs, _chart)


def finding(point: Point) -> str:
    """Return the title."""
    lost = sum(port.drops + port.lost for port in point.ports)
    vanished, missing = unaccounted(point.ports), undelivered_bytes(point.flows)
    return (
        f"{lost:,} packets were dropped or lost, {vanished:,} are unaccounted for, "
        f"{missing:,} bytes not delivered"
    ).replace(",", "\N{THIN SPACE}", 1)


def _chart(panel: Panel) -> Figure | None:
    ran = [point for n in panel.subflows for point in panel.best(n)]
    point = next((p for p in ran if balances(p.ports) and any(f.size_bytes for f in p.flows)), None)
    if point is None:
        return None
    layers: dict[str, list[Balance]] = {}
    for balance in balances(point.ports):
        layers.setdefault(balance.layer, []).append(balance)
    sheet = Sheet((_ROW_IN * len(layers), 1))
    axes = sheet.axes[0][0]
    for row, (layer, of) in enumerate(layers.items()):
        _row(axes, row, of)
        axes.annotate(
            _NAMES.get(layer, layer), (0, row - 0.42), (2, 3), textcoords="offset points", fontsize=8.5
        )
    axes.set_ylim(len(layers) - 0.4, -0.65)
    axes.set_yticks([])
    axes.grid(axis="x", color=style.GRID, linewidth=0.8)
    axes.set_xlabel("packets, all switches of a layer")
    legend = [
        Patch(facecolor=_ARRIVED, label="received"),
        Patch(facecolor=_SENT, label="sent on"),
        Patch(facecolor=_DROPPED, label="dropped"),
    ]
    who = f"{style.network(panel.spec)}, {panel.hosts} hosts, {style.transport(point.subflows)}"
    subtitle = f"{who}: transfers, until the network is idle"
    return sheet.finish(Text(finding(point), subtitle, _caption(panel, point)), legend)


def _row(axes: Axes, row: int, of: Sequence[Balance]) -> None:
    arrived, sent, dropped = (sum(getattr(b, name) for b in of) for name in ("arrived", "sent", "dropped"))
    axes.barh(row - 0.12, arrived, 0.26, color=_ARRIVED)
    axes.barh(row + 0.18, sent, 0.26, color=_SENT)
    axes.barh(row + 0.18, dropped, 0.26, left=sent, color=_DROPPED)
    left_over = sum(abs(b.unaccounted) for b in of)
    label = (
        f"{arrived} = {sent} + {dropped}" if not left_over else f"{left_over} of {arrived} unaccounted for"
    )
    axes.annotate(
        label, (0, row + 0.18), (4, 0), textcoords="offset points", va="center", fontsize=8, color="white"
    )


def _caption(panel: Panel, point: Point) -> Caption:
    lost = sum(port.lost for port in point.ports)
    return Caption(
        style.parameters(panel),
        [
            *style.doubts([point]),
            f"Counted at every port until the end; {lost} packets lost between switches are not in the bars.",
        ],
    )
