"""Injected stalls while real hosts run: the noise of a spec, on the CPUs that it names."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from common.errors import HostUnfitError, RunError
from engines.emulation.dataplanes.dataplane import last_cpu
from fabric._core import StallMaker
from model.noise import check_clock, check_noise, noisy, stalls_words
from model.spec import OF_ALL, OF_FABRIC, RunSpec, sub_seed

MARGIN_S = 600.0
"""Margin beyond warm-up and window after which stalls end even if the calling process hangs."""


@dataclass
class Stalling:
    """Metrics of injected stalls, filled in when they are over."""

    metrics: dict[str, float]


def check(spec: RunSpec) -> None:
    """Raise UsageError for stalls that cannot be injected, HostUnfitError for too few CPUs."""
    check_noise(spec.noise)
    check_clock(spec.clock)
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
def stalling(spec: RunSpec) -> Iterator[Stalling]:
    """Inject the spec's stalls while the block runs, on all chosen CPUs at the same time.

    Raises RunError if real-time threads are not allowed.
    """
    done = Stalling({})
    if not noisy(spec):
        yield done
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
        yield done
    finally:
        maker.stop()
        seconds = time.monotonic() - began_s
        done.metrics["stalled_pct"] = maker.stalled_ns / 1e7 / len(cpus) / seconds
        done.metrics["stalls"] = maker.stalls / len(cpus)
