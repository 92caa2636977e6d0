"""Metrics of the coupled experiments: shares that a flow takes of a bottleneck, or sends over one path."""

from __future__ import annotations

from analysis import quantities, shares
from harness.metrics.measures import each_replica
from harness.metrics.metric import Metric

SHARE_OF_BOTTLENECK = Metric(
    quantities.SHARE_OF_BOTTLENECK,
    over=each_replica(lambda p: shares.bottleneck_shares_pct(p.point.flows)),
    repeats="repetition",
)
SHARE_ON_CONGESTED = Metric(
    quantities.SHARE_ON_CONGESTED,
    over=each_replica(lambda p: shares.congested_shares_pct(p.point.ports)),
    repeats="repetition",
)
