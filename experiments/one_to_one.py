"""cs244-one-to-one: TCP against MPTCP with 2..8 subflows on a FatTree, a random permutation of long flows.

SIGCOMM 2011 (Raiciu et al.) figures on throughput and rank; reproduced on Mininet by the CS244
course in 2013 (figures 2, 3, 13). The seed is shared by all transports of a sweep, so every curve sees
the same permutation.
"""

from __future__ import annotations

from engines.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec, WorkloadSpec
from experiments.experiment import Experiment, RateOf
from experiments.options import Defaults, SweepOptions
from experiments.published import ONE_TO_ONE


def topologies(options: SweepOptions) -> list[TopologySpec]:
    """One FatTree for each k asked for."""
    return [TopologySpec("fat_tree", {"k": k}) for k in options.ks]


def points(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
    """k x workload x seed x subflows, a permutation's transports next to each other."""
    return [
        RunSpec(
            link=_link(options, rate_of(topology)),
            topology=topology,
            transport=TransportSpec(subflows, options.cc),
            workload=WorkloadSpec(workload),
            engine=options.engine,
            dataplane=options.dataplane,
            routing=options.routing,
            traffic=options.traffic,
            warmup_s=float(options.warmup_s),
            seconds=float(options.seconds),
            seed=seed,
            sampling=options.sampling,
        )
        for topology in topologies(options)
        for workload in options.workloads
        for seed in options.seeds
        for subflows in options.subflows
    ]


def _link(options: SweepOptions, rate_mbps: float) -> LinkSpec:
    """Mininet's queue limit holds at both ends of a link, so the hosts' own queues have it too."""
    return LinkSpec(
        rate_mbps=float(rate_mbps),
        delay_us=float(options.delay_us),
        queue_pkts=options.queue_pkts,
        nic_queue_pkts=options.queue_pkts,
    )


EXPERIMENT = Experiment(
    name="cs244-one-to-one",
    title="TCP and MPTCP on a FatTree, random permutation (SIGCOMM 2011; CS244 2013)",
    defaults=Defaults(ks=(8,), workloads=("one_to_one",), subflows=tuple(range(1, 9))),
    topologies=topologies,
    points=points,
    charts=("throughput", "rank"),
    published=ONE_TO_ONE,
)
