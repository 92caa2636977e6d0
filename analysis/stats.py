"""Statistics of the flows of a point, of two measurements of the same flows, and of differences. Pure."""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Spread:
    """Mean, minimum, median and maximum, in the unit of the values."""

    mean: float
    minimum: float
    median: float
    maximum: float

    def scaled(self, factor: float) -> Spread:
        """Return the same spread in another unit."""
        return Spread(*(factor * v for v in (self.mean, self.minimum, self.median, self.maximum)))


def spread(values: Sequence[float]) -> Spread:
    """Summarise values. Raises ValueError without values."""
    if not values:
        raise ValueError("no values to summarise")
    return Spread(statistics.fmean(values), min(values), statistics.median(values), max(values))


def jain(values: Sequence[float]) -> float:
    """Return Jain's fairness index, (sum x)^2 / (n sum x^2): 1 for equal shares, 1/n if one flow has all.

    All zeros count as equal shares: 1. Raises ValueError without values or for a negative value.
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


@dataclass(frozen=True)
class Interval:
    """A value and half the width of its 95 % confidence interval, in the unit of the measurement."""

    value: float
    half: float

    @property
    def excludes_zero(self) -> bool:
        """Whether zero lies outside the interval: chance alone explains this in at most 5 of 100 cases."""
        return abs(self.value) > self.half


def mean_interval(values: Sequence[float]) -> Interval:
    """Return the mean of independent values with Student's interval. Raises ValueError for fewer than two."""
    if len(values) < 2:
        raise ValueError("a confidence interval needs at least two values")
    error = statistics.stdev(values) / math.sqrt(len(values))
    return Interval(statistics.fmean(values), t_quantile(0.975, len(values) - 1) * error)


def paired_difference(a: Sequence[float], b: Sequence[float]) -> Interval:
    """Return the mean of b[i] - a[i] with Student's interval; effects common to a pair cancel.

    Raises ValueError on fewer than two pairs or unequal lengths.
    """
    return mean_interval([y - x for x, y in zip(a, b, strict=True)])


def welch_difference(a: Sequence[float], b: Sequence[float]) -> Interval:
    """Return mean(b) - mean(a) of two independent samples of unequal variance, of two values or more each.

    Degrees of freedom by Welch and Satterthwaite. Raises ValueError. Source: Welch, Biometrika 34, 1947.
    """
    if min(len(a), len(b)) < 2:
        raise ValueError("a confidence interval needs at least two values of each sample")
    of_a, of_b = (statistics.variance(values) / len(values) for values in (a, b))
    difference = statistics.fmean(b) - statistics.fmean(a)
    both = of_a + of_b
    if both == 0:
        return Interval(difference, 0.0)
    # Use relative shares, so that tiny variances do not underflow when squared.
    freedom = 1 / ((of_a / both) ** 2 / (len(a) - 1) + (of_b / both) ** 2 / (len(b) - 1))
    return Interval(difference, t_quantile(0.975, freedom) * math.sqrt(both))


@functools.cache
def t_quantile(p: float, freedom: float) -> float:
    """Return Student's t quantile: the value not exceeded with probability `p`, for any `freedom` > 0.

    One takes 1.7 ms, and most intervals of a sweep are of as many seeds. Raises ValueError unless 0 < p < 1
    and freedom > 0.
    """
    if not 0 < p < 1 or not freedom > 0:
        raise ValueError(f"there is no t quantile at p={p:g} with {freedom:g} degrees of freedom")
    if p < 0.5:
        return -t_quantile(1 - p, freedom)
    low, high = 0.0, 1.0
    while _t_tail(high, freedom) > 1 - p:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if _t_tail(middle, freedom) > 1 - p else (low, middle)
    return high


def _t_tail(t: float, freedom: float) -> float:
    """Return the probability of a value above `t` >= 0."""
    return 0.5 * _incomplete_beta(freedom / (freedom + t * t), freedom / 2, 0.5)


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b), 0 <= x <= 1.

    Source: DLMF 8.17.22, a continued fraction that converges fast below (a + 1) / (a + b + 2).
    """
    if x in (0.0, 1.0):
        return x
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(1 - x, b, a)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    fraction = 0.0
    for n in range(200, 0, -1):
        m = n // 2
        if n % 2:
            step = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            step = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        fraction = step / (1 + fraction)
    return front / (a * (1 + fraction))


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


def spread_by_flow(flow: npt.NDArray[Any], values: npt.NDArray[Any], count: int) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of each flow's values (flows 0..count-1); nan without values."""
    n = np.bincount(flow, minlength=count)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(flow, weights=values, minlength=count) / n
        variance = np.bincount(flow, weights=(values - mean[flow]) ** 2, minlength=count) / n
    return mean, np.sqrt(variance)
