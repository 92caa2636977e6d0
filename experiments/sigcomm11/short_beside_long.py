"""short-beside-long: completion times of short flows by the transport of long flows. short-joins: the same
with MPTCP for all flows, by the time at which additional subflows join.

Table 1 of SIGCOMM 2011 (Raiciu et al.): an oversubscribed FatTree of 512 hosts. A third of the hosts send
without end, the others send 70 kB over plain TCP at intervals. Hosts behave as in the authors' simulator. The
paper proposes to open additional subflows only once a flow proves to be long; the second figure does so.
"""

from __future__ import annotations

import dataclasses

from engines.registry import SIMULATOR
from experiments.sigcomm11.statements import SHORT_BESIDE_LONG, SHORT_WORKLOAD
from harness.experiment import Experiment, Figure, RateOf
from harness.options.options import ENGINE as MININET
from harness.options.options import SweepOptions, on_real_hosts
from harness.plan.sweeps import PLAIN_TCP, points_on
from model.congestion import BASELINE, COUPLED_DEFAULT
from model.spec import RunSpec, Settings, StackSpec, TopologySpec
from model.transports import SCATTER

NAME, LINUX_NAME, JOINS = "short-beside-long", "short-beside-long-linux", "short-joins"
OVERSUBSCRIPTION = 4
STACK = StackSpec(
    payload_bytes=1000, header_bytes=0, ack_bytes=40, initial_window=1, min_rto_ms=1.0, delayed_ack_ms=0.0,
    sack=False, start_spread_ms=50.0,
)  # fmt: skip
AUTHORS = dataclasses.replace(
    STACK, acks="at_once", nic_waits=False, first_rto_ms=3000.0, timer_scan_ms=10.0
)  # fmt: skip
"""Hosts of the authors' public simulator: acknowledgements take no path, connections need no handshake and
start with an RTO of 3 s, and timers are scanned every 10 ms. Its successor (csg-htsim, tcp.cpp) has a SYN and
a minimum RTO of 250 ms."""
FEEDER_PKTS, RANDOM_PKTS = 1000, 2
"""That simulator's host queue, and the slots of its switch queues with random drop."""
LINUX = StackSpec(recovery="linux", handshake=True, start_spread_ms=50.0)


def _curves(stack: StackSpec) -> tuple[Settings, ...]:
    return (
        {**PLAIN_TCP, "stack": stack},
        {**PLAIN_TCP, "routing": SCATTER, "stack": stack},
        *({"transport.cc": cc, "stack": stack} for cc in ("lia", "ewtcp", BASELINE)),
    )


OPENING = dataclasses.replace(STACK, handshake=True)
"""With handshakes: the second figure is about the packets and the time that opening a subflow costs."""
JOIN_CURVES = (
    {**PLAIN_TCP, "stack": OPENING},
    {"stack": OPENING, "transport.join_after_bytes": 1_000_000},
    {"stack": OPENING, "transport.join_after_bytes": 100_000},
    {"stack": OPENING, "transport.join_after_ms": 100.0},
    {"stack": OPENING, "transport.join_after_ms": 10.0},
    {"stack": OPENING},
)
DUPLICATES = 3
GAP_MS = 2000
ALIKE_WORKLOAD = SHORT_WORKLOAD.replace("long", "long_alike", 1)


def oversubscribed(options: SweepOptions) -> list[TopologySpec]:
    """Return for each k a FatTree with four times the hosts."""
    return [TopologySpec("fat_tree", {"k": k, "oversubscription": OVERSUBSCRIPTION}) for k in options.ks]


