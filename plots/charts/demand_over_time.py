"""Subflows on demand over time: goodput and subflows while something is down, the time until flows have their
demand, and real hosts beside simulated ones.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, NullFormatter

from analysis.quantities import GOODPUT_MBPS_MEAN
from controllers.hedera import natural_demands
from controllers.responsive.controller import NEW_WEIGHT, OLD_WEIGHT
from engines.registry import LINUX_HOSTS, SIMULATED_HOSTS
from model.links import outage
from model.result import FlowRow, Status, Table
from model.schedulers import is_responsive
from model.spec import RunSpec
from plots.charts.subflows_on_demand import APART, CENTRAL, HASHED, RESPONSIVE, by_scheme, kind_of, name
from plots.data import Inputs, Panel, Point, panels
from plots.shared import axis_labels, saving, style
from plots.shared.sheet import Caption, Sheet, Text

LOOKS = {
    RESPONSIVE: (("#D55E00", "#E69F00", "#CC79A7"), "-"),
    CENTRAL: (("#009E73", "#117733"), "-."),
    HASHED: (("#0072B2", "#56B4E9", "#332288"), "--"),
}
"""Colours and line style of the schemes of each kind, in the order of their names."""
_OVER_TIME_HEIGHTS_IN = 2.0, 1.4
_SHADE = "#ececec"
Series = npt.NDArray[np.float64]


class OfKind(Protocol):
    """Something to draw, of one of the kinds in LOOKS."""

    @property
    def kind(self) -> str: ...


Drawn = TypeVar("Drawn", bound=OfKind)


@dataclass(frozen=True, eq=False)
class OverTimeCurve:
    """A scheme over time, averaged over its seeds: instants in s from the opening of the window, goodput per
    flow in Mb/s of the interval that ended there, and subflows per flow."""

    name: str
    kind: str
    t_s: Series
    mbps: Series
    subflows: Series


def draw_demand_over_time(inputs: Inputs) -> list[Path]:
    """Draw one chart per network, workload and outage; see `registry.Chart.draw`."""
    of = panels((point for point in inputs.points if not point.failed), ignoring=APART)
    return saving.draw_panels("demand_over_time", inputs, _over_time_chart, of)


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


def over_time_curves(panel: Panel) -> list[OverTimeCurve]:
    """Return a curve for each scheme with samples; suspect points count where no seed is good."""
    found = []
    for called, of in sorted(by_scheme(panel.points, lambda point: name(_undisturbed(point))).items()):
        tables = [(point.read_table("sockets"), _long_flows(point)) for point in of]
        seeds = [over_time(table, flows) for table, flows in tables if table and flows]
        if seeds:
            count = min(len(times) for times, _, _ in seeds)
            mbps, subflows = (np.mean([seed[i][:count] for seed in seeds], axis=0) for i in (1, 2))
            found.append(OverTimeCurve(called, kind_of(of[0]), seeds[0][0][:count], mbps, subflows))
    return found


def _long_flows(point: Point) -> int:
    """Return how many flows have no size, or all if every flow has one."""
    return sum(not flow.size_bytes for flow in point.flows) or len(point.flows)


def _undisturbed(point: Point) -> Point:
    """Return the point without the time of its controller's or monitors' outage, which is the same for all
    schemes; the share of the monitors stays."""
    always = dataclasses.replace(point.spec.scheduler, down_at_s=0.0, down_for_s=0.0)
    return dataclasses.replace(point, spec=dataclasses.replace(point.spec, scheduler=always))


def over_time_finding(of: Sequence[OverTimeCurve], down_s: tuple[float, float] | None) -> str:
    """Return the title: what each kind's best scheme carries while something is down."""
    if down_s is None:
        return "Goodput and subflows over time"
    if down_s[0] <= 0:
        return _rise(of, down_s)
    best: dict[str, tuple[float, str]] = {}
    for curve in of:
        middles = curve.t_s - np.diff(curve.t_s, prepend=0.0) / 2
        meanwhile = curve.mbps[(middles > down_s[0]) & (middles < down_s[1])]
        if len(meanwhile):
            best[curve.kind] = max(best.get(curve.kind, (0.0, "")), (float(meanwhile.mean()), curve.name))
    values = ", ".join(f"{mbps:.0f} with {called}" for mbps, called in best.values())
    if not values:
        return "Goodput and subflows over time"
    return f"Mb/s per flow during the outage, best of each kind: {values}"


