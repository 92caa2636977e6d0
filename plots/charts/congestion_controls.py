"""TCP, PacketScatter and MPTCP by congestion control: goodput and what it costs in losses, retransmissions
and CPU.

Retransmitted segments are counted per 100 delivered, not per second: an algorithm that delivers more may
retransmit more.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from analysis import robustness
from analysis.quantities import CPU_BUSY_PCT, CPU_S_PER_GB, GOODPUT_PCT_MEAN, JAIN
from model import transports
from model.congestion import BASELINE, COUPLED_DEFAULT
from model.result import Status
from model.transports import COMPARED, SCATTER, TCP
from plots.data import TRANSPORT, Cell, Inputs, Level, Panel, Point, interval_pct, jain, panels
from plots.shared import axis_labels, ranks, saving, style
from plots.shared.naming import file_stems
from plots.shared.sheet import Caption, Sheet, Text

_ROW_IN, _RANK_IN = 0.27, 2.5
_BAR = 0.72
_MARKERS = 8
_KEY = "Dots: seeds; line: mean; whisker: 95 % interval."
_TITLED = (COUPLED_DEFAULT, "reno", SCATTER, TCP)
"""The algorithms in the title, where they were measured."""


@dataclass(frozen=True)
class AlgorithmComparison:
    """Everything measured in one setting with TCP and with one number of MPTCP subflows, by algorithm."""

    panel: Panel
    subflows: int
    cells: Mapping[str, Cell]

    @property
    def several(self) -> bool:
        return len(self.panel.seeds) > 1

    @cached_property
    def curves(self) -> Mapping[str, ranks.Ranks]:
        """The goodput of every flow in %, of all good seeds; of suspect ones where none is good."""
        return ranks.each_pooled(
            {name: [p.flows_pct for p in cell.ok or cell.suspect] for name, cell in self.cells.items()}
        )

    @property
    def absent(self) -> list[str]:
        """Algorithms that belong here and were not run."""
        return [name for name in COMPARED if name not in self.cells]


@dataclass(frozen=True)
class _Column:
    """A number of each algorithm: its format, and whether there is room to write its interval."""

    of: Callable[[Point], float | None]
    shown: str
    interval: bool


def draw_by_congestion_control(inputs: Inputs) -> list[Path]:
    """Draw one chart per setting and number of MPTCP subflows; see `registry.Chart.draw`; levels of
    `GOODPUT_PCT_MEAN` are drawn."""
    paths: list[Path] = []
    for stem, comparison in comparisons(inputs.points).items():
        with style.look():
            paths += saving.save(_cc_chart(comparison, inputs.levels), inputs.out, stem)
    return paths


def _stems(of: Sequence[Panel]) -> list[str]:
    return file_stems(
        "by_congestion_control", [panel.spec for panel in of], overrides=[panel.overrides for panel in of]
    )


def comparisons(points: Iterable[Point]) -> dict[str, AlgorithmComparison]:
    """Return the comparisons by the names of their files."""
    of = _panels(points)
    found: dict[str, AlgorithmComparison] = {}
    for panel, stem in zip(of, _stems(of), strict=True):
        counts = sorted({point.subflows for point in panel.points} - {1}) or [1]
        for count in counts:
            apart = f"-{count}subflows" if len(counts) > 1 else ""
            found[stem + apart] = _comparison(panel, count)
    return found


def _panels(points: Iterable[Point]) -> list[Panel]:
    """Group points that differ at most in algorithm, subflows and seed; PacketScatter stands beside every
    other routing that was compared."""
    known = list(points)
    scattered = panels((one for one in known if one.algorithm == SCATTER), ignoring=TRANSPORT)
    alone = {panel.spec.key(): panel for panel in scattered}
    of = panels((one for one in known if one.algorithm != SCATTER), ignoring=("transport.cc",))
    beside = {panel.spec.key(ignoring=TRANSPORT) for panel in of}
    made = [
        dataclasses.replace(panel, points=(*panel.points, *found.points)) if found else panel
        for panel in of
        for found in [alone.get(panel.spec.key(ignoring=TRANSPORT))]
    ]
    return [*made, *(panel for key, panel in alone.items() if key not in beside)]


def _comparison(panel: Panel, subflows: int) -> AlgorithmComparison:
    """Count plain TCP once per seed, although it was run beside each coupled algorithm."""
    once: dict[tuple[str, int], Point] = {}
    for point in sorted(panel.points, key=lambda p: (p.status is not Status.OK, p.seed)):
        if point.subflows in {1, subflows}:
            once.setdefault((point.algorithm, point.seed), point)
    names = sorted({name for name, _ in once}, key=_place)
    cells = {name: Cell.of(p for (of, _), p in once.items() if of == name) for name in names}
    shown = dataclasses.replace(panel, subflows=(subflows,), points=tuple(once.values()))
    return AlgorithmComparison(shown, subflows, cells)


def _place(name: str) -> tuple[int, int]:
    """Return the position of an algorithm: in the order of `COMPARED`, others after them."""
    return (COMPARED.index(name) if name in COMPARED else len(COMPARED)), transports.rank(name)


def retransmitted_pct(point: Point) -> float | None:
    """Return retransmitted segments per 100 full ones delivered; None without flows or without data."""
    return robustness.retransmitted_pct(point.flows)


def cc_finding(comparison: AlgorithmComparison) -> str:
    """Return the title: what the paper's own MPTCP and its baselines reach, as far as measured."""
    means = {name: cell.mean_pct for name, cell in comparison.cells.items()}
    known = {name: mean for name, mean in means.items() if mean is not None}
    chosen = [name for name in _TITLED if name in known] or list(known)[:3]
    if not chosen:
        return "No finding, no point is good"
    first, *others = (f"{transports.title(name)} {known[name]:.0f} %" for name in chosen)
    unit = "of optimal" if math.isclose(comparison.panel.optimum_pct, 100) else "of one flow alone"
    return ", ".join([f"{first} {unit}", *others])


