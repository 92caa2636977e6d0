"""Completion times of sized flows with their slowdown by size, and of short flows beside long ones.

Slowdown is completion time over the time the flow would take alone on its path; shown as in pFabric (Alizadeh
et al., SIGCOMM 2013, figures 7 to 10) on average and at the 99th percentile. Short flows beside long ones:
after table 1 and figure 12 of SIGCOMM 2011 (Raiciu et al.). Flows of all seeds together.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator

from analysis.completion import Completions, completions, percentile, slowdown
from analysis.quantities import FCT_MS_MEAN, LINKS_USED_PCT, SLOWDOWN_MEAN, SLOWDOWN_P99, Quantity
from harness.metrics.published import Published
from harness.results.point_results import PointResult
from model import transports
from model.congestion import BASELINE
from model.result import FlowRow
from model.tuning import AT_ONCE, joins
from plots.data import TRANSPORT, Inputs, Panel, between_switches, good
from plots.shared import kinds, saving, style
from plots.shared.kinds import JOINED, Look, by_transport, transport_label, transport_look
from plots.shared.sheet import Sheet

_EDGES = (1, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 10**15)
"""Flow sizes in bytes between which slowdowns are taken together."""
_MIN_FOR_P99 = 100
_SHORT_BYTES = 100_000


@dataclass(frozen=True)
class SizedFlows:
    """One transport: its look, the points of all seeds, and their flows that have a size."""

    look: Look
    points: tuple[PointResult, ...]
    sized: Completions

    @property
    def algorithm(self) -> str:
        return self.points[0].algorithm

    @property
    def took_ms(self) -> list[float]:
        return self.sized.took_ms

    @property
    def used_pct(self) -> float:
        return statistics.fmean(map(used_pct, self.points))

    @property
    def long_mbps(self) -> float | None:
        each = [f.goodput_mbps for point in self.points for f in point.under_test if not f.size_bytes]
        return statistics.fmean(each) if each else None

    @property
    def opened(self) -> float:
        """Mean number of subflows that a completed flow opened."""
        return statistics.fmean(flow.subflows_joined for flow in self.sized.completed)


Flows = Sequence[FlowRow]


def size_bytes(flows: Flows) -> float:
    """Return the geometric mean of the flows' sizes."""
    return math.exp(statistics.fmean(math.log(flow.size_bytes) for flow in flows))


def slowdown_mean(flows: Flows) -> float:
    return statistics.fmean(map(slowdown, flows))


def slowdown_p99(flows: Flows) -> float | None:
    """Return the 99th percentile of the flows' slowdowns; None for fewer than a hundred."""
    return percentile([slowdown(flow) for flow in flows], 99) if len(flows) >= _MIN_FOR_P99 else None


def curve(group: Sequence[PointResult]) -> SizedFlows | None:
    """Return one transport's good points, else the suspect ones; None where no sized flow completed. Good
    points come first in `group`."""
    usable = tuple(point for point in group if point.status is group[0].status and point.under_test)
    sized = completions(flow for point in usable for flow in point.under_test)
    return SizedFlows(transport_look(usable[0]), usable, sized) if sized.completed else None


def bins(sized: Completions) -> list[Flows]:
    """Return completed flows by size, where their ideal times are known; without empty bins."""
    known = [flow for flow in sized.completed if math.isfinite(flow.ideal_s)]
    split = ([flow for flow in known if low <= flow.size_bytes < high] for low, high in pairwise(_EDGES))
    return [flows for flows in split if flows]


