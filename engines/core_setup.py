"""Make the core's Simulation from a RunSpec, for the simulator and the flow-level engines.

In this order: the hosts' options, flows and noise as the core reads them; paths that the routing policy does
not choose; the agent; the Simulation, and the time that each flow would take alone in it. About paths: in
BCube servers have several NICs and forward packets. There MPTCP's subflows are source routed: subflow i takes
the parallel path of NIC i. In other topologies a connection's subflows can be given distinct paths (no
replacement).
"""

from __future__ import annotations

import dataclasses
import functools
import ipaddress
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from ccp.agent import Agent, FlowClosed, FlowCreated
from ccp.algorithm import Algorithm, Command
from ccp.names import is_agents
from common.errors import RunError, UsageError
from controllers.hashing import PROTO_TCP, PROTO_UDP, mix
from controllers.routing import (
    DIGITS,
    POLICIES,
    check_routing,
    hashed,
    parallel_path,
    parse,
    per_packet,
    tables_of,
)
from fabric._core import Agent as CoreAgent
from fabric._core import (
    AgentCommand,
    Datagrams,
    Noise,
    Simulation,
    TransportOptions,
    congestion_controls,
    flow_hash,
)
from fabric._core import Flow as CoreFlow
from fabric.plan import PS_PER_US, NetworkPlan
from fabric.readings import AgentEventTuple
from model.congestion import BASELINE, CONGESTION_CONTROLS, core_name
from model.flows import AddressPair, PlannedFlow, planned_flows, subflow_pairs
from model.network_plan import QUEUE_NUMBERS, is_measured, network_plan, ports_along
from model.noise import noisy
from model.reasons import AGENT, Reason
from model.result import NO_VALUE
from model.schedulers import opens_subflows
from model.spec import (
    ELASTIC,
    IN_ORDER,
    MAX_RTO_MS,
    NO_SCHEDULER,
    OF_ALL,
    OF_FABRIC,
    PORT,
    TCP,
    TRANSPORTS,
    USUAL,
    RunSpec,
    check_lossless,
    check_marks,
    check_trimming,
    given_settings,
    sub_seed,
)
from topos import bcube
from topos.topology import Topology, parts_of
from workloads.flow import Flow

if TYPE_CHECKING:
    from ccp.programs import Programs

NO_WAITING = 2**32 - 1
"""Limit in packets for senders that do not wait for room in their host's queue; the queue then drops."""
PS_PER_MS = 1000 * PS_PER_US
PS_PER_S = 1000 * PS_PER_MS
NEVER_PS = 2**63 - 1
SMALLEST_FIRST = frozenset({"pfabric", "pfabric_scheduling"})
"""Disciplines that schedule by rank, in the hosts too."""
NOT_THE_CORES = frozenset({"nic_waits", "replacement", "start_spread_ps"})
"""Fields of a StackSpec that the core's options do not have, by their names there: others follow."""
PS_PER = {"us": PS_PER_US, "ms": PS_PER_MS, "s": PS_PER_S}
SubflowTuple = tuple[int, int, int, int]
"""Source NIC, destination NIC, hash of the 5-tuple, hash of its reverse."""


def check_spec(spec: RunSpec) -> None:
    """Raise UsageError for what simulated hosts do not have. Flows, paths and events have own checks."""
    transport = spec.transport
    of_real_hosts = [
        *(f"--sysctl {name}={value}" for name, value in sorted(transport.sysctls.items())),
        *([f"--write {transport.write_bytes}"] if transport.write_bytes else []),
        *([f"--host-queue {spec.link.host_queue}"] if spec.link.host_queue != PORT else []),
    ]
    if of_real_hosts:
        raise UsageError(
            f"{of_real_hosts[0]}: simulated hosts have no kernel and no programs: choose --engine mininet, "
            "or an option of --stack"
        )
    if spec.stack.acks == "at_once" and _marks(spec):
        raise UsageError(
            "stack acks=at_once with ECN: marks would return before the queue that they describe has "
            "changed; choose acks=routed"
        )
    if spec.stack.acks == "at_once" and is_measured(spec):
        raise UsageError(
            f"stack acks=at_once: no packet brings back what switches measure for --cc {spec.transport.cc}; "
            "choose acks=routed"
        )
    check_marks(spec)
    check_trimming(spec)
    check_lossless(spec)


