"""summary.csv: one row per point, recomputed from the stored points, percentages of their baselines.

A baseline is arithmetic: within half a percent of the computed value it is right, whatever the machine did.
A point whose baseline is suspect and off that value is suspect itself. A point without a usable baseline
keeps its raw Mb/s and empty percentages.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import topos
from analysis import stats
from analysis.completion import Completions, percentile
from common import files
from engines.registry import STEADY_STATE
from harness.plan.baseline import is_reference
from harness.results.store import SUMMARY, Store, StoredPoint
from harness.results.tables import Cell, csv_bytes
from model import transports
from model.congestion import in_force
from model.reasons import (
    BASELINE,
    COMPLETION,
    RTT,
    Reason,
    blames_machine,
    texts,
)
from model.result import Status
from model.spec import RunSpec
from workloads import matrices

COLUMNS = (
    "experiment", "engine", "dataplane", "topology", "k", "hosts", "workload", "transport", "subflows", "cc",
    "rate_mbps", "queue_pkts", "seconds", "seed", "status", "reasons", "goodput_mbps_mean", "reference_mbps",
    "goodput_pct_mean", "goodput_pct_min", "goodput_pct_median", "goodput_pct_max", "jain", "cpu_busy_pct",
    "late_p99_us", "retransmits", "drops", "routing", "loss_pct", "ecn_pkts", "write_bytes", "sysctls",
    "flows_started", "flows_completed", "fct_ms_mean", "fct_ms_median", "fct_ms_p99", "slowdown_mean",
    "slowdown_p99", "topology_params", "faults", "cautions", "attempts", "kinds",
)  # fmt: skip


BASELINE_SUSPECT = Reason(BASELINE, "its baseline is suspect")


@dataclass(frozen=True)
class Judged:
    """A stored point beside its reference: what tables, summaries and charts show of it.

    `reference_mbps` is the reference flow's goodput in Mb/s; `goodput_mbps` and `goodput_pct` spread
    over the point's flows. None where there is no such number.
    """

    point: StoredPoint
    status: Status
    reasons: tuple[Reason, ...]
    reference_mbps: float | None
    goodput_mbps: stats.Spread | None
    goodput_pct: stats.Spread | None
    jain: float | None
    as_intended: bool = False
    """Suspect for want of CPU alone, in a figure whose point that is."""
    cautions: tuple[Reason, ...] = ()
    """What doubts some of its metrics, although its status stands."""

    @property
    def spec(self) -> RunSpec:
        return self.point.spec

    def metric(self, name: str) -> float | None:
        return self.point.metrics.get(name)

    @property
    def retransmits(self) -> int | None:
        """Segments sent again by all flows; None without flows or segments."""
        if self.spec.engine in STEADY_STATE:
            return None
        return self.point.retransmits if self.point.flows else None

    @property
    def drops(self) -> float | None:
        """Packets dropped by all ports; the engine's own count where there is no port table."""
        if self.spec.engine in STEADY_STATE:
            return None
        return self.point.drops if self.point.ports else self.metric("drops")


def judge(points: Iterable[StoredPoint], cpu_bound: Collection[str] = ()) -> list[Judged]:
    """Every point beside its reference, in the order of `order`.

    `cpu_bound` names points that ask for more than the machine carries on purpose.
    """
    known = {point.spec.content_hash(): point for point in points}
    return [
        _judged(point, known, point.name in cpu_bound)
        for point in sorted(known.values(), key=lambda p: order(p.spec))
    ]


def order(spec: RunSpec) -> tuple[object, ...]:
    """Sort key of points for readers: by network, then reference, then transport, then seed."""
    return (
        spec.engine, spec.dataplane, spec.topology.kind, spec.topology.k,
        topos.shape(spec.topology.kind, spec.topology.params), spec.link.rate_mbps,
        spec.link.queue_pkts, not is_reference(spec), spec.workload.matrix,
        sorted(spec.workload.params.items()), transports.rank(spec.transport.cc), spec.transport.cc,
        spec.transport.subflows > 1, spec.routing, spec.transport.subflows, spec.seed, spec.content_hash(),
    )  # fmt: skip


