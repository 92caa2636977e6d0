"""The paper's network: one sender, one receiver, and a bottleneck of 96 Mb/s with a round trip of 20 ms."""

from __future__ import annotations

from experiments.ccp.statements import ACCESS
from harness.experiment import RateOf
from harness.options.options import Defaults, SweepOptions
from harness.plan.sweeps import Points, Variant, points_on
from model.spec import RunSpec, SamplingSpec, TopologySpec

DELAY_US = 20_000 / 6
"""Delay of each of the three links, one way."""
LINK = Defaults(
    ks=(), workloads=("against_tcp",), subflows=(1,), rate_mbps=96.0, queue_pkts=160, delay_us=DELAY_US,
    warmup_s=10.0, seconds=30.0, sampling=SamplingSpec(sockets_ms=100),
)  # fmt: skip


def bottleneck(_options: SweepOptions) -> list[TopologySpec]:
    """Return one network: one sender and one receiver, with a slower link between them."""
    return [TopologySpec("dumbbell", {"n": 1, "access": ACCESS})]


def compared(*usual: str) -> Points:
    """Return a function that makes one point per congestion control of --cc, or of the usual ones."""

    def points(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
        variants = [Variant(cc=cc) for cc in options.ccs or usual]
        return points_on(bottleneck, variants)(options, rate_of)

    return points
