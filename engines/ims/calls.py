"""What the simulated and the real IMS share: checks of the load, the run with its controller, and the result.

May import `common`, `topos`, `controllers`, `workloads` and `model`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol

import numpy as np

from common.errors import UsageError
from controllers.ims_scaling import ADD, NONE, POLICIES, FunctionSignals, InstanceSignals, Scaler
from model.reasons import NO_DATA, Reason
from model.result import NO_VALUE, SAMPLE_COLUMNS, RunResult, Status, Table
from model.spec import TCP, AgentSpec, NoiseSpec, RunSpec, SchedulerSpec, StackSpec, TransportSpec
from topos.topology import Topology
from workloads import sip
from workloads.matrices import build
from workloads.sip import CONSTANT, SipSettings

MIN_S = 5


def checked(spec: RunSpec, topology: Topology) -> SipSettings:
    """Return the settings of the point. Raises UsageError for what an IMS does not have."""
    settings = sip.settings(spec.workload.params)
    build(spec.workload.matrix, topology, spec.workload.params, 0)
    if spec.seconds < MIN_S or spec.seconds % 1 or spec.warmup_s % 1:
        raise UsageError(
            f"workload {sip.MATRIX}: calls are counted each second: give whole seconds with --warmup and "
            f"--seconds, at least {MIN_S} with --seconds"
        )
    usual = TransportSpec(cc=spec.transport.cc, protocol=spec.transport.protocol)
    given = [
        *(["--transport"] if spec.transport.protocol != TCP else []),
        *(["--subflows"] if spec.transport.subflows != 1 else []),
        *(["--scheduler"] if spec.scheduler != SchedulerSpec() else []),
        *(["--stack"] if spec.stack != StackSpec() else []),
        *(["--stalls"] if spec.noise != NoiseSpec() else []),
        *(["--write or --sysctl"] if spec.transport != usual else []),
        *(["--agent-delay"] if spec.agent != AgentSpec() else []),
        *(["--parts"] if spec.parts > 1 else []),
    ]
    if given:
        raise UsageError(f"{given[0]}: workload {sip.MATRIX} has no TCP flows: leave it out")
    return settings


def most_instances(topology: Topology) -> int:
    """Return how many instances of each function there are hosts for."""
    return (len(topology.hosts) - 2) // 2


PCSCF, SCSCF = "pcscf", "scscf"
ROLES = (PCSCF, SCSCF)


@dataclass(frozen=True)
class Instance:
    """One instance. Waiting messages take the share `fill` of its receive buffer, the room of `waiting` short
    ones (1280 bytes each).

    `dropped` and the seconds are since the start: `cpu_s` is the CPU time of its processor, `busy_s` the time
    of its `workers` in which they had a message, the wait for a look-up included.
    """

    role: str
    number: int
    waiting: float
    fill: float
    dropped: int
    cpu_s: float
    busy_s: float
    workers: int
    dialogs: int
    active: bool


@dataclass(frozen=True)
class Calls:
    """Counts since the start of traffic, `age_s` seconds before they were read."""

    offered: int = 0
    completed: int = 0
    failed: int = 0
    registrations: int = 0
    registered: int = 0
    registrations_failed: int = 0
    retransmitted: int = 0
    age_s: float = 0.0


@dataclass(frozen=True)
class ImsReading:
    """All of it at `t_s` after the start of traffic.

    `setups` are the calls set up since the last reading: when their caller had the answer, in s after the
    start, and how long it took, in ms.
    """

    t_s: float
    calls: Calls
    instances: tuple[Instance, ...]
    setups: Sequence[tuple[float, float]] = ()


@dataclass
class Measurement:
    """What a run measured: a reading per second from 0 on, when each function's receive buffer was first half
    full (by role; none if it never was), and the controller's steps (time, role, step)."""

    readings: list[ImsReading] = field(default_factory=list)
    onset_s: dict[str, float] = field(default_factory=dict)
    steps: list[tuple[float, str, str]] = field(default_factory=list)


TICKS_PER_S = 10
HALF = 0.5
"""Share of a receive buffer from which on a function counts as overloaded."""


class System(Protocol):
    """An IMS that runs. Times are in seconds after the start of traffic."""

    def set_rates(self, calls_per_s: float, registrations_per_s: float) -> None: ...

    def wait(self, until_s: float) -> None: ...

    def fills(self) -> dict[str, float]:
        """Return how full the fullest receive buffer of each role is, as a share."""

    def read(self) -> ImsReading: ...

    def add(self, role: str) -> None:
        """Start an instance, or activate one that drains, and balance new dialogs over all."""

    def drain(self, role: str) -> None:
        """Give one instance no new dialogs; it ends with its last dialog."""


def measured(system: System, settings: SipSettings, seconds: int, most: int) -> Measurement:
    """Run the load for `seconds`, with at most `most` instances of a function; return what happened."""
    scalers = {role: Scaler(POLICIES[settings.policy], most, settings.react_s) for role in ROLES}
    found = Measurement(readings=[system.read()])
    for second in range(seconds):
        if second == 0 or settings.load != CONSTANT:
            system.set_rates(*settings.rates(second / seconds))
        for tick in range(1, TICKS_PER_S + 1):
            t_s = second + tick / TICKS_PER_S
            system.wait(t_s)
            for role, fill in system.fills().items():
                if fill >= HALF:
                    found.onset_s.setdefault(role, t_s)
        found.readings.append(system.read())
        _control(system, scalers, found)
    return found


