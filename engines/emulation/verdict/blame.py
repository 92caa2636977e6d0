"""Whose fault it is that a machine was not on time: this run's, other processes', the hypervisor's. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from model.reasons import Fault

MIN_STEAL_PCT = 1.0
"""Of all CPU time that the hypervisor must have taken before it is to blame."""
MIN_OTHERS_PCT = 5.0
"""The same of processes that are not the run's own."""
BUSY_CPU_PCT = 85.0
"""A CPU busier than this delays threads by its own work."""
JITTER_US = 500.0
"""A CPU with time left that runs its first thread later than this was not running at all."""
FULL_PCT = 97.0
"""A second busier than this has no idle time left."""
MAX_SATURATED = 0.05
"""Share of saturated seconds that is put down to the machine's other users."""


@dataclass(frozen=True)
class Load:
    """What the machine did in the window: how busy all of it and each CPU was in each second, percent of all
    CPU time that the hypervisor and other processes took, and the 99th percentile by which a thread that
    comes before all others ran late on the worst CPU."""

    busy_pct: Sequence[float]
    cpus_pct: Mapping[str, Sequence[float]] = field(default_factory=dict)
    steal_pct: float = 0.0
    others_pct: float = 0.0
    jitter_p99_us: float = 0.0

    @property
    def busiest(self) -> tuple[str, float]:
        """The busiest CPU and how busy it was on average; none where CPUs are not known one by one."""
        means = {cpu: sum(pct) / len(pct) for cpu, pct in self.cpus_pct.items() if pct}
        return max(means.items(), key=lambda item: item[1], default=("", 0.0))


def fault(load: Load) -> Fault:
    """Who is to blame, the surest sign first; of the hypervisor and other processes whoever took more."""
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
    """The same in a reader's words, with the sign."""
    if whose is Fault.OTHERS:
        return f"other processes took {load.others_pct:.0f} % of the CPU time"
    if whose is Fault.HYPERVISOR:
        if load.steal_pct > MIN_STEAL_PCT:
            return f"the hypervisor took {load.steal_pct:.1f} % of the CPU time"
        late_ms = load.jitter_p99_us / 1000
        return f"CPUs with time left woke up {late_ms:.1f} ms late 1 time in 100: likely the hypervisor"
    cpu, busy = load.busiest
    return f"{cpu.upper()} was {busy:.0f} % busy with this run" if cpu else "this run keeps the machine busy"


def saturated(busy_pct: Sequence[float]) -> bool:
    """Whether more seconds were without idle time than the machine's other users explain."""
    return sum(busy > FULL_PCT for busy in busy_pct) > MAX_SATURATED * len(busy_pct)
