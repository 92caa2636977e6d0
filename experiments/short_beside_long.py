"""short-beside-long: what long flows cost the short ones they meet, by the long ones' transport.

Table 1 of SIGCOMM 2011 (Raiciu et al.): an oversubscribed FatTree of 512 hosts, a third of which send without
end, the others 70 kB over plain TCP now and then. Hosts are those of the authors' simulator.
"""

from __future__ import annotations

from engines.congestion import BASELINE
from engines.registry import SIMULATOR
from engines.spec import StackSpec, TopologySpec
from experiments.experiment import Experiment, Figure
from experiments.options import Defaults, SweepOptions
from experiments.statements import SHORT_BESIDE_LONG, SHORT_WORKLOAD
from experiments.sweeps import Variant, points_on

NAME = "short-beside-long"
OVERSUBSCRIPTION = 4
STACK = StackSpec(
    payload_bytes=1000, header_bytes=0, ack_bytes=40, initial_window=1, min_rto_ms=1.0, delayed_ack_ms=0.0,
    sack=False, start_spread_ms=50.0,
)  # fmt: skip
VARIANTS = (
    Variant(cc=BASELINE, subflows=(1,), simulated=STACK),
    *(Variant(cc=cc, simulated=STACK) for cc in ("lia", "ewtcp", BASELINE)),
)


def oversubscribed(options: SweepOptions) -> list[TopologySpec]:
    """For each k a FatTree with four times the hosts."""
    return [TopologySpec("fat_tree", {"k": k, "oversubscription": OVERSUBSCRIPTION}) for k in options.ks]


EXPERIMENT = Experiment(
    name=NAME,
    title="Short flows over TCP beside long ones over TCP or MPTCP, on a 4:1 FatTree (SIGCOMM 2011)",
    folder=NAME,
    figures=(
        Figure(
            name=NAME,
            title="Short flows beside long ones",
            about=(
                "A third of 512 hosts send without end, the others 70 kB every 200 ms on average, always "
                "over plain TCP. The better the long flows use the network the longer short ones wait in its "
                "queues; coupling keeps most of that use for a small part of that price."
            ),
            defaults=Defaults(
                ks=(8,),
                workloads=(SHORT_WORKLOAD,),
                subflows=(8,),
                rate_mbps=100.0,
                delay_us=100.0,
                seconds=1.0,
                warmup_s=0.5,
                engines=(SIMULATOR,),
            ),
            topologies=oversubscribed,
            points=points_on(oversubscribed, VARIANTS),
            charts=("fct",),
            published=SHORT_BESIDE_LONG,
            relative=False,
        ),
    ),
)
