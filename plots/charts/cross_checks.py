"""Two engines or simulators compared: flow by flow, by subflows, and by rank.

Points belong together if they differ in the engine alone: the same flows over the same paths.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from analysis.quantities import GOODPUT_PCT_MEAN, JAIN, LINK_PCT_MEAN
from analysis.stats import correlation, rank_correlation
from engines.registry import FLOW_LEVEL, LINUX_HOSTS, MAX_MIN, SIMULATED_HOSTS, SIMULATOR
from model import transports
from model.result import Status
from model.spec import RunSpec
from plots.data import Inputs, Level, Panel, Point, interval_pct, jain, panels
from plots.shared import axis_labels, ranks, saving, style
from plots.shared.sheet import Caption, Sheet, Text

MAX_COLUMNS = 3
_Dashes = tuple[float, tuple[float, ...]]
_SCATTER_IN, _RANK_IN = 1.35, 1.35


@dataclass(frozen=True)
class EnginePairs:
    """One transport: its points in both engines, one pair per seed."""

    name: str
    subflows: int
    pairs: tuple[tuple[Point, Point], ...]

    @property
    def dubious(self) -> bool:
        return any(here.status is not Status.OK for here, _ in self.pairs)

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


def draw_cross_check(inputs: Inputs) -> list[Path]:
    """Draw one chart per network and setting that two engines ran; see `registry.Chart.draw`. Levels
    and expected subflow counts are not used."""
    return saving.draw_each(
        "cross_check",
        [(panel.spec, panel) for panel in _cross_panels(inputs.points)],
        inputs.out,
        _cross_chart,
    )


def _cross_panels(points: Iterable[Point]) -> list[Panel]:
    """Group points that differ at most in engine, transport and seed."""
    of = panels(points, (), ("engine", "stack", "traffic", "transport.cc"), lambda p: _traffic(p.spec))
    return [
        dataclasses.replace(
            panel,
            spec=dataclasses.replace(
                panel.spec, engine=_engines(panel), traffic=_traffic(panel.points[0].spec)
            ),
        )
        for panel in of
    ]


def _engines(panel: Panel) -> str:
    """`mininet and simulator`."""
    return " and ".join(sorted({point.spec.engine for point in panel.points}))


def _traffic(spec: RunSpec) -> str:
    """Return the traffic in common: simulated flows all start at once, as those of `native` traffic do."""
    return "native" if spec.engine in SIMULATED_HOSTS else spec.traffic


def _standard(points: Iterable[Point]) -> str:
    """Return the engine with Linux hosts that the others are compared with; empty if there is none."""
    ran = {point.spec.engine for point in points}
    return next((name for name in LINUX_HOSTS if name in ran), "")


def columns_of(panel: Panel) -> list[EnginePairs]:
    """The transports of a panel that both engines ran, TCP first, at most `MAX_COLUMNS`."""
    usable = [point for point in panel.points if point.flows_pct and not point.failed]
    standard = _standard(usable)
    emulated = {_key(point): point for point in usable if point.spec.engine == standard}
    pairs: dict[tuple[int, int, str], list[tuple[Point, Point]]] = {}
    for point in usable:
        if point.spec.engine != standard and _key(point) in emulated:
            rank = (transports.rank(point.algorithm), point.subflows, point.algorithm)
            pairs.setdefault(rank, []).append((emulated[_key(point)], point))
    ordered = sorted(pairs.items(), key=lambda item: item[0])
    return [EnginePairs(name, count, tuple(both)) for (_, count, name), both in ordered][:MAX_COLUMNS]


def _key(point: Point) -> tuple[str, int, int]:
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


def _cross_chart(panel: Panel) -> Figure | None:
    columns = columns_of(panel)
    if not columns:
        return None
    sheet = Sheet((_SCATTER_IN, len(columns)), (_RANK_IN, len(columns)))
    top = max(max(map(max, column.flows)) for column in columns)
    for place, (axes, column) in enumerate(zip(sheet.axes[0], columns, strict=True)):
        _scatter(axes, column)
        axes.set_ylabel("simulated (%)" if place == 0 else "")
    handles: list[Line2D] = []
    for place, (axes, column) in enumerate(zip(sheet.axes[1], columns, strict=True)):
        handles = _cross_ranks(axes, column, top)
        axes.set_ylabel(axis_labels.GOODPUT_PCT if place == 0 else "")
    words = f"{style.network(panel.spec)}, {panel.hosts} hosts, {style.workload(panel.spec)}"
    text = Text(
        cross_finding(columns),
        f"{words}: goodput of every flow in both engines",
        _cross_caption(panel, columns),
    )
    return sheet.finish(text, handles)


def _scatter(axes: Axes, column: EnginePairs) -> None:
    emulated, simulated = column.flows
    axes.plot([0, 1000], [0, 1000], color=style.FAINT, linewidth=0.8, zorder=1)
    if column.dubious:
        style.hatch(axes)
    axes.plot(
        emulated, simulated, linestyle="", marker="o", markersize=3.2, alpha=0.75,
        color=transports.look(column.name).colour, zorder=3,
        markerfacecolor="white" if column.dubious else transports.look(column.name).colour,
    )  # fmt: skip
    limits, ticks = scale([*emulated, *simulated])
    axes.set(xlim=limits, ylim=limits, xticks=ticks, yticks=ticks)
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


def _cross_ranks(axes: Axes, column: EnginePairs, top: float) -> list[Line2D]:
    """Draw both curves, of the flows of all seeds; return the legend's entries."""
    drawn = []
    for side, name in enumerate(("emulated", "simulated")):
        dashes: _Dashes = (0, (2, 1)) if side else (0, ())
        curve = column.curves[side]
        axes.plot(
            curve.x_pct, curve.values, linestyle=dashes, linewidth=1.6, zorder=3 + side,
            color=style.INK if side else transports.look(column.name).colour,
        )  # fmt: skip
        key = Line2D([], [], color=style.INK if side else style.FAINT, linestyle=dashes, linewidth=1.6)
        key.set_label(name)
        drawn.append(key)
    if column.dubious:
        style.hatch(axes)
    axes.set_ylim(0, max(100.0, top) * 1.06)
    axes.set_yticks([0, 50, 100])
    ranks.axis(axes, axis_labels.FLOWS_SHORT, 50)
    return drawn


