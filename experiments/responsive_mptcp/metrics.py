"""Metrics of Table I: subflows per flow, throughput, completion of a job, at one scheme or over another."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from analysis.completion import mean_job_s
from analysis.quantities import Quantity
from experiments.responsive_mptcp.schemes import Scheme, scheme_of
from harness.metrics import readings
from harness.metrics.measures import Measure, Measured, OfPoint, Subject, measured_over, points_about, ratio
from harness.metrics.metric import Metric
from harness.results.point_results import Judged
from model.result import under_test
from model.spec import RunSpec
from workloads.map_reduce import MAPS, REDUCES

_APART = ("transport.subflows", "transport.cc", "scheduler")
"""Fields in which schemes differ."""


def setting(spec: RunSpec) -> RunSpec:
    return spec.neutral(*_APART)


def subflows(point: Judged) -> float | None:
    """Return the mean number of subflows of flows, at the end of the run or of the flow."""
    flows = under_test(point.point.flows)
    return sum(flow.subflows_joined for flow in flows) / len(flows) if flows else None


def job_ms(point: Judged) -> float | None:
    """Return the mean completion time of jobs; None if a job did not complete."""
    params = point.spec.workload.params
    each = int(params.get("maps", MAPS)) * int(params.get("reduces", REDUCES))
    mean_s = mean_job_s(point.point.flows, each)
    return None if mean_s is None else 1000 * mean_s


def _at(points: Sequence[Judged], subject: Subject, scheme: Scheme) -> dict[int, Judged]:
    about = points_about(points, subject)
    return {point.spec.seed: point for point in about if scheme_of(point.spec) == scheme}


def _level(scheme: Scheme, value_of: OfPoint) -> Measure:
    def measure(points: Sequence[Judged], subject: Subject) -> Measured | None:
        return measured_over((value_of(each), [each]) for each in _at(points, subject, scheme).values())

    return measure


def _over(scheme: Scheme, other: Scheme, value_of: OfPoint) -> Measure:
    def measure(points: Sequence[Judged], subject: Subject) -> Measured | None:
        ones, others = _at(points, subject, scheme), _at(points, subject, other)
        pairs = [(ones[seed], others[seed]) for seed in ones if seed in others]
        return measured_over((ratio(value_of(a), value_of(b)), (a, b)) for a, b in pairs)

    return measure


def _name(scheme: Scheme) -> str:
    if scheme.scheduler.interval_ms and scheme.subflows > 1:
        return f"responsive_{scheme.scheduler.interval_ms:g}ms"
    return "hedera" if scheme.subflows == 1 else f"ecmp_{scheme.subflows}"


@functools.cache
def subflows_at(scheme: Scheme) -> Metric:
    return Metric(
        Quantity(
            f"{_name(scheme)}_subflows", "subflows", f"the mean number of subflows of a flow: {scheme.label}"
        ),
        over=_level(scheme, subflows),
        setting=setting,
    )


@functools.cache
def throughput_at(scheme: Scheme) -> Metric:
    return Metric(
        Quantity(f"{_name(scheme)}_mbps", "Mb/s", f"the mean goodput of a flow: {scheme.label}"),
        over=_level(scheme, readings.goodput_mbps),
        setting=setting,
    )


@functools.cache
def job_at(scheme: Scheme) -> Metric:
    return Metric(
        Quantity(f"{_name(scheme)}_job_ms", "ms", f"the mean completion time of a job: {scheme.label}"),
        over=_level(scheme, job_ms),
        setting=setting,
    )


@functools.cache
def throughput_over(scheme: Scheme, other: Scheme) -> Metric:
    return Metric(
        Quantity(
            f"{_name(scheme)}_over_{_name(other)}",
            f"x {other.label}",
            f"the mean goodput of a flow: {scheme.label}",
        ),
        over=_over(scheme, other, readings.goodput_mbps),
        setting=setting,
    )


@functools.cache
def job_over(scheme: Scheme, other: Scheme) -> Metric:
    return Metric(
        Quantity(
            f"{_name(scheme)}_job_over_{_name(other)}",
            f"x {other.label}",
            f"the mean completion time of a job: {scheme.label}",
        ),
        over=_over(scheme, other, job_ms),
        setting=setting,
    )