def _joining(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
    """Return the points; subflows of real hosts can join after a time, not after a number of bytes."""
    specs = points_on(oversubscribed, JOIN_CURVES)(options, rate_of)
    return [s for s in specs if s.engine != MININET or not s.transport.join_after_bytes]


def _fed(spec: RunSpec) -> RunSpec:
    """Return simulated points with the feeder of the authors' simulator."""
    if spec.engine != SIMULATOR:
        return spec
    return dataclasses.replace(spec, link=dataclasses.replace(spec.link, nic_queue_pkts=FEEDER_PKTS))


def _patient(spec: RunSpec) -> RunSpec:
    """Return PacketScatter's points with a threshold of three duplicate ACKs plus the number of paths between
    pods.

    The public successor of the authors' simulator does the same (csg-htsim, tcp.cpp).
    """
    if spec.routing != SCATTER or spec.engine != SIMULATOR or spec.stack.dup_threshold:
        return spec
    paths = (spec.topology.k // 2) ** 2
    return dataclasses.replace(spec, stack=dataclasses.replace(spec.stack, dup_threshold=DUPLICATES + paths))


_DEFAULTS: Settings = {
    "k": (8,), "workload": (SHORT_WORKLOAD,), "transport.subflows": (8,), "engine": (SIMULATOR,),
    "link.rate_mbps": 100.0, "warmup_s": 1.0, "seconds": 3.0,
    "link.delay_us": 100.0,
}  # fmt: skip
_AS_AUTHORS: Settings = {**_DEFAULTS, "link.random_pkts": RANDOM_PKTS}
EMULATED = on_real_hosts(_DEFAULTS, {
    "k": (4,), "workload": (f"{SHORT_WORKLOAD}:gap_ms={GAP_MS}",),
    "link.rate_mbps": 10.0, "warmup_s": 10.0, "seconds": 18.0,
    "traffic": "native",
})  # fmt: skip
"""64 hosts at a tenth of the rate. Short flows start a tenth as often, so they load links as much."""
EXPERIMENT = Experiment(
    name=NAME,
    title="Short TCP flows beside long flows over TCP or MPTCP, on a 4:1 FatTree (SIGCOMM 2011)",
    folder=NAME,
    figures=(
        Figure(
            name=NAME,
            title="Short flows beside long ones",
            about=(
                "A third of 512 hosts send without end. The others send 70 kB every 200 ms on average, "
                "always over plain TCP. The better the long flows use the network, the longer short flows "
                "wait in its queues; coupled MPTCP keeps most of the utilisation and adds little delay."
            ),
            defaults=_AS_AUTHORS,
            emulated=EMULATED,
            topologies=oversubscribed,
            points=points_on(oversubscribed, _curves(AUTHORS), lambda spec: _patient(_fed(spec))),
            charts=("short_and_long", "fct"),
            published=SHORT_BESIDE_LONG,
            relative=False,
        ),
    ),
)
BETWEEN_LINUX_HOSTS = Experiment(
    name=LINUX_NAME,
    title="Short TCP flows beside long flows, between hosts with Linux's settings, on a 4:1 FatTree",
    folder=LINUX_NAME,
    figures=(
        dataclasses.replace(
            EXPERIMENT.figures[0],
            name=LINUX_NAME,
            title="Short flows beside long ones, Linux's settings",
            about=(
                "The same flows between simulated hosts with Linux's settings: handshakes, an initial window "
                "of 10, SACK, a minimum RTO of 200 ms and acknowledgements that take paths. The published "
                "values are of other hosts, so no verdict on the paper comes from this figure."
            ),
            defaults=_DEFAULTS,
            emulated=None,
            points=points_on(oversubscribed, _curves(LINUX)),
            published=(),
        ),
    ),
)
ALIKE = Experiment(
    name=JOINS,
    title="MPTCP for short flows too: additional subflows that join at once or late, on a 4:1 FatTree",
    folder=JOINS,
    figures=(
        Figure(
            name=JOINS,
            title="When additional subflows join",
            about=(
                "The same flows, with MPTCP for short flows too. If subflows join only after a short flow's "
                "last byte, only long flows open them, which lose little by waiting. Subflows that join at "
                "once cost handshakes and give short flows several initial windows."
            ),
            defaults={**_DEFAULTS, "workload": (ALIKE_WORKLOAD,), "transport.cc": (COUPLED_DEFAULT,)},
            emulated={
                **EMULATED,
                "workload": (f"{ALIKE_WORKLOAD}:gap_ms={GAP_MS}",),
                "transport.cc": (COUPLED_DEFAULT,),
            },
            topologies=oversubscribed,
            points=_joining,
            charts=("short_and_long",),
            relative=False,
        ),
    ),
)
FIGURES = (*EXPERIMENT.figures, *ALIKE.figures)
