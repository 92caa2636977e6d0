"""Goodput, and the share of time in which subflows are idle or starved, by the tuning of the end hosts.

One chart per setting and number of subflows, one row per tuning. Idle and starved are defined in
analysis/idleness.py.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.idleness import idleness
from analysis.quantities import SUBFLOW_IDLE_PCT
from harness.results.point_results import PointResult
from model.spec import RunSpec
from model.tuning import UNTOUCHED, words_of
from plots.data import Inputs, Panel, panels
from plots.shared import axis_labels, kinds, saving, style
from plots.shared.kinds import Look
from plots.shared.sheet import Sheet

TUNING = ("transport.sysctls", "transport.write_bytes", "stack.send_buffer", "stack.receive_buffer")
"""The fields of a spec that `model.tuning.words_of` describes."""
GOODPUT, SLOWEST = Look("mean goodput", style.INK, dash=""), Look("slowest flow", style.FAINT, "d", "")
IDLE, STARVED = Look("idle", "#d55e00", dash=""), Look("starved", "#0072b2", "s", "")


ValueOf = Callable[[PointResult], float | None]


def slowest_pct(point: PointResult) -> float | None:
    return min(point.flows_pct, default=None)


def idle_pct(point: PointResult) -> float | None:
    return point.metric(SUBFLOW_IDLE_PCT.name)


def starved_pct(point: PointResult) -> float | None:
    """Return the share of time in which subflows are starved; None where they were not sampled."""
    sockets = point.read_table("sockets")
    shares = idleness(sockets)["starved_pct"] if sockets is not None else ()
    return float(statistics.fmean(shares)) if len(shares) else None


def _is_measured(point: PointResult) -> bool:
    return point.subflows > 1 and not point.failed and idle_pct(point) is not None


def _by_count(inputs: Inputs) -> Iterable[tuple[RunSpec, Panel]]:
    """Yield the points of each setting and number of subflows."""
    for panel in panels(filter(_is_measured, inputs.points), ignoring=TUNING):
        for count, of in sorted(kinds.grouped(panel.points, lambda point: point.subflows).items()):
            yield panel.spec, dataclasses.replace(panel, subflows=(count,), points=tuple(of))


def _rows(points: Sequence[PointResult]) -> dict[str, list[PointResult]]:
    """Return the points of each tuning, from the least idle to the most."""
    tunings = kinds.grouped(sorted(points, key=lambda p: p.seed), lambda point: words_of(point.spec))
    return dict(sorted(tunings.items(), key=lambda of: statistics.fmean(idle_pct(p) or 0.0 for p in of[1])))


def finding(rows: Mapping[str, Sequence[PointResult]]) -> str:
    """Return the title: the least idle tuning beside the untouched kernel, or else beside the most idle."""
    ends = dict.fromkeys([next(iter(rows)), UNTOUCHED if UNTOUCHED in rows else list(rows)[-1]])
    parts = []
    for name in ends:
        sure = [point for point in rows[name] if not point.suspect]
        idle = kinds.mean_of(map(idle_pct, sure))
        goodput = kinds.mean_of(point.mean_pct for point in sure)
        if idle:
            reached = f", goodput {goodput.value:.0f} %" if goodput else ""
            parts.append(f"{name.partition(',')[0]}: subflows idle {idle.value:.1f} %{reached}")
    return "; ".join(parts) or "No finding, all points are suspect"


@saving.per_group(_by_count, suffix=lambda panel: f"-{panel.subflows[0]}subflows")
def subflow_idle(panel: Panel, _: Inputs) -> Figure:
    rows = _rows(panel.points)
    sheet = Sheet((0.34 * len(rows) + 0.2, 2))
    left, right = sheet.axes[0]
    for axes in (left, right):
        kinds.rows(axes, [name.replace(", ", "\n") for name in rows], named=axes is left, size=9)
    for y, of in enumerate(rows.values()):
        _marks(left, y, of, slowest_pct, SLOWEST)
        _marks(left, y, of, lambda point: point.mean_pct, GOODPUT, "{:.1f}")
        _marks(right, y, of, starved_pct, STARVED)
        _marks(right, y, of, idle_pct, IDLE, "{:.1f}")
    both = (value for point in panel.points for value in (point.mean_pct, slowest_pct(point)))
    values = [value for value in both if value is not None]
    left.set_xlim(min(values, default=0.0) - 4, max(values, default=100.0) + 6)
    left.set_xlabel(axis_labels.relative_goodput(panel))
    right.set_xlim(left=0)
    right.set_xlim(right=max(1.0, 1.12 * right.get_xlim()[1]))
    right.set_xlabel("share of the time (%)")
    return sheet.finish(
        finding(rows),
        style.subtitle(panel, f"MPTCP {panel.subflows[0]} by the tuning of its hosts"),
        style.parameters(panel),
        [*style.doubts(panel.points), "One mark per seed; line: their mean.", style.definition(panel)],
        [look.key(size=4) for look in (GOODPUT, SLOWEST)],
        [look.key(size=4) for look in (IDLE, STARVED)],
    )


def _marks(
    axes: Axes, y: int, points: Sequence[PointResult], value_of: ValueOf, look: Look, words: str = ""
) -> None:
    """Draw one mark per seed, hollow if suspect, and the mean of the good ones as a line, with its value in
    the format `words`."""
    known = [(value, p.suspect) for p in points if (value := value_of(p)) is not None]
    good, doubtful = ([value for value, doubt in known if doubt is which] for which in (False, True))
    kinds.seeds(axes, y, good, doubtful, look.colour, look.marker, horizontal=True)
    if good and words:
        mean = statistics.fmean(good)
        axes.annotate(
            words.format(mean), (mean, y - 0.34), ha="center", va="bottom", fontsize=7, color=look.colour,
            zorder=6, path_effects=style.halo(),
        )  # fmt: skip
