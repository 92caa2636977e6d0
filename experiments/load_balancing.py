"""load-balancing: ECMP, LetFlow, CONGA and DRILL under TCP, and MPTCP, on a leaf-spine with a halved link.

CONGA's testbed (Alizadeh et al., SIGCOMM 2014, section 5: 64 hosts at 10 Gb/s, two leaves, two spines, 2:1
oversubscribed, one of a leaf's two links to a spine down) with a quarter of its hosts and a 500th of its
rates. All times are 500 times the paper's (round trip 50 ms, flowlet gap 250 ms, tau 80 ms), so packets in
flight and flows in bytes are the paper's. Web-search flows arrive at random between all hosts.

The load is in percent of the hosts' links, of which 8 in 15 bytes cross the spines: 60 % are 64 % of the
uplinks, and 85 % of what is left of them.
"""

from __future__ import annotations

from engines.registry import SIMULATOR
from harness.experiment import Experiment, Figure
from harness.options.options import Defaults, SweepOptions
from harness.plan.sweeps import PLAIN_TCP, points_on
from model.spec import LinkEvent, TopologySpec

NAME = "load-balancing"
NETWORK = TopologySpec("leaf_spine", {"leaves": 2, "spines": 2, "hosts": 8, "speed": 2})
HALVED = (LinkEvent(0.0, "l1", "s1", 0.5),)
GAP_US, TAU_US = 250_000, 80_000
ECMP, LETFLOW, CONGA, DRILL = "ecmp", f"letflow:{GAP_US}", f"conga:{GAP_US}:{TAU_US}", "drill:2:1"
SUBFLOWS = 8
CURVES = (
    {**PLAIN_TCP, "routing": ECMP},
    {"routing": ECMP, "transport.subflows": SUBFLOWS},
    *({**PLAIN_TCP, "routing": policy} for policy in (LETFLOW, CONGA, DRILL)),
)
HIGHEST = "poisson:60"
DEFAULTS = Defaults(
    ks=(2,),
    workloads=("poisson:20", "poisson:40", HIGHEST),
    subflows=(SUBFLOWS,),
    rate_mbps=20.0,
    pins={"link.delay_us": 6250.0, "events": HALVED},
    seconds=60.0,
    warmup_s=5.0,
    brief_s=20.0,
    seeds=6,
    brief_seeds=1,
    engines=(SIMULATOR,),
)
REAL = DEFAULTS.emulated(
    workloads=(HIGHEST,), rate_mbps=20.0, seconds=25.0, warmup_s=3.0, seeds=3, pins={"traffic": "native"}
)
"""A point takes half a minute in real time."""


def _networks(_: SweepOptions) -> list[TopologySpec]:
    return [NETWORK]


EXPERIMENT = Experiment(
    name=NAME,
    title="ECMP, MPTCP, LetFlow, CONGA and DRILL on a leaf-spine with a halved link (after SIGCOMM 2014)",
    folder=NAME,
    figures=(
        Figure(
            name=NAME,
            title="Load balancing on an asymmetric leaf-spine",
            about=(
                "One of four uplinks has half its rate. ECMP sends it half of the flows, and it overflows "
                "at about half load. LetFlow's flowlets and CONGA's measured paths avoid it, hosts stay as "
                "they are; MPTCP moves its traffic by its subflows' windows, and DRILL sees the queues of "
                "its own switch alone."
            ),
            defaults=DEFAULTS,
            emulated=REAL,
            topologies=_networks,
            points=points_on(_networks, CURVES),
            charts=("fct_by_load",),
            sized=False,
            relative=False,
        ),
    ),
)
