"""Flows between simulated hosts, as one workload of the engine `simulator`: checks, memory, time, run."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Sequence
from pathlib import Path

import topos
from common.errors import RunError, UsageError
from controllers.routing import per_packet
from engines.core_setup import (
    ALARMS_A_SUBFLOW,
    MIN_PACKETS,
    PACKETS_A_SUBFLOW,
    SimulatedAgent,
    built,
    check_agent,
    check_ccs,
    check_paths,
    check_spec,
    ideal_times_s,
    plan_of,
    transport_options,
)
from engines.engine import Observer
from engines.provenance import free_memory_mb, origin
from engines.simulation.readings import Recording, following, record
from engines.simulation.scheduled import Control, control_of
from engines.simulation.summarise import summarise
from fabric._core import COMPILER, Simulation
from fabric.plan import FRAME_BITS
from model.congestion import DATAPATH, core_name
from model.flows import PlannedFlow, congestion_controls, drawn_flows, planned_flows, subflow_counts
from model.links import check_events, longest_queue_pkts, lossy
from model.machine import demand
from model.network_plan import check_trace
from model.noise import noisy
from model.result import RunResult
from model.schedulers import check_scheduler, opens_subflows, ticking_s
from model.spec import FIFO, RunSpec
from topos.topology import Topology, parts_of
from workloads.flow import Flow

HOPS_PER_CPU_S = 12e6
"""Packet-hops per CPU second, for plans: between those at k=8 (20 M) and k=32 (8 M) on the reference machine
(benchmarks/simulator.py)."""
STARTING_S = 0.3


def check(spec: RunSpec) -> None:
    """Raise UsageError for a spec that simulated hosts do not support."""
    topology = topos.build(spec.topology.kind, spec.topology.params)
    check_spec(spec)
    flows = drawn_flows(spec, topology)
    check_ccs(congestion_controls(spec, flows))
    check_agent(spec)
    check_parts(spec, topology, flows)
    check_memory(spec, topology, flows, free_memory_mb())
    check_paths(spec, topology)
    check_events(spec, topology)
    check_trace(spec, topology)
    check_scheduler(spec, topology)


def memory_mb(spec: RunSpec) -> float:
    """Return an estimate made before anything is built."""
    topology = topos.build(spec.topology.kind, spec.topology.params)
    return estimated_mb(spec, topology, drawn_flows(spec, topology))


def cpus(spec: RunSpec) -> int:
    """Return the number of threads that carry out the point."""
    return 1 if spec.parts == 1 else threads_of(spec, topos.build(spec.topology.kind, spec.topology.params))


def expected_s(spec: RunSpec) -> float:
    """Return an estimate from the point's packet-hops."""
    seconds = spec.warmup_s + spec.seconds
    events_s = demand(spec).hops_per_s * seconds / HOPS_PER_CPU_S
    return STARTING_S + events_s / cpus(spec) + ticking_s(spec)


