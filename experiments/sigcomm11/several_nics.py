"""dual-homed and star: where SIGCOMM 2011 expects a large gain from MPTCP (hosts with two NICs) and where
none is possible (a single switch).

dual-homed-load: a FatTree whose hosts have two NICs beside a FatTree of equal cost, by load.

SIGCOMM 2011 (Raiciu et al., the section on dual-homed FatTrees) reports a significant gain while the core is
not overloaded, and none for matrices that fill it. topos/dual_homed_fat_tree.py defines "equal cost".
"""

from __future__ import annotations

from engines.registry import SIMULATOR
from experiments.sigcomm11.statements import (
    DUAL_HOMED,
    DUAL_HOMED_BY_LOAD,
    DUAL_HOMED_BY_MATRIX,
    FULL,
    SPARSE,
    STAR,
)
from harness.experiment import Experiment, Figure
from harness.options.options import SweepOptions, on_real_hosts
from harness.options.rates import AutoRate
from harness.plan.sweeps import points_on
from model.spec import Settings, TopologySpec


def dual_homed(topology: TopologySpec) -> TopologySpec:
    """Return the dual-homed tree of the same k: both trees run at the rate that the machine carries there."""
    return TopologySpec("dual_homed_fat_tree", topology.params)


def both_trees(options: SweepOptions) -> list[TopologySpec]:
    """Return for each k the FatTree and the dual-homed FatTree, which have as many switch ports per host."""
    return [TopologySpec(kind, {"k": k}) for k in options.ks for kind in ("fat_tree", "dual_homed_fat_tree")]


def stars(options: SweepOptions) -> list[TopologySpec]:
    """Return for each k a star with as many hosts as the FatTree."""
    return [TopologySpec("star", {"n": k**3 // 4}) for k in options.ks]


DUAL_HOMED_TREE = Figure(
    name="dual-homed",
    title="Two NICs per host: one to several on the dual-homed FatTree and on the FatTree",
    about=(
        "Each server receives from four random clients, on two trees of equal cost per host. TCP uses "
        "one of the two NICs and MPTCP both. MPTCP gains much while a quarter of the hosts are servers, "
        "and nothing when all are, because they fill the smaller core of the dual-homed tree."
    ),
    defaults={
        "k": (4,),
        "workload": (SPARSE, FULL),
        "transport.subflows": (1, 2, 4, 8),
        "auto": AutoRate(basis=dual_homed),
    },
    topologies=both_trees,
    points=points_on(both_trees),
    charts=("throughput", "rank", "link_utilisation"),
    published=DUAL_HOMED,
).alone()

STAR_OF_HOSTS = Figure(
    name="star",
    title="A permutation on a star: no path to gain",
    about=(
        "All hosts are on one switch, and each sends one flow and receives one. There is one path, and "
        "the hosts' own links are its only bottleneck. MPTCP can at best equal TCP; the difference is "
        "its overhead."
    ),
    defaults={"k": (4,), "workload": ("one_to_one",), "transport.subflows": (1, 2, 4, 8)},
    topologies=stars,
    points=points_on(stars),
    charts=("throughput", "rank"),
    published=STAR,
).alone()


NAME = "dual-homed-load"
LOADS = (10, 25, 50, 100, 200, 400)
"""Connections for every 100 hosts."""
MATRICES = ("local:80:pod=15", "local:50:pod=30", "one_to_one")


def _defaults(workloads: tuple[str, ...]) -> Settings:
    """Return defaults with k=12, as in the paper: there both trees need exactly five switch ports per
    host."""
    return {
        "k": (12,), "workload": workloads, "transport.subflows": (1, 8), "transport.cc": ("lia",),
        "engine": (SIMULATOR,),
        "warmup_s": 0.5, "seconds": 0.5,
    }  # fmt: skip


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
        emulated=on_real_hosts(
            _BY_LOAD,
            {
                "k": (4,),
                "workload": ("connections:25", "connections:200"),
                "auto": AutoRate(basis=dual_homed),
                "warmup_s": 8.0,
                "seconds": 8.0,
            },
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
SINGLE = tuple(figure.alone(NAME) for figure in FIGURES)
