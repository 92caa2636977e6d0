"""Points as charts receive them, published levels, and panels: the points of one setting.

A panel holds the points that differ at most in subflows, seed and sampling (`RunSpec.key`). Suspect points
are kept apart from good ones, so that no chart averages them in by accident.
"""

from __future__ import annotations

import dataclasses
import operator
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import topos
from analysis.quantities import Quantity
from analysis.stats import mean_interval
from fabric.plan import FRAME_BITS
from harness.metrics.published import Published
from harness.results.point_results import PointResult
from model import transports
from model.result import PortRow, Status
from model.spec import RunSpec
from plots.shared.naming import setting_order

Made = TypeVar("Made")
MIN_SEEDS_FOR_INTERVAL = 6
MIN_REPETITIONS_FOR_INTERVAL = 3
"""Of real hosts, whose points cost more."""
REPEATED = ("seed", "transport.subflows")
"""Fields in which the points of one panel may differ."""
TRANSPORT = (
    "transport.cc",
    "transport.algorithm",
    "transport.join_after_ms",
    "transport.join_after_bytes",
    "routing",
    "stack.dup_threshold",
)
"""Fields in which compared algorithms may differ."""
_OF_SENDERS = ("routing", "stack.dup_threshold", "link.ecn_pkts")
"""Fields in which transports of one panel may differ, but not the points of one transport."""
_LAYERS = ("host", "edge", "agg", "core")


@dataclass(frozen=True)
class Inputs:
    """What a chart is drawn from: points, into the folder `out`. `expected` are subflow counts that belong on
    the axes even if no point has them, `levels` the published numbers to draw, `marks` published places on
    the horizontal axis, such as loads. `chart` begins the files' names, `title` is the title of charts whose
    points give no finding."""

    points: Iterable[PointResult]
    out: Path
    expected: Sequence[int] = ()
    levels: Sequence[Published] = ()
    marks: Sequence[float] = ()
    chart: str = ""
    title: str = ""
    applies: Callable[[Published, RunSpec], bool] = lambda _level, _spec: True
    """Whether a published number is about points with the settings of this one."""

    def is_beside(self, level: Published, panel: Panel) -> bool:
        """Return whether a published number is about networks and traffic of this kind, of any size, and
        about the settings of all points of its transport."""
        topology, matrix = panel.spec.topology, level.workload.partition(":")[0]
        network = topology.kind, topos.shape(topology.kind, topology.params)
        if (level.topology, level.shape, matrix) != (*network, panel.spec.workload.matrix):
            return False
        about = [
            p for p in panel.points if p.subflows == level.subflows and level.algorithm in {"", p.algorithm}
        ]
        return all(self.applies(level, point.spec) for point in about or panel.points)

    def beside(self, panel: Panel, quantity: Quantity) -> list[Published]:
        """Return the published values of the quantity for this panel."""
        return [
            level
            for level in self.levels
            if level.metric.quantity == quantity
            if level.subflows in panel.subflows and self.is_beside(level, panel)
        ]


def good(points: Sequence[PointResult]) -> Sequence[PointResult]:
    """Return the good points; all of them where none is good."""
    return [point for point in points if point.status is Status.OK] or points


@dataclass(frozen=True)
class Cell:
    """The points of one subflow count, one per seed: `ok` and `suspect` points have a number, `lost` points
    (failed, or without a baseline) have none."""

    ok: tuple[PointResult, ...]
    suspect: tuple[PointResult, ...]
    lost: tuple[PointResult, ...]

    @classmethod
    def of(cls, points: Iterable[PointResult]) -> Cell:
        here = sorted(points, key=lambda p: p.seed)
        usable = [p for p in here if not p.failed and p.mean_pct is not None]
        return cls(
            ok=tuple(p for p in usable if p.status is Status.OK),
            suspect=tuple(p for p in usable if p.status is Status.SUSPECT),
            lost=tuple(p for p in here if p not in usable),
        )

    @property
    def means_pct(self) -> list[float]:
        """Mean goodput of each good seed, in %."""
        return [p.mean_pct for p in self.ok if p.mean_pct is not None]

    @property
    def mean_pct(self) -> float | None:
        """Mean over the good seeds, in %; None without any."""
        return statistics.fmean(self.means_pct) if self.ok else None

    @property
    def gap(self) -> str:
        """Why there is nothing to draw: `missing`, `failed`, `no baseline`; else empty."""
        if self.ok or self.suspect:
            return ""
        if not self.lost:
            return "missing"
        return "failed" if any(p.failed for p in self.lost) else "no baseline"


