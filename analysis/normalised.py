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
from collections.abc import Iterable
from dataclasses import dataclass

from analysis.completion import percentile
from model.result import FlowRow

COUNTED_SHARE = 0.6
SMALL_BYTES, LARGE_BYTES = 100_000, 10_000_000


@dataclass(frozen=True)
class Range:
    """Flows larger than `above` and up to `up_to` bytes."""

    label: str
    above: float = 0
    up_to: float = math.inf

    def has(self, flow: FlowRow) -> bool:
        """Return whether the flow's size is in this range."""
        return self.above < flow.size_bytes <= self.up_to


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


def counted(flows: Iterable[FlowRow], seconds: float) -> list[FlowRow]:
    """Return the sized flows that arrived in the counted part of a window of `seconds`."""
    return [flow for flow in flows if flow.size_bytes and 0 <= flow.start_s < COUNTED_SHARE * seconds]


def ended_times(flows: Iterable[FlowRow], seconds: float) -> dict[int, float]:
    """Return the time over the time alone of each flow that counts and has ended, by the flow's number."""
    ended = [flow for flow in counted(flows, seconds) if math.isfinite(flow.completed_s)]
    return {flow.flow: flow.completed_s / flow.ideal_s for flow in ended}


def normalised(flows: Iterable[FlowRow], seconds: float, of: Range = ALL) -> Normalised:
    """Return the normalised completion times of one point's flows that count and are in the range `of`."""
    chosen = [flow for flow in counted(flows, seconds) if of.has(flow) and math.isfinite(flow.ideal_s)]
    ended = [flow.completed_s for flow in chosen]
    taken = [
        seconds - flow.start_s if math.isnan(end) else end for flow, end in zip(chosen, ended, strict=True)
    ]
    values = tuple(max(1.0, took / flow.ideal_s) for took, flow in zip(taken, chosen, strict=True))
    return Normalised(values, sum(map(math.isnan, ended)))
