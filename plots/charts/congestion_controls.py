"""TCP, PacketScatter and MPTCP by congestion control: goodput and what it costs in losses, retransmissions
and CPU.

Retransmitted segments are counted per 100 delivered, not per second: an algorithm that delivers more may
retransmit more.
"""

from __future__ import annotations

import dataclasses
import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from analysis import robustness
from analysis.quantities import CPU_BUSY_PCT, CPU_S_PER_GB, GOODPUT_PCT_MEAN, JAIN
from harness.metrics.published import Published
from harness.results.point_results import PointResult
from model import transports
from model.congestion import BASELINE, COUPLED_DEFAULT
from model.result import Status
from model.spec import RunSpec
from model.transports import COMPARED, SCATTER, TCP
from plots.data import TRANSPORT, Cell, Inputs, Panel, good, jain, panels
from plots.kinds.axis import Axis
from plots.kinds.curves import Curves, mean
from plots.picture import Picture, Row, Series, alike
from plots.shared import axis_labels, kinds, ranks, saving, style
from plots.shared.sheet import Sheet

_BAR = 0.72
_MARKERS = 8
_TITLED = (COUPLED_DEFAULT, "reno", SCATTER, TCP)
"""The algorithms in the title, where they were measured."""
OfPoint = Callable[[PointResult], float | None]


@dataclass(frozen=True)
class AlgorithmComparison:
    """Everything measured in one setting with TCP and with one number of MPTCP subflows, by algorithm;
    `suffix` is the end of its files' names."""

    panel: Panel
    subflows: int
    cells: Mapping[str, Cell]
    suffix: str = ""

    @property
    def points(self) -> tuple[PointResult, ...]:
        return self.panel.points

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


def comparisons(points: Iterable[PointResult]) -> list[tuple[RunSpec, AlgorithmComparison]]:
    """Return the comparisons with the settings that name their files: one per number of MPTCP subflows."""
    found = []
    for panel in _panels(points):
        counts = sorted({point.subflows for point in panel.points} - {1}) or [1]
        for count in counts:
            made = _comparison(panel, count)
            apart = f"-{count}subflows" if len(counts) > 1 else ""
            found.append((panel.spec, dataclasses.replace(made, suffix=apart)))
    return found


def _panels(points: Iterable[PointResult]) -> list[Panel]:
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
    once: dict[tuple[str, int], PointResult] = {}
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


def retransmitted_pct(point: PointResult) -> float | None:
    """Return retransmitted segments per 100 full ones delivered; None without flows or without data."""
    return robustness.retransmitted_pct(point.under_test)


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


@saving.per_group(lambda inputs: comparisons(inputs.points), suffix=lambda comparison: comparison.suffix)
def by_congestion_control(comparison: AlgorithmComparison, inputs: Inputs) -> Figure:
    """Draw one chart per setting and number of MPTCP subflows, with published means."""
    panel, cells, beside = comparison.panel, comparison.cells, _levels(comparison, inputs)
    sheet = Sheet((0.27 * len(cells), 2), (2.5, 1))
    (goodput, retransmitted), (rank,) = sheet.axes
    for axes in (goodput, retransmitted):
        kinds.rows(axes, list(map(transports.title, cells)), named=axes is goodput, size=9)
    _goodput(goodput, comparison, beside)
    tops = [
        _marks(retransmitted, y, name, cell, comparison.several, retransmitted_pct, "{:.2g}")
        for y, (name, cell) in enumerate(cells.items())
    ]
    retransmitted.set_xlim(0, max(*tops, 0.0) * 1.08 or 1)
    retransmitted.xaxis.set_major_locator(MaxNLocator(4))
    retransmitted.set_xlabel("retransmitted per 100")
    curves = _ranks(rank, comparison)
    lost = [f"{transports.title(n)} {len(c.lost)}" for n, c in cells.items() if c.lost and not c.gap]
    bounds = [f"{transports.title(list(cells)[y])} {style.bound(level)}" for y, level in beside]
    absent = ", ".join(map(transports.title, comparison.absent))
    count = comparison.subflows
    what = f"TCP, and MPTCP with {count} subflows by congestion control" if count > 1 else "TCP"
    slowest = Line2D(
        [], [], color=style.INK, marker="d", markerfacecolor="white", markersize=5, lw=0, label="slowest flow"
    )
    doubtful = any(cell.suspect for cell in cells.values())
    return sheet.finish(
        cc_finding(comparison),
        style.subtitle(panel, what),
        style.parameters(panel, congestion=f"TCP, PacketScatter: {BASELINE}"),
        [
            *style.doubts(panel.points),
            *ranks.note(comparison.curves.values()),
            f"Published means: {', '.join(bounds)}." if bounds else "",
            f"Seeds without a number: {', '.join(lost)}." if lost else "",
            style.definition(panel),
            "Dots: seeds; line: mean; whisker: 95 % interval." if comparison.several else "",
        ],
        curves,
        [
            slowest,
            *style.published_key([level for _, level in beside], panel),
            *kinds.doubt_key(doubtful, hatched=not comparison.several),
        ],
        gaps=f"not run: {absent}" if absent else "",
    )


