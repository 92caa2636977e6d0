"""flow-level: rates of flow-level models beside the packet-level simulator, on the same flows and paths.

SIGCOMM 2011 shows a flow-level simulator at 8192 hosts and packets at 128. Here both run at the same sizes
where packet level is fast enough: at k=4 and 8 for every number of subflows, at k=16 for 1 and 8.
"""

from __future__ import annotations

from engines.registry import FLOW_LEVEL, MAX_MIN, SIMULATOR
from experiments.sigcomm11.statements import ONE_TO_ONE
from harness.experiment import Experiment, Figure, RateOf
from harness.options.options import Defaults, SweepOptions
from harness.plan.sweeps import fat_trees, points_on
from model.spec import RunSpec

NAME = "flow-level"
SMALL_K, MAX_SIMULATED_K = 8, 16
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
    """Return whether the point runs by default. Packet level takes 30 s of CPU time at k=16, 4 min at 32."""
    k, subflows = spec.topology.k, spec.transport.subflows
    if k <= SMALL_K:
        return True
    if spec.engine == SIMULATOR:
        return k <= MAX_SIMULATED_K and subflows in ENDS
    return subflows in COUNTS_IF_LARGE


def _points(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
    """Return all points if options choose sizes or subflows; else those that finish in time."""
    specs = points_on(fat_trees)(options, rate_of)
    chosen = (options.ks, options.subflows) != (DEFAULTS.ks, DEFAULTS.subflows)
    return specs if chosen else [spec for spec in specs if _in_time(spec)]


EXPERIMENT = Experiment(
    name=NAME,
    title="Flow-level models and packet level: FatTree, random permutation, up to 8192 hosts (SIGCOMM 2011)",
    folder=NAME,
    figures=(
        Figure(
            name=NAME,
            title="Flow level and packet level",
            about=(
                "The same permutation over the same paths at packet level and in two models of steady rates: "
                "the equilibrium of congestion control, and max-min fairness. Where they agree, paths alone "
                "decide goodput, and the models are valid for networks too large for packet level."
            ),
            defaults=DEFAULTS,
            topologies=fat_trees,
            points=_points,
            charts=("flow_level",),
            published=ONE_TO_ONE,
        ),
    ),
)
