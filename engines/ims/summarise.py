"""The RunResult of an IMS from what was measured. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from engines.ims.readings import PCSCF, ROLES, SCSCF, Instance, Measurement, Reading
from engines.ims.run import signals
from model.result import CALL_COLUMNS, NO_VALUE, SAMPLE_COLUMNS, RunResult, Status, Table
from workloads.sip import SipSettings

EARLY_S = 3
"""Calls that begin this soon after the start of traffic meet queues that only begin to fill."""
_EMPTY = ("goodput", "cpu", "links")


def summarise(
    settings: SipSettings, warmup_s: int, found: Measurement, knees: Mapping[str, float] | None = None
) -> RunResult:
    """Return the result. `knees` are those of measured service times; otherwise they follow from the
    settings."""
    start, end = found.readings[warmup_s], found.readings[-1]
    metrics = {
        **_rates(start, end),
        **_setup(found.readings[warmup_s + 1 :]),
        **_early(found.readings),
        **_functions(found.readings[warmup_s:]),
        **(knees or computed_knees(settings)),
        **{f"{role}_onset_s": t_s for role, t_s in found.onset_s.items()},
        "instance_s": _instance_s(found.readings[warmup_s:]),
        "steps": float(len(found.steps)),
    }
    return RunResult(
        status=Status.OK,
        samples={
            **{name: Table.from_rows(SAMPLE_COLUMNS[name], ()) for name in _EMPTY},
            "calls": Table.from_rows(CALL_COLUMNS["calls"], _call_rows(found.readings, warmup_s)),
            "components": Table.from_rows(
                CALL_COLUMNS["components"], _component_rows(found.readings, warmup_s)
            ),
        },
        metrics={name: value for name, value in metrics.items() if math.isfinite(value)},
    )


def computed_knees(settings: SipSettings) -> dict[str, float]:
    """Return the load in calls per second at which each function is full, at scale 100."""
    return {
        "pcscf_knee_per_s": settings.pcscf_knee(settings.pcscf),
        "scscf_knee_per_s": settings.scscf_knee(settings.scscf),
    }


def _rates(start: Reading, end: Reading) -> dict[str, float]:
    a, b = start.calls, end.calls
    seconds = (end.t_s - b.age_s) - (start.t_s - a.age_s)
    offered, completed = b.offered - a.offered, b.completed - a.completed
    return {
        "calls_offered_per_s": offered / seconds,
        "calls_completed_per_s": completed / seconds,
        "calls_failed_per_s": (b.failed - a.failed) / seconds,
        "calls_lost_pct": 100 * (1 - completed / offered) if offered else NO_VALUE,
        "registered_per_s": (b.registered - a.registered) / seconds,
        "registrations_failed_per_s": (b.registrations_failed - a.registrations_failed) / seconds,
        "sip_retransmitted_per_s": (b.retransmitted - a.retransmitted) / seconds,
        "calls_lost": float(offered - completed),
    }


def _setup(readings: Sequence[Reading]) -> dict[str, float]:
    took_ms = [took for reading in readings for _, took in reading.setups]
    if not took_ms:
        return {}
    p50, p95, p99 = np.percentile(took_ms, (50, 95, 99)).tolist()
    return {"setup_ms_p50": p50, "setup_ms_p95": p95, "setup_ms_p99": p99}


def _early(readings: Sequence[Reading]) -> dict[str, float]:
    """Return how many of the first calls were set up, in percent, and the median of their setup times."""
    if len(readings) <= EARLY_S or not readings[EARLY_S].calls.offered:
        return {}
    setups = [setup for reading in readings for setup in reading.setups]
    counted_s = readings[EARLY_S].t_s - readings[EARLY_S].calls.age_s
    took_ms = [took for when_s, took in setups if when_s - took / 1000 < counted_s]
    share = {"early_setup_pct": 100 * len(took_ms) / readings[EARLY_S].calls.offered}
    return {**share, "early_setup_ms_p50": statistics.median(took_ms)} if took_ms else share


def _functions(readings: Sequence[Reading]) -> dict[str, float]:
    """Return, for each function, means over its instances and the window."""
    found: dict[str, float] = {}
    for role in ROLES:
        seconds = [signals(role, a, b) for a, b in pairwise(readings)]
        waiting = [_mean([i.waiting for i in _of(role, r)]) for r in readings[1:]]
        found |= {
            f"{role}_queue": statistics.fmean(waiting),
            f"{role}_fill_pct": 100 * statistics.fmean(s.queue for s in seconds),
            f"{role}_drops_per_s": sum(s.drops for s in seconds) / len(seconds),
            f"{role}_cpu_pct": 100 * statistics.fmean(s.cpu for s in seconds),
            f"{role}_busy_pct": 100 * statistics.fmean(s.busy for s in seconds),
            f"{role}_most": float(max(len(_of(role, r)) for r in readings)),
        }
    return found


def _of(role: str, reading: Reading) -> list[Instance]:
    return [each for each in reading.instances if each.role == role]


def _mean(values: Sequence[float]) -> float:
    return statistics.fmean(values) if values else 0.0


def _instance_s(readings: Sequence[Reading]) -> float:
    """Return the seconds that all instances ran, from the readings at the ends of intervals."""
    return sum(len(now.instances) * (now.t_s - before.t_s) for before, now in pairwise(readings))


def _call_rows(readings: Sequence[Reading], warmup_s: int) -> Iterator[tuple[float | int | str, ...]]:
    for before, now in pairwise(readings):
        a, b = before.calls, now.calls
        took_ms = [took for _, took in now.setups]
        yield (
            now.t_s - warmup_s,
            b.offered - a.offered,
            b.completed - a.completed,
            b.failed - a.failed,
            b.registered - a.registered,
            b.retransmitted - a.retransmitted,
            float(np.median(took_ms)) if took_ms else NO_VALUE,
            float(np.percentile(took_ms, 95)) if took_ms else NO_VALUE,
        )


def _component_rows(readings: Sequence[Reading], warmup_s: int) -> Iterator[tuple[float | int | str, ...]]:
    for before, now in pairwise(readings):
        for role, letter in ((PCSCF, "p"), (SCSCF, "s")):
            seen = signals(role, before, now).instances
            for instance, signal in zip(_of(role, now), seen, strict=True):
                yield (
                    now.t_s - warmup_s,
                    f"{letter}{instance.number}",
                    float(instance.waiting),
                    signal.drops,
                    100 * signal.cpu,
                    100 * signal.busy,
                    instance.dialogs,
                    int(instance.active),
                )