def _cross_caption(panel: Panel, columns: Sequence[EnginePairs]) -> Caption:
    shown = [point for column in columns for pair in column.pairs for point in pair]
    return Caption(
        style.parameters(dataclasses.replace(panel, points=tuple(shown)), congestion="TCP: reno"),
        [
            *style.doubts(shown),
            *ranks.note(columns[0].curves),
            "r: Pearson's, \N{GREEK SMALL LETTER RHO}: Spearman's correlation.",
            style.definition(panel),
        ],
    )


ENGINES = {
    SIMULATOR: ("packet level", "#111111"),
    FLOW_LEVEL: ("flow level, equilibrium", "#0072B2"),
    MAX_MIN: ("flow level, max-min", "#E69F00"),
}
"""Name and colour of each engine, the same in bars and curves."""
_MIN_APART_PCT = 8.0
"""Distance between labels of two published lines. If lines are closer, their labels are moved apart."""
_FLOW_LEVEL_HEIGHT_IN = 1.9
_LABELS_WIDE = 0.22
"""Room for the labels of published lines, as a share of the bars."""


def draw_flow_level(inputs: Inputs) -> list[Path]:
    """Draw one chart per network and setting that a model ran; see `registry.Chart.draw`; means are drawn."""
    of = [(panel.spec, panel) for panel in _flow_level_panels(inputs.points)]
    return saving.draw_each(
        "flow_level", of, inputs.out, lambda panel: _flow_level_chart(panel, inputs.levels)
    )


def _flow_level_panels(points: Iterable[Point]) -> list[Panel]:
    """Group points that differ at most in engine, subflows and seed."""
    usable = (p for p in points if p.flows_pct and not p.failed and p.spec.engine in ENGINES)
    return [
        dataclasses.replace(
            panel,
            spec=dataclasses.replace(panel.spec, engine=SIMULATOR),
            subflows=tuple(sorted({point.subflows for point in panel.points})),
        )
        for panel in panels(usable, ignoring=("engine",))
    ]


def mean_goodput_pct(panel: Panel, engine: str, subflows: int) -> float | None:
    """Return the mean goodput in % over the seeds; None if the engine did not run it."""
    means = [statistics.fmean(point.flows_pct) for point in _of(panel, engine, subflows)]
    return statistics.fmean(means) if means else None


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
    return (
        "Flow level" if mean is None else f"{style.transport(most)} at equilibrium: {mean:.0f} % of optimal"
    )


def _of(panel: Panel, engine: str, subflows: int) -> list[Point]:
    return [point for point in panel.points if (point.spec.engine, point.subflows) == (engine, subflows)]


def _flow_level_chart(panel: Panel, levels: Sequence[Level]) -> Figure:
    ends = sorted({panel.subflows[0], panel.subflows[-1]})
    beside = [level for level in style.levels_of(panel, levels, GOODPUT_PCT_MEAN) if not level.shape]
    sheet = Sheet((_FLOW_LEVEL_HEIGHT_IN, 1), (_FLOW_LEVEL_HEIGHT_IN, len(ends)))
    here = [engine for engine in ENGINES if any(point.spec.engine == engine for point in panel.points)]
    _bars(sheet.axes[0][0], panel, here, beside)
    for place, (axes, count) in enumerate(zip(sheet.axes[1], ends, strict=True)):
        _flow_level_ranks(axes, panel, here, count)
        axes.set_ylabel(axis_labels.GOODPUT_PCT if place == 0 else "")
    text = Text(
        flow_level_finding(panel),
        style.subtitle(panel, "mean, and goodput of every flow"),
        _flow_level_caption(panel, beside),
    )
    return sheet.finish(text, _flow_level_legend(here), style.published_key(beside, panel))