def _rise(of: Sequence[OverTimeCurve], down_s: tuple[float, float]) -> str:
    """Return the title where something is down from the start: goodput then and at the end, of the scheme
    that gains most."""
    at_first = {curve.name: float(curve.mbps[curve.t_s < down_s[1]].mean()) for curve in of}
    most = max(of, key=lambda curve: float(curve.mbps[-1]) - at_first[curve.name])
    return f"From {at_first[most.name]:.0f} to {most.mbps[-1]:.0f} Mb/s per flow after the outage"


def _over_time_chart(panel: Panel) -> Figure | None:
    of = over_time_curves(panel)
    if not of:
        return None
    found = next(filter(None, (down(point.spec) for point in panel.points)), None)
    sheet = Sheet(*((height, 1) for height in _OVER_TIME_HEIGHTS_IN))
    (above,), (below,) = sheet.axes
    handles: list[Artist] = []
    for curve, colour in looks(of):
        line = LOOKS[curve.kind][1]
        above.plot(curve.t_s, curve.mbps, color=colour, ls=line, lw=1.4)
        below.plot(curve.t_s, curve.subflows, color=colour, ls=line, lw=1.4)
        handles.append(Line2D([], [], color=colour, ls=line, lw=1.6, label=curve.name))
    if found:
        for axes in (above, below):
            axes.axvspan(*found[0], color=_SHADE, zorder=0)
        handles.append(Patch(facecolor=_SHADE, label=found[1]))
    above.set_ylabel(GOODPUT_MBPS_MEAN.axis)
    below.set_ylabel(axis_labels.SUBFLOWS_PER_FLOW)
    below.set_xlabel(axis_labels.SECONDS_OF_WINDOW)
    for axes in (above, below):
        axes.set_ylim(bottom=0)
        axes.set_xlim(0, max(float(curve.t_s[-1]) for curve in of))
    words = Text(
        over_time_finding(of, found[0] if found else None),
        f"{style.network(panel.spec)}, {panel.hosts} hosts, {style.workload(panel.spec)}",
        _over_time_caption(panel),
    )
    return sheet.finish(words, handles)


def looks(of: Sequence[Drawn]) -> list[tuple[Drawn, str]]:
    """Return each curve with its colour: the next one of its kind."""
    colours = {kind: cycle(each) for kind, (each, _) in LOOKS.items()}
    return [(curve, next(colours[curve.kind])) for curve in of]


def _over_time_caption(panel: Panel) -> Caption:
    bare = dataclasses.replace(panel, spec=panel.spec.neutral(*APART, "events"))
    return Caption(
        style.parameters(bare, congestion=""),
        [f"Mean of {len(panel.seeds)} permutations.", *style.doubts(panel.points)],
    )


SHARE, CHECKS = 0.85, 3
"""A flow has its demand when its smoothed rate is this share of it, at this many samples in a row."""
_HEIGHT_IN = 2.6
_FIRST_MS = 2.0


@dataclasses.dataclass(frozen=True, eq=False)
class TimeCurve:
    """A scheme with the time of each of its flows in s, sorted; infinite for a flow that never reached it."""

    name: str
    kind: str
    reached_s: Series

    @property
    def median_s(self) -> float:
        return float(np.quantile(self.reached_s, 0.5, method="inverted_cdf"))


def draw_time_to_demand(inputs: Inputs) -> list[Path]:
    """Draw one chart per network and workload; see `registry.Chart.draw`."""
    of = panels((point for point in inputs.points if not point.failed), ignoring=APART)
    return saving.draw_panels("time_to_demand", inputs, _time_chart, of)


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


def time_curves(panel: Panel) -> list[TimeCurve]:
    """Return a curve for each scheme with samples; suspect points count where no seed is good."""
    found = []
    for called, of in sorted(by_scheme(panel.points, name).items()):
        tables = [(point, point.read_table("sockets")) for point in of]
        each = [reached_s(t, demands_mbps(p.flows, p.rate_mbps)) for p, t in tables if t and p.flows]
        if each:
            found.append(TimeCurve(called, kind_of(of[0]), np.sort(np.concatenate(each))))
    return found


def time_finding(of: Sequence[TimeCurve]) -> str:
    """Return the title: the median of the fastest scheme on demand, and of the fastest of the others."""
    ours, others = ([curve for curve in of if (curve.kind == RESPONSIVE) is on] for on in (True, False))
    parts = []
    for some, words in ((ours, "on demand"), (others, "")):
        if some:
            first = min(some, key=lambda curve: curve.median_s)
            parts.append(f"{_words(first.median_s)} {words or f'with {first.name}'}")
    return f"Half of the flows have {100 * SHARE:.0f} % of their demand after " + ", ".join(parts)


