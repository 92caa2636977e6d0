"""Subflows on demand over time: goodput and subflows while something is down, the time until flows have their
demand, and real hosts beside simulated ones.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from itertools import cycle

import numpy as np
import numpy.typing as npt
from matplotlib.patches import Patch

from analysis.quantities import GOODPUT_MBPS_MEAN
from controllers.hedera import natural_demands
from controllers.responsive.controller import NEW_WEIGHT, OLD_WEIGHT
from engines.registry import LINUX_HOSTS, SIMULATED_HOSTS
from harness.results.point_results import EnginePair, PointResult
from model.links import outage
from model.result import FlowRow, Table
from model.schedulers import is_responsive
from model.spec import RunSpec
from plots.charts.subflows_on_demand import (
    APART,
    CENTRAL,
    HASHED,
    RESPONSIVE,
    by_scheme,
    kind_of,
    name,
    settings_of,
)
from plots.data import Inputs, Panel, of_both_engines
from plots.kinds.axis import FROM_ZERO, Axis
from plots.kinds.cdf import Cdf
from plots.kinds.lines import Line, Lines
from plots.kinds.pairs import Pairs
from plots.picture import Page, Picture, Row, Series, alike
from plots.shared import axis_labels, kinds, style
from plots.shared.kinds import Look

LOOKS = {
    RESPONSIVE: (("#D55E00", "#E69F00", "#CC79A7"), "-"),
    CENTRAL: (("#009E73", "#117733"), "-."),
    HASHED: (("#0072B2", "#56B4E9", "#332288"), (0, (1.2, 1.2))),
}
"""Colours and line style of each kind of scheme, in the order of their names; dashes mark suspect ones."""
Values = npt.NDArray[np.float64]


def series_of(schemes: Mapping[str, Sequence[PointResult]]) -> list[Series]:
    """Return a series for each scheme, with the next colour of its kind."""
    colours = {kind: cycle(each) for kind, (each, _) in LOOKS.items()}
    looks = {
        called: Look(called, next(colours[kind_of(of[0])]), "", LOOKS[kind_of(of[0])][1], 1.4)
        for called, of in schemes.items()
    }
    return [Series(called, looks[called].doubted(of[0].suspect), of) for called, of in schemes.items()]


def _subtitle(panel: Panel) -> str:
    return f"{style.network(panel.spec)}, {panel.hosts} hosts, {style.workload(panel.spec)}"


def down(spec: RunSpec) -> tuple[tuple[float, float], str] | None:
    """Return when something is down, in s from the opening of the window, and what; None if nothing is."""
    chosen = spec.scheduler
    if chosen.down_for_s:
        from_s = chosen.down_at_s - spec.warmup_s
        what = "monitors are down" if chosen.down_monitors else "controller is down"
        return (from_s, from_s + chosen.down_for_s), what
    links_s = outage(spec)
    return (links_s, "links are down") if links_s else None


def over_time(sockets: Table, flows: int) -> tuple[Values, Values, Values]:
    """Return instants in the window, goodput per flow in Mb/s since the sample before, and subflows per flow
    that have carried something and are open.

    `sockets` has a row for each open subflow and instant (model.result.SAMPLE_COLUMNS). `flows` is the number
    of long flows, which come first; the others do not count.
    """
    long = sockets["flow"] < flows
    times, position = np.unique(sockets["t_s"][long].astype(np.float64), return_inverse=True)
    octets = sockets["bytes_acked"][long].astype(np.float64)
    carrying = np.bincount(position, weights=octets > 0, minlength=len(times))
    mbps = 8e-6 * _acked(sockets["flow"][long], sockets["subflow"][long], position, octets) / flows
    mbps = mbps[1:] / np.diff(times)
    inside = times[1:] > np.diff(times) / 2
    return times[1:][inside], mbps[inside], (carrying[1:] / flows)[inside]


def _acked(flow: Values, subflow: Values, position: npt.NDArray[np.int64], octets: Values) -> Values:
    """Return the bytes acknowledged between each instant and the one before. A subflow that is opened again
    counts from 0 or goes on, as its engine counts."""
    order = np.lexsort((position, subflow, flow))
    same = (np.diff(flow[order]) == 0) & (np.diff(subflow[order]) == 0)
    steps = np.diff(octets[order], prepend=0.0)
    steps[1:] = np.where(same, steps[1:], octets[order][1:])
    steps = np.where(steps < 0, octets[order], steps)
    found = np.bincount(position[order], weights=steps, minlength=int(position.max(initial=-1)) + 1)
    return found.astype(np.float64)


def over_seeds(points: Sequence[PointResult]) -> tuple[Values, Values, Values] | None:
    """Return what `over_time` does, averaged over the points that have samples; None if none has."""
    tables = [(point.read_table("sockets"), _long_flows(point)) for point in points]
    seeds = [over_time(table, flows) for table, flows in tables if table and flows]
    if not seeds:
        return None
    count = min(len(times) for times, _, _ in seeds)
    mbps, subflows = (np.mean([seed[i][:count] for seed in seeds], axis=0) for i in (1, 2))
    return seeds[0][0][:count], mbps, subflows


def _long_flows(point: PointResult) -> int:
    """Return how many flows have no size, or all if every flow has one."""
    return sum(not flow.size_bytes for flow in point.under_test) or len(point.under_test)


def _undisturbed(point: PointResult) -> PointResult:
    """Return the point without the time of its controller's or monitors' outage, which is the same for all
    schemes; the share of the monitors stays."""
    always = dataclasses.replace(point.spec.scheduler, down_at_s=0.0, down_for_s=0.0)
    return dataclasses.replace(point, spec=dataclasses.replace(point.spec, scheduler=always))


def outage_numbers(
    series: Sequence[Series], curves: Mapping[str, tuple[Values, Values, Values]], down_s: tuple[float, float]
) -> Mapping[str, object] | None:
    """Return what each kind's best scheme carries while something is down; if that is from the start, goodput
    then and at the end, of the scheme that gains most."""
    if down_s[0] <= 0:
        ends = [(float(mbps[t_s < down_s[1]].mean()), float(mbps[-1])) for t_s, mbps, _ in curves.values()]
        first, last = max(ends, key=lambda pair: pair[1] - pair[0])
        return {"first": first, "last": last}
    best: dict[str, tuple[float, str]] = {}
    for one in series:
        (t_s, mbps, _), kind = curves[one.name], kind_of(one.points[0])
        middles = t_s - np.diff(t_s, prepend=0.0) / 2
        meanwhile = mbps[(middles > down_s[0]) & (middles < down_s[1])]
        if len(meanwhile):
            best[kind] = max(best.get(kind, (0.0, "")), (float(meanwhile.mean()), one.name))
    return {"best": list(best.values())} if best else None


def _over_time(panel: Panel, _: Inputs) -> Page | None:
    found = sorted(by_scheme(panel.points, lambda point: name(_undisturbed(point))).items())
    curves = {called: curve for called, of in found if (curve := over_seeds(of)) is not None}
    if not curves:
        return None
    series = series_of({called: of for called, of in found if called in curves})
    down_s, words = next(filter(None, (down(point.spec) for point in panel.points)), (None, ""))
    x = Axis(low=0, high=max(float(t_s[-1]) for t_s, _, _ in curves.values()))
    above, below = (
        Lines([Line(curves[one.name][0], curves[one.name][i], one.look) for one in series], x, FROM_ZERO,
              shade=down_s)
        for i in (1, 2)
    )  # fmt: skip
    return Page(
        rows=[
            Row(2.0, [above], y=GOODPUT_MBPS_MEAN.axis),
            Row(1.4, [below], axis_labels.SECONDS_OF_WINDOW, axis_labels.SUBFLOWS_PER_FLOW),
        ],
        about=_subtitle(panel), numbers=outage_numbers(series, curves, down_s) if down_s else None,
        points=panel.points, settings=settings_of(panel, "events"),
        notes=[f"Mean of {len(panel.seeds)} permutations."],
        keys=[
            *(one.look.key() for one in series),
            *([Patch(facecolor=kinds.SHADE, label=words)] if down_s else []),
        ],
    )  # fmt: skip


def _did_not_fail(point: PointResult) -> bool:
    return not point.failed


demand_over_time = Picture(
    groups=alike(*APART, where=_did_not_fail), page=_over_time,
    finding="{% if best is defined %}Mb/s per flow during the outage, best of each kind: "
    "{% for mbps, name in best %}{{ ', ' if not loop.first }}{{ '%.0f' % mbps }} with {{ name }}{% endfor %}"
    "{% else %}From {{ '%.0f' % first }} to {{ '%.0f' % last }} Mb/s per flow after the outage{% endif %}",
)  # fmt: skip


SHARE, CHECKS = 0.85, 3
"""A flow has its demand when its smoothed rate is this share of it, at this many samples in a row."""
_FIRST_MS = 2.0


def demands_mbps(flows: Sequence[FlowRow], rate_mbps: float) -> Values:
    """Return the demand of each flow as Hedera estimates it, between hosts with one link of this rate."""
    number = {host: i for i, host in enumerate({each: None for row in flows for each in (row.src, row.dst)})}
    rates = np.ones(len(number))
    sources, receivers = (
        np.array([number[getattr(row, end)] for row in flows], np.int64) for end in ("src", "dst")
    )
    return rate_mbps * natural_demands(sources, receivers, rates, rates)


def reached_s(sockets: Table, demand_mbps: Values) -> Values:
    """Return when each flow first has SHARE of its demand for CHECKS samples, in s from the first sample.

    Rates are smoothed as a monitor does it; infinity means never. No subflow may be closed meanwhile.
    """
    times, position = np.unique(sockets["t_s"].astype(np.float64), return_inverse=True)
    octets = np.zeros((len(times), len(demand_mbps)))
    np.add.at(octets, (position, sockets["flow"]), sockets["bytes_acked"].astype(np.float64))
    rates = 8e-6 * np.diff(octets, axis=0) / np.diff(times)[:, None]
    smoothed, row = np.empty_like(rates), np.zeros(len(demand_mbps))
    for i, rate in enumerate(rates):
        smoothed[i] = row = OLD_WEIGHT * row + NEW_WEIGHT * rate
    high = smoothed >= SHARE * demand_mbps
    steady = np.logical_and.reduce([high[n : len(high) - CHECKS + 1 + n] for n in range(CHECKS)])
    first = times[1:][np.argmax(steady, axis=0)] - times[0]
    return np.where(steady.any(axis=0), first, np.inf)


def time_numbers(times_s: Mapping[str, Values], ours: Sequence[str]) -> Mapping[str, object]:
    """Return the time in which half of the flows reach their demand, of the fastest scheme on demand (one of
    `ours`) and of the fastest of the others; infinite if fewer do."""
    medians = {called: float(np.quantile(of, 0.5, method="inverted_cdf")) for called, of in times_s.items()}
    mine = min((medians[called] for called in ours), default=None)
    others = ((seconds, called) for called, seconds in medians.items() if called not in ours)
    seconds, called = min(others, key=lambda pair: pair[0], default=(0.0, ""))
    return {"share": 100 * SHARE, "ours": mine, "others": seconds, "called": called, "never": np.inf}


def _times(panel: Panel, _: Inputs) -> Page | None:
    """Draw the time of each flow of all seeds; infinite for a flow that never reached its demand."""
    found, times = sorted(by_scheme(panel.points, name).items()), {}
    for called, of in found:
        tables = [(point, point.read_table("sockets")) for point in of]
        each = [
            reached_s(t, demands_mbps(p.under_test, p.rate_mbps)) for p, t in tables if t and p.under_test
        ]
        if each:
            times[called] = np.concatenate(each)
    if not times:
        return None
    series = series_of({called: of for called, of in found if called in times})
    end_ms = 1000 * (panel.spec.warmup_s + panel.spec.seconds)
    plot = Cdf(lambda points: 1000 * times[name(points[0])],
               Axis("ms from the flow's start", log=True, low=_FIRST_MS, high=end_ms),
               f"flows at {100 * SHARE:.0f} % of their demand (%)", end=end_ms)  # fmt: skip
    reached = f"All flows of {len(panel.seeds)} seeds; reached: {CHECKS} samples in a row."
    return Page(
        rows=[Row(2.6, [plot])], about=_subtitle(panel), points=panel.points, settings=settings_of(panel),
        numbers=time_numbers(times, [one.name for one in series if kind_of(one.points[0]) == RESPONSIVE]),
        notes=[reached], series=series, keys=[one.look.key() for one in series],
    )  # fmt: skip


time_to_demand = Picture(
    groups=alike(*APART, where=_did_not_fail), page=_times,
    finding="{% macro time(s) %}{{ 'more than the run' if s == never else '%.0f ms' % (1000 * s) }}"
    "{% endmacro %}Half of the flows have {{ '%.0f' % share }} % of their demand after "
    "{% if ours is not none %}{{ time(ours) }} on demand{{ ', ' if called }}{% endif %}"
    "{% if called %}{{ time(others) }} with {{ called }}{% endif %}",
)  # fmt: skip


REAL, SIMULATED = Look("real hosts", "#D55E00", ""), Look("simulated", "#0072B2", "", (0, (3.7, 1.6)))
MAX_FLOWS = 4
STARTS_TOGETHER = "native"
_SPREAD = 0.12
"""Marks of equal numbers of subflows lie beside each other."""


def twins(panel: Panel) -> list[EnginePair]:
    """Return the pairs of a panel by seed; points of one engine alone are left out."""
    kinds: list[dict[int, PointResult]] = [{}, {}]
    for point in panel.points:
        for found, engines in zip(kinds, (LINUX_HOSTS, SIMULATED_HOSTS), strict=True):
            if point.spec.engine in engines and point.under_test:
                found[point.spec.seed] = point
    real, simulated = kinds
    return [EnginePair(real[seed], simulated[seed]) for seed in sorted(real) if seed in simulated]


def subflows_over_time(sockets: Table, flow: int) -> tuple[Values, Values]:
    """Return instants in s and the open subflows of a flow at them."""
    times = np.unique(sockets["t_s"].astype(np.float64))
    ours = sockets["t_s"][sockets["flow"] == flow].astype(np.float64)
    position = np.searchsorted(times, ours)
    return times, np.bincount(position, minlength=len(times)).astype(np.float64)


def shown(pair: EnginePair) -> list[int]:
    """Return the flows whose subflows are drawn over time: spread over the ranks of real goodput."""
    ranked = sorted(pair.emulated.under_test, key=lambda flow: (flow.goodput_mbps, flow.flow))
    last, count = len(ranked) - 1, min(MAX_FLOWS, len(ranked))
    return [ranked[round(i * last / max(1, count - 1))].flow for i in range(count)]


def _value(point: PointResult, flow: int) -> float:
    """Return a flow's goodput in Mb/s, or its completion time in s if it has a size."""
    row = point.under_test[flow]
    return row.completed_s if row.size_bytes else row.goodput_mbps


