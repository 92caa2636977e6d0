"""Mean normalised completion time of all flows by load (Alizadeh et al., pFabric, SIGCOMM 2013, figure 6)."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from analysis.completion import ALL
from model.arms import ARMS, ON_LINUX, TWINS
from plots.data import Inputs
from plots.shared import arms, axis_labels
from plots.shared.sheet import Sheet, Text

CHART = "normalised_by_load"
_HEIGHT_IN = 2.4


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart per network and distribution of sizes; see `registry.Chart.draw`."""
    return arms.draw_each(CHART, inputs.points, inputs.out, _chart)


def finding(study: arms.Study) -> str:
    """Return the title: what each arm reaches at the highest load, its simulated twin in parentheses."""
    load, read = study.loads[-1], arms.value_of(ALL, lambda one: one.mean)
    means = {name: arms.reached(study, name, read) for name in study.arms}
    known = {name: mean for name, mean in means.items() if mean is not None}
    both = {real: twin for real, twin in zip(ON_LINUX, TWINS, strict=True) if {real, twin} <= known.keys()}
    alone = [f"{ARMS[name].label} {known[name]:.2f}" for name in known if name not in {*both, *both.values()}]
    beside = [f"{ARMS[real].sender} {known[real]:.2f} ({known[twin]:.2f})" for real, twin in both.items()]
    kinds = ", Linux (simulated)" if both else ""
    return f"Completion time over time alone at {load} % load{kinds}: {', '.join(alone + beside)}"


def _chart(study: arms.Study) -> Figure:
    sheet = Sheet((_HEIGHT_IN, 1))
    axes = sheet.axes[0][0]
    arms.curves(axes, study, arms.value_of(ALL, lambda one: one.mean), ALL)
    arms.times_axis(axes)
    axes.set_ylabel(axis_labels.COMPLETION_OVER_ALONE)
    axes.set_xlabel(axis_labels.LOAD)
    axes.set_xticks(study.loads)
    words = Text(
        finding(study),
        f"{arms.network_words(study)}: mean of all flows",
        arms.caption(study, arms.HOLLOW, means=True),
    )
    return sheet.finish(words, arms.legend(study))
