"""Measurement of this machine's noise: a thread per CPU sleeps 1 ms at a time and records its lateness.

The threads have real-time priority, above everything but the kernel's own work, so their lateness is the
machine's. If that priority is refused, as in many containers, they run at normal priority, and the record
says so.
"""

from __future__ import annotations

import os
import time

import numpy as np

from engines.emulation.kernel.cpu import CpuSampler
from engines.emulation.measure.summarise import percentile_us
from fabric import _core
from model.machine.idle_noise import MachineNoise

PERIOD_US = 1000.0
PRIORITY = 60


def measure(seconds: float) -> MachineNoise:
    """Return the lateness of idle threads over `seconds` on every CPU of this process."""
    cpus = sorted(os.sched_getaffinity(0))
    use = CpuSampler()
    probe = _core.IdleProbe(cpus, period_us=PERIOD_US, priority=PRIORITY)
    probe.start()
    try:
        time.sleep(seconds)
    finally:
        probe.stop()
    counts = [probe.histogram(i) for i in range(len(cpus))]
    longest_us = [probe.longest_ns(i) / 1000 for i in range(len(cpus))]
    together = np.sum(counts, axis=0)
    return MachineNoise(
        seconds=seconds,
        late_p50_us=percentile_us(together, 50),
        late_p99_us=percentile_us(together, 99),
        longest_us=max(longest_us),
        steal_pct=use.sample().machine.steal_pct,
        by_cpu=tuple(zip(cpus, (percentile_us(one, 99) for one in counts), longest_us, strict=True)),
        realtime=probe.is_real_time,
    )
