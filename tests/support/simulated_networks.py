"""Small networks in the simulator, for checks against arithmetic: from a RunSpec, and flows given by hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from engines.core_setup import core_flows, plan_of, transport_options
from engines.engine import Silent
from engines.simulation.engine import SimulatorEngine
from fabric._core import Simulation
from fabric.plan import NetworkPlan
from model.flows import FIRST_CPORT, FIRST_PORT, PlannedFlow
from model.result import RunResult
from model.spec import LinkSpec, RunSpec, StackSpec, TopologySpec, WorkloadSpec
from topos.topology import Topology

US = 1_000_000
MS = 1000 * US
S = 1000 * MS
PLAIN = StackSpec(
    payload_bytes=1434,
    header_bytes=80,
    ack_bytes=80,
    delayed_ack_ms=0.0,
    min_rto_ms=200.0,
    processing_frames=0.0,
)
"""A full packet is 1514 bytes, an acknowledgement 80; every segment is acknowledged, and hosts
send at once."""
PACKET_BYTES = 1514
ACK_BYTES = 80


def spec_of(topology: TopologySpec, link: LinkSpec, stack: StackSpec = PLAIN, seed: int = 1) -> RunSpec:
    """Return a spec. Its workload is not that of the flows: it must only suit the topology."""
    workload = WorkloadSpec("against_tcp" if topology.kind == "dumbbell" else "reference")
    return RunSpec(link, topology, workload=workload, engine="simulator", stack=stack, seed=seed)


def flow(
    topology: Topology,
    number: int,
    ends: tuple[str, str],
    *,
    size_pkts: int = 0,
    start_ps: int = 0,
    subflows: int = 1,
    cc: str = "reno",
) -> PlannedFlow:
    """Return a flow between named hosts. Sizes are in full segments of `PLAIN`."""
    src_ip, dst_ip = (topology.nics_of(topology.index(name))[0].ip for name in ends)
    return PlannedFlow(
        number, *ends, src_ip, dst_ip, FIRST_PORT + number, FIRST_CPORT + number,
        size_pkts * PLAIN.payload_bytes, start_ps / S, subflows, cc,
    )  # fmt: skip


def simulate(spec: RunSpec, flows: Sequence[PlannedFlow], slow_ports: Sequence[int] = ()) -> Simulation:
    """Return a simulation about to start. If `slow_ports` are given, all other ports are 20 times as fast as
    the spec's links."""
    topology = build(spec)
    plan = plan_of(spec, topology)
    return Simulation(
        _with_bottleneck(plan, slow_ports) if slow_ports else plan,
        transport_options(spec),
        core_flows(spec, topology, flows),
    )


def result_of(spec: RunSpec) -> RunResult:
    """Check and simulate a point as the engine does, without an observer or a folder."""
    engine = SimulatorEngine()
    engine.check(spec)
    return engine.run(spec, Silent(), Path("/nowhere"))


def build(spec: RunSpec) -> Topology:
    return spec.network()


def _with_bottleneck(plan: NetworkPlan, slow_ports: Sequence[int]) -> NetworkPlan:
    rates = plan.rate_bps * 20
    rates[list(slow_ports)] = plan.rate_bps[list(slow_ports)]
    return dataclasses.replace(plan, rate_bps=rates)


def transmission_ps(size_bytes: int, rate_mbps: float) -> int:
    return round(size_bytes * 8 * S / (rate_mbps * 1e6))
