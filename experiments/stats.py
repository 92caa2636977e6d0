"""Statistics of a set of flows: pure functions of a sequence of goodputs."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """Mean, minimum, median and maximum, in the unit of the values summarised."""

    mean: float
    minimum: float
    median: float
    maximum: float

    def scaled(self, factor: float) -> Spread:
        """The same spread in another unit."""
        return Spread(*(factor * v for v in (self.mean, self.minimum, self.median, self.maximum)))


def spread(values: Sequence[float]) -> Spread:
    """Summarise at least one value. Raises ValueError on none: there is no such number."""
    if not values:
        raise ValueError("no values to summarise")
    return Spread(statistics.fmean(values), min(values), statistics.median(values), max(values))


def jain(values: Sequence[float]) -> float:
    """Jain's fairness index, (sum x)^2 / (n sum x^2): 1 when all are equal, 1/n when one has all.

    All-zero values are equal shares of nothing: 1. Raises ValueError on no values or a negative one.
    Source: Jain, Chiu, Hawe, DEC-TR-301, 1984.
    """
    if not values:
        raise ValueError("no values to compare")
    if min(values) < 0:
        raise ValueError("Jain's index is defined for shares of at least 0")
    largest = max(values)
    if largest == 0:
        return 1.0
    shares = [v / largest for v in values]  # scaled first, so that squares neither overflow nor vanish
    return min(1.0, sum(shares) ** 2 / (len(shares) * sum(s * s for s in shares)))


def ranked(values: Sequence[float]) -> list[float]:
    """Values in increasing order: the y axis of the paper's rank-of-flow curves."""
    return sorted(values)