def _goodput(axes: Axes, comparison: AlgorithmComparison, levels: Sequence[tuple[int, Published]]) -> None:
    optimum = comparison.panel.optimum_pct
    tops = [optimum]
    for y, (name, cell) in enumerate(comparison.cells.items()):
        tops.append(
            _marks(axes, y, name, cell, comparison.several, lambda p: p.mean_pct, "{:.1f}", interval=True)
        )
        slowest = min((min(p.flows_pct) for p in cell.ok or cell.suspect if p.flows_pct), default=None)
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
        kinds.published(axes, level.value, y, vertical=True)
    axes.set_xlim(0, max(tops) * 1.04)
    axes.set_xticks([tick for tick in range(0, 1000, 25) if tick <= max(tops)])
    axes.axvline(optimum, color=style.FAINT, linewidth=0.8, zorder=1)
    axes.set_xlabel(GOODPUT_PCT_MEAN.short_axis)


def _marks(
    axes: Axes,
    y: int,
    name: str,
    cell: Cell,
    several: bool,
    value: OfPoint,
    shown: str,
    *,
    interval: bool = False,
) -> float:
    """Draw a row's bar, or its seeds (hollow if suspect) with the mean of the good ones, which is written on
    the right, with its `interval` if there is room; return how far the marks reach."""
    colour = transports.look(name).colour
    good, doubtful = ([v for p in of if (v := value(p)) is not None] for of in (cell.ok, cell.suspect))
    mean = kinds.mean_of(good) or kinds.mean_of(doubtful)
    if mean is None:
        return 0.0
    spread = f" \N{PLUS-MINUS SIGN} {shown.format(mean.half)}" if good and mean.half and interval else ""
    axes.annotate(
        shown.format(mean.value) + (spread if good else "?"), (1, y), (3, 0),
        xycoords=("axes fraction", "data"), textcoords="offset points", va="center", fontsize=8,
        color=style.INK if good else style.FAINT,
    )  # fmt: skip
    values = [*good, *doubtful]
    if not several:
        kinds.bar(axes, y, values[0], _BAR, colour, not good, horizontal=True)
        return values[0]
    kinds.seeds(axes, y, good, doubtful, colour, horizontal=True)
    return max(*values, mean.value + mean.half if good else 0.0)


