"""SIP calls through an IMS: published steps, knees by load, a controller over time, and policies."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

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
from plots.data import Inputs, good
from plots.shared import axis_labels, kinds, saving, style
from plots.shared.kinds import Floats, Look
from plots.shared.sheet import Sheet
from workloads.sip import CONSTANT, MATRIX, POISSON, SipSettings, settings

P, S = Look("P-CSCF", "#0072B2", ""), Look("S-CSCF", "#D55E00", "")
CALLS_COLOUR, OFFERED_COLOUR = "#009E73", "#777777"
_ARRIVALS = {POISSON: "Poisson", CONSTANT: "constant"}


@dataclass(frozen=True)
class Group:
    """Points that a chart shows together; `share` is the factor of their rates."""

    points: tuple[PointResult, ...]

    @property
    def first(self) -> SipSettings:
        return ims_of(self.points[0])

    @property
    def share(self) -> float:
        return self.first.share

    @property
    def seeds(self) -> int:
        return len({point.seed for point in self.points})

    @property
    def load_words(self) -> str:
        """The load over time, in published units."""
        load = self.first.load.replace("+", ", ")
        return f"load {load} calls/s" + ("" if self.share == 1 else f" x {self.share:g}")

    @property
    def scale_words(self) -> str:
        """`; rates are 50 % of the published ones`, or nothing at the published rates."""
        return "" if self.share == 1 else f"; rates are {100 * self.share:g} % of the published ones"

    def finish(
        self, sheet: Sheet, title: str, subtitle: str, keys: Sequence[Artist] = (), *notes: str
    ) -> Figure:
        """Lay a chart out; its caption says the settings and what the means are over."""
        found, engines = self.first, kinds.grouped(self.points, is_real)
        seeds = {_engine(real): len({point.seed for point in of}) for real, of in engines.items()}
        counts = f"Means over {self.seeds} seeds." if self.seeds > 1 else "One seed."
        if len(set(seeds.values())) > 1:
            counts = f"Seeds: {', '.join(f'{count} {engine}' for engine, count in seeds.items())}."
        return sheet.finish(
            title,
            subtitle,
            [
                *style.unlike(self.points),
                " and ".join(seeds),
                f"{found.message_us / found.share:g} us per message at a P-CSCF",
                f"look-up {found.lookup_us / found.share / 1000:g} ms, {found.workers} workers",
                f"{self.points[0].spec.seconds:g} s, {_ARRIVALS[found.arrivals]} arrivals",
            ],
            [*style.doubts(self.points), *notes, counts],
            keys,
        )


def ims_of(point: PointResult) -> SipSettings:
    return settings(point.spec.workload.params)


def is_real(point: PointResult) -> bool:
    return point.spec.engine in LINUX_HOSTS


def _engine(real: bool) -> str:
    return "real" if real else "simulated"


def grouped(points: Iterable[PointResult], key: Callable[[PointResult], object]) -> list[Group]:
    """Group usable points about calls by `key`, in the order of first occurrence."""
    usable = (point for point in points if point.spec.workload.matrix == MATRIX and not point.failed)
    return [Group(tuple(each)) for each in kinds.grouped(usable, key).values()]


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
    key: Callable[[PointResult], object], where: Callable[[Group], bool] = lambda _: True
) -> Callable[[Callable[[Group, Inputs], Figure | None]], saving.Drawing]:
    """Return a decorator of charts of groups of points that have `key` in common."""

    def groups(inputs: Inputs) -> list[tuple[RunSpec, Group]]:
        return [(group.points[0].spec, group) for group in grouped(inputs.points, key) if where(group)]

    return saving.per_group(groups, named)


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


def steps(group: Group) -> list[tuple[str, list[PointResult]]]:
    """Return the label and the points of each step: by calls, then by instances."""

    def step(point: PointResult) -> tuple[int, int, int]:
        ims = ims_of(point)
        return ims.calls, ims.pcscf + ims.scscf, ims.pcscf

    found = kinds.grouped(group.points, step)
    return [(f"{key[0]}\nP{key[2]} S{key[1] - key[2]}", points) for key, points in sorted(found.items())]


def ladder_finding(group: Group) -> str:
    """Return the title: at how many of the steps calls are lost, beyond those that have not ended yet."""
    lost = [label for label, points in steps(group) if _lost_pct(points) >= LOST_PCT]
    if not lost:
        return "All steps are carried"
    return f"{len(lost)} of {len(steps(group))} steps lose {LOST_PCT} % of calls or more"


def _lost_pct(points: Sequence[PointResult]) -> float:
    return statistics.fmean(recorded(good(points), CALLS_LOST_PCT))


@_per(of_scale)
def ladder(group: Group, _: Inputs) -> Figure | None:
    of = steps(group)
    sheet = Sheet((1.9, 1), (1.6, 1), (1.5, 1))
    rate, setup, queue = kinds.every(sheet.axes)
    engines = sorted({is_real(point) for point in group.points})
    for place, (_label, points) in enumerate(of):
        for number, real in enumerate(engines):
            ours = good([point for point in points if is_real(point) is real])
            if ours:
                _step(rate, setup, queue, place + (number - (len(engines) - 1) / 2) * 2.2 * _BAR / 2, ours)
    for axes in (rate, setup, queue):
        axes.set_xticks(range(len(of)), [label if axes is queue else "" for label, _points in of])
        axes.set_xlim(-0.6, len(of) - 0.4)
    rate.set_ylabel(axis_labels.CALLS)
    setup.set_ylabel("setup time (ms)")
    style.plain_log(setup.yaxis)
    queue.set_ylabel("buffer (% full)")
    queue.set_ylim(0, 105)
    queue.set_xlabel("calls/s offered, instances")
    keys: list[Artist] = [
        Patch(fill=False, ec=OFFERED_COLOUR, label="offered"),
        Patch(color=CALLS_COLOUR, label="completed"),
        *(Patch(color=role.colour, label=role.label) for role in (P, S)),
        Line2D([], [], color=style.FAINT, marker="_", label="median to 95th percentile"),
    ]
    if group.seeds > 1:
        keys.append(Line2D([], [], color=style.INK, marker=".", ls="", ms=4, label="one run"))
    if len(engines) > 1:
        keys.append(Patch(color=CALLS_COLOUR, alpha=0.55, label="right: real"))
    network = group.points[0].spec.topology.kind.replace("_", " ")
    subtitle = f"{network}, {len(of)} steps from idle{group.scale_words}"
    return group.finish(sheet, ladder_finding(group), subtitle, keys)


def _step(rate: Axes, setup: Axes, queue: Axes, x: float, points: Sequence[PointResult]) -> None:
    """Draw one step of one engine; hatched where it is suspect, with the seeds as dots."""
    doubt = all(point.suspect for point in points)
    look: dict[str, Any] = {
        "alpha": 0.55 if is_real(points[0]) else 1.0,
        "hatch": style.HATCH if doubt else "",
    }
    rate.bar(x, _mean(points, CALLS_OFFERED_PER_S) or 0, _BAR, fill=False, ec=OFFERED_COLOUR, lw=1)
    completed = _mean(points, CALLS_COMPLETED_PER_S) or 0
    rate.bar(x, completed, _BAR, color=CALLS_COLOUR, edgecolor="white", **look)
    each = recorded(points, CALLS_COMPLETED_PER_S)
    if len(each) > 1:
        rate.plot([x] * len(each), each, ".", color=style.INK, ms=3, zorder=6)
    median, p95 = _mean(points, SETUP_MS_P50), _mean(points, SETUP_MS_P95)
    if median is not None and p95 is not None:
        setup.plot([x, x], [median, p95], color=style.FAINT, lw=1.2)
        marker, face = "s" if is_real(points[0]) else "o", "white" if doubt else CALLS_COLOUR
        setup.plot(x, median, marker, color=CALLS_COLOUR, ms=5, markerfacecolor=face)
        setup.plot(x, p95, "_", color=style.FAINT, ms=8)
    for fill, role, side in ((PCSCF_FILL_PCT, P, -_BAR / 4), (SCSCF_FILL_PCT, S, _BAR / 4)):
        queue.bar(x + side, _mean(points, fill) or 0, _BAR / 2, color=role.colour, **look)


_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00")
Curve = tuple[int, int]
"""Instances of P-CSCF and of S-CSCF."""


def curves(group: Group) -> dict[Curve, dict[int, list[PointResult]]]:
    """Return the points of each number of instances, by calls per second."""
    found: dict[Curve, dict[int, list[PointResult]]] = {}
    for point in group.points:
        ims = ims_of(point)
        found.setdefault((ims.pcscf, ims.scscf), {}).setdefault(ims.calls, []).append(point)
    return {curve: dict(sorted(found[curve].items())) for curve in sorted(found)}


def knee_of(point: PointResult) -> float:
    """Return the load at which the first function is full, computed from service times."""
    of_each = recorded([point], PCSCF_KNEE_PER_S), recorded([point], SCSCF_KNEE_PER_S)
    return min(knee for knees in of_each for knee in knees)


def knee_finding(group: Group) -> str:
    """Return the title: the curve with the smallest share of its best left at its highest load."""
    left = []
    for (pcscf, scscf), at in curves(group).items():
        rates = [statistics.fmean(recorded(points, CALLS_COMPLETED_PER_S)) for points in at.values()]
        share = rates[-1] / max(rates) if max(rates) else 1.0
        left.append(
            (share, f"P{pcscf} S{scscf} completes {100 * share:.0f} % of its best at {[*at][-1]} calls/s")
        )
    return min(left)[1]


@_per(lambda point: (of_scale(point), point.spec.engine))
def knee(group: Group, inputs: Inputs) -> Figure | None:
    sheet = Sheet((2.3, 1), (2.0, 1))
    rate, setup = kinds.every(sheet.axes)
    keys: list[Artist] = []
    for ((pcscf, scscf), at), colour in zip(curves(group).items(), _COLOURS * 3, strict=False):
        look = Look(f"P{pcscf} S{scscf}", colour)
        for axes, quantity in ((rate, CALLS_COMPLETED_PER_S), (setup, SETUP_MS_P50)):
            read = partial(PointResult.metric, name=quantity.name)
            means = {load: kinds.mean_over(of, read) for load, of in at.items()}
            kinds.curve(axes, means, look, 3.5)
        full = knee_of(next(iter(at.values()))[0])
        rate.plot([full], [0], marker="v", color=colour, ms=6, clip_on=False, zorder=6)
        keys.append(look.key(size=4))
    most = max(ims_of(point).calls for point in group.points)
    rate.plot([0, most], [0, most * group.share], color=style.FAINT, ls=":", lw=1)
    for axes in (rate, setup):
        for load in inputs.marks:
            axes.axvline(load, color="black", ls=style.PUBLISHED_DASH, lw=0.9)
        axes.set_xlim(0, most * 1.03)
    rate.set_ylabel(CALLS_COMPLETED_PER_S.axis)
    rate.set_ylim(bottom=0)
    setup.set_ylabel(SETUP_MS_P50.axis)
    style.plain_log(setup.yaxis)
    setup.set_xlabel("offered (calls/s at the published scale)")
    if inputs.marks:
        keys.append(kinds.dashed_key("published loads"))
    keys.append(Line2D([], [], color=style.FAINT, ls=":", lw=1, label="all completed"))
    keys.append(Line2D([], [], color=style.INK, marker="v", ls="", ms=5, label="computed knee"))
    registrations = f"P-CSCFs and S-CSCFs, {group.first.registrations} registrations per second"
    return group.finish(sheet, knee_finding(group), f"{registrations}{group.scale_words}", keys)


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


@_per(lambda point: point.spec.key(ignoring=("seed",)))
def controlled(group: Group, _: Inputs) -> Figure | None:
    """Draw the first seed of each setting."""
    point = min(good(group.points), key=lambda one: one.seed)
    of, parts = point.read_table("calls"), point.read_table("components")
    if of is None or parts is None or not len(of) or not len(parts):
        return None
    sheet = Sheet((1.6, 1), (0.9, 1), (1.2, 1), (1.3, 1))
    rate, count, queue, setup = kinds.every(sheet.axes)
    dash = style.SUSPECT_DASH if point.suspect else "-"
    rate.step(of["t_s"], of["offered"], where="pre", color=OFFERED_COLOUR, lw=1, ls=dash)
    rate.step(of["t_s"], of["completed"], where="pre", color=CALLS_COLOUR, lw=1.3, ls=dash)
    rate.set_ylabel(axis_labels.CALLS)
    rate.set_ylim(bottom=0)
    most = 0.0
    for letter, role in (("p", P), ("s", S)):
        active = _active(parts, letter)
        most = max(most, float(active[1].max()))
        count.step(*active, where="pre", color=role.colour, lw=1.5, ls=dash)
        queue.plot(*_waiting(parts, letter), color=role.colour, lw=1.2, ls=dash)
    count.set_ylabel("instances")
    count.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    count.set_ylim(0, most + 0.6)
    queue.set_ylabel("messages waiting")
    setup.plot(of["t_s"], of["setup_ms"].astype(float), color=CALLS_COLOUR, lw=1.2, ls=dash)
    style.plain_log(setup.yaxis)
    setup.set_ylabel(SETUP_MS_P50.axis)
    setup.set_xlabel(axis_labels.SECONDS)
    ims = group.first
    late = f" after {ims.react_s} s" if ims.policy != "static" and ims.react_s > 1 else ""
    lost = np.mean(recorded(good(group.points), CALLS_LOST_PCT))
    looks = (Look("offered", OFFERED_COLOUR, ""), Look("completed, setup", CALLS_COLOUR, ""), P, S)
    return group.finish(
        sheet,
        f"Policy {ims.policy}{late}: {lost:.1f} % of calls are lost",
        f"from P{ims.pcscf} S{ims.scscf}, {group.load_words}",
        [look.key() for look in looks],
        *([f"Curves of seed {point.seed}."] if group.seeds > 1 else []),
    )


def policy_of(point: PointResult) -> str:
    """Return the name of the point's policy; of a static one with its instances."""
    ims = ims_of(point)
    late = f", after {ims.react_s} s" if ims.react_s > 1 else ""
    return f"static, P{ims.pcscf} S{ims.scscf}" if ims.policy == "static" else ims.policy + late


