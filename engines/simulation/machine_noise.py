"""A simulated machine that stalls: the spec's noise for the core, and the lateness of deliveries. Pure.

The elastic clock pauses while all CPUs stall (fabric/simulation/machine_noise.hpp). Stalls of only one side
are simulated with the strict clock, whatever the spec says, so that they have their full effect.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engines.simulation.readings import Reading
from engines.simulation.stack import PS_PER_MS
from fabric._core import LATENESS_EDGES_NS
from model.noise import noisy
from model.spec import ELASTIC, OF_ALL, OF_FABRIC, RunSpec, sub_seed

NoiseTuple = tuple[int, int, int, int, bool, bool]
QUANTILES = {"late_p50_us": 0.5, "late_p99_us": 0.99, "late_p999_us": 0.999}


def elastic(spec: RunSpec) -> bool:
    """Return whether the simulated network pauses during stalls."""
    return spec.clock == ELASTIC and spec.noise.where == OF_ALL


def noise_tuple(spec: RunSpec) -> NoiseTuple | None:
    """Return the noise in the core's form; None without noise."""
    if not noisy(spec):
        return None
    times_ms = (spec.noise.every_ms, spec.noise.least_ms, spec.noise.most_ms)
    every_ps, least_ps, most_ps = (round(ms * PS_PER_MS) for ms in times_ms)
    timers = spec.noise.where != OF_FABRIC
    return every_ps, least_ps, most_ps, sub_seed(spec.seed, "noise"), timers, elastic(spec)


def noise_metrics(spec: RunSpec, opened: Reading, closed: Reading) -> dict[str, float]:
    """Return the lateness of the window's deliveries, and the share of real time in stalls; {} without."""
    if not noisy(spec):
        return {}
    counts = closed.noise["lateness"] - opened.noise["lateness"]
    delivered = closed.ports["delivered"] - opened.ports["delivered"]
    stalled_ps = closed.noise["stalled_ps"] - opened.noise["stalled_ps"]
    window_ps = closed.t_ps - opened.t_ps
    real_ps = window_ps + stalled_ps if elastic(spec) else window_ps
    late = {name: late_us(counts, delivered, quantile) for name, quantile in QUANTILES.items()}
    return {**late, "stalled_pct": 100 * stalled_ps / real_ps}


def late_us(counts: npt.NDArray[np.uint64], delivered: int, quantile: float) -> float:
    """Return a quantile of the lateness of all deliveries, in microseconds.

    `counts` is the histogram of late deliveries over LATENESS_EDGES_NS. The value is the upper edge of a bin
    (resolution 1/16).
    """
    on_time = max(0, delivered - int(counts.sum()))
    wanted = quantile * max(delivered, 1)
    if wanted <= on_time:
        return 0.0
    bin_ = int(np.searchsorted(on_time + np.cumsum(counts), wanted))
    return float(LATENESS_EDGES_NS[min(bin_ + 1, len(LATENESS_EDGES_NS) - 1)]) / 1000
