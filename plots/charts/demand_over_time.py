"""Subflows on demand over time: goodput and subflows while something is down, the time until flows have their
demand, and real hosts beside simulated ones.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
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
from plots.data import Inputs, Panel
from plots.shared import axis_labels, kinds, saving, style
from plots.shared.kinds import Look
from plots.shared.sheet import Sheet

LOOKS = {
    RESPONSIVE: (("#D55E00", "#E69F00", "#CC79A7"), "-"),
    CENTRAL: (("#009E73", "#117733"), "-."),
    HASHED: (("#0072B2", "#56B4E9", "#332288"), (0, (1.2, 1.2))),
}
"""Colours and line style of each kind of scheme, in the order of their names; dashes mark suspect ones."""
Series = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SchemeCurve:
    """A scheme, of one of the kinds in LOOKS, with times in s and what is drawn over them."""

    name: str
    kind: str
    t_s: Series
    values: tuple[Series, ...] = ()
    suspect: bool = False


def looks(of: Sequence[SchemeCurve]) -> list[tuple[SchemeCurve, Look]]:
    """Return each curve with its look: the next colour of its kind."""
    colours = {kind: cycle(each) for kind, (each, _) in LOOKS.items()}
    return [
        (one, Look(one.name, next(colours[one.kind]), "", LOOKS[one.kind][1]).doubted(one.suspect))
        for one in of
    ]


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


def over_time(sockets: Table, flows: int) -> tuple[Series, Series, Series]:
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


def _acked(flow: Series, subflow: Series, position: npt.NDArray[np.int64], octets: Series) -> Series:
    """Return the bytes acknowledged between each instant and the one before. A subflow that is opened again
    counts from 0 or goes on, as its engine counts."""
    order = np.lexsort((position, subflow, flow))
    same = (np.diff(flow[order]) == 0) & (np.diff(subflow[order]) == 0)
    steps = np.diff(octets[order], prepend=0.0)
    steps[1:] = np.where(same, steps[1:], octets[order][1:])
    steps = np.where(steps < 0, octets[order], steps)
    found = np.bincount(position[order], weights=steps, minlength=int(position.max(initial=-1)) + 1)
    return found.astype(np.float64)


def over_time_curves(panel: Panel) -> list[SchemeCurve]:
    """Return a curve for each scheme with samples, averaged over its seeds: instants from the opening of the
    window, goodput per flow in Mb/s of the interval that ended there, and subflows per flow.

    Suspect points count where no seed is good."""
    found = []
    for called, of in sorted(by_scheme(panel.points, lambda point: name(_undisturbed(point))).items()):
        tables = [(point.read_table("sockets"), _long_flows(point)) for point in of]
        seeds = [over_time(table, flows) for table, flows in tables if table and flows]
        if seeds:
            count = min(len(times) for times, _, _ in seeds)
            mbps, subflows = (np.mean([seed[i][:count] for seed in seeds], axis=0) for i in (1, 2))
            t_s, doubt = seeds[0][0][:count], of[0].suspect
            found.append(SchemeCurve(called, kind_of(of[0]), t_s, (mbps, subflows), doubt))
    return found


def _long_flows(point: PointResult) -> int:
    """Return how many flows have no size, or all if every flow has one."""
    return sum(not flow.size_bytes for flow in point.under_test) or len(point.under_test)


def _undisturbed(point: PointResult) -> PointResult:
    """Return the point without the time of its controller's or monitors' outage, which is the same for all
    schemes; the share of the monitors stays."""
    always = dataclasses.replace(point.spec.scheduler, down_at_s=0.0, down_for_s=0.0)
    return dataclasses.replace(point, spec=dataclasses.replace(point.spec, scheduler=always))


def over_time_finding(of: Sequence[SchemeCurve], down_s: tuple[float, float] | None) -> str:
    """Return the title: what each kind's best scheme carries while something is down."""
    if down_s is None:
        return ""
    if down_s[0] <= 0:
        return _rise(of, down_s)
    best: dict[str, tuple[float, str]] = {}
    for curve in of:
        middles = curve.t_s - np.diff(curve.t_s, prepend=0.0) / 2
        meanwhile = curve.values[0][(middles > down_s[0]) & (middles < down_s[1])]
        if len(meanwhile):
            best[curve.kind] = max(best.get(curve.kind, (0.0, "")), (float(meanwhile.mean()), curve.name))
    values = ", ".join(f"{mbps:.0f} with {called}" for mbps, called in best.values())
    return f"Mb/s per flow during the outage, best of each kind: {values}" if values else ""


def _rise(of: Sequence[SchemeCurve], down_s: tuple[float, float]) -> str:
    """Return the title where something is down from the start: goodput then and at the end, of the scheme
    that gains most."""
    at_first = {curve.name: float(curve.values[0][curve.t_s < down_s[1]].mean()) for curve in of}
    at_last = {curve.name: float(curve.values[0][-1]) for curve in of}
    most = max(at_first, key=lambda name: at_last[name] - at_first[name])
    return f"From {at_first[most]:.0f} to {at_last[most]:.0f} Mb/s per flow after the outage"


