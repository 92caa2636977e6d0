"""The sweeps figures are made of: topologies, and points over k, workload, seed and subflows.

The seed is shared by all transports of a sweep, so every curve sees the same traffic matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from engines.emulation.dataplanes.registry import FABRIC
from engines.registry import VIRTUAL_TIME
from harness.experiment import RateOf
from harness.plan.options import SIMULATED_TRAFFIC, SweepOptions
from model.spec import (
    LinkSpec,
    OpenFlowSpec,
    RunSpec,
    SchedulerSpec,
    StackSpec,
    TopologySpec,
    TransportSpec,
)

Topologies = Callable[[SweepOptions], list[TopologySpec]]
Points = Callable[[SweepOptions, RateOf], list[RunSpec]]


def fat_trees(options: SweepOptions) -> list[TopologySpec]:
    """One FatTree for each k asked for."""
    return [TopologySpec("fat_tree", {"k": k}) for k in options.ks]


@dataclass(frozen=True)
class Variant:
    """What sets one curve of a figure apart from its others; None is what the options say. Simulated hosts
    are `simulated`."""

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
    """topology x workload x seed x variant x congestion control x subflows x engine, a matrix's transports
    next to each other."""

    def points(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
        return [
            RunSpec(
                link=_link(options, variant, rate_of(topology)),
                topology=topology,
                transport=TransportSpec(
                    subflows,
                    cc,
                    {**options.sysctls, **variant.sysctls},
                    options.write_bytes if variant.write_bytes is None else variant.write_bytes,
                    variant.join_after_ms,
                    variant.join_after_bytes,
                ),
                workload=workload,
                engine=engine,
                dataplane=FABRIC if engine in VIRTUAL_TIME else options.dataplane,
                routing=variant.routing or options.routing,
                traffic=SIMULATED_TRAFFIC if engine in VIRTUAL_TIME else options.traffic,
                warmup_s=float(options.warmup_s),
                seconds=float(options.seconds),
                seed=seed,
                sampling=options.sampling,
                events=options.events,
                openflow=OpenFlowSpec() if engine in VIRTUAL_TIME else options.openflow,
                stack=_stack(options, variant) if engine in VIRTUAL_TIME else StackSpec(),
                scheduler=options.scheduler if variant.scheduler is None else variant.scheduler,
                noise=options.noise,
                clock=options.clock,
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


def _stack(options: SweepOptions, variant: Variant) -> StackSpec:
    """What was chosen goes before what the variant pins."""
    return options.stack if options.stack != StackSpec() else variant.simulated or options.stack


def _link(options: SweepOptions, variant: Variant, rate_mbps: float) -> LinkSpec:
    """Mininet's queue limit holds at both ends of a link, so the hosts' own queues have it too."""
    return LinkSpec(
        rate_mbps=float(rate_mbps),
        delay_us=float(options.delay_us),
        queue_pkts=options.queue_pkts,
        nic_queue_pkts=options.queue_pkts,
        loss=options.loss_pct / 100,
        queue_bytes=options.queue_bytes,
        random_pkts=options.random_pkts,
        discipline=options.discipline,
        host_queue=options.host_queue,
        ecn_pkts=options.ecn_pkts if variant.ecn_pkts is None else variant.ecn_pkts,
    )