def check_transport(spec: RunSpec, topology: Topology, flows: Iterable[Flow]) -> None:
    """Raise UsageError for what a transport other than TCP does not have."""
    name = spec.transport.protocol.partition(":")[0]
    if name == TCP:
        return
    if any(flow.plain or flow.subflows > 1 or flow.rate_mbps for flow in flows):
        raise UsageError(
            f"--transport {name}: all flows of a network have one transport, and this workload also has TCP, "
            "MPTCP or constant rates: choose another"
        )
    if topology.hosts_forward:
        raise UsageError(
            f"--transport {name}: hosts of {topology.kind} forward packets: choose another topology"
        )
    if TRANSPORTS[name].sprays and parse(spec.routing)[0] not in AT_SOURCE and not per_packet(spec.routing):
        raise UsageError(
            f"--transport {name}: its senders use all paths in turn, so --routing {spec.routing} has no "
            f"effect: leave it out"
        )
    if spec.scheduler.name != NO_SCHEDULER:
        raise UsageError(f"--transport {name}: no scheduler can place its flows: leave --scheduler out")
    if not spec.stack.replacement or spec.stack.acks == "at_once":
        raise UsageError(
            f"--transport {name}: replacement=off and acks=at_once are settings of TCP: leave them out"
        )


def check_ccs(ccs: Iterable[str]) -> None:
    """Raise UsageError for a congestion control that simulated hosts do not have."""
    have = congestion_controls()
    for cc in sorted({core_name(cc) for cc in ccs} - {*have, *TRANSPORTS}):
        raise UsageError(f"the simulator has no congestion control '{cc}': choose from: {', '.join(have)}")


def in_core_units(part: Any) -> dict[str, Any]:
    """Return the fields of a part of a spec in the core's units: those whose names end in a unit of time are
    in ps, and so are their names."""
    return dict(_in_ps(field.name, getattr(part, field.name)) for field in dataclasses.fields(part))


def _in_ps(name: str, value: Any) -> tuple[str, Any]:
    stem, _, unit = name.rpartition("_")
    return (f"{stem}_ps", round(value * PS_PER[unit])) if unit in PS_PER else (name, value)


def assign(options: TransportOptions, values: Mapping[str, Any]) -> None:
    """Set fields of the core's options. Raises AttributeError and TypeError for one that it does not have."""
    for name, value in values.items():
        now = getattr(options, name)
        setattr(options, name, type(now)[value] if isinstance(now, Enum) else value)


def transport_options(spec: RunSpec) -> TransportOptions:
    """Return the end hosts' options: the fields of the spec's stack, and what follows from the rest of it.

    Raises TypeError unless these are exactly the fields of the core's options.
    """
    stack, link = spec.stack, spec.link
    own = {name: value for name, value in in_core_units(stack).items() if name not in NOT_THE_CORES}
    transport = in_core_units(spec.transport)
    values = own | {
        "transport": spec.transport.protocol.partition(":")[0],
        "transport_settings": given_settings(spec.transport.protocol),
        "initial_rto_ps": PS_PER_S,
        "max_rto_ps": round(MAX_RTO_MS * PS_PER_MS),
        "ecn": _marks(spec),
        "join_after_ps": transport["join_after_ps"],
        "join_after_bytes": transport["join_after_bytes"],
        "nic_queue_pkts": (link.nic_queue_pkts if stack.nic_waits else 0) or NO_WAITING,
        "smallest_first": link.discipline in SMALLEST_FIRST,
        "on_demand": opens_subflows(spec),
        "processing_seed": sub_seed(spec.seed, "processing"),
    }
    options = TransportOptions()
    if differing := values.keys() ^ {name for name in dir(options) if not name.startswith("_")}:
        raise TypeError(f"StackSpec and the core's TransportOptions differ in {', '.join(sorted(differing))}")
    assign(options, values)
    return options


