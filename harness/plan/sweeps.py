"""The sweeps that make up figures: topologies, and points over k, workload, seed and subflows.

All transports of a sweep share the seed, so every curve sees the same traffic matrix.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import topos
from engines.registry import SIMULATED_HOSTS
from harness.experiment import RateOf
from harness.options.options import SweepOptions
from model.spec import LinkEvent, LinkSpec, RunSpec, SchedulerSpec, StackSpec, TopologySpec, TransportSpec
from topos.topology import Layer

Topologies = Callable[[SweepOptions], list[TopologySpec]]
Points = Callable[[SweepOptions, RateOf], list[RunSpec]]


def fat_trees(options: SweepOptions) -> list[TopologySpec]:
    """Return one FatTree for each requested k, or the networks requested instead."""
    if options.topologies:
        return list(options.topologies)
    return [TopologySpec("fat_tree", {"k": k}) for k in options.ks]


@dataclass(frozen=True)
class Variant:
    """The settings of one curve of a figure; None leaves a setting to the options.

    `simulated` is the stack of simulated hosts.
    """

    cc: str | None = None
    routing: str | None = None
    subflows: tuple[int, ...] | None = None
    ecn_pkts: int | None = None
    sysctls: Mapping[str, str] = field(default_factory=dict)
    write_bytes: int | None = None
    simulated: StackSpec | None = None
    scheduler: SchedulerSpec | None = None
    join_after_ms: float = 0.0
    join_after_bytes: int = 0


def points_on(topologies: Topologies, variants: Sequence[Variant] = (Variant(),)) -> Points:
    """Return a function that makes the points of topology x workload x seed x variant x congestion control x
    subflows x engine, with the transports of a matrix next to each other."""

    def points(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
        bases = {engine: options.on(engine) for engine in options.engines}
        return [
            dataclasses.replace(
                _varied(bases[engine], variant, options),
                link=_link(bases[engine].link, variant, rate_of(topology)),
                topology=topology,
                transport=_transport(bases[engine].transport, variant, subflows, cc),
                workload=workload,
                seed=seed,
            )
            for topology in topologies(options)
            for workload in options.workloads
            for seed in options.seeds
            for variant in variants
            for cc in ([variant.cc] if variant.cc else options.ccs or [options.coupled_cc])
            for subflows in variant.subflows or options.subflows
            for engine in options.engines
        ]

    return points


def points_by(topologies: Topologies, variants_of: Callable[[SweepOptions], Sequence[Variant]]) -> Points:
    """Return the function that `points_on` does, for variants that depend on the options."""

    def points(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
        return points_on(topologies, variants_of(options))(options, rate_of)

    return points


def _varied(base: RunSpec, variant: Variant, options: SweepOptions) -> RunSpec:
    """Apply the variant. Fields of the stack that the user or the figure chose have priority over it."""
    stack = base.stack
    if variant.simulated and base.engine in SIMULATED_HOSTS:
        stack = dataclasses.replace(variant.simulated, **dict[str, Any](options.stack))
    return dataclasses.replace(
        base,
        routing=variant.routing or base.routing,
        stack=stack,
        scheduler=base.scheduler if variant.scheduler is None else variant.scheduler,
    )


def _transport(base: TransportSpec, variant: Variant, subflows: int, cc: str) -> TransportSpec:
    return dataclasses.replace(
        base,
        subflows=subflows,
        cc=cc,
        sysctls={**base.sysctls, **variant.sysctls},
        write_bytes=base.write_bytes if variant.write_bytes is None else variant.write_bytes,
        join_after_ms=variant.join_after_ms,
        join_after_bytes=variant.join_after_bytes,
    )


def _link(base: LinkSpec, variant: Variant, rate_mbps: float) -> LinkSpec:
    """Return the link. Mininet limits the queues at both ends of a link, so hosts' own queues get the same
    limit."""
    return dataclasses.replace(
        base,
        rate_mbps=rate_mbps,
        nic_queue_pkts=base.queue_pkts,
        ecn_pkts=base.ecn_pkts if variant.ecn_pkts is None else variant.ecn_pkts,
    )


FAILING = 4
"""One core switch in this many fails."""


def core_failure(topology: TopologySpec, fail_s: float, back_s: float) -> tuple[LinkEvent, ...]:
    """Return events that cut every link of the first quarter of the core switches at `fail_s` and restore it
    at `back_s`."""
    net = topos.build(topology.kind, topology.params)
    core = [i for i, node in enumerate(net.nodes) if node.layer is Layer.CORE]
    failing = set(core[: max(1, len(core) // FAILING)])
    ends = [(net.nodes[link.a].name, net.nodes[link.b].name) for link in net.links if link.b in failing]
    cuts = [LinkEvent(fail_s, a, b) for a, b in ends]
    return (*cuts, *(LinkEvent(back_s, a, b, 1.0) for a, b in ends))


def middle_third_s(point: RunSpec) -> tuple[float, float]:
    """Return when the middle third of the window begins and ends, in s from the start of the run."""
    third_s = point.seconds / 3
    return point.warmup_s + third_s, point.warmup_s + 2 * third_s


def with_core_failure(point: RunSpec) -> RunSpec:
    """Return the point with a quarter of the core down in the middle third of its window."""
    return dataclasses.replace(point, events=core_failure(point.topology, *middle_third_s(point)))