@saving.per_panel(APART, lambda point: not point.failed)
def demand_over_time(panel: Panel, inputs: Inputs) -> Figure | None:
    of = over_time_curves(panel)
    if not of:
        return None
    found = next(filter(None, (down(point.spec) for point in panel.points)), None)
    sheet = Sheet((2.0, 1), (1.4, 1))
    (above,), (below,) = sheet.axes
    handles: list[Artist] = []
    for curve, look in looks(of):
        for axes, values in zip((above, below), curve.values, strict=True):
            axes.plot(curve.t_s, values, color=look.colour, ls=look.dash, lw=1.4)
        handles.append(look.key())
    if found:
        for axes in (above, below):
            axes.axvspan(*found[0], color=kinds.SHADE, zorder=0)
        handles.append(Patch(facecolor=kinds.SHADE, label=found[1]))
    above.set_ylabel(GOODPUT_MBPS_MEAN.axis)
    below.set_ylabel(axis_labels.SUBFLOWS_PER_FLOW)
    below.set_xlabel(axis_labels.SECONDS_OF_WINDOW)
    for axes in (above, below):
        axes.set_ylim(bottom=0)
        axes.set_xlim(0, max(float(curve.t_s[-1]) for curve in of))
    title = over_time_finding(of, found[0] if found else None) or inputs.title
    notes = [f"Mean of {len(panel.seeds)} permutations.", *style.doubts(panel.points)]
    return sheet.finish(title, _subtitle(panel), settings_of(panel, "events"), notes, handles)


SHARE, CHECKS = 0.85, 3
"""A flow has its demand when its smoothed rate is this share of it, at this many samples in a row."""
_FIRST_MS = 2.0


def median_s(curve: SchemeCurve) -> float:
    """Return the time in which half of the flows reach their demand; infinite if fewer do."""
    return float(np.quantile(curve.t_s, 0.5, method="inverted_cdf"))


def demands_mbps(flows: Sequence[FlowRow], rate_mbps: float) -> Series:
    """Return the demand of each flow as Hedera estimates it, between hosts with one link of this rate."""
    number = {host: i for i, host in enumerate({each: None for row in flows for each in (row.src, row.dst)})}
    rates = np.ones(len(number))
    sources, receivers = (
        np.array([number[getattr(row, end)] for row in flows], np.int64) for end in ("src", "dst")
    )
    return rate_mbps * natural_demands(sources, receivers, rates, rates)


def reached_s(sockets: Table, demand_mbps: Series) -> Series:
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


def time_curves(panel: Panel) -> list[SchemeCurve]:
    """Return each scheme with samples and the time of each of its flows, sorted; infinite for a flow that
    never reached its demand. Suspect points count where no seed is good."""
    found = []
    for called, of in sorted(by_scheme(panel.points, name).items()):
        tables = [(point, point.read_table("sockets")) for point in of]
        each = [
            reached_s(t, demands_mbps(p.under_test, p.rate_mbps)) for p, t in tables if t and p.under_test
        ]
        if each:
            t_s = np.sort(np.concatenate(each))
            found.append(SchemeCurve(called, kind_of(of[0]), t_s, suspect=of[0].suspect))
    return found


def time_finding(of: Sequence[SchemeCurve]) -> str:
    """Return the title: the median of the fastest scheme on demand, and of the fastest of the others."""
    ours, others = ([curve for curve in of if (curve.kind == RESPONSIVE) is on] for on in (True, False))
    parts = []
    for some, words in ((ours, "on demand"), (others, "")):
        if some:
            first = min(some, key=median_s)
            parts.append(f"{_words(median_s(first))} {words or f'with {first.name}'}")
    return f"Half of the flows have {100 * SHARE:.0f} % of their demand after " + ", ".join(parts)


