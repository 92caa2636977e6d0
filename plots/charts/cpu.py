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
from matplotlib.patches import Patch

from analysis.quantities import CPU_BUSY_PCT
from harness.metrics.published import Published
from harness.results.point_results import PointResult
from model.spec import RunSpec
from plots.data import Inputs, Panel, common, panels
from plots.kinds.axis import Axis
from plots.kinds.curves import Curves
from plots.kinds.lines import Band, Level, Lines
from plots.picture import Page, Picture, Plot, Row, Series
from plots.shared import axis_labels, kinds, style
from plots.shared.kinds import Floats, Look, Mean
from plots.shared.naming import setting_names

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


def _all(inputs: Inputs) -> list[tuple[RunSpec, Panel]]:
    """Return all settings with points whose CPU use is known, as one group."""
    of = panels(inputs.points, inputs.expected)
    known = [panel for panel in of if any(_busy(p) is not None for p in panel.points)]
    return [(known[0].spec, common(known))] if known else []


_Y = Axis(low=0, high=104, ticks=(0, 50, 100))


def _cpu(every: Panel, inputs: Inputs) -> Page:
    """Draw all points into one chart, with published levels."""
    of = panels(every.points, every.subflows)
    names = _names(of)
    bars = _bars(of, names)
    sampled, several, found = [one for one in bars if one.parts], len(of) > 1, list[Published]()
    multiples: list[Plot] = []
    for panel, name in zip(of, names, strict=True) if several else ():
        beside = [lv for lv in inputs.beside(panel, CPU_BUSY_PCT) if lv.k == panel.spec.topology.k]
        means: dict[float, Mean | None] = {
            x: kinds.mean_of(map(_busy, panel.best(n)), hollow=panel.dubious(n))
            for x, n in enumerate(panel.subflows)
        }
        words = dict(zip(means, style.short_names(panel.subflows), strict=True))
        x = Axis(low=-0.4, high=len(means) - 0.6, ticks=list(means), words=words)
        multiples.append(Curves(means=[(Look("", "#0072B2"), means)], x=x, y=_Y, title=name, size=4, line=100,
                                published=[level.value for level in beside]))  # fmt: skip
        found += beside
    small = [multiples[i : i + _COLUMNS] for i in range(0, len(multiples), _COLUMNS)]
    small[-1:] = [[*row, *[_Nothing()] * (_COLUMNS - len(row))] for row in small[-1:]]
    points = [point for panel in of for n in panel.subflows for point in panel.best(n)]
    busy = [value for point in points if (value := _busy(point)) is not None]
    parts = [Patch(color=colour, label=part) for part, colour in _PARTS.items()] if sampled else []
    published = style.published_key(found[:1], of[-1])
    for key in published:
        key.set_label(f"published, {found[0].paper}: {style.bound(found[0])}")
    networks = dict.fromkeys(f"{style.network(panel.spec)}, {panel.hosts} hosts" for panel in of)
    workloads = dict.fromkeys(style.workload(panel.spec) for panel in of)
    y = CPU_BUSY_PCT.short_axis
    return Page(
        rows=[
            *(Row(_LOW_IN, row, axis_labels.SUBFLOWS if row is small[-1] else "", y) for row in small),
            Row(_LOW_IN if several else 2.2, [_Split(bars, several)],
                "" if several else axis_labels.TRANSPORTS, y),
            *([Row(_LOW_IN, [_over_time(max(sampled, key=lambda one: one.busy_pct))],
                   axis_labels.SECONDS_OF_WINDOW, y)] if sampled else []),
        ],
        about=f"{' / '.join(networks)}, {', '.join(workloads)}: all CPUs of the machine",
        numbers={"low": min(busy), "high": max(busy)} if busy else None, points=points,
        settings=style.parameters(*of, congestion=" / ".join(dict.fromkeys(panel.ccs for panel in of))),
        notes=["Mean over the good seeds." if any(len(panel.seeds) > 1 for panel in of) else ""],
        keys=[*parts, *([Patch(color=_OTHER, label="not split")] if len(sampled) < len(bars) else [])],
        more_keys=published, gaps=_gaps(of, names),
    )  # fmt: skip


cpu = Picture(
    groups=_all, named=None, page=_cpu,
    finding="CPUs are {% if high - low >= 1 %}{{ '%.0f' % low }} to {% endif %}{{ '%.0f' % high }} % busy",
)  # fmt: skip


class _Nothing:
    """An empty place."""

    def draw(self, axes: Axes, all_series: Sequence[Series], first: bool) -> None:
        del all_series, first
        axes.set_visible(False)


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


@dataclass(frozen=True)
class _Split:
    """A stack of parts for each point, labelled by transport, and by setting where there are several."""

    bars: Sequence[Use]
    several: bool

    def draw(self, axes: Axes, all_series: Sequence[Series], first: bool) -> None:
        del all_series, first
        for x, one in enumerate(self.bars):
            foot = 0.0
            for part, colour in (_PARTS if one.parts else {}).items():
                axes.bar(x, one.means[part], 0.74, bottom=foot, color=colour)
                foot += one.means[part]
            if foot < one.busy_pct:
                axes.bar(x, one.busy_pct - foot, 0.74, bottom=foot, color=_OTHER)
            if one.point.suspect:
                axes.bar(x, one.busy_pct, 0.74, fill=False, edgecolor=style.INK, hatch=style.HATCH, lw=0.8)
        axes.set_xlim(-0.6, len(self.bars) - 0.4)
        axes.set_xticks(range(len(self.bars)), style.short_names(one.point.subflows for one in self.bars))
        axes.tick_params(axis="x", length=0)
        axes.axhline(100, color=style.FAINT, linewidth=0.8, zorder=1)
        _Y.apply(axes, "y")
        axes.set_title("CPU time by kind" if self.several else "")
        for name in dict.fromkeys(one.name for one in self.bars) if self.several else ():
            places = [x for x, one in enumerate(self.bars) if one.name == name]
            axes.annotate(
                name.split(": ")[0].replace(", ", "\n"), (statistics.fmean(places), 0), xytext=(0, -16),
                textcoords="offset points", ha="center", va="top", fontsize=8.5,
            )  # fmt: skip


def _over_time(one: Use) -> Lines:
    """Return a plot of the use second by second; the warm-up is before 0."""
    tops = np.cumsum([np.zeros(len(one.t_s)), *(one.parts[name] for name in _PARTS)], axis=0)
    bands = [
        Band(one.t_s, low, high, colour)
        for low, high, colour in zip(tops, tops[1:], _PARTS.values(), strict=False)
    ]
    x = Axis(low=one.t_s[0], high=max(one.t_s[-1], one.t_s[0] + 1e-3))
    title = f"The busiest, second by second: {style.network(one.point.spec)}, {style.name(one.point)}"
    return Lines([], x, _Y, title, bands, [Level(100)], hatched=one.point.suspect)
