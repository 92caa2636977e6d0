"""SIP calls through an IMS: published steps, knees by load, a controller over time, and policies."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from analysis.quantities import (
    CALLS_COMPLETED_PER_S,
    CALLS_LOST_PCT,
    CALLS_OFFERED_PER_S,
    INSTANCE_S,
    PCSCF_FILL_PCT,
    PCSCF_KNEE_PER_S,
    SCSCF_FILL_PCT,
    SCSCF_KNEE_PER_S,
    SETUP_MS_P50,
    SETUP_MS_P95,
    Quantity,
)
from engines.registry import LINUX_HOSTS
from harness.results.point_results import PointResult
from model.result import Table
from model.spec import RunSpec
from plots.data import Inputs, Panel, good
from plots.kinds.axis import Axis
from plots.kinds.curves import Curves, mean
from plots.kinds.lines import Level, Line, Lines
from plots.kinds.rows import Rows
from plots.picture import Groups, Overlay, Page, Picture, Row, Series
from plots.shared import axis_labels, kinds, style
from plots.shared.kinds import Floats, Look
from workloads.sip import CONSTANT, MATRIX, POISSON, SipSettings, settings

P, S = Look("P-CSCF", "#0072B2", ""), Look("S-CSCF", "#D55E00", "")
CALLS_COLOUR, OFFERED_COLOUR = "#009E73", "#777777"
_ARRIVALS = {POISSON: "Poisson", CONSTANT: "constant"}


def ims_of(point: PointResult) -> SipSettings:
    return settings(point.spec.workload.params)


def is_real(point: PointResult) -> bool:
    return point.spec.engine in LINUX_HOSTS


def _page(
    panel: Panel, rows: Sequence[Row], about: str, numbers: Mapping[str, object], keys: Sequence[Artist] = (),
    *notes: str,
) -> Page:  # fmt: skip
    """Return a page whose caption says the settings and what the means are over."""
    found, seeds = ims_of(panel.points[0]), len(panel.seeds)
    of_each = kinds.grouped(panel.points, lambda point: "real" if is_real(point) else "simulated")
    each = {name: len({point.seed for point in of}) for name, of in of_each.items()}
    counts = f"Means over {seeds} seeds." if seeds > 1 else "One seed."
    if len(set(each.values())) > 1:
        counts = f"Seeds: {', '.join(f'{count} {engine}' for engine, count in each.items())}."
    return Page(
        rows=rows, about=about, numbers=numbers, points=panel.points, keys=keys, notes=[*notes, counts],
        settings=[
            *style.unlike(panel.points), " and ".join(each),
            f"{found.message_us / found.share:g} us per message at a P-CSCF",
            f"look-up {found.lookup_us / found.share / 1000:g} ms, {found.workers} workers",
            f"{panel.spec.seconds:g} s, {_ARRIVALS[found.arrivals]} arrivals",
        ],
    )  # fmt: skip


def _load_words(of: SipSettings) -> str:
    """Return the load over time, in published units."""
    return f"load {of.load.replace('+', ', ')} calls/s" + ("" if of.share == 1 else f" x {of.share:g}")


def _scale_words(of: SipSettings) -> str:
    """Return `; rates are 50 % of the published ones`, or nothing at the published rates."""
    return "" if of.share == 1 else f"; rates are {100 * of.share:g} % of the published ones"


def named(spec: RunSpec) -> str:
    """Return the first part of a chart's file name: load, instances, scale, and policy."""
    found = settings(spec.workload.params)
    parts = [
        f"{found.scale}pct",
        spec.engine,
        "" if found.load == CONSTANT else found.load.replace("+", "_"),
        "" if found.policy == "static" else f"{found.policy}{found.react_s}",
        f"p{found.pcscf}s{found.scscf}",
    ]
    return "-".join(filter(None, parts))


def _per(
    key: Callable[[PointResult], object], where: Callable[[Sequence[PointResult]], bool] = bool
) -> Groups:
    """Return the points about calls that have `key` in common."""

    def groups(inputs: Inputs) -> Iterator[tuple[RunSpec, Panel]]:
        usable = (p for p in inputs.points if p.spec.workload.matrix == MATRIX and not p.failed)
        for of in filter(where, kinds.grouped(usable, key).values()):
            yield of[0].spec, Panel(of[0].spec, (1,), tuple(of))

    return groups


def of_scale(point: PointResult) -> object:
    """Return what points of one chart have in common: scale, arrivals, times, network, and seconds."""
    found = ims_of(point)
    times = found.message_us, found.scscf_us, found.lookup_us, found.workers
    return found.scale, found.arrivals, times, point.spec.topology.k, point.spec.seconds


