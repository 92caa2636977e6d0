"""Flow completion times from a point's rows. Pure.

Only flows that started in the measured window count; earlier ones met a network that was still filling.
Slowdown is a flow's completion time over its time alone on its path (Alizadeh et al., pFabric, SIGCOMM 2013,
call it normalised flow completion time).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from model.result import FlowRow
from model.rows import array, chosen


@dataclass(frozen=True)
class Completions:
    """Sized flows that started in the measured window: `completed` rows by increasing size, and the number
    of flows that had not completed when traffic ended."""

    completed: Sequence[FlowRow]
    unfinished: int

    @property
    def started(self) -> int:
        return len(self.completed) + self.unfinished

    @property
    def took_ms(self) -> list[float]:
        took_ms: list[float] = (1000 * array(self.completed, "completed_s")).tolist()
        return took_ms

    @property
    def slowdowns(self) -> list[float]:
        """Slowdowns of the completed flows whose ideal time is known."""
        took_s, ideal_s = array(self.completed, "completed_s"), array(self.completed, "ideal_s")
        known = np.isfinite(ideal_s)
        slowdowns: list[float] = (took_s[known] / ideal_s[known]).tolist()
        return slowdowns


def slowdown(flow: FlowRow) -> float:
    """Return the slowdown of a completed flow whose ideal time is known."""
    return flow.completed_s / flow.ideal_s


def completions(flows: Iterable[FlowRow]) -> Completions:
    """Return the completions of one point's flows, or of several points' flows together."""
    rows = flows if isinstance(flows, Sequence) else tuple(flows)
    size_bytes = array(rows, "size_bytes")
    started = (size_bytes != 0) & (array(rows, "start_s") >= 0)
    done = np.flatnonzero(started & np.isfinite(array(rows, "completed_s")))
    order = np.lexsort((array(rows, "flow")[done], size_bytes[done]))
    return Completions(chosen(rows, done[order]), int(started.sum()) - len(done))


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that is at least as large as `percent` % of the values."""
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


def ms_text(took_ms: float) -> str:
    """`12.3 ms`; `1080 ms`."""
    return f"{took_ms:.0f} ms" if took_ms >= 1000 else f"{took_ms:.3g} ms"


def completion_text(of: Completions) -> str:
    """`733 of 756 flows completed (23 unfinished), in 12.3 ms on average, median 1.2 ms, p99 210 ms`."""
    unfinished = f" ({of.unfinished} unfinished)" if of.unfinished else ""
    counted = f"{len(of.completed)} of {of.started} sized flows completed{unfinished}"
    if not of.completed:
        return counted
    took = of.took_ms
    mean, median, p99 = map(ms_text, (statistics.fmean(took), statistics.median(took), percentile(took, 99)))
    return f"{counted}, in {mean} on average, median {median}, p99 {p99}"


def tail_ms(flows: Iterable[FlowRow]) -> float | None:
    """Return when the last of the flows was complete after its start; None unless all completed."""
    found = completions(flows)
    return max(found.took_ms) if found.completed and not found.unfinished else None
