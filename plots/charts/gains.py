"""The same traffic on several networks: throughput and gain by load, by traffic matrix and by network
(SIGCOMM 2011).

A gain is goodput divided by that of TCP on the first network, whose hosts have one NIC, for the same seed.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from analysis.quantities import GOODPUT_PCT_MEAN, JAIN
from controllers.routing import DIGITS
from model.result import Status
from model.spec import RunSpec, TopologySpec, WorkloadSpec
from model.transports import USUAL_ROUTING
from plots.data import Inputs, Panel, Point, interval_pct, jain, panels, together
from plots.shared import saving, style
from plots.shared.naming import shape
from plots.shared.sheet import Caption, Sheet, Text
from topos import TOPOLOGIES
from workloads import matrices

ValueOf = Callable[[Point], float]
_MARKERS = ("o", "^", "D", "v")
_LINES = ("-", (0, (1, 1.1)), "-.", (0, (5, 1, 1, 1, 1, 1)))
"""Line styles of the first network, the second, and so on; dashes mark suspect points."""


@dataclass(frozen=True, order=True)
class Curve:
    """One transport on one network, the `place`-th of its study."""

    place: int
    network: str
    subflows: int

    @property
    def transport(self) -> str:
        return style.transport(self.subflows)

    @property
    def colour(self) -> str:
        return style.colour(self.subflows)

    @property
    def marker(self) -> str:
        return _MARKERS[self.place % len(_MARKERS)]

    @property
    def line(self) -> Any:  # Any: matplotlib has no name for the type of its line styles
        return _LINES[self.place % len(_LINES)]


@dataclass(frozen=True)
class Study:
    """All points of one chart; `spec` has what they have in common, default values elsewhere."""

    spec: RunSpec
    points: tuple[Point, ...]

    def named(self) -> RunSpec:
        """The setting that names the chart's files: the first network's size and the first matrix."""
        first = self.points[0].spec
        sized = TopologySpec(params={"k": first.topology.k})
        return dataclasses.replace(self.spec, topology=sized, workload=WorkloadSpec(first.workload.matrix))

    @property
    def networks(self) -> list[str]:
        """Names of the networks, in the order of the registry of topologies."""
        kinds = list(TOPOLOGIES)
        ordered = sorted(self.points, key=lambda p: (kinds.index(p.spec.topology.kind), shape(p.spec)))
        return list(dict.fromkeys(style.network(point.spec) for point in ordered))

    @property
    def curves(self) -> list[Curve]:
        networks = self.networks
        named = ((style.network(point.spec), point.subflows) for point in self.points)
        return sorted({Curve(networks.index(name), name, subflows) for name, subflows in named})

    @property
    def matrices(self) -> list[str]:
        return list(dict.fromkeys(point.matrix for point in self.points))

    @property
    def words(self) -> dict[str, str]:
        """The names of the matrices: their text where that is unique, else as on command lines."""
        labels = {point.matrix: _words(point) for point in self.points}
        names = list(labels.values())
        return {m: name if name and names.count(name) == 1 else m for m, name in labels.items()}

    @property
    def panels(self) -> list[Panel]:
        """One panel per network, for captions."""
        return [
            Panel(
                dataclasses.replace(self.spec, topology=of[0].spec.topology),
                tuple(sorted({point.subflows for point in of})),
                of,
            )
            for name in self.networks
            if (of := tuple(point for point in self.points if style.network(point.spec) == name))
        ]

    def of(self, curve: Curve, matrix: str) -> list[Point]:
        """Return one point per seed: the good ones, or the suspect ones where none is good."""
        here = [
            point
            for point in self.points
            if (point.matrix, point.subflows) == (matrix, curve.subflows)
            and style.network(point.spec) == curve.network
        ]
        good = [point for point in here if point.status is Status.OK]
        return good or here

    def dubious(self, curve: Curve) -> bool:
        """Return whether any mark of the curve rests on suspect points."""
        return any(point.suspect for matrix in self.matrices for point in self.of(curve, matrix))

    def gains(self, curve: Curve, matrix: str, value_of: ValueOf) -> list[float]:
        """Return one gain per seed; none where TCP did not run on the first network."""
        tcp = {p.seed: value_of(p) for p in self.of(Curve(0, self.networks[0], 1), matrix)}
        return [value_of(point) / tcp[point.seed] for point in self.of(curve, matrix) if tcp.get(point.seed)]

    def mean_gain(self, curve: Curve, matrix: str, value_of: ValueOf) -> float | None:
        gains = self.gains(curve, matrix, value_of)
        return statistics.fmean(gains) if gains else None

    def label(self, curve: Curve) -> str:
        """Return `MPTCP 8`, with the network where there are several."""
        return f"{curve.transport}, {curve.network}" if len(self.networks) > 1 else curve.transport

    @property
    def gain_axis(self) -> str:
        """The label of an axis of gains."""
        return f"times {self.baseline}"

    @property
    def baseline(self) -> str:
        """What gains are relative to."""
        return f"TCP on {self.networks[0]}" if len(self.networks) > 1 else "TCP"

    @property
    def caption(self) -> Caption:
        """Return the caption of every chart of a study."""
        seeds = len({point.seed for point in self.points})
        return Caption(style.parameters(*self.panels), [*style.doubts(self.points), style.intervals(seeds)])


def studies(points: Iterable[Point], by: Callable[[Point], str]) -> list[Study]:
    """Group points by what they have in common: their size, all of the setting but network and matrix, and
    what `by` returns. Points without flows, failed ones and baselines are left out."""
    usable = (point for point in points if point.flows and not point.failed)
    of = panels(usable, (), ("topology", "workload"), lambda p: (p.spec.topology.k, by(p)))
    made = [Study(panel.spec, panel.points) for panel in of]
    return sorted(made, key=lambda study: study.points[0].spec.topology.k)


def _words(point: Point) -> str:
    return matrices.words(point.spec.workload.matrix, point.spec.workload.params)


def per_host_pct(point: Point) -> float:
    """Return the goodput of all flows in % of the rate of one link of every host."""
    return 100 * _total_mbps(point) / point.hosts / point.rate_mbps


def per_sender_pct(point: Point) -> float:
    """Return the mean goodput of a sending host in % of one link; above 100 where it fills several."""
    return 100 * _total_mbps(point) / len({flow.src for flow in point.flows}) / point.rate_mbps


def _total_mbps(point: Point) -> float:
    return math.fsum(flow.goodput_mbps for flow in point.flows)


_HEIGHTS_IN = (2.1, 1.7)


def draw_by_load(inputs: Inputs) -> list[Path]:
    """Draw one chart per size and matrix that ran at several loads and differs in nothing else; see
    `registry.Chart.draw`."""
    of = [
        study
        for study in studies(inputs.points, lambda point: point.spec.workload.matrix)
        if _is_by_load(study)
    ]
    return saving.draw_each(
        "by_load",
        [(study.named(), study) for study in of],
        inputs.out,
        _load_chart,
        lambda s: f"k{s.topology.k}-{s.workload.matrix}",
    )


def load(point: Point) -> float:
    """Return the mean number of connections per host."""
    return len(point.flows) / point.hosts


def _loads(study: Study) -> dict[str, float]:
    """Return the connections per host of each matrix, ascending, from the first network that has it."""
    found: dict[str, float] = {}
    for point in study.points:
        found.setdefault(point.matrix, load(point))
    return dict(sorted(found.items(), key=lambda pair: pair[1]))


def _is_by_load(study: Study) -> bool:
    loads = list(_loads(study).values())
    return len(set(loads)) == len(loads) > 1


def load_finding(study: Study) -> str:
    """Return the title: which curve gains most over TCP on the first network, and at what load.

    Curves with suspect points count only if there are no others.
    """
    others = [curve for curve in study.curves if curve.subflows > 1 or curve.place]
    good = [curve for curve in others if not study.dubious(curve)]
    gains = {
        (curve, matrix): gain
        for curve in good or others
        for matrix in study.matrices
        if (gain := study.mean_gain(curve, matrix, per_host_pct)) is not None
    }
    if not gains:
        return "Throughput by load"
    curve, matrix = max(gains, key=gains.__getitem__)
    at = f"at {_loads(study)[matrix]:.2g} connections per host"
    doubt = " (suspect)" if study.dubious(curve) else ""
    return f"{study.label(curve)}{doubt}: up to {gains[curve, matrix]:.2f} times {study.baseline}, {at}"


def _load_chart(study: Study) -> Figure:
    sheet = Sheet(*((height, 1) for height in _HEIGHTS_IN))
    throughput, gain = sheet.axes[0][0], sheet.axes[1][0]
    loads = _loads(study)
    for curve in study.curves:
        reached = {m: [per_host_pct(point) for point in study.of(curve, m)] for m in loads}
        gains = {m: study.gains(curve, m, per_host_pct) for m in loads}
        _curve(throughput, curve, loads, reached, study.dubious(curve))
        _curve(gain, curve, loads, gains, study.dubious(curve))
    for axes in (throughput, gain):
        _load_axis(axes, list(loads.values()))
    throughput.set_ylabel("goodput per host\n(% of one NIC)")
    gain.set_ylabel(study.gain_axis.replace(" on ", "\non "))
    gain.axhline(1, color=style.FAINT, lw=0.8, zorder=1)
    gain.set_xlabel("mean number of connections per host")
    subtitle = f"{' and '.join(study.networks)}: {style.workload(study.points[0].spec)}, by load"
    legend = [
        Line2D([], [], color=c.colour, ls=c.line, marker=c.marker, ms=4.5, label=study.label(c))
        for c in study.curves
    ]
    return sheet.finish(Text(load_finding(study), subtitle, study.caption), legend)


def _curve(
    axes: Axes, curve: Curve, loads: Mapping[str, float], values: Mapping[str, Sequence[float]], dubious: bool
) -> None:
    """Draw the mean over the seeds at every load that was measured."""
    at = [(loads[matrix], of) for matrix, of in values.items() if of]
    if at:
        axes.errorbar(
            [x for x, _ in at], [statistics.fmean(of) for _, of in at],
            yerr=[interval_pct(of) or 0.0 for _, of in at], color=curve.colour, ls=curve.line,
            marker=curve.marker, ms=4.5, lw=1.6, capsize=2.5, zorder=3 + curve.place,
            markerfacecolor="white" if dubious else curve.colour,
        )  # fmt: skip


def _load_axis(axes: Axes, loads: Sequence[float]) -> None:
    """Make the axis logarithmic, with a tick at every load."""
    axes.set_xscale("log")
    axes.set_xticks(loads, [f"{round(load, 2):g}" for load in loads])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_ylim(bottom=0)


_MATRIX_ROW_IN, _MATRIX_MIN_IN = 0.3, 0.9


def draw_by_matrix(inputs: Inputs) -> list[Path]:
    """Draw one chart per size with all its matrices; see `registry.Chart.draw`."""
    of = studies(inputs.points, lambda _: "matrices")
    return saving.draw_each(
        "by_matrix",
        [(study.named(), study) for study in of],
        inputs.out,
        _matrix_chart,
        lambda s: f"k{s.topology.k}",
    )


def by_gain(study: Study) -> dict[str, float]:
    """Return the gain of the last curve (most subflows, last network) by matrix, the largest first; 0 without
    TCP."""
    last = study.curves[-1]
    gains = {matrix: study.mean_gain(last, matrix, per_sender_pct) or 0.0 for matrix in study.matrices}
    return dict(sorted(gains.items(), key=lambda pair: -pair[1]))


def matrix_finding(study: Study) -> str:
    """Return the title: under which matrix the last curve gains most, and under which least."""
    gains = {matrix: gain for matrix, gain in by_gain(study).items() if gain}
    if not gains or study.curves[-1].subflows == 1:
        return "Throughput by traffic matrix"
    most, *_, least = [*gains, *gains]
    who = study.label(study.curves[-1]) + (" (suspect)" if study.dubious(study.curves[-1]) else "")
    words = study.words
    rest = f", {gains[least]:.2f} with {words[least]}" if most != least else ""
    return f"{who}: {gains[most]:.2f} times {study.baseline} with {words[most]}{rest}"


def _matrix_chart(study: Study) -> Figure:
    rows = list(by_gain(study))
    height = max(_MATRIX_MIN_IN, _MATRIX_ROW_IN * len(rows))
    sheet = Sheet((height, 1), (height, 1))
    throughput, gain = sheet.axes[0][0], sheet.axes[1][0]
    for place, curve in enumerate(study.curves):
        off = (place - (len(study.curves) - 1) / 2) * 0.5 / len(study.curves)
        reached = {m: [per_sender_pct(point) for point in study.of(curve, m)] for m in rows}
        gains = {m: study.gains(curve, m, per_sender_pct) for m in rows}
        _marks(throughput, curve, reached, off, study.dubious(curve))
        _marks(gain, curve, gains, off, study.dubious(curve))
    for axes in (throughput, gain):
        style.grid_of_rows(axes)
        axes.set_yticks(range(len(rows)), [study.words[matrix] for matrix in rows], fontsize=8)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.margins(x=0.06)
        axes.set_xlim(left=0)
    throughput.set_xlabel("goodput per sending host (% of one NIC)")
    gain.axvline(1, color=style.FAINT, lw=0.8, zorder=1)
    gain.set_xlabel(study.gain_axis)
    subtitle = f"{' and '.join(study.networks)}, by traffic matrix"
    legend = [
        Line2D([], [], ls="", ms=6, color=c.colour, marker=c.marker, label=study.label(c))
        for c in study.curves
    ]
    return sheet.finish(Text(matrix_finding(study), subtitle, study.caption), legend)


def _marks(
    axes: Axes, curve: Curve, values: Mapping[str, Sequence[float]], off: float, dubious: bool
) -> None:
    """Draw one row per matrix; the curves' marks are slightly apart, so that none hides another."""
    for y, of in enumerate(values.values()):
        if of:
            axes.errorbar(
                statistics.fmean(of), y + off, xerr=interval_pct(of), ls="", ms=6, capsize=2.5,
                color=curve.colour, marker=curve.marker, zorder=4,
                markerfacecolor="white" if dubious else curve.colour,
            )  # fmt: skip