def _control(system: System, scalers: dict[str, Scaler], found: Measurement) -> None:
    before, now = found.readings[-2:]
    for role, scaler in scalers.items():
        step = scaler.tick(signals(role, before, now))
        if step == NONE:
            continue
        (system.add if step == ADD else system.drain)(role)
        found.steps.append((now.t_s, role, step))


def signals(role: str, before: ImsReading, now: ImsReading) -> FunctionSignals:
    """Return what the controller sees of a function, from two readings."""
    earlier = {(each.role, each.number): each for each in before.instances}
    took_ms = [took for _, took in now.setups]
    return FunctionSignals(
        tuple(
            _instance(each, earlier.get((each.role, each.number)), now.t_s - before.t_s)
            for each in now.instances
            if each.role == role
        ),
        statistics.median(took_ms) if took_ms else None,
    )


def _instance(now: Instance, before: Instance | None, seconds: float) -> InstanceSignals:
    """Return the signals of one instance; a new one has counted from 0."""
    dropped, cpu_s, busy_s = (before.dropped, before.cpu_s, before.busy_s) if before else (0, 0.0, 0.0)
    return InstanceSignals(
        queue=now.fill,
        drops=now.dropped - dropped,
        cpu=(now.cpu_s - cpu_s) / seconds,
        busy=(now.busy_s - busy_s) / seconds / now.workers,
        active=now.active,
    )


_SECOND = {"t_s": "end of the second, counted from the start of the measured window"}
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "calls": {
        **_SECOND,
        "offered": "calls offered",
        "completed": "calls completed",
        "failed": "calls that failed",
        "registered": "users registered",
        "retransmitted": "messages retransmitted",
        "setup_ms": "median setup time; none without calls",
        "setup_ms_p95": "its 95th percentile",
    },
    "components": {
        **_SECOND,
        "name": "`p1` is a P-CSCF, `s1` an S-CSCF",
        "waiting": "messages that wait",
        "drops": "messages dropped",
        "cpu_pct": "of one CPU",
        "busy_pct": "of its workers' time",
        "dialogs": "dialogs that it holds",
        "active": "1 if it takes new ones",
    },
}
"""Two tables with rows for each second."""
EARLY_S = 3
"""Calls that begin this soon after the start of traffic meet queues that only begin to fill."""
_EMPTY = ("goodput", "cpu", "links")


def ims_result(
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
            "calls": Table.from_rows(COLUMNS["calls"], _call_rows(found.readings, warmup_s)),
            "components": Table.from_rows(COLUMNS["components"], _component_rows(found.readings, warmup_s)),
        },
        metrics={name: value for name, value in metrics.items() if math.isfinite(value)},
    )


def verdict(result: RunResult, spec: RunSpec) -> RunResult:
    """Return the result, failed if no call was offered, suspect if none ended: failures are a result."""
    if not result.metrics.get("calls_offered_per_s"):
        return result.without_data("no call was offered")
    if not any(result.metrics.get(name) for name in ("calls_completed_per_s", "calls_failed_per_s")):
        why = f"no call ended in the {spec.seconds:g} s of the window: measure longer (--seconds)"
        return result.doubted((Reason(NO_DATA, why),))
    return result


def computed_knees(settings: SipSettings) -> dict[str, float]:
    """Return the load in calls per second at which each function is full, at scale 100."""
    return {
        "pcscf_knee_per_s": settings.pcscf_knee(settings.pcscf),
        "scscf_knee_per_s": settings.scscf_knee(settings.scscf),
    }


def _rates(start: ImsReading, end: ImsReading) -> dict[str, float]:
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


def _setup(readings: Sequence[ImsReading]) -> dict[str, float]:
    took_ms = [took for reading in readings for _, took in reading.setups]
    if not took_ms:
        return {}
    p50, p95, p99 = np.percentile(took_ms, (50, 95, 99)).tolist()
    return {"setup_ms_p50": p50, "setup_ms_p95": p95, "setup_ms_p99": p99}


def _early(readings: Sequence[ImsReading]) -> dict[str, float]:
    """Return how many of the first calls were set up, in percent, and the median of their setup times."""
    if len(readings) <= EARLY_S or not readings[EARLY_S].calls.offered:
        return {}
    setups = [setup for reading in readings for setup in reading.setups]
    counted_s = readings[EARLY_S].t_s - readings[EARLY_S].calls.age_s
    took_ms = [took for when_s, took in setups if when_s - took / 1000 < counted_s]
    share = {"early_setup_pct": 100 * len(took_ms) / readings[EARLY_S].calls.offered}
    return {**share, "early_setup_ms_p50": statistics.median(took_ms)} if took_ms else share


def _functions(readings: Sequence[ImsReading]) -> dict[str, float]:
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


def _of(role: str, reading: ImsReading) -> list[Instance]:
    return [each for each in reading.instances if each.role == role]


def _mean(values: Sequence[float]) -> float:
    return statistics.fmean(values) if values else 0.0


def _instance_s(readings: Sequence[ImsReading]) -> float:
    """Return the seconds that all instances ran, from the readings at the ends of intervals."""
    return sum(len(now.instances) * (now.t_s - before.t_s) for before, now in pairwise(readings))


def _call_rows(readings: Sequence[ImsReading], warmup_s: int) -> Iterator[tuple[float | int | str, ...]]:
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


def _component_rows(readings: Sequence[ImsReading], warmup_s: int) -> Iterator[tuple[float | int | str, ...]]:
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
