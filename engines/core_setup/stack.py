"""Hosts and flows of a RunSpec as the core's Simulation reads them, and what hosts do not have. Pure."""

from __future__ import annotations

import functools
import ipaddress
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from common.errors import UsageError
from controllers.hashing import PROTO_TCP, PROTO_UDP
from fabric._core import Datagrams, Flow, Noise, congestion_controls, flow_hash, schedulers
from fabric.plan import PS_PER_US
from model.congestion import CONGESTION_CONTROLS, core_name
from model.flows import AddressPair, PlannedFlow, subflow_pairs
from model.network_plan import check_discipline
from model.noise import check_clock, check_noise, noisy
from model.schedulers import opens_subflows
from model.spec import (
    ELASTIC,
    NEW,
    OF_ALL,
    OF_FABRIC,
    PERSISTENT,
    PORT,
    REMAINING,
    SENT,
    RunSpec,
    check_limits,
    check_marks,
    sub_seed,
)
from topos.topology import Topology

NO_WAITING = 2**32 - 1
"""Limit in packets for senders that do not wait for room in their host's queue; the queue then drops."""
PS_PER_MS = 1000 * PS_PER_US
PS_PER_S = 1000 * PS_PER_MS
NEVER_PS = 2**63 - 1
SMALLEST_FIRST = frozenset({"pfabric", "pfabric_scheduling"})
"""Disciplines that schedule by rank, in the hosts too."""
CHOICES = {
    "acks": ("routed", "at_once"),
    "scheduler": tuple(schedulers()),
    "recovery": ("rfc", "linux"),
    "connections": (NEW, PERSISTENT),
    "rank": (REMAINING, SENT),
}
"""Allowed values of text fields of a StackSpec."""
INITIAL_RTO_PS = PS_PER_S
MAX_RTO_PS = 120 * PS_PER_S
DUPLICATES = 3
"""Duplicate ACKs that signal a loss (RFC 5681, section 3.2)."""

SubflowTuple = tuple[int, int, int, int]
"""Source NIC, destination NIC, hash of the 5-tuple, hash of its reverse."""


@dataclass(frozen=True)
class Stack:
    """End-host options in the core's units: times in ps, windows and buffers in segments (0: no limit)."""

    payload_bytes: int
    header_bytes: int
    ack_bytes: int
    mptcp_bytes: int
    mptcp_ack_bytes: int
    ack_gaps: bool
    initial_window: float
    initial_ssthresh: float
    initial_rto_ps: int
    min_rto_ps: int
    max_rto_ps: int
    first_rto_ps: int
    timer_scan_ps: int
    delayed_ack_ps: int
    sack: bool
    ecn: bool
    ack_at_once: bool
    reinject: bool
    dup_threshold: int
    adapts_to_reordering: bool
    join_after_ps: int
    join_after_bytes: int
    nic_queue_pkts: int
    send_buffer_pkts: int
    receive_buffer_pkts: int
    subflow_buffer_pkts: int
    scheduler: str
    linux_recovery: bool
    handshake: bool
    fixed_rto: bool = False
    probe_after: int = 0
    max_window: int = 0
    persistent: bool = False
    rank_by_sent: bool = False
    smallest_first: bool = False
    on_demand: bool = False
    processing_frames: float = 0.0
    processing_seed: int = 0


def check_spec(spec: RunSpec) -> None:
    """Raise UsageError for what simulated hosts do not have. Flows, paths and events have own checks."""
    check_limits(spec)
    check_discipline(spec.link)
    check_noise(spec.noise)
    check_clock(spec.clock)
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
    check_marks(spec)


def check_stack(spec: RunSpec, ccs: Iterable[str]) -> None:
    """Raise UsageError for options that simulated hosts do not have. `ccs` are the flows' congestion
    controls."""
    for name, known in CHOICES.items():
        if (word := getattr(spec.stack, name)) not in known:
            raise UsageError(f"{name} '{word}': choose {' or '.join(known)}")
    have = congestion_controls()
    for cc in sorted({core_name(cc) for cc in ccs} - set(have)):
        raise UsageError(f"the simulator has no congestion control '{cc}': choose from: {', '.join(have)}")