def _cc_chart(comparison: AlgorithmComparison, levels: Sequence[Level]) -> Figure:
    beside = _levels(comparison, levels)
    sheet = Sheet((_ROW_IN * len(comparison.cells), 2), (_RANK_IN, 1))
    (goodput, retransmitted), (rank,) = sheet.axes
    _rows(goodput, comparison)
    _goodput(goodput, comparison, beside)
    _rows(retransmitted, comparison)
    _retransmitted(retransmitted, comparison)
    curves = _ranks(rank, comparison)
    absent = ", ".join(map(transports.title, comparison.absent))
    subtitle = style.subtitle(comparison.panel, _transports(comparison.subflows))
    note = f"not run: {absent}" if absent else ""
    text = Text(cc_finding(comparison), subtitle, _cc_caption(comparison, beside), note)
    return sheet.finish(text, curves, _legend(comparison, beside))


def _transports(subflows: int) -> str:
    return f"TCP, and MPTCP with {subflows} subflows by congestion control" if subflows > 1 else "TCP"


def _rows(axes: Axes, comparison: AlgorithmComparison) -> None:
    """Draw one row per algorithm, from the top down; only the left axes have names."""
    names = list(comparison.cells)
    axes.set_ylim(len(names) - 0.45, -0.55)
    axes.set_yticks(range(len(names)), list(map(transports.title, names)))
    axes.tick_params(axis="y", length=0)
    style.grid_of_rows(axes)


def _goodput(axes: Axes, comparison: AlgorithmComparison, levels: Sequence[tuple[int, Level]]) -> None:
    optimum = comparison.panel.optimum_pct
    tops = [optimum]
    for y, (name, cell) in enumerate(comparison.cells.items()):
        tops.append(_marks(axes, y, name, cell, comparison.several, _GOODPUT))
        slowest = _slowest_pct(cell)
        if slowest is not None:
            axes.plot(
                slowest, y, marker="d", markersize=5, color=style.INK, markerfacecolor="white",
                markeredgewidth=0.9, zorder=6,
            )  # fmt: skip
        if cell.gap:
            axes.annotate(
                cell.gap, (0, y), (4, 0), textcoords="offset points", va="center", color=style.FAINT
            )
    for y, level in levels:
        axes.vlines(
            level.value, y - 0.46, y + 0.46, color="black", ls=style.PUBLISHED_DASH, lw=1.5, zorder=5,
            path_effects=style.halo(),
        )  # fmt: skip
    axes.set_xlim(0, max(tops) * 1.04)
    axes.set_xticks([tick for tick in range(0, 1000, 25) if tick <= max(tops)])
    axes.axvline(optimum, color=style.FAINT, linewidth=0.8, zorder=1)
    axes.set_xlabel(GOODPUT_PCT_MEAN.short_axis)


