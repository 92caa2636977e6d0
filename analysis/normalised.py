"""Completion times by flow size as pFabric counts them, with flows that do not end. Pure.

A completion time is normalised by the flow's time alone on its path. Source: Alizadeh et al., pFabric,
SIGCOMM 2013, section 5.3 (the normalised time and the three ranges of sizes).

A flow counts if it arrives in the first `COUNTED_SHARE` of the measured window. Earlier flows met a network
that was still filling; later ones would have little time to end. A flow that counts and has not ended when
traffic ends enters with the time that it has taken so far, which is less than its real time. The number of
such flows is shown beside every result.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis.completion import percentile
from model.result import FlowRow
from model.rows import array

COUNTED_SHARE = 0.6
SMALL_BYTES, LARGE_BYTES = 100_000, 10_000_000


@dataclass(frozen=True)
class Range:
    """Flows larger than `above` and up to `up_to` bytes."""

    label: str
    above: float = 0
    up_to: float = math.inf


ALL = Range("all flows")
SMALL = Range("(0, 100 kB]", 0, SMALL_BYTES)
MIDDLE = Range("(100 kB, 10 MB]", SMALL_BYTES, LARGE_BYTES)
LARGE = Range("above 10 MB", LARGE_BYTES)


@dataclass(frozen=True)
class Normalised:
    """Normalised completion times of the flows that count, those that have not ended among them."""

    values: tuple[float, ...]
    unfinished: int = 0

    @property
    def unfinished_pct(self) -> float | None:
        """The share of flows that had not ended, in percent; None without flows."""
        return 100 * self.unfinished / len(self.values) if self.values else None

    @property
    def mean(self) -> float | None:
        """None without flows."""
        return statistics.fmean(self.values) if self.values else None

    @property
    def p99(self) -> float | None:
        """The 99th percentile; None for fewer than a hundred flows."""
        return percentile(self.values, 99) if len(self.values) >= 100 else None


def counted(rows: Sequence[FlowRow], seconds: float) -> npt.NDArray[np.bool_]:
    """Return which flows have a size and arrived in the counted part of a window of `seconds`."""
    start_s = array(rows, "start_s")
    counts: npt.NDArray[np.bool_] = (array(rows, "size_bytes") != 0) & (start_s >= 0)
    return counts & (start_s < COUNTED_SHARE * seconds)


def ended_times(flows: Sequence[FlowRow], seconds: float) -> dict[int, float]:
    """Return the time over the time alone of each flow that counts and has ended, by the flow's number."""
    completed_s = array(flows, "completed_s")
    ended = counted(flows, seconds) & np.isfinite(completed_s)
    times = completed_s[ended] / array(flows, "ideal_s")[ended]
    return dict(zip(array(flows, "flow")[ended].tolist(), times.tolist(), strict=True))


def normalised(flows: Sequence[FlowRow], seconds: float, of: Range = ALL) -> Normalised:
    """Return the normalised completion times of one point's flows that count and are in the range `of`."""
    ideal_s, size_bytes = array(flows, "ideal_s"), array(flows, "size_bytes")
    chosen = counted(flows, seconds) & (of.above < size_bytes) & (size_bytes <= of.up_to)
    chosen &= np.isfinite(ideal_s)
    completed_s = array(flows, "completed_s")[chosen]
    unfinished = np.isnan(completed_s)
    taken_s = np.where(unfinished, seconds - array(flows, "start_s")[chosen], completed_s)
    values = np.maximum(1.0, taken_s / ideal_s[chosen]).tolist()
    return Normalised(tuple(values), int(unfinished.sum()))
