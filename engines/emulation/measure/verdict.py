"""The verdict on a run: whether its numbers describe the transport or the machine. Pure.

A point is suspect if its main metric, mean goodput or completion times, may be off by more than its tolerance
(model/machine.py). Doubts on metrics that tolerate less are cautions. A run without any number raises an
error elsewhere.

Congestion slows a flow but does not stop it. Two cases look alike at the application. No subflow of a
*stalled* flow delivers anything. Subflows of a *waiting* flow do, behind a gap: MPTCP delivers in order, and
the data at the front is on a subflow that takes seconds to send it (docs/experiments/subflow-idle.md). A
stalled flow makes the run fail; a waiting flow is a valid result.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from analysis.plausibility import OVER_CARRIED_PCT, drift_reasons, settling_reasons, unsteady_reasons
from common.errors import StalledFlowError
from engines.emulation.measure.observing import Sample
from fabric.plan import FRAME_BITS
from model.congestion import CONGESTION_CONTROLS
from model.flows import PlannedFlow
from model.machine import doubted_by_lateness, doubted_by_stretch
from model.reasons import (
    COMPLETION,
    CONTROL,
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
    Fault,
    Reason,
)
from model.result import FlowRow
from model.spec import LinkSpec

FULL_THREAD_PCT = 94.0
"""A forwarding thread busier than this has no time left; the kernel limits real-time threads to 95 %
(sched(7)). Below it Open vSwitch's thread is not late yet: with little load it polls every port per frame."""

MAX_REPAIRED = 0.05
"""Share of window reductions that the kernel may skip (docs/congestion.md); each gives a subflow about one
round trip of a window that is too large."""
MAX_REPAIRS_A_FLOW_S = 0.05
"""Repairs per second and flow; before each a burst may have left, whose queue lasts for a second."""
MIN_REPAIRS = 5
"""Minimum number of repairs for judging their share."""


MAX_UNHELD_PCT = 5.0
"""Analogous to the share of saturated seconds that other users explain."""
MAX_LATE_LOOKS = 0.5
"""Share of a central scheduler's ticks; if more are late, its interval is not the requested one."""


@dataclass(frozen=True)
class Evidence:
    """Evidence at the end of the measured window. `lost` counts frames by place that were lost outside
    queues. `late_p99_us` is None if the data plane does not measure lateness."""

    late_p99_us: float | None
    queue_us: float
    """Drain time of a full queue (model/machine.py)."""
    lost: Mapping[str, int]
    load: CpuLoad
    flows: Sequence[FlowRow]
    fallbacks: int
    cc_asked: Sequence[str]
    """Requested congestion control of each flow."""
    elastic: bool = True
    """Whether the fabric's clock pauses while the machine stalls or has no time for hosts."""
    stretch_pct: float = 0.0
    stretch_longest_ms: float = 0.0
    """Share of the window in which the fabric's clock was paused, and its longest pause."""
    unheld_pct: float = 0.0
    """Share of the window in which the clock ran although a CPU had no time left for hosts."""
    over_carried_pct: float = 100.0
    """Data that MPTCP delivered, in percent of what its subflows carried."""
    halves_pct: tuple[float, float] | None = None
    """Mean goodput in each half of the window, in percent of the link rate; None if it should change."""
    warmup_s: float = 0.0
    round_trip_s: float = 0.0
    """Mean round trip of the subflows that must have settled when the window began; 0 if there are none."""
    thread_pct: float = 0.0
    """Load of the thread that forwards all frames, if the data plane does not measure lateness; else 0."""
    stalled: int = 0
    """Flows that delivered nothing although frames were due."""
    waiting: int = 0
    """Flows whose subflows carried data that waited for a gap during the whole window."""
    joins_late: bool = False
    """Whether a sized flow may complete before its further subflows join."""
    granted: Sequence[int] | None = None
    """Subflows that each flow should have, where a controller opens them; None: those asked for."""
    cc_losses: int = 0
    cc_repairs: int = 0
    """Window reductions by refabric's congestion controls, and repairs of skipped reductions."""
    looks: int = 0
    late_looks: int = 0
    """Ticks of a central scheduler that were due, and those that were skipped or too long."""

    @property
    def main_metrics(self) -> set[str]:
        """The metrics for which the point is measured. Programs without flows tolerate what goodput does."""
        sized = {bool(flow.size_bytes) for flow in self.flows} or {False}
        return {COMPLETION if is_sized else GOODPUT for is_sized in sized}


