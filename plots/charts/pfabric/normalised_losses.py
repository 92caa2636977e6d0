"""Packets dropped and segments retransmitted by load and arm."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from analysis.quantities import DROPS, INJECTED
from model.arms import ARMS, IDEAL
from plots.data import Inputs, Point
from plots.shared import arms, axis_labels
from plots.shared.sheet import Sheet, Text

CHART = "normalised_losses"
_HEIGHT_IN = 1.8


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart per network and distribution of sizes; see `registry.Chart.draw`."""
    with_packets = [point for point in inputs.points if point.spec.engine != IDEAL]
    return arms.draw_each(CHART, with_packets, inputs.out, _chart)


def dropped_pct(point: Point) -> float | None:
    """Return the packets dropped in percent of those that hosts sent, acknowledgements included."""
    sent = point.recorded(INJECTED)
    return 100 * (point.recorded(DROPS) or 0.0) / sent if sent else None


def retransmitted_pct(point: Point) -> float | None:
    """Return the segments retransmitted in percent of full segments delivered."""
    segments = sum(flow.bytes_received for flow in point.flows) / point.spec.stack.payload_bytes
    return 100 * sum(flow.retransmits for flow in point.flows) / segments if segments else None


def _chart(study: arms.Study) -> Figure:
    sheet = Sheet((_HEIGHT_IN, 1), (_HEIGHT_IN, 1))
    for (axes,), value in zip(sheet.axes, (dropped_pct, retransmitted_pct), strict=True):
        arms.curves(axes, study, value)
        axes.set_ylim(bottom=0)
        axes.set_xticks(study.loads)
    sheet.axes[0][0].set_ylabel("packets dropped (%)")
    sheet.axes[1][0].set_ylabel("retransmitted (%)")
    sheet.axes[1][0].set_xlabel(axis_labels.LOAD)
    load = study.loads[-1]
    parts = [
        f"{ARMS[name].label} {mean:.2g} %"
        for name in study.arms
        if (mean := arms.reached(study, name, dropped_pct)) is not None
    ]
    words = Text(
        f"Packets dropped at {load} % load: {', '.join(parts)}",
        f"{arms.network_words(study)}: drops and retransmissions",
        arms.caption(study),
    )
    return sheet.finish(words, arms.legend(study))