_NETWORK_ROW_IN, _NETWORK_MIN_IN = 0.36, 1.0
_APART = 0.12
"""Rows between the marks of two transports, so that none hides another."""
_NETWORK_MARKERS = {1: "s", 2: "v", 4: "o", 8: "^"}
_OTHER = "D"


def draw_by_network(inputs: Inputs) -> list[Path]:
    """Draw one chart per setting, its networks side by side; see `registry.Chart.draw`."""
    measured = (p for p in panels(inputs.points, inputs.expected) if any(_points(p, n) for n in p.subflows))
    of = [
        (group[0].spec.neutral("topology"), sorted(group, key=lambda panel: -(gain(panel) or 0.0)))
        for group in together(map(_usually_routed, measured), "topology")
    ]
    return saving.draw_each("by_network", of, inputs.out, _network_chart, lambda spec: spec.workload.matrix)


def _usually_routed(panel: Panel) -> Panel:
    """Give BCube's own routing the name of the usual one, so that its row stands beside the others."""
    if panel.spec.routing != DIGITS:
        return panel
    return dataclasses.replace(panel, spec=dataclasses.replace(panel.spec, routing=USUAL_ROUTING))


def _points(panel: Panel, subflows: int) -> list[Point]:
    return [point for point in panel.best(subflows) if point.mean_pct is not None and point.flows]