def judge(evidence: Evidence) -> tuple[tuple[Reason, ...], tuple[Reason, ...]]:
    """Return all reasons for suspicion, and cautions about single metrics."""
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
    return reasons, cautions


def only_stalled(evidence: Evidence) -> bool:
    """Return whether flows stalled although the machine kept up; such a run has no result."""
    load = evidence.load
    full = any(saturated(seconds) for seconds in (load.busy_pct, *load.cpus_pct.values()))
    blamed = any(reason.about.machine for reason in judge(evidence)[0])
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
        f"{evidence.queue_us / 1000:.0f} ms that a full queue takes to drain; {words(whose, load)}"
    )
    return [Reason(LATE, text, whose, (("late_p99_us", late_us), ("queue_us", evidence.queue_us)), doubts)]


def _stretch(evidence: Evidence) -> list[Reason]:
    pct, longest_ms = evidence.stretch_pct, evidence.stretch_longest_ms
    doubts = doubted_by_stretch(pct)
    if not doubts:
        return []
    whose = fault(evidence.load)
    text = (
        f"the fabric's clock was paused for {pct:.0f} % of the time, at most {longest_ms:.0f} ms at once; "
        f"{words(whose, evidence.load)}"
    )
    numbers = (("clock_stretch_pct", pct), ("clock_stretch_longest_ms", longest_ms))
    return [Reason(STRETCHED, text, whose, numbers, doubts)]


def _machine(evidence: Evidence) -> list[Reason]:
    """Return reasons if the machine had no time: for the forwarding thread, frames, hosts or ticks."""
    load, whose, reasons = evidence.load, fault(evidence.load), []
    if evidence.thread_pct > FULL_THREAD_PCT:
        text = f"the thread that forwards all frames was busy {evidence.thread_pct:.0f} % of the time"
        reasons.append(Reason(SATURATED, text, whose, (("thread_pct", evidence.thread_pct),)))
    for place, count in evidence.lost.items():
        if count:
            reasons.append(Reason(LOST, f"{count} frames were lost in {place}", whose, (("frames", count),)))
    full = [seconds for seconds in (load.busy_pct, *load.cpus_pct.values()) if saturated(seconds)]
    if evidence.elastic:  # its clock waits for hosts, but only up to a limit
        if evidence.unheld_pct > MAX_UNHELD_PCT:
            text = f"a CPU had no time left for hosts in {evidence.unheld_pct:.0f} % of the window"
            numbers = (("clock_unheld_pct", evidence.unheld_pct),)
            reasons.append(Reason(SATURATED, f"{text}; {words(whose, load)}", whose, numbers))
    elif full:
        count = max(sum(busy > FULL_PCT for busy in seconds) for seconds in full)
        text = f"no idle time was left in {count} of {len(load.busy_pct)} seconds"
        numbers = (("seconds", float(count)),)
        reasons.append(Reason(SATURATED, f"{text}; {words(whose, load)}", whose, numbers))
    if evidence.late_looks > MAX_LATE_LOOKS * evidence.looks:
        text = f"{evidence.late_looks} of the scheduler's {evidence.looks} ticks were late or skipped"
        reasons.append(Reason(MACHINE, text, whose))
    return reasons


def _stalls(evidence: Evidence) -> list[Reason]:
    of = f"of {len(evidence.flows)} flows delivered nothing in the whole window"
    stalled = [Reason(STALLED, f"{evidence.stalled} {of}")] if evidence.stalled else []
    if not evidence.waiting:
        return stalled
    why = "although their subflows did: data at the front was on a slow subflow; measure longer (--seconds)"
    return [*stalled, Reason(STALLED, f"{evidence.waiting} {of} {why}")]