def _ranks(axes: Axes, comparison: AlgorithmComparison) -> list[Line2D]:
    """Draw the goodput of every flow, slowest first, one curve per algorithm; return the legend's entries.

    Markers of curves that are close together are drawn side by side."""
    panel, curves = comparison.panel, comparison.curves
    lines = []
    for place, (name, curve) in enumerate(curves.items()):
        look = kinds.look_of(name).doubted(not comparison.cells[name].ok)
        count = len(curve.values)
        lines += axes.plot(
            curve.x_pct, curve.values, color=look.colour, lw=2.0 if name == TCP else 1.4, ls=look.dash,
            marker=look.marker, markersize=5.5, markeredgecolor="white", markeredgewidth=0.4,
            markevery=(int(place / len(curves) * count / _MARKERS), max(1, count // _MARKERS)),
            label=look.label, zorder=3,
        )  # fmt: skip
    top = max((curve.values[-1] for curve in curves.values()), default=0.0)
    style.percent_axis(axes, top, panel.optimum_pct)
    ranks.axis(axes, axis_labels.FLOWS)
    axes.set_ylabel(axis_labels.relative_goodput(panel))
    return lines


def _levels(comparison: AlgorithmComparison, inputs: Inputs) -> list[tuple[int, Published]]:
    """Draw published means on the row of their algorithm; the paper's MPTCP is coupled."""
    rows = {name: y for y, name in enumerate(comparison.cells)}
    of = {1: TCP, comparison.subflows: COUPLED_DEFAULT}
    return [
        (rows[name], level)
        for level in inputs.levels
        if inputs.is_beside(level, comparison.panel)
        and level.metric.quantity == GOODPUT_PCT_MEAN
        and level.subflows in of
        and (name := level.algorithm or of[level.subflows]) in rows
    ]


_ALWAYS: Mapping[str, OfPoint] = {
    "lost between\nswitches (%)": lambda p: robustness.core_lost_pct(p.ports),
    "lost on the\nlast link (%)": lambda p: robustness.access_lost_pct(p.ports),
    "retransmitted per\n100 delivered": retransmitted_pct,
    JAIN.axis: lambda p: jain(p) if p.under_test else None,
}
_REAL: Mapping[str, OfPoint] = {
    textwrap.fill(CPU_S_PER_GB.axis, 14): lambda p: p.metric(CPU_S_PER_GB.name),
    CPU_BUSY_PCT.short_axis: lambda p: p.metric(CPU_BUSY_PCT.name),
}
Cells = Mapping[tuple[str, int], Sequence[PointResult]]


def cells_of(panel: Panel) -> Cells:
    """Return good points by algorithm and subflows, one per seed; suspect ones where none is good."""
    found: dict[tuple[str, int], dict[int, PointResult]] = {}
    usable = [p for p in panel.points if not p.failed and p.under_test]
    for point in sorted(usable, key=lambda p: (p.status is not Status.OK, p.seed)):
        found.setdefault((point.algorithm, point.subflows), {}).setdefault(point.seed, point)
    return {key: good(list(of_seed.values())) for key, of_seed in sorted(found.items())}


def cost_numbers(panel: Panel) -> dict[str, object] | None:
    """Return what is retransmitted under the most subflows, coupled and not, and under TCP."""
    of = {key: kinds.mean_over(points, retransmitted_pct) for key, points in cells_of(panel).items()}
    means = {key: mean.value for key, mean in of.items() if mean}
    most = max((n for _, n in means), default=1)
    named = {f"MPTCP {most}": (COUPLED_DEFAULT, most), "uncoupled": (BASELINE, most), "TCP": (TCP, 1)}
    found = {name: means[key] for name, key in named.items() if key in means}
    return {"pct": found} if found else None


def _by_algorithm(panel: Panel) -> list[Series]:
    """Return a series for each algorithm, beginning at TCP."""
    of = cells_of(panel)
    return [
        Series(
            name, kinds.look_of(name, "" if name == TCP else "-"),
            [point for (each, _), points in of.items() if each in {name, TCP} for point in points],
        )
        for name in sorted({name for name, _ in of}, key=transports.rank)
    ]  # fmt: skip


def _costs(panel: Panel) -> list[Row]:
    """Draw TCP over the first marks of the other curves."""
    points = [point for of in cells_of(panel).values() for point in of]
    real = {words: of for words, of in _REAL.items() if any(of(point) is not None for point in points)}
    always = list(_ALWAYS.items())
    shown = [of for of in (always[:2], always[2:], list(real.items())) if of and points]
    series = sorted(_by_algorithm(panel), key=lambda one: one.name == TCP)
    x = Axis(f"{axis_labels.SUBFLOWS} (1: TCP)", at_values=True)

    def curves(words: str, of: OfPoint, x: Axis) -> Curves:
        top = 1.1 * max((v for point in points if (v := of(point))), default=1.0)
        y = Axis(words, low=0, high=top)
        return Curves(mean(of), lambda point: point.subflows, x, y, size=6, series=series)

    return [
        Row(1.35, [curves(*one, x if row is shown[-1] else Axis(at_values=True)) for one in row])
        for row in shown
    ]


loss_and_cost = Picture(
    groups=alike("transport.cc"), series=_by_algorithm, rows=_costs, key={"size": 6, "width": 1.4},
    about=lambda panel: style.subtitle(panel, "what subflows cost, by congestion control"),
    settings=lambda panel: style.parameters(
        panel, congestion=", ".join(transports.title(one.name) for one in _by_algorithm(panel))
    ),
    notes=lambda panel: [style.intervals(max(map(len, cells_of(panel).values())))],
    numbers=cost_numbers, finding="Retransmitted per 100 delivered: {{ pct | listed('{:.2g}') }}",
)  # fmt: skip
