"""Agreement of two measurements of the same flows. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def correlation(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    """Return Pearson's r; None for fewer than three pairs, or if one side is constant."""
    if len(xs) < 3 or len(set(xs)) == 1 or len(set(ys)) == 1:
        return None
    return statistics.correlation(xs, ys)


def rank_correlation(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    """Return Spearman's rho: the `correlation` of ranks; equal values share the mean of their ranks."""
    return correlation(_ranks(xs), _ranks(ys))


def _ranks(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    first = {value: place for place, value in reversed(list(enumerate(ordered)))}
    last = {value: place for place, value in enumerate(ordered)}
    return [(first[value] + last[value]) / 2 for value in values]