def _marks(spec: RunSpec) -> bool:
    """Return whether queues mark packets, or senders ask for marks."""
    cc = CONGESTION_CONTROLS.get(spec.transport.cc)
    return spec.link.marks or (cc is not None and cc.ecn)


transport_options(USUAL)
"""Made on import, so that a field that only one of StackSpec and TransportOptions has is an error at once."""


def core_flows(spec: RunSpec, topology: Topology, flows: Sequence[PlannedFlow]) -> list[CoreFlow]:
    """Return the flows in order, without those of constant rate; the sub-seed `start` spreads starts."""
    number = {nic.ip: i for i, nic in enumerate(topology.nics)}
    rng = random.Random(sub_seed(spec.seed, "start"))
    out: list[CoreFlow] = []
    for flow in flows:
        if flow.rate_mbps:
            continue
        spread_ms = rng.uniform(0, spec.stack.start_spread_ms) if flow.after is None else 0.0
        start_ps = round((flow.start_s * 1000 + spread_ms) * PS_PER_MS)
        subflows = [subflow_tuple(number, pair) for pair in subflow_pairs(topology, flow)]
        out.append(
            CoreFlow(
                subflows=subflows,
                cc=BASELINE if flow.cc in TRANSPORTS else core_name(flow.cc),
                size_bytes=flow.size_bytes,
                start_ps=start_ps,
                after=flow.after,
                dscp=flow.dscp,
            )
        )
    return out


def core_datagrams(topology: Topology, flows: Sequence[PlannedFlow]) -> list[Datagrams]:
    """Return the flows of constant rate, which come last."""
    number = {nic.ip: i for i, nic in enumerate(topology.nics)}
    constant = [flow for flow in flows if flow.rate_mbps]
    if list(flows[len(flows) - len(constant) :]) != constant:
        raise ValueError("building datagram flows: flows of constant rate must come last in a matrix")
    return [
        Datagrams(
            rate_bps=round(flow.rate_mbps * 1e6),
            start_ps=round(flow.start_s * PS_PER_S),
            path=subflow_tuple(number, flow.seen_by_sender, PROTO_UDP),
            dscp=flow.dscp,
        )
        for flow in constant
    ]


def subflow_tuple(number: dict[str, int], pair: AddressPair, protocol: int = PROTO_TCP) -> SubflowTuple:
    """Return a subflow's tuple; `number` maps addresses to NICs.

    The core computes the same hash as controllers/hashing.py, but fast enough for 65 536 subflows.
    """
    local, remote = _as_number(pair.laddr), _as_number(pair.raddr)
    there = flow_hash(local, remote, protocol, pair.lport, pair.rport)
    back = flow_hash(remote, local, protocol, pair.rport, pair.lport)
    return number[pair.laddr], number[pair.raddr], there, back


@functools.lru_cache(1 << 16)
def _as_number(address: str) -> int:
    return int(ipaddress.IPv4Address(address))


def core_noise(spec: RunSpec) -> Noise | None:
    """Return the stalls of the simulated machine; None without noise."""
    if not noisy(spec):
        return None
    stalls = in_core_units(spec.noise)
    del stalls["where"]
    timers = spec.noise.where != OF_FABRIC
    return Noise(**stalls, seed=sub_seed(spec.seed, "noise"), stalls_timers=timers, elastic=elastic(spec))


def elastic(spec: RunSpec) -> bool:
    """Return whether the simulated network pauses during stalls (fabric/simulation/machine_noise.hpp).

    Stalls of the fabric or of the hosts alone always use the strict clock, so that their full effect shows.
    """
    return spec.clock == ELASTIC and spec.noise.where == OF_ALL


AT_SOURCE = tuple(name for name, policy in POLICIES.items() if policy.walk is hashed)
"""Policies that choose whole paths at the source by a hash, and thus allow distinct paths."""


def check_paths(spec: RunSpec, topology: Topology) -> None:
    """Raise UsageError for a choice of paths that does not suit the topology or the policy."""
    if not spec.stack.replacement and parse(spec.routing)[0] not in AT_SOURCE:
        others = ", ".join(name for name in POLICIES if name not in AT_SOURCE)
        raise UsageError(
            f"distinct paths for a connection's subflows are not possible with routing {others}: "
            f"choose --routing {' or '.join(AT_SOURCE)}"
        )
    check_routing(spec.routing, topology)


