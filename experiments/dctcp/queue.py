"""dctcp: the queue length of long flows from several hosts to one, with and without ECN marks.

After Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010. Their switch gave a port up to 700 KB (figure
1), which is 460 full packets. Rate and delay are chosen for a bandwidth-delay product of 43 packets, half of
the paper's at 10 Gb/s and 100 us. The marking threshold of 20 packets is three times the bound of section
3.4, K > C RTT / 7, below which DCTCP leaves the link idle at times. It is half of the bandwidth-delay
product, so that a flow which halves its window at every mark (RFC 3168) does leave the link idle.
"""

from __future__ import annotations

import dataclasses

from common.errors import UsageError
from experiments.dctcp.statements import DCTCP
from harness.experiment import Experiment, Figure, RateOf
from harness.options.options import Defaults, SweepOptions
from harness.options.parsers import named_workloads
from harness.plan.sweeps import Variant, points_on
from model.congestion import BASELINE
from model.spec import RunSpec, SamplingSpec, TopologySpec, WorkloadSpec

NAME = "dctcp"
SENDERS = 4
WORKLOAD = f"one_to_several:{SENDERS}:servers=1"
"""One percent of the hosts, but at least one, receives."""
DEFAULTS = Defaults(
    ks=(SENDERS,),
    workloads=(WORKLOAD,),
    subflows=(1,),
    rate_mbps=50.0,
    delay_us=2500.0,
    queue_pkts=460,
    ecn_pkts=20,
    sampling=SamplingSpec(queues_ms=10),
)
DROP_TAIL = Variant(cc=BASELINE, ecn_pkts=0)
MARKED = (BASELINE, "dctcp")
"""Congestion controls that react to a mark as to a loss (RFC 3168) and by the share of marks (RFC 8257)."""


def stars(options: SweepOptions) -> list[TopologySpec]:
    """Return for each k a star of k senders and one receiver."""
    return [TopologySpec("star", {"n": k + 1}) for k in options.ks]


def points(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
    """Return the point with drop-tail, then those with marks under each congestion control of --cc or MARKED.

    Raises UsageError if nothing is marked, or for another workload.
    """
    if not options.base.link.ecn_pkts:
        raise UsageError(
            f"--ecn 0: {NAME} compares queues with marks; give a marking threshold in packets: --ecn 20"
        )
    if options.workloads != named_workloads("--workload", (WORKLOAD,)):
        raise UsageError(
            f"--workload: {NAME} has a fixed one, k hosts that send to one; choose their number with --k"
        )
    return [
        dataclasses.replace(spec, workload=_all_to_one(spec.topology))
        for spec in points_on(stars, [DROP_TAIL, *(Variant(cc=cc) for cc in options.ccs or MARKED)])(
            options, rate_of
        )
    ]


def _all_to_one(topology: TopologySpec) -> WorkloadSpec:
    return WorkloadSpec("one_to_several", {"clients": topology.number("n") - 1, "servers": 1})


EXPERIMENT = Experiment(
    name=NAME,
    title="Queue length under drop-tail, ECN and DCTCP, several hosts to one (SIGCOMM 2010)",
    folder=NAME,
    figures=(
        Figure(
            name=NAME,
            title="Queue length at the bottleneck",
            about=(
                "Four hosts send one long flow each to a fifth host, whose link they share. Reno with "
                "drop-tail fills any buffer. With ECN marks above a threshold Reno halves its window too "
                "often to keep the link busy. DCTCP reduces it by the share of marked packets, and keeps "
                "the queue near the threshold and the link busy."
            ),
            defaults=DEFAULTS,
            topologies=stars,
            points=points,
            charts=("bottleneck",),
            published=DCTCP,
        ),
    ),
)
