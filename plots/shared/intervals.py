"""The 95 % interval of a mean over seeds or repetitions (Student's t), as charts draw it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from plots.data import MIN_SEEDS_FOR_INTERVAL

_T975 = (2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110)
"""Student's t, 97.5 % quantile, for 5 .. 17 degrees of freedom."""


def interval_pct(means_pct: Sequence[float]) -> float | None:
    """Return half the width of the 95 % interval of the mean, in points; None for fewer than six values."""
    n = len(means_pct)
    if n < MIN_SEEDS_FOR_INTERVAL:
        return None
    # Beyond the table, 2.1 makes intervals at most 7 % too wide.
    t = _T975[n - MIN_SEEDS_FOR_INTERVAL] if n - MIN_SEEDS_FOR_INTERVAL < len(_T975) else 2.1
    return t * statistics.stdev(means_pct) / math.sqrt(n)
