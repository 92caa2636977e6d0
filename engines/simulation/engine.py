"""The simulator as the rest of refabric sees it: one RunSpec at a time, in virtual time, without root."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import numpy as np

import topos
from controllers.groups import ecmp_groups
from engines.congestion import COUPLED_DEFAULT
from engines.engine import Observer
from engines.flows import PlannedFlow, planned_flows
from engines.link_events import check_events
from engines.network_plan import network_plan
from engines.result import RunResult
from engines.simulation.completion import ideal_s
from engines.simulation.link_events import Timeline
from engines.simulation.paths import check_paths, choose_paths
from engines.simulation.readings import Reading
from engines.simulation.stack import PS_PER_S, Stack, check_stack, flow_tuples, stack_of
from engines.simulation.summarise import summarise
from engines.spec import RunSpec, sub_seed
from fabric._core import Simulation
from fabric.plan import NetworkPlan
from topos.topology import Topology

SAMPLE_S = 1.0


class SimulatorEngine:
    """Simulated hosts, the fabric core between them."""

    name = "simulator"

    def check(self, spec: RunSpec) -> None:
        """Raises UsageError for what it does not do."""
        topology = topos.build(spec.topology.kind, spec.topology.params)
        check_stack(spec, planned_flows(spec, topology))
        check_paths(spec, topology)
        check_events(spec, topology)

    def coupled_cc(self) -> tuple[str, str]:
        """It has all of them."""
        return COUPLED_DEFAULT, ""

    def overhead_s(self, spec: RunSpec) -> float:
        """Nothing worth naming: virtual time is its own."""
        del spec
        return 0.0

    def run(self, spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
        """As `Engine.run`; an interrupt is heard between slices of virtual time."""
        del raw
        began = time.process_time()
        topology = topos.build(spec.topology.kind, spec.topology.params)
        flows = planned_flows(spec, topology)
        plan, stack = plan_of(spec, topology), stack_of(spec)
        simulation = Simulation(plan, stack, flow_tuples(spec, topology, flows))
        choose_paths(simulation, spec, topology, flows)
        ideal = _ideal_s(simulation, flows, plan, stack)
        observer.phase("measure", spec.warmup_s + spec.seconds)
        readings = _run(simulation, spec, topology)
        return summarise(spec, topology, flows, ideal, readings, time.process_time() - began)


def plan_of(spec: RunSpec, topology: Topology) -> NetworkPlan:
    """As the emulator's, but that hosts' queues are kept short by the senders, which wait for room. Where
    hosts forward, the senders meet the queue as others' packets do, and wait for nothing."""
    tables = ecmp_groups(topology)
    plan = network_plan(topology, tables, spec.link, spec.routing, sub_seed(spec.seed, "routing"))
    if topology.hosts_forward:
        return plan
    queue_pkts = plan.queue_pkts.copy()
    if spec.stack.nic_waits:
        queue_pkts[plan.nic_uplink] = 0
    return dataclasses.replace(plan, queue_pkts=queue_pkts)


def _ideal_s(
    simulation: Simulation, flows: Sequence[PlannedFlow], plan: NetworkPlan, stack: Stack
) -> list[float]:
    """Of each flow, on the path of its first subflow."""
    first = accumulate((flow.subflows for flow in flows[:-1]), initial=0)
    return [
        ideal_s(flow.size_bytes, simulation.path(subflow), plan, stack)
        for flow, subflow in zip(flows, first, strict=True)
    ]


def _run(simulation: Simulation, spec: RunSpec, topology: Topology) -> list[Reading]:
    """Readings at every sampled instant, the first at the start of traffic."""
    timeline = Timeline(simulation, spec, topology)
    end_s = spec.warmup_s + spec.seconds
    times = np.unique(np.concatenate([np.arange(0.0, end_s, SAMPLE_S), [spec.warmup_s, end_s]]))
    readings = []
    for t_s in times.tolist():
        timeline.run_until(round(t_s * PS_PER_S))
        readings.append(Reading(t_s, simulation.ports(), simulation.flows(), simulation.subflows()))
    return readings
