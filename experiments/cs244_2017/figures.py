"""cs244-2017: pFabric beside TCP on a star of 28 hosts, after the CS244 2017 post.

The post ran Mininet at 100 Mb/s and 6 us per link, where 36 kB are eleven bandwidth-delay products. Its
figures are simulated at these values. Linux hosts run at 10 Mb/s, a thousandth of the paper's rate, with
delays and timeouts a thousand times as long: 14.6 ms. As in the paper, 24 packets fit into a buffer and 12
are in flight.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace

from engines.registry import SIMULATED_HOSTS, SIMULATOR
from experiments.cs244_2017.statements import BETWEEN_HOSTS, FINDINGS, MIDDLE
from experiments.pfabric.figures import OPTIONS
from experiments.pfabric.points import (
    HIGHEST_LOAD,
    HOST_DELAY_US,
    LINK_DELAY_US,
    LOADS,
    MINING_STEPS,
    SMALL_LEAF_SPINE,
    SMALL_STAR,
    STAR,
    WEB_SEARCH,
    WEB_STEPS,
    Settings,
    of_arms,
    one_of,
    point_of,
    points_on,
    workload,
)
from harness.experiment import Experiment, Figure, RateOf
from harness.options.options import ENGINE, Defaults, SweepOptions
from model.arms import ARMS, ON_LINUX, ON_STAR, STAR_PARTS, TWINS, Arm
from model.spec import RunSpec, StackSpec, TopologySpec

NAME = "cs244-2017"
POST_MBPS, POST_DELAY_US = 100.0, 6.0
POST_S, POST_WARMUP_S, POST_WHOLE_S = 30.0, 5.0, 240.0
SLOWER, FASTER = 1000, 100
"""Factors by which real hosts are slower than the paper's. A machine with two CPUs carries the first in real
time; the second is ten times as fast."""
PAPER_MBPS = 10_000.0
LINUX_S, LINUX_WARMUP_S = 20.0, 5.0
LINUX_LOADS = (20, 40, 60, 80)
SMALL_FAT_TREE = TopologySpec("fat_tree", {"k": 4})
_STAR = one_of(STAR, SMALL_STAR)
Topologies = Callable[[SweepOptions], list[TopologySpec]]


def beside_each_other(
    topologies: Topologies, slower: int = SLOWER
) -> Callable[[SweepOptions, RateOf], list[RunSpec]]:
    """Return topology x workload x seed x engine x arm, with the arms of real or of simulated hosts."""

    def points(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
        return [
            point_of(options, rate_of(topology), topology, traffic, seed, settings)
            for topology in topologies(options)
            for traffic in options.workloads
            for seed in options.seeds
            for engine in options.engines
            for settings in _arms(engine, slower)
        ]

    return points


def _arms(engine: str, slower: int) -> list[Settings]:
    names = TWINS if engine in SIMULATED_HOSTS else ON_LINUX
    return [{**ARMS[name].settings, "stack": _stack(ARMS[name], slower), "engine": engine} for name in names]


def _stack(arm: Arm, slower: int) -> StackSpec:
    """Return the stack of an arm with a minimum RTO for this network; arms have that of SLOWER."""
    stack: StackSpec = arm.settings["stack"]
    return replace(stack, min_rto_ms=stack.min_rto_ms * slower / SLOWER) if arm.paced_rto else stack


def _on_linux(loads: Sequence[int], slower: int = SLOWER) -> Defaults:
    return Defaults(
        ks=(STAR.k,),
        workloads=tuple(workload(WEB_SEARCH, load) for load in loads),
        subflows=(1,),
        rate_mbps=PAPER_MBPS / slower,
        delay_us=slower * LINK_DELAY_US,
        pins={"link.host_delay_us": slower * HOST_DELAY_US},
        seconds=LINUX_S * slower / SLOWER,
        warmup_s=LINUX_WARMUP_S * slower / SLOWER,
        engines=(ENGINE, SIMULATOR),
        traffic="native",
    )


def _networks(options: SweepOptions) -> list[TopologySpec]:
    del options
    return [SMALL_FAT_TREE, SMALL_LEAF_SPINE]


_figure = functools.partial(Figure, sized=False, relative=False, options=OPTIONS)
POST_DEFAULTS = Defaults(
    ks=(STAR.k,),
    workloads=tuple(workload(sizes, load) for sizes in (WEB_STEPS, MINING_STEPS) for load in LOADS),
    subflows=(1,),
    rate_mbps=POST_MBPS,
    delay_us=POST_DELAY_US,
    seconds=POST_S,
    warmup_s=POST_WARMUP_S,
    whole_s=POST_WHOLE_S,
    engines=(SIMULATOR,),
)
POST = _figure(
    name=f"{NAME}-post",
    title="The post's network: a star of 28 hosts at 100 Mb/s",
    about=(
        "TCP (CUBIC) with drop-tail, minTCP over pFabric's queue, and minTCP over what the post's code ran "
        "instead: 16 bands of priority, linear in the remaining size, of a thousand packets and without "
        "priority dropping. Sizes are the published points alone, as the post drew them."
    ),
    defaults=POST_DEFAULTS,
    topologies=_STAR,
    points=points_on(_STAR, of_arms(ON_STAR)),
    charts=("normalised_by_load", "normalised_by_size"),
    published=FINDINGS,
)
STEPS = _figure(
    name=f"{NAME}-parts",
    title="From pFabric's queue to that of the post's code",
    about=(
        "minTCP on the post's network at a load of 80 %, with pFabric's queue and with that of the post's "
        "code. The others have one of its changes: a long queue in the exact order without priority "
        "dropping, bands with pFabric's buffer, and bands with Linux's minimum RTO."
    ),
    defaults=replace(POST_DEFAULTS, workloads=(workload(WEB_STEPS, HIGHEST_LOAD),)),
    topologies=_STAR,
    points=points_on(_STAR, of_arms(STAR_PARTS)),
    charts=("normalised_parts",),
)
HOSTS = _figure(
    name=f"{NAME}-hosts",
    title="Between Linux hosts, beside simulated ones",
    about=(
        "The same star between real Linux hosts, which stamp the bytes that remain of their flow on every "
        "packet, and the same flows between simulated hosts at the same rate and delays. What differs is the "
        "hosts."
    ),
    defaults=_on_linux(LINUX_LOADS),
    topologies=_STAR,
    points=beside_each_other(_STAR),
    charts=("normalised_by_load", "normalised_by_size", "normalised_by_flow"),
    published=BETWEEN_HOSTS,
)
HUNDRED = _figure(
    name=f"{NAME}-100mbps",
    title="The same hosts at 100 Mb/s",
    about=(
        "The comparison between Linux hosts and simulated ones on links that are ten times as fast, with "
        "delays and timeouts a tenth as long. Linux hosts run in virtual time: choose `--engine "
        "simulator,linux`. By default the simulated hosts run alone."
    ),
    defaults=replace(_on_linux((MIDDLE, HIGHEST_LOAD), FASTER), engines=(SIMULATOR,)),
    topologies=_STAR,
    points=beside_each_other(_STAR, FASTER),
    charts=("normalised_by_load", "normalised_by_size", "normalised_by_flow"),
    published=BETWEEN_HOSTS,
)
FABRICS = _figure(
    name=f"{NAME}-fabrics",
    title="Linux hosts on a FatTree and a leaf-spine",
    about=(
        "16 Linux hosts on a FatTree and 12 on a leaf-spine, which the post could not run. pFabric sprays "
        "its packets over all paths, TCP hashes its flows."
    ),
    defaults=_on_linux((60,)),
    topologies=_networks,
    points=beside_each_other(_networks),
    charts=("normalised_by_load", "normalised_by_flow"),
)
FIGURES = (POST, STEPS, HOSTS, HUNDRED, FABRICS)
EXPERIMENT = Experiment(
    name=NAME,
    title="pFabric beside TCP on a star, between Linux hosts and simulated ones (CS244 2017)",
    folder=NAME,
    figures=FIGURES,
    shared_options=OPTIONS,
)
SINGLE = tuple(Experiment(figure.name, figure.title, NAME, (figure,), OPTIONS) for figure in FIGURES)
