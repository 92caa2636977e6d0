"""Completion times of sized flows with their slowdown by size, and of short flows beside long ones.

Slowdown is completion time over the time the flow would take alone on its path; shown as in pFabric (Alizadeh
et al., SIGCOMM 2013, figures 7 to 10) on average and at the 99th percentile. Short flows beside long ones:
after table 1 and figure 12 of SIGCOMM 2011 (Raiciu et al.). Flows of all seeds together.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.ticker import FuncFormatter

from analysis.completion import Completions, completions, percentile, slowdown
from analysis.quantities import FCT_MS_MEAN, LINKS_USED_PCT, SLOWDOWN_MEAN, SLOWDOWN_P99
from harness.metrics.published import Published
from harness.results.point_results import PointResult
from model import transports
from model.congestion import BASELINE
from model.result import FlowRow
from model.tuning import AT_ONCE, joins
from plots.data import TRANSPORT, Inputs, Panel, between_switches, good
from plots.kinds.axis import Axis
from plots.kinds.cdf import Cdf
from plots.kinds.lines import Line, Lines
from plots.kinds.rows import Rows, published_keys
from plots.picture import Page, Picture, Row, Series, alike
from plots.shared import kinds, style
from plots.shared.kinds import JOINED, Look, Mean, by_transport, transport_label, transport_look

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


def _log(values: Sequence[float], label: str, shown: Callable[[float], str]) -> Axis:
    """Return a logarithmic axis with room on both sides, even if all values are equal."""

    def fit(axes: Axes) -> None:
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: shown(value)))

    return Axis(label, log=True, low=0.8 * min(values), high=1.25 * max(values), fit=fit)


def _series(rows: Sequence[SizedFlows]) -> tuple[list[Series], Callable[[Sequence[PointResult]], SizedFlows]]:
    """Return a series for each row, and the function that returns the row of a series' points."""
    of = {id(row.points): row for row in rows}
    return [Series(row.look.label, row.look, row.points) for row in rows], lambda points: of[id(points)]


def _fct(panel: Panel, _: Inputs) -> Page | None:
    """Draw points that differ at most in transport and marking."""
    groups = by_transport(panel)
    found = [curve(group) for group in groups]
    rows = [row for row in found if row]
    if not rows:
        return None
    series, row_of = _series(rows)
    means = [style.milliseconds(statistics.fmean(row.took_ms)) for row in rows]
    of_size = [bins(row.sized) for row in rows]
    every = [size_bytes(flows) for of_row in of_size for flows in of_row]
    plots: list[Row] = [
        Row(1.7, [Cdf(lambda points: row_of(points).took_ms,
                      _log([ms for row in rows for ms in row.took_ms], FCT_MS_MEAN.words, _time),
                      "flows done (%)")])
    ]  # fmt: skip
    for quantity, value in ((SLOWDOWN_MEAN, slowdown_mean), (SLOWDOWN_P99, slowdown_p99)) if every else ():
        lines = []
        for row, of_row in zip(rows, of_size, strict=True):
            known = [(size_bytes(flows), at) for flows in of_row if (at := value(flows)) is not None]
            look = dataclasses.replace(row.look, label="", marker="o")
            if known:
                lines.append(Line([x for x, _ in known], [y for _, y in known], look, 1.5, 3.5))
        if lines:
            y = Axis(quantity.axis, log=True, low=0.9)
            plots.append(Row(1.7, [Lines(lines, _log(every, "flow size", _bytes), y)]))
    absent = [transport_label(group[0]) for group, one in zip(groups, found, strict=True) if one is None]
    unfinished = [f"{row.look.label} {row.sized.unfinished}" for row in rows if row.sized.unfinished]
    completed = ", ".join(f"{len(row.sized.completed)} of {row.sized.started}" for row in rows)
    return Page(
        rows=plots, about=style.subtitle(panel, "completion of sized flows"), numbers=_fct_numbers(rows),
        points=[row.points[0] for row in rows], settings=style.parameters(panel), series=series,
        notes=[
            f"Flows completed: {completed}.",
            f"Unfinished, not in the curves: {'; '.join(unfinished)}." if unfinished else "",
            f"p99 from {_MIN_FOR_P99} flows on." if every else "",
            f"Short: below {_SHORT_BYTES // 1000} kB.",
        ],
        keys=[
            dataclasses.replace(row.look, label=f"{row.look.label}: {mean} on average").key()
            for row, mean in zip(rows, means, strict=True)
        ],
        gaps=f"failed or without completed flows: {'; '.join(absent)}" if absent else "",
    )  # fmt: skip


def _time(ms: float) -> str:
    return f"{ms * 1000:g} us" if ms < 1 else f"{ms:g} ms" if ms < 1000 else f"{ms / 1000:g} s"


