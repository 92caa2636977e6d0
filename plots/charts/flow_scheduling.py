"""Throughput under a central flow scheduler by its interval, beside TCP and MPTCP without one."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from controllers.schedulers import SCHEDULERS
from harness.results.point_results import PointResult
from model import transports
from model.congestion import UNKNOWN_LOOK
from model.schedulers import scheduled
from model.spec import RunSpec
from plots.data import Inputs, Panel, good, panels
from plots.shared import kinds, saving, style
from plots.shared.kinds import Look
from plots.shared.sheet import Sheet

LOOKS: Mapping[str, tuple[str, str]] = {"first_fit": ("#0072B2", "o"), "annealing": ("#009E73", "^")}
_IDEAL_AT = 1 / 3
"""Position of the ideal scheduler on the logarithmic axis, relative to the shortest interval."""
SUSPECT = " (suspect)"
Values = list[float]


@dataclass(frozen=True)
class WorkloadGoodput:
    """Points of one workload: goodput per host in % of one flow alone, one value per seed. `scheduled` by
    name and interval in ms, `alone` by subflows and the transport's name."""

    panel: Panel
    scheduled: Mapping[str, Mapping[float, Values]]
    doubtful: frozenset[tuple[str, float]]
    """Those of `scheduled` whose points are all suspect."""
    alone: Mapping[tuple[int, str], Values]


def carried_pct(point: PointResult) -> float | None:
    """Return the payload of all flows per host in % of the baseline; None without a baseline."""
    if not point.baseline_mbps or point.failed:
        return None
    return 100 * sum(flow.goodput_mbps for flow in point.under_test) / point.hosts / point.baseline_mbps


def rows(points: Iterable[PointResult]) -> list[WorkloadGoodput]:
    """Return one row per workload with a scheduler; those with flows that come and go first."""
    measured = (point for point in points if carried_pct(point) is not None)
    of = panels(measured, ignoring=("scheduler", "transport.cc"))
    found = [_row(panel) for panel in of if any(scheduled(point.spec) for point in panel.points)]
    return sorted(
        found, key=lambda row: all(not f.size_bytes for p in row.panel.points for f in p.under_test)
    )


def _row(panel: Panel) -> WorkloadGoodput:
    believed = _believed(panel.points)
    by_name: dict[str, dict[float, Values]] = {}
    alone: dict[tuple[int, str], Values] = {}
    for point in sorted(believed, key=lambda p: (p.spec.scheduler.interval_ms, p.subflows, p.seed)):
        value = carried_pct(point)
        if value is None:
            continue
        if not scheduled(point.spec):
            doubt = SUSPECT if point.suspect else ""
            who = point.subflows, transports.transport(point.cc, point.subflows) + doubt
            alone.setdefault(who, []).append(value)
        else:
            by_interval = by_name.setdefault(point.spec.scheduler.name, {})
            by_interval.setdefault(point.spec.scheduler.interval_ms, []).append(value)
    doubtful = {
        (p.spec.scheduler.name, p.spec.scheduler.interval_ms)
        for p in believed
        if p.suspect and scheduled(p.spec)
    }
    return WorkloadGoodput(
        dataclasses.replace(panel, points=tuple(believed)), by_name, frozenset(doubtful), alone
    )


def _believed(points: Sequence[PointResult]) -> list[PointResult]:
    """Return the good points of each scheduler and transport; the suspect ones where none is good."""
    groups = kinds.grouped(points, lambda point: (point.spec.scheduler, point.subflows, point.cc))
    return [point for of in groups.values() for point in good(of)]


def finding(row: WorkloadGoodput) -> str:
    """Return the title: what a scheduler carries relative to MPTCP at its shortest and longest interval.

    Only good points count.
    """
    name = next((name for name in LOOKS if name in row.scheduled), next(iter(row.scheduled)))
    sure = {ms: v for ms, v in row.scheduled[name].items() if (name, ms) not in row.doubtful}
    means = {ms: statistics.fmean(values) for ms, values in sure.items()}
    mptcp = [
        statistics.fmean(values)
        for (count, who), values in row.alone.items()
        if count > 1 and not who.endswith(SUSPECT)
    ]
    title = SCHEDULERS[name].title.capitalize()
    parts = [
        f"{100 * means[ms] / max(mptcp):.0f} % {_often(ms)}"
        for ms in (dict.fromkeys((min(means), max(means))) if means and any(mptcp) else ())
    ]
    return f"{title} carries {', '.join(parts)} of what MPTCP does" if parts else ""


