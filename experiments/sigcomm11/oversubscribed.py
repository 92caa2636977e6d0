"""oversubscribed: the gain of MPTCP on a 4:1 FatTree by load and by traffic matrix, and how flows share the
core.

SIGCOMM 2011 (Raiciu et al., the section on oversubscribed networks), 512 hosts. The gain depends on the
matrix. There is none where hosts' own links are the bottleneck, or where there is no bottleneck.
"""

from __future__ import annotations

from engines.registry import SIMULATOR
from experiments.sigcomm11.short_beside_long import oversubscribed
from experiments.sigcomm11.statements import (
    OVERLOADED,
    OVERSUBSCRIBED_BY_LOAD,
    OVERSUBSCRIBED_BY_MATRIX,
)
from harness.experiment import Experiment, Figure
from harness.options.options import on_real_hosts
from harness.plan.sweeps import points_on
from model.spec import Settings

NAME = "oversubscribed"
LOADS = (1, 5, 10, 25, 50, 100, 200, 400)
"""Connections for every 100 hosts."""
MATRICES = (
    "one_to_one",
    "stride:0",
    "local:50:pod=30",
    "local:80:pod=15",
    "local:100:pod=0",
    "hotspot:8:percent=10",
    "hotspot:32:percent=100",
)


def _defaults(workloads: tuple[str, ...], subflows: tuple[int, ...]) -> Settings:
    """Return defaults: 1 s after 0.5 s. Longer windows differ little (docs/experiments/sigcomm11.md)."""
    return {
        "k": (8,), "workload": workloads, "transport.subflows": subflows, "transport.cc": ("lia",),
        "engine": (SIMULATOR,),
        "warmup_s": 0.5, "seconds": 1.0,
    }  # fmt: skip


_BY_LOAD = _defaults(tuple(f"connections:{load}" for load in LOADS), (1, 8))
_BY_MATRIX = {**_defaults(MATRICES, (1, 8)), "warmup_s": 1.0, "seconds": 4.0}
"""Hot spots take seconds to settle: with 1 s after 0.5 s their claim flips."""
_FAIRNESS = _defaults(("one_to_one",), (1, 2, 4, 8))


def _emulated(defaults: Settings, *workloads: str) -> Settings:
    """Return the emulated variant: 64 real hosts, less than two minutes per figure."""
    sizes = {"k": (4,), "workload": workloads, "transport.subflows": (1, 8)}
    return on_real_hosts(defaults, {**sizes, "warmup_s": 8.0, "seconds": 8.0})


FIGURES = (
    Figure(
        name=f"{NAME}-load",
        title="Oversubscribed FatTree, by load",
        about=(
            "Connections between random hosts of a 4:1 FatTree, from one per hundred hosts to four per host. "
            "Few connections seldom share links and are limited by their hosts' links. Very many fill the "
            "core under any transport. In between MPTCP uses capacity that single paths leave idle."
        ),
        defaults=_BY_LOAD,
        emulated=_emulated(_BY_LOAD, "connections:25", "connections:200"),
        topologies=oversubscribed,
        points=points_on(oversubscribed),
        charts=("by_load",),
        published=OVERSUBSCRIBED_BY_LOAD,
        relative=False,
    ),
    Figure(
        name=f"{NAME}-matrices",
        title="Oversubscribed FatTree, by traffic matrix",
        about=(
            "The same tree under a permutation, under traffic that stays in racks or pods, and under hot "
            "spots. Where the core is the bottleneck, several paths share it better. Where hosts' own links "
            "or hot receivers are, there is no gain."
        ),
        defaults=_BY_MATRIX,
        emulated=_emulated(_BY_MATRIX, "one_to_one", "local:100:pod=0"),
        topologies=oversubscribed,
        points=points_on(oversubscribed),
        charts=("by_matrix",),
        published=OVERSUBSCRIBED_BY_MATRIX,
        relative=False,
    ),
    Figure(
        name=f"{NAME}-fairness",
        title="Fairness on an overloaded core",
        about=(
            "All hosts send across the oversubscribed core. TCP fills most of it already, so MPTCP gains "
            "little goodput; the larger difference is how evenly flows share the core."
        ),
        defaults=_FAIRNESS,
        emulated=_emulated(_FAIRNESS, "one_to_one"),
        topologies=oversubscribed,
        points=points_on(oversubscribed),
        charts=("rank", "link_utilisation"),
        published=OVERLOADED,
    ),
)
EXPERIMENT = Experiment(
    name=NAME,
    title="A 4:1 FatTree of 512 hosts: gain by load and by matrix, and fairness (SIGCOMM 2011)",
    folder=NAME,
    figures=FIGURES,
)
SINGLE = tuple(figure.alone(NAME) for figure in FIGURES)
