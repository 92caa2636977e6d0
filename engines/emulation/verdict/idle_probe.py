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
from engines.emulation.sandbox import client
from engines.emulation.sandbox.inside import Inside
from engines.emulation.sandbox.isolation import reported_inside
from fabric import _core
from model.machine.idle_noise import MachineNoise

PERIOD_US = 1000.0
PRIORITY = 60
SLACK_S, MOST_S = 30.0, 60.0


def measure(seconds: float) -> MachineNoise:
    """Return the lateness of idle threads over `seconds` on every CPU of this process.

    The root helper measures it where this process has one, as only root's threads get that priority. Raises
    RefabricError.
    """
    if os.geteuid() == 0 or not client.available():
        return measured_here(seconds)
    return MachineNoise.from_json(reported_inside("noise", {"seconds": seconds}, seconds + SLACK_S))


def inside(inside: Inside) -> int:
    """Measure and report the noise, as root's part of `measure`."""
    inside.report(measured_here(min(MOST_S, float(inside.request["seconds"]))).to_json())
    return 0


def measured_here(seconds: float) -> MachineNoise:
    """Return the lateness of this process's own threads."""
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
