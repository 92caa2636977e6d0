"""Throughput under a central flow scheduler by its interval, beside TCP and MPTCP without one."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterable, Mapping

from matplotlib.axes import Axes

from controllers.schedulers import SCHEDULERS
from harness.results.point_results import PointResult
from model import transports
from model.congestion import UNKNOWN_LOOK
from model.schedulers import scheduled
from model.spec import RunSpec
from plots.data import Inputs, Panel, common, good, panels, together
from plots.kinds.axis import Axis
from plots.kinds.curves import Curves, mean
from plots.picture import Picture, Row, Series
from plots.shared import style
from plots.shared.kinds import Look, grouped

LOOKS: Mapping[str, tuple[str, str]] = {"first_fit": ("#0072B2", "o"), "annealing": ("#009E73", "^")}
_IDEAL_AT = 1 / 3
"""Position of the ideal scheduler on the logarithmic axis, relative to the shortest interval."""


def carried_pct(point: PointResult) -> float | None:
    """Return the payload of all flows per host in % of the baseline; None without a baseline."""
    if not point.baseline_mbps or point.failed:
        return None
    return 100 * sum(flow.goodput_mbps for flow in point.under_test) / point.hosts / point.baseline_mbps


def _endless(panel: Panel) -> bool:
    return all(not flow.size_bytes for point in panel.points for flow in point.under_test)


def workloads(points: Iterable[PointResult]) -> list[Panel]:
    """Return the points of each workload with a scheduler: the good ones of each scheduler and transport, the
    suspect ones where none is good. Workloads with flows that come and go are first."""
    measured = (point for point in points if carried_pct(point) is not None)
    found = []
    for panel in panels(measured, ignoring=("scheduler", "transport.cc")):
        alike = grouped(panel.points, lambda point: (point.spec.scheduler, point.subflows, point.cc))
        if any(scheduled(point.spec) for point in panel.points):
            believed = tuple(point for of in alike.values() for point in good(of))
            found.append(dataclasses.replace(panel, points=believed))
    return sorted(found, key=_endless)


def series(panel: Panel) -> list[Series]:
    """Return a series for each transport without a scheduler, then one for each scheduler."""

    def name(point: PointResult) -> tuple[str, int]:
        if scheduled(point.spec):
            return point.spec.scheduler.name, 0
        doubt = " (suspect)" if point.suspect else ""
        return transports.transport(point.cc, point.subflows) + doubt, point.subflows

    found = grouped(sorted(panel.points, key=lambda p: (scheduled(p.spec), p.subflows)), name)
    made = []
    for (called, subflows), of in found.items():
        if scheduled(of[0].spec):
            look = Look(f"TCP, {SCHEDULERS[called].title}", *LOOKS.get(called, UNKNOWN_LOOK))
        elif subflows == 1:
            look = Look(f"{called} (ECMP)", style.colour(1), "", "--")
        else:
            look = Look(called, style.colour(subflows), "")
        made.append(Series(called, look, of))
    return made


def numbers(panel: Panel) -> dict[str, object] | None:
    """Return what a scheduler carries relative to MPTCP at its shortest and longest interval, from good
    points."""
    ours = [point for point in panel.points if not point.suspect]
    name = next(
        each for each in (*LOOKS, *SCHEDULERS) if any(p.spec.scheduler.name == each for p in panel.points)
    )
    means = {
        ms: statistics.fmean(carried_pct(point) or 0.0 for point in of)
        for ms, of in grouped(
            (p for p in ours if p.spec.scheduler.name == name), lambda p: p.spec.scheduler.interval_ms
        ).items()
    }
    mptcp = grouped(
        (p for p in ours if p.subflows > 1 and not scheduled(p.spec)), lambda p: (p.subflows, p.cc)
    )
    most = max((statistics.fmean(carried_pct(p) or 0.0 for p in of) for of in mptcp.values()), default=0.0)
    if not means or not most:
        return None
    ends = dict.fromkeys((min(means), max(means)))
    return {
        "scheduler": SCHEDULERS[name].title.capitalize(), "of": [(ms, 100 * means[ms] / most) for ms in ends]
    }  # fmt: skip


def _networks(inputs: Inputs) -> Iterable[tuple[RunSpec, Panel]]:
    """Yield the points of each network that have a scheduler."""
    for of in together(workloads(inputs.points), "workload"):
        yield of[0].spec, common(of)


def _rows(panel: Panel) -> list[Row]:
    of = workloads(panel.points)
    intervals = sorted({p.spec.scheduler.interval_ms for p in panel.points if scheduled(p.spec)})
    ideal_at = _IDEAL_AT * min((ms for ms in intervals if ms), default=1.0)
    places = [ms or ideal_at for ms in intervals]
    reached = [
        statistics.fmean(carried_pct(point) or 0.0 for point in points)
        for one in of
        for points in grouped(one.points, lambda p: (p.spec.scheduler, p.subflows, p.cc, p.suspect)).values()
    ]
    x = Axis(
        log=True, low=places[0] * 0.8, high=places[-1] * 1.25, ticks=places, words={ideal_at: "ideal"}
    )  # fmt: skip

    def fit(axes: Axes) -> None:
        style.percent_axis(axes, max(100.0, *reached))

    rows = []
    for one in of:
        flows = f"flows {'that stay' if _endless(one) else 'that come and go'}"
        curves = Curves(
            mean(carried_pct), lambda point: point.spec.scheduler.interval_ms or ideal_at, x, Axis(fit=fit),
            f"{style.workload(one.spec)}: {flows}", level_width=1.8, size=5, series=series(one),
            is_level=lambda each: not scheduled(each.points[0].spec),
        )  # fmt: skip
        rows.append(
            Row(1.9, [curves], "interval of the scheduler (ms)" if one is of[-1] else "", "carried (%)")
        )
    return rows


scheduling = Picture(
    groups=_networks, series=series, rows=_rows, key={},
    about=lambda panel: f"{style.network(panel.spec)}, {panel.hosts} hosts: payload per host",
    settings=lambda panel: style.parameters(*workloads(panel.points), congestion="TCP: reno"),
    notes=lambda panel: [
        "100 %: every host receives the goodput of one uncongested flow.", style.intervals(len(panel.seeds))
    ],
    numbers=lambda panel: numbers(workloads(panel.points)[0]),
    finding="{{ scheduler }} carries {% for ms, pct in of %}{{ ', ' if not loop.first }}{{ '%.0f' % pct }} % "
    "({% if ms == 0 %}ideal{% elif ms >= 1000 %}every {{ '%g' % (ms / 1000) }} s"
    "{% else %}every {{ '%g' % ms }} ms{% endif %}){% endfor %} of what MPTCP does",
)  # fmt: skip