def run(spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
    """Run the point; signals are handled between slices of virtual time, many times a second."""
    del raw
    began = time.process_time()
    topology = topos.build(spec.topology.kind, spec.topology.params)
    flows = planned_flows(spec, topology)
    plan, options = plan_of(spec, topology), transport_options(spec)
    agent = SimulatedAgent(spec, topology, flows)
    threads = threads_of(spec, topology)
    simulation = built(spec, topology, flows, plan, options, agent, threads)
    ideal = ideal_times_s(simulation, flows, plan, options)
    control = control_of(spec, topology, flows, simulation)
    recording = _recorded(simulation, spec, topology, flows, observer, control)
    result = summarise(spec, topology, flows, ideal, recording)
    cpu_s = time.process_time() - began
    hops_per_cpu_s = recording.closed.ports["hops"] / cpu_s
    return dataclasses.replace(
        result.doubted(agent.reasons),
        metrics={**result.metrics, **control.counts, **agent.metrics(simulation)},
        reproducible=True,
        provenance={**origin(), **agent.provenance, "compiler": COMPILER, "engine": "simulator"},
        cost={
            "simulation_cpu_s": cpu_s,
            "packet_hops_per_cpu_s": hops_per_cpu_s,
            **({"simulation_threads": threads} if spec.parts > 1 else {}),
            **control.times,
        },
    )


def _recorded(
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
        "random loss": lossy(link, topology),
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


MB = 1 << 20
_PROGRAM = 40 * MB
_PORT, _SUBFLOW, _PACKET, _BLOCKS = 320, 940, 104, 24
"""Bytes in the core: per port; per subflow with its data in flight; per packet with segment and event;
per packet with selective acknowledgements."""
_TABLE_ENTRY = 8
"""Bytes per entry of the forwarding table, in the plan and in the core."""
_LINK_IN_PYTHON, _FLOW_IN_PYTHON = 700, 700
_MIN_WINDOW, _FILLED_IN_SLOW_START = 4, 3
_PART = 5 * MB
"""Each further part of a network adds 2 to 5 MB, from 128 to 8192 hosts."""
_RING_ENTRY, _PLACES_IN_PORT, _UNLIMITED_QUEUE = 2, 128, 128


def estimated_mb(spec: RunSpec, topology: Topology, flows: Sequence[Flow]) -> float:
    """Return the peak memory in MB, within 30 % of measurements on FatTrees of 128 to 8192 hosts."""
    ports = 2 * len(topology.links)
    usual = spec.link.queue_limit_pkts or _UNLIMITED_QUEUE
    queues = [each.queue_pkts or usual for each in topology.links]
    attachments = len({nic.switch for nic in topology.nics})
    counts = subflow_counts(spec, flows)
    subflows = sum(counts)
    held = (
        _PROGRAM
        + _PART * (spec.parts - 1)
        + ports * _PORT
        + 2 * _RING_ENTRY * sum(queue for queue in queues if queue > _PLACES_IN_PORT)
        + _TABLE_ENTRY * len(topology.forwarders) * attachments
        + _LINK_IN_PYTHON * len(topology.links)
        + _FLOW_IN_PYTHON * len(flows)
        + _SUBFLOW * subflows
        + (_PACKET + (_BLOCKS if spec.stack.sack else 0)) * _packets(spec, topology, flows, counts)
    )
    return held / MB


def check_memory(spec: RunSpec, topology: Topology, flows: Sequence[Flow], available_mb: float) -> None:
    """Raise UsageError if the machine has less memory than needed."""
    needed = estimated_mb(spec, topology, flows)
    if needed <= available_mb:
        return
    subflows = sum(subflow_counts(spec, flows))
    bound = "" if spec.link.queue_limit_pkts else " or a limit to --queue"
    raise UsageError(
        f"simulating {topology.kind} with {len(topology.hosts)} hosts and {subflows} "
        f"subflows takes about {needed:,.0f} MB of memory, but only {available_mb:,.0f} MB are free: "
        f"choose a smaller --k, fewer --subflows{bound}"
    )


def _packets(spec: RunSpec, topology: Topology, flows: Sequence[Flow], counts: Sequence[int]) -> int:
    subflows = sum(counts)
    most = MIN_PACKETS + (ALARMS_A_SUBFLOW + PACKETS_A_SUBFLOW) * subflows
    queue = longest_queue_pkts(spec.link, topology)
    if queue == 0:
        return most
    on_wire = spec.link.rate_mbps * spec.link.delay_us / FRAME_BITS * 2 * 6
    slow_start_ends = bool(spec.stack.ssthresh)
    filled = sum(
        1 if slow_start_ends or flow.size_bytes else max(1, min(count, _FILLED_IN_SLOW_START))
        for flow, count in zip(flows, counts, strict=True)
    )
    return min(most, round(filled * (queue + on_wire)) + _MIN_WINDOW * subflows)