def _words(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms" if np.isfinite(seconds) else "more than the run"


@saving.per_panel(APART, lambda point: not point.failed)
def time_to_demand(panel: Panel, _: Inputs) -> Figure | None:
    of = time_curves(panel)
    if not of:
        return None
    sheet = Sheet((2.6, 1))
    axes = sheet.axes[0][0]
    end_ms = 1000 * (panel.spec.warmup_s + panel.spec.seconds)
    for curve, look in looks(of):
        x = 1000 * curve.t_s[np.isfinite(curve.t_s)]
        share = 100 * np.arange(1, len(x) + 1) / len(curve.t_s)
        axes.plot(
            [*x, end_ms], [*share, *share[-1:]] or [0.0], color=look.colour, ls=look.dash, lw=1.4,
            drawstyle="steps-post",
        )  # fmt: skip
    style.plain_log(axes.xaxis)
    axes.set(xlim=(_FIRST_MS, end_ms), ylim=(0, 100))
    axes.set_xlabel("ms from the flow's start")
    axes.set_ylabel(f"flows at {100 * SHARE:.0f} % of their demand (%)")
    reached = f"All flows of {len(panel.seeds)} seeds; reached: {CHECKS} samples in a row."
    notes = [reached, *style.doubts(panel.points)]
    keys = [look.key() for _, look in looks(of)]
    return sheet.finish(time_finding(of), _subtitle(panel), settings_of(panel), notes, keys)


REAL, SIMULATED = Look("real hosts", "#D55E00", ""), Look("simulated", "#0072B2", "", (0, (3.7, 1.6)))
MAX_FLOWS = 4
STARTS_TOGETHER = "native"
_SPREAD = 0.12
"""Marks of equal numbers of subflows lie beside each other."""


def _of_both(panel: Panel) -> Panel:
    """Return the panel with a spec that names both engines, and the traffic whose flows start together."""
    engines = " and ".join(sorted({point.spec.engine for point in panel.points}))
    return dataclasses.replace(
        panel, spec=dataclasses.replace(panel.spec, engine=engines, traffic=STARTS_TOGETHER)
    )


def twins(panel: Panel) -> list[EnginePair]:
    """Return the pairs of a panel by seed; points of one engine alone are left out."""
    kinds: list[dict[int, PointResult]] = [{}, {}]
    for point in panel.points:
        for found, engines in zip(kinds, (LINUX_HOSTS, SIMULATED_HOSTS), strict=True):
            if point.spec.engine in engines and point.under_test:
                found[point.spec.seed] = point
    real, simulated = kinds
    return [EnginePair(real[seed], simulated[seed]) for seed in sorted(real) if seed in simulated]


def subflows_over_time(sockets: Table, flow: int) -> tuple[Series, Series]:
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


@saving.per_panel(
    (*APART, "engine", "stack", "traffic"),
    lambda point: not point.failed and is_responsive(point.spec.scheduler),
    _of_both,
)
def subflows_beside(panel: Panel, _: Inputs) -> Figure | None:
    of = twins(panel)
    if not of:
        return None
    sampled = [
        pair for pair in of if pair.emulated.read_table("sockets") and pair.simulated.read_table("sockets")
    ]
    flows = shown(sampled[0]) if sampled else []
    sheet = Sheet((2.0, 2), *((0.7, 1) for _ in flows))
    sized = any(flow.size_bytes for flow in of[0].emulated.under_test)
    spread = np.random.default_rng(1)
    values, counts = sheet.axes[0]
    for pair in of:
        rows = [row.flow for row in pair.emulated.under_test]
        x, y = ([_value(point, flow) for flow in rows] for point in (pair.simulated, pair.emulated))
        joined = [
            (pair.simulated.under_test[flow].subflows_joined, pair.emulated.under_test[flow].subflows_joined)
            for flow in rows
        ]
        apart = (np.array(joined, np.float64) + spread.uniform(-_SPREAD, _SPREAD, (len(joined), 2))).T
        face = "none" if pair.emulated.suspect or pair.simulated.suspect else REAL.colour
        values.scatter(x, y, s=14, lw=0.8, edgecolors=REAL.colour, facecolors=face)
        counts.scatter(apart[0], apart[1], s=10, lw=0.5, alpha=0.7, edgecolors=REAL.colour, facecolors=face)
    titles = f"{'completion, s' if sized else 'goodput, Mb/s'}, of each flow", "subflows of each flow"
    for axes, title in zip((values, counts), titles, strict=True):
        axes.set_title(title, fontsize=8)
        kinds.equals(axes, 0, max(axes.get_xlim()[1], axes.get_ylim()[1]), xlabel="simulated", ylabel="real")
    for axis in (counts.xaxis, counts.yaxis):
        axis.set_ticks(range(int(counts.get_xlim()[1]) + 1))
    for (axes,), flow in zip(sheet.axes[1:], flows, strict=True):
        _subflows(axes, sampled[0], flow)
    if flows:
        sheet.axes[-1][0].set_xlabel(axis_labels.SECONDS_OF_WINDOW)
    over_time = f"Over time: seed {sampled[0].emulated.spec.seed}." if sampled else ""
    notes = [f"{len(of)} seeds, one mark per flow; hollow: suspect.", over_time, *style.doubts(panel.points)]
    subtitle = f"{style.network(panel.spec)}, {style.workload(panel.spec)}"
    keys = [REAL.key(), SIMULATED.key()] if flows else []
    return sheet.finish(beside_finding(of), subtitle, settings_of(panel), notes, keys)


def beside_finding(of: Sequence[EnginePair]) -> str:
    """Return the title: subflows per flow of both kinds of hosts."""
    real, simulated = (
        statistics.fmean(flow.subflows_joined for point in points for flow in point.under_test)
        for points in ([pair.emulated for pair in of], [pair.simulated for pair in of])
    )
    return f"Subflows per flow: {real:.2f} real, {simulated:.2f} simulated"


def _subflows(axes: Axes, pair: EnginePair, flow: int) -> None:
    for point, look in ((pair.emulated, REAL), (pair.simulated, SIMULATED)):
        table = point.read_table("sockets")
        assert table is not None
        axes.step(*subflows_over_time(table, flow), where="post", color=look.colour, ls=look.dash, lw=1.4)
    row = pair.emulated.under_test[flow]
    axes.set_title(f"{row.src} to {row.dst}: subflows", fontsize=8)
    axes.set_ylim(0, pair.emulated.subflows + 0.5)
    axes.set_yticks(range(0, pair.emulated.subflows + 1, 2))
