"""The same traffic on several networks: throughput and gain by load, by traffic matrix and by network
(SIGCOMM 2011).

A gain is goodput divided by that of TCP on the first network, whose hosts have one NIC, for the same seed.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from analysis.quantities import GOODPUT_PCT_MEAN, JAIN
from controllers.routing import DIGITS
from harness.results.point_results import PointResult
from model.spec import RunSpec, TopologySpec, WorkloadSpec
from model.transports import USUAL_ROUTING
from plots.data import Inputs, Panel, good, jain, panels, together
from plots.shared import kinds, saving, style
from plots.shared.kinds import Look, Mean
from plots.shared.naming import shape
from plots.shared.sheet import Sheet
from topos import TOPOLOGIES
from workloads import matrices

ValueOf = Callable[[PointResult], float]
_MARKERS = ("o", "^", "D", "v")
_LINES = ("-", (0, (1, 1.1)), "-.", (0, (5, 1, 1, 1, 1, 1)))
"""Line styles of the first network, the second, and so on; dashes mark suspect points."""


@dataclass(frozen=True, order=True)
class Curve:
    """One transport on one network, the `place`-th of its study."""

    place: int
    network: str
    subflows: int


@dataclass(frozen=True)
class Study:
    """All points of one chart; `spec` has what they have in common, default values elsewhere."""

    spec: RunSpec
    points: tuple[PointResult, ...]

    def named(self) -> RunSpec:
        """The setting that names the chart's files: the first network's size and the first matrix."""
        first = self.points[0].spec
        sized = TopologySpec(params={"k": first.topology.k})
        return dataclasses.replace(self.spec, topology=sized, workload=WorkloadSpec(first.workload.matrix))

    @property
    def networks(self) -> list[str]:
        """Names of the networks, in the order of the registry of topologies."""
        kinds_of = list(TOPOLOGIES)
        ordered = sorted(self.points, key=lambda p: (kinds_of.index(p.spec.topology.kind), shape(p.spec)))
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
        labels = {
            point.matrix: matrices.words(point.spec.workload.matrix, point.spec.workload.params)
            for point in self.points
        }
        names = list(labels.values())
        return {m: name if name and names.count(name) == 1 else m for m, name in labels.items()}

    def of(self, curve: Curve, matrix: str) -> Sequence[PointResult]:
        """Return one point per seed: the good ones, or the suspect ones where none is good."""
        return good(
            [
                point
                for point in self.points
                if (point.matrix, point.subflows) == (matrix, curve.subflows)
                and style.network(point.spec) == curve.network
            ]
        )

    def dubious(self, curve: Curve) -> bool:
        """Return whether any mark of the curve rests on suspect points."""
        return any(point.suspect for matrix in self.matrices for point in self.of(curve, matrix))

    def reached(self, curve: Curve, matrix: str, value_of: ValueOf) -> Mean | None:
        return kinds.mean_of(map(value_of, self.of(curve, matrix)), hollow=self.dubious(curve))

    def gains(self, curve: Curve, matrix: str, value_of: ValueOf) -> list[float]:
        """Return one gain per seed; none where TCP did not run on the first network."""
        tcp = {p.seed: value_of(p) for p in self.of(Curve(0, self.networks[0], 1), matrix)}
        return [value_of(point) / tcp[point.seed] for point in self.of(curve, matrix) if tcp.get(point.seed)]

    def gain(self, curve: Curve, matrix: str, value_of: ValueOf) -> Mean | None:
        return kinds.mean_of(self.gains(curve, matrix, value_of), hollow=self.dubious(curve))

    def label(self, curve: Curve) -> str:
        """Return `MPTCP 8`, with the network where there are several."""
        transport = style.transport(curve.subflows)
        return f"{transport}, {curve.network}" if len(self.networks) > 1 else transport

    def look(self, curve: Curve) -> Look:
        place = curve.place % len(_MARKERS)
        return Look(self.label(curve), style.colour(curve.subflows), _MARKERS[place], _LINES[place])

    @property
    def baseline(self) -> str:
        """What gains are relative to."""
        return f"TCP on {self.networks[0]}" if len(self.networks) > 1 else "TCP"

    def finish(self, sheet: Sheet, title: str, about: str, looks: Iterable[Look]) -> Figure:
        """Lay the chart out; its caption has the settings of every network."""
        of_networks = [
            Panel(
                dataclasses.replace(self.spec, topology=of[0].spec.topology),
                tuple(sorted({point.subflows for point in of})),
                of,
            )
            for name in self.networks
            if (of := tuple(point for point in self.points if style.network(point.spec) == name))
        ]
        notes = [*style.doubts(self.points), style.intervals(len({point.seed for point in self.points}))]
        subtitle = f"{' and '.join(self.networks)}{about}"
        return sheet.finish(
            title, subtitle, style.parameters(*of_networks), notes, [look.key() for look in looks]
        )


def studies(points: Iterable[PointResult], by: Callable[[PointResult], str]) -> list[Study]:
    """Group points by what they have in common: their size, all of the setting but network and matrix, and
    what `by` returns. Points without flows, failed ones and baselines are left out."""
    usable = (point for point in points if point.under_test and not point.failed)
    of = panels(usable, (), ("topology", "workload"), lambda p: (p.spec.topology.k, by(p)))
    made = [Study(panel.spec, panel.points) for panel in of]
    return sorted(made, key=lambda study: study.points[0].spec.topology.k)


def per_host_pct(point: PointResult) -> float:
    """Return the goodput of all flows in % of the rate of one link of every host."""
    return 100 * _total_mbps(point) / point.hosts / point.rate_mbps


def per_sender_pct(point: PointResult) -> float:
    """Return the mean goodput of a sending host in % of one link; above 100 where it fills several."""
    return 100 * _total_mbps(point) / len({flow.src for flow in point.under_test}) / point.rate_mbps


def _total_mbps(point: PointResult) -> float:
    return math.fsum(flow.goodput_mbps for flow in point.under_test)


def _loads(study: Study) -> dict[str, float]:
    """Return the mean number of connections per host of each matrix, ascending, from the first network that
    has it."""
    found: dict[str, float] = {}
    for point in study.points:
        found.setdefault(point.matrix, len(point.under_test) / point.hosts)
    return dict(sorted(found.items(), key=lambda pair: pair[1]))


def _at_several_loads(inputs: Inputs) -> Iterable[tuple[RunSpec, Study]]:
    for study in studies(inputs.points, lambda point: point.spec.workload.matrix):
        loads = list(_loads(study).values())
        if len(set(loads)) == len(loads) > 1:
            yield study.named(), study


def load_finding(study: Study) -> str:
    """Return the title: which curve gains most over TCP on the first network, and at what load.

    Curves with suspect points count only if there are no others.
    """
    others = [curve for curve in study.curves if curve.subflows > 1 or curve.place]
    sure = [curve for curve in others if not study.dubious(curve)]
    gains = {
        (curve, matrix): gain.value
        for curve in sure or others
        for matrix in study.matrices
        if (gain := study.gain(curve, matrix, per_host_pct)) is not None
    }
    if not gains:
        return ""
    curve, matrix = max(gains, key=gains.__getitem__)
    at = f"at {_loads(study)[matrix]:.2g} connections per host"
    doubt = " (suspect)" if study.dubious(curve) else ""
    return f"{study.label(curve)}{doubt}: up to {gains[curve, matrix]:.2f} times {study.baseline}, {at}"


@saving.per_group(_at_several_loads, lambda spec: f"k{spec.topology.k}-{spec.workload.matrix}")
def by_load(study: Study, inputs: Inputs) -> Figure:
    sheet = Sheet((2.1, 1), (1.7, 1))
    throughput, gain = sheet.axes[0][0], sheet.axes[1][0]
    loads = _loads(study)
    for curve in study.curves:
        look, above = study.look(curve), 3 + curve.place
        reached, gained = (
            {at: of(curve, matrix, per_host_pct) for matrix, at in loads.items()}
            for of in (study.reached, study.gain)
        )
        kinds.curve(throughput, reached, look, zorder=above)
        kinds.curve(gain, gained, look, zorder=above)
    for axes in (throughput, gain):
        axes.set_xscale("log")
        axes.set_xticks(list(loads.values()), [f"{round(load, 2):g}" for load in loads.values()])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_ylim(bottom=0)
    throughput.set_ylabel("goodput per host\n(% of one NIC)")
    gain.set_ylabel(f"times {study.baseline}".replace(" on ", "\non "))
    gain.axhline(1, color=style.FAINT, lw=0.8, zorder=1)
    gain.set_xlabel("mean number of connections per host")
    about = f": {style.workload(study.points[0].spec)}, by load"
    return study.finish(sheet, load_finding(study) or inputs.title, about, map(study.look, study.curves))


def by_gain(study: Study) -> dict[str, float]:
    """Return the gain of the last curve (most subflows, last network) by matrix, the largest first; 0 without
    TCP."""
    last = study.curves[-1]
    gains = {matrix: study.gain(last, matrix, per_sender_pct) for matrix in study.matrices}
    values = {matrix: gain.value if gain else 0.0 for matrix, gain in gains.items()}
    return dict(sorted(values.items(), key=lambda pair: -pair[1]))


def matrix_finding(study: Study) -> str:
    """Return the title: under which matrix the last curve gains most, and under which least."""
    gains = {matrix: gain for matrix, gain in by_gain(study).items() if gain}
    if not gains or study.curves[-1].subflows == 1:
        return ""
    most, *_, least = [*gains, *gains]
    who = study.label(study.curves[-1]) + (" (suspect)" if study.dubious(study.curves[-1]) else "")
    words = study.words
    rest = f", {gains[least]:.2f} with {words[least]}" if most != least else ""
    return f"{who}: {gains[most]:.2f} times {study.baseline} with {words[most]}{rest}"


@saving.per_group(
    lambda inputs: [(study.named(), study) for study in studies(inputs.points, lambda _: "matrices")],
    lambda spec: f"k{spec.topology.k}",
)
def by_matrix(study: Study, inputs: Inputs) -> Figure:
    of = list(by_gain(study))
    height = max(0.9, 0.3 * len(of))
    sheet = Sheet((height, 1), (height, 1))
    throughput, gain = sheet.axes[0][0], sheet.axes[1][0]
    looks = [dataclasses.replace(study.look(curve), dash="") for curve in study.curves]
    for axes, value in ((throughput, study.reached), (gain, study.gain)):
        for place, (curve, look) in enumerate(zip(study.curves, looks, strict=True)):
            off = kinds.beside(place, len(study.curves), 0.5)
            _row_marks(axes, [value(curve, matrix, per_sender_pct) for matrix in of], look, off)
        kinds.rows(axes, [study.words[matrix] for matrix in of])
        axes.margins(x=0.06)
        axes.set_xlim(left=0)
    throughput.set_xlabel("goodput per sending host (% of one NIC)")
    gain.axvline(1, color=style.FAINT, lw=0.8, zorder=1)
    gain.set_xlabel(f"times {study.baseline}")
    return study.finish(sheet, matrix_finding(study) or inputs.title, ", by traffic matrix", looks)


def _row_marks(axes: Axes, means: Sequence[Mean | None], look: Look, off: float) -> None:
    for y, mean in enumerate(means):
        if mean is not None:
            kinds.mark(axes, mean, y + off, look)


_APART = 0.12
"""Rows between the marks of two transports, so that none hides another."""
_NETWORK_MARKERS = {1: "s", 2: "v", 4: "o", 8: "^"}
_OTHER = "D"


def _usually_routed(panel: Panel) -> Panel:
    """Give BCube's own routing the name of the usual one, so that its row stands beside the others."""
    if panel.spec.routing != DIGITS:
        return panel
    return dataclasses.replace(panel, spec=dataclasses.replace(panel.spec, routing=USUAL_ROUTING))


