"""How late frames and a paused clock change each metric, and how much each metric tolerates. Pure.

Lateness is relative to the time that a full queue takes to drain (`queue_delay_us`), because that queue
keeps the bottleneck's link busy while nothing arrives. A pause of the fabric's clock is relative to the
window, because real hosts' timers keep running. Each limit is the largest amount at which the metric stayed
within its tolerance (analysis/noise_effects.py) in every setting of the experiments in docs/fidelity.md.
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
    """What a metric tolerates: the 99th percentile of lateness as a share of a full queue's drain time, and
    pauses of the clock in percent of the window."""

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
"""Length assumed for an unbounded queue under load."""
DRIFT_POINTS = 4.0
"""The window's mean lies between the means of its halves. If these differ by twice the tolerance, the mean
may be off by the whole tolerance."""


def queue_delay_us(link: LinkSpec) -> float:
    """Return the time that a full queue of the link takes to drain, in microseconds."""
    return queue_us(link) or UNBOUNDED_PKTS * FRAME_BITS / link.rate_mbps


def doubted_by_lateness(share: float) -> tuple[str, ...]:
    """Return the metrics that this lateness may move by more than their tolerance."""
    return tuple(metric for metric in METRICS if share > BEARINGS[metric].late_share)


def doubted_by_stretch(pct: float) -> tuple[str, ...]:
    """Return the metrics that this pause of the clock may move by more than their tolerance."""
    return tuple(metric for metric in METRICS if pct > BEARINGS[metric].stretch_pct)