def choose_paths(
    simulation: Simulation, spec: RunSpec, topology: Topology, flows: Sequence[PlannedFlow]
) -> None:
    """Set the paths of subflows before anything is sent, where the router does not choose them."""
    seed = sub_seed(spec.seed, "routing")
    if topology.kind == bcube.KIND and spec.routing in {USUAL.routing, DIGITS}:
        _in_parallel(simulation, topology, flows, seed)
    elif not spec.stack.replacement:
        _distinct(simulation, topology, flows, seed)


def _in_parallel(simulation: Simulation, topology: Topology, flows: Sequence[PlannedFlow], seed: int) -> None:
    for flow, first, subflows in _numbered(topology, flows):
        src, dst = topology.index(flow.src), topology.index(flow.dst)
        nics = len(topology.nics_of(src))
        for i, (_, _, h, _) in enumerate(subflows if flow.mptcp else ()):
            nodes = parallel_path(topology, src, dst, i % nics, mix(h, seed))
            simulation.set_path(first + i, ports_along(topology, nodes), ports_along(topology, nodes[::-1]))


def _distinct(simulation: Simulation, topology: Topology, flows: Sequence[PlannedFlow], seed: int) -> None:
    """Draw path ranks without replacement for each pair of NICs; start again when all are drawn."""
    for _, first, subflows in _numbered(topology, flows):
        drawn: dict[tuple[int, int], tuple[Iterator[int], Iterator[int]]] = {}
        for i, (source, destination, h, back_h) in enumerate(subflows):
            if (source, destination) not in drawn:
                there, back = simulation.path_count(first + i)
                drawn[source, destination] = _ranks(there, mix(h, seed)), _ranks(back, mix(back_h, seed))
            ranks = drawn[source, destination]
            simulation.set_path_ranks(first + i, next(ranks[0]), next(ranks[1]))


def _ranks(count: int, seed: int) -> Iterator[int]:
    rng = random.Random(seed)
    while True:
        yield from rng.sample(range(count), count)


def _numbered(
    topology: Topology, flows: Sequence[PlannedFlow]
) -> Iterator[tuple[PlannedFlow, int, list[SubflowTuple]]]:
    """Yield each flow, the number of its first subflow, and its subflows."""
    number = {nic.ip: i for i, nic in enumerate(topology.nics)}
    first = 0
    for flow in flows:
        subflows = [subflow_tuple(number, pair) for pair in subflow_pairs(topology, flow)]
        yield flow, first, subflows
        first += len(subflows)


CREATED, MEASURED, CLOSED = 0, 1, 2
"""Kinds of events of the core."""
BITS = 8


def check_agent(spec: RunSpec) -> None:
    """Raise UsageError for an algorithm that hosts in virtual time cannot use."""
    cc = spec.transport.cc
    if is_agents(cc) and loaded(spec)[0].real_hosts_only:
        raise UsageError(
            f"--cc {cc}: its agent answers in real time, which the engine {spec.engine} does not have: "
            "choose --engine mininet"
        )


def loaded(spec: RunSpec) -> tuple[Algorithm, Programs]:
    """Return the algorithm of a point whose congestion control is an agent's, and its programs.

    Raises UsageError.
    """
    from ccp.loading import load  # noqa: PLC0415 -- with its compilers, which few points need

    return load(spec.transport.cc, spec.transport.algorithm_text)