def _retransmitted(axes: Axes, comparison: AlgorithmComparison) -> None:
    axes.tick_params(labelleft=False)
    tops = [
        _marks(axes, y, name, cell, comparison.several, _RETRANSMITTED)
        for y, (name, cell) in enumerate(comparison.cells.items())
    ]
    axes.set_xlim(0, max(*tops, 0.0) * 1.08 or 1)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.set_xlabel("retransmitted per 100")


_GOODPUT = _Column(lambda point: point.mean_pct, "{:.1f}", interval=True)
_RETRANSMITTED = _Column(retransmitted_pct, "{:.2g}", interval=False)


def _marks(axes: Axes, y: int, name: str, cell: Cell, several: bool, column: _Column) -> float:
    """Draw a row's bar, or its seeds with mean and interval, and the mean of the good ones as text on the
    right.

    Returns how far the marks reach.
    """
    colour = transports.look(name).colour
    good = [value for point in cell.ok if (value := column.of(point)) is not None]
    doubtful = [value for point in cell.suspect if (value := column.of(point)) is not None]
    values = [*good, *doubtful]
    if not values:
        return 0.0
    half = interval_pct(good) or 0.0 if good else 0.0
    spread = f" \N{PLUS-MINUS SIGN} {column.shown.format(half)}" if half and column.interval else ""
    label = column.shown.format(statistics.fmean(good or doubtful)) + (spread if good else "?")
    axes.annotate(
        label, (1, y), (3, 0), xycoords=("axes fraction", "data"), textcoords="offset points", va="center",
        fontsize=8, color=style.INK if good else style.FAINT,
    )  # fmt: skip
    if several:
        _seeds(axes, y, colour, good, doubtful, half)
    elif good:
        axes.barh(y, good[0], _BAR, color=colour)
    else:
        axes.barh(y, doubtful[0], _BAR, color="white", edgecolor=colour, hatch=style.HATCH, linewidth=1.2)
    return max(*values, (statistics.fmean(good) + half) if good else 0.0)


def _seeds(
    axes: Axes, y: int, colour: str, good: Sequence[float], doubtful: Sequence[float], half: float
) -> None:
    """Draw every seed as a point (hollow if suspect), the mean of the good ones, and its interval from six
    seeds on."""
    values = [*good, *doubtful]
    step = min(0.11, 0.5 / len(values))
    for i, value in enumerate(values):
        face = colour if i < len(good) else "white"
        where = y + step * (i - (len(values) - 1) / 2)
        axes.plot(value, where, marker="o", markersize=2.8, color=colour, markerfacecolor=face, zorder=5)
    if good:
        mean = statistics.fmean(good)
        axes.vlines(mean, y - 0.36, y + 0.36, color=colour, linewidth=1.4, zorder=4)
        if half:
            axes.errorbar(mean, y, xerr=half, color=colour, capsize=3, linewidth=1.4, zorder=4)


def _slowest_pct(cell: Cell) -> float | None:
    """The slowest flow of all seeds; of suspect ones where none is good."""
    return min((min(p.flows_pct) for p in cell.ok or cell.suspect if p.flows_pct), default=None)


def _ranks(axes: Axes, comparison: AlgorithmComparison) -> list[Line2D]:
    """Draw the goodput of every flow, slowest first, one curve per algorithm; return the legend's entries."""
    panel, cells, curves = comparison.panel, comparison.cells, comparison.curves
    lines = [
        _curve(axes, name, curve, doubt=not cells[name].ok, place=place / len(curves))
        for place, (name, curve) in enumerate(curves.items())
    ]
    top = max((curve.values[-1] for curve in curves.values()), default=0.0)
    style.percent_axis(axes, top, panel.optimum_pct)
    ranks.axis(axes, axis_labels.FLOWS)
    axes.set_ylabel(axis_labels.relative_goodput(panel))
    return lines


