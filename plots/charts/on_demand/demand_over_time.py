"""Goodput and subflows per flow over time, by scheme, while links or the controller are down."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from analysis.quantities import GOODPUT_MBPS_MEAN
from model.link_events import outage
from model.result import Status, Table
from model.spec import RunSpec
from plots.charts.on_demand.trade_off import APART, CENTRAL, HASHED, RESPONSIVE, kind_of, name
from plots.data import Inputs, Panel, Point, panels
from plots.shared import axis_labels, saving, style
from plots.shared.sheet import Caption, Sheet, Text

CHART = "demand_over_time"
LOOKS = {
    RESPONSIVE: (("#D55E00", "#E69F00", "#CC79A7"), "-"),
    CENTRAL: (("#009E73", "#117733"), "-."),
    HASHED: (("#0072B2", "#56B4E9", "#332288"), "--"),
}
"""Colours and line style of the schemes of each kind, in the order of their names."""
_HEIGHTS_IN = 2.0, 1.4
_SHADE = "#ececec"
Series = npt.NDArray[np.float64]


class OfKind(Protocol):
    """Something to draw, of one of the kinds in LOOKS."""

    @property
    def kind(self) -> str: ...


Drawn = TypeVar("Drawn", bound=OfKind)


@dataclass(frozen=True, eq=False)
class Curve:
    """A scheme over time, averaged over its seeds: instants in s from the opening of the window, goodput per
    flow in Mb/s of the interval that ended there, and subflows per flow."""

    name: str
    kind: str
    t_s: Series
    mbps: Series
    subflows: Series


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart per network, workload and outage; see `registry.Chart.draw`."""
    of = panels((point for point in inputs.points if not point.failed), ignoring=APART)
    return saving.draw_each(CHART, [(panel.spec, panel) for panel in of], inputs.out, _chart)


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


def curves(panel: Panel) -> list[Curve]:
    """Return a curve for each scheme with samples; suspect points count where no seed is good."""
    schemes: dict[str, list[Point]] = {}
    for point in panel.points:
        schemes.setdefault(name(_undisturbed(point)), []).append(point)
    found = []
    for called, of in sorted(schemes.items()):
        good = [point for point in of if point.status is Status.OK] or of
        tables = [(point.read_table("sockets"), _long_flows(point)) for point in good]
        seeds = [over_time(table, flows) for table, flows in tables if table and flows]
        if seeds:
            count = min(len(times) for times, _, _ in seeds)
            mbps, subflows = (np.mean([seed[i][:count] for seed in seeds], axis=0) for i in (1, 2))
            found.append(Curve(called, kind_of(good[0]), seeds[0][0][:count], mbps, subflows))
    return found


def _long_flows(point: Point) -> int:
    """Return how many flows have no size, or all if every flow has one."""
    return sum(not flow.size_bytes for flow in point.flows) or len(point.flows)


def _undisturbed(point: Point) -> Point:
    """Return the point without the time of its controller's or monitors' outage, which is the same for all
    schemes; the share of the monitors stays."""
    always = dataclasses.replace(point.spec.scheduler, down_at_s=0.0, down_for_s=0.0)
    return dataclasses.replace(point, spec=dataclasses.replace(point.spec, scheduler=always))


def finding(of: Sequence[Curve], down_s: tuple[float, float] | None) -> str:
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


def _rise(of: Sequence[Curve], down_s: tuple[float, float]) -> str:
    """Return the title where something is down from the start: goodput then and at the end, of the scheme
    that gains most."""
    at_first = {curve.name: float(curve.mbps[curve.t_s < down_s[1]].mean()) for curve in of}
    most = max(of, key=lambda curve: float(curve.mbps[-1]) - at_first[curve.name])
    return f"From {at_first[most.name]:.0f} to {most.mbps[-1]:.0f} Mb/s per flow after the outage"


def _chart(panel: Panel) -> Figure | None:
    of = curves(panel)
    if not of:
        return None
    found = next(filter(None, (down(point.spec) for point in panel.points)), None)
    sheet = Sheet(*((height, 1) for height in _HEIGHTS_IN))
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
        finding(of, found[0] if found else None),
        f"{style.network(panel.spec)}, {panel.hosts} hosts, {style.workload(panel.spec)}",
        _caption(panel),
    )
    return sheet.finish(words, handles)


def looks(of: Sequence[Drawn]) -> list[tuple[Drawn, str]]:
    """Return each curve with its colour: the next one of its kind."""
    colours = {kind: cycle(each) for kind, (each, _) in LOOKS.items()}
    return [(curve, next(colours[curve.kind])) for curve in of]


def _caption(panel: Panel) -> Caption:
    bare = dataclasses.replace(panel, spec=panel.spec.neutral(*APART, "events"))
    return Caption(
        style.parameters(bare, congestion=""),
        [f"Mean of {len(panel.seeds)} permutations.", *style.doubts(panel.points)],
    )
