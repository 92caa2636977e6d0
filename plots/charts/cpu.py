"""CPU use of the machine (CS244 2013, figure 5): by subflows and size, by kind, and second by second.

One chart for all settings of an experiment: sizes are what it compares.
"""

from __future__ import annotations

import itertools
import math
import statistics
import string
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis.quantities import CPU_BUSY_PCT
from harness.metrics.published import Published
from harness.results.point_results import PointResult
from model.spec import RunSpec
from plots.data import Inputs, Panel, panels
from plots.shared import axis_labels, kinds, saving, style
from plots.shared.kinds import Floats, Look
from plots.shared.naming import setting_names
from plots.shared.sheet import Sheet

_LOW_IN, _MAX_BARS, _COLUMNS = 1.2, 12, 3
_PARTS = {"user": "#cfdfee", "system": "#86a9cb", "softirq": "#2f5d8c", "steal": "#D55E00"}
_OTHER = "#bdbdbd"
"""CPU time that no part accounts for."""


@dataclass(frozen=True, eq=False)
class Use:
    """CPU use of a point: percent of all CPUs by part, at `t_s`, the end of each second; without parts where
    it was not sampled. `busy_pct` is the mean over the measured window, `name` the setting's."""

    point: PointResult
    name: str
    busy_pct: float
    t_s: Floats
    parts: Mapping[str, Floats]

    @property
    def means(self) -> dict[str, float]:
        """Each part's mean over the measured window."""
        measured = self.t_s > 0
        window = measured if measured.any() else ~measured
        return {name: float(part[window].mean()) for name, part in self.parts.items()}


def _busy(point: PointResult) -> float | None:
    busy = point.metric(CPU_BUSY_PCT.name)
    return None if busy is None or math.isnan(busy) else busy


def use(point: PointResult, name: str) -> Use | None:
    """Return the CPU use of a point; None where it was not measured."""
    busy = _busy(point)
    if busy is None:
        return None
    table = point.read_table("cpu")
    if table is None or not len(table):
        return Use(point, name, busy, np.empty(0), {})
    parts = {part: table[f"{part}_pct"].astype(float) for part in _PARTS}
    return Use(point, name, busy, table["t_s"].astype(float), parts)


def finding(points: Sequence[PointResult]) -> str:
    """Return the title: the least and the most that any point kept the machine busy."""
    busy = [value for point in points if (value := _busy(point)) is not None]
    low, high = min(busy), max(busy)
    return f"CPUs are {high:.0f} % busy" if high - low < 1 else f"CPUs are {low:.0f} to {high:.0f} % busy"


def _all(inputs: Inputs) -> list[tuple[RunSpec, list[Panel]]]:
    """Return all settings with points whose CPU use is known, as one group."""
    of = panels(inputs.points, inputs.expected)
    known = [panel for panel in of if any(_busy(p) is not None for p in panel.points)]
    return [(known[0].spec, known)] if known else []


