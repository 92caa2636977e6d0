"""Ways to read a metric off a figure's points: at each point, over TCP, per replica, or over all points of a
seed. Pure, apart from reading sample tables.

A metric is read at each seed and then averaged over the seeds.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

import topos
from analysis.stats import t_quantile
from harness.results.point_results import EnginePair, PointResult, pairs
from model.result import PortRow, Status
from model.spec import TopologySpec
from workloads import matrices


@dataclass(frozen=True)
class Estimate:
    """A metric over `n` repetitions (seeds or replicas): the mean, and the standard deviation between them.

    `spread` is None for a single repetition. `suspect`: at least one point behind it is suspect.
    """

    value: float
    spread: float | None
    n: int
    suspect: bool
    unfinished_pct: float | None = None
    """Share of the flows that had not ended, where the metric leaves them out or counts them with a lower
    bound."""

    @property
    def half(self) -> float | None:
        """Half the 95 % confidence interval of the mean (Student's t); None for fewer than MIN_REPEATS."""
        if self.spread is None or self.n < MIN_REPEATS:
            return None
        return t_quantile(0.975, self.n - 1) * self.spread / math.sqrt(self.n)


class Subject(Protocol):
    """What a statement is about: a network, a workload, and a number of subflows."""

    @property
    def k(self) -> int: ...
    @property
    def workload(self) -> str: ...
    @property
    def subflows(self) -> int: ...
    def is_on(self, network: TopologySpec) -> bool: ...


MIN_REPEATS = 3
"""An interval needs at least this many repetitions."""
Measure = Callable[[Sequence[PointResult], Subject], Estimate | None]
OfPoint = Callable[[PointResult], float | None]
BySubflows = dict[int, PointResult]


def is_about(subject: Subject, point: PointResult) -> bool:
    """Whether the point has the subject's network and workload."""
    return subject.is_on(point.spec.topology) and _has_workload(subject, point)


def points_about(points: Sequence[PointResult], subject: Subject) -> list[PointResult]:
    """Return the points that have the subject's network and workload."""
    return [point for point in points if is_about(subject, point)]


def _has_workload(subject: Subject, point: PointResult) -> bool:
    workload = point.spec.workload
    return matrices.label(workload.matrix, workload.params) == subject.workload


def _seeds(points: Sequence[PointResult], subject: Subject) -> list[BySubflows]:
    """The points of the subject's network and workload: one dictionary per seed."""
    seeds: dict[int, BySubflows] = {}
    for point in points:
        if is_about(subject, point):
            seeds.setdefault(point.spec.seed, {})[point.spec.transport.subflows] = point
    return list(seeds.values())


def _chosen(points: Sequence[PointResult], subject: Subject) -> list[PointResult]:
    """The points with the subject's number of subflows: one per seed."""
    return [seed[subject.subflows] for seed in _seeds(points, subject) if subject.subflows in seed]


def measured_over(
    values: Iterable[tuple[float | None, Iterable[PointResult]]], unfinished_pct: OfPoint | None = None
) -> Estimate | None:
    """Average the values that are not None, each given with the points behind it; None without any.

    `unfinished_pct` reads the share of a point's flows that had not ended. The largest one of each value's
    points is averaged.
    """
    known = [(value, list(behind)) for value, behind in values if value is not None]
    if not known:
        return None
    numbers = [value for value, _ in known]
    return Estimate(
        statistics.fmean(numbers),
        statistics.stdev(numbers) if len(numbers) > 1 else None,
        len(numbers),
        any(point.status is Status.SUSPECT for _, behind in known for point in behind),
        _unfinished(unfinished_pct, [behind for _, behind in known]) if unfinished_pct else None,
    )


def _unfinished(share_of: OfPoint, groups: Sequence[Sequence[PointResult]]) -> float | None:
    shares = [[share for point in group if (share := share_of(point)) is not None] for group in groups]
    largest = [max(of) for of in shares if of]
    return statistics.fmean(largest) if largest else None


def each(value_of: OfPoint) -> Measure:
    """`value_of` each point with the subject's number of subflows."""

    def measure(points: Sequence[PointResult], subject: Subject) -> Estimate | None:
        return measured_over((value_of(point), [point]) for point in _chosen(points, subject))

    return measure


def each_replica(values_of: Callable[[PointResult], Sequence[float]]) -> Measure:
    """All values of each point with the subject's number of subflows: every value is a repetition."""

    def measure(points: Sequence[PointResult], subject: Subject) -> Estimate | None:
        chosen = _chosen(points, subject)
        return measured_over((value, [point]) for point in chosen for value in values_of(point))

    return measure


def over_tcp(value_of: OfPoint) -> Measure:
    """`value_of` at the subject's number of subflows, divided by TCP's with the same seed."""

    def measure(points: Sequence[PointResult], subject: Subject) -> Estimate | None:
        seeds = [seed for seed in _seeds(points, subject) if {subject.subflows, 1} <= set(seed)]
        beside = [(seed[subject.subflows], seed[1]) for seed in seeds]
        return measured_over((ratio(value_of(one), value_of(tcp)), (one, tcp)) for one, tcp in beside)

    return measure


def over_topology(kind: str, value_of: OfPoint) -> Measure:
    """`value_of` on the subject's network, divided by its value on the usual `kind` of the same size, at the
    same seed."""

    def measure(points: Sequence[PointResult], subject: Subject) -> Estimate | None:
        usual = TopologySpec(kind, {topos.TOPOLOGIES[kind].size.name: subject.k})
        others = {
            _key(point): point
            for point in points
            if _is_same_network(point.spec.topology, usual) and _has_workload(subject, point)
        }
        chosen = [point for point in _chosen(points, subject) if _key(point) in others]
        beside = [(point, others[_key(point)]) for point in chosen]
        return measured_over((ratio(value_of(one), value_of(other)), (one, other)) for one, other in beside)

    return measure


def _is_same_network(one: TopologySpec, other: TopologySpec) -> bool:
    """Whether they are equal apart from the number of replicas."""
    return topos.identity(one.kind, one.params) == topos.identity(other.kind, other.params)


def _key(point: PointResult) -> tuple[object, ...]:
    return point.spec.transport.subflows, point.spec.seed


def across(value_of: Callable[[EnginePair], float | None]) -> Measure:
    """`value_of` each point with the subject's number of subflows that two engines ran."""

    def measure(points: Sequence[PointResult], subject: Subject) -> Estimate | None:
        about = points_about(points, subject)
        chosen = [p for p in about if p.spec.transport.subflows == subject.subflows]
        return measured_over((value_of(pair), (pair.emulated, pair.simulated)) for pair in pairs(chosen))

    return measure


def slope(value_of: OfPoint) -> Measure:
    """The least-squares slope of `value_of` against the number of subflows (TCP: 1); from 3 counts on."""

    def of(seed: BySubflows) -> float | None:
        known = [(count, value) for count, point in seed.items() if (value := value_of(point)) is not None]
        if len(known) < 3:
            return None
        counts, values = zip(*known, strict=True)
        return statistics.linear_regression(counts, values).slope

    def measure(points: Sequence[PointResult], subject: Subject) -> Estimate | None:
        return measured_over((of(seed), seed.values()) for seed in _seeds(points, subject))

    return measure


def dip(value_of: OfPoint) -> Measure:
    """`value_of` at the subject's number of subflows minus the mean of its values at one fewer and one
    more."""

    def measure(points: Sequence[PointResult], subject: Subject) -> Estimate | None:
        n = subject.subflows
        seeds = [seed for seed in _seeds(points, subject) if {n, n - 1, n + 1} <= set(seed)]
        trios = [[seed[n], seed[n - 1], seed[n + 1]] for seed in seeds]
        return measured_over((_below_neighbours([value_of(p) for p in trio]), trio) for trio in trios)

    return measure


def _below_neighbours(values: Sequence[float | None]) -> float | None:
    here, before, after = values
    return None if here is None or before is None or after is None else here - (before + after) / 2


def together(value_of: Callable[[Sequence[PointResult]], float | None]) -> Measure:
    """`value_of` all points of a seed that differ in congestion control, link rate or loss rate."""

    def measure(points: Sequence[PointResult], subject: Subject) -> Estimate | None:
        seeds: dict[int, list[PointResult]] = {}
        for point in points:
            if is_about(subject, point) and point.spec.transport.subflows == subject.subflows:
                seeds.setdefault(point.spec.seed, []).append(point)
        return measured_over((value_of(group), group) for group in seeds.values())

    return measure


def ratio(a: float | None, b: float | None) -> float | None:
    """a / b; None where either is unknown or b is 0."""
    return a / b if a is not None and b else None


QUEUE_IN_USE_PKTS = 5.0
"""The variation of a queue with a smaller mean length says nothing."""


def kept(name: str, value_of: OfPoint) -> OfPoint:
    """Return `value_of`, which reads rows or samples of a point alone, as a function that reads each point
    once: run.json keeps the value under `name`. Flows of 822 points take 12 s of CPU time to read.

    A point with a damaged table keeps nothing new: the table may come back."""

    def of(point: PointResult) -> float | None:
        if name in point.readings:
            return point.readings[name]
        value = value_of(point)
        if not point.unreadable:
            point.readings[name] = value
        return value

    return of


def goodput_pct(statistic: str) -> OfPoint:
    """A statistic of the flows' goodputs (`mean`, `minimum`, `median`, `maximum`), in % of the baseline's."""
    return lambda point: getattr(point.goodput_pct, statistic) if point.goodput_pct else None


def goodput_mbps(point: PointResult) -> float | None:
    """The mean goodput of the flows, in Mb/s."""
    return point.goodput_mbps.mean if point.goodput_mbps else None


def goodput_of_link_pct(point: PointResult) -> float | None:
    """The mean goodput in % of the link rate. It needs no baseline, which a saturated machine may lack."""
    return 100 * point.goodput_mbps.mean / point.spec.link.rate_mbps if point.goodput_mbps else None


def recorded(name: str) -> OfPoint:
    """A number that the engine recorded in run.json."""
    return lambda point: point.metric(name)


def flows_unfinished(point: PointResult) -> float | None:
    """The flows that started in the measured window and had not completed when traffic ended; None where
    none started."""
    started, completed = point.metric("flows_started"), point.metric("flows_completed")
    return started - completed if started and completed is not None else None


def _links_between_switches(point: PointResult) -> list[PortRow]:
    return [port for port in point.ports if "host" not in port.layer.split("-")]


def _ports_of_switches(point: PointResult) -> list[PortRow]:
    return [port for port in point.ports if not port.layer.startswith("host-")]


def share_of_links_pct(counts: Callable[[PortRow], bool]) -> OfPoint:
    """The links between switches for which `counts` holds, in %; None where there are none (a star)."""

    def of(point: PointResult) -> float | None:
        links = _links_between_switches(point)
        return 100 * sum(map(counts, links)) / len(links) if links else None

    return of


def links_used_pct(point: PointResult) -> float | None:
    """The mean utilisation of the links between switches, in %."""
    links = _links_between_switches(point)
    return statistics.fmean(port.utilisation_pct for port in links) if links else None


def longest_queue_pkts(point: PointResult) -> float | None:
    """The longest queue of any switch during the run, in packets."""
    return max((float(port.max_queue_pkts) for port in _ports_of_switches(point)), default=None)


def _sampled_queues(point: PointResult) -> tuple[np.ndarray, np.ndarray] | None:
    """Sample times in s, and the packets in each switch queue at these times (times x queues)."""
    lengths, instants = point.read_table("queues"), point.read_table("queue_times")
    if lengths is None or instants is None or not len(instants):
        return None
    times = np.unique(instants["t_s"])
    ports = np.array([port.port for port in _ports_of_switches(point)])
    queued = np.zeros((len(times), len(ports)))
    mine = np.isin(lengths["port"], ports)
    rows = np.searchsorted(times, lengths["t_s"][mine])
    queued[rows, np.searchsorted(ports, lengths["port"][mine])] = lengths["pkts"][mine]
    return times, queued


def bottleneck_queue_pkts(percent: float) -> OfPoint:
    """The length that the queue of the busiest switch port does not exceed in `percent` % of the time."""

    def of(point: PointResult) -> float | None:
        sampled, ports = _sampled_queues(point), _ports_of_switches(point)
        if sampled is None or not ports:
            return None
        busiest = max(range(len(ports)), key=lambda i: ports[i].tx_bytes)
        measured = sampled[1][sampled[0] >= 0]
        return float(np.percentile(measured[:, busiest], percent)) if len(measured) else None

    return of


def buffer_needed_pct(point: PointResult) -> float | None:
    """The length that the busiest queue does not exceed in 99 % of the time, in % of the queue's limit."""
    pkts = bottleneck_queue_pkts(99)(point)
    limit = point.spec.link.queue_pkts
    return None if pkts is None or not limit else 100 * pkts / limit


def queue_growth(point: PointResult) -> float | None:
    """The packets in all queues in the last quarter of the run over those in the second quarter. The first
    quarter fills the queues."""
    sampled = _sampled_queues(point)
    if sampled is None or len(sampled[0]) < 8:
        return None
    quarters = np.array_split(sampled[1].sum(axis=1), 4)
    return ratio(float(quarters[3].mean()), float(quarters[1].mean()))


def queue_variation_pct(point: PointResult) -> float | None:
    """The standard deviation of a queue's length over time, in % of its mean: the median of the queues in
    use."""
    sampled = _sampled_queues(point)
    if sampled is None:
        return None
    means, deviations = sampled[1].mean(axis=0), sampled[1].std(axis=0)
    used = means >= QUEUE_IN_USE_PKTS
    return float(np.median(100 * deviations[used] / means[used])) if used.any() else None


def longest_one_way_s(point: PointResult) -> float | None:
    """The longest one-way delay of a ping towards the receiver, in s."""
    pings = point.read_table("pings")
    if pings is None or not len(pings) or np.isnan(pings["out_ms"]).all():
        return None
    return float(np.nanmax(pings["out_ms"])) / 1000


def rtt_variation_pct(point: PointResult) -> float | None:
    """The standard deviation of all flows' ping times in % of their mean: it covers time and paths."""
    flows = [flow for flow in point.flows if flow.ping_ms_mean > 0]
    if not flows:
        return None
    means, deviations = [f.ping_ms_mean for f in flows], [f.ping_ms_std for f in flows]
    variance = statistics.fmean(d**2 for d in deviations) + statistics.pvariance(means)
    return 100 * math.sqrt(variance) / statistics.fmean(means)
