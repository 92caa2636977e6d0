"""The simulator engine: runs one RunSpec at a time, in virtual time, without root."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import topos
from common.errors import RunError
from engines.core_setup.agent import SimulatedAgent, check_agent
from engines.core_setup.checks import check_spec
from engines.core_setup.completion import ideal_s
from engines.core_setup.paths import check_paths
from engines.core_setup.setup import built, plan_of
from engines.core_setup.stack import Stack, check_stack, stack_of
from engines.engine import Observer, OnePointPerCpu
from engines.ims.checks import is_ims
from engines.provenance import free_memory_mb, origin
from engines.simulation.following import following
from engines.simulation.ims import point as ims
from engines.simulation.memory import check_memory, estimated_mb
from engines.simulation.parts import check_parts, threads_of
from engines.simulation.readings import Recording, record
from engines.simulation.scheduled import Control, control_of
from engines.simulation.summarise import summarise
from fabric._core import COMPILER, Simulation
from fabric.plan import NetworkPlan
from model.congestion import COUPLED_DEFAULT
from model.fields.limits import check_limits
from model.flows import PlannedFlow, congestion_controls, drawn_flows, planned_flows
from model.link_events import check_events
from model.machine.capacity import demand
from model.network_plan import check_trace
from model.result import NO_VALUE, RunResult
from model.schedulers import check_scheduler, ticking_s
from model.spec import RunSpec
from topos.topology import Topology

HOPS_PER_CPU_S = 12e6
"""Packet-hops per CPU second, for plans: between those at k=8 (20 M) and k=32 (8 M) on the reference machine
(benchmarks/simulator.py)."""
STARTING_S = 0.3


class SimulatorEngine(OnePointPerCpu):
    """An Engine with simulated hosts on the fabric core."""

    name = "simulator"

    def check(self, spec: RunSpec) -> None:
        """Raise UsageError for a spec that it does not support."""
        if is_ims(spec):
            ims.check(spec)
            return
        topology = topos.build(spec.topology.kind, spec.topology.params)
        check_spec(spec)
        flows = drawn_flows(spec, topology)
        check_stack(spec, congestion_controls(spec, flows))
        check_agent(spec)
        check_parts(spec, topology, flows)
        check_memory(spec, topology, flows, free_memory_mb())
        check_paths(spec, topology)
        check_events(spec, topology)
        check_trace(spec, topology)
        check_scheduler(spec, topology)

    def memory_mb(self, spec: RunSpec) -> float:
        """Return an estimate made before anything is built (memory.py)."""
        if is_ims(spec):
            return ims.memory_mb(spec)
        topology = topos.build(spec.topology.kind, spec.topology.params)
        return estimated_mb(spec, topology, drawn_flows(spec, topology))

    def cpus(self, spec: RunSpec) -> int:
        """Return the number of threads that carry out the point."""
        if spec.parts == 1:
            return 1
        return threads_of(spec, topos.build(spec.topology.kind, spec.topology.params))

    def coupled_cc(self) -> tuple[str, str]:
        """Return the default: the simulator has all of them."""
        return COUPLED_DEFAULT, ""

    def expected_s(self, spec: RunSpec) -> float:
        """Return an estimate from the point's packet-hops."""
        if is_ims(spec):
            return ims.expected_s(spec)
        seconds = spec.warmup_s + spec.seconds
        events_s = demand(spec).hops_per_s * seconds / HOPS_PER_CPU_S
        return STARTING_S + events_s / self.cpus(spec) + ticking_s(spec)

    def run(self, spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
        """See `Engine.run`; signals are handled between slices of virtual time, many times a second."""
        del raw
        if is_ims(spec):
            return ims.run(spec, observer)
        began = time.process_time()
        check_limits(spec)
        topology = topos.build(spec.topology.kind, spec.topology.params)
        flows = planned_flows(spec, topology)
        plan, stack = plan_of(spec, topology), stack_of(spec)
        agent = SimulatedAgent(spec, topology, flows)
        threads = threads_of(spec, topology)
        simulation = built(spec, topology, flows, plan, stack, agent, threads)
        ideal = _ideal_s(simulation, flows, plan, stack)
        control = control_of(spec, topology, flows, simulation)
        recording = _record(simulation, spec, topology, flows, observer, control)
        result = summarise(spec, topology, flows, ideal, recording)
        cpu_s = time.process_time() - began
        hops_per_cpu_s = recording.closed.ports["hops"] / cpu_s
        return dataclasses.replace(
            result.doubted(agent.reasons),
            metrics={**result.metrics, **control.counts, **agent.metrics(simulation)},
            reproducible=True,
            provenance={**origin(), **agent.provenance, "compiler": COMPILER, "engine": self.name},
            cost={
                "simulation_cpu_s": cpu_s,
                "packet_hops_per_cpu_s": hops_per_cpu_s,
                **({"simulation_threads": threads} if spec.parts > 1 else {}),
                **control.times,
            },
        )


def _record(
    simulation: Simulation,
    spec: RunSpec,
    topology: Topology,
    flows: Sequence[PlannedFlow],
    observer: Observer,
    control: Control,
) -> Recording:
    """Run the simulation. Raises RunError if the core cannot hold it."""
    subflows = sum(flow.subflows for flow in flows)
    try:
        follow = following(simulation, spec, flows, observer)
        return record(simulation, spec, topology, subflows, observer, control.clock, follow)
    except (ValueError, MemoryError, RuntimeError) as error:
        raise RunError(f"simulating: {error or 'out of memory'}") from error


def _ideal_s(
    simulation: Simulation, flows: Sequence[PlannedFlow], plan: NetworkPlan, stack: Stack
) -> list[float]:
    """Return each sized flow's ideal time on the path of its first subflow."""
    first = accumulate((flow.subflows for flow in flows[:-1]), initial=0)
    return [
        ideal_s(flow.size_bytes, simulation.path(subflow), plan, stack) if flow.size_bytes else NO_VALUE
        for flow, subflow in zip(flows, first, strict=True)
    ]
