"""Set up the core's Simulation of a point: its network, its flows, and the path of every subflow."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from common.errors import RunError
from controllers.groups import ecmp_groups
from engines.core_setup.agent import SimulatedAgent
from engines.core_setup.paths import choose_paths
from engines.core_setup.stack import Stack, datagram_tuples, flow_tuples, stack_of
from engines.core_setup.stalls import noise_tuple
from fabric._core import Simulation
from fabric.plan import NetworkPlan
from model.fields.limits import check_limits
from model.flows import PlannedFlow, planned_flows
from model.network_plan import network_plan
from model.spec import RunSpec, sub_seed
from topos.parts import parts_of
from topos.topology import Topology

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
    return built(spec, topology, flows, plan_of(spec, topology), stack_of(spec), agent)


def built(
    spec: RunSpec,
    topology: Topology,
    flows: Sequence[PlannedFlow],
    plan: NetworkPlan,
    stack: Stack,
    agent: SimulatedAgent | None = None,
    threads: int = 1,
) -> Simulation:
    """Build the core's Simulation on this network plan. Raises RunError if the core cannot hold it.

    `threads` carry out the parts of a divided network.
    """
    tuples = flow_tuples(spec, topology, flows)
    try:
        simulation = Simulation(
            plan,
            stack,
            tuples,
            datagram_tuples(topology, flows),
            noise_tuple(spec),
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
    Raises UsageError for numbers out of range, which the core does not check.
    """
    check_limits(spec)
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
