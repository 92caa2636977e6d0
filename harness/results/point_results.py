"""Stored points beside their baselines, which their percentages refer to.

A baseline can be computed: within half a percent of the computed value it is right, whatever the machine
did. A point is suspect if its baseline is suspect and off that value. A point without a usable baseline
keeps its goodput in Mb/s and has no percentages.

Points that were emulated and simulated are paired here, too (`pairs`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import topos
from analysis import stats
from analysis.plausibility import MOST_PCT
from analysis.stats import correlation, rank_correlation
from engines.registry import LINUX_HOSTS, SIMULATED_HOSTS, STEADY_STATE
from harness.baseline import is_baseline
from harness.results.store import StoredPoint
from model import transports
from model.reasons import BASELINE, COMPLETION, IMPOSSIBLE, RTT, Reason, blames_machine
from model.result import Status, under_test
from model.spec import RunSpec, StackSpec

BASELINE_SUSPECT = Reason(BASELINE, "its baseline is suspect")


@dataclass(frozen=True)
class PointResult:
    """A stored point beside its baseline: what tables and charts show.

    `baseline_mbps` is the goodput of the baseline flow in Mb/s; `goodput_mbps` and `goodput_pct` are spreads
    over the point's flows. None where there is no such number.
    """

    point: StoredPoint
    status: Status
    reasons: tuple[Reason, ...]
    baseline_mbps: float | None
    goodput_mbps: stats.Spread | None
    goodput_pct: stats.Spread | None
    jain: float | None
    as_intended: bool = False
    """Suspect only because the CPU was overloaded, in a figure that overloads it on purpose."""
    cautions: tuple[Reason, ...] = ()
    """Reasons to doubt some of its metrics; they leave its status unchanged."""

    @property
    def spec(self) -> RunSpec:
        return self.point.spec

    @property
    def state(self) -> str:
        """The status in words; `suspect, as intended` if the figure overloads the machine on purpose."""
        return f"{self.status}, as intended" if self.as_intended else str(self.status)

    def metric(self, name: str) -> float | None:
        return self.point.metrics.get(name)

    @property
    def retransmits(self) -> int | None:
        """The segments that all flows retransmitted; None without flows or segments."""
        if self.spec.engine in STEADY_STATE:
            return None
        return self.point.retransmits if self.point.flows else None

    @property
    def drops(self) -> float | None:
        """The packets that all ports dropped; the engine's own count where there is no port table."""
        if self.spec.engine in STEADY_STATE:
            return None
        return self.point.drops if self.point.ports else self.metric("drops")


def judge(points: Iterable[StoredPoint], cpu_bound: Collection[str] = ()) -> list[PointResult]:
    """Return every point beside its baseline, sorted by `order`.

    `cpu_bound` names the points that overload the machine on purpose.
    """
    known = {point.spec.content_hash(): point for point in points}
    return [
        _judged(point, known, point.name in cpu_bound)
        for point in sorted(known.values(), key=lambda p: order(p.spec))
    ]


def order(spec: RunSpec) -> tuple[object, ...]:
    """Return the sort key of points in tables: network, baseline first, transport, seed."""
    return (
        spec.engine, spec.dataplane, spec.topology.kind, spec.topology.k,
        topos.shape(spec.topology.kind, spec.topology.params), spec.link.rate_mbps,
        spec.link.queue_pkts, not is_baseline(spec), spec.workload.matrix,
        sorted(spec.workload.params.items()), transports.rank(spec.transport.cc), spec.transport.cc,
        spec.transport.subflows > 1, spec.routing, spec.transport.subflows, spec.seed, spec.content_hash(),
    )  # fmt: skip


def _judged(point: StoredPoint, known: Mapping[str, StoredPoint], cpu_bound: bool) -> PointResult:
    baseline = known.get(point.baseline_hash)
    baseline_mbps = _goodput_mbps(baseline)
    status, reasons, cautions = point.status, point.reasons, point.cautions
    if _is_right_baseline(point):
        doubts = (RTT, COMPLETION)
        doubted = tuple(dataclasses.replace(reason, doubts=doubts) for reason in reasons)
        status, reasons, cautions = Status.OK, (), (*cautions, *doubted)
    elif status is not Status.FAILED and _is_suspect(baseline) and baseline is not point:
        status = Status.SUSPECT
        reasons = (*reasons, BASELINE_SUSPECT)
    failed = point.status is Status.FAILED
    goodput = None if failed else point.goodput_mbps
    if not failed and (short := _short_baseline(point, baseline_mbps)):
        status, reasons = Status.SUSPECT, (*reasons, short)
    return PointResult(
        point,
        status,
        reasons,
        baseline_mbps,
        goodput,
        goodput.scaled(100.0 / baseline_mbps) if goodput and baseline_mbps else None,
        None if failed else point.jain,
        status is Status.SUSPECT and cpu_bound and blames_machine(reasons),
        cautions,
    )


