"""Normalised completion times by flow size and load (pFabric, SIGCOMM 2013, figures 7 and 8)."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from analysis.completion import LARGE, MIDDLE, SMALL
from model.arms import ARMS, IDEAL
from plots.data import Inputs
from plots.shared import arms, axis_labels
from plots.shared.sheet import Sheet, Text

CHART = "normalised_by_size"
_HEIGHT_IN = 1.7
_PANELS = (
    ("(0, 100 kB]: mean", SMALL, arms.value_of(SMALL, lambda one: one.mean)),
    ("(0, 100 kB]: 99th percentile", SMALL, arms.value_of(SMALL, lambda one: one.p99)),
    ("(100 kB, 10 MB]: mean", MIDDLE, arms.value_of(MIDDLE, lambda one: one.mean)),
    ("above 10 MB: mean", LARGE, arms.value_of(LARGE, lambda one: one.mean)),
)


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart per network and distribution of sizes; see `registry.Chart.draw`."""
    return arms.draw_each(CHART, inputs.points, inputs.out, _chart)


def finding(study: arms.Study) -> str:
    """Return the title: the tail of small flows at the highest load."""
    load, read = study.loads[-1], _PANELS[1][2]
    parts = [
        f"{ARMS[name].label} {mean:.3g}"
        for name in study.arms
        if name != IDEAL and (mean := arms.reached(study, name, read)) is not None
    ]
    if not parts:
        return f"Completion times by flow size, up to {load} % load"
    return f"p99 of small flows at {load} % load, over their time alone: {', '.join(parts)}"


def _chart(study: arms.Study) -> Figure:
    sheet = Sheet((_HEIGHT_IN, 2), (_HEIGHT_IN, 2))
    flat = [axes for row in sheet.axes for axes in row]
    for axes, (title, of, value) in zip(flat, _PANELS, strict=True):
        arms.curves(axes, study, value, of)
        arms.times_axis(axes)
        axes.set_title(title, fontsize=8.5, loc="left")
        axes.set_xticks(study.loads[:: 2 if len(study.loads) > 4 else 1])
    for row in sheet.axes:
        row[0].set_ylabel(axis_labels.OVER_ALONE)
    for axes in sheet.axes[1]:
        axes.set_xlabel(axis_labels.LOAD)
    notes = f"{arms.HOLLOW} p99 from a hundred flows on."
    words = Text(
        finding(study),
        f"{arms.network_words(study)}: by size of flow",
        arms.caption(study, notes, means=True),
    )
    return sheet.finish(words, arms.legend(study))
