"""The stalls of a simulated machine, in the core's form. Pure.

The elastic clock pauses while all CPUs stall together (fabric/simulation/machine_noise.hpp). Stalls of the
fabric or of the hosts alone always use the strict clock, so that their full effect shows.
"""

from __future__ import annotations

from engines.core_setup.stack import PS_PER_MS
from model.noise import noisy
from model.spec import ELASTIC, OF_ALL, OF_FABRIC, RunSpec, sub_seed

NoiseTuple = tuple[int, int, int, int, bool, bool]


def elastic(spec: RunSpec) -> bool:
    """Return whether the simulated network pauses during stalls."""
    return spec.clock == ELASTIC and spec.noise.where == OF_ALL


def noise_tuple(spec: RunSpec) -> NoiseTuple | None:
    """Return the stalls as the core reads them; None without noise."""
    if not noisy(spec):
        return None
    times_ms = (spec.noise.every_ms, spec.noise.least_ms, spec.noise.most_ms)
    every_ps, least_ps, most_ps = (round(ms * PS_PER_MS) for ms in times_ms)
    timers = spec.noise.where != OF_FABRIC
    return every_ps, least_ps, most_ps, sub_seed(spec.seed, "noise"), timers, elastic(spec)
