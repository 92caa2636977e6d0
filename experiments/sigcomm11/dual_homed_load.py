"""dual-homed-load: a FatTree whose hosts have two NICs beside a FatTree of equal cost, by load.

SIGCOMM 2011 (Raiciu et al., the section on dual-homed FatTrees) reports a significant gain while the core is
not overloaded, and none for matrices that fill it. topos/dual_homed_fat_tree.py defines "equal cost".
"""

from __future__ import annotations

from engines.registry import SIMULATOR
from experiments.sigcomm11.dual_homed_and_star import both_trees, dual_homed
from experiments.sigcomm11.network_statements import DUAL_HOMED_BY_LOAD, DUAL_HOMED_BY_MATRIX
from harness.experiment import Experiment, Figure
from harness.options.options import Defaults
from harness.options.rates import AutoRate
from harness.plan.sweeps import points_on

NAME = "dual-homed-load"
LOADS = (10, 25, 50, 100, 200, 400)
"""Connections for every 100 hosts."""
MATRICES = ("local:80:pod=15", "local:50:pod=30", "one_to_one")


def _defaults(workloads: tuple[str, ...]) -> Defaults:
    """Return defaults with k=12, as in the paper: there both trees need exactly five switch ports per
    host."""
    return Defaults(
        ks=(12,),
        workloads=workloads,
        subflows=(1, 8),
        ccs=("lia",),
        seconds=0.5,
        warmup_s=0.5,
        engines=(SIMULATOR,),
    )


_BY_LOAD = _defaults(tuple(f"connections:{load}" for load in LOADS))


FIGURES = (
    Figure(
        name=f"{NAME}-random",
        title="Two NICs per host, by load",
        about=(
            "Connections between random hosts, on a FatTree and on a dual-homed FatTree with as many switch "
            "ports per host. TCP uses one of the two NICs, MPTCP both. With more connections the core, which "
            "is smaller in the dual-homed tree, becomes the bottleneck and the gain shrinks."
        ),
        defaults=_BY_LOAD,
        emulated=_BY_LOAD.emulated(
            ks=(4,),
            workloads=("connections:25", "connections:200"),
            auto=AutoRate(basis=dual_homed),
            warmup_s=8.0,
            seconds=8.0,
        ),
        topologies=both_trees,
        points=points_on(both_trees),
        charts=("by_load",),
        published=DUAL_HOMED_BY_LOAD,
        relative=False,
    ),
    Figure(
        name=f"{NAME}-matrices",
        title="Two NICs per host, by traffic matrix",
        about=(
            "The same trees under matrices of which different shares stay inside racks and pods, and under a "
            "permutation. Local traffic can use both NICs; traffic that fills the core cannot."
        ),
        defaults=_defaults(MATRICES),
        topologies=both_trees,
        points=points_on(both_trees),
        charts=("by_matrix",),
        published=DUAL_HOMED_BY_MATRIX,
        relative=False,
    ),
)
EXPERIMENT = Experiment(
    name=NAME,
    title="FatTree and dual-homed FatTree of equal cost, by load and by matrix (SIGCOMM 2011)",
    folder=NAME,
    figures=FIGURES,
)
SINGLE = tuple(Experiment(figure.name, figure.title, NAME, (figure,)) for figure in FIGURES)