@dataclass(frozen=True)
class Panel:
    """The points of one setting.

    `spec` has what they have in common, and default values where they may differ; `subflows` are the counts
    on the axis, drawn or not."""

    spec: RunSpec
    subflows: tuple[int, ...]
    points: tuple[PointResult, ...]

    @property
    def hosts(self) -> int:
        return max(point.hosts for point in self.points)

    @property
    def ccs(self) -> str:
        """The congestion controls of the points: `lia`, `reno+dctcp`."""
        return "+".join(sorted({point.cc for point in self.points}, key=transports.rank))

    @property
    def ecn_pkts(self) -> int:
        """The largest marking threshold of the points; 0 where none marks."""
        return max(point.spec.link.ecn_pkts for point in self.points)

    @property
    def overrides(self) -> tuple[str, ...]:
        return overrides_of(self.points)

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(sorted({point.seed for point in self.points}))

    @property
    def optimum_pct(self) -> float:
        """The largest possible mean goodput in % of one flow alone: 100, or less where flows share the links
        of their hosts."""
        return max((_optimum_pct(point) for point in self.points if point.under_test), default=100.0)

    @property
    def full_queue_ms(self) -> float:
        """The delay in ms that a full queue adds; 0 where queues have no limit."""
        return self.delay_ms(self.spec.link.queue_pkts)

    def delay_ms(self, pkts: float) -> float:
        """Return the time in ms that a port takes to send `pkts` full packets."""
        return pkts * FRAME_BITS / self.spec.link.rate_mbps / 1000

    def best(self, subflows: int) -> list[PointResult]:
        """Return the good points of a subflow count, one per seed; the suspect ones where none is good."""
        ran = self._ran(subflows)
        return [point for point in ran if point.status is ran[0].status]

    def dubious(self, subflows: int) -> bool:
        """Return whether `best` has only suspect points."""
        return any(point.status is Status.SUSPECT for point in self.best(subflows))

    def absence(self, subflows: int) -> str:
        """Return why `best` is empty: `failed` or `missing`; empty if it is not."""
        if self.best(subflows):
            return ""
        return "failed" if any(point.subflows == subflows for point in self.points) else "missing"

    def first_of_each(
        self, most: int, made: Callable[[PointResult], Made | None]
    ) -> tuple[list[Made], Mapping[int, str], list[int]]:
        """Apply `made` to one point per transport, for at most `most` transports. Return what it returned, by
        ascending subflow counts, why other counts have none, and the counts for which there is no room.

        The point is the first, good ones before suspect ones, for which `made` does not return None. It is
        not called for further points, as it may read samples.
        """
        ran = {n: points for n in self.subflows if (points := self._ran(n))}
        gaps = {n: self.absence(n) for n in self.subflows if n not in ran}
        preferred = chosen(list(ran), most)
        items: dict[int, Made] = {}
        for n in [*preferred, *(n for n in ran if n not in preferred)]:
            if len(items) == most:
                break
            one = next((one for point in ran[n] if (one := made(point)) is not None), None)
            if one is None:
                gaps[n] = "not sampled"
            else:
                items[n] = one
        left_out = [n for n in ran if n not in items and n not in gaps]
        return [items[n] for n in sorted(items)], gaps, left_out

    def _ran(self, subflows: int) -> list[PointResult]:
        here = [p for p in self.points if p.subflows == subflows and not p.failed]
        return sorted(here, key=lambda p: (p.status is not Status.OK, p.seed))

    def cell(self, subflows: int) -> Cell:
        return Cell.of(p for p in self.points if p.subflows == subflows)


def overrides_of(points: Iterable[PointResult]) -> tuple[str, ...]:
    """Return the settings that any of the points has instead of its figure's, in words, each once."""
    return tuple(dict.fromkeys(words for point in points for words in point.overrides))


def chosen(counts: Sequence[int], most: int) -> list[int]:
    """Return at most `most` (two or more) of the ascending counts: first, last, and evenly between."""
    if len(counts) <= most:
        return list(counts)
    return [counts[round(i * (len(counts) - 1) / (most - 1))] for i in range(most)]


def between_switches(port: PortRow) -> bool:
    """Return whether the link joins two switches, so that routing decides how much it carries."""
    return "host" not in port.layer.split("-")


def of_switch(port: PortRow) -> bool:
    """Return whether the port belongs to a switch, not to a host."""
    return not port.layer.startswith("host-")


def link_layer(port: PortRow) -> str:
    """Return the layers that a port's link joins, the lower one first: `edge-agg`."""
    ends = port.layer.split("-")
    return "-".join(sorted(ends, key=lambda end: _LAYERS.index(end) if end in _LAYERS else len(_LAYERS)))