def stack_of(spec: RunSpec) -> Stack:
    """Return the end hosts' options."""
    wanted = spec.stack
    return Stack(
        payload_bytes=wanted.payload_bytes,
        header_bytes=wanted.header_bytes,
        ack_bytes=wanted.ack_bytes,
        mptcp_bytes=wanted.mptcp_bytes,
        mptcp_ack_bytes=wanted.mptcp_ack_bytes,
        ack_gaps=wanted.ack_gaps,
        initial_window=float(wanted.initial_window),
        initial_ssthresh=float(wanted.ssthresh),
        initial_rto_ps=INITIAL_RTO_PS,
        min_rto_ps=round(wanted.min_rto_ms * PS_PER_MS),
        max_rto_ps=MAX_RTO_PS,
        first_rto_ps=round(wanted.first_rto_ms * PS_PER_MS),
        timer_scan_ps=round(wanted.timer_scan_ms * PS_PER_MS),
        delayed_ack_ps=round(wanted.delayed_ack_ms * PS_PER_MS),
        sack=wanted.sack,
        ecn=_marks(spec),
        ack_at_once=wanted.acks == "at_once",
        reinject=wanted.reinject,
        dup_threshold=wanted.dup_threshold or DUPLICATES,
        adapts_to_reordering=not wanted.dup_threshold,
        join_after_ps=round(spec.transport.join_after_ms * PS_PER_MS),
        join_after_bytes=spec.transport.join_after_bytes,
        nic_queue_pkts=(spec.link.nic_queue_pkts if wanted.nic_waits else 0) or NO_WAITING,
        send_buffer_pkts=wanted.send_buffer,
        receive_buffer_pkts=wanted.receive_buffer,
        subflow_buffer_pkts=wanted.subflow_buffer,
        scheduler=wanted.scheduler,
        linux_recovery=wanted.recovery == "linux",
        handshake=wanted.handshake,
        fixed_rto=wanted.fixed_rto,
        probe_after=wanted.probe_after,
        max_window=wanted.max_window,
        persistent=wanted.connections == PERSISTENT,
        rank_by_sent=wanted.rank == SENT,
        smallest_first=spec.link.discipline in SMALLEST_FIRST,
        on_demand=opens_subflows(spec),
        processing_frames=wanted.processing_frames,
        processing_seed=sub_seed(spec.seed, "processing"),
    )


def _marks(spec: RunSpec) -> bool:
    """Return whether queues mark packets, or senders ask for marks."""
    cc = CONGESTION_CONTROLS.get(spec.transport.cc)
    return bool(spec.link.ecn_pkts) or (cc is not None and cc.ecn)


def core_flows(spec: RunSpec, topology: Topology, flows: Sequence[PlannedFlow]) -> list[Flow]:
    """Return the flows in order, without those of constant rate; the sub-seed `start` spreads starts."""
    number = {nic.ip: i for i, nic in enumerate(topology.nics)}
    rng = random.Random(sub_seed(spec.seed, "start"))
    out: list[Flow] = []
    for flow in flows:
        if flow.rate_mbps:
            continue
        spread_ms = rng.uniform(0, spec.stack.start_spread_ms) if flow.after is None else 0.0
        start_ps = round((flow.start_s * 1000 + spread_ms) * PS_PER_MS)
        subflows = [subflow_tuple(number, pair) for pair in subflow_pairs(topology, flow)]
        out.append(
            Flow(
                subflows=subflows,
                cc=core_name(flow.cc),
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
    times_ms = (spec.noise.every_ms, spec.noise.least_ms, spec.noise.most_ms)
    every_ps, least_ps, most_ps = (round(ms * PS_PER_MS) for ms in times_ms)
    timers = spec.noise.where != OF_FABRIC
    return Noise(
        every_ps=every_ps,
        least_ps=least_ps,
        most_ps=most_ps,
        seed=sub_seed(spec.seed, "noise"),
        stalls_timers=timers,
        elastic=elastic(spec),
    )


def elastic(spec: RunSpec) -> bool:
    """Return whether the simulated network pauses during stalls (fabric/simulation/machine_noise.hpp).

    Stalls of the fabric or of the hosts alone always use the strict clock, so that their full effect shows.
    """
    return spec.clock == ELASTIC and spec.noise.where == OF_ALL
