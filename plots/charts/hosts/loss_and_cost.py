"""Losses, retransmissions, fairness and CPU against the number of subflows, by congestion control."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis import robustness
from analysis.quantities import CPU_BUSY_PCT, CPU_S_PER_GB, JAIN
from model import transports
from model.congestion import BASELINE, COUPLED_DEFAULT
from model.result import Status
from model.transports import TCP
from plots.data import Inputs, Panel, Point, panels
from plots.shared import axis_labels, saving, style
from plots.shared.fairness import jain
from plots.shared.intervals import interval_pct
from plots.shared.sheet import Caption, Sheet, Text

CHART = "loss_and_cost"
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


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart per setting, its congestion controls together; see `registry.Chart.draw`."""
    of = panels(inputs.points, inputs.expected, ("transport.cc",))
    return saving.draw_each(CHART, [(panel.spec, panel) for panel in of], inputs.out, _chart)


def cells_of(panel: Panel) -> Cells:
    """Return good points by algorithm and subflows, one per seed; suspect ones where none is good."""
    found: dict[tuple[str, int], dict[int, Point]] = {}
    usable = [p for p in panel.points if not p.failed and p.flows]
    for point in sorted(usable, key=lambda p: (p.status is not Status.OK, p.seed)):
        found.setdefault((point.algorithm, point.subflows), {}).setdefault(point.seed, point)
    return {key: _alike(list(of_seed.values())) for key, of_seed in sorted(found.items())}


def _alike(points: Sequence[Point]) -> Sequence[Point]:
    return [point for point in points if point.status is points[0].status]


def finding(cells: Cells) -> str:
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


def _chart(panel: Panel) -> Figure | None:
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
    return sheet.finish(Text(finding(cells), subtitle, _caption(panel, cells)), list(map(_key, names)))


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


def _caption(panel: Panel, cells: Cells) -> Caption:
    shown = [point for of in cells.values() for point in of]
    names = ", ".join(map(transports.title, sorted({name for name, _ in cells}, key=transports.rank)))
    return Caption(
        style.parameters(panel, congestion=names),
        [*style.doubts(shown), style.intervals(max(map(len, cells.values())))],
    )