def recorded(points: Sequence[PointResult], quantity: Quantity) -> list[float]:
    """Return a recorded quantity of each point that has it."""
    return [value for point in points if (value := point.metric(quantity.name)) is not None]


def _mean(points: Sequence[PointResult], quantity: Quantity) -> float | None:
    found = kinds.mean_of(recorded(points, quantity))
    return found.value if found else None


_BAR = 0.36
LOST_PCT = 5
Steps = Mapping[str, Sequence[PointResult]]


def steps(points: Sequence[PointResult]) -> Steps:
    """Return the label and the points of each step: by calls, then by instances."""

    def step(point: PointResult) -> tuple[int, int, int]:
        ims = ims_of(point)
        return ims.calls, ims.pcscf + ims.scscf, ims.pcscf

    found = kinds.grouped(points, step)
    return {f"{key[0]}\nP{key[2]} S{key[1] - key[2]}": of for key, of in sorted(found.items())}


@dataclass(frozen=True)
class _OfSteps:
    """What `one` draws of each step and engine, simulated ones before real ones."""

    steps: Steps
    one: Callable[[Axes, float, Sequence[PointResult]], object]
    y: Axis
    named: bool = False

    def draw(self, axes: Axes, all_series: Sequence[Series], first: bool) -> None:
        del all_series, first
        engines = sorted({is_real(point) for points in self.steps.values() for point in points})
        for place, points in enumerate(self.steps.values()):
            for number, real in enumerate(engines):
                if ours := good([point for point in points if is_real(point) is real]):
                    self.one(axes, place + (number - (len(engines) - 1) / 2) * 1.1 * _BAR, ours)
        axes.set_xticks(range(len(self.steps)), self.steps if self.named else [""] * len(self.steps))
        axes.set_xlim(-0.6, len(self.steps) - 0.4)
        self.y.apply(axes, "y")


def _bars_of(points: Sequence[PointResult]) -> dict[str, Any]:
    hatch = style.HATCH if all(point.suspect for point in points) else ""
    return {"alpha": 0.55 if is_real(points[0]) else 1.0, "hatch": hatch}


def _rates(axes: Axes, x: float, points: Sequence[PointResult]) -> None:
    axes.bar(x, _mean(points, CALLS_OFFERED_PER_S) or 0, _BAR, fill=False, ec=OFFERED_COLOUR, lw=1)
    each, look = recorded(points, CALLS_COMPLETED_PER_S), _bars_of(points)
    axes.bar(
        x, _mean(points, CALLS_COMPLETED_PER_S) or 0, _BAR, color=CALLS_COLOUR, edgecolor="white", **look
    )
    if len(each) > 1:
        axes.plot([x] * len(each), each, ".", color=style.INK, ms=3, zorder=6)


def _setups(axes: Axes, x: float, points: Sequence[PointResult]) -> None:
    median, p95 = _mean(points, SETUP_MS_P50), _mean(points, SETUP_MS_P95)
    if median is not None and p95 is not None:
        axes.plot([x, x], [median, p95], color=style.FAINT, lw=1.2)
        face = "white" if all(point.suspect for point in points) else CALLS_COLOUR
        axes.plot(
            x, median, "s" if is_real(points[0]) else "o", color=CALLS_COLOUR, ms=5, markerfacecolor=face
        )
        axes.plot(x, p95, "_", color=style.FAINT, ms=8)


def _fills(axes: Axes, x: float, points: Sequence[PointResult]) -> None:
    for fill, role, side in ((PCSCF_FILL_PCT, P, -_BAR / 4), (SCSCF_FILL_PCT, S, _BAR / 4)):
        axes.bar(x + side, _mean(points, fill) or 0, _BAR / 2, color=role.colour, **_bars_of(points))


def _ladder(panel: Panel, _: Inputs) -> Page:
    of = steps(panel.points)
    keys: list[Artist] = [
        Patch(fill=False, ec=OFFERED_COLOUR, label="offered"),
        Patch(color=CALLS_COLOUR, label="completed"),
        *(Patch(color=role.colour, label=role.label) for role in (P, S)),
        Line2D([], [], color=style.FAINT, marker="_", label="median to 95th percentile"),
    ]
    if len(panel.seeds) > 1:
        keys.append(Look("one run", style.INK, ".", "").key(size=4))
    if len({is_real(point) for point in panel.points}) > 1:
        keys.append(Patch(color=CALLS_COLOUR, alpha=0.55, label="right: real"))
    lost = [statistics.fmean(recorded(good(points), CALLS_LOST_PCT)) for points in of.values()]
    network = panel.spec.topology.kind.replace("_", " ")
    return _page(
        panel,
        [
            Row(1.9, [_OfSteps(of, _rates, Axis(axis_labels.CALLS))]),
            Row(1.6, [_OfSteps(of, _setups, Axis("setup time (ms)", log=True))]),
            Row(1.5, [_OfSteps(of, _fills, Axis("buffer (% full)", low=0, high=105), named=True)],
                "calls/s offered, instances"),
        ],
        f"{network}, {len(of)} steps from idle{_scale_words(ims_of(panel.points[0]))}",
        {"steps": len(of), "losing": sum(pct >= LOST_PCT for pct in lost), "pct": LOST_PCT}, keys,
    )  # fmt: skip


