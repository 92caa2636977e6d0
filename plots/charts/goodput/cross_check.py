"""Emulated against simulated, flow by flow: goodput of every flow in both, and the rank curves of both.

Points pair up where they differ in the engine alone: the same flows over the same paths. One chart per
network, one column per transport.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.stats import correlation, rank_correlation
from engines.registry import LINUX_HOSTS, SIMULATED_HOSTS
from model import transports
from model.result import Status
from model.spec import RunSpec
from plots.data import Inputs, Panel, Point, panels
from plots.shared import axis_labels, ranks, saving, style
from plots.shared.sheet import Caption, Sheet, Text

CHART = "cross_check"
MAX_COLUMNS = 3
_Dashes = tuple[float, tuple[float, ...]]
_SCATTER_IN, _RANK_IN = 1.35, 1.35


@dataclass(frozen=True)
class Column:
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


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart per network and setting that two engines ran; see `registry.Chart.draw`. Levels
    and expected subflow counts are not used."""
    return saving.draw_each(
        CHART, [(panel.spec, panel) for panel in _panels(inputs.points)], inputs.out, _chart
    )


def _panels(points: Iterable[Point]) -> list[Panel]:
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


def columns_of(panel: Panel) -> list[Column]:
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
    return [Column(name, count, tuple(both)) for (_, count, name), both in ordered][:MAX_COLUMNS]


def _key(point: Point) -> tuple[str, int, int]:
    return point.algorithm, point.subflows, point.seed


def finding(columns: Sequence[Column]) -> str:
    """Return the title: how far the simulated means are off."""
    parts = [f"{transports.title(column.name)} {column.difference:+.1f}" for column in columns]
    return f"Simulated minus emulated: {', '.join(parts)} points"


def corner(column: Column) -> str:
    """Return the text in the corner of a scatter plot."""
    r, rho = correlation(*column.flows), rank_correlation(*column.flows)
    lines = [
        f"r {r:.2f}" if r is not None else "",
        f"\N{GREEK SMALL LETTER RHO} {rho:.2f}" if rho is not None else "",
    ]
    return "\n".join([*filter(None, lines), f"mean {column.difference:+.1f}"])


def _chart(panel: Panel) -> Figure | None:
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
        handles = _ranks(axes, column, top)
        axes.set_ylabel(axis_labels.GOODPUT_PCT if place == 0 else "")
    words = f"{style.network(panel.spec)}, {panel.hosts} hosts, {style.workload(panel.spec)}"
    text = Text(finding(columns), f"{words}: goodput of every flow in both engines", _caption(panel, columns))
    return sheet.finish(text, handles)


def _scatter(axes: Axes, column: Column) -> None:
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


def _ranks(axes: Axes, column: Column, top: float) -> list[Line2D]:
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


def _caption(panel: Panel, columns: Sequence[Column]) -> Caption:
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
