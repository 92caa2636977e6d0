"""Completion times of sized flows by load, under each routing policy: mean and 99th percentile."""

from __future__ import annotations

import dataclasses
import functools
import statistics
from collections.abc import Iterator, Sequence

from analysis.completion import COUNTED_SHARE, percentile, times_ms
from controllers.routing import parse
from engines.registry import LINUX_HOSTS
from harness.results.point_results import PointResult
from model.links import events_words
from model.spec import RunSpec, WorkloadSpec
from plots.charts.normalised_times import ValueOf, load_of
from plots.data import MIN_REPETITIONS_FOR_INTERVAL, MIN_SEEDS_FOR_INTERVAL, Inputs, Panel, good, panels
from plots.kinds.axis import Axis
from plots.kinds.curves import Curves
from plots.picture import Picture, Row, Series
from plots.shared import style
from plots.shared.kinds import Look, Mean, grouped, mean_of

MIN_FOR_P99 = 100
POLICIES = {
    "ecmp": Look("ECMP", "#D55E00", "s"),
    "letflow": Look("LetFlow", "#009E73", "D"),
    "conga": Look("CONGA", "#0072B2", "o"),
    "drill": Look("DRILL", "#CC79A7", "v"),
}
MPTCP_COLOUR, MPTCP_MARKERS = "#E69F00", "^<>P"
APART_PCT = 0.7
"""Marks of one load stand side by side."""


def mean_s(point: PointResult) -> float | None:
    """Return the mean completion time of the flows that count, in s; None without any."""
    times, _ = times_ms(point.under_test, point.spec.seconds)
    return statistics.fmean(times) / 1000 if times else None


def p99_s(point: PointResult) -> float | None:
    """Return the 99th percentile, in s; None for fewer than MIN_FOR_P99 flows."""
    times, _ = times_ms(point.under_test, point.spec.seconds)
    return percentile(times, 99) / 1000 if len(times) >= MIN_FOR_P99 else None


def _number(points: Sequence[PointResult], value: ValueOf) -> Mean | None:
    chosen = good(points)
    real = any(point.spec.engine in LINUX_HOSTS for point in chosen)
    least = MIN_REPETITIONS_FOR_INTERVAL if real else MIN_SEEDS_FOR_INTERVAL
    return mean_of(map(value, chosen), hollow=any(point.suspect for point in chosen), least=least)


MEAN_S, P99_S = (functools.partial(_number, value=value) for value in (mean_s, p99_s))


def _place(point: PointResult) -> tuple[int, str, int]:
    """Return what points of one curve have in common, in the order of curves."""
    name = parse(point.spec.routing)[0]
    names = list(POLICIES)
    return names.index(name) if name in names else len(names), name, point.subflows


def _series(panel: Panel) -> list[Series]:
    made, counts = [], sorted({point.subflows for point in panel.points} - {1})
    for key, points in sorted(grouped(panel.points, _place).items()):
        _, name, subflows = key
        look = POLICIES.get(name, Look(name, "#6b6b6b", "P"))
        if subflows > 1:
            of_policy = "" if name == "ecmp" else f", {look.label}"
            marker = MPTCP_MARKERS[counts.index(subflows) % len(MPTCP_MARKERS)]
            look = Look(f"MPTCP {subflows}{of_policy}", MPTCP_COLOUR, marker)
        doubt = any(p.suspect for of in grouped(points, load_of).values() for p in good(of))
        made.append(Series(look.label, look.doubted(doubt), points))
    return made


def _groups(inputs: Inputs) -> Iterator[tuple[RunSpec, Panel]]:
    """Yield points that differ at most in load, routing, transport and seed."""
    usable = (point for point in inputs.points if point.under_test and not point.failed)
    for panel in panels(usable, (), ("workload", "routing", "transport.cc"), _traffic):
        matrix, params = _traffic(panel.points[0])
        spec = dataclasses.replace(panel.spec, workload=WorkloadSpec(matrix, dict(params)))
        yield spec, dataclasses.replace(panel, spec=spec)


def _traffic(point: PointResult) -> tuple[str, tuple[tuple[str, int | str], ...]]:
    workload = point.spec.workload
    return workload.matrix, tuple(sorted((k, v) for k, v in workload.params.items() if k != "load"))


def _rows(panel: Panel) -> list[Row]:
    loads, keys = sorted({load_of(point) for point in panel.points}), sorted(set(map(_place, panel.points)))

    def over(point: PointResult) -> float:
        return load_of(point) + APART_PCT * (keys.index(_place(point)) - (len(keys) - 1) / 2)

    x, y = Axis(ticks=loads, low=loads[0] - 5, high=loads[-1] + 5), Axis(log=True)
    mean, p99 = (Curves(number, over, x, y) for number in (MEAN_S, P99_S))
    return [
        Row(1.9, [mean], y="mean (s)"),
        Row(1.9, [p99], x="load (% of the hosts' links)", y="99th percentile (s)"),
    ]


def _numbers(panel: Panel) -> dict[str, object]:
    load = max(map(load_of, panel.points))
    at = {one.name: MEAN_S([p for p in one.points if load_of(p) == load]) for one in _series(panel)}
    return {"load": load, "means": {name: mean.value for name, mean in at.items() if mean}}


def _about(panel: Panel) -> str:
    events = panel.spec.events
    what = ["completion times by load", *([events_words(events)] if events else [])]
    return style.subtitle(panel, ", ".join(what))


def _notes(panel: Panel) -> list[str]:
    counts = [times_ms(point.under_test, point.spec.seconds) for point in panel.points]
    lengths = [len(times) for times, _ in counts]
    unfinished = max(100 * late / max(1, len(times)) for times, late in counts)
    return [
        f"At most {unfinished:.0f} % had not ended and count with their time so far.",
        f"{min(lengths)} to {max(lengths)} flows count per point: arrivals of the first "
        f"{100 * COUNTED_SHARE:g} % of the window.",
        style.intervals(len(panel.seeds)),
    ]


fct_by_load = Picture(
    groups=_groups,
    series=_series,
    rows=_rows,
    about=_about,
    notes=_notes,
    numbers=_numbers,
    finding="Mean completion time at {{ load }} % load: {{ means | listed('{:.2g} s') }}",
)