def _is_right_baseline(point: StoredPoint) -> bool:
    """Return whether a baseline is suspect only because of the machine and still has the computed goodput."""
    suspect = point.status is Status.SUSPECT and blames_machine(point.reasons)
    return suspect and is_baseline(point.spec) and point.is_arithmetic


def _short_baseline(point: StoredPoint, baseline_mbps: float | None) -> Reason | None:
    """Return the reason for suspicion if flows have more than 100 % can be, because one flow alone did not
    fill its links; None if they have not."""
    if not baseline_mbps or point.goodput_mbps is None or point.only_transfers:
        return None
    pct = 100 * point.goodput_mbps.mean / baseline_mbps
    network = point.spec.topology
    if pct <= MOST_PCT or pct <= MOST_PCT * topos.build(network.kind, network.params).host_speed:
        return None
    text = (
        f"mean goodput is {pct:.0f} % of the baseline: one flow alone reached {baseline_mbps:.3g} Mb/s, less "
        "than its links carry; let it fill them (--queue, --warmup, --cc)"
    )
    return Reason(IMPOSSIBLE, text, numbers=(("baseline_pct", pct),))


def _is_suspect(baseline: StoredPoint | None) -> bool:
    if baseline is None or baseline.status is not Status.SUSPECT:
        return False
    return not baseline.is_arithmetic


def _goodput_mbps(baseline: StoredPoint | None) -> float | None:
    """Return the goodput of the baseline flow in Mb/s; None if there is none to divide by."""
    if baseline is None or baseline.status is Status.FAILED or baseline.goodput_mbps is None:
        return None
    return baseline.goodput_mbps.mean or None


STARTS_TOGETHER = "native"
"""The traffic whose flows all start at once, as simulated flows do."""


def alike(spec: RunSpec) -> RunSpec:
    """Return the same for specs that differ only in the engine, and in fields that only one engine uses."""
    traffic = STARTS_TOGETHER if spec.engine in SIMULATED_HOSTS else spec.traffic
    return dataclasses.replace(spec, engine="any", stack=StackSpec(), traffic=traffic)


@dataclass(frozen=True)
class EnginePair:
    """The same point, emulated and simulated."""

    emulated: PointResult
    simulated: PointResult

    @property
    def goodputs(self) -> tuple[list[float], list[float]]:
        """The goodput of each flow in Mb/s, emulated and simulated, in the same order."""
        return _goodputs(self.emulated), _goodputs(self.simulated)

    @property
    def correlation(self) -> float | None:
        """Pearson's correlation of the flows' goodputs."""
        return correlation(*self.goodputs)

    @property
    def rank_correlation(self) -> float | None:
        """Spearman's rank correlation of the flows' goodputs."""
        return rank_correlation(*self.goodputs)

    @property
    def mean_difference(self) -> float | None:
        """Simulated minus emulated mean goodput, each in % of its own baseline."""
        here, there = self.simulated.goodput_pct, self.emulated.goodput_pct
        return here.mean - there.mean if here and there else None


def _goodputs(judged: PointResult) -> list[float]:
    return [flow.goodput_mbps for flow in sorted(under_test(judged.point.flows), key=lambda flow: flow.flow)]


def pairs(points: Iterable[PointResult]) -> list[EnginePair]:
    """Pair the points that were emulated and simulated; points without flows and baselines are left out.

    Where there are points in real time, those in virtual time are compared with them too.
    """
    points = [judged for judged in points if judged.point.flows and not is_baseline(judged.spec)]
    ran = engines(points)
    standard = next((name for name in LINUX_HOSTS if name in ran), "")
    emulated: dict[str, PointResult] = {}
    others: list[PointResult] = []
    for judged in points:
        if judged.spec.engine == standard:
            emulated[alike(judged.spec).canonical()] = judged
        else:
            others.append(judged)
    keyed = ((alike(other.spec).canonical(), other) for other in others)
    return [EnginePair(emulated[key], other) for key, other in keyed if key in emulated]


def engines(points: Iterable[PointResult]) -> Sequence[str]:
    """Return the engines that ran any of the points."""
    return sorted({judged.spec.engine for judged in points})
