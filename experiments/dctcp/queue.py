"""dctcp: how long a queue TCP needs. Long flows from several hosts to one, with and without marks.

After Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010, whose switch gave a port up to 700 KB (figure
1): 460 full packets. Rate and delay are chosen so that the path holds 43 packets, half of what it holds there
at 10 Gb/s and 100 us. The threshold of 20 is three times the bound of section 3.4, K > C RTT / 7, below which
DCTCP lets the link idle, and half of what the path holds: halving at every mark (RFC 3168) lets it idle.
"""

from __future__ import annotations

import dataclasses

from common.errors import UsageError
from experiments.sigcomm11.statements import DCTCP
from harness.experiment import Experiment, Figure, RateOf
from harness.plan.options import Defaults, SweepOptions
from harness.plan.parsers import named_workloads
from harness.plan.sweeps import Variant, points_on
from model.congestion import BASELINE
from model.spec import RunSpec, SamplingSpec, TopologySpec, WorkloadSpec

NAME = "dctcp"
SENDERS = 4
WORKLOAD = f"one_to_several:{SENDERS}:servers=1"
"""One percent of the hosts, which is at least one of them, receives."""
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
HEEDING = (BASELINE, "dctcp")
"""Marks heeded as losses are (RFC 3168), and by their share (RFC 8257)."""


def stars(options: SweepOptions) -> list[TopologySpec]:
    """For each k a star of k hosts and one more, to which they send."""
    return [TopologySpec("star", {"n": k + 1}) for k in options.ks]


def points(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
    """Drop-tail, then with marks whatever `--cc` names, or `HEEDING`. Raises UsageError where nothing is
    marked, or for another workload."""
    if not options.base.link.ecn_pkts:
        raise UsageError(
            f"--ecn 0: {NAME} is about marks; give the queue from which on to mark, e.g. --ecn 20"
        )
    if options.workloads != named_workloads("--workload", (WORKLOAD,)):
        raise UsageError(f"--workload: in {NAME} k hosts send to one; choose how many by --k")
    return [
        dataclasses.replace(spec, workload=_all_to_one(spec.topology))
        for spec in points_on(stars, [DROP_TAIL, *(Variant(cc=cc) for cc in options.ccs or HEEDING)])(
            options, rate_of
        )
    ]


def _all_to_one(topology: TopologySpec) -> WorkloadSpec:
    return WorkloadSpec("one_to_several", {"clients": topology.params["n"] - 1, "servers": 1})


EXPERIMENT = Experiment(
    name=NAME,
    title="The queue TCP needs: drop-tail, ECN and DCTCP where several hosts send to one (SIGCOMM 2010)",
    folder=NAME,
    figures=(
        Figure(
            name=NAME,
            title="The queue of the bottleneck",
            about=(
                "Four hosts send one long flow each to a fifth, whose link they share. Reno fills whatever "
                "buffer there is; with marks from a threshold on it halves too often to keep the link busy; "
                "DCTCP backs off by the share of marked packets and holds the queue near the threshold "
                "without letting the link idle."
            ),
            defaults=DEFAULTS,
            topologies=stars,
            points=points,
            charts=("bottleneck",),
            published=DCTCP,
        ),
    ),
)
