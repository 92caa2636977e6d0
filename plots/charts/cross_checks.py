"""Two engines or simulators compared: flow by flow, by subflows, and by rank.

Points belong together if they differ in the engine alone: the same flows over the same paths.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis.quantities import GOODPUT_PCT_MEAN, JAIN, LINK_PCT_MEAN
from analysis.stats import correlation, rank_correlation
from engines.registry import FLOW_LEVEL, LINUX_HOSTS, MAX_MIN, SIMULATED_HOSTS, SIMULATOR
from harness.metrics.published import Published
from harness.results.point_results import PointResult
from model import transports
from model.spec import RunSpec
from plots.data import Inputs, Panel, good, jain
from plots.shared import axis_labels, kinds, ranks, saving, style
from plots.shared.kinds import Look
from plots.shared.sheet import Sheet

MAX_COLUMNS = 3


@dataclass(frozen=True)
class EnginePairs:
    """One transport: its points in both engines, one pair per seed."""

    name: str
    subflows: int
    pairs: tuple[tuple[PointResult, PointResult], ...]

    @property
    def dubious(self) -> bool:
        return any(here.suspect for here, _ in self.pairs)

    @property
    def flows(self) -> tuple[list[float], list[float]]:
        """Goodput in %, emulated and simulated, of all flows of all seeds."""
        both = [
            (x, y) for here, there in self.pairs for x, y in zip(here.flows_pct, there.flows_pct, strict=True)
        ]
        return [x for x, _ in both], [y for _, y in both]

    @property
    def curves(self) -> list[ranks.Ranks]:
        """The flows of both engines, emulated and simulated, each sorted."""
        sides = (ranks.pooled(pair[side].flows_pct for pair in self.pairs) for side in (0, 1))
        return [curve for curve in sides if curve]

    @property
    def difference(self) -> float:
        """The simulated minus the emulated mean, in points of optimal."""
        emulated, simulated = self.flows
        return statistics.fmean(simulated) - statistics.fmean(emulated)

    @property
    def title(self) -> str:
        """The title in two lines, for a narrow chart."""
        return "\nTCP" if self.subflows == 1 else f"MPTCP {self.subflows}\n{transports.title(self.name)}"


def _of_both(panel: Panel) -> Panel:
    """Return the panel with a spec that names both engines and their traffic."""
    engines = " and ".join(sorted({point.spec.engine for point in panel.points}))
    spec = dataclasses.replace(panel.spec, engine=engines, traffic=_traffic(panel.points[0].spec))
    return dataclasses.replace(panel, spec=spec)


def _traffic(spec: RunSpec) -> str:
    """Return the traffic in common: simulated flows all start at once, as those of `native` traffic do."""
    return "native" if spec.engine in SIMULATED_HOSTS else spec.traffic


def columns_of(panel: Panel) -> list[EnginePairs]:
    """Return the transports of a panel that both engines ran, TCP first, at most `MAX_COLUMNS`. Others are
    compared with the engine that has Linux hosts."""
    usable = [point for point in panel.points if point.flows_pct and not point.failed]
    known = {point.spec.engine for point in usable}
    standard = next((name for name in LINUX_HOSTS if name in known), "")
    emulated = {_key(point): point for point in usable if point.spec.engine == standard}
    pairs: dict[tuple[int, int, str], list[tuple[PointResult, PointResult]]] = {}
    for point in usable:
        if point.spec.engine != standard and _key(point) in emulated:
            rank = (transports.rank(point.algorithm), point.subflows, point.algorithm)
            pairs.setdefault(rank, []).append((emulated[_key(point)], point))
    ordered = sorted(pairs.items(), key=lambda item: item[0])
    return [EnginePairs(name, count, tuple(both)) for (_, count, name), both in ordered][:MAX_COLUMNS]


def _key(point: PointResult) -> tuple[str, int, int]:
    return point.algorithm, point.subflows, point.seed


def cross_finding(columns: Sequence[EnginePairs]) -> str:
    """Return the title: how far the simulated means are off."""
    parts = [f"{transports.title(column.name)} {column.difference:+.1f}" for column in columns]
    return f"Simulated minus emulated: {', '.join(parts)} points"


def corner(column: EnginePairs) -> str:
    """Return the text in the corner of a scatter plot."""
    r, rho = correlation(*column.flows), rank_correlation(*column.flows)
    lines = [
        f"r {r:.2f}" if r is not None else "",
        f"\N{GREEK SMALL LETTER RHO} {rho:.2f}" if rho is not None else "",
    ]
    return "\n".join([*filter(None, lines), f"mean {column.difference:+.1f}"])


@saving.per_panel(
    ("engine", "stack", "traffic", "transport.cc"), made=_of_both, apart=lambda p: _traffic(p.spec)
)
def cross_check(panel: Panel, _: Inputs) -> Figure | None:
    """Draw points that differ at most in engine, transport and seed."""
    columns = columns_of(panel)
    if not columns:
        return None
    sheet = Sheet((1.35, len(columns)), (1.35, len(columns)))
    top = max(max(map(max, column.flows)) for column in columns)
    sides = (Look("emulated", style.FAINT, ""), Look("simulated", style.INK, "", (0, (2, 1))))
    for scatter, rank, column in zip(*sheet.axes, columns, strict=True):
        colour = transports.look(column.name).colour
        _scatter(scatter, column, colour)
        for side, (curve, look) in enumerate(zip(column.curves, sides, strict=False)):
            rank.plot(
                curve.x_pct, curve.values, ls=look.dash, lw=1.6, zorder=3 + side,
                color=look.colour if side else colour,
            )  # fmt: skip
        if column.dubious:
            style.hatch(scatter)
            style.hatch(rank)
        rank.set_ylim(0, max(100.0, top) * 1.06)
        rank.set_yticks([0, 50, 100])
        ranks.axis(rank, axis_labels.FLOWS_SHORT, 50)
    sheet.axes[0][0].set_ylabel("simulated (%)")
    sheet.axes[1][0].set_ylabel(axis_labels.GOODPUT_PCT)
    shown = [point for column in columns for pair in column.pairs for point in pair]
    words = f"{style.network(panel.spec)}, {panel.hosts} hosts, {style.workload(panel.spec)}"
    return sheet.finish(
        cross_finding(columns),
        f"{words}: goodput of every flow in both engines",
        style.parameters(dataclasses.replace(panel, points=tuple(shown)), congestion="TCP: reno"),
        [
            *style.doubts(shown),
            *ranks.note(columns[0].curves),
            "r: Pearson's, \N{GREEK SMALL LETTER RHO}: Spearman's correlation.",
            style.definition(panel),
        ],
        [look.key() for look in sides],
    )


def _scatter(axes: Axes, column: EnginePairs, colour: str) -> None:
    emulated, simulated = column.flows
    limits, ticks = scale([*emulated, *simulated])
    kinds.equals(axes, *limits, xticks=ticks, yticks=ticks)
    axes.plot(
        emulated, simulated, linestyle="", marker="o", markersize=3.2, alpha=0.75, color=colour, zorder=3,
        markerfacecolor="white" if column.dubious else colour,
    )  # fmt: skip
    axes.set_title(column.title)
    axes.set_xlabel("emulated (%)")
    axes.text(
        0.97, 0.03, corner(column), transform=axes.transAxes, ha="right", va="bottom", fontsize=7.5,
        linespacing=1.1, path_effects=style.halo(), zorder=2,
    )  # fmt: skip


def scale(values: Sequence[float]) -> tuple[tuple[float, float], list[float]]:
    """Return the limits of an axis and its ticks: from a multiple of 20 below 100 to above the largest value,
    so that high values spread; ticks end at 100 %, which flows may exceed."""
    low, high = min(20 * (min(values) // 20), 80.0), max(100.0, *values)
    return (low, high + 0.03 * (high - low)), [low, (low + 100) / 2, 100.0]


ENGINES = {
    SIMULATOR: Look("packet level", "#111111", ""),
    FLOW_LEVEL: Look("flow level, equilibrium", "#0072B2", "", (0, (5, 1.5))),
    MAX_MIN: Look("flow level, max-min", "#E69F00", "", (0, (1.5, 1.5))),
}
"""The look of each engine, the same in bars and curves."""
_MIN_APART_PCT = 8.0
"""Distance between labels of two published lines. If lines are closer, their labels are moved apart."""
_LABELS_WIDE = 0.22
"""Room for the labels of published lines, as a share of the bars."""


def _flow_level_panel(panel: Panel) -> Panel:
    subflows = tuple(sorted({point.subflows for point in panel.points}))
    spec = dataclasses.replace(panel.spec, engine=SIMULATOR)
    return dataclasses.replace(panel, spec=spec, subflows=subflows)


def _of(panel: Panel, engine: str, subflows: int) -> Sequence[PointResult]:
    """Return the good points of an engine; the suspect ones where none is good."""
    return good([p for p in panel.points if (p.spec.engine, p.subflows) == (engine, subflows)])


def mean_goodput_pct(panel: Panel, engine: str, subflows: int) -> float | None:
    """Return the mean goodput in % over the seeds; None if the engine did not run it."""
    found = kinds.mean_of(statistics.fmean(point.flows_pct) for point in _of(panel, engine, subflows))
    return found.value if found else None


def difference(panel: Panel, engine: str) -> tuple[float, float] | None:
    """Return the mean of a model minus that of packets, in points: on average over subflow counts, and the
    extreme."""
    off = [
        model - packets
        for count in panel.subflows
        if (model := mean_goodput_pct(panel, engine, count)) is not None
        and (packets := mean_goodput_pct(panel, SIMULATOR, count)) is not None
    ]
    return (statistics.fmean(off), max(off, key=abs)) if off else None


def flow_level_finding(panel: Panel) -> str:
    """Return the title: the difference of the equilibrium from packets, or its goodput if there are no
    packets."""
    off = difference(panel, FLOW_LEVEL)
    if off is not None:
        return f"Equilibrium minus packets: {off[0]:+.1f} points on average, {off[1]:+.1f} at most"
    most = panel.subflows[-1]
    mean = mean_goodput_pct(panel, FLOW_LEVEL, most)
    return "" if mean is None else f"{style.transport(most)} at equilibrium: {mean:.0f} % of optimal"


@saving.per_panel(
    ("engine",),
    lambda point: bool(point.flows_pct) and not point.failed and point.spec.engine in ENGINES,
    _flow_level_panel,
)
def flow_level(panel: Panel, inputs: Inputs) -> Figure:
    """Draw points that differ at most in engine, subflows and seed, with published means."""
    ends = sorted({panel.subflows[0], panel.subflows[-1]})
    beside = [lv for lv in inputs.beside(panel, GOODPUT_PCT_MEAN) if not lv.shape]
    sheet = Sheet((1.9, 1), (1.9, len(ends)))
    here = [engine for engine in ENGINES if any(point.spec.engine == engine for point in panel.points)]
    _bars(sheet.axes[0][0], panel, here, beside)
    curves: list[ranks.Ranks] = []
    for axes, count in zip(sheet.axes[1], ends, strict=True):
        for place, engine in enumerate(here):
            of = _of(panel, engine, count)
            if curve := ranks.pooled(point.flows_pct for point in of):
                look = ENGINES[engine].doubted(of[0].suspect)
                axes.plot(
                    curve.x_pct, curve.values, color=look.colour, ls=look.dash, lw=1.5, zorder=3 + place
                )
                curves.append(curve)
        axes.set_ylim(0, 106)
        axes.set_yticks([0, 25, 50, 75, 100])
        ranks.axis(axes, axis_labels.FLOWS, 50)
        axes.set_title(style.transport(count))
    sheet.axes[1][0].set_ylabel(axis_labels.GOODPUT_PCT)
    shown = [point for engine in here for count in panel.subflows for point in _of(panel, engine, count)]
    off = difference(panel, MAX_MIN)
    keys = [Patch(facecolor=ENGINES[e].colour, label=ENGINES[e].label) for e in here]
    doubt = kinds.doubt_key(any(point.suspect for point in shown), hatched=True)
    return sheet.finish(
        flow_level_finding(panel) or inputs.title,
        style.subtitle(panel, "mean, and goodput of every flow"),
        style.parameters(panel),
        [
            *style.doubts(panel.points),
            *ranks.note(curves[-len(here) :]),
            f"Max-min minus packets: {off[0]:+.1f} points on average." if off else "",
            "" if SIMULATOR in here else "No packet-level points here.",
            style.definition(panel),
            *style.sources(beside),
        ],
        [*keys, *doubt],
        style.published_key(beside, panel),
    )


def _bars(axes: Axes, panel: Panel, here: Sequence[str], beside: Sequence[Published]) -> None:
    width = 0.8 / len(here)
    for place, engine in enumerate(here):
        for x, count in enumerate(panel.subflows):
            height = mean_goodput_pct(panel, engine, count)
            if height is not None:
                at = x + kinds.beside(place, len(here), 0.8)
                doubt = any(point.suspect for point in _of(panel, engine, count))
                kinds.bar(axes, at, height, 0.92 * width, ENGINES[engine].colour, doubt)
    _published(axes, panel, beside)
    style.percent_axis(axes, 100.0)
    axes.set_xlim(-0.6, len(panel.subflows) - 0.4 + (_LABELS_WIDE * len(panel.subflows) if beside else 0))
    axes.set_xticks(range(len(panel.subflows)), style.short_names(panel.subflows))
    axes.set_xlabel(axis_labels.TRANSPORTS)
    axes.set_ylabel(axis_labels.on_two_lines(GOODPUT_PCT_MEAN.axis))


def _published(axes: Axes, panel: Panel, beside: Sequence[Published]) -> None:
    """Draw each published value as a line over its bars, with a label at the right that says whose it is."""
    last, below = len(panel.subflows) - 1, math.inf
    for level in sorted(beside, key=lambda one: -one.value):
        x = panel.subflows.index(level.subflows)
        kinds.published(axes, level.value, x)
        if x == last:
            below = min(level.value, below - _MIN_APART_PCT)
            where, words = (x + 0.5, below), f"{style.bound(level)}, k={level.k}"
        else:
            where, words = (x - 0.46, level.value + 2), style.bound(level)
        axes.annotate(
            words, where, ha="left", va="center" if x == last else "bottom", fontsize=7.5, zorder=6,
            path_effects=style.halo(),
        )  # fmt: skip


OURS = Look("refabric, mean over seeds", "#0072B2", dash="")


def of_link_pct(point: PointResult) -> float:
    """Mean goodput of the point's flows in % of the link rate."""
    return 100 * statistics.fmean(flow.goodput_mbps for flow in point.under_test) / point.rate_mbps


