"""What the core takes of a spec's noise: the stalls of a simulated machine. Pure.

The elastic clock stands still while all CPUs stall at once (fabric/simulation/machine_noise.hpp). Stalls of
one side alone always use the strict clock, whatever the spec says: that is their full effect.
"""

from __future__ import annotations

from engines.core_setup.stack import PS_PER_MS
from model.noise import noisy
from model.spec import ELASTIC, OF_ALL, OF_FABRIC, RunSpec, sub_seed

NoiseTuple = tuple[int, int, int, int, bool, bool]


def elastic(spec: RunSpec) -> bool:
    """Whether the simulated network stands still in stalls."""
    return spec.clock == ELASTIC and spec.noise.where == OF_ALL


def noise_tuple(spec: RunSpec) -> NoiseTuple | None:
    """None without noise."""
    if not noisy(spec):
        return None
    times_ms = (spec.noise.every_ms, spec.noise.least_ms, spec.noise.most_ms)
    every_ps, least_ps, most_ps = (round(ms * PS_PER_MS) for ms in times_ms)
    timers = spec.noise.where != OF_FABRIC
    return every_ps, least_ps, most_ps, sub_seed(spec.seed, "noise"), timers, elastic(spec)
