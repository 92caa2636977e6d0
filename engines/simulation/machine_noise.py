"""How late deliveries were on a simulated machine that stalls. Pure."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engines.core_setup.stalls import elastic
from engines.simulation.readings import Reading
from fabric._core import LATENESS_EDGES_NS
from model.noise import noisy
from model.spec import RunSpec

QUANTILES = {"late_p50_us": 0.5, "late_p99_us": 0.99, "late_p999_us": 0.999}


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
