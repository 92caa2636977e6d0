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
from typing import Any

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
from plots.kinds import ranks
from plots.kinds.axis import Axis
from plots.kinds.bars import sample
from plots.kinds.curves import Curves, mean
from plots.kinds.ranks import Ranks
from plots.kinds.samples import Repetitions
from plots.picture import Page, Picture, Row, Series, alike
from plots.shared import axis_labels, kinds, style
from plots.shared.kinds import Look

_MARKERS = 8
_TITLED = (COUPLED_DEFAULT, "reno", SCATTER, TCP)
"""The algorithms in the title, where they were measured."""
OfPoint = Callable[[PointResult], float | None]


def comparisons(points: Iterable[PointResult]) -> list[tuple[RunSpec, Panel]]:
    """Return the panels with the settings that name their files: TCP and one number of MPTCP subflows each,
    with plain TCP once per seed, although it was run beside each coupled algorithm."""
    found = []
    for panel in _panels(points):
        for count in sorted({point.subflows for point in panel.points} - {1}) or [1]:
            once: dict[tuple[str, int], PointResult] = {}
            for point in sorted(panel.points, key=lambda p: (p.status is not Status.OK, p.seed)):
                if point.subflows in {1, count}:
                    once.setdefault((point.algorithm, point.seed), point)
            made = dataclasses.replace(panel, subflows=(count,), points=tuple(once.values()))
            found.append((panel.spec, made))
    return found


def by_algorithm(panel: Panel) -> dict[str, list[PointResult]]:
    """Return the points of each algorithm: in the order of `COMPARED`, others after them."""
    found = kinds.grouped(panel.points, lambda point: point.algorithm)
    order = [*COMPARED, *sorted(found.keys() - {*COMPARED}, key=transports.rank)]
    return {name: found[name] for name in order if name in found}


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


def retransmitted_pct(point: PointResult) -> float | None:
    """Return retransmitted segments per 100 full ones delivered; None without flows or without data."""
    return robustness.retransmitted_pct(point.under_test)


