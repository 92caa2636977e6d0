"""robustness: what MPTCP costs in losses, retransmissions and CPU time, and how it survives failing links.

SIGCOMM 2011 (Raiciu et al.) on a FatTree k=8 under a random permutation. Failure: all links of a quarter of
the core switches are down during the middle third of the window.
"""

from __future__ import annotations

from collections.abc import Sequence

from engines.registry import SIMULATOR
from experiments.sigcomm11.robustness.statements import COST, FAILURES
from harness.experiment import Experiment, Figure, RateOf
from harness.options.options import Defaults, SweepOptions
from harness.plan.sweeps import fat_trees, points_on, with_core_failure
from model.spec import RunSpec

NAME = "robustness"


def each_transport(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
    """Return the usual points, with TCP only once, not once per congestion control of MPTCP."""
    points = points_on(fat_trees)(options, rate_of)
    first = points[0].transport.cc
    return [point for point in points if point.transport.subflows > 1 or point.transport.cc == first]


def failing(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
    """Return the permutation with a failing core, or with the events of `--event` instead."""
    points = points_on(fat_trees)(options, rate_of)
    return points if options.base.events else [with_core_failure(point) for point in points]


COST_DEFAULTS = Defaults(
    ks=(8,),
    workloads=("one_to_one",),
    subflows=(1, 2, 4, 8),
    ccs=("lia", "reno"),
    engines=(SIMULATOR,),
)
FAILURE_DEFAULTS = Defaults(
    ks=(8,),
    workloads=("one_to_one",),
    subflows=(1, 2, 8),
    ccs=("lia",),
    seconds=12.0,
    warmup_s=2.0,
    engines=(SIMULATOR,),
)
LOSS_AND_COST = Figure(
    name=f"{NAME}-cost",
    title="Loss, retransmissions, fairness and CPU time by subflows",
    about=(
        "A random permutation over TCP and over coupled and uncoupled MPTCP. With uncoupled subflows losses "
        "rise with their number; with coupled ones they are fewer than with TCP; both share evenly. For "
        "real hosts the chart also shows the CPU time per delivered gigabyte."
    ),
    defaults=COST_DEFAULTS,
    emulated=COST_DEFAULTS.emulated(ks=(4,), subflows=(1, 8), warmup_s=8.0, seconds=10.0),
    topologies=fat_trees,
    points=each_transport,
    charts=("loss_and_cost",),
    published=COST,
    relative=False,
)
LINK_FAILURE = Figure(
    name=f"{NAME}-failure",
    title="A quarter of the core fails and recovers",
    about=(
        "In the middle third of the window the links of a quarter of the core switches are down, and routing "
        "does not react. TCP flows whose path is cut stall until long after it is restored. MPTCP flows "
        "continue over their other subflows."
    ),
    defaults=FAILURE_DEFAULTS,
    emulated=FAILURE_DEFAULTS.emulated(ks=(4,), subflows=(1, 8), warmup_s=12.0, seconds=24.0),
    topologies=fat_trees,
    points=failing,
    charts=("failure",),
    published=FAILURES,
    relative=False,
)


def _experiment(name: str, title: str, figures: Sequence[Figure]) -> Experiment:
    return Experiment(name, title, NAME, tuple(figures))


EXPERIMENT = _experiment(
    NAME,
    "Cost and robustness of MPTCP: loss, retransmissions, CPU time, failing links (SIGCOMM 2011)",
    (LOSS_AND_COST, LINK_FAILURE),
)
SINGLE = tuple(_experiment(figure.name, figure.title, (figure,)) for figure in EXPERIMENT.figures)
