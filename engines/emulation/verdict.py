"""Whether a run's numbers are about the transport or about the machine. Pure.

DESIGN.md's rules: lateness against one packet time, lost frames, idle CPU, subflows short of the
request, fallback. Anything found makes the point `suspect`; what leaves no number is raised elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engines.congestion import CONGESTION_CONTROLS
from engines.result import FlowRow, Status
from fabric.plan import FRAME_BITS

FULL_PCT = 97.0
"""A second busier than this counts as saturated."""
MOST_SATURATED = 0.05
"""Share of saturated seconds that is put down to the machine's other users."""

FULL_THREAD_PCT = 94.0
"""A thread busier than this has no time left: the kernel leaves a real-time one 95 % (sched(7)). Short of it
Open vSwitch's is not late yet: with little to do it looks at every port for each single frame."""

MOST_REPAIRED = 0.05
"""Share of window reductions the kernel may leave to the guard (docs/congestion.md): each costs a subflow
about a round trip of too large a window."""
MOST_REPAIRS_A_FLOW_S = 0.05
"""Repairs a second and flow: a burst may have gone out before each, whose queue is felt for a second."""
LEAST_REPAIRS = 5
"""Fewer say nothing about a share of reductions."""


MOST_LATE_LOOKS = 0.5
"""Share of a central scheduler's looks: with more, its interval is not the one that was asked for."""


@dataclass(frozen=True)
class Evidence:
    """What is known at the end of the measured window. `lost` maps a place to frames lost there that no
    queue accounts for; `busy_pct` has one entry a second. `late_p99_us` is None where the data plane has no
    clock to be late by."""

    rate_mbps: float
    late_p99_us: float | None
    lost: Mapping[str, int]
    busy_pct: Sequence[float]
    flows: Sequence[FlowRow]
    fallbacks: int
    cc_asked: Sequence[str]
    """Of each of the flows."""
    thread_pct: float = 0.0
    """How busy the one thread was through which every frame goes, where the data plane's own lateness is not
    known; 0 where it is."""
    stalled: int = 0
    """Flows that stood still although they should not have (stalls.py)."""
    waiting: int = 0
    """Flows whose subflows carried data that waited in front of the application all the while."""
    joins_late: bool = False
    """Whether a sized flow may well be done before its further subflows join."""
    cc_losses: int = 0
    cc_repairs: int = 0
    """Windows that congestion controls of our own reduced, and impossible ones that they put right."""
    looks: int = 0
    late_looks: int = 0
    """How often a central scheduler should have looked, and how often it did not or took too long."""


def judge(evidence: Evidence) -> tuple[Status, tuple[str, ...]]:
    """Status ok or suspect, and every reason for the latter in plain words."""
    reasons = (
        *_machine(evidence),
        *_stalls(evidence),
        *_subflows(evidence),
        *_congestion_control(evidence),
        *_repairs(evidence),
    )
    return (Status.SUSPECT if reasons else Status.OK), reasons


def only_stalled(evidence: Evidence) -> bool:
    """Whether flows stood still for no fault of the machine: that is no result at all."""
    return bool(evidence.stalled) and not _machine(evidence)


def _machine(evidence: Evidence) -> list[str]:
    return [
        *_lateness(evidence),
        *_thread(evidence),
        *_losses(evidence),
        *_saturation(evidence),
        *_looks(evidence),
    ]


def _looks(evidence: Evidence) -> list[str]:
    if evidence.late_looks <= MOST_LATE_LOOKS * evidence.looks:
        return []
    return [f"CPU: {evidence.late_looks} of the scheduler's {evidence.looks} looks came late or not at all"]


def _stalls(evidence: Evidence) -> list[str]:
    of = f"of {len(evidence.flows)} delivered nothing in the whole window"
    stalled = [f"flows: {evidence.stalled} {of}"] if evidence.stalled else []
    if not evidence.waiting:
        return stalled
    why = "although their subflows did: data that comes first was on a slow one; measure longer (--seconds)"
    return [*stalled, f"flows: {evidence.waiting} {of} {why}"]


def _lateness(evidence: Evidence) -> list[str]:
    packet_us = FRAME_BITS / evidence.rate_mbps
    if evidence.late_p99_us is None or evidence.late_p99_us <= packet_us:
        return []
    return [
        f"CPU: 1 frame in 100 was {evidence.late_p99_us:.0f} us late or more, "
        f"a packet takes {packet_us:.0f} us at {evidence.rate_mbps:g} Mb/s"
    ]


def _thread(evidence: Evidence) -> list[str]:
    if evidence.thread_pct <= FULL_THREAD_PCT:
        return []
    return [f"CPU: the one thread that forwards all frames was busy {evidence.thread_pct:.0f} % of the time"]


def _losses(evidence: Evidence) -> list[str]:
    return [f"CPU: {count} frames were lost in {place}" for place, count in evidence.lost.items() if count]


def saturated(busy_pct: Sequence[float]) -> bool:
    """Whether more seconds were without idle time than the machine's other users explain."""
    return sum(busy > FULL_PCT for busy in busy_pct) > MOST_SATURATED * len(busy_pct)


def _saturation(evidence: Evidence) -> list[str]:
    if not saturated(evidence.busy_pct):
        return []
    full = sum(busy > FULL_PCT for busy in evidence.busy_pct)
    return [f"CPU: no idle time left in {full} of {len(evidence.busy_pct)} seconds"]


def _subflows(evidence: Evidence) -> list[str]:
    reasons = []
    due = [f for f in evidence.flows if not (evidence.joins_late and f.size_bytes)]
    seen = [flow for flow in due if flow.subflows_joined or not math.isfinite(flow.completed_s)]
    short = [flow for flow in seen if flow.subflows_joined < flow.subflows_asked]
    if short:
        worst = min(flow.subflows_joined for flow in short)
        reasons.append(
            f"subflows: {len(short)} of {len(due)} flows had fewer than "
            f"{short[0].subflows_asked}, the worst {worst}"
        )
    if evidence.fallbacks:
        reasons.append(f"fallback: {evidence.fallbacks} flows fell back from MPTCP to TCP")
    return reasons


def _congestion_control(evidence: Evidence) -> list[str]:
    others: dict[str, set[str]] = {}
    for asked, flow in zip(evidence.cc_asked, evidence.flows, strict=True):
        others.setdefault(asked, set()).update(set(flow.cc.split("/")) - {"", asked})
    return [
        f"congestion control: {asked} was asked, {', '.join(sorted(found))} was in force too"
        for asked, found in others.items()
        if found
    ]


def _repairs(evidence: Evidence) -> list[str]:
    repairs, losses = evidence.cc_repairs, evidence.cc_losses
    ours = sum(cc in CONGESTION_CONTROLS and CONGESTION_CONTROLS[cc].bpf for cc in evidence.cc_asked)
    flow_s = ours * len(evidence.busy_pct)
    often = repairs > MOST_REPAIRS_A_FLOW_S * flow_s
    if not often and (repairs < LEAST_REPAIRS or repairs <= MOST_REPAIRED * (repairs + losses)):
        return []
    return [
        f"congestion control: the kernel left out {repairs} of {repairs + losses} window reductions, more "
        f"than {100 * MOST_REPAIRED:g} % or one in {1 / MOST_REPAIRS_A_FLOW_S:g} s of a flow"
    ]