@_per(
    lambda point: (of_scale(point), ims_of(point).load, point.spec.engine),
    lambda group: len(set(map(policy_of, group.points))) > 1,
)
def policies(group: Group, _: Inputs) -> Figure | None:
    of = {name: good(points) for name, points in kinds.grouped(group.points, policy_of).items()}
    lost, spent = (
        {name: _mean(points, quantity) or 0.0 for name, points in of.items()}
        for quantity in (CALLS_LOST_PCT, INSTANCE_S)
    )
    order = sorted(of, key=lambda name: lost[name])
    sheet = Sheet((0.32 * len(order) + 0.4, 2))
    for axes, values, shown in zip(sheet.axes[0], (lost, spent), ("{:.1f} %", "{:.0f}"), strict=True):
        kinds.rows(axes, order, named=axes is sheet.axes[0][0], size=9)
        for y, name in enumerate(order):
            kinds.bar(axes, y, values[name], 0.6, CALLS_COLOUR, of[name][0].suspect, horizontal=True)
            kinds.write(axes, shown.format(values[name]), values[name], y, 8)
        axes.set_xlim(0, 1.35 * max(values.values()))
        axes.grid(visible=False)
    sheet.axes[0][0].set_xlabel(CALLS_LOST_PCT.short_axis)
    sheet.axes[0][1].set_xlabel(INSTANCE_S.axis)
    title = f"By policy, {lost[order[0]]:.1f} to {lost[order[-1]]:.1f} % of calls are lost"
    return group.finish(sheet, title, group.load_words)
