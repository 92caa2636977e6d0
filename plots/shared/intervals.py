"""The 95 % interval of a mean over seeds or repetitions (Student's t), as charts draw it."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.stats import mean_interval
from plots.data import MIN_SEEDS_FOR_INTERVAL


def interval_pct(means_pct: Sequence[float], least: int = MIN_SEEDS_FOR_INTERVAL) -> float | None:
    """Return half the width of the 95 % interval of the mean, None for fewer than `least` values."""
    return mean_interval(means_pct).half if len(means_pct) >= least else None