def _bars(axes: Axes, panel: Panel, here: Sequence[str], beside: Sequence[Level]) -> None:
    width = 0.8 / len(here)
    for place, engine in enumerate(here):
        for x, count in enumerate(panel.subflows):
            height = mean_goodput_pct(panel, engine, count)
            if height is not None:
                axes.bar(
                    x + (place - (len(here) - 1) / 2) * width, height, 0.92 * width, color=ENGINES[engine][1]
                )
    _published(axes, panel, beside)
    style.percent_axis(axes, 100.0)
    axes.set_xlim(-0.6, len(panel.subflows) - 0.4 + (_LABELS_WIDE * len(panel.subflows) if beside else 0))
    axes.set_xticks(range(len(panel.subflows)), ["TCP" if n == 1 else str(n) for n in panel.subflows])
    axes.set_xlabel(axis_labels.TRANSPORTS)
    axes.set_ylabel(axis_labels.on_two_lines(GOODPUT_PCT_MEAN.axis))


def _published(axes: Axes, panel: Panel, beside: Sequence[Level]) -> None:
    """Draw each published value as a line over its bars, with a label at the right that says whose it is."""
    last, below = len(panel.subflows) - 1, math.inf
    for level in sorted(beside, key=lambda one: -one.value):
        x = panel.subflows.index(level.subflows)
        axes.hlines(
            level.value, x - 0.46, x + 0.46, color="black", ls=style.PUBLISHED_DASH, lw=1.5, zorder=5,
            path_effects=style.halo(),
        )  # fmt: skip
        if x == last:
            below = min(level.value, below - _MIN_APART_PCT)
            where, words = (x + 0.5, below), f"{level.bound}, k={level.k}"
        else:
            where, words = (x - 0.46, level.value + 2), level.bound
        axes.annotate(
            words, where, ha="left", va="center" if x == last else "bottom", fontsize=7.5, zorder=6,
            path_effects=style.halo(),
        )  # fmt: skip


def _curve(panel: Panel, engine: str, count: int) -> ranks.Ranks | None:
    return ranks.pooled(point.flows_pct for point in _of(panel, engine, count))


def _flow_level_ranks(axes: Axes, panel: Panel, here: Sequence[str], count: int) -> None:
    """Draw the flows of all seeds, slowest first, one curve per engine."""
    for place, engine in enumerate(here):
        curve = _curve(panel, engine, count)
        if curve:
            axes.plot(
                curve.x_pct, curve.values, color=ENGINES[engine][1], lw=1.5, zorder=3 + place,
                ls=("-", (0, (5, 1.5)), (0, (1.5, 1.5)))[place],
            )  # fmt: skip
    axes.set_ylim(0, 106)
    axes.set_yticks([0, 25, 50, 75, 100])
    ranks.axis(axes, axis_labels.FLOWS, 50)
    axes.set_title(style.transport(count))


def _flow_level_legend(here: Sequence[str]) -> list[Artist]:
    return [Patch(facecolor=ENGINES[e][1], label=ENGINES[e][0]) for e in here]


def _flow_level_caption(panel: Panel, beside: Sequence[Level]) -> Caption:
    off = difference(panel, MAX_MIN)
    packets = any(point.spec.engine == SIMULATOR for point in panel.points)
    return Caption(
        style.parameters(panel),
        [
            *ranks.note([curve for e in ENGINES if (curve := _curve(panel, e, panel.subflows[-1]))]),
            *([f"Max-min minus packets: {off[0]:+.1f} points on average."] if off else []),
            *([] if packets else ["No packet-level points here."]),
            style.definition(panel),
            *style.sources(beside),
        ],
    )


_OTHER_HEIGHT_IN, _DIFFERENCE_IN = 1.3, 0.9
OURS = "#0072B2"


def draw_other_simulator(inputs: Inputs) -> list[Path]:
    """Draw one chart per setting; see `registry.Chart.draw`; levels of `LINK_PCT_MEAN` and `JAIN`."""
    return saving.draw_panels("other_simulator", inputs, lambda panel: _other_chart(panel, inputs.levels))


def of_link_pct(point: Point) -> float:
    """Mean goodput of the point's flows in % of the link rate."""
    return 100 * statistics.fmean(flow.goodput_mbps for flow in point.flows) / point.rate_mbps