def _beside(panel: Panel, _: Inputs) -> Page | None:
    of = twins(panel)
    if not of:
        return None
    sized, spread = any(flow.size_bytes for flow in of[0].emulated.under_test), np.random.default_rng(1)
    flows = [(pair, row.flow) for pair in of for row in pair.emulated.under_test]
    doubts = [pair.emulated.suspect or pair.simulated.suspect for pair, _ in flows]
    values = np.array(
        [[_value(point, flow) for point in (pair.simulated, pair.emulated)] for pair, flow in flows]
    ).T
    joined = np.array([
        [point.under_test[flow].subflows_joined for point in (pair.simulated, pair.emulated)]
        for pair, flow in flows
    ], np.float64).T  # fmt: skip
    apart = joined + spread.uniform(-_SPREAD, _SPREAD, joined.shape)
    scatters = [
        Pairs(x.tolist(), y.tolist(), REAL.colour, (0, 1.06 * max(x.max(), y.max())), title,
              ticks=ticks, x_label="simulated", y_label="real", suspect=doubts, title_size=8)
        for (x, y), title, ticks in (
            (values, f"{'completion, s' if sized else 'goodput, Mb/s'}, of each flow", None),
            (apart, "subflows of each flow", range(int(joined.max()) + 1)),
        )
    ]  # fmt: skip
    sampled = [
        (pair, tables)
        for pair in of
        if all(tables := [point.read_table("sockets") for point in (pair.emulated, pair.simulated)])
    ]
    over_time = [_subflows(*sampled[0], flow) for flow in shown(sampled[0][0])] if sampled else []
    rows = [Row(0.7, [plot]) for plot in over_time]
    rows[-1:] = [Row(0.7, row.kinds, axis_labels.SECONDS_OF_WINDOW) for row in rows[-1:]]
    means = joined.mean(axis=1)
    return Page(
        rows=[Row(2.0, scatters), *rows],
        about=f"{style.network(panel.spec)}, {style.workload(panel.spec)}", points=panel.points,
        numbers={"real": means[1], "simulated": means[0]}, settings=settings_of(panel),
        notes=[
            f"{len(of)} seeds, one mark per flow; hollow: suspect.",
            f"Over time: seed {sampled[0][0].emulated.spec.seed}." if sampled else "",
        ],
        keys=[REAL.key(), SIMULATED.key()] if sampled else [],
    )  # fmt: skip


def _subflows(pair: EnginePair, tables: Sequence[Table | None], flow: int) -> Lines:
    """Return a plot of the subflows of a flow over time in both engines."""
    lines = [
        Line(*subflows_over_time(table, flow), dataclasses.replace(look, label=""), step="post")
        for table, look in zip(tables, (REAL, SIMULATED), strict=True)
        if table
    ]
    row, most = pair.emulated.under_test[flow], pair.emulated.subflows
    y = Axis(low=0, high=most + 0.5, ticks=range(0, most + 1, 2))
    return Lines(lines, y=y, title=f"{row.src} to {row.dst}: subflows")


subflows_beside = Picture(
    groups=alike(
        *APART, "engine", "stack", "traffic",
        where=lambda point: not point.failed and is_responsive(point.spec.scheduler),
        made=lambda panel: of_both_engines(panel, STARTS_TOGETHER),
    ),
    page=_beside,
    finding="Subflows per flow: {{ '%.2f' % real }} real, {{ '%.2f' % simulated }} simulated",
)  # fmt: skip