def _words(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms" if np.isfinite(seconds) else "more than the run"


def _time_chart(panel: Panel) -> Figure | None:
    of = time_curves(panel)
    if not of:
        return None
    sheet = Sheet((_HEIGHT_IN, 1))
    axes = sheet.axes[0][0]
    end_ms = 1000 * (panel.spec.warmup_s + panel.spec.seconds)
    handles: list[Artist] = []
    for curve, colour in looks(of):
        x = 1000 * curve.reached_s[np.isfinite(curve.reached_s)]
        share = 100 * np.arange(1, len(x) + 1) / len(curve.reached_s)
        line = LOOKS[curve.kind][1]
        axes.plot(
            [*x, end_ms],
            [*share, *share[-1:]] or [0.0],
            color=colour,
            ls=line,
            lw=1.4,
            drawstyle="steps-post",
        )
        handles.append(Line2D([], [], color=colour, ls=line, lw=1.6, label=curve.name))
    axes.set(xscale="log", xlim=(_FIRST_MS, end_ms), ylim=(0, 100))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("ms from the flow's start")
    axes.set_ylabel(f"flows at {100 * SHARE:.0f} % of their demand (%)")
    subtitle = f"{style.network(panel.spec)}, {panel.hosts} hosts, {style.workload(panel.spec)}"
    return sheet.finish(Text(time_finding(of), subtitle, _time_caption(panel)), handles)


def _time_caption(panel: Panel) -> Caption:
    bare = dataclasses.replace(panel, spec=panel.spec.neutral(*APART))
    note = f"All flows of {len(panel.seeds)} seeds; reached: {CHECKS} samples in a row."
    return Caption(style.parameters(bare, congestion=""), [note, *style.doubts(panel.points)])


REAL, SIMULATED = "#D55E00", "#0072B2"
MAX_FLOWS = 4
STARTS_TOGETHER = "native"
_BESIDE_HEIGHTS_IN = 2.0, 0.7
_SPREAD = 0.12
"""Marks of equal numbers of subflows lie beside each other."""


@dataclass(frozen=True)
class Twins:
    """The same point between real hosts and simulated, with flows in the same order."""

    real: Point
    simulated: Point

    @property
    def suspect(self) -> bool:
        return self.real.status is not Status.OK


def draw_subflows_beside(inputs: Inputs) -> list[Path]:
    """Draw one chart per network and workload that both kinds of hosts ran; see `registry.Chart.draw`."""
    ours = (point for point in inputs.points if not point.failed and is_responsive(point.spec.scheduler))
    of = [_of_both(panel) for panel in panels(ours, ignoring=(*APART, "engine", "stack", "traffic"))]
    return saving.draw_panels("subflows_beside", inputs, _beside_chart, of)


def _of_both(panel: Panel) -> Panel:
    """Return the panel with a spec that names both engines, and the traffic whose flows start together."""
    engines = " and ".join(sorted({point.spec.engine for point in panel.points}))
    return dataclasses.replace(
        panel, spec=dataclasses.replace(panel.spec, engine=engines, traffic=STARTS_TOGETHER)
    )


def twins(panel: Panel) -> list[Twins]:
    """Return the pairs of a panel by seed; points of one engine alone are left out."""
    kinds: list[dict[int, Point]] = [{}, {}]
    for point in panel.points:
        for found, engines in zip(kinds, (LINUX_HOSTS, SIMULATED_HOSTS), strict=True):
            if point.spec.engine in engines and point.flows:
                found[point.spec.seed] = point
    real, simulated = kinds
    return [Twins(real[seed], simulated[seed]) for seed in sorted(real) if seed in simulated]


def subflows_over_time(sockets: Table, flow: int) -> tuple[Series, Series]:
    """Return instants in s and the open subflows of a flow at them."""
    times = np.unique(sockets["t_s"].astype(np.float64))
    ours = sockets["t_s"][sockets["flow"] == flow].astype(np.float64)
    position = np.searchsorted(times, ours)
    return times, np.bincount(position, minlength=len(times)).astype(np.float64)


def shown(pair: Twins) -> list[int]:
    """Return the flows whose subflows are drawn over time: spread over the ranks of real goodput."""
    ranked = sorted(pair.real.flows, key=lambda flow: (flow.goodput_mbps, flow.flow))
    last, count = len(ranked) - 1, min(MAX_FLOWS, len(ranked))
    return [ranked[round(i * last / max(1, count - 1))].flow for i in range(count)]


def _value(point: Point, flow: int) -> float:
    """Return a flow's goodput in Mb/s, or its completion time in s if it has a size."""
    row = point.flows[flow]
    return row.completed_s if row.size_bytes else row.goodput_mbps


def _beside_chart(panel: Panel) -> Figure | None:
    of = twins(panel)
    if not of:
        return None
    sampled = [
        pair for pair in of if pair.real.read_table("sockets") and pair.simulated.read_table("sockets")
    ]
    flows = shown(sampled[0]) if sampled else []
    sheet = Sheet((_BESIDE_HEIGHTS_IN[0], 2), *((_BESIDE_HEIGHTS_IN[1], 1) for _ in flows))
    _values(sheet.axes[0][0], of)
    _counts(sheet.axes[0][1], of)
    for (axes,), flow in zip(sheet.axes[1:], flows, strict=True):
        _over_time(axes, sampled[0], flow, flow == flows[-1])
    words = Text(
        beside_finding(of),
        f"{style.network(panel.spec)}, {style.workload(panel.spec)}",
        _beside_caption(panel, of, sampled),
    )
    return sheet.finish(words, _legend() if flows else [])


def beside_finding(of: Sequence[Twins]) -> str:
    """Return the title: subflows per flow of both kinds of hosts."""
    real, simulated = (
        statistics.fmean(flow.subflows_joined for point in points for flow in point.flows)
        for points in ([pair.real for pair in of], [pair.simulated for pair in of])
    )
    return f"Subflows per flow: {real:.2f} real, {simulated:.2f} simulated"


def _values(axes: Axes, of: Sequence[Twins]) -> None:
    sized = any(flow.size_bytes for flow in of[0].real.flows)
    for pair in of:
        rows = [row.flow for row in pair.real.flows]
        points = [(_value(pair.simulated, flow), _value(pair.real, flow)) for flow in rows]
        x, y = zip(*points, strict=True)
        axes.scatter(x, y, s=14, lw=0.8, edgecolors=REAL, facecolors="none" if pair.suspect else REAL)
    what = "completion, s" if sized else "goodput, Mb/s"
    axes.set_title(f"{what}, of each flow", fontsize=8, loc="left")
    _diagonal(axes)


def _counts(axes: Axes, of: Sequence[Twins]) -> None:
    pairs = [
        (pair.simulated.flows[row.flow].subflows_joined, row.subflows_joined)
        for pair in of
        for row in pair.real.flows
    ]
    place = np.random.default_rng(1).uniform(-_SPREAD, _SPREAD, (len(pairs), 2))
    x, y = (np.array(pairs, np.float64) + place).T
    axes.scatter(x, y, s=10, lw=0, alpha=0.7, color=REAL)
    axes.set_title("subflows of each flow", fontsize=8, loc="left")
    _diagonal(axes)
    most = max(max(pair) for pair in pairs)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks(range(most + 1))


def _diagonal(axes: Axes) -> None:
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    most = max(axes.get_xlim()[1], axes.get_ylim()[1])
    axes.set_xlim(0, most)
    axes.set_ylim(0, most)
    axes.plot([0, most], [0, most], color=style.GRID, lw=1.0, zorder=0)
    axes.set_xlabel("simulated")
    axes.set_ylabel("real")


def _over_time(axes: Axes, pair: Twins, flow: int, is_last: bool) -> None:
    for point, colour, line in ((pair.real, REAL, "-"), (pair.simulated, SIMULATED, "--")):
        table = point.read_table("sockets")
        assert table is not None
        axes.step(*subflows_over_time(table, flow), where="post", color=colour, ls=line, lw=1.4)
    row = pair.real.flows[flow]
    axes.set_title(f"{row.src} to {row.dst}: subflows", fontsize=8, loc="left")
    axes.set_ylim(0, pair.real.subflows + 0.5)
    axes.set_yticks(range(0, pair.real.subflows + 1, 2))
    if is_last:
        axes.set_xlabel(axis_labels.SECONDS_OF_WINDOW)


def _legend() -> list[Artist]:
    looks = ((REAL, "-", "real hosts"), (SIMULATED, "--", "simulated"))
    return [Line2D([], [], color=colour, ls=line, lw=1.6, label=label) for colour, line, label in looks]


def _beside_caption(panel: Panel, of: Sequence[Twins], sampled: Sequence[Twins]) -> Caption:
    bare = dataclasses.replace(panel, spec=panel.spec.neutral(*APART))
    over_time = f"Over time: seed {sampled[0].real.spec.seed}." if sampled else ""
    notes = [f"{len(of)} seeds, one mark per flow; hollow: suspect.", over_time, *style.doubts(panel.points)]
    return Caption(style.parameters(bare, congestion=""), list(filter(None, notes)))
