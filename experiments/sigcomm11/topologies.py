"""topologies: the same permutation on networks of about one size. Where does MPTCP gain, and what?

SIGCOMM 2011 (Raiciu et al., the section on other topologies) says of VL2 that fairness improves, of BCube
that throughput does too, and of an oversubscribed FatTree that it depends on the matrix.
"""

from __future__ import annotations

import dataclasses
import functools

from engines.registry import SIMULATOR
from experiments.sigcomm11.network_statements import BCUBE_BY_MATRIX
from experiments.sigcomm11.statements import OTHER_NETWORKS, OVERSUBSCRIBED_LOCALLY
from harness.experiment import Experiment, Figure
from harness.plan.options import Defaults, SweepOptions
from harness.plan.sweeps import Topologies, points_on
from model.spec import TopologySpec
from topos.bcube import MAX_N

NAME = "topologies"
OVERSUBSCRIPTION = 4
SUBFLOWS = (1, 2, 4, 8)
BCUBE_MATRICES = ("one_to_one", "connections:30", "neighbours")
LOCAL = "stride:1"
"""Most hosts send to one below the same switch: links of hosts are the only bottleneck."""


def switched(options: SweepOptions) -> list[TopologySpec]:
    """For each k the FatTree and networks of about as many hosts, which forward nothing. The oversubscribed
    tree has switches two ports smaller where there are such."""
    return [network for k in options.ks for network in _switched(k)]


def all_networks(options: SweepOptions) -> list[TopologySpec]:
    """The same, and a BCube of two levels, whose hosts forward for each other."""
    return [network for k in options.ks for network in (*_switched(k), _bcube(k))]


def oversubscribed(options: SweepOptions) -> list[TopologySpec]:
    """For each k the oversubscribed tree alone."""
    return [_oversubscribed(k) for k in options.ks]


def three_nics(_options: SweepOptions) -> list[TopologySpec]:
    """BCube of 125 servers with three NICs."""
    return [TopologySpec("bcube", {"n": 5, "k": 2})]


def _switched(k: int) -> tuple[TopologySpec, ...]:
    return (
        TopologySpec("fat_tree", {"k": k}),
        TopologySpec("dual_homed_fat_tree", {"k": k}),
        _vl2(k),
        TopologySpec("leaf_spine", {"leaves": k, "spines": k // 2, "hosts": k * k // 4, "speed": k // 2}),
        _oversubscribed(k),
    )


def _vl2(k: int) -> TopologySpec:
    """Racks of at most the 20 servers that two uplinks carry."""
    da, di = max(4, k // 4 * 2), max(4, k - 2)
    return TopologySpec("vl2", {"da": da, "di": di, "servers": min(20, k**3 // (da * di))})


def _oversubscribed(k: int) -> TopologySpec:
    return TopologySpec("fat_tree", {"k": max(4, k - 2), "oversubscription": OVERSUBSCRIPTION})


def _bcube(k: int) -> TopologySpec:
    """Of two levels, with the even number of ports whose square is nearest to the FatTree's hosts."""
    n = min(range(2, MAX_N + 1, 2), key=lambda ports: abs(ports * ports - k**3 // 4))
    return TopologySpec("bcube", {"n": n, "k": 1})


_figure = functools.partial(
    Figure,
    title="The same permutation on other networks",
    about=(
        "Every host sends one flow and receives one, over TCP and over MPTCP with 2, 4 and 8 subflows. How "
        "many paths there are, how fast they are beside the hosts' links and how many of these a host has "
        "differ from network to network, and with that what several paths are good for."
    ),
    charts=("by_network",),
)


def _defaults(workload: str) -> Defaults:
    """1 s after 0.5 s: twice that gives the same within 1.4 points (docs/topologies.md)."""
    return Defaults(
        ks=(8,),
        workloads=(workload,),
        subflows=SUBFLOWS,
        ccs=("lia",),
        seconds=1.0,
        warmup_s=0.5,
        engines=(SIMULATOR,),
    )


def _on(name: str, networks: Topologies) -> Figure:
    return _figure(
        name=name,
        defaults=_defaults("one_to_one"),
        topologies=networks,
        points=points_on(networks),
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
            title="An oversubscribed FatTree whose hosts talk to their neighbours",
            about=(
                "Every host sends to the next one, which is mostly below the same edge switch. The "
                "oversubscribed core has little to do, the hosts' own links are full, and there is nothing "
                "that a second path could add."
            ),
            defaults=_defaults(LOCAL),
            topologies=oversubscribed,
            points=points_on(oversubscribed),
            published=OVERSUBSCRIBED_LOCALLY,
        ),
        _figure(
            name=f"{NAME}-bcube",
            title="BCube with three NICs a server, by traffic matrix",
            about=(
                "125 servers under a permutation, sparse traffic, and everybody sending to all neighbours, "
                "over one path and over three and six subflows. Several paths use all NICs; where direct "
                "paths do that already, longer ones take room from others."
            ),
            defaults=dataclasses.replace(
                _defaults("one_to_one"), workloads=BCUBE_MATRICES, subflows=(1, 3, 6)
            ),
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
    title="The same without BCube, whose hosts forward, which emulated ones do not",
    folder=NAME,
    figures=(_on(f"{NAME}-switched", switched),),
)
SINGLE = (SWITCHED, *(Experiment(f.name, f.title, NAME, (f,)) for f in EXPERIMENT.figures[1:]))
