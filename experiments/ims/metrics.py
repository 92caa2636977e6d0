"""Metrics of an IMS: which function overloads first, failed calls, and setup times beside the step before."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from analysis.quantities import Quantity
from harness.metrics import readings
from harness.metrics.measures import Measure, Measured, OfPoint, Subject, is_about, measured_over, ratio
from harness.metrics.metric import Metric
from harness.points.labels import workload_label
from harness.results.point_results import Judged


def _lead_s(first: str, other: str) -> OfPoint:
    """Return how much sooner, in s, the receive buffer of `first` was half full than that of `other`. A
    buffer that never was counts as half full at the end of the run."""

    def of(point: Judged) -> float | None:
        ends_s = point.spec.warmup_s + point.spec.seconds
        ours, theirs = (point.metric(f"{role}_onset_s") for role in (first, other))
        if ours is None and theirs is None:
            return None
        return (ends_s if theirs is None else theirs) - (ends_s if ours is None else ours)

    return of


def _failed_pct(point: Judged) -> float | None:
    offered, failed = point.metric("calls_offered_per_s"), point.metric("calls_failed_per_s")
    return 100 * failed / offered if offered and failed is not None else None


def over(name: str, before: str, workload_before: Callable[[str], str]) -> Measure:
    """Return a measure: metric `name` of the subject's workload over metric `before` of the workload before
    it, at the same seed."""

    def measure(points: Sequence[Judged], subject: Subject) -> Measured | None:
        wanted = workload_before(subject.workload)
        others = {p.spec.seed: p for p in points if workload_label(p.spec) == wanted}
        ours = [p for p in points if is_about(subject, p) and p.spec.seed in others]
        pairs = [(point, others[point.spec.seed]) for point in ours]
        return measured_over((ratio(a.metric(name), b.metric(before)), (a, b)) for a, b in pairs)

    return measure


S_FIRST = Metric(
    Quantity("scscf_leads_s", "s", "how much sooner the S-CSCF's buffer is half full than the P-CSCF's"),
    _lead_s("scscf", "pcscf"),
)  # fmt: skip
P_FIRST = Metric(
    Quantity("pcscf_leads_s", "s", "how much sooner the P-CSCF's buffer is half full than the S-CSCF's"),
    _lead_s("pcscf", "scscf"),
)  # fmt: skip
FAILED_PCT = Metric(Quantity("calls_failed_pct", "% of calls", "calls that failed"), _failed_pct)
EARLY_PCT = Metric(
    Quantity("early_setup_pct", "% of calls", "calls of the first 3 s that were set up"),
    readings.recorded("early_setup_pct"),
)  # fmt: skip
S_BUSY_PCT = Metric(
    Quantity("scscf_busy_pct", "% of the time", "the time in which an S-CSCF's workers are busy or wait"),
    readings.recorded("scscf_busy_pct"),
)  # fmt: skip
