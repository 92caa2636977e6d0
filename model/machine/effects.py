"""What late frames and a paused clock do to a number, and how much of either each metric bears. Pure.

Lateness counts in proportion to the time that a full queue takes to drain (`queue_delay_us`): it is the queue
that feeds a bottleneck's link while nothing arrives. A pause of the fabric's clock counts by its share of the
window: real hosts' timers go on meanwhile. Each limit is the largest amount up to which the metric stayed
within its tolerance (noise_effects.py), in every setting, in the experiments of docs/noise.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fabric.plan import FRAME_BITS
from model.noise import queue_us
from model.reasons import (
    COMPLETION,
    GOODPUT,
    JAIN,
    METRICS,
    RTT,
    SLOWEST,
)
from model.spec import LinkSpec


@dataclass(frozen=True)
class Bearing:
    """How much a metric bears: 99th percentile of lateness as a share of a full queue's time, pauses of the
    clock in percent of the window."""

    late_share: float
    stretch_pct: float


BEARINGS: Mapping[str, Bearing] = {
    GOODPUT: Bearing(late_share=0.2, stretch_pct=7.0),
    SLOWEST: Bearing(late_share=0.2, stretch_pct=7.0),
    JAIN: Bearing(late_share=0.5, stretch_pct=7.0),
    RTT: Bearing(late_share=0.2, stretch_pct=7.0),
    COMPLETION: Bearing(late_share=0.2, stretch_pct=7.0),
}

UNBOUNDED_PKTS = 100
"""A queue without a limit holds more than this when it matters."""
DRIFT_POINTS = 4.0
"""The window's mean lies between those of its halves: where they differ by twice the tolerance of the mean,
that may be off by all of it."""


def queue_delay_us(link: LinkSpec) -> float:
    """Time that a full queue of the link takes to drain, in microseconds."""
    return queue_us(link) or UNBOUNDED_PKTS * FRAME_BITS / link.rate_mbps


def doubted_by_lateness(share: float) -> tuple[str, ...]:
    """Metrics that may be off by more than their tolerance where frames are so late."""
    return tuple(metric for metric in METRICS if share > BEARINGS[metric].late_share)


def doubted_by_stretch(pct: float) -> tuple[str, ...]:
    """Metrics that may be off by more than their tolerance where the clock stood still for so long."""
    return tuple(metric for metric in METRICS if pct > BEARINGS[metric].stretch_pct)
