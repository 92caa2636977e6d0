"""pFabric with one part changed at a time: one row per arm, by size of flow."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from analysis.completion import ALL, LARGE, SMALL, Range
from model.arms import ARMS, Arm
from plots.data import Inputs
from plots.shared import arms, axis_labels
from plots.shared.sheet import Sheet, Text

CHART = "normalised_parts"
_ROW_IN = 0.2
_PANELS = (
    ("all: mean", ALL, arms.value_of(ALL, lambda one: one.mean)),
    ("up to 100 kB: p99", SMALL, arms.value_of(SMALL, lambda one: one.p99)),
    ("> 10 MB: mean", LARGE, arms.value_of(LARGE, lambda one: one.mean)),
)


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart per network and distribution of sizes; see `registry.Chart.draw`."""
    return arms.draw_each(CHART, inputs.points, inputs.out, _chart)


def _chart(study: arms.Study) -> Figure:
    height = 0.15 + _ROW_IN * len(study.arms)
    sheet = Sheet((height, 3))
    for axes, (title, of, value) in zip(sheet.axes[0], _PANELS, strict=True):
        _rows(axes, study, of, value)
        axes.set_title(title, fontsize=7, loc="left")
    sheet.axes[0][0].set_yticks(range(len(study.arms)), [ARMS[name].label for name in study.arms], fontsize=7)
    sheet.axes[0][1].set_xlabel(axis_labels.COMPLETION_OVER_ALONE)
    words = Text(
        _finding(study),
        f"{arms.network_words(study)}: load {study.loads[-1]} %",
        arms.caption(study, arms.HOLLOW, means=True),
    )
    return sheet.finish(words)


def _rows(axes: Axes, study: arms.Study, of: Range, value: arms.ValueOf) -> None:
    for row, name in enumerate(study.arms):
        found = arms.number_of(study.of(name, study.loads[-1]), value, of)
        if found is not None:
            _mark(axes, row, found, ARMS[name])
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    axes.set_xlim(0.95, max(2.5, high * (high / max(low, 0.9)) ** 0.45))
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0) if high > 10 else (1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_ylim(len(study.arms) - 0.5, -0.5)
    axes.set_yticks(range(len(study.arms)), [""] * len(study.arms))


def _mark(axes: Axes, row: int, found: arms.Number, arm: Arm) -> None:
    axes.plot([1, found.mean], [row, row], color=arm.colour, lw=1.2, alpha=0.5)
    axes.errorbar(
        [found.mean], [row], xerr=[found.half], color=arm.colour, marker=arm.marker, ms=5, capsize=2.5,
        markerfacecolor="white" if found.is_bound else arm.colour,
    )  # fmt: skip
    at = found.mean + found.half, row
    axes.annotate(f"{found.mean:.3g}", at, xytext=(5, -3), textcoords="offset points", fontsize=7)


def _finding(study: arms.Study) -> str:
    """Return the title: which change costs most, over all flows."""
    means = {name: arms.reached(study, name, _PANELS[0][2]) for name in study.arms}
    known = {name: value for name, value in means.items() if value is not None}
    if not known:
        return "What each part of pFabric contributes"
    worst = max(known, key=known.__getitem__)
    return f"pFabric {ARMS[worst].label}: {known[worst]:.3g} times the time alone, the largest change"
