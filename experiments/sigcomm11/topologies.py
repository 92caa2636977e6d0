"""topologies: the same permutation on networks of similar size, to show where MPTCP gains what.

SIGCOMM 2011 (Raiciu et al., the section on other topologies): on VL2 fairness improves, on BCube throughput
too, and on an oversubscribed FatTree the gain depends on the matrix.
"""

from __future__ import annotations

import dataclasses
import functools

from controllers.routing import DIGITS
from engines.registry import SIMULATOR
from experiments.sigcomm11.statements import BCUBE_BY_MATRIX, OTHER_NETWORKS, OVERSUBSCRIBED_LOCALLY
from harness.experiment import Experiment, Figure
from harness.options.options import SweepOptions
from harness.plan.sweeps import Topologies, points_on
from model.spec import RunSpec, Settings, TopologySpec
from model.transports import USUAL_ROUTING
from topos import bcube

NAME = "topologies"
OVERSUBSCRIPTION = 4
SUBFLOWS = (1, 2, 4, 8)
BCUBE_MATRICES = ("one_to_one", "connections:30", "neighbours")
LOCAL = "stride:1"
"""Most hosts send to a host below the same switch, so hosts' links are the only bottleneck."""


def switched(options: SweepOptions) -> list[TopologySpec]:
    """Return for each k the FatTree and networks with about as many hosts, whose hosts do not forward.

    The switches of the oversubscribed tree have two ports less, but at least four.
    """
    return [network for k in options.ks for network in _switched(k)]


def all_networks(options: SweepOptions) -> list[TopologySpec]:
    """Return the same and a BCube of two levels, whose hosts forward packets."""
    return [network for k in options.ks for network in (*_switched(k), _bcube(k))]


def oversubscribed(options: SweepOptions) -> list[TopologySpec]:
    """Return for each k only the oversubscribed tree."""
    return [_oversubscribed(k) for k in options.ks]


def three_nics(_options: SweepOptions) -> list[TopologySpec]:
    """Return a BCube of 125 servers with three NICs each."""
    return [TopologySpec("bcube", {"n": 5, "k": 2})]


def as_routed(spec: RunSpec) -> RunSpec:
    """Return the point; BCube's are on the paths of BCube's own routing, as in the paper."""
    own = spec.topology.kind == bcube.KIND and spec.routing == USUAL_ROUTING
    return dataclasses.replace(spec, routing=DIGITS) if own else spec


def _switched(k: int) -> tuple[TopologySpec, ...]:
    return (
        TopologySpec("fat_tree", {"k": k}),
        TopologySpec("dual_homed_fat_tree", {"k": k}),
        _vl2(k),
        TopologySpec("leaf_spine", {"leaves": k, "spines": k // 2, "hosts": k * k // 4, "speed": k // 2}),
        _oversubscribed(k),
    )


def _vl2(k: int) -> TopologySpec:
    """Return a VL2 whose racks have at most 20 servers, as many as two uplinks carry."""
    da, di = max(4, k // 4 * 2), max(4, k - 2)
    return TopologySpec("vl2", {"da": da, "di": di, "servers": min(20, k**3 // (da * di))})


def _oversubscribed(k: int) -> TopologySpec:
    return TopologySpec("fat_tree", {"k": max(4, k - 2), "oversubscription": OVERSUBSCRIPTION})


def _bcube(k: int) -> TopologySpec:
    """Return a BCube of two levels with about as many hosts as the FatTree, with an even number of ports."""
    n = min(range(2, bcube.MAX_N + 1, 2), key=lambda ports: abs(ports * ports - k**3 // 4))
    return TopologySpec("bcube", {"n": n, "k": 1})


_figure = functools.partial(
    Figure,
    title="The same permutation on other networks",
    about=(
        "Every host sends one flow and receives one, over TCP and over MPTCP with 2, 4 and 8 subflows. "
        "Networks differ in the number of paths, in their rate relative to the hosts' links, and in the "
        "number of NICs per host. So does the gain of MPTCP."
    ),
    charts=("by_network",),
)


def _defaults(workload: str) -> Settings:
    """Return defaults with 1 s after 0.5 s; twice as long gives the same within 1.4 points
    (docs/topologies.md)."""
    return {
        "k": (8,), "workload": (workload,), "transport.subflows": SUBFLOWS, "transport.cc": ("lia",),
        "engine": (SIMULATOR,),
        "warmup_s": 0.5, "seconds": 1.0,
    }  # fmt: skip


def _on(name: str, networks: Topologies) -> Figure:
    return _figure(
        name=name,
        defaults=_defaults("one_to_one"),
        topologies=networks,
        points=points_on(networks, adapt=as_routed),
        published=OTHER_NETWORKS,
    )


EXPERIMENT = Experiment(
    name=NAME,
    title="TCP and MPTCP on FatTrees, VL2, BCube and leaf-spine: goodput and fairness (SIGCOMM 2011)",
    folder=NAME,
    figures=(
        _on(f"{NAME}-permutation", all_networks),
        _figure(
            name=f"{NAME}-local",
            title="Local traffic on an oversubscribed FatTree",
            about=(
                "Every host sends to the next one, which is mostly below the same edge switch. The "
                "oversubscribed core carries little, the hosts' own links are full, and a second path "
                "adds nothing."
            ),
            defaults=_defaults(LOCAL),
            topologies=oversubscribed,
            points=points_on(oversubscribed),
            published=OVERSUBSCRIBED_LOCALLY,
        ),
        _figure(
            name=f"{NAME}-bcube",
            title="BCube with three NICs per server, by traffic matrix",
            about=(
                "125 servers under a permutation, under sparse traffic, and with every server sending to all "
                "neighbours, over one path and over three and six subflows. One path is that of BCube's own "
                "routing, digit by digit. Several paths use all NICs. "
                "Where direct paths do so already, longer ones take capacity from other flows."
            ),
            defaults={
                **_defaults("one_to_one"),
                "workload": BCUBE_MATRICES,
                "transport.subflows": (1, 3, 6),
                "warmup_s": 2.0,
                "seconds": 4.0,
                "routing": DIGITS,
            },
            topologies=three_nics,
            points=points_on(three_nics),
            charts=("by_matrix",),
            published=BCUBE_BY_MATRIX,
            sized=False,
            relative=False,
        ),
    ),
)
SWITCHED = Experiment(
    name=f"{NAME}-switched",
    title="The same without BCube, for real hosts, which do not forward packets",
    folder=NAME,
    figures=(_on(f"{NAME}-switched", switched),),
)
SINGLE = (SWITCHED, *(figure.alone(NAME) for figure in EXPERIMENT.figures[1:]))