ladder = Picture(
    groups=_per(of_scale), page=_ladder, named=named,
    finding="{% if losing %}{{ losing }} of {{ steps }} steps lose {{ pct }} % of calls or more"
    "{% else %}All steps are carried{% endif %}",
)  # fmt: skip
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00")


def curves(panel: Panel) -> list[Series]:
    """Return a series for each number of instances."""
    found = kinds.grouped(panel.points, lambda point: (ims_of(point).pcscf, ims_of(point).scscf))
    return [
        Series(f"P{pcscf} S{scscf}", Look(f"P{pcscf} S{scscf}", _COLOURS[n % len(_COLOURS)]), of)
        for n, ((pcscf, scscf), of) in enumerate(sorted(found.items()))
    ]


def knee_of(point: PointResult) -> float:
    """Return the load at which the first function is full, computed from service times."""
    of_each = recorded([point], PCSCF_KNEE_PER_S), recorded([point], SCSCF_KNEE_PER_S)
    return min(knee for knees in of_each for knee in knees)


def knee_numbers(of: Sequence[Series]) -> dict[str, object]:
    """Return the curve with the smallest share of its best left at its highest load."""
    left = []
    for one in of:
        at = sorted(kinds.grouped(one.points, lambda point: ims_of(point).calls).items())
        rates = [statistics.fmean(recorded(points, CALLS_COMPLETED_PER_S)) for _, points in at]
        left.append((100 * rates[-1] / max(rates) if max(rates) else 100.0, one.name, at[-1][0]))
    return dict(zip(("pct", "instances", "load"), min(left), strict=True))


def _knee(panel: Panel, inputs: Inputs) -> Page:
    of, found, most = curves(panel), ims_of(panel.points[0]), max(ims_of(p).calls for p in panel.points)
    marks = [Level(load, style.PUBLISHED_DASH, "black", 0.9, vertical=True) for load in inputs.marks]
    x = Axis(low=0, high=most * 1.03)
    all_completed = Look("all completed", style.FAINT, "", ":")
    knees = [
        Line([knee_of(one.points[0])], [0], Look("", one.look.colour, "v", ""), size=6, share=True)
        for one in of
    ]

    def plot(quantity: Quantity, y: Axis, *lines: Line) -> Overlay:
        number = mean(partial(PointResult.metric, name=quantity.name))
        each = Curves(number, lambda point: ims_of(point).calls, size=3.5, series=of)
        return Overlay([each, Lines(lines, x, y, levels=marks)])

    diagonal = Line([0, most], [0, most * found.share], all_completed, 1)
    rates = plot(CALLS_COMPLETED_PER_S, Axis(CALLS_COMPLETED_PER_S.axis, low=0), diagonal, *knees)
    setups = plot(SETUP_MS_P50, Axis(SETUP_MS_P50.axis, log=True))
    about = f"P-CSCFs and S-CSCFs, {found.registrations} registrations per second{_scale_words(found)}"
    return _page(
        panel, [Row(2.3, [rates]), Row(2.0, [setups], "offered (calls/s at the published scale)")], about,
        knee_numbers(of),
        [
            *(one.look.key(size=4) for one in of),
            *([kinds.dashed_key("published loads")] if inputs.marks else []),
            all_completed.key(width=1), Look("computed knee", style.INK, "v", "").key(),
        ],
    )  # fmt: skip


knee = Picture(
    groups=_per(lambda point: (of_scale(point), point.spec.engine)), page=_knee, named=named,
    finding="{{ instances }} completes {{ '%.0f' % pct }} % of its best at {{ load }} calls/s",
)  # fmt: skip


def _of_role(table: Table, letter: str, column: str) -> tuple[Floats, npt.NDArray[np.int64], Floats]:
    """Return each time, and for every row of the function `p` or `s` its place among the times and its
    value."""
    ours = np.char.startswith(table["name"].astype(str), letter)
    times, where = np.unique(table["t_s"][ours].astype(float), return_inverse=True)
    return times, where.astype(np.int64), table[column][ours].astype(np.float64)


def _waiting(table: Table, letter: str) -> tuple[Floats, Floats]:
    """Return times, and the largest number of messages that wait at an instance of the function."""
    times, where, waiting = _of_role(table, letter, "waiting")
    most = np.zeros(len(times))
    np.maximum.at(most, where, waiting)
    return times, most


