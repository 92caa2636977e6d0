"""Points in which a part of the core is down for the middle third of the window."""

from __future__ import annotations

import dataclasses

import topos
from model.spec import LinkEvent, RunSpec, TopologySpec
from topos.topology import Layer

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
