"""The cause of lateness: this run, other processes, or the hypervisor. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from model.reasons import Fault

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
class Load:
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


def fault(load: Load) -> Fault:
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


def words(whose: Fault, load: Load) -> str:
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
