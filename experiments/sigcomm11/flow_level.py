"""flow-level: rates of flow-level models beside the packet-level simulator, on the same flows and paths.

SIGCOMM 2011 shows a flow-level simulator at 8192 hosts and packets at 128. Here both run at the same sizes
where packet level is fast enough: at k=4 and 8 for every number of subflows, at k=16 for 1 and 8.

subflows-needed: the number of subflows that reach 90 % goodput on FatTree, VL2 and BCube, by number of hosts.

SIGCOMM 2011, flow level, up to 8192 hosts; runs with several seeds have 27 648 hosts, too. Acknowledgements
are routed and load the links that they cross. Subflows draw their paths with replacement.

fat-tree-sizes: the permutation of SIGCOMM 2011 at packet level with 128 to 27 648 hosts.

The equilibrium rates of congestion control (flow level) are shown beside it. For its largest networks the
paper has only those. Acknowledgements are routed. The measured window is shorter in larger networks and
starts once they have converged (docs/flow-level.md).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from engines.registry import FLOW_LEVEL, MAX_MIN, SIMULATOR
from experiments.sigcomm11 import statements
from experiments.sigcomm11.statements import ANY_SIZE, ONE_TO_ONE, SIGCOMM11
from experiments.sigcomm11.topologies import as_routed
from harness.experiment import Experiment, Figure, RateOf
from harness.metrics.metrics import GOODPUT_PCT_MEAN
from harness.metrics.published import A_BOUND, Published, Relation, Source
from harness.options.options import SweepOptions
from harness.plan.sweeps import fat_trees, points_on
from model.spec import RunSpec, Settings, TopologySpec

FLOW_LEVEL_NAME = "flow-level"
SMALL_K, MAX_SIMULATED_K = 8, 16
COUNTS_IF_LARGE = (1, 2, 4, 8)
ENDS = (1, 8)
FLOW_LEVEL_DEFAULTS: Settings = {
    "k": (4, 8, 16, 32), "workload": ("one_to_one",), "transport.subflows": tuple(range(1, 9)),
    "transport.cc": ("lia",), "engine": (SIMULATOR, FLOW_LEVEL, MAX_MIN),
    "link.rate_mbps": 100.0, "warmup_s": 1.0, "seconds": 2.0,
}  # fmt: skip


def _in_time(spec: RunSpec) -> bool:
    """Return whether the point runs by default. Packet level takes 30 s of CPU time at k=16, 4 min at 32."""
    k, subflows = spec.topology.k, spec.transport.subflows
    if k <= SMALL_K:
        return True
    if spec.engine == SIMULATOR:
        return k <= MAX_SIMULATED_K and subflows in ENDS
    return subflows in COUNTS_IF_LARGE


def _flow_level_points(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
    """Return all points if options choose sizes or subflows; else those that finish in time."""
    specs = points_on(fat_trees)(options, rate_of)
    own = FLOW_LEVEL_DEFAULTS["k"], FLOW_LEVEL_DEFAULTS["transport.subflows"]
    return specs if (options.ks, options.subflows) != own else [spec for spec in specs if _in_time(spec)]


FLOW_LEVEL_EXPERIMENT = Experiment(
    name=FLOW_LEVEL_NAME,
    title="Flow-level models and packet level: FatTree, random permutation, up to 8192 hosts (SIGCOMM 2011)",
    folder=FLOW_LEVEL_NAME,
    figures=(
        Figure(
            name=FLOW_LEVEL_NAME,
            title="Flow level and packet level",
            about=(
                "The same permutation over the same paths at packet level and in two models of steady rates: "
                "the equilibrium of congestion control, and max-min fairness. Where they agree, paths alone "
                "decide goodput, and the models are valid for networks too large for packet level."
            ),
            defaults=FLOW_LEVEL_DEFAULTS,
            topologies=fat_trees,
            points=_flow_level_points,
            charts=("flow_level",),
            published=ONE_TO_ONE,
        ),
    ),
)


NEEDED_NAME = "subflows-needed"
ENOUGH_PCT = 90.0
PLATEAU = 16
"""The number of subflows whose goodput is 100 % on BCube; more gain nothing."""
AT_MOST = 8
LARGEST_K = 32
"""The largest FatTree about which the paper has a number."""


@dataclasses.dataclass(frozen=True)
class SizedNetwork:
    """What is run on one network: numbers of subflows around 90 %, `packets` if packet level is run too,
    and `with_seeds` if only runs with several seeds have it."""

    topology: TopologySpec
    counts: tuple[int, ...]
    packets: bool = False
    with_seeds: bool = False


def _network(kind: str, counts: Sequence[int], packets: bool = False, **params: int) -> SizedNetwork:
    return SizedNetwork(TopologySpec(kind, params), tuple(counts), packets)


NETWORKS = (
    _network("fat_tree", range(4, 10), True, k=8),
    _network("fat_tree", range(5, 11), k=12),
    _network("fat_tree", range(5, 11), k=16),
    _network("fat_tree", range(6, 11), k=24),
    _network("fat_tree", range(7, 12), k=LARGEST_K),
    SizedNetwork(TopologySpec("fat_tree", {"k": 48}), tuple(range(7, 12)), with_seeds=True),
    _network("vl2", range(1, 4), True, da=6, di=6),
    _network("vl2", range(1, 4), da=10, di=10),
    _network("vl2", range(1, 4), da=16, di=16),
    _network("vl2", range(1, 4), da=24, di=24),
    _network("vl2", range(1, 4), da=40, di=40),
    _network("bcube", (*range(1, 6), PLATEAU), True, n=6, k=2),
    _network("bcube", (*range(1, 6), PLATEAU), n=8, k=2),
    _network("bcube", (*range(1, 6), PLATEAU), n=12, k=2),
)
"""From 128 to 27 648 hosts. BCubes have three NICs per server and sizes whose tables are built in seconds."""
KS = tuple(n.topology.k for n in NETWORKS if n.topology.kind == "fat_tree")
NEEDED_DEFAULTS: Settings = {
    "workload": ("one_to_one",), "transport.subflows": tuple(range(1, PLATEAU + 1)), "transport.cc": ("lia",),
    "engine": (FLOW_LEVEL, SIMULATOR),
    "link.rate_mbps": 100.0, "warmup_s": 1.0, "seconds": 2.0,
}  # fmt: skip


def _networks(options: SweepOptions) -> list[SizedNetwork]:
    """Return all networks; with a brief profile only the smallest of each kind."""
    if options.profile.brief:
        return [network for network in NETWORKS if network.packets]
    return [network for network in NETWORKS if len(options.seeds) > 1 or not network.with_seeds]


def _topologies(options: SweepOptions) -> list[TopologySpec]:
    return [network.topology for network in _networks(options)]


def _needed_points(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
    return [spec for network in _networks(options) for spec in _of(network, options, rate_of)]


def _of(network: SizedNetwork, options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
    """Return the points of one network; numbers of subflows from --subflows or a profile replace its own."""
    counts = network.counts if options.subflows == NEEDED_DEFAULTS["transport.subflows"] else options.subflows
    engines = tuple(name for name in options.engines if network.packets or name != SIMULATOR)
    asked = dataclasses.replace(options, subflows=counts, engines=engines)
    return points_on(lambda _: [network.topology], adapt=as_routed)(asked, rate_of)


LARGE = (
    "The model is not the reason: with acknowledgements at once 8 subflows reach 87.9 % on 8192 hosts at "
    "packet level, 88.4 % by the model. Larger trees need a few more (docs/flow-level.md)."
)


def needed(k: int, engine: str = FLOW_LEVEL) -> Published:
    """Return the statement that AT_MOST subflows are enough, for points of this engine."""
    return Published(
        GOODPUT_PCT_MEAN, "fat_tree", k, "one_to_one", AT_MOST, Relation.AT_LEAST, ENOUGH_PCT, Source.TEXT,
        f"{k**3 // 4} hosts: 90 % with at most {AT_MOST} subflows", "SIGCOMM'11", SIGCOMM11,
        *A_BOUND, engine=engine, differs=LARGE, sentence=ANY_SIZE, quote=statements.SUBFLOWS_QUOTE,
    )  # fmt: skip


NEEDED_EXPERIMENT = Experiment(
    name=NEEDED_NAME,
    title="Subflows needed for 90 % of FatTree, VL2 and BCube, 128 to 27 648 hosts (SIGCOMM 2011)",
    folder=NEEDED_NAME,
    figures=(
        Figure(
            name=NEEDED_NAME,
            title="Subflows needed",
            about=(
                "The smallest number of subflows with which the flows of a random permutation reach 90 % on "
                "average, on networks of growing size. Larger networks have more paths and need a few more "
                "subflows, not many."
            ),
            defaults=NEEDED_DEFAULTS,
            topologies=_topologies,
            points=_needed_points,
            charts=("subflows_needed",),
            published=tuple(needed(k) for k in KS if k <= LARGEST_K),
            sized=False,
        ),
    ),
)


SIZES_NAME = "fat-tree-sizes"
SIZES_DEFAULTS: Settings = {
    "k": (8, 16, 32, 48), "workload": ("one_to_one",), "transport.subflows": tuple(range(1, 9)),
    "transport.cc": ("lia",), "engine": (SIMULATOR, FLOW_LEVEL),
    "link.rate_mbps": 100.0, "warmup_s": 1.0, "seconds": 2.0,
}  # fmt: skip
WITH_SEEDS = {48: (1, 8)}
"""Numbers of subflows by k in a run with several seeds, to save time; smaller networks have all."""
IN_TIME = {16: (1, 4, 8), 32: (1, 8), **WITH_SEEDS}
"""The same in a run with one seed, which has k=48 only if an option chooses it."""
SECONDS = {16: (1.0, 1.0), 32: (0.75, 0.25), 48: (0.75, 0.25)}
"""Warm-up and window by k, in virtual seconds, shorter in large networks."""


def _sizes_points(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
    """Return all points if options choose subflows; else those that finish in time. Durations of SECONDS
    apply unless options choose others."""
    specs = [_for_its_time(spec, options) for spec in points_on(fat_trees)(options, rate_of)]
    if options.subflows != SIZES_DEFAULTS["transport.subflows"]:
        return specs
    several = len(options.seeds) > 1
    counts = WITH_SEEDS if several else IN_TIME
    left_out = () if several or options.ks != SIZES_DEFAULTS["k"] else tuple(WITH_SEEDS)
    return [
        spec
        for spec in specs
        if spec.topology.k not in left_out
        and spec.transport.subflows in counts.get(spec.topology.k, options.subflows)
    ]


def _for_its_time(spec: RunSpec, options: SweepOptions) -> RunSpec:
    durations = options.base.warmup_s, options.base.seconds
    if durations != (SIZES_DEFAULTS["warmup_s"], SIZES_DEFAULTS["seconds"]):
        return spec
    warmup_s, seconds = SECONDS.get(spec.topology.k, durations)
    return dataclasses.replace(spec, warmup_s=warmup_s, seconds=seconds)


SIZES_EXPERIMENT = Experiment(
    name=SIZES_NAME,
    title="FatTree k=8, 16, 32 and 48 at packet level and flow level, random permutation (SIGCOMM 2011)",
    folder=SIZES_NAME,
    figures=(
        Figure(
            name=SIZES_NAME,
            title="The permutation on larger trees",
            about=(
                "TCP loses slightly more goodput to collisions in larger trees. Eight subflows use the "
                "remaining capacity nearly as well with 8192 hosts as with 128. Black is packet level, grey "
                "the equilibrium of congestion control on the same paths."
            ),
            defaults=SIZES_DEFAULTS,
            topologies=fat_trees,
            points=_sizes_points,
            charts=("flow_level",),
            published=(*ONE_TO_ONE, needed(LARGEST_K, SIMULATOR)),
        ),
    ),
)
