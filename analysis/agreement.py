"""How far two measurements of the same flows agree. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def correlation(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    """Pearson's r; None for fewer than three pairs, or where one side does not vary."""
    if len(xs) < 3 or len(set(xs)) == 1 or len(set(ys)) == 1:
        return None
    return statistics.correlation(xs, ys)


def rank_correlation(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    """Spearman's rho: `correlation` of the ranks, equal values sharing theirs."""
    return correlation(_ranks(xs), _ranks(ys))


def _ranks(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    first = {value: place for place, value in reversed(list(enumerate(ordered)))}
    last = {value: place for place, value in enumerate(ordered)}
    return [(first[value] + last[value]) / 2 for value in values]
