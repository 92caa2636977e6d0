"""The simulator engine: runs one RunSpec at a time, in virtual time, without root."""

from __future__ import annotations

import dataclasses
import functools
import os
import time
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import topos
from common.errors import RunError
from engines.core_setup.checks import check_spec
from engines.core_setup.paths import check_paths
from engines.core_setup.setup import built, plan_of
from engines.core_setup.stack import Stack, check_stack, stack_of
from engines.engine import Observer
from engines.provenance import free_memory_mb, machine, revision
from engines.simulation.completion import ideal_s
from engines.simulation.memory import check_memory, estimated_mb
from engines.simulation.readings import Recording, record
from engines.simulation.scheduled import Scheduling
from engines.simulation.summarise import summarise
from fabric._core import COMPILER, Simulation
from fabric.plan import NetworkPlan
from model.congestion import COUPLED_DEFAULT
from model.flows import PlannedFlow, planned_flows
from model.link_events import check_events
from model.machine.capacity import demand
from model.result import NO_VALUE, RunResult
from model.schedulers import check_scheduler, ticking_s
from model.spec import RunSpec
from topos.topology import Topology

HOPS_PER_CPU_S = 8e6
"""Packet-hops per CPU second at k=8 on the reference machine (benchmarks/simulator.py), for plans."""
STARTING_S = 0.3


class SimulatorEngine:
    """An Engine with simulated hosts on the fabric core."""

    name = "simulator"

    @property
    def parallel(self) -> int:
        """One point per CPU: each is one thread that shares nothing."""
        return len(os.sched_getaffinity(0))

    def check(self, spec: RunSpec) -> None:
        """Raise UsageError for a spec that it does not support."""
        topology = topos.build(spec.topology.kind, spec.topology.params)
        check_spec(spec)
        flows = planned_flows(spec, topology)
        check_stack(spec, flows)
        check_memory(spec, topology, flows, free_memory_mb())
        check_paths(spec, topology)
        check_events(spec, topology)
        check_scheduler(spec, topology)

    def memory_mb(self, spec: RunSpec) -> float:
        """Return an estimate made before anything is built (memory.py)."""
        topology = topos.build(spec.topology.kind, spec.topology.params)
        return estimated_mb(spec, topology, planned_flows(spec, topology))

    def coupled_cc(self) -> tuple[str, str]:
        """Return the default: the simulator has all of them."""
        return COUPLED_DEFAULT, ""

    def expected_s(self, spec: RunSpec) -> float:
        """Return an estimate from the point's packet-hops."""
        seconds = spec.warmup_s + spec.seconds
        return STARTING_S + demand(spec).hops_per_s * seconds / HOPS_PER_CPU_S + ticking_s(spec)

    def run(self, spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
        """See `Engine.run`; signals are handled between slices of virtual time, many times a second."""
        del raw
        began = time.process_time()
        topology = topos.build(spec.topology.kind, spec.topology.params)
        flows = planned_flows(spec, topology)
        plan, stack = plan_of(spec, topology), stack_of(spec)
        simulation = built(spec, topology, flows, plan, stack)
        ideal = _ideal_s(simulation, flows, plan, stack)
        scheduling = Scheduling(spec, topology, flows, simulation)
        recording = _record(simulation, spec, topology, flows, observer, scheduling)
        result = summarise(spec, topology, flows, ideal, recording)
        cpu_s = time.process_time() - began
        hops_per_cpu_s = recording.closed.ports["hops"] / cpu_s
        return dataclasses.replace(
            result,
            metrics={**result.metrics, **scheduling.counts},
            reproducible=True,
            provenance=origin(),
            cost={
                "simulation_cpu_s": cpu_s,
                "packet_hops_per_cpu_s": hops_per_cpu_s,
                **scheduling.times,
            },
        )


def _record(
    simulation: Simulation,
    spec: RunSpec,
    topology: Topology,
    flows: Sequence[PlannedFlow],
    observer: Observer,
    scheduling: Scheduling,
) -> Recording:
    """Run the simulation. Raises RunError if the core cannot hold it."""
    subflows = sum(flow.subflows for flow in flows)
    try:
        return record(simulation, spec, topology, subflows, observer, scheduling.clock)
    except (ValueError, MemoryError) as error:
        raise RunError(f"simulating: {error or 'out of memory'}") from error


@functools.cache
def origin() -> dict[str, Any]:
    """Return the machine and revision for the record; they do not influence results."""
    return {**machine(), "compiler": COMPILER, "engine": "simulator", "revision": revision()}


def _ideal_s(
    simulation: Simulation, flows: Sequence[PlannedFlow], plan: NetworkPlan, stack: Stack
) -> list[float]:
    """Return each sized flow's ideal time on the path of its first subflow."""
    first = accumulate((flow.subflows for flow in flows[:-1]), initial=0)
    return [
        ideal_s(flow.size_bytes, simulation.path(subflow), plan, stack) if flow.size_bytes else NO_VALUE
        for flow, subflow in zip(flows, first, strict=True)
    ]
