"""The sweeps that make up figures: topologies, and points over k, workload, seed and subflows.

All transports of a sweep share the seed, so every curve sees the same traffic matrix.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import topos
from engines.registry import SIMULATED_HOSTS
from harness.experiment import RateOf
from harness.options.options import SweepOptions
from model.congestion import BASELINE
from model.spec import LinkEvent, RunSpec, Settings, TopologySpec, WorkloadSpec
from topos.topology import Layer

Topologies = Callable[[SweepOptions], list[TopologySpec]]
Points = Callable[[SweepOptions, RateOf], list[RunSpec]]
Curves = Sequence[Settings] | Callable[[SweepOptions], Sequence[Settings]]
"""What distinguishes the curves of a figure: settings that they pin, or a function of the options."""
Adapt = Callable[[RunSpec], RunSpec]
_CC, _SUBFLOWS, _SYSCTLS = "transport.cc", "transport.subflows", "transport.sysctls"
PLAIN_TCP: Settings = {_CC: BASELINE, _SUBFLOWS: 1}


def fat_trees(options: SweepOptions) -> list[TopologySpec]:
    """Return one FatTree for each requested k, or the networks requested instead."""
    if options.topologies:
        return list(options.topologies)
    return [TopologySpec("fat_tree", {"k": k}) for k in options.ks]


def points_on(topologies: Topologies, curves: Curves = ({},), adapt: Adapt | None = None) -> Points:
    """Return a function that makes the points of topology x workload x seed x curve x congestion control x
    subflows x engine, with the transports of a matrix next to each other.

    Settings of a curve have priority over the user's, except sysctls and fields of the stack that the user or
    the figure chose. Under `transport.subflows` it may have several counts. A curve with an `engine` has
    points in this one only; without, its stack is that of simulated hosts. `adapt` changes each point.
    """

    def points(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
        bases = {engine: options.on(engine) for engine in options.engines}
        made = [
            _point(bases[engine], curve, options, topology, workload, seed, cc, subflows, rate_of(topology))
            for topology in topologies(options)
            for workload in options.workloads
            for seed in options.seeds
            for curve in (curves(options) if callable(curves) else curves)
            for cc in ([curve[_CC]] if _CC in curve else options.ccs or [options.coupled_cc])
            for subflows in _counts(curve.get(_SUBFLOWS, options.subflows))
            for engine in options.engines
            if curve.get("engine", engine) == engine
        ]
        return list(map(adapt, made)) if adapt else made

    return points


def _counts(subflows: int | tuple[int, ...]) -> tuple[int, ...]:
    return (subflows,) if isinstance(subflows, int) else subflows


def _point(
    base: RunSpec,
    curve: Settings,
    options: SweepOptions,
    topology: TopologySpec,
    workload: WorkloadSpec,
    seed: int,
    cc: str,
    subflows: int,
    rate_mbps: float,
) -> RunSpec:
    """Return a point. Mininet limits the queues at both ends of a link, so hosts' own queues get the same
    limit unless the curve has another one."""
    values: dict[str, Any] = {
        "topology": topology, "workload": workload, "seed": seed, "link.rate_mbps": rate_mbps,
        "link.nic_queue_pkts": curve.get("link.queue_pkts", base.link.queue_pkts), **curve,
        _CC: cc, _SUBFLOWS: subflows,
    }  # fmt: skip
    if _SYSCTLS in curve:
        values[_SYSCTLS] = {**base.transport.sysctls, **curve[_SYSCTLS]}
    if "stack" in curve:
        own = base.engine in SIMULATED_HOSTS or "engine" in curve
        values["stack"] = curve["stack"] if own else base.stack
        chosen = {path: value for path, value in options.chosen.items() if path.startswith("stack.")}
        values |= {path: chosen[path] for path in chosen.keys() - curve.keys() if own}
    return base.changed(values)


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
    """Return the point with a quarter of the core down in the middle third of its window, or with the events
    of `--event` instead."""
    if point.events:
        return point
    return dataclasses.replace(point, events=core_failure(point.topology, *middle_third_s(point)))