@saving.per_panel(JOINED)
def fct(panel: Panel, _: Inputs) -> Figure | None:
    """Draw points that differ at most in transport and marking."""
    groups = by_transport(panel)
    found = [curve(group) for group in groups]
    rows = [row for row in found if row]
    if not rows:
        return None
    of_size = [bins(row.sized) for row in rows]
    sheet = Sheet(*[(1.7, 1)] * (3 if any(of_size) else 1))
    handles = _distribution(sheet.axes[0][0], rows)
    shown: Sequence[tuple[Quantity, Callable[[Flows], float | None]]]
    shown = ((SLOWDOWN_MEAN, slowdown_mean), (SLOWDOWN_P99, slowdown_p99))
    for (axes,), (quantity, value) in zip(sheet.axes[1:], shown, strict=False):
        _by_size(axes, rows, of_size, value)
        axes.set_ylabel(quantity.axis)
    if any(of_size):
        sheet.axes[-1][0].set_xlabel("flow size")
    absent = [transport_label(group[0]) for group, one in zip(groups, found, strict=True) if one is None]
    unfinished = [f"{row.look.label} {row.sized.unfinished}" for row in rows if row.sized.unfinished]
    completed = ", ".join(f"{len(row.sized.completed)} of {row.sized.started}" for row in rows)
    return sheet.finish(
        _fct_finding(rows),
        style.subtitle(panel, "completion of sized flows"),
        style.parameters(panel),
        [
            *style.doubts([row.points[0] for row in rows]),
            f"Flows completed: {completed}.",
            f"Unfinished, not in the curves: {'; '.join(unfinished)}." if unfinished else "",
            f"p99 from {_MIN_FOR_P99} flows on." if any(of_size) else "",
            f"Short: below {_SHORT_BYTES // 1000} kB.",
        ],
        handles,
        gaps=f"failed or without completed flows: {'; '.join(absent)}" if absent else "",
    )


def _distribution(axes: Axes, rows: Sequence[SizedFlows]) -> list[Line2D]:
    lines = [kinds.cdf(axes, row.sized.took_ms, row.look) for row in rows]
    for line, row in zip(lines, rows, strict=True):
        mean = style.milliseconds(statistics.fmean(row.sized.took_ms))
        line.set_label(f"{row.look.label}: {mean} on average")
    _log_scale(axes, [ms for row in rows for ms in row.sized.took_ms], _time)
    kinds.share_axis(axes, "flows done (%)")
    axes.set_xlabel(FCT_MS_MEAN.words)
    return lines


def _by_size(
    axes: Axes,
    rows: Sequence[SizedFlows],
    of_size: Sequence[Sequence[Flows]],
    value: Callable[[Flows], float | None],
) -> None:
    for row, of_row in zip(rows, of_size, strict=True):
        known = [(size_bytes(one), found) for one in of_row if (found := value(one)) is not None]
        drawn = row.look
        axes.plot(
            [size for size, _ in known], [found for _, found in known], color=drawn.colour, ls=drawn.dash,
            lw=1.5, marker="o", markersize=3.5,
        )  # fmt: skip
    _log_scale(axes, [size_bytes(one) for of_row in of_size for one in of_row], _bytes)
    style.plain_log(axes.yaxis)
    axes.set_ylim(bottom=0.9)
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))


def _log_scale(axes: Axes, values: Sequence[float], shown: Callable[[float], str]) -> None:
    """Set a logarithmic scale with room on both sides, even if all values are equal."""
    axes.set_xlim(0.8 * min(values), 1.25 * max(values))
    style.plain_log(axes.xaxis)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: shown(value)))


def _time(ms: float) -> str:
    return f"{ms * 1000:g} us" if ms < 1 else f"{ms:g} ms" if ms < 1000 else f"{ms / 1000:g} s"


def _bytes(size: float) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:g} {unit}"
    return f"{size:g} B"


def _fct_finding(rows: Sequence[SizedFlows]) -> str:
    """Return the title: the 99th percentile of short flows, or of all where none is short."""
    short = [[flow for flow in row.sized.completed if flow.size_bytes < _SHORT_BYTES] for row in rows]
    which, flows = ("Short flows", short) if all(short) else ("Flows", [row.sized.completed for row in rows])
    parts = (
        f"{style.milliseconds(percentile([1000 * flow.completed_s for flow in of_row], 99))} "
        f"with {row.look.label}"
        for row, of_row in zip(rows, flows, strict=True)
    )
    return f"{which}, 99 of 100 done within: {'; '.join(parts)}"