def _bytes(size: float) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:g} {unit}"
    return f"{size:g} B"


def _fct_numbers(rows: Sequence[SizedFlows]) -> dict[str, object]:
    """Return the 99th percentile of short flows, or of all where none is short."""
    short = [[flow for flow in row.sized.completed if flow.size_bytes < _SHORT_BYTES] for row in rows]
    flows = short if all(short) else [row.sized.completed for row in rows]
    p99 = (style.milliseconds(percentile([1000 * flow.completed_s for flow in of], 99)) for of in flows)
    return {"short": all(short), "p99": list(zip(p99, (row.look.label for row in rows), strict=True))}


fct = Picture(
    groups=alike(*JOINED), page=_fct,
    finding="{{ 'Short flows' if short else 'Flows' }}, 99 of 100 done within: "
    "{% for time, name in p99 %}{{ '; ' if not loop.first }}{{ time }} with {{ name }}{% endfor %}",
)  # fmt: skip


NEVER = "join never"
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


def _short_and_long(panel: Panel, inputs: Inputs) -> Page | None:
    """Draw points that differ at most in transport. Levels are drawn on the paper's own network, because
    times depend on its size and rate."""
    found = rows(panel)
    if not found:
        return None
    series, row_of = _series(found)
    late, height = _join_late(panel), 0.15 + 0.21 * len(found)
    of_size = [
        level
        for level in inputs.levels
        if inputs.is_beside(level, panel) and level.k == panel.spec.topology.k
    ]
    times, used = ([lv for lv in of_size if lv.metric.quantity == of] for of in (FCT_MS_MEAN, LINKS_USED_PCT))
    most_ms = max(float(np.quantile(row.took_ms, _MAX_SHOWN)) for row in found)
    looks = {row.look.label: dataclasses.replace(row.look, marker="o") for row in found}

    def plot(
        value: Callable[[SizedFlows], Mean], shown: str, label: str, levels: Sequence[Published] = (),
        *, bars: bool = True,
    ) -> Rows:  # fmt: skip
        beside = {
            row.look.label: [level for level in levels if level.algorithm == row.algorithm] for row in found
        }
        return Rows(
            {row.look.label: row.points for row in found}, lambda points: value(row_of(points)),
            Axis(label, low=0, room=1.16), published=beside, words=shown, bars=bars, size=5,
            look_of=looks.__getitem__,
        )  # fmt: skip

    plots = [
        Row(1.7, [Cdf(lambda points: row_of(points).took_ms, Axis(FCT_MS_MEAN.axis, low=0, high=most_ms),
                      "short flows done (%)")]),
        Row(height, [
            plot(lambda row: Mean(statistics.fmean(row.took_ms), statistics.pstdev(row.took_ms)), "{:.0f}",
                 FCT_MS_MEAN.axis, times, bars=False),
            plot(lambda row: Mean(row.used_pct), "{:.0f}", LINKS_USED_PCT.short_axis, used),
        ]),
    ]  # fmt: skip
    if late:
        plots.append(Row(height, [
            plot(lambda row: Mean(row.opened), "{:.1f}", "subflows, short flow"),
            plot(lambda row: Mean(row.long_mbps or 0.0), "{:.0f}", "Mb/s, long flow"),
        ]))  # fmt: skip
    beside = [*times, *used]
    counts = ", ".join(f"{len(row.sized.completed)} of {row.sized.started}" for row in found)
    ccs = dict.fromkeys(BASELINE if p.subflows == 1 else p.cc for row in found for p in row.points)
    means = sorted((statistics.fmean(row.took_ms), row.look.label) for row in found)
    return Page(
        rows=plots, about=style.subtitle(panel, "short flows beside long ones"),
        numbers={"ends": dict.fromkeys((means[0], means[-1])), "never": [
            one for one in means[1:-1] if one[1] == NEVER
        ]},
        points=[row.points[0] for row in found], series=series,
        settings=style.parameters(panel, congestion=", ".join(ccs)),
        notes=[
            f"Short flows completed: {counts}.", *style.sources(beside), "Lines: one standard deviation."
        ],
        keys=[dataclasses.replace(row.look, marker="").key() for row in found],
        more_keys=published_keys(beside, panel),
    )  # fmt: skip


short_and_long = Picture(
    groups=alike(*TRANSPORT, where=lambda point: not point.failed), page=_short_and_long,
    finding="Short flows take {% for ms, name in ends %}{{ ' to ' if not loop.first }}"
    "{{ '%.0f' % ms }} ms ({{ name }}){% endfor %}"
    "{% for ms, name in never %}, {{ '%.0f' % ms }} ms ({{ name }}){% endfor %}",
)  # fmt: skip