def _window(evidence: Evidence) -> list[Reason]:
    """Return reasons if data delivered in the window was not carried in it, if goodput drifted, or if it was
    bound to."""
    carried = unsteady_reasons({OVER_CARRIED_PCT: evidence.over_carried_pct})
    settling = settling_reasons(evidence.warmup_s, evidence.round_trip_s)
    return [*carried, *drift_reasons(evidence.halves_pct), *settling]


def _subflows(evidence: Evidence) -> list[Reason]:
    reasons = []
    due = [f for f in evidence.flows if not (evidence.joins_late and f.size_bytes)]
    seen = [flow for flow in due if flow.subflows_joined or not math.isfinite(flow.completed_s)]
    granted = evidence.granted
    wanted = {flow.flow: granted[flow.flow] if granted else flow.subflows_asked for flow in seen}
    short = [flow for flow in seen if flow.subflows_joined < wanted[flow.flow]]
    if short:
        worst = min(flow.subflows_joined for flow in short)
        text = f"{len(short)} of {len(due)} flows had fewer than {wanted[short[0].flow]}, at worst {worst}"
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
        Reason(CONTROL, f"{asked} was requested, but {', '.join(sorted(found))} was in effect")
        for asked, found in others.items()
        if found
    ]


def _repairs(evidence: Evidence) -> list[Reason]:
    repairs, losses = evidence.cc_repairs, evidence.cc_losses
    ours = sum(cc in CONGESTION_CONTROLS and CONGESTION_CONTROLS[cc].bpf for cc in evidence.cc_asked)
    flow_s = ours * len(evidence.load.busy_pct)
    often = repairs > MAX_REPAIRS_A_FLOW_S * flow_s
    if not often and (repairs < MIN_REPAIRS or repairs <= MAX_REPAIRED * (repairs + losses)):
        return []
    text = (
        f"the kernel skipped {repairs} of {repairs + losses} window reductions, more "
        f"than {100 * MAX_REPAIRED:g} % or one per flow in {1 / MAX_REPAIRS_A_FLOW_S:g} s"
    )
    return [Reason(REPAIRS, text, numbers=(("repairs", repairs), ("losses", losses)))]


MIN_STEAL_PCT = 1.0
"""Minimum share of CPU time taken by the hypervisor for it to be the cause."""
MIN_OTHERS_PCT = 5.0
"""Minimum share of CPU time of processes outside the run for them to be the cause."""
BUSY_CPU_PCT = 85.0
"""A CPU busier than this delays threads by its own load."""
JITTER_US = 500.0
"""If a partly idle CPU starts its first thread later than this, the hypervisor had stopped the CPU."""
FULL_PCT = 97.0
"""A second busier than this had no idle time left."""
MAX_SATURATED = 0.05
"""Share of saturated seconds that other users of the machine explain."""


@dataclass(frozen=True)
class CpuLoad:
    """CPU load in the window: busy percentage of the machine and of each CPU in every second, and shares of
    all CPU time taken by the hypervisor and by other processes. `jitter_p99_us` is the 99th percentile of
    the lateness of a highest-priority thread on the worst CPU."""

    busy_pct: Sequence[float]
    cpus_pct: Mapping[str, Sequence[float]] = field(default_factory=dict)
    steal_pct: float = 0.0
    others_pct: float = 0.0
    jitter_p99_us: float = 0.0

    @property
    def busiest(self) -> tuple[str, float]:
        """The busiest CPU and its mean load; ("", 0) if single CPUs are unknown."""
        means = {cpu: sum(pct) / len(pct) for cpu, pct in self.cpus_pct.items() if pct}
        return max(means.items(), key=lambda item: item[1], default=("", 0.0))


