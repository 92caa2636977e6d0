"""Flow-level engines: run one RunSpec at a time, without packets or time.

The network, its tables, hash and flows are the packet-level simulator's. A simulation that has sent nothing
returns every subflow's path, so flows share the same links in both.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from common.errors import UsageError
from controllers.routing import per_packet
from engines.core_setup import check_ccs, check_paths, check_spec, prepared
from engines.engine import Observer, OnePointPerCpu
from engines.flow_level.models import RATE_LAWS, Floats, FluidNetwork, equilibrium, max_min
from engines.provenance import free_memory_mb, origin
from engines.workload import ByWorkload
from fabric._core import crossings
from model.congestion import BASELINE, COUPLED_DEFAULT
from model.flows import PlannedFlow, congestion_controls, drawn_flows, planned_flows
from model.links import lossy
from model.machine import demand
from model.network_plan import port_names, port_rates_bps
from model.noise import noisy
from model.result import SAMPLE_COLUMNS, FlowRow, PortRow, RunResult, Status, Table
from model.schedulers import scheduled
from model.spec import ELASTIC, FIFO, PORT, RunSpec, StackSpec, check_tcp
from model.words import beyond
from topos.topology import Topology
from workloads.flow import Flow

STARTING_S = 0.3
HOST_S, SUBFLOW_S = 1e-4, 7e-6
"""Time to build the network and to make the result, per host and per subflow, for plans. As the times of all
rounds below, measured on FatTrees of 8192 and 101 306 hosts."""
PROGRAM_MB, HOST_MB, SUBFLOW_MB = 40.0, 0.008, 0.0013
"""Memory of a process, measured on FatTrees of 16 to 101 306 hosts, plus one third."""

OF_LINKS = frozenset(
    {"rate_mbps", "delay_us", "host_delay_us", "queue_pkts", "queue_bytes", "nic_queue_pkts", "clock_ppm"}
)
"""Fields of a LinkSpec that are accepted. Only the rate has an effect: steady rates here depend neither on
queues nor on round-trip times, which all count as equal (docs/flow-level.md)."""
OF_STACKS = frozenset(
    {
        "payload_bytes", "header_bytes", "ack_bytes", "mptcp_bytes", "mptcp_ack_bytes", "ack_gaps",
        "delayed_ack_ms", "acks", "replacement", "processing_frames",
    }
)  # fmt: skip
"""Fields of a StackSpec that the models have: bytes on the wire, acknowledgements, the choice of paths."""


@dataclass(frozen=True)
class Model:
    """A flow-level model.

    `solve` returns the rates of all subflows and the number of rounds. `crossing_s` is the CPU time of all
    rounds per port that a subflow crosses. `ccs` are the congestion controls that have a formula; None if the
    model does not depend on them.
    """

    solve: Callable[[FluidNetwork], tuple[Floats, int]]
    crossing_s: float
    ccs: Collection[str] | None = None


MODELS = {
    "flow-level": Model(equilibrium, 3e-6, tuple(RATE_LAWS)),
    "max-min": Model(max_min, 3e-7),
}
"""By the name of the engine."""


def check(spec: RunSpec) -> None:
    """Raise UsageError for a spec that the model does not cover."""
    topology = spec.network()
    check_spec(spec)
    check_tcp(spec)
    flows = drawn_flows(spec, topology)
    known = MODELS[spec.engine].ccs
    ccs = congestion_controls(spec, flows) if known else frozenset()
    check_ccs(ccs)
    check_steady(spec, topology, flows)
    for cc in sorted(ccs - set(known or ())):
        raise UsageError(
            f"{cc} has no flow-level model: choose --cc of {', '.join(known or ())}, or --engine max-min"
        )
    check_paths(spec, topology)
    needed_mb, free_mb = memory_mb(spec), free_memory_mb()
    if needed_mb > free_mb:
        raise UsageError(
            f"running {spec.engine} with {len(flows)} flows takes about {needed_mb:,.0f} MB of memory, but "
            f"only {free_mb:,.0f} MB are free: choose a smaller --k or fewer --subflows"
        )


def memory_mb(spec: RunSpec) -> float:
    """Return an estimate from the numbers of hosts and subflows."""
    asked = demand(spec)
    return PROGRAM_MB + asked.hosts * HOST_MB + asked.flows * spec.transport.subflows * SUBFLOW_MB


def expected_s(spec: RunSpec) -> float:
    """Return an estimate from the numbers of hosts and subflows, and of the ports they cross."""
    asked = demand(spec)
    subflows = asked.flows * spec.transport.subflows
    own_s = SUBFLOW_S + asked.hops * MODELS[spec.engine].crossing_s
    return STARTING_S + asked.hosts * HOST_S + subflows * own_s


def run(spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
    """See `Engine.run`; raises RunError if the solution does not converge."""
    del raw
    began = time.process_time()
    observer.phase("measure", 0.0)
    topology = spec.network()
    flows = planned_flows(spec, topology)
    network = fluid_network(spec, topology, flows)
    rates, rounds = MODELS[spec.engine].solve(network)
    return dataclasses.replace(
        summarise(spec, topology, flows, network, rates, rounds),
        reproducible=True,
        provenance={**origin(), "numpy": np.__version__, "engine": spec.engine},
        cost={"simulation_cpu_s": time.process_time() - began},
    )


class FlowLevelEngine(ByWorkload, OnePointPerCpu):
    """An Engine that computes rates by a model, on the simulator's paths."""

    def __init__(self, name: str) -> None:
        self.name = name

    def coupled_cc(self) -> tuple[str, str]:
        """Return the default, which has a model."""
        return COUPLED_DEFAULT, ""