@saving.per_panel()
def other_simulator(panel: Panel, inputs: Inputs) -> Figure | None:
    levels = inputs.levels
    measured = {n: points for n in panel.subflows if (points := [p for p in panel.best(n) if p.under_test])}
    if not measured:
        return None
    sheet = Sheet(*[(height, 1) for height in (1.3, 0.9) * 2])
    goodput, off_goodput, fairness, off_fairness = kinds.every(sheet.axes)
    of_goodput, of_jain = (inputs.beside(panel, each) for each in (LINK_PCT_MEAN, JAIN))
    off = _compared(goodput, off_goodput, measured, of_link_pct, of_goodput)
    _compared(fairness, off_fairness, measured, jain, of_jain)
    for axes in kinds.every(sheet.axes):
        axes.set_xticks(panel.subflows)
        axes.set_xlim(min(panel.subflows) - 0.5, max(panel.subflows) + 0.5)
    goodput.set_ylim(0, 104)
    goodput.set_ylabel(axis_labels.on_two_lines(LINK_PCT_MEAN.axis))
    off_goodput.set_ylabel("ours minus\ntheirs (points)", fontsize=8.5)
    fairness.set_ylim(0, 1.03)
    fairness.set_ylabel(JAIN.axis)
    off_fairness.set_ylabel("ours minus\ntheirs", fontsize=8.5)
    off_fairness.set_xlabel(axis_labels.SUBFLOWS)
    papers = ", ".join(dict.fromkeys(level.paper for level in levels))
    most = max(len(points) for points in measured.values())
    return sheet.finish(
        inputs.title if off is None else f"At most {off:.1f} points from {papers}",
        style.subtitle(panel, "by subflows"),
        style.parameters(panel),
        [
            *style.doubts([point for points in measured.values() for point in points]),
            f"Dashed: {papers} at the same parameters." if papers else "",
            f"Dots: one seed each. {style.intervals(most)}",
        ],
        [OURS.key(), *([kinds.dashed_key(papers)] if papers else [])],
    )


def _compared(
    axes: Axes,
    differences: Axes,
    measured: Mapping[int, Sequence[PointResult]],
    value_of: Callable[[PointResult], float],
    beside: Sequence[Published],
) -> float | None:
    """Draw every seed as a dot and their mean as a marker, and both minus the other simulator's value; return
    the largest distance of a mean."""
    theirs = {level.subflows: level.value for level in beside}
    off = []
    for n, points in measured.items():
        values = [value_of(point) for point in points]
        kinds.dots(axes, n, values, OURS, points[0].suspect)
        if n in theirs:
            kinds.dots(differences, n, [value - theirs[n] for value in values], OURS, points[0].suspect, 5)
            off.append(abs(statistics.fmean(values) - theirs[n]))
    axes.plot(
        list(theirs), list(theirs.values()), color="black", ls=style.PUBLISHED_DASH, marker="_", ms=9,
        lw=1.2, zorder=5, path_effects=style.halo(),
    )  # fmt: skip
    differences.axhline(0, color="black", ls=style.PUBLISHED_DASH, lw=1.2)
    return max(off, default=None)
