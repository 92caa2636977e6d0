"""dctcp: the queue length of long flows from several hosts to one, with and without ECN marks.

After Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010. Their switch gave a port up to 700 KB (figure
1), which is 460 full packets. Rate and delay are chosen for a bandwidth-delay product of 43 packets, half of
the paper's at 10 Gb/s and 100 us. The marking threshold of 20 packets is three times the bound of section
3.4, K > C RTT / 7, below which DCTCP leaves the link idle at times. It is half of the bandwidth-delay
product, so that a flow which halves its window at every mark (RFC 3168) does leave the link idle.

short-flows: completion times of a web search's flows under TCP, DCTCP and MPTCP, at rising load.

Flow sizes are from Alizadeh et al., DCTCP, SIGCOMM 2010; arrivals, load and slowdown from pFabric (the same
authors and others, SIGCOMM 2013). It runs in the simulator at 1 Gb/s, where DCTCP marks from 20 packets on,
as in its paper. All have a min RTO of 10 ms, as in that paper's incast experiments, and acknowledge every
packet, because acknowledgements delayed for longer than the RTO would cause timeouts.
"""

from __future__ import annotations

from common.errors import UsageError
from engines.registry import SIMULATOR
from harness.experiment import Experiment, Figure
from harness.metrics.metrics import BOTTLENECK_PKTS, BUFFER_PCT, GOODPUT_PCT_MEAN, Metric
from harness.metrics.published import A_BOUND, Published, Relation, Source
from harness.options.options import SweepOptions
from harness.options.parsers import named_workloads
from harness.plan.sweeps import PLAIN_TCP, fat_trees, points_on
from model.congestion import BASELINE
from model.spec import RunSpec, SamplingSpec, Settings, StackSpec, TopologySpec, WorkloadSpec

DCTCP10 = "Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010"


def _dctcp(metric: Metric, bound: tuple[Relation, float], words: str) -> Published:
    """Return a claim about long flows to one receiver."""
    return Published(
        metric, "star", 5, "one_to_several:4:servers=1", 1, *bound, Source.RECALLED, words, "DCTCP'10",
        DCTCP10, *A_BOUND, algorithm="dctcp",
        section="Queue and throughput of long flows",
    )  # fmt: skip


DCTCP = (
    _dctcp(GOODPUT_PCT_MEAN, (Relation.AT_LEAST, 25), "the same or better throughput than TCP").within(
        0.5, "TCP can give each of four flows at most a quarter of what one flow gets alone"
    ),
    _dctcp(BUFFER_PCT, (Relation.BELOW, 10), "with 90 % less buffer space"),
    _dctcp(
        BOTTLENECK_PKTS, (Relation.ABOUT, 20), "a queue that is stable near the threshold of 20 packets"
    ).within(7.0, "the model of section 3.3 lets the queue of four flows vary between 13 and 24"),
)


NAME = "dctcp"
SENDERS = 4
WORKLOAD = f"one_to_several:{SENDERS}:servers=1"
"""One percent of the hosts, but at least one, receives."""
DEFAULTS: Settings = {
    "k": (SENDERS,), "workload": (WORKLOAD,), "transport.subflows": (1,),
    "link.rate_mbps": 50.0,
    "link.delay_us": 2500.0, "link.queue_pkts": 460, "link.ecn_pkts": 20,
    "sampling": SamplingSpec(queues_ms=10),
}  # fmt: skip
DROP_TAIL = {"transport.cc": BASELINE, "link.ecn_pkts": 0}
MARKED = (BASELINE, "dctcp")
"""Congestion controls that react to a mark as to a loss (RFC 3168) and by the share of marks (RFC 8257)."""


def stars(options: SweepOptions) -> list[TopologySpec]:
    """Return for each k a star of k senders and one receiver."""
    return [TopologySpec("star", {"n": k + 1}) for k in options.ks]


def curves(options: SweepOptions) -> list[Settings]:
    """Return drop-tail, then marks under each congestion control of --cc or MARKED.

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
    return [DROP_TAIL, *({"transport.cc": cc} for cc in options.ccs or MARKED)]


def _all_to_one(spec: RunSpec) -> RunSpec:
    clients = spec.topology.number("n") - 1
    return spec.changed({"workload": WorkloadSpec("one_to_several", {"clients": clients, "servers": 1})})


QUEUE = Experiment(
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
            points=points_on(stars, curves, _all_to_one),
            charts=("bottleneck",),
            published=DCTCP,
        ),
    ),
)


SHORT_FLOWS_NAME = "short-flows"
STACK = StackSpec(min_rto_ms=10.0, delayed_ack_ms=0.0)
VARIANTS = (
    {**PLAIN_TCP, "link.ecn_pkts": 0, "stack": STACK},
    {"transport.cc": "dctcp", "transport.subflows": 1, "stack": STACK},
    {"transport.cc": "lia", "link.ecn_pkts": 0, "stack": STACK},
)
SHORT_FLOWS_DEFAULTS: Settings = {
    "k": (4,), "workload": ("poisson:20", "poisson:40", "poisson:60"), "transport.subflows": (4,),
    "engine": (SIMULATOR,),
    "link.rate_mbps": 1000.0, "warmup_s": 1.0, "seconds": 10.0,
    "link.delay_us": 10.0, "link.ecn_pkts": 20,
}  # fmt: skip

SHORT_FLOWS = Experiment(
    name=SHORT_FLOWS_NAME,
    title="Flow completion times of a web search under TCP, DCTCP and MPTCP (sizes of SIGCOMM 2010)",
    folder=SHORT_FLOWS_NAME,
    figures=(
        Figure(
            name=SHORT_FLOWS_NAME,
            title="Flow completion times of a web search",
            about=(
                "Flows with the sizes of a web search arrive at random between all hosts. Drop-tail TCP "
                "fills queues, in which short flows wait and lose packets. DCTCP keeps queues short for all "
                "flows; MPTCP spreads long flows and gives short ones several initial windows."
            ),
            defaults=SHORT_FLOWS_DEFAULTS,
            topologies=fat_trees,
            points=points_on(fat_trees, VARIANTS),
            charts=("fct",),
        ),
    ),
)