def _judged(point: StoredPoint, known: Mapping[str, StoredPoint], cpu_bound: bool) -> Judged:
    reference = known.get(point.reference_hash)
    reference_mbps = _reference_mbps(reference)
    status, reasons, cautions = point.status, point.reasons, point.cautions
    if _is_right_baseline(point):
        doubts = (RTT, COMPLETION)
        doubted = tuple(dataclasses.replace(reason, doubts=doubts) for reason in reasons)
        status, reasons, cautions = Status.OK, (), (*cautions, *doubted)
    elif status is not Status.FAILED and _is_suspect(reference) and reference is not point:
        status = Status.SUSPECT
        reasons = (*reasons, BASELINE_SUSPECT)
    failed = point.status is Status.FAILED
    goodput = None if failed else point.goodput_mbps
    return Judged(
        point,
        status,
        reasons,
        reference_mbps,
        goodput,
        goodput.scaled(100.0 / reference_mbps) if goodput and reference_mbps else None,
        None if failed else point.jain,
        status is Status.SUSPECT and cpu_bound and blames_machine(reasons),
        cautions,
    )


def _is_right_baseline(point: StoredPoint) -> bool:
    """Whether only the machine casts doubt on a baseline, which has the computed goodput all the same."""
    suspect = point.status is Status.SUSPECT and blames_machine(point.reasons)
    return suspect and is_reference(point.spec) and point.is_arithmetic


def _is_suspect(reference: StoredPoint | None) -> bool:
    if reference is None or reference.status is not Status.SUSPECT:
        return False
    return not reference.is_arithmetic


def _reference_mbps(reference: StoredPoint | None) -> float | None:
    """Goodput of the reference flow in Mb/s; None when there is none to divide by."""
    if reference is None or reference.status is Status.FAILED or reference.goodput_mbps is None:
        return None
    return reference.goodput_mbps.mean or None


def record(experiment: str, judged: Judged) -> dict[str, Cell | None]:
    """One line of summary.csv as COLUMNS and values; None where there is no such number."""
    spec, pct, goodput = judged.spec, judged.goodput_pct, judged.goodput_mbps
    values: tuple[Cell | None, ...] = (
        experiment, spec.engine, spec.dataplane, spec.topology.kind, spec.topology.k, judged.point.hosts,
        matrices.label(spec.workload.matrix, spec.workload.params), spec.transport.name,
        spec.transport.subflows, in_force(spec.transport.cc, spec.transport.subflows),
        spec.link.rate_mbps, spec.link.queue_pkts, spec.seconds, spec.seed, judged.status.value,
        texts(judged.reasons), goodput.mean if goodput else None, judged.reference_mbps,
        *((pct.mean, pct.minimum, pct.median, pct.maximum) if pct else (None,) * 4), judged.jain,
        judged.metric("cpu_busy_pct"), judged.metric("late_p99_us"), judged.retransmits, judged.drops,
        spec.routing, 100 * spec.link.loss, spec.link.ecn_pkts, spec.transport.write_bytes,
        " ".join(f"{name}={value}" for name, value in sorted(spec.transport.sysctls.items())),
        *_completion(judged.point.completions),
        " ".join(f"{n}={value}" for n, value in topos.shape(spec.topology.kind, spec.topology.params)),
        ", ".join(dict.fromkeys(r.fault.value for r in judged.reasons if r.fault.value)),
        texts(judged.cautions), max(1, len(judged.point.attempts)),
        ", ".join(dict.fromkeys(reason.kind for reason in judged.reasons)),
    )  # fmt: skip
    return dict(zip(COLUMNS, values, strict=True))


def _completion(of: Completions) -> tuple[Cell | None, ...]:
    """Columns of points with sized flows; None in those of others, and where none was completed."""
    counts = (of.started, len(of.completed)) if of.started else (None, None)
    took, slow = of.took_ms, of.slowdowns
    times = (statistics.fmean(took), statistics.median(took), percentile(took, 99)) if took else (None,) * 3
    return *counts, *times, *((statistics.fmean(slow), percentile(slow, 99)) if slow else (None, None))


def _text(value: Cell | None) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}" if abs(value) < 1e6 else f"{value:.0f}"
    return str(value)


def write(store: Store, points: Sequence[StoredPoint]) -> None:
    """Rewrite the experiment's summary.csv atomically. Raises StoreError."""
    records = [record(store.directory.name, judged) for judged in judge(points)]
    rows = [[_text(value) for value in one.values()] for one in records]
    files.replace_file(store.directory / SUMMARY, csv_bytes(COLUMNS, rows), store.tag)
