"""What tables show of a point's flows and ports, so that only charts and statements read the rows. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from analysis import stats
from analysis.completion import completion_text, completions, percentile
from analysis.robustness import loss_text
from model.result import FlowRow, PortRow, under_test
from model.rows import array


@dataclass(frozen=True)
class Distribution:
    """Mean, median, 99th percentile, and standard deviation in % of the mean."""

    mean: float
    median: float
    p99: float
    deviation_pct: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Distribution | None:
        """Return the distribution of some values; None without any."""
        if not values:
            return None
        mean = statistics.fmean(values)
        deviation_pct = 100 * statistics.pstdev(values) / mean if mean else 0.0
        return cls(mean, statistics.median(values), percentile(values, 99), deviation_pct)


@dataclass(frozen=True)
class Numbers:
    """The spread of the goodputs of the flows under test (None without flows) and Jain's index of them;
    counts over all flows and ports; the completions of sized flows that started in the measured window.

    `completion` says how long they took, `constant_rate` how many packets flows of constant rate lost; both
    are empty where the point has no such flows.
    """

    goodput_mbps: stats.Spread | None
    jain: float | None
    retransmits: int
    drops: int
    started: int
    completed: int
    took_ms: Distribution | None
    slowdown: Distribution | None
    all_sized: bool
    completion: str
    constant_rate: str

    @property
    def unfinished(self) -> int:
        """The sized flows that started in the measured window and had not completed when traffic ended."""
        return self.started - self.completed

    @classmethod
    def of(cls, flows: Sequence[FlowRow], ports: Sequence[PortRow]) -> Numbers:
        """Read the numbers off the rows of a point."""
        goodputs_mbps = array(under_test(flows), "goodput_mbps").tolist()
        done = completions(flows)
        return cls(
            goodput_mbps=stats.spread(goodputs_mbps) if goodputs_mbps else None,
            jain=stats.jain(goodputs_mbps) if goodputs_mbps else None,
            retransmits=int(array(flows, "retransmits").sum()),
            drops=int(array(ports, "drops").sum()),
            started=done.started,
            completed=len(done.completed),
            took_ms=Distribution.of(done.took_ms),
            slowdown=Distribution.of(done.slowdowns),
            all_sized=bool(done.started) and bool(array(flows, "size_bytes").all()),
            completion=completion_text(done) if done.started else "",
            constant_rate=loss_text(flows),
        )


def mean_ms(points: Sequence[Numbers]) -> float | None:
    """Return the mean completion time of all flows of several points, in ms; None if none completed."""
    known = [(one.completed, one.took_ms.mean) for one in points if one.took_ms]
    flows = sum(completed for completed, _ in known)
    return math.fsum(completed * mean for completed, mean in known) / flows if flows else None
