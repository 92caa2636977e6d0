"""The distribution of normalised completion times of each arm at the highest load that ran."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from analysis.completion import ALL, SMALL, Range, normalised
from model.arms import ARMS
from plots.data import Inputs
from plots.shared import arms, axis_labels, style
from plots.shared.sheet import Sheet, Text

CHART = "normalised_cdf"
_HEIGHT_IN = 1.8
_PANELS = (ALL, SMALL)


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart per network and distribution of sizes; see `registry.Chart.draw`."""
    return arms.draw_each(CHART, inputs.points, inputs.out, _chart)


def values(study: arms.Study, arm: str, of: Range) -> list[float]:
    """Return the sorted normalised times of all seeds at the highest load."""
    points = study.of(arm, study.loads[-1])
    return sorted(v for point in points for v in normalised(point.flows, point.spec.seconds, of).values)


def _chart(study: arms.Study) -> Figure:
    sheet = Sheet(*[(_HEIGHT_IN, 1)] * len(_PANELS))
    for (axes,), of in zip(sheet.axes, _PANELS, strict=True):
        for name in study.arms:
            _curve(axes, values(study, name, of), ARMS[name].colour)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.set_ylim(0, 102)
        axes.set_yticks(range(0, 101, 25))
        axes.set_ylabel("flows (%)")
        axes.set_title(of.label, fontsize=8.5, loc="left")
    sheet.axes[-1][0].set_xlabel(axis_labels.COMPLETION_OVER_ALONE)
    load = study.loads[-1]
    alone = ", ".join(f"{ARMS[name].label} {_at_once_pct(study, name):.0f} %" for name in study.arms)
    title = f"Flows within 1.1 times their time alone at {load} % load: {alone}"
    words = Text(title, f"{arms.network_words(study)}: load {load} %", arms.caption(study))
    return sheet.finish(words, arms.legend(study))


def _at_once_pct(study: arms.Study, arm: str) -> float:
    all_of = values(study, arm, ALL)
    return 100 * sum(value <= 1.1 for value in all_of) / max(1, len(all_of))


def _curve(axes: Axes, of: Sequence[float], colour: str) -> None:
    if not of:
        return
    share = 100 * np.arange(1, len(of) + 1) / len(of)
    shown = np.unique(np.linspace(0, len(of) - 1, style.MOST_POINTS).round().astype(int))
    axes.plot(np.array(of)[shown], share[shown], color=colour, lw=1.5)