class SimulatedAgent:
    """The agent of a point's flows; it does nothing if the point has no flow under one."""

    def __init__(self, spec: RunSpec, topology: Topology, flows: Sequence[PlannedFlow]) -> None:
        """Load the algorithm. Raises UsageError for one that cannot be loaded."""
        self._spec = spec
        self._pairs: list[AddressPair] = []
        self._agent: Agent | None = None
        if not any(is_agents(flow.cc) for flow in flows):
            return
        algorithm, self._programs = loaded(spec)
        self._agent = Agent(algorithm, self._programs)
        self._pairs = [pair for flow in flows if not flow.rate_mbps for pair in subflow_pairs(topology, flow)]

    @property
    def config(self) -> CoreAgent | None:
        """What the core needs; None without an agent."""
        if self._agent is None:
            return None
        return CoreAgent(
            programs=[program.packed() for program in self._programs.programs],
            **in_core_units(self._spec.agent),
            seed=sub_seed(self._spec.seed, "agent"),
            answer=self._answer,
        )

    def metrics(self, simulation: Simulation) -> Mapping[str, float]:
        """Return what datapaths and agent did in the whole run; empty without an agent."""
        if self._agent is None:
            return {}
        counted = simulation.agent()
        return {
            "agent_reports": counted["reports"],
            "agent_commands": counted["commands"],
            "agent_errors": counted["errors"],
            "agent_fallback_acks": counted["fallbacks"],
            "agent_acks": counted["acknowledgements"],
            "agent_failed_flows": self._agent.failed_flows,
        }

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Return why the agent did not control all flows."""
        if self._agent is None or not self._agent.failed_flows:
            return ()
        return (raised(self._agent.failed_flows, self._agent.traceback),)

    @property
    def provenance(self) -> Mapping[str, str]:
        """The traceback of the algorithm's first error."""
        if self._agent is None or not self._agent.traceback:
            return {}
        return {"agent_traceback": self._agent.traceback}

    def _answer(self, events: list[AgentEventTuple]) -> list[AgentCommand]:
        assert self._agent is not None
        measured, packed = self._agent.measured, []
        for position, event in enumerate(events):
            if event[0] == MEASURED:
                _, subflow, t_us, program, window, fields = event
                commands = measured(subflow, t_us, fields, program, window)
            else:
                commands = self._begun_or_ended(self._agent, event)
            for command in commands:
                packed.append(_packed(position, command))
        return packed

    def _begun_or_ended(self, agent: Agent, event: AgentEventTuple) -> list[Command]:
        kind, subflow, t_us, _, window, fields = event
        if kind == CLOSED:
            return agent.handle(FlowClosed(subflow))
        (mss,) = fields
        ends = self._pairs[subflow]
        return agent.handle(FlowCreated(subflow, t_us, mss, window, ends.laddr, ends.raddr))


def _packed(position: int, command: Command) -> AgentCommand:
    rate = command.rate_bps
    return AgentCommand(
        event=position,
        subflow=command.flow,
        window_bytes=command.cwnd_bytes,
        rate_bytes_per_s=None if rate is None else rate // BITS,
        program=command.program,
        controls=command.controls,
        fall_back=command.fall_back,
    )


def raised(flows: int, traceback: str) -> Reason:
    """Return the reason for an algorithm that raised."""
    last = traceback.strip().splitlines()[-1] if traceback else ""
    text = f"agent: the algorithm raised on {flows} flows, which fell back to Reno: {last}"
    return Reason(AGENT, text, numbers=(("flows", float(flows)),))


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

    In front of such a queue senders take turns, or the one with the least to send is next, so it is a FIFO,
    unless pause frames may stop it.
    Where packets are measured, FIFOs of switches are known when a packet leaves, not on its arrival.
    Where hosts forward packets, their queues keep their limit: senders compete with forwarded packets.
    Every part of a divided network has as many descriptors as the whole has undivided.
    """
    tables = tables_of(topology, spec.routing)
    plan = network_plan(topology, tables, spec.link, spec.routing, sub_seed(spec.seed, "routing"))
    queue_pkts, discipline = plan.queue_pkts.copy(), plan.discipline.copy()
    if spec.stack.nic_waits and not topology.hosts_forward:
        queue_pkts[plan.nic_uplink] = 0
        if not spec.link.lossless:
            discipline[plan.nic_uplink] = 0
    if is_measured(spec):
        measured = discipline == 0
        measured[plan.nic_uplink[plan.nic_uplink < len(measured)]] = False
        discipline[measured] = QUEUE_NUMBERS[IN_ORDER]
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