def _often(interval_ms: float) -> str:
    if interval_ms == 0:
        return "(ideal)"
    return f"(every {f'{interval_ms / 1000:g} s' if interval_ms >= 1000 else f'{interval_ms:g} ms'})"


def _networks(inputs: Inputs) -> Iterable[tuple[RunSpec, list[WorkloadGoodput]]]:
    """Yield the workloads of each network that have a scheduler."""
    sheets: dict[str, list[WorkloadGoodput]] = {}
    for row in rows(inputs.points):
        sheets.setdefault(row.panel.spec.key(ignoring=("workload",)), []).append(row)
    return ((of[0].panel.spec, of) for of in sheets.values())


@saving.per_group(_networks)
def scheduling(of: Sequence[WorkloadGoodput], inputs: Inputs) -> Figure:
    sheet = Sheet(*((1.9, 1) for _ in of))
    intervals = sorted({ms for row in of for by in row.scheduled.values() for ms in by})
    reached = [
        value
        for row in of
        for values in (*row.alone.values(), *(each for by in row.scheduled.values() for each in by.values()))
        for value in values
    ]
    for (axes,), row in zip(sheet.axes, of, strict=True):
        _draw_row(axes, row, intervals)
        style.percent_axis(axes, max(100.0, *reached))
        endless = all(not flow.size_bytes for point in row.panel.points for flow in point.under_test)
        flows = f"flows {'that stay' if endless else 'that come and go'}"
        axes.set_title(f"{style.workload(row.panel.spec)}: {flows}")
        axes.set_ylabel("carried (%)")
    sheet.axes[-1][0].set_xlabel("interval of the scheduler (ms)")
    names = dict.fromkeys(name for row in of for name in row.scheduled)
    alone = dict.fromkeys(who for row in of for who in row.alone)
    return sheet.finish(
        finding(of[0]) or inputs.title,
        f"{style.network(of[0].panel.spec)}, {of[0].panel.hosts} hosts: payload per host",
        style.parameters(*(row.panel for row in of), congestion="TCP: reno"),
        [
            *style.doubts([point for row in of for point in row.panel.points]),
            "100 %: every host receives the goodput of one uncongested flow.",
            style.intervals(len({seed for row in of for seed in row.panel.seeds})),
        ],
        [
            *(_level_look(*who).key(width=1.8) for who in alone),
            *(_scheduler_look(name).key() for name in names),
        ],
    )


def _level_look(subflows: int, name: str) -> Look:
    label, dash = (f"{name} (ECMP)", "--") if subflows == 1 else (name, "-")
    return Look(label, style.colour(subflows), "", dash)


def _scheduler_look(name: str) -> Look:
    return Look(f"TCP, {SCHEDULERS[name].title}", *LOOKS.get(name, UNKNOWN_LOOK))


def _at(interval_ms: float, intervals: Sequence[float]) -> float:
    least = min((ms for ms in intervals if ms), default=1.0)
    return interval_ms or least * _IDEAL_AT


def _draw_row(axes: Axes, row: WorkloadGoodput, intervals: Sequence[float]) -> None:
    for name, by_interval in row.scheduled.items():
        means = {
            _at(ms, intervals): kinds.mean_of(values, hollow=(name, ms) in row.doubtful)
            for ms, values in by_interval.items()
        }
        kinds.curve(axes, means, _scheduler_look(name), 5, zorder=4)
    for who, values in row.alone.items():
        look = _level_look(*who)
        axes.axhline(statistics.fmean(values), color=look.colour, lw=1.8, ls=look.dash, zorder=3)
    axes.set_xscale("log")
    places = [_at(ms, intervals) for ms in intervals]
    axes.set_xticks(places, [f"{ms:g}" if ms else "ideal" for ms in intervals])
    axes.set_xticks([], minor=True)
    axes.set_xlim(places[0] * 0.8, places[-1] * 1.25)