def _active(table: Table, letter: str) -> tuple[Floats, Floats]:
    """Return times, and how many instances of the function take new calls at each."""
    times, where, counted = _of_role(table, letter, "active")
    return times, np.bincount(where, counted, len(times)).astype(np.float64)


def _controlled(panel: Panel, _: Inputs) -> Page | None:
    """Draw the first seed of each setting."""
    point, ims = min(good(panel.points), key=lambda one: one.seed), ims_of(panel.points[0])
    of, parts = point.read_table("calls"), point.read_table("components")
    if of is None or parts is None or not len(of) or not len(parts):
        return None
    dash = style.SUSPECT_DASH if point.suspect else "-"
    offered, completed, p, s = (
        dataclasses.replace(look, dash=dash)
        for look in (Look("offered", OFFERED_COLOUR, ""), Look("completed, setup", CALLS_COLOUR, ""), P, S)
    )
    active = [(_active(parts, letter), look) for letter, look in (("p", p), ("s", s))]
    waiting = [(_waiting(parts, letter), look) for letter, look in (("p", p), ("s", s))]
    rates = [Line(of["t_s"], of[name], look, width, step="pre")
             for name, look, width in (("offered", offered, 1), ("completed", completed, 1.3))]  # fmt: skip
    most = max(float(counts.max()) for (_, counts), _ in active)
    setups = [Line(of["t_s"], of["setup_ms"].astype(float), completed, 1.2)]
    return _page(
        panel,
        [
            Row(1.6, [Lines(rates, y=Axis(axis_labels.CALLS, low=0))]),
            Row(0.9, [Lines([Line(*values, look, 1.5, step="pre") for values, look in active],
                            y=Axis("instances", most_ticks=4, low=0, high=most + 0.6))]),
            Row(1.2, [Lines([Line(*values, look, 1.2) for values, look in waiting],
                            y=Axis("messages waiting"))]),
            Row(1.3, [Lines(setups, y=Axis(SETUP_MS_P50.axis, log=True))], axis_labels.SECONDS),
        ],
        f"from P{ims.pcscf} S{ims.scscf}, {_load_words(ims)}",
        {
            "policy": ims.policy, "react_s": ims.react_s if ims.policy != "static" else 1,
            "lost_pct": np.mean(recorded(good(panel.points), CALLS_LOST_PCT)),
        },
        [dataclasses.replace(look, dash="-").key() for look in (offered, completed, p, s)],
        *([f"Curves of seed {point.seed}."] if len(panel.seeds) > 1 else []),
    )  # fmt: skip


controlled = Picture(
    groups=_per(lambda point: point.spec.key(ignoring=("seed",))), page=_controlled, named=named,
    finding="Policy {{ policy }}{% if react_s > 1 %} after {{ react_s }} s{% endif %}: "
    "{{ '%.1f' % lost_pct }} % of calls are lost",
)  # fmt: skip


def policy_of(point: PointResult) -> str:
    """Return the name of the point's policy; of a static one with its instances."""
    ims = ims_of(point)
    late = f", after {ims.react_s} s" if ims.react_s > 1 else ""
    return f"static, P{ims.pcscf} S{ims.scscf}" if ims.policy == "static" else ims.policy + late


def _policies(panel: Panel, _: Inputs) -> Page:
    lost = mean(partial(PointResult.metric, name=CALLS_LOST_PCT.name))
    of = {
        name: (found.value if (found := lost(points)) else 0.0, points)
        for name, points in kinds.grouped(panel.points, policy_of).items()
    }
    order = sorted(of, key=lambda name: of[name][0])
    bars = [
        Rows(
            {name: of[name][1] for name in order}, mean(partial(PointResult.metric, name=quantity.name)),
            Axis(axis, low=0, room=1.35), words=words, bars=True, look_of=lambda _: Look("", CALLS_COLOUR),
        )
        for quantity, axis, words in (
            (CALLS_LOST_PCT, CALLS_LOST_PCT.short_axis, "{:.1f} %"), (INSTANCE_S, INSTANCE_S.axis, "{:.0f}")
        )
    ]  # fmt: skip
    return _page(
        panel, [Row(0.32 * len(order) + 0.4, bars)], _load_words(ims_of(panel.points[0])),
        {"least": of[order[0]][0], "most": of[order[-1]][0]},
    )  # fmt: skip


policies = Picture(
    groups=_per(
        lambda point: (of_scale(point), ims_of(point).load, point.spec.engine),
        lambda points: len(set(map(policy_of, points))) > 1,
    ),
    page=_policies, named=named,
    finding="By policy, {{ '%.1f' % least }} to {{ '%.1f' % most }} % of calls are lost",
)  # fmt: skip
