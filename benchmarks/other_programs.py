"""What disturbed a measurement: the CPU time that other programs used and that the hypervisor took."""

from __future__ import annotations

import os
import time

from engines.emulation.kernel import proc
from engines.emulation.kernel.proc import STAT, CpuSample, CpuSampler, parse_stat, total
from engines.emulation.measure.verdict import MIN_OTHERS_PCT

MAX_PCT = MIN_OTHERS_PCT
"""A repetition above it is suspect, as a point is. In percent of the machine's CPU time."""


class OtherPrograms:
    """Measures from its construction on. Other programs are distinguishable in private namespaces only."""

    def __init__(self) -> None:
        self._cpu, self._before = CpuSampler(), proc.read_user_ticks()

    def share(self) -> tuple[CpuSample, float]:
        """Return the CPU use since then, and the percentage that others had, the hypervisor included."""
        use, others_pct = self._cpu.sample(), proc.others_pct(self._before, proc.read_user_ticks())
        return use, others_pct + use.machine.steal_pct


class BusyTime:
    """Measures the CPU time that was not idle, from its construction on.

    Kernels that stop the tick of an idle CPU count idle time exactly. Busy time is sampled at ticks, and work
    that timers start between two ticks can be missed altogether.
    """

    def __init__(self) -> None:
        self._before_s, self._idle_s, self._own_s = time.monotonic(), _idle_s(), time.process_time()

    def pct(self) -> float:
        """Return the busy time since then. Each CPU counts 100 %."""
        passed_s, idle_s = time.monotonic() - self._before_s, _idle_s() - self._idle_s
        return max(0.0, 100.0 * (len(os.sched_getaffinity(0)) - idle_s / passed_s))

    def others_pct(self) -> float:
        """Return the busy time but for that of this process, in percent of the time of all CPUs."""
        own_pct = 100.0 * (time.process_time() - self._own_s) / (time.monotonic() - self._before_s)
        return max(0.0, self.pct() - own_pct) / len(os.sched_getaffinity(0))


def _idle_s() -> float:
    ours = [f"cpu{number}" for number in os.sched_getaffinity(0)]
    return total(parse_stat(STAT.read_text()), ours).idle / os.sysconf("SC_CLK_TCK")
