"""flow-level: rates of flow-level models beside the packet-level simulator, on the same flows and paths.

SIGCOMM 2011 draws a flow-level simulator at 8192 hosts beside packets at 128. Here both stand side by side
where packets can be had: at k=4 and 8 for every number of subflows, at k=16 for the first and the last.
"""

from __future__ import annotations

from engines.registry import FLOW_LEVEL, MAX_MIN, SIMULATOR
from experiments.sigcomm11.statements import ONE_TO_ONE
from harness.experiment import Experiment, Figure, RateOf
from harness.plan.options import Defaults, SweepOptions
from harness.plan.sweeps import fat_trees, points_on
from model.spec import RunSpec

NAME = "flow-level"
SMALL_K, MOST_SIMULATED_K = 8, 16
COUNTS_IF_LARGE = (1, 2, 4, 8)
ENDS = (1, 8)
DEFAULTS = Defaults(
    ks=(4, 8, 16, 32),
    workloads=("one_to_one",),
    subflows=tuple(range(1, 9)),
    rate_mbps=100.0,
    ccs=("lia",),
    seconds=2.0,
    warmup_s=1.0,
    engines=(SIMULATOR, FLOW_LEVEL, MAX_MIN),
)


def _in_time(spec: RunSpec) -> bool:
    """A packet-level point of k=16 takes half a minute of CPU time, and four minutes at k=32."""
    k, subflows = spec.topology.k, spec.transport.subflows
    if k <= SMALL_K:
        return True
    if spec.engine == SIMULATOR:
        return k <= MOST_SIMULATED_K and subflows in ENDS
    return subflows in COUNTS_IF_LARGE


def _points(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
    """What was chosen by hand is run whole."""
    specs = points_on(fat_trees)(options, rate_of)
    chosen = (options.ks, options.subflows) != (DEFAULTS.ks, DEFAULTS.subflows)
    return specs if chosen else [spec for spec in specs if _in_time(spec)]


EXPERIMENT = Experiment(
    name=NAME,
    title="Flow-level models beside packets: FatTree, random permutation, up to 8192 hosts (SIGCOMM 2011)",
    folder=NAME,
    figures=(
        Figure(
            name=NAME,
            title="Flow level beside packet level",
            about=(
                "The same permutation over the same paths, packet by packet and by models of steady rates: "
                "the equilibrium of congestion control, and max-min fairness. Where they agree paths alone "
                "decide, and models may speak for networks too large for packets."
            ),
            defaults=DEFAULTS,
            topologies=fat_trees,
            points=_points,
            charts=("flow_level",),
            published=ONE_TO_ONE,
        ),
    ),
)
