"""The core's Simulation of a point, and the time that each flow would take alone in it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from common.errors import RunError
from controllers.groups import ecmp_groups
from engines.core_setup.agent import SimulatedAgent
from engines.core_setup.paths import choose_paths
from engines.core_setup.stack import PS_PER_S, core_datagrams, core_flows, core_noise, transport_options
from fabric._core import Simulation, TransportOptions
from fabric.plan import NetworkPlan
from model.congestion import BASELINE
from model.flows import PlannedFlow, planned_flows
from model.network_plan import network_plan
from model.result import NO_VALUE
from model.spec import RunSpec, sub_seed
from topos.topology import Topology, parts_of

PS_PER_BYTE_AT_1_BPS = 8 * PS_PER_S
ALARMS_A_SUBFLOW = 8
"""Descriptors: one per kind of timer, and outdated timers that are still in the calendar."""
MIN_PACKETS = 1 << 20
MAX_PACKETS = 1 << 28
"""The most that the core can number."""
PACKETS_A_SUBFLOW = 32
"""Further descriptors: the packets in flight of 65 536 subflows in slow start. Memory is used only when
needed."""


def prepared(spec: RunSpec, topology: Topology, flows: Sequence[PlannedFlow]) -> Simulation:
    """Return a Simulation whose subflows all have their paths and have sent nothing yet.

    Raises RunError if the core cannot hold it.
    """
    agent = SimulatedAgent(spec, topology, flows)
    return built(spec, topology, flows, plan_of(spec, topology), transport_options(spec), agent)


def built(
    spec: RunSpec,
    topology: Topology,
    flows: Sequence[PlannedFlow],
    plan: NetworkPlan,
    options: TransportOptions,
    agent: SimulatedAgent | None = None,
    threads: int = 1,
) -> Simulation:
    """Build the core's Simulation on this network plan. Raises RunError if the core cannot hold it.

    `threads` carry out the parts of a divided network.
    """
    try:
        simulation = Simulation(
            plan,
            options,
            core_flows(spec, topology, flows),
            core_datagrams(topology, flows),
            core_noise(spec),
            agent.config if agent else None,
            threads,
        )
    except (ValueError, MemoryError, RuntimeError) as error:
        raise RunError(f"setting up the simulation: {error or 'out of memory'}") from error
    choose_paths(simulation, spec, topology, flows)
    return simulation


def plan_of(spec: RunSpec, topology: Topology) -> NetworkPlan:
    """Return the emulator's network plan with unlimited host queues, whose senders wait for room themselves.

    In front of such a queue senders take turns, or the one with the least to send is next, so it is a FIFO.
    Where hosts forward packets, their queues keep their limit: senders compete with forwarded packets.
    Every part of a divided network has as many descriptors as the whole has undivided.
    """
    tables = ecmp_groups(topology)
    plan = network_plan(topology, tables, spec.link, spec.routing, sub_seed(spec.seed, "routing"))
    queue_pkts, discipline = plan.queue_pkts.copy(), plan.discipline.copy()
    if spec.stack.nic_waits and not topology.hosts_forward:
        queue_pkts[plan.nic_uplink] = 0
        discipline[plan.nic_uplink] = 0
    subflows = sum(flow.subflows for flow in planned_flows(spec, topology))
    most = max(plan.max_packets, MIN_PACKETS) + (ALARMS_A_SUBFLOW + PACKETS_A_SUBFLOW) * subflows
    parts = parts_of(topology, spec.parts) if spec.parts > 1 else ()
    return dataclasses.replace(
        plan,
        queue_pkts=queue_pkts,
        discipline=discipline,
        max_packets=min(most * max(1, len(set(parts))), max(most, MAX_PACKETS)),
        partition=np.array(parts, np.uint16),
    )


def times_alone_s(spec: RunSpec, topology: Topology, flows: Sequence[PlannedFlow]) -> list[float]:
    """Return each flow's time alone on the path of its first subflow; NO_VALUE for one without a size."""
    if not any(flow.size_bytes for flow in flows):
        return [NO_VALUE] * len(flows)
    plan, options = plan_of(spec, topology), transport_options(spec)
    known = [dataclasses.replace(flow, cc=BASELINE) for flow in flows]
    return ideal_times_s(built(spec, topology, known, plan, options), flows, plan, options)


def ideal_times_s(
    simulation: Simulation, flows: Sequence[PlannedFlow], plan: NetworkPlan, options: TransportOptions
) -> list[float]:
    """Return each flow's ideal time on the path of its first subflow; NO_VALUE for one without a size."""
    first = accumulate((flow.subflows for flow in flows[:-1]), initial=0)
    return [
        ideal_s(flow.size_bytes, simulation.path(subflow), plan, options) if flow.size_bytes else NO_VALUE
        for flow, subflow in zip(flows, first, strict=True)
    ]


def ideal_s(size_bytes: int, path: Sequence[int], plan: NetworkPlan, options: TransportOptions) -> float:
    """Return the ideal time in seconds from a flow's start until its last byte has arrived.

    The flow of `size_bytes` is alone on the ports `path` and sends at their rate from the start, packet after
    packet. Every node stores a packet before it forwards it. Exact for any rates: full packets follow each
    other at the pace of the slowest port so far, and the last packet, which may be shorter, waits at each
    port for the packet before it.
    """
    packets = -(-size_bytes // options.payload_bytes)
    full = options.payload_bytes + options.header_bytes
    last = size_bytes - (packets - 1) * options.payload_bytes + options.header_bytes
    arrived = first_departed = slowest = 0  # arrival of the last packet, departure of the first
    for port in path:
        rate, delay = int(plan.rate_bps[port]), int(plan.delay_ps[port])
        takes = full * PS_PER_BYTE_AT_1_BPS // rate
        slowest = max(slowest, takes)
        first_departed += takes
        last_but_one_departed = first_departed + (packets - 2) * slowest if packets > 1 else 0
        arrived = max(arrived, last_but_one_departed) + last * PS_PER_BYTE_AT_1_BPS // rate + delay
        first_departed += delay
    return arrived / PS_PER_S
