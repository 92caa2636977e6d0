"""Whether a run's numbers are about the transport or about the machine. Pure.

A point is suspect when its main number, mean goodput or completion times, may be off by more than its
tolerance (model/machine/effects.py). Metrics that bear less are doubted in a caution. A run without any
number raises an error elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analysis.steadiness import unsteady_words
from engines.emulation.verdict.blame import FULL_PCT, Load, fault, saturated, words
from model.congestion import CONGESTION_CONTROLS
from model.machine.effects import DRIFT_POINTS, doubted_by_lateness, doubted_by_stretch
from model.reasons import (
    COMPLETION,
    CONTROL,
    DRIFT,
    FALLBACK,
    GOODPUT,
    LATE,
    LOST,
    MACHINE,
    REPAIRS,
    SATURATED,
    STALLED,
    STRETCHED,
    SUBFLOWS,
    UNSTEADY,
    Reason,
)
from model.result import FlowRow, Status

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


MAX_UNHELD_PCT = 5.0
"""As the seconds without idle time that are put down to others (blame.py)."""
MOST_LATE_LOOKS = 0.5
"""Share of a central scheduler's looks: with more, its interval is not the one that was asked for."""


@dataclass(frozen=True)
class Evidence:
    """What is known at the end of the measured window. `lost` maps a place to frames lost there that no
    queue accounts for. `late_p99_us` is None where the data plane has no clock to be late by."""

    late_p99_us: float | None
    queue_us: float
    """What a full queue takes to drain (model/machine/effects.py)."""
    lost: Mapping[str, int]
    load: Load
    flows: Sequence[FlowRow]
    fallbacks: int
    cc_asked: Sequence[str]
    """Of each of the flows."""
    elastic: bool = True
    """Whether the fabric's clock stands still while the machine does, or has no time for its hosts."""
    stretch_pct: float = 0.0
    stretch_longest_ms: float = 0.0
    """For how much of the window, in percent, the fabric's clock stood still, and for how long at once."""
    unheld_pct: float = 0.0
    """For how much of the window it went on although a CPU had no time left for hosts."""
    over_carried_pct: float = 100.0
    """What MPTCP delivered in percent of what its subflows carried."""
    halves_pct: tuple[float, float] | None = None
    """Mean goodput in the halves of the window, percent of the link rate; None where it should change."""
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

    @property
    def main_metrics(self) -> set[str]:
        """What the point is measured for."""
        sized = {bool(flow.size_bytes) for flow in self.flows}
        return {COMPLETION if is_sized else GOODPUT for is_sized in sized}


@dataclass(frozen=True)
class Verdict:
    """The point's status, why it is suspect, and which of its metrics do not stand although it is ok."""

    status: Status
    reasons: tuple[Reason, ...] = ()
    cautions: tuple[Reason, ...] = ()


def judge(evidence: Evidence) -> Verdict:
    """Status ok or suspect, every reason for the latter, and cautions."""
    graded = [*_lateness(evidence), *_stretch(evidence)]
    doubts_main = [not evidence.main_metrics.isdisjoint(reason.doubts) for reason in graded]
    reasons = (
        *(reason for reason, is_main in zip(graded, doubts_main, strict=True) if is_main),
        *_machine(evidence),
        *_stalls(evidence),
        *_subflows(evidence),
        *_window(evidence),
        *_congestion_control(evidence),
        *_repairs(evidence),
    )
    cautions = tuple(reason for reason, is_main in zip(graded, doubts_main, strict=True) if not is_main)
    return Verdict(Status.SUSPECT if reasons else Status.OK, reasons, cautions)


def only_stalled(evidence: Evidence) -> bool:
    """Whether flows stood still for no fault of the machine: that is no result at all."""
    load = evidence.load
    full = any(saturated(seconds) for seconds in (load.busy_pct, *load.cpus_pct.values()))
    blamed = any(reason.about.machine for reason in judge(evidence).reasons)
    return bool(evidence.stalled) and not full and not blamed


def _lateness(evidence: Evidence) -> list[Reason]:
    late_us, load = evidence.late_p99_us, evidence.load
    share = (late_us or 0.0) / evidence.queue_us
    doubts = doubted_by_lateness(share)
    if late_us is None or not doubts:
        return []
    whose = fault(load)
    text = (
        f"1 frame in 100 was {late_us / 1000:.1f} ms late or more, {100 * share:.0f} % of the "
        f"{evidence.queue_us / 1000:.0f} ms that a full queue takes; {words(whose, load)}"
    )
    return [Reason(LATE, text, whose, (("late_p99_us", late_us), ("queue_us", evidence.queue_us)), doubts)]


def _stretch(evidence: Evidence) -> list[Reason]:
    pct, longest_ms = evidence.stretch_pct, evidence.stretch_longest_ms
    doubts = doubted_by_stretch(pct)
    if not doubts:
        return []
    whose = fault(evidence.load)
    text = (
        f"the fabric's clock stood still for {pct:.0f} % of the time, {longest_ms:.0f} ms at most at once; "
        f"{words(whose, evidence.load)}"
    )
    numbers = (("clock_stretch_pct", pct), ("clock_stretch_longest_ms", longest_ms))
    return [Reason(STRETCHED, text, whose, numbers, doubts)]


def _machine(evidence: Evidence) -> list[Reason]:
    return [*_thread(evidence), *_losses(evidence), *_saturation(evidence), *_looks(evidence)]


