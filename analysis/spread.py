"""Means and standard deviations of samples for each flow. Pure."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def spread(flow: npt.NDArray[Any], values: npt.NDArray[Any], count: int) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of each flow's values (flows 0..count-1); nan without values."""
    n = np.bincount(flow, minlength=count)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(flow, weights=values, minlength=count) / n
        variance = np.bincount(flow, weights=(values - mean[flow]) ** 2, minlength=count) / n
    return mean, np.sqrt(variance)
