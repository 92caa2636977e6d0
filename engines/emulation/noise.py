"""The machine's noise, measured while it waits, and stalls that are injected on purpose.

To measure it, a thread per CPU sleeps 1 ms at a time and records its lateness.

The threads have real-time priority, above everything but the kernel's own work, so their lateness is the
machine's. If that priority is refused, as in many containers, they run at normal priority, and the record
says so.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from common.errors import HostUnfitError, RunError
from engines.emulation.dataplanes.dataplane import last_cpu
from engines.emulation.kernel.proc import CpuSampler
from engines.emulation.measure.summarise import percentile_us
from engines.emulation.sandbox import client
from engines.emulation.sandbox.inside import Inside
from engines.emulation.sandbox.isolation import reported_inside
from fabric import _core
from fabric._core import StallMaker
from model.machine import MachineNoise
from model.noise import noisy, stalls_words
from model.spec import OF_ALL, OF_FABRIC, RunSpec, sub_seed

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


MARGIN_S = 600.0
"""Margin beyond warm-up and window after which stalls end even if the calling process hangs."""


def check_stalls(spec: RunSpec) -> None:
    """Raise UsageError for stalls that cannot be injected, HostUnfitError for too few CPUs."""
    if noisy(spec) and spec.noise.where != OF_ALL and last_cpu() < 0:
        raise HostUnfitError(
            f"--stalls {stalls_words(spec.noise)}: fabric and hosts share this machine's only CPU; choose "
            f"{OF_ALL} as the place"
        )


def stalled_cpus(where: str) -> list[int]:
    """Return the fabric's CPU, the other CPUs, or all."""
    cpus = sorted(os.sched_getaffinity(0))
    if where == OF_ALL:
        return cpus
    core = last_cpu()
    return [core] if where == OF_FABRIC else [cpu for cpu in cpus if cpu != core]


@contextmanager
def stalling(spec: RunSpec) -> Iterator[dict[str, float]]:
    """Inject the spec's stalls while the block runs, on all chosen CPUs at the same time; the yielded metrics
    are filled in when they are over.

    Raises RunError if real-time threads are not allowed.
    """
    metrics: dict[str, float] = {}
    if not noisy(spec):
        yield metrics
        return
    cpus, noise = stalled_cpus(spec.noise.where), spec.noise
    maker = StallMaker(
        cpus,
        every_ms=noise.every_ms,
        least_ms=noise.least_ms,
        most_ms=noise.most_ms,
        seed=sub_seed(spec.seed, "noise"),
        lasts_s=spec.warmup_s + spec.seconds + MARGIN_S,
    )
    try:
        maker.start()
    except RuntimeError as error:
        raise RunError(f"--stalls {stalls_words(noise)}: {error}") from error
    began_s = time.monotonic()
    try:
        yield metrics
    finally:
        maker.stop()
        seconds = time.monotonic() - began_s
        metrics["stalled_pct"] = maker.stalled_ns / 1e7 / len(cpus) / seconds
        metrics["stalls"] = maker.stalls / len(cpus)