NEVER = "join never"
RECALLED = "recalled"
"""The source of a published value whose digits are only recalled."""
_MAX_SHOWN = 0.99
"""The slowest of a hundred flows would leave the others no room."""


def used_pct(point: PointResult) -> float:
    """Return the mean utilisation of the links between switches; 0 where there are none."""
    links = [port.utilisation_pct for port in point.ports if between_switches(port)]
    return statistics.fmean(links) if links else 0.0


def _join_late(panel: Panel) -> bool:
    return any(joins(point.spec.transport) not in {"", AT_ONCE} for point in panel.points)


def rows(panel: Panel) -> list[SizedFlows]:
    """Return one row per transport whose short flows completed, from its good points, else from suspect ones.

    They are in the order of model/transports.py, or from late joins to early ones.
    """
    late = _join_late(panel)
    groups = kinds.grouped(panel.points, lambda point: _place(point, late))
    made: list[SizedFlows] = []
    for number, key in enumerate(sorted(groups)):
        of = good(groups[key])
        sized = completions(flow for point in of for flow in point.under_test)
        if sized.completed:
            shade = to_hex(colormaps["viridis"](0.95 * number / max(1, len(groups) - 1)))
            colour = shade if late else transports.look(of[0].algorithm).colour
            made.append(SizedFlows(Look(key[1], colour, "").doubted(of[0].suspect), tuple(of), sized))
    return made


def _place(point: PointResult, late: bool) -> tuple[float, str]:
    """Return the position and the name of a row."""
    if not late:
        return float(transports.rank(point.algorithm)), transports.title(point.algorithm)
    if not joins(point.spec.transport):
        return 0.0, NEVER
    short = [flow.subflows_joined for flow in point.under_test if flow.size_bytes]
    return 1 + (statistics.fmean(short) if short else 0.0), f"join {joins(point.spec.transport)}"


@saving.per_panel(TRANSPORT, lambda point: not point.failed)
def short_and_long(panel: Panel, inputs: Inputs) -> Figure | None:
    """Draw points that differ at most in transport. Levels are drawn on the paper's own network, because
    times depend on its size and rate."""
    found = rows(panel)
    if not found:
        return None
    late, height = _join_late(panel), 0.15 + 0.21 * len(found)
    sheet = Sheet((1.7, 1), (height, 2), *([(height, 2)] if late else []))
    of_size = [
        level
        for level in inputs.levels
        if inputs.is_beside(level, panel) and level.k == panel.spec.topology.k
    ]
    times, used = ([lv for lv in of_size if lv.metric.quantity == of] for of in (FCT_MS_MEAN, LINKS_USED_PCT))
    curves = sheet.axes[0][0]
    handles = [kinds.cdf(curves, row.took_ms, row.look) for row in found]
    curves.set_xlim(0, max(float(np.quantile(row.took_ms, _MAX_SHOWN)) for row in found))
    kinds.share_axis(curves, "short flows done (%)")
    curves.set_xlabel(FCT_MS_MEAN.axis)
    _completion(sheet.axes[1][0], found, times)
    _bars(sheet.axes[1][1], found, lambda row: row.used_pct, "{:.0f}", LINKS_USED_PCT.short_axis, used)
    if late:
        _bars(sheet.axes[2][0], found, lambda row: row.opened, "{:.1f}", "subflows, short flow")
        _bars(sheet.axes[2][1], found, lambda row: row.long_mbps or 0.0, "{:.0f}", "Mb/s, long flow")
    for row in sheet.axes[1:]:
        for axes in row:
            kinds.rows(axes, [one.look.label for one in found], named=axes is row[0], size=9)
    beside = [*times, *used]
    counts = ", ".join(f"{len(row.sized.completed)} of {row.sized.started}" for row in found)
    ccs = dict.fromkeys(BASELINE if p.subflows == 1 else p.cc for row in found for p in row.points)
    return sheet.finish(
        _short_finding(found),
        style.subtitle(panel, "short flows beside long ones"),
        style.parameters(panel, congestion=", ".join(ccs)),
        [
            *style.doubts([row.points[0] for row in found]),
            f"Short flows completed: {counts}.",
            *style.sources(beside),
            "Lines: one standard deviation.",
        ],
        handles,
        _published_key(beside, panel),
    )


