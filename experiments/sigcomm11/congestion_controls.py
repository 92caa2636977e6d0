"""The paper's figures on throughput and rank: TCP and MPTCP with 2 to 8 subflows on a FatTree under a random
permutation of long flows.

coupled-sweep: one random permutation by congestion control, to separate the gain of MPTCP from that of
coupling.

The transports to compare with are those of SIGCOMM 2011 (Raiciu et al.): TCP over hashed paths,
PacketScatter, MPTCP with uncoupled subflows, EWTCP. TCP and PacketScatter are always run; `--cc` chooses the
others.
"""

from __future__ import annotations

from common.errors import UsageError
from experiments.sigcomm11.statements import BY_CONGESTION_CONTROL, ONE_TO_ONE
from harness.experiment import Experiment, Figure
from harness.options.options import SweepOptions
from harness.plan.sweeps import PLAIN_TCP, fat_trees, points_on
from model import transports
from model.spec import Settings

PERMUTATION = Figure(
    name="throughput",
    title="TCP and MPTCP on a FatTree",
    about=(
        "Every host sends one long flow and receives one. TCP flows that are hashed onto the same "
        "link share its rate, while other links are idle. MPTCP spreads each flow over several "
        "paths and shifts traffic away from congested ones."
    ),
    defaults={"k": (8,), "workload": ("one_to_one",), "transport.subflows": tuple(range(1, 9))},
    topologies=fat_trees,
    points=points_on(fat_trees),
    charts=("throughput", "rank"),
    published=ONE_TO_ONE,
)


NAME = "coupled-sweep"
BASELINES = (
    PLAIN_TCP,
    {**PLAIN_TCP, "routing": transports.SCATTER},
)
MULTIPATH = tuple(name for name in transports.COMPARED if name not in {transports.TCP, transports.SCATTER})


def curves(options: SweepOptions) -> list[Settings]:
    """Return TCP, PacketScatter, and MPTCP under each congestion control of --cc, by default all of
    MULTIPATH.

    Raises UsageError if options leave nothing to compare.
    """
    counts = tuple(count for count in options.subflows if count > 1)
    if not counts:
        raise UsageError(
            f"--subflows 1: {NAME} compares MPTCP's congestion controls, and TCP is always part of it; "
            "give counts from 2 up, e.g. --subflows 2,8"
        )
    if options.base.routing == transports.SCATTER:
        raise UsageError(
            f"--routing {options.base.routing}: PacketScatter is always part of {NAME}; give the routing of "
            "the other transports, hashed or ecmp"
        )
    return [
        *BASELINES,
        *({"transport.cc": cc, "transport.subflows": counts} for cc in options.ccs or MULTIPATH),
    ]


EXPERIMENT = Experiment(
    name=NAME,
    title="MPTCP by congestion control, beside TCP and PacketScatter, random permutation",
    folder=NAME,
    figures=(
        Figure(
            name=NAME,
            title="By congestion control",
            about=(
                "The same permutation under plain TCP, under PacketScatter (TCP with a random path for "
                "every packet) and under MPTCP with uncoupled, weighted and coupled congestion control. All "
                "of MPTCP gains from several paths. Coupling decides how much subflows fill queues, which "
                "losses and retransmitted segments show."
            ),
            defaults={"k": (8,), "workload": ("one_to_one",), "transport.subflows": (8,)},
            topologies=fat_trees,
            points=points_on(fat_trees, curves),
            charts=("by_congestion_control",),
            published=BY_CONGESTION_CONTROL,
            baselines=True,
        ),
    ),
)