def _looks(evidence: Evidence) -> list[Reason]:
    if evidence.late_looks <= MOST_LATE_LOOKS * evidence.looks:
        return []
    text = f"{evidence.late_looks} of the scheduler's {evidence.looks} looks came late or not at all"
    return [Reason(MACHINE, text, fault(evidence.load))]


def _stalls(evidence: Evidence) -> list[Reason]:
    of = f"of {len(evidence.flows)} flows delivered nothing in the whole window"
    stalled = [Reason(STALLED, f"{evidence.stalled} {of}")] if evidence.stalled else []
    if not evidence.waiting:
        return stalled
    why = "although their subflows did: the next bytes were on a slow one; measure longer (--seconds)"
    return [*stalled, Reason(STALLED, f"{evidence.waiting} {of} {why}")]


def _window(evidence: Evidence) -> list[Reason]:
    """Whether the window shows what the network carried in it, and carried all the while."""
    found = []
    over_pct = evidence.over_carried_pct
    if text := unsteady_words(over_pct):
        found.append(Reason(UNSTEADY, text, numbers=(("delivered_over_carried_pct", over_pct),)))
    if evidence.halves_pct is not None:
        first, second = evidence.halves_pct
        if abs(second - first) > DRIFT_POINTS:
            text = f"mean goodput was {first:.1f} % of the link rate, then {second:.1f} in the second half"
            found.append(
                Reason(DRIFT, text, numbers=(("first_half_pct", first), ("second_half_pct", second)))
            )
    return found


def _thread(evidence: Evidence) -> list[Reason]:
    if evidence.thread_pct <= FULL_THREAD_PCT:
        return []
    text = f"the one thread that forwards all frames was busy {evidence.thread_pct:.0f} % of the time"
    return [Reason(SATURATED, text, fault(evidence.load), (("thread_pct", evidence.thread_pct),))]


def _losses(evidence: Evidence) -> list[Reason]:
    return [
        Reason(LOST, f"{count} frames were lost in {place}", fault(evidence.load), (("frames", count),))
        for place, count in evidence.lost.items()
        if count
    ]


def _saturation(evidence: Evidence) -> list[Reason]:
    """Report that hosts had no CPU time left: they answer late then, even where frames are on time.

    An elastic clock waits for them, up to a point."""
    load, whose = evidence.load, fault(evidence.load)
    if evidence.elastic:
        if evidence.unheld_pct <= MAX_UNHELD_PCT:
            return []
        text = f"a CPU had no time left for hosts in {evidence.unheld_pct:.0f} % of the window"
        numbers = (("clock_unheld_pct", evidence.unheld_pct),)
    else:
        full = [seconds for seconds in (load.busy_pct, *load.cpus_pct.values()) if saturated(seconds)]
        if not full:
            return []
        count = max(sum(busy > FULL_PCT for busy in seconds) for seconds in full)
        text = f"no idle time was left in {count} of {len(load.busy_pct)} seconds"
        numbers = (("seconds", float(count)),)
    return [Reason(SATURATED, f"{text}; {words(whose, load)}", whose, numbers)]


def _subflows(evidence: Evidence) -> list[Reason]:
    reasons = []
    due = [f for f in evidence.flows if not (evidence.joins_late and f.size_bytes)]
    seen = [flow for flow in due if flow.subflows_joined or not math.isfinite(flow.completed_s)]
    short = [flow for flow in seen if flow.subflows_joined < flow.subflows_asked]
    if short:
        worst = min(flow.subflows_joined for flow in short)
        text = f"{len(short)} of {len(due)} flows had fewer than {short[0].subflows_asked}, the worst {worst}"
        reasons.append(Reason(SUBFLOWS, f"subflows: {text}", numbers=(("flows", len(short)),)))
    if evidence.fallbacks:
        text = f"fallback: {evidence.fallbacks} flows fell back from MPTCP to TCP"
        reasons.append(Reason(FALLBACK, text, numbers=(("flows", evidence.fallbacks),)))
    return reasons


def _congestion_control(evidence: Evidence) -> list[Reason]:
    others: dict[str, set[str]] = {}
    for asked, flow in zip(evidence.cc_asked, evidence.flows, strict=True):
        others.setdefault(asked, set()).update(set(flow.cc.split("/")) - {"", asked})
    return [
        Reason(CONTROL, f"{asked} was asked for, {', '.join(sorted(found))} was in force too")
        for asked, found in others.items()
        if found
    ]


def _repairs(evidence: Evidence) -> list[Reason]:
    repairs, losses = evidence.cc_repairs, evidence.cc_losses
    ours = sum(cc in CONGESTION_CONTROLS and CONGESTION_CONTROLS[cc].bpf for cc in evidence.cc_asked)
    flow_s = ours * len(evidence.load.busy_pct)
    often = repairs > MOST_REPAIRS_A_FLOW_S * flow_s
    if not often and (repairs < LEAST_REPAIRS or repairs <= MOST_REPAIRED * (repairs + losses)):
        return []
    text = (
        f"the kernel left out {repairs} of {repairs + losses} window reductions, more "
        f"than {100 * MOST_REPAIRED:g} % or one in {1 / MOST_REPAIRS_A_FLOW_S:g} s of a flow"
    )
    return [Reason(REPAIRS, text, numbers=(("repairs", repairs), ("losses", losses)))]