def _by_control(panel: Panel, inputs: Inputs) -> Page:
    cells = {name: Cell.of(points) for name, points in by_algorithm(panel).items()}
    titles = {name: transports.title(name) for name in cells}
    known = {name: cell.mean_pct for name, cell in cells.items() if cell.mean_pct is not None}
    chosen = [name for name in _TITLED if name in known] or list(known)[:3]
    series = [
        Series(
            name, dataclasses.replace(kinds.look_of(name), width=2.0 if name == TCP else 1.4)
            .doubted(not cell.ok), cell.ok or cell.suspect,
        )
        for name, cell in cells.items() if any(point.flows_pct for point in cell.ok or cell.suspect)
    ]  # fmt: skip
    levels, several, optimum = _levels(panel, inputs), len(panel.seeds) > 1, panel.optimum_pct

    def rows(value: OfPoint, shown: str, **more: Any) -> Repetitions:
        of = {
            titles[name]: [sample(Look("", transports.look(name).colour), [*cell.ok, *cell.suspect], value)]
            for name, cell in cells.items()
        }
        return Repetitions(of, shown=[shown], bars=not several, at_edge=True, **more)

    slowest = {titles[one.name]: min(pct for p in one.points for pct in p.flows_pct) for one in series}
    ticks = [tick for tick in range(0, 1000, 25) if tick <= max([optimum, *known.values()])]
    goodput = rows(
        lambda point: point.mean_pct, "{:.1f}", spread=True, line=optimum, slowest=slowest,
        x=Axis(GOODPUT_PCT_MEAN.short_axis, low=0, room=1.04, ticks=ticks),
        levels={titles[name]: [level.value for level in of] for name, of in levels.items()},
        gaps={titles[name]: cell.gap for name, cell in cells.items()},
    )  # fmt: skip
    x = Axis("retransmitted per 100", low=0, room=1.08, fit=lambda axes: axes.locator_params("x", nbins=4))
    retransmitted = rows(retransmitted_pct, "{:.2g}", x=x)
    each = [(name, level) for name, of in levels.items() for level in of]
    bounds = [f"{titles[name]} {style.bound(level)}" for name, level in each]
    lost = [f"{titles[name]} {len(cell.lost)}" for name, cell in cells.items() if cell.lost and not cell.gap]
    absent, (count,) = ", ".join(transports.title(n) for n in COMPARED if n not in cells), panel.subflows
    doubtful = any(cell.suspect for cell in cells.values())
    goodputs = Ranks(ranks.flows_pct, ranks.percent(), optimum=optimum, series=series, marks=_MARKERS)
    return Page(
        rows=[
            Row(0.27 * len(cells), [goodput, retransmitted]),
            Row(2.5, [goodputs], axis_labels.FLOWS, axis_labels.relative_goodput(panel)),
        ],
        about=style.subtitle(
            panel, f"TCP, and MPTCP with {count} subflows by congestion control" if count > 1 else "TCP"
        ),
        numbers={
            "means": {titles[name]: known[name] for name in chosen},
            "unit": "of optimal" if math.isclose(optimum, 100) else "of one flow alone",
        },
        points=panel.points, settings=style.parameters(panel, congestion=f"TCP, PacketScatter: {BASELINE}"),
        notes=[
            *ranks.note(series, ranks.flows_pct),
            f"Published means: {', '.join(bounds)}." if bounds else "",
            f"Seeds without a number: {', '.join(lost)}." if lost else "",
            style.definition(panel),
            "Dots: seeds; line: mean; whisker: 95 % interval." if several else "",
        ],
        keys=[one.look.key(size=5.5) for one in series],
        more_keys=[
            Look("slowest flow", style.INK, "d", "").key(hollow=True),
            *style.published_key([level for _, level in each], panel),
            *kinds.doubt_key(doubtful, hatched=not several),
        ],
        gaps=f"not run: {absent}" if absent else "",
    )  # fmt: skip


by_congestion_control = Picture(
    groups=lambda inputs: comparisons(inputs.points), page=_by_control,
    suffix=lambda panel: f"-{panel.subflows[0]}subflows",
    finding="{% for name, pct in means.items() %}{{ ', ' if not loop.first }}{{ name }} {{ '%.0f' % pct }} %"
    "{{ ' ' ~ unit if loop.first }}{% else %}No finding, no point is good{% endfor %}",
)  # fmt: skip


def _levels(panel: Panel, inputs: Inputs) -> dict[str, list[Published]]:
    """Return published means by their algorithm; the paper's MPTCP is coupled."""
    (count,), run = panel.subflows, by_algorithm(panel)
    of, found = {1: TCP, count: COUPLED_DEFAULT}, dict[str, list[Published]]()
    for level in inputs.levels:
        about = level.metric.quantity == GOODPUT_PCT_MEAN and level.subflows in of
        if (
            about
            and inputs.is_beside(level, panel)
            and (name := level.algorithm or of[level.subflows]) in run
        ):
            found.setdefault(name, []).append(level)
    return found


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


def _of_costs(panel: Panel) -> list[Series]:
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
    series = sorted(_of_costs(panel), key=lambda one: one.name == TCP)
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
    groups=alike("transport.cc"), series=_of_costs, rows=_costs, key={"size": 6, "width": 1.4},
    about=lambda panel: style.subtitle(panel, "what subflows cost, by congestion control"),
    settings=lambda panel: style.parameters(
        panel, congestion=", ".join(transports.title(one.name) for one in _of_costs(panel))
    ),
    notes=lambda panel: [style.intervals(max(map(len, cells_of(panel).values())))],
    numbers=cost_numbers, finding="Retransmitted per 100 delivered: {{ pct | listed('{:.2g}') }}",
)  # fmt: skip