def _goodput(point: Point) -> float:
    return point.mean_pct or 0.0


def gain(panel: Panel) -> float | None:
    """Return the goodput with the largest number of subflows over that of TCP; None without either."""
    most = max(panel.subflows)
    tcp, mptcp = _points(panel, 1), _points(panel, most)
    if most == 1 or not mptcp or not any(map(_goodput, tcp)):
        return None
    return statistics.fmean(map(_goodput, mptcp)) / statistics.fmean(map(_goodput, tcp))


def network_finding(of: Sequence[Panel]) -> str:
    """Return the title: where the largest number of subflows gains most over TCP, and where least."""
    most = max(of[0].subflows)
    gains = {style.network(panel.spec): gained for panel in of if (gained := gain(panel))}
    if not gains:
        return "Goodput and fairness by network"
    best, least = max(gains, key=gains.__getitem__), min(gains, key=gains.__getitem__)
    rest = f", least on {least}, {gains[least]:.2f} times" if len(gains) > 1 else ""
    return f"MPTCP {most} gains most on {best}, {gains[best]:.2f} times TCP{rest}"


def _network_chart(of: Sequence[Panel]) -> Figure:
    height = max(_NETWORK_MIN_IN, _NETWORK_ROW_IN * len(of))
    sheet = Sheet((height, 1), (height, 1))
    goodput, fairness = sheet.axes[0][0], sheet.axes[1][0]
    for axes, value_of in ((goodput, _goodput), (fairness, jain)):
        _rows(axes, of, value_of)
    goodput.set_xlim(left=0)
    goodput.axvline(100, color=style.FAINT, lw=0.8, zorder=1)
    goodput.set_xlabel(GOODPUT_PCT_MEAN.axis_in(style.OF_ONE_FLOW))
    fairness.set_xlim(0, 1.03)
    fairness.set_xlabel(JAIN.about)
    counts = [n for n in of[0].subflows if any(_points(panel, n) for panel in of)]
    legend = [_key(n) for n in counts]
    shown = [point for panel in of for n in counts for point in _points(panel, n)]
    subtitle = f"{style.workload(of[0].spec)} on {len(of)} network{'s' * (len(of) > 1)}"
    return sheet.finish(Text(network_finding(of), subtitle, _caption(of, shown)), legend)


