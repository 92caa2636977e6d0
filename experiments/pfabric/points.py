"""Networks, loads and points of pFabric's figures.

Every point of a workload carries the same number of bytes: at a lower load it runs longer.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from engines.registry import IDEAL, SIMULATOR
from harness.experiment import RateOf
from harness.options.fields import changed
from harness.options.options import Defaults, SweepOptions
from model.arms import ARMS, Arm
from model.spec import RunSpec, SamplingSpec, TopologySpec, WorkloadSpec

LOADS = (10, 20, 30, 40, 50, 60, 70, 80)
HIGHEST_LOAD = 80
"""In percent. SECONDS and WARMUP_S are for this load."""
WEB_SEARCH, DATA_MINING = "websearch", "datamining"
SIZES = (WEB_SEARCH, DATA_MINING)
WEB_STEPS, MINING_STEPS = "websearch-steps", "datamining-steps"
"""The same without sizes between the published points, as the CS244 2017 reproduction drew them."""
SECONDS, WARMUP_S, WHOLE_S = 0.05, 0.01, 0.2
"""About 4000 flows of web search, and 17 000 in the profile `paper`."""
SIZE_PARTS = {DATA_MINING: 2.0, MINING_STEPS: 2.0}
"""Factor by which points with these sizes run longer, because their flows are fewer and larger."""
BRIEF_PART = 0.4
"""Fraction of the seconds in a brief profile, which only tests that everything works."""
RATE_MBPS = 10_000.0
LINK_DELAY_US, HOST_DELAY_US = 0.2, 2.5
"""A round trip of 14.6 us across a spine and 13.3 us below a leaf, for a packet of 1500 bytes and its ACK."""
HOTNETS_HOST_DELAY_US = 0.55
"""A round trip of 12 us over the six links between pods of a FatTree (recalled), which hold 10 packets."""
LEAF_SPINE = TopologySpec("leaf_spine", {"leaves": 9, "spines": 4, "hosts": 16, "speed": 4})
SMALL_LEAF_SPINE = TopologySpec("leaf_spine", {"leaves": 3, "spines": 2, "hosts": 4, "speed": 2})
FAT_TREE = TopologySpec("fat_tree", {"k": 6})
SMALL_FAT_TREE = TopologySpec("fat_tree", {"k": 4})
STAR = TopologySpec("star", {"n": 28})
SMALL_STAR = TopologySpec("star", {"n": 6})
QUEUE_SAMPLE_MS = 1

Settings = Mapping[str, Any]
"""Values of the spec's fields, by path."""


def workload(sizes: str, load: int) -> str:
    """Return a workload as a user types it."""
    name = f"pairs:{load}"
    return name if sizes == WEB_SEARCH else f"{name}:sizes={sizes}"


def defaults(
    loads: Sequence[int], sizes: Sequence[str] = SIZES, host_delay_us: float = HOST_DELAY_US
) -> Defaults:
    """Return the defaults of a figure at these loads."""
    return Defaults(
        ks=(LEAF_SPINE.k,),
        workloads=tuple(workload(name, load) for name in sizes for load in loads),
        subflows=(1,),
        rate_mbps=RATE_MBPS,
        delay_us=LINK_DELAY_US,
        pins={"link.host_delay_us": host_delay_us, "link.clock_ppm": 0.0},
        seconds=SECONDS,
        warmup_s=WARMUP_S,
        whole_s=WHOLE_S,
        engines=(SIMULATOR, IDEAL),
        sampling=SamplingSpec(queues_ms=QUEUE_SAMPLE_MS),
    )


Topologies = Callable[[SweepOptions], list[TopologySpec]]


def one_of(whole: TopologySpec, small: TopologySpec) -> Topologies:
    """Return the network, or a small one of its kind where the profile is brief."""
    return lambda options: [small if options.brief else whole]


def of_arms(names: Sequence[str]) -> tuple[Settings, ...]:
    """Return the settings of these arms, with the engine of each."""
    return tuple(settings_of(ARMS[name]) for name in names)


def settings_of(arm: Arm) -> Settings:
    """Return the settings of this arm's points."""
    return {**arm.settings, "engine": arm.engine or SIMULATOR}


def points_on(
    topologies: Topologies, variants: Sequence[Settings]
) -> Callable[[SweepOptions, RateOf], list[RunSpec]]:
    """Return topology x workload x seed x variant, for variants of the chosen engines."""

    def points(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
        return [
            point_of(options, rate_of(topology), topology, traffic, seed, variant)
            for topology in topologies(options)
            for traffic in options.workloads
            for seed in options.seeds
            for variant in variants
            if variant["engine"] in options.engines
        ]

    return points


def point_of(
    options: SweepOptions,
    rate_mbps: float,
    topology: TopologySpec,
    traffic: WorkloadSpec,
    seed: int,
    variant: Settings,
) -> RunSpec:
    """Return one point, which runs longer at a lower load."""
    part = HIGHEST_LOAD / max(1, int(traffic.params.get("load", HIGHEST_LOAD)))
    part *= SIZE_PARTS.get(str(traffic.params.get("sizes", WEB_SEARCH)), 1.0)
    part *= BRIEF_PART if options.brief else 1
    base = options.on(variant["engine"])
    spec = dataclasses.replace(
        base,
        topology=topology,
        workload=traffic,
        seed=seed,
        seconds=round(base.seconds * part, 9),
        warmup_s=round(base.warmup_s * part, 9),
    )
    return changed(spec, {**variant, "link.rate_mbps": rate_mbps})