def _curve(axes: Axes, name: str, curve: ranks.Ranks, doubt: bool, place: float) -> Line2D:
    """Draw a curve. Markers of curves that are close together are drawn side by side."""
    count = len(curve.values)
    (drawn,) = axes.plot(
        curve.x_pct,
        curve.values,
        color=transports.look(name).colour,
        linewidth=2.0 if name == TCP else 1.4,
        linestyle=style.SUSPECT_DASH if doubt else "-",
        marker=transports.look(name).marker,
        markersize=5.5,
        markeredgecolor="white",
        markeredgewidth=0.4,
        markevery=(int(place * count / _MARKERS), max(1, count // _MARKERS)),
        label=f"{transports.title(name)} (suspect)" if doubt else transports.title(name),
        zorder=3,
    )
    return drawn


def _levels(comparison: AlgorithmComparison, levels: Sequence[Level]) -> list[tuple[int, Level]]:
    """Draw published means on the row of their algorithm; the paper's MPTCP is coupled."""
    rows = {name: y for y, name in enumerate(comparison.cells)}
    of = {1: TCP, comparison.subflows: COUPLED_DEFAULT}
    return [
        (rows[name], level)
        for level in levels
        if level.is_beside(comparison.panel)
        and level.quantity == GOODPUT_PCT_MEAN
        and level.subflows in of
        and (name := level.algorithm or of[level.subflows]) in rows
    ]


def _legend(comparison: AlgorithmComparison, levels: Sequence[tuple[int, Level]]) -> list[Artist]:
    """Return legend entries for marks that the axes do not name."""
    slowest = Line2D(
        [], [], color=style.INK, marker="d", markerfacecolor="white", markersize=5, lw=0, label="slowest flow"
    )
    hatched = Patch(facecolor="white", edgecolor=style.FAINT, hatch=style.HATCH, label="suspect")
    hollow = Line2D([], [], color=style.FAINT, marker="o", markerfacecolor="white", lw=0, label="suspect")
    doubtful = any(cell.suspect for cell in comparison.cells.values())
    return [
        slowest,
        *style.published_key([level for _, level in levels], comparison.panel),
        *([hollow if comparison.several else hatched] if doubtful else []),
    ]


def _cc_caption(comparison: AlgorithmComparison, levels: Sequence[tuple[int, Level]]) -> Caption:
    panel = comparison.panel
    lost = [
        f"{transports.title(n)} {len(c.lost)}" for n, c in comparison.cells.items() if c.lost and not c.gap
    ]
    bounds = [f"{transports.title(list(comparison.cells)[y])} {level.bound}" for y, level in levels]
    return Caption(
        style.parameters(panel, congestion=f"TCP, PacketScatter: {BASELINE}"),
        [
            *style.doubts(panel.points),
            *ranks.note(comparison.curves.values()),
            *([f"Published means: {', '.join(bounds)}."] if bounds else []),
            *([f"Seeds without a number: {', '.join(lost)}."] if lost else []),
            style.definition(panel),
            *([_KEY] if comparison.several else []),
        ],
    )


_HEIGHT_IN = 1.35
OfPoint = Callable[[Point], float | None]


@dataclass(frozen=True)
class _Curve:
    words: str
    of: OfPoint


_ALWAYS = (
    _Curve("lost between\nswitches (%)", lambda p: robustness.core_lost_pct(p.ports)),
    _Curve("lost on the\nlast link (%)", lambda p: robustness.access_lost_pct(p.ports)),
    _Curve("retransmitted per\n100 delivered", lambda p: robustness.retransmitted_pct(p.flows)),
    _Curve(JAIN.axis, lambda p: jain(p) if p.flows else None),
)
_REAL = (
    _Curve(textwrap.fill(CPU_S_PER_GB.axis, 14), lambda p: p.recorded(CPU_S_PER_GB)),
    _Curve(CPU_BUSY_PCT.short_axis, lambda p: p.recorded(CPU_BUSY_PCT)),
)
Cells = Mapping[tuple[str, int], Sequence[Point]]


def draw_loss_and_cost(inputs: Inputs) -> list[Path]:
    """Draw one chart per setting, its congestion controls together; see `registry.Chart.draw`."""
    of = panels(inputs.points, inputs.expected, ("transport.cc",))
    return saving.draw_panels("loss_and_cost", inputs, _cost_chart, of)


def cells_of(panel: Panel) -> Cells:
    """Return good points by algorithm and subflows, one per seed; suspect ones where none is good."""
    found: dict[tuple[str, int], dict[int, Point]] = {}
    usable = [p for p in panel.points if not p.failed and p.flows]
    for point in sorted(usable, key=lambda p: (p.status is not Status.OK, p.seed)):
        found.setdefault((point.algorithm, point.subflows), {}).setdefault(point.seed, point)
    return {key: _alike(list(of_seed.values())) for key, of_seed in sorted(found.items())}


def _alike(points: Sequence[Point]) -> Sequence[Point]:
    return [point for point in points if point.status is points[0].status]


def cost_finding(cells: Cells) -> str:
    """Return the title: what is retransmitted under the most subflows, coupled and not, and under TCP."""
    retransmitted = {
        key: value for key, of in cells.items() if (value := _mean(of, _ALWAYS[2].of)) is not None
    }
    most = max((n for _, n in retransmitted), default=1)
    parts = [
        f"{name} {retransmitted[key]:.2g}"
        for name, key in (
            (f"MPTCP {most}", (COUPLED_DEFAULT, most)),
            ("uncoupled", (BASELINE, most)),
            ("TCP", (TCP, 1)),
        )
        if key in retransmitted
    ]
    return f"Retransmitted per 100 delivered: {', '.join(parts)}" if parts else "Losses and their cost"


def _mean(points: Sequence[Point], of: OfPoint) -> float | None:
    values = [value for point in points if (value := of(point)) is not None]
    return statistics.fmean(values) if values else None


def _cost_chart(panel: Panel) -> Figure | None:
    cells = cells_of(panel)
    if not cells:
        return None
    real = tuple(
        quantity for quantity in _REAL if any(_mean(of, quantity.of) is not None for of in cells.values())
    )
    rows = [_ALWAYS[:2], _ALWAYS[2:], *([real] if real else [])]
    sheet = Sheet(*((_HEIGHT_IN, len(row)) for row in rows))
    for row, quantities in zip(sheet.axes, rows, strict=True):
        for axes, quantity in zip(row, quantities, strict=True):
            _draw(axes, cells, quantity)
    for axes in sheet.axes[-1]:
        axes.set_xlabel(f"{axis_labels.SUBFLOWS} (1: TCP)")
    names = sorted({name for name, _ in cells}, key=transports.rank)
    subtitle = style.subtitle(panel, "what subflows cost, by congestion control")
    return sheet.finish(
        Text(cost_finding(cells), subtitle, _cost_caption(panel, cells)), list(map(_key, names))
    )


def _key(name: str) -> Line2D:
    return Line2D(
        [], [], color=transports.look(name).colour, marker=transports.look(name).marker, ms=6, lw=1.4,
        ls="" if name == TCP else "-", label=transports.title(name),
    )  # fmt: skip


def _draw(axes: Axes, cells: Cells, quantity: _Curve) -> None:
    """Draw one curve per algorithm, starting at TCP."""
    for name in sorted({name for name, _ in cells}):
        own = {n: of for (each, n), of in cells.items() if each in {name, TCP}}
        curve = {n: mean for n, of in sorted(own.items()) if (mean := _mean(of, quantity.of)) is not None}
        axes.plot(list(curve), list(curve.values()), color=transports.look(name).colour, lw=1.4, zorder=3)
    for (name, n), of in cells.items():
        values = [value for point in of if (value := quantity.of(point)) is not None]
        if values:
            face = "white" if of[0].suspect else transports.look(name).colour
            axes.errorbar(
                n, statistics.fmean(values), yerr=interval_pct(values), marker=transports.look(name).marker,
                ms=6, capsize=2.5, color=transports.look(name).colour, markerfacecolor=face, zorder=4,
            )  # fmt: skip
    axes.set_ylabel(quantity.words)
    axes.set_xticks(sorted({n for _, n in cells}))
    highest = max((value for of in cells.values() for p in of if (value := quantity.of(p))), default=1.0)
    axes.set_ylim(0, 1.1 * highest)


def _cost_caption(panel: Panel, cells: Cells) -> Caption:
    shown = [point for of in cells.values() for point in of]
    names = ", ".join(map(transports.title, sorted({name for name, _ in cells}, key=transports.rank)))
    return Caption(
        style.parameters(panel, congestion=names),
        [*style.doubts(shown), style.intervals(max(map(len, cells.values())))],
    )
