"""SIP calls through an IMS: published steps, knees by load, a controller over time, and policies."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from analysis import quantities
from analysis.quantities import (
    CALLS_COMPLETED_PER_S,
    CALLS_LOST_PCT,
    CALLS_OFFERED_PER_S,
    PCSCF_FILL_PCT,
    PCSCF_KNEE_PER_S,
    SCSCF_FILL_PCT,
    SCSCF_KNEE_PER_S,
    SETUP_MS_P50,
    SETUP_MS_P95,
    Quantity,
)
from engines.registry import LINUX_HOSTS
from model.result import Table
from model.spec import RunSpec
from plots.data import Inputs, Point, good
from plots.shared import axis_labels, saving, style
from plots.shared.sheet import Caption, Sheet, Text
from workloads.sip import CONSTANT, MATRIX, POISSON, SipSettings, settings

P_COLOUR, S_COLOUR = "#0072B2", "#D55E00"
CALLS_COLOUR, OFFERED_COLOUR = "#009E73", "#777777"
_ARRIVALS = {POISSON: "Poisson", CONSTANT: "constant"}


@dataclass(frozen=True)
class Group:
    """Points that a chart shows together; `share` is the factor of their rates."""

    points: tuple[Point, ...]

    @property
    def share(self) -> float:
        return ims_of(self.points[0]).share

    @property
    def seeds(self) -> int:
        return len({point.seed for point in self.points})


def ims_of(point: Point) -> SipSettings:
    return settings(point.spec.workload.params)


def is_real(point: Point) -> bool:
    return point.spec.engine in LINUX_HOSTS


def grouped(points: Iterable[Point], key: Callable[[Point], object]) -> list[Group]:
    """Group usable points about calls by `key`, in the order of first occurrence."""
    groups: dict[object, list[Point]] = {}
    for point in points:
        if point.spec.workload.matrix == MATRIX and not point.failed:
            groups.setdefault(key(point), []).append(point)
    return [Group(tuple(each)) for each in groups.values()]


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


def of_scale(point: Point) -> object:
    """Return what points of one chart have in common: scale, arrivals, times, network, and seconds."""
    found = ims_of(point)
    times = found.message_us, found.scscf_us, found.lookup_us, found.workers
    return found.scale, found.arrivals, times, point.spec.topology.k, point.spec.seconds


def recorded(points: Sequence[Point], quantity: Quantity) -> list[float]:
    """Return a recorded quantity of each point that has it."""
    return [value for point in points if (value := point.recorded(quantity)) is not None]


def caption(group: Group, *notes: str) -> Caption:
    """Return the settings and what the means are over."""
    found, first = ims_of(group.points[0]), group.points[0]
    engines = dict.fromkeys("real" if is_real(point) else "simulated" for point in group.points)
    return Caption(
        [
            *style.unlike(group.points),
            " and ".join(engines),
            f"{found.message_us / found.share:g} us per message at a P-CSCF",
            f"look-up {found.lookup_us / found.share / 1000:g} ms, {found.workers} workers",
            f"{first.spec.seconds:g} s, {_ARRIVALS[found.arrivals]} arrivals",
        ],
        [*style.doubts(group.points), *notes, _seeds(group)],
    )


def _seeds(group: Group) -> str:
    """Return how many seeds the means are over, by engine if they differ."""
    counts: dict[str, set[int]] = {}
    for point in group.points:
        counts.setdefault("real" if is_real(point) else "simulated", set()).add(point.seed)
    if len({len(seeds) for seeds in counts.values()}) > 1:
        return f"Seeds: {', '.join(f'{len(seeds)} {engine}' for engine, seeds in counts.items())}."
    return "One seed." if group.seeds == 1 else f"Means over {group.seeds} seeds."


def log_ms(axes: Axes) -> None:
    """Make the vertical axis logarithmic, with plain numbers."""
    style.plain_log(axes.yaxis)


def load_words(group: Group) -> str:
    """Return the load over time, in published units."""
    load = ims_of(group.points[0]).load.replace("+", ", ")
    return f"load {load} calls/s" + ("" if group.share == 1 else f" x {group.share:g}")


def scale_words(group: Group) -> str:
    """Return `; rates are 50 % of the published ones`, or nothing at the published rates."""
    return "" if group.share == 1 else f"; rates are {100 * group.share:g} % of the published ones"


_LADDER_HEIGHTS_IN = (1.9, 1.6, 1.5)
_BAR = 0.36
LOST_PCT = 5


def draw_ladder(inputs: Inputs) -> list[Path]:
    """Draw one chart per scale; see `registry.Chart.draw`."""
    groups = grouped(inputs.points, of_scale)
    return saving.draw_each(
        "ladder", [(group.points[0].spec, group) for group in groups], inputs.out, _ladder_chart, named
    )


def steps(group: Group) -> list[tuple[str, list[Point]]]:
    """Return the label and the points of each step: by calls, then by instances."""
    found: dict[tuple[int, int, int], list[Point]] = {}
    for point in group.points:
        ims = ims_of(point)
        found.setdefault((ims.calls, ims.pcscf + ims.scscf, ims.pcscf), []).append(point)
    return [(f"{key[0]}\nP{key[2]} S{key[1] - key[2]}", points) for key, points in sorted(found.items())]


def ladder_finding(group: Group) -> str:
    """Return the title: at how many of the steps calls are lost, beyond those that have not ended yet."""
    lost = [label for label, points in steps(group) if _lost_pct(points) >= LOST_PCT]
    if not lost:
        return "All steps are carried"
    return f"{len(lost)} of {len(steps(group))} steps lose {LOST_PCT} % of calls or more"


def _lost_pct(points: Sequence[Point]) -> float:
    return statistics.fmean(recorded(good(points), CALLS_LOST_PCT))


def _ladder_chart(group: Group) -> Figure | None:
    of = steps(group)
    sheet = Sheet(*((height, 1) for height in _LADDER_HEIGHTS_IN))
    rate, setup, queue = (row[0] for row in sheet.axes)
    engines = sorted({is_real(point) for point in group.points})
    for place, (_, points) in enumerate(of):
        for number, real in enumerate(engines):
            ours = good([point for point in points if is_real(point) is real])
            if ours:
                _step(rate, setup, queue, place + (number - (len(engines) - 1) / 2) * 2.2 * _BAR / 2, ours)
    for axes in (rate, setup, queue):
        axes.set_xticks(range(len(of)), [label if axes is queue else "" for label, _ in of])
        axes.set_xlim(-0.6, len(of) - 0.4)
    rate.set_ylabel(axis_labels.CALLS)
    setup.set_ylabel("setup time (ms)")
    log_ms(setup)
    queue.set_ylabel("buffer (% full)")
    queue.set_ylim(0, 105)
    queue.set_xlabel("calls/s offered, instances")
    network = group.points[0].spec.topology.kind.replace("_", " ")
    subtitle = f"{network}, {len(of)} steps from idle{scale_words(group)}"
    return sheet.finish(
        Text(ladder_finding(group), subtitle, caption(group)), _ladder_legend(engines, group.seeds > 1)
    )


def _step(rate: Axes, setup: Axes, queue: Axes, x: float, points: Sequence[Point]) -> None:
    """Draw one step of one engine: real ones are hatched where they are suspect."""
    mean = {
        quantity: statistics.fmean(found) if (found := recorded(points, quantity)) else None
        for quantity in (
            CALLS_OFFERED_PER_S,
            CALLS_COMPLETED_PER_S,
            SETUP_MS_P50,
            SETUP_MS_P95,
            PCSCF_FILL_PCT,
            SCSCF_FILL_PCT,
        )
    }
    hatch = style.HATCH if all(point.suspect for point in points) else ""
    rate.bar(x, mean[CALLS_OFFERED_PER_S] or 0, _BAR, fill=False, ec=OFFERED_COLOUR, lw=1)
    alpha = 0.55 if is_real(points[0]) else 1.0
    rate.bar(
        x, mean[CALLS_COMPLETED_PER_S] or 0, _BAR, color=CALLS_COLOUR, alpha=alpha, hatch=hatch,
        edgecolor="white",
    )  # fmt: skip
    _runs(rate, x, recorded(points, CALLS_COMPLETED_PER_S))
    marker = "s" if is_real(points[0]) else "o"
    if (median := mean[SETUP_MS_P50]) is not None and (p95 := mean[SETUP_MS_P95]) is not None:
        setup.plot([x, x], [median, p95], color=style.FAINT, lw=1.2)
        setup.plot(x, median, marker, color=CALLS_COLOUR, ms=5)
        setup.plot(x, p95, "_", color=style.FAINT, ms=8)
    for fill, colour, side in (
        (PCSCF_FILL_PCT, P_COLOUR, -_BAR / 4),
        (SCSCF_FILL_PCT, S_COLOUR, _BAR / 4),
    ):
        queue.bar(x + side, mean[fill] or 0, _BAR / 2, color=colour, alpha=alpha, hatch=hatch)


def _runs(rate: Axes, x: float, completed: Sequence[float]) -> None:
    """Show the spread of the seeds as dots: there are often too few for an interval."""
    if len(completed) > 1:
        rate.plot([x] * len(completed), completed, ".", color=style.INK, ms=3, zorder=6)


def _ladder_legend(engines: Sequence[bool], several: bool) -> list[Artist]:
    handles: list[Artist] = [
        Patch(fill=False, ec=OFFERED_COLOUR, label="offered"),
        Patch(color=CALLS_COLOUR, label="completed"),
        Patch(color=P_COLOUR, label="P-CSCF"),
        Patch(color=S_COLOUR, label="S-CSCF"),
        Line2D([], [], color=style.FAINT, marker="_", label="median to 95th percentile"),
    ]
    if several:
        handles.append(Line2D([], [], color=style.INK, marker=".", ls="", ms=4, label="one run"))
    if len(engines) > 1:
        handles.append(Patch(color=CALLS_COLOUR, alpha=0.55, label="right: real"))
    return handles


_KNEE_HEIGHTS_IN = (2.3, 2.0)
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00")
Curve = tuple[int, int]
"""Instances of P-CSCF and of S-CSCF."""


def draw_knee(inputs: Inputs) -> list[Path]:
    """Draw one chart per scale and engine; see `registry.Chart.draw`."""
    groups = grouped(inputs.points, lambda point: (of_scale(point), point.spec.engine))
    drawn = functools.partial(_knee_chart, marks=inputs.marks)
    return saving.draw_each(
        "knee", [(group.points[0].spec, group) for group in groups], inputs.out, drawn, named
    )


def curves(group: Group) -> dict[Curve, dict[int, list[Point]]]:
    """Return the points of each number of instances, by calls per second."""
    found: dict[Curve, dict[int, list[Point]]] = {}
    for point in group.points:
        ims = ims_of(point)
        found.setdefault((ims.pcscf, ims.scscf), {}).setdefault(ims.calls, []).append(point)
    return {curve: dict(sorted(found[curve].items())) for curve in sorted(found)}


def knee_of(point: Point) -> float:
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


def _knee_chart(group: Group, marks: Sequence[float]) -> Figure | None:
    sheet = Sheet(*((height, 1) for height in _KNEE_HEIGHTS_IN))
    rate, setup = (row[0] for row in sheet.axes)
    handles = []
    for (curve, at), colour in zip(curves(group).items(), _COLOURS * 3, strict=False):
        _curve(rate, setup, at, colour)
        label = f"P{curve[0]} S{curve[1]}"
        handles.append(Line2D([], [], color=colour, marker="o", ms=4, label=label))
    most = max(ims_of(point).calls for point in group.points)
    rate.plot([0, most], [0, most * group.share], color=style.FAINT, ls=":", lw=1)
    for axes in (rate, setup):
        for load in marks:
            axes.axvline(load, color="black", ls=style.PUBLISHED_DASH, lw=0.9)
    rate.set_ylabel(CALLS_COMPLETED_PER_S.axis)
    rate.set_ylim(bottom=0)
    setup.set_ylabel(SETUP_MS_P50.axis)
    log_ms(setup)
    for axes in (rate, setup):
        axes.set_xlim(0, most * 1.03)
    setup.set_xlabel("offered (calls/s at the published scale)")
    if marks:
        handles.append(
            Line2D([], [], color="black", ls=style.PUBLISHED_DASH, lw=0.9, label="published loads")
        )
    handles.append(Line2D([], [], color=style.FAINT, ls=":", lw=1, label="all completed"))
    handles.append(Line2D([], [], color=style.INK, marker="v", ls="", ms=5, label="computed knee"))
    registrations = ims_of(group.points[0]).registrations
    subtitle = f"P-CSCFs and S-CSCFs, {registrations} registrations per second{scale_words(group)}"
    return sheet.finish(Text(knee_finding(group), subtitle, caption(group)), handles)


def _curve(rate: Axes, setup: Axes, at: dict[int, list[Point]], colour: str) -> None:
    for axes, quantity in ((rate, CALLS_COMPLETED_PER_S), (setup, SETUP_MS_P50)):
        known = [(load, recorded(good(points), quantity)) for load, points in at.items()]
        shown = [(load, statistics.fmean(found)) for load, found in known if found]
        axes.plot(*zip(*shown, strict=True), color=colour, marker="o", ms=3.5, lw=1.5)
    knee = knee_of(next(iter(at.values()))[0])
    rate.plot([knee], [0], marker="v", color=colour, ms=6, clip_on=False, zorder=6)


_CONTROLLED_HEIGHTS_IN = (1.6, 0.9, 1.2, 1.3)
Floats = npt.NDArray[np.float64]


def draw_controlled(inputs: Inputs) -> list[Path]:
    """Draw one chart per setting, of its first seed; see `registry.Chart.draw`."""
    groups = grouped(inputs.points, lambda point: point.spec.key(ignoring=("seed",)))
    return saving.draw_each(
        "controlled",
        [(group.points[0].spec, group) for group in groups],
        inputs.out,
        _controlled_chart,
        named,
    )


def of_role(table: Table, letter: str, column: str) -> tuple[Floats, Floats]:
    """Return times, and the largest value of an instance of the function `p` or `s` at each."""
    ours = np.char.startswith(table["name"].astype(str), letter)
    times, where = np.unique(table["t_s"][ours].astype(float), return_inverse=True)
    most = np.zeros(len(times))
    np.maximum.at(most, where, table[column][ours].astype(float))
    return times, most


def active(table: Table, letter: str) -> tuple[Floats, Floats]:
    """Return times, and how many instances of the function take new calls at each."""
    ours = np.char.startswith(table["name"].astype(str), letter)
    times, where = np.unique(table["t_s"][ours].astype(float), return_inverse=True)
    counts = np.bincount(where, table["active"][ours].astype(float), len(times))
    return times, counts.astype(np.float64)


def _controlled_chart(group: Group) -> Figure | None:
    point = sorted(good(group.points), key=lambda one: one.seed)[0]
    of, parts = point.read_table("calls"), point.read_table("components")
    if of is None or parts is None or not len(of) or not len(parts):
        return None
    sheet = Sheet(*((height, 1) for height in _CONTROLLED_HEIGHTS_IN))
    rate, count, queue, setup = (row[0] for row in sheet.axes)
    rate.step(of["t_s"], of["offered"], where="pre", color=OFFERED_COLOUR, lw=1)
    rate.step(of["t_s"], of["completed"], where="pre", color=CALLS_COLOUR, lw=1.3)
    rate.set_ylabel(axis_labels.CALLS)
    rate.set_ylim(bottom=0)
    for letter, colour in (("p", P_COLOUR), ("s", S_COLOUR)):
        count.step(*active(parts, letter), where="pre", color=colour, lw=1.5)
        queue.plot(*of_role(parts, letter, "waiting"), color=colour, lw=1.2)
    count.set_ylabel("instances")
    count.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    count.set_ylim(0, float(max(active(parts, letter)[1].max() for letter in "ps")) + 0.6)
    queue.set_ylabel("messages waiting")
    _setup(setup, of)
    notes = [f"Curves of seed {point.seed}."] if group.seeds > 1 else []
    return sheet.finish(Text(_finding(group), _subtitle(group), caption(group, *notes)), _controlled_legend())


def _setup(axes: Axes, of: Table) -> None:
    axes.plot(of["t_s"], of["setup_ms"].astype(float), color=CALLS_COLOUR, lw=1.2)
    log_ms(axes)
    axes.set_ylabel(quantities.SETUP_MS_P50.axis)
    axes.set_xlabel(axis_labels.SECONDS)


def _finding(group: Group) -> str:
    ims = ims_of(group.points[0])
    lost = recorded(good(group.points), quantities.CALLS_LOST_PCT)
    late = f" after {ims.react_s} s" if ims.policy != "static" and ims.react_s > 1 else ""
    return f"Policy {ims.policy}{late}: {np.mean(lost):.1f} % of calls are lost"


def _subtitle(group: Group) -> str:
    ims = ims_of(group.points[0])
    return f"from P{ims.pcscf} S{ims.scscf}, {load_words(group)}"


def _controlled_legend() -> list[Line2D]:
    return [
        Line2D([], [], color=OFFERED_COLOUR, lw=1.5, label="offered"),
        Line2D([], [], color=CALLS_COLOUR, lw=1.5, label="completed, setup"),
        Line2D([], [], color=P_COLOUR, lw=1.5, label="P-CSCF"),
        Line2D([], [], color=S_COLOUR, lw=1.5, label="S-CSCF"),
    ]


def draw_policies(inputs: Inputs) -> list[Path]:
    """Draw one chart per load over time; see `registry.Chart.draw`."""
    groups = grouped(inputs.points, lambda p: (of_scale(p), ims_of(p).load, p.spec.engine))
    several = [(group.points[0].spec, group) for group in groups if len(policies(group)) > 1]
    return saving.draw_each("policies", several, inputs.out, _policies_chart, named)


def policies(group: Group) -> dict[str, list[Point]]:
    """Return the points of each policy by its name; static ones by their instances."""
    found: dict[str, list[Point]] = {}
    for point in group.points:
        ims = ims_of(point)
        late = f", after {ims.react_s} s" if ims.react_s > 1 else ""
        name = f"static, P{ims.pcscf} S{ims.scscf}" if ims.policy == "static" else ims.policy + late
        found.setdefault(name, []).append(point)
    return found


def _policies_chart(group: Group) -> Figure | None:
    of = {name: good(points) for name, points in policies(group).items()}
    lost = {
        name: statistics.fmean(recorded(points, quantities.CALLS_LOST_PCT)) for name, points in of.items()
    }
    spent = {name: statistics.fmean(recorded(p, quantities.INSTANCE_S)) for name, p in of.items()}
    order = sorted(of, key=lambda name: -lost[name])
    sheet = Sheet((0.32 * len(order) + 0.4, 2))
    for axes, values, unit in zip(sheet.axes[0], (lost, spent), ("%", ""), strict=True):
        axes.barh(order, [values[name] for name in order], color=CALLS_COLOUR, height=0.6)
        for place, name in enumerate(order):
            shown = f"{values[name]:.1f} %" if unit else f"{values[name]:.0f}"
            axes.annotate(
                shown, (values[name], place), xytext=(4, 0), textcoords="offset points", va="center",
                fontsize=8, color=style.INK,
            )  # fmt: skip
        axes.set_xlim(0, 1.35 * max(values.values()))
        axes.grid(visible=False)
    sheet.axes[0][0].set_xlabel(quantities.CALLS_LOST_PCT.short_axis)
    sheet.axes[0][1].set_xlabel(quantities.INSTANCE_S.axis)
    sheet.axes[0][1].set_yticklabels([])
    subtitle = load_words(group)
    title = f"By policy, {lost[order[-1]]:.1f} to {lost[order[0]]:.1f} % of calls are lost"
    return sheet.finish(Text(title, subtitle, caption(group)))