def _optimum_pct(point: PointResult) -> float:
    """Divide the links of the sending or of the receiving hosts, whichever are fewer, by the flows."""
    links = Counter(port.node for port in point.ports if port.layer.startswith("host-"))
    ends = ({flow.src for flow in point.under_test}, {flow.dst for flow in point.under_test})
    fewer = min(sum(links.get(host, 1) for host in hosts) for hosts in ends)
    return 100 * fewer / len(point.under_test)


def panels(
    points: Iterable[PointResult],
    expected: Sequence[int] = (),
    ignoring: Iterable[str] = (),
    apart: Callable[[PointResult], object] = lambda _: None,
) -> list[Panel]:
    """Group points that differ at most in `REPEATED` and in the fields `ignoring`; baselines are left out.

    Points for which `apart` returns different values are kept apart too. The axis of every panel has the
    counts `expected` and those of any point, so that gaps show.
    """
    drawable = [point for point in points if not point.is_baseline]
    counts = tuple(sorted({*expected, *(point.subflows for point in drawable)}))
    ignored = (*REPEATED, *ignoring)
    groups: dict[tuple[str, object], list[PointResult]] = {}
    for point in drawable:
        groups.setdefault((point.spec.key(ignoring=ignored), apart(point)), []).append(point)
    made = [
        Panel(of[0].spec.neutral(*(path for path in ignored if path not in kept)), counts, tuple(of))
        for group in groups.values()
        for kept, of in _unpooled(group, {*ignored})
    ]
    return sorted(made, key=lambda panel: setting_order(panel.spec))


def _unpooled(
    points: list[PointResult], ignored: Set[str]
) -> Iterator[tuple[tuple[str, ...], list[PointResult]]]:
    """Yield the points of each panel, and the fields among `ignored` in which other panels differ from it.

    Transports may differ in the fields `_OF_SENDERS`. Where one transport has several values of them, each
    combination is a panel of its own, so that they are not pooled; transports with one value are in all."""
    if not ignored >= {*TRANSPORT}:
        yield (), points
        return
    of_sender: dict[object, list[RunSpec]] = {}
    for point in points:
        of_sender.setdefault(_sender(point), []).append(point.spec)
    of = {path: operator.attrgetter(path) for path in _OF_SENDERS if path in ignored}
    varying = {
        (sender, path)
        for sender, specs in of_sender.items()
        for path, value in of.items()
        if len(set(map(value, specs))) > 1
    }

    def place(point: PointResult) -> tuple[object, ...]:
        sender = _sender(point)
        return tuple(value(point.spec) if (sender, path) in varying else None for path, value in of.items())

    def holds(one: tuple[object, ...], other: tuple[object, ...]) -> bool:
        return all(a in (None, b) for a, b in zip(one, other, strict=True))

    places = dict.fromkeys(map(place, points))
    for chosen in places:
        if not any(holds(chosen, each) for each in places if each != chosen):
            own = [point for point in points if place(point) == chosen]
            kept = tuple(path for path, value in zip(of, chosen, strict=True) if value is not None)
            yield kept, [*own, *(p for p in points if place(p) != chosen and holds(place(p), chosen))]


def _sender(point: PointResult) -> tuple[object, ...]:
    of = point.spec
    return point.algorithm, point.cc, of.transport.algorithm, point.subflows, bool(of.link.ecn_pkts)


def together(of: Iterable[Panel], *ignoring: str) -> list[list[Panel]]:
    """Group panels that differ at most in the fields `ignoring`."""
    groups: dict[str, list[Panel]] = {}
    for panel in of:
        groups.setdefault(panel.spec.key(ignoring=ignoring), []).append(panel)
    return list(groups.values())


def of_both_engines(panel: Panel, traffic: str) -> Panel:
    """Return the panel with a spec that names all engines of its points, and their traffic."""
    engines = " and ".join(sorted({point.spec.engine for point in panel.points}))
    return dataclasses.replace(panel, spec=dataclasses.replace(panel.spec, engine=engines, traffic=traffic))


def common(of: Sequence[Panel], *ignoring: str) -> Panel:
    """Return one panel of all points of panels that differ at most in the fields `ignoring`."""
    points = tuple(point for panel in of for point in panel.points)
    return dataclasses.replace(of[0], spec=of[0].spec.neutral(*ignoring), points=points)


def jain(point: PointResult) -> float:
    """Jain's index of the point's flows: 1 where all get the same."""
    goodputs = [flow.goodput_mbps for flow in point.under_test]
    return sum(goodputs) ** 2 / (len(goodputs) * sum(x * x for x in goodputs)) if any(goodputs) else 0.0


def interval_pct(means_pct: Sequence[float], least: int = MIN_SEEDS_FOR_INTERVAL) -> float | None:
    """Return half the width of the 95 % interval of the mean, None for fewer than `least` values."""
    return mean_interval(means_pct).half if len(means_pct) >= least else None