@saving.per_group(_all, named=None)
def cpu(of: Sequence[Panel], inputs: Inputs) -> Figure:
    """Draw all points into one chart, with published levels."""
    names = _names(of)
    bars = _bars(of, names)
    sampled = [one for one in bars if one.parts]
    several = len(of) > 1
    small = [(_LOW_IN, _COLUMNS)] * (-(-len(of) // _COLUMNS)) if several else []
    sheet = Sheet(*small, (_LOW_IN if several else 2.2, 1), *([(_LOW_IN, 1)] if sampled else []))
    found = _multiples(sheet.axes[: len(small)], of, names, inputs)
    split, *over_time = (row[0] for row in sheet.axes[len(small) :])
    _split(split, bars, several)
    for axes in over_time:
        _over_time(axes, max(sampled, key=lambda one: one.busy_pct))
    for row in sheet.axes:
        row[0].set_ylabel(CPU_BUSY_PCT.short_axis)
        for axes in row:
            axes.set_ylim(0, 104)
            axes.set_yticks(range(0, 101, 50))
            axes.axhline(100, color=style.FAINT, linewidth=0.8, zorder=1)
    points = [point for panel in of for n in panel.subflows for point in panel.best(n)]
    parts = [Patch(color=colour, label=part) for part, colour in _PARTS.items()] if sampled else []
    parts += [Patch(color=_OTHER, label="not split")] if len(sampled) < len(bars) else []
    published = style.published_key(found[:1], of[-1])
    for key in published:
        key.set_label(f"published, {found[0].paper}: {style.bound(found[0])}")
    networks = dict.fromkeys(f"{style.network(panel.spec)}, {panel.hosts} hosts" for panel in of)
    workloads = dict.fromkeys(style.workload(panel.spec) for panel in of)
    return sheet.finish(
        finding(points),
        f"{' / '.join(networks)}, {', '.join(workloads)}: all CPUs of the machine",
        style.parameters(*of, congestion=" / ".join(dict.fromkeys(panel.ccs for panel in of))),
        [
            *style.doubts(points),
            "Mean over the good seeds." if any(len(panel.seeds) > 1 for panel in of) else "",
        ],
        parts,
        published,
        gaps=_gaps(of, names),
    )


def _multiples(
    rows: Sequence[Sequence[Axes]], of: Sequence[Panel], names: Sequence[str], inputs: Inputs
) -> list[Published]:
    """Draw one small chart for each setting of several; return the published levels drawn."""
    every = kinds.every(rows)
    found = []
    for axes, panel, name in zip(every, of, names, strict=False):
        beside = [lv for lv in inputs.beside(panel, CPU_BUSY_PCT) if lv.k == panel.spec.topology.k]
        means = {
            x: kinds.mean_of(map(_busy, panel.best(n)), hollow=panel.dubious(n))
            for x, n in enumerate(panel.subflows)
        }
        for level in beside:
            style.published_line(axes, level.value)
        kinds.curve(axes, means, Look("", "#0072B2"), 4, zorder=4)
        axes.set_xticks(range(len(means)), style.short_names(panel.subflows))
        axes.set_xlim(-0.4, len(means) - 0.6)
        axes.set_title(name)
        found += beside
    for axes in every[len(of) :]:
        axes.set_visible(False)
    for axes in rows[-1] if rows else ():
        axes.set_xlabel(axis_labels.SUBFLOWS)
    return found


def _names(of: Sequence[Panel]) -> list[str]:
    """Return names of the settings, with a letter where a name is too long for the axis."""
    names = [
        textwrap.shorten(name, 50, placeholder="...") for name in setting_names([panel.spec for panel in of])
    ]
    if len(names) <= 6 and max(len(part) for name in names for part in name.split(", ")) <= 9:
        return names
    return [f"{letter}: {name}" for letter, name in zip(_letters(), names, strict=False)]


def _letters() -> Iterator[str]:
    """a, b, ... z, aa, ab, ..."""
    for length in itertools.count(1):
        yield from map("".join, itertools.product(string.ascii_lowercase, repeat=length))


def _gaps(of: Sequence[Panel], names: Sequence[str]) -> str:
    """Return which points are missing in which setting."""
    parts = []
    for panel, name in zip(of, names, strict=True):
        why = {n: panel.absence(n) or "not measured" for n in panel.subflows if _unknown(panel, n)}
        parts += [f"{name}: {style.absences(why)}"] if why else []
    return textwrap.shorten("; ".join(parts), 160, placeholder=" ...")


def _unknown(panel: Panel, subflows: int) -> bool:
    return all(_busy(point) is None for point in panel.best(subflows))


def _bars(of: Sequence[Panel], names: Sequence[str]) -> list[Use]:
    """Return the points whose use is split: all of one setting; of several, TCP and the most subflows."""
    bars: list[Use] = []
    for panel, name in zip(of, names, strict=True):
        bars += panel.first_of_each(_MAX_BARS if len(of) == 1 else 2, partial(use, name=name))[0]
    return bars[:_MAX_BARS]


def _split(axes: Axes, bars: Sequence[Use], several: bool) -> None:
    """Draw a stack of parts for each point, labelled by transport, and by setting where there are several."""
    for x, one in enumerate(bars):
        foot = 0.0
        for part, colour in (_PARTS if one.parts else {}).items():
            axes.bar(x, one.means[part], 0.74, bottom=foot, color=colour)
            foot += one.means[part]
        if foot < one.busy_pct:
            axes.bar(x, one.busy_pct - foot, 0.74, bottom=foot, color=_OTHER)
        if one.point.suspect:
            axes.bar(x, one.busy_pct, 0.74, fill=False, edgecolor=style.INK, hatch=style.HATCH, linewidth=0.8)
    axes.set_xlim(-0.6, len(bars) - 0.4)
    axes.set_xticks(range(len(bars)), style.short_names(one.point.subflows for one in bars))
    axes.tick_params(axis="x", length=0)
    if not several:
        axes.set_xlabel(axis_labels.TRANSPORTS)
        return
    axes.set_title("CPU time by kind")
    for name in dict.fromkeys(one.name for one in bars):
        places = [x for x, one in enumerate(bars) if one.name == name]
        axes.annotate(
            name.split(": ")[0].replace(", ", "\n"), (statistics.fmean(places), 0), xytext=(0, -16),
            textcoords="offset points", ha="center", va="top", fontsize=8.5,
        )  # fmt: skip


def _over_time(axes: Axes, one: Use) -> None:
    """Draw the use second by second; the warm-up is before 0."""
    axes.stackplot(one.t_s, [one.parts[name] for name in _PARTS], colors=list(_PARTS.values()), linewidth=0)
    if one.point.suspect:
        style.hatch(axes)
    axes.set_xlim(one.t_s[0], max(one.t_s[-1], one.t_s[0] + 1e-3))
    axes.set_xlabel(axis_labels.SECONDS_OF_WINDOW)
    axes.set_title(f"The busiest, second by second: {style.network(one.point.spec)}, {style.name(one.point)}")