def _completion(axes: Axes, found: Sequence[SizedFlows], levels: Sequence[Published]) -> None:
    """Draw the mean, and one standard deviation to both sides."""
    for y, row in enumerate(found):
        mean, deviation = statistics.fmean(row.took_ms), statistics.pstdev(row.took_ms)
        axes.hlines(y, max(0.0, mean - deviation), mean + deviation, color=row.look.colour, lw=1.4, zorder=3)
        face = "white" if row.points[0].suspect else row.look.colour
        axes.plot(mean, y, "o", color=row.look.colour, ms=5, zorder=4, markerfacecolor=face)
        _value(axes, f"{mean:.0f}", mean + deviation, y, row, levels)
    _published(axes, found, levels)
    axes.set_xlim(0, 1.14 * axes.get_xlim()[1])
    axes.set_xlabel(FCT_MS_MEAN.axis)


def _bars(
    axes: Axes,
    found: Sequence[SizedFlows],
    of: Callable[[SizedFlows], float],
    shown: str,
    words: str,
    levels: Sequence[Published] = (),
) -> None:
    for y, row in enumerate(found):
        kinds.bar(axes, y, of(row), 0.6, row.look.colour, row.points[0].suspect, horizontal=True)
        _value(axes, shown.format(of(row)), of(row), y, row, levels)
    _published(axes, found, levels)
    axes.set_xlim(0, 1.16 * max(*map(of, found), *(level.value for level in levels), 0.01))
    axes.set_xlabel(words)


def _value(axes: Axes, words: str, x: float, y: int, row: SizedFlows, levels: Iterable[Published]) -> None:
    """Write a value to the right of its mark and of what was published."""
    beside = [level.value for level in levels if level.algorithm == row.algorithm]
    kinds.write(axes, words, max(x, *beside, 0.0), y, 7)


def _published(axes: Axes, found: Sequence[SizedFlows], levels: Sequence[Published]) -> None:
    for y, row in enumerate(found):
        for level in levels:
            if level.algorithm == row.algorithm:
                axes.plot(
                    level.value, y, ls="", marker="D", ms=5, color="black", zorder=6,
                    markerfacecolor="white" if level.source == RECALLED else "black",
                    path_effects=style.halo(),
                )  # fmt: skip


def _published_key(levels: Sequence[Published], panel: Panel) -> list[Line2D]:
    """Return the legend of published values; those that are only recalled are hollow."""
    found = []
    for recalled in (False, True):
        of = [level for level in levels if (level.source == RECALLED) == recalled]
        for key in style.published_key(of, panel):
            key.set(ls="", marker="D", ms=5, markerfacecolor="white" if recalled else "black")
            key.set_label(f"{key.get_label()}{', recalled' if recalled else ''}")
            found.append(key)
    return found


def _short_finding(found: Sequence[SizedFlows]) -> str:
    """Return the title: under what short flows take longest, and shortest; and if no subflow joins."""
    by_time = sorted(found, key=lambda row: statistics.fmean(row.took_ms))
    times = [f"{statistics.fmean(row.took_ms):.0f} ms ({row.look.label})" for row in by_time]
    never = [words for words in times[1:-1] if f"({NEVER})" in words]
    ends = " to ".join(dict.fromkeys((times[0], times[-1])))
    return f"Short flows take {', '.join([ends, *never])}"
