"""Points that differ in network, traffic matrix, transport and seed, for charts of gains.

A gain is goodput divided by that of TCP on the first network, whose hosts have one NIC, for the same seed.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from model.result import Status
from model.spec import RunSpec, TopologySpec, WorkloadSpec
from plots.data import Panel, Point, panels
from plots.shared import style
from plots.shared.naming import shape
from plots.shared.sheet import Caption
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
