"""short-flows: completion times of a web search's flows under TCP, DCTCP and MPTCP, at rising load.

Flow sizes are from Alizadeh et al., DCTCP, SIGCOMM 2010; arrivals, load and slowdown from pFabric (the same
authors and others, SIGCOMM 2013). It runs in the simulator at 1 Gb/s, where DCTCP marks from 20 packets on,
as in its paper. All have a min RTO of 10 ms, as in that paper's incast experiments, and acknowledge every
packet, because acknowledgements delayed for longer than the RTO would cause timeouts.
"""

from __future__ import annotations

from engines.registry import SIMULATOR
from harness.experiment import Experiment, Figure
from harness.options.options import Defaults
from harness.plan.sweeps import Variant, fat_trees, points_on
from model.congestion import BASELINE
from model.spec import StackSpec

NAME = "short-flows"
STACK = StackSpec(min_rto_ms=10.0, delayed_ack_ms=0.0)
VARIANTS = (
    Variant(cc=BASELINE, subflows=(1,), ecn_pkts=0, simulated=STACK),
    Variant(cc="dctcp", subflows=(1,), simulated=STACK),
    Variant(cc="lia", ecn_pkts=0, simulated=STACK),
)
DEFAULTS = Defaults(
    ks=(4,),
    workloads=("poisson:20", "poisson:40", "poisson:60"),
    subflows=(4,),
    rate_mbps=1000.0,
    delay_us=10.0,
    ecn_pkts=20,
    seconds=10.0,
    warmup_s=1.0,
    engines=(SIMULATOR,),
)

EXPERIMENT = Experiment(
    name=NAME,
    title="Flow completion times of a web search under TCP, DCTCP and MPTCP (sizes of SIGCOMM 2010)",
    folder=NAME,
    figures=(
        Figure(
            name=NAME,
            title="Flow completion times of a web search",
            about=(
                "Flows with the sizes of a web search arrive at random between all hosts. Drop-tail TCP "
                "fills queues, in which short flows wait and lose packets. DCTCP keeps queues short for all "
                "flows; MPTCP spreads long flows and gives short ones several initial windows."
            ),
            defaults=DEFAULTS,
            topologies=fat_trees,
            points=points_on(fat_trees, VARIANTS),
            charts=("fct",),
        ),
    ),
)
