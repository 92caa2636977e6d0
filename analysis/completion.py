"""Flow completion times from a point's rows: in ms, over the time alone, by flow size, and of jobs. Pure.

Only flows that started in the measured window count; earlier ones met a network that was still filling.
Slowdown is a flow's completion time over its time alone on its path (Alizadeh et al., pFabric, SIGCOMM 2013,
call it normalised flow completion time).

`normalised` counts as pFabric does (section 5.3: the normalised time and three ranges of sizes). A flow
counts if it arrives in the first `COUNTED_SHARE` of the measured window; later ones would have little time to
end. A flow that counts and has not ended when traffic ends enters with the time that it has taken so far,
which is less than its real time. The number of such flows is shown beside every result.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from model.result import FlowRow, array, chosen

COUNTED_SHARE = 0.6
SMALL_BYTES, LARGE_BYTES = 100_000, 10_000_000


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


def tail_ms(flows: Iterable[FlowRow]) -> float | None:
    """Return when the last of the flows was complete after its start; None unless all completed."""
    found = completions(flows)
    return max(found.took_ms) if found.completed and not found.unfinished else None


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


@dataclass(frozen=True, eq=False)
class Normalised:
    """Normalised completion times of the flows that count, those that have not ended among them."""

    values: npt.NDArray[np.float64]
    unfinished: int = 0

    @property
    def unfinished_pct(self) -> float | None:
        """The share of flows that had not ended, in percent; None without flows."""
        return 100 * self.unfinished / len(self.values) if len(self.values) else None

    @property
    def mean(self) -> float | None:
        """None without flows."""
        return statistics.fmean(self.values.tolist()) if len(self.values) else None

    @property
    def p99(self) -> float | None:
        """The 99th percentile; None for fewer than a hundred flows."""
        return percentile(self.values.tolist(), 99) if len(self.values) >= 100 else None


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
    taken_s, unfinished = _taken_s(flows, seconds, chosen)
    return Normalised(np.maximum(1.0, taken_s / ideal_s[chosen]), unfinished)


def times_ms(flows: Sequence[FlowRow], seconds: float) -> tuple[list[float], int]:
    """Return the completion times in ms of one point's flows that count, and how many of them had not ended;
    these are in the list with the time that they have taken."""
    taken_s, unfinished = _taken_s(flows, seconds, counted(flows, seconds))
    return (1000 * taken_s).tolist(), unfinished


def _taken_s(
    flows: Sequence[FlowRow], seconds: float, chosen: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.float64], int]:
    """Return the time in s that each chosen flow took until it ended, or until the window did, and how many
    had not ended."""
    completed_s = array(flows, "completed_s")[chosen]
    unfinished = np.isnan(completed_s)
    taken_s = np.where(unfinished, seconds - array(flows, "start_s")[chosen], completed_s)
    return taken_s, int(unfinished.sum())


def mean_job_s(flows: Sequence[FlowRow], transfers: int) -> float | None:
    """Return the mean time from a job's first start to the end of its last transfer, in s.

    Flows are in the order of jobs, `transfers` each. None without flows, or if a transfer did not complete.
    """
    jobs = [flows[first : first + transfers] for first in range(0, len(flows), transfers)]
    times = []
    for job in jobs:
        ends = [flow.start_s + flow.completed_s for flow in job]
        if any(math.isnan(end) for end in ends):
            return None
        times.append(max(ends) - min(flow.start_s for flow in job))
    return statistics.fmean(times) if times else None
