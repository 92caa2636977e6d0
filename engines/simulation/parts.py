"""Networks in parts, which several CPUs carry out: what can be divided, and by how many threads."""

from __future__ import annotations

import os
from collections.abc import Sequence

from common.errors import UsageError
from controllers.routing import per_packet
from model.congestion import DATAPATH, core_name
from model.flows import congestion_controls
from model.noise import noisy
from model.responsive import opens_subflows
from model.spec import FIFO, RunSpec
from topos.parts import parts_of
from topos.topology import Topology
from workloads.flow import Flow

MIN_HOSTS = 512
"""On smaller networks windows are too short to wait for one another at each (docs/performance.md): one thread
does all parts."""


def check_parts(spec: RunSpec, topology: Topology, flows: Sequence[Flow]) -> None:
    """Raise UsageError, in one line, for a point in parts with what only an undivided network has."""
    if spec.parts == 1:
        return
    if not parts_of(topology, spec.parts):
        raise UsageError(
            f"--parts {spec.parts}: {topology.kind} has no pods below a common layer, into which it could be "
            "divided: leave it out"
        )
    for what, given in _undivided(spec, topology, flows).items():
        if given:
            raise UsageError(f"--parts {spec.parts}: only an undivided network has {what}: leave one out")


def _undivided(spec: RunSpec, topology: Topology, flows: Sequence[Flow]) -> dict[str, bool]:
    link = spec.link
    one_by_one = link.discipline != FIFO or bool(link.trace)
    return {
        "link events": bool(spec.events),
        "random loss": link.loss > 0,
        "CPUs that stall": noisy(spec),
        "agents": DATAPATH in map(core_name, congestion_controls(spec, flows)),
        "subflows on demand": opens_subflows(spec),
        "acknowledgements at once (acks=at_once)": spec.stack.acks == "at_once",
        "per-packet routing": per_packet(spec.routing),
        "flows that wait for one from another part": _waits_elsewhere(spec, topology, flows),
        "queues that choose packets on links without delay": one_by_one and not link.delay_us,
    }


def _waits_elsewhere(spec: RunSpec, topology: Topology, flows: Sequence[Flow]) -> bool:
    parts = parts_of(topology, spec.parts)
    of_source = [parts[topology.index(flow.src)] for flow in flows]
    return any(
        flow.after is not None and of_source[flow.after] != of_source[number]
        for number, flow in enumerate(flows)
    )


def threads_of(spec: RunSpec, topology: Topology) -> int:
    """Return how many threads carry out the point on this machine: one for each CPU and part at most."""
    if spec.parts == 1 or len(topology.hosts) < MIN_HOSTS:
        return 1
    return min(len(os.sched_getaffinity(0)), len(set(parts_of(topology, spec.parts))))
