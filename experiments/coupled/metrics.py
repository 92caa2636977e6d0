"""Metrics of the coupled experiments: shares that a flow takes of a bottleneck, or sends over one path."""

from __future__ import annotations

from analysis import shares
from harness.metrics.measures import each_replica
from harness.metrics.metric import Metric

SHARE_OF_BOTTLENECK = Metric(
    shares.SHARE_OF_BOTTLENECK, "% of the link", "the share of the flow under test beside TCP",
    over=each_replica(lambda p: shares.bottleneck_shares_pct(p.point.flows)), repeats="repetition",
)  # fmt: skip
SHARE_ON_CONGESTED = Metric(
    shares.SHARE_ON_CONGESTED, "% of its traffic", "what a flow sends over the more congested path",
    over=each_replica(lambda p: shares.congested_shares_pct(p.point.ports)), repeats="repetition",
)  # fmt: skip