def fluid_network(spec: RunSpec, topology: Topology, flows: Sequence[PlannedFlow]) -> FluidNetwork:
    """Return capacities in Mb/s, and the paths of the simulator's subflows and acknowledgements, which do
    not depend on congestion control."""
    simulation = prepared(spec, topology, [dataclasses.replace(flow, cc=BASELINE) for flow in flows])
    counts = [flow.subflows for flow in flows]
    connection = np.repeat(np.arange(len(flows), dtype=np.int64), counts)
    there, back = crossings(simulation)
    return FluidNetwork(
        capacity=port_rates_bps(topology, spec.link) / 1e6,
        there=there,
        back=back,
        ack_share=np.array([ack_share(spec.stack, flow) for flow in flows])[connection],
        connection=connection,
        cc=tuple(flow.cc for flow in flows for _ in range(flow.subflows)),
    )


def check_steady(spec: RunSpec, topology: Topology, flows: Sequence[Flow]) -> None:
    """Raise UsageError for a spec that needs packets or time."""
    link = spec.link
    asked = {
        "link events": bool(spec.events),
        "rerouting (--reroute)": spec.reroute_ms > 0,
        "central schedulers": scheduled(spec),
        "CPUs that stall": noisy(spec),
        f"the {spec.clock} clock": spec.clock != ELASTIC,
        "random loss": lossy(link, topology),
        "ECN (--ecn)": link.ecn_pkts > 0,
        "random drop (--random-drop)": link.random_pkts > 0,
        "links that follow a trace (--link-trace)": bool(link.trace),
        f"queue discipline {link.discipline} (--discipline)": link.discipline != FIFO,
        f"host queue {link.host_queue} (--host-queue)": link.host_queue != PORT,
        "networks in parts (--parts)": spec.parts > 1,
        "queue samples": spec.sampling.queues_ms > 0,
        "per-packet routing": per_packet(spec.routing),
        "flows of constant rate": any(flow.rate_mbps for flow in flows),
        "subflows that join later": spec.transport.joins_late,
        "flows that begin or end": any(f.size_bytes or f.start_s or f.after is not None for f in flows),
        **dict.fromkeys(beyond(OF_LINKS, spec, "link"), True),
        **dict.fromkeys(beyond(OF_STACKS, spec, "stack"), True),
    }
    for what, given in asked.items():
        if given:
            raise UsageError(
                f"{spec.engine} computes steady rates and does not support {what}: leave it out, or choose "
                "--engine simulator"
            )


def payload_share(stack: StackSpec, flow: PlannedFlow) -> float:
    """Return the application's share of a full segment's bytes on the wire."""
    payload = stack.payload_bytes - (stack.mptcp_bytes if flow.mptcp else 0)
    return payload / (stack.payload_bytes + stack.header_bytes)


def ack_share(stack: StackSpec, flow: PlannedFlow) -> float:
    """Return bytes of acknowledgements per byte of data on the wire; 0 if they take no path.

    Delayed acknowledgements are one per two segments (RFC 5681, section 4.2). MPTCP acknowledges data beyond
    a gap of the connection at once, which is nearly all data.
    """
    if stack.acks == "at_once":
        return 0.0
    segments = 2 if stack.delayed_ack_ms and not (stack.ack_gaps and flow.mptcp) else 1
    size = stack.ack_bytes + (stack.mptcp_ack_bytes if flow.mptcp else 0)
    return size / (segments * (stack.payload_bytes + stack.header_bytes))


def summarise(
    spec: RunSpec,
    topology: Topology,
    flows: Sequence[PlannedFlow],
    network: FluidNetwork,
    rates: Floats,
    rounds: int,
) -> RunResult:
    """Return the point's result for rates in Mb/s over the spec's window. There are no queues, drops,
    retransmitted segments, round-trip times or samples."""
    ports = _port_rows(spec, topology, network, rates)
    return RunResult(
        status=Status.OK,
        flows=tuple(_flow_rows(spec, flows, np.bincount(network.connection, rates).tolist())),
        ports=tuple(ports),
        samples={name: Table.from_rows(SAMPLE_COLUMNS[name], ()) for name in ("goodput", "cpu", "links")},
        metrics={"rounds": rounds},
    )


def _flow_rows(spec: RunSpec, flows: Sequence[PlannedFlow], of_connection: Sequence[float]) -> list[FlowRow]:
    rows = []
    for flow, wire_mbps in zip(flows, of_connection, strict=True):
        received = round(wire_mbps * payload_share(spec.stack, flow) * 1e6 / 8 * spec.seconds)
        rows.append(
            FlowRow(
                **flow.columns(),
                subflows_joined=flow.subflows,
                cc=flow.cc,
                goodput_mbps=received * 8 / spec.seconds / 1e6,
                bytes_received=received,
                retransmits=0,
                up_s=0.0,
            )
        )
    return rows


def _port_rows(spec: RunSpec, topology: Topology, network: FluidNetwork, rates: Floats) -> list[PortRow]:
    stack = spec.stack
    acks = network.ack_loads(rates)
    data = network.data_loads(rates)
    of_mbps = spec.seconds * 1e6 / 8
    sent = ((data + acks) * of_mbps).round().astype(np.int64).tolist()
    segment = stack.payload_bytes + stack.header_bytes
    packets = (data / segment + acks / stack.ack_bytes) * of_mbps
    used = (100 * (data + acks) / network.capacity).tolist()
    return [
        PortRow(port, node, peer, layer, round(packets[port]), sent[port], 0, 0, used[port], used[port])
        for port, (node, peer, layer) in enumerate(port_names(topology))
    ]