def _key(subflows: int) -> Line2D:
    return Line2D(
        [], [], ls="", ms=6, color=style.colour(subflows), marker=_NETWORK_MARKERS.get(subflows, _OTHER),
        label=style.transport(subflows),
    )  # fmt: skip


def _rows(axes: Axes, of: Sequence[Panel], value_of: Callable[[Point], float]) -> None:
    axes.grid(axis="y", visible=False)
    for y, panel in enumerate(of):
        axes.axhline(y, color=style.GRID, lw=0.8, zorder=0)
        off = _APART * (len(panel.subflows) - 1) / 2
        for place, n in enumerate(panel.subflows):
            values = [value_of(point) for point in _points(panel, n)]
            if values:
                axes.errorbar(
                    statistics.fmean(values), y + _APART * place - off, xerr=interval_pct(values), ls="",
                    ms=6.5, capsize=2.5,
                    color=style.colour(n), marker=_NETWORK_MARKERS.get(n, _OTHER), zorder=4,
                    markerfacecolor="white" if panel.dubious(n) else style.colour(n),
                )  # fmt: skip
    axes.set_yticks(range(len(of)), [f"{style.network(p.spec)}\n{p.hosts} hosts" for p in of], fontsize=7.5)
    axes.set_ylim(len(of) - 0.5, -0.5)


def _caption(of: Sequence[Panel], shown: Sequence[Point]) -> Caption:
    most = max(len(panel.seeds) for panel in of)
    return Caption(style.parameters(*of), [*style.doubts(shown), style.intervals(most), "Networks by gain."])