def fault(load: CpuLoad) -> Fault:
    """Return the cause, surest sign first; between hypervisor and other processes, the larger share."""
    if load.steal_pct > max(MIN_STEAL_PCT, load.others_pct):
        return Fault.HYPERVISOR
    if load.others_pct > MIN_OTHERS_PCT:
        return Fault.OTHERS
    if load.steal_pct > MIN_STEAL_PCT:
        return Fault.HYPERVISOR
    if load.busiest[1] > BUSY_CPU_PCT or saturated(load.busy_pct):
        return Fault.LOAD
    return Fault.HYPERVISOR if load.jitter_p99_us > JITTER_US else Fault.LOAD


def words(whose: Fault, load: CpuLoad) -> str:
    """Return the cause as text, with its evidence."""
    if whose is Fault.OTHERS:
        return f"other processes took {load.others_pct:.0f} % of the CPU time"
    if whose is Fault.HYPERVISOR:
        if load.steal_pct > MIN_STEAL_PCT:
            return f"the hypervisor took {load.steal_pct:.1f} % of the CPU time"
        late_ms = load.jitter_p99_us / 1000
        return f"partly idle CPUs woke up {late_ms:.1f} ms late 1 time in 100: likely the hypervisor"
    cpu, busy = load.busiest
    return f"this run kept {cpu.upper()} {busy:.0f} % busy" if cpu else "this run keeps the machine busy"


def saturated(busy_pct: Sequence[float]) -> bool:
    """Return whether more seconds had no idle time than other users of the machine explain."""
    return sum(busy > FULL_PCT for busy in busy_pct) > MAX_SATURATED * len(busy_pct)


DUE_FRAMES = 200
"""Minimum fair share, in frames, for judging a flow. With less, a few lost retransmissions in a row suffice:
TCP's timer alone then waits for most of a minute."""


def silent_flows(
    flows: Sequence[PlannedFlow], samples: Sequence[Sample], seconds: float, link: LinkSpec
) -> list[int]:
    """Return flows that delivered nothing in the last `seconds` although frames were due to them.

    Returns none if the samples do not cover that time. Sized flows and flows without a socket are skipped.
    """
    last = samples[-1]
    rounding_s = 0.001
    earlier = [sample for sample in samples if sample.t_s <= last.t_s - seconds + rounding_s]
    if not earlier:
        return []
    pairs = zip(flows, earlier[-1].received, last.received, due_frames(flows, seconds, link), strict=True)
    return [
        flow.flow
        for flow, before, after, due in pairs
        if before is not None and before == after and due >= DUE_FRAMES and not flow.size_bytes
    ]


def stalled_and_waiting(silent: Sequence[int], acked_bytes: Sequence[int]) -> tuple[list[int], list[int]]:
    """Split silent flows into stalled and waiting ones.

    `acked_bytes` holds, for every flow, the bytes that its subflows had acknowledged meanwhile.
    """
    stalled = [flow for flow in silent if not acked_bytes[flow]]
    return stalled, [flow for flow in silent if acked_bytes[flow]]


def due_frames(flows: Sequence[PlannedFlow], seconds: float, link: LinkSpec) -> list[float]:
    """Return how many full frames each flow could send in `seconds` if hosts shared their links evenly."""
    sent, received = Counter(f.src for f in flows), Counter(f.dst for f in flows)
    frames = seconds * link.rate_mbps * 1e6 / FRAME_BITS
    return [frames / max(sent[flow.src], received[flow.dst]) for flow in flows]


def stall_error(flows: Sequence[PlannedFlow], stalled: Sequence[int], seconds: float) -> StalledFlowError:
    """Return the error that names the flows that delivered nothing for `seconds`, and what to do."""
    first = flows[stalled[0]]
    return StalledFlowError(
        f"{len(stalled)} of {len(flows)} flows delivered nothing for {seconds:.0f} s although connected, "
        f"the first flow {first.flow} from {first.src} to {first.dst}: "
        "run the point again (docs/fidelity.md, stalled connections)"
    )