def _points(panel: Panel, subflows: int) -> list[PointResult]:
    return [point for point in panel.best(subflows) if point.mean_pct is not None and point.under_test]


def _goodput(point: PointResult) -> float:
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
        return ""
    best, least = max(gains, key=gains.__getitem__), min(gains, key=gains.__getitem__)
    rest = f", least on {least}, {gains[least]:.2f} times" if len(gains) > 1 else ""
    return f"MPTCP {most} gains most on {best}, {gains[best]:.2f} times TCP{rest}"


def _networks(inputs: Inputs) -> Iterable[tuple[RunSpec, list[Panel]]]:
    """Yield the networks of each setting, by gain."""
    measured = (p for p in panels(inputs.points, inputs.expected) if any(_points(p, n) for n in p.subflows))
    for group in together(map(_usually_routed, measured), "topology"):
        yield group[0].spec.neutral("topology"), sorted(group, key=lambda panel: -(gain(panel) or 0.0))


@saving.per_group(_networks, lambda spec: spec.workload.matrix)
def by_network(of: Sequence[Panel], inputs: Inputs) -> Figure:
    height = max(1.0, 0.36 * len(of))
    sheet = Sheet((height, 1), (height, 1))
    goodput, fairness = sheet.axes[0][0], sheet.axes[1][0]
    counts = [n for n in of[0].subflows if any(_points(panel, n) for panel in of)]
    looks = {
        n: Look(style.transport(n), style.colour(n), _NETWORK_MARKERS.get(n, _OTHER), "") for n in counts
    }
    for axes, value_of in ((goodput, _goodput), (fairness, jain)):
        kinds.rows(axes, [f"{style.network(p.spec)}\n{p.hosts} hosts" for p in of], size=7.5)
        for place, n in enumerate(of[0].subflows):
            off = _APART * (place - (len(of[0].subflows) - 1) / 2)
            means = [kinds.mean_over(_points(panel, n), value_of) for panel in of]
            if n in looks:
                _row_marks(axes, means, looks[n], off)
        for y in range(len(of)):
            axes.axhline(y, color=style.GRID, lw=0.8, zorder=0)
    goodput.set_xlim(left=0)
    goodput.axvline(100, color=style.FAINT, lw=0.8, zorder=1)
    goodput.set_xlabel(GOODPUT_PCT_MEAN.axis_in(style.OF_ONE_FLOW))
    fairness.set_xlim(0, 1.03)
    fairness.set_xlabel(JAIN.about)
    shown = [point for panel in of for n in counts for point in _points(panel, n)]
    subtitle = f"{style.workload(of[0].spec)} on {len(of)} network{'s' * (len(of) > 1)}"
    notes = [
        *style.doubts(shown),
        style.intervals(max(len(panel.seeds) for panel in of)),
        "Networks by gain.",
    ]
    keys = [look.key() for look in looks.values()]
    return sheet.finish(network_finding(of) or inputs.title, subtitle, style.parameters(*of), notes, keys)