def _other_chart(panel: Panel, levels: Sequence[Level]) -> Figure | None:
    measured = {n: [p for p in panel.best(n) if p.flows] for n in panel.subflows}
    measured = {n: points for n, points in measured.items() if points}
    if not measured:
        return None
    sheet = Sheet(*[(height, 1) for height in (_OTHER_HEIGHT_IN, _DIFFERENCE_IN) * 2])
    goodput, off_goodput, fairness, off_fairness = (axes for (axes,) in sheet.axes)
    of_goodput, of_jain = (style.levels_of(panel, levels, each) for each in (LINK_PCT_MEAN, JAIN))
    off = _row(goodput, panel, measured, of_link_pct, of_goodput)
    _differences(off_goodput, panel, measured, of_link_pct, of_goodput)
    _row(fairness, panel, measured, jain, of_jain)
    _differences(off_fairness, panel, measured, jain, of_jain)
    goodput.set_ylim(0, 104)
    goodput.set_ylabel(axis_labels.on_two_lines(LINK_PCT_MEAN.axis))
    off_goodput.set_ylabel("ours minus\ntheirs (points)", fontsize=8.5)
    fairness.set_ylim(0, 1.03)
    fairness.set_ylabel(JAIN.axis)
    off_fairness.set_ylabel("ours minus\ntheirs", fontsize=8.5)
    off_fairness.set_xlabel(axis_labels.SUBFLOWS)
    papers = ", ".join(dict.fromkeys(level.paper for level in levels))
    title = "Goodput and fairness by subflows" if off is None else f"At most {off:.1f} points from {papers}"
    words = Text(title, style.subtitle(panel, "by subflows"), _other_caption(panel, measured, papers))
    return sheet.finish(words, _other_legend(papers))


def _row(
    axes: Axes,
    panel: Panel,
    measured: dict[int, list[Point]],
    value_of: Callable[[Point], float],
    beside: Sequence[Level],
) -> float | None:
    """Draw every seed as a dot and their mean as a marker; return the largest distance of a mean from the
    other simulator's."""
    theirs = {level.subflows: level.value for level in beside}
    off = []
    for n, points in measured.items():
        values = [value_of(point) for point in points]
        mean = statistics.fmean(values)
        axes.plot([n] * len(values), values, ls="", marker="o", ms=2.2, color=OURS, alpha=0.45, zorder=3)
        axes.errorbar(
            n, mean, yerr=interval_pct(values), marker="o", ms=6, color=OURS, capsize=2.5, zorder=4,
            markerfacecolor="white" if panel.dubious(n) else OURS,
        )  # fmt: skip
        if n in theirs:
            off.append(abs(mean - theirs[n]))
    axes.plot(
        list(theirs), list(theirs.values()), color="black", ls=style.PUBLISHED_DASH, marker="_", ms=9,
        lw=1.2, zorder=5, path_effects=style.halo(),
    )  # fmt: skip
    axes.set_xticks(panel.subflows)
    axes.set_xlim(min(panel.subflows) - 0.5, max(panel.subflows) + 0.5)
    return max(off, default=None)


def _differences(
    axes: Axes,
    panel: Panel,
    measured: dict[int, list[Point]],
    value_of: Callable[[Point], float],
    beside: Sequence[Level],
) -> None:
    """Draw every seed and the mean with its interval, minus that of the other simulator."""
    theirs = {level.subflows: level.value for level in beside}
    for n, points in measured.items():
        if n not in theirs:
            continue
        off = [value_of(point) - theirs[n] for point in points]
        axes.plot([n] * len(off), off, ls="", marker="o", ms=2.2, color=OURS, alpha=0.45, zorder=3)
        axes.errorbar(
            n, statistics.fmean(off), yerr=interval_pct(off), marker="o", ms=5, color=OURS, capsize=2.5,
            zorder=4, markerfacecolor="white" if panel.dubious(n) else OURS,
        )  # fmt: skip
    axes.axhline(0, color="black", ls=style.PUBLISHED_DASH, lw=1.2)
    axes.set_xticks(panel.subflows)
    axes.set_xlim(min(panel.subflows) - 0.5, max(panel.subflows) + 0.5)


def _other_legend(papers: str) -> list[Line2D]:
    ours = Line2D([], [], ls="", marker="o", ms=6, color=OURS, label="refabric, mean over seeds")
    dashes = Line2D([], [], color="black", ls=style.PUBLISHED_DASH, lw=1.2, label=papers)
    return [ours, *([dashes] if papers else [])]


def _other_caption(panel: Panel, measured: dict[int, list[Point]], papers: str) -> Caption:
    most = max(len(points) for points in measured.values())
    return Caption(
        style.parameters(panel),
        [
            *style.doubts([point for points in measured.values() for point in points]),
            *([f"Dashed: {papers} at the same parameters."] if papers else []),
            f"Dots: one seed each. {style.intervals(most)}",
        ],
    )
