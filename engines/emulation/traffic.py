"""The flows of a point with their addresses and ports, and the paths of their subflows. Pure.

Ports are a function of the flow alone, so a flow's 5-tuples, and with them all its ECMP choices, are
the same in every run of the same spec.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from engines.congestion import BASELINE, in_force, kernel_name
from engines.emulation.mptcp_genl import AddressPair, Event
from engines.emulation.path_manager import PathPolicy
from engines.spec import RunSpec, sub_seed
from fabric.errors import UsageError
from topos.topology import Topology
from workloads.matrices import build

FIRST_PORT = 5201
FIRST_CPORT = 1100
STRIDE = 950
"""Between the local ports of a flow's subflows: 32 of them stay below the ephemeral ports at 32768."""
MOST_FLOWS_A_HOST = STRIDE


@dataclass(frozen=True)
class PlannedFlow:
    """One flow: host names, addresses, server port, and the client port of its first subflow; its payload
    (0: as much as the run lasts), when it starts after the common start of traffic, its subflows (1: plain
    TCP) and their congestion control, by its name in engines/congestion.py."""

    flow: int
    src: str
    dst: str
    src_ip: str
    dst_ip: str
    port: int
    cport: int
    size_bytes: int = 0
    start_s: float = 0.0
    subflows: int = 1
    cc: str = BASELINE

    @property
    def mptcp(self) -> bool:
        return self.subflows > 1

    @property
    def seen_by_receiver(self) -> AddressPair:
        return AddressPair(self.dst_ip, self.port, self.src_ip, self.cport)

    @property
    def seen_by_sender(self) -> AddressPair:
        return AddressPair(self.src_ip, self.cport, self.dst_ip, self.port)


def planned_flows(spec: RunSpec, topology: Topology) -> tuple[PlannedFlow, ...]:
    """The workload's flows in the matrix's order. Raises UsageError when one host would have too many."""
    flows = build(spec.workload.matrix, topology, spec.workload.params, sub_seed(spec.seed, "workload"))
    address = {topology.nodes[host].name: topology.nics_of(host)[0].ip for host in topology.hosts}
    sent: Counter[str] = Counter()
    received: Counter[str] = Counter()
    planned = []
    for number, flow in enumerate(flows):
        port, cport = FIRST_PORT + received[flow.dst], FIRST_CPORT + sent[flow.src]
        received[flow.dst] += 1
        sent[flow.src] += 1
        planned.append(
            PlannedFlow(
                number,
                flow.src,
                flow.dst,
                address[flow.src],
                address[flow.dst],
                port,
                cport,
                flow.size_bytes,
                flow.start_s,
                1 if flow.plain else spec.transport.subflows,
                BASELINE if flow.plain else in_force(spec.transport.cc, spec.transport.subflows),
            )
        )
    if max(sent.values(), default=0) > MOST_FLOWS_A_HOST:
        raise UsageError(
            f"workload {spec.workload.matrix} starts more than {MOST_FLOWS_A_HOST} flows from one host, "
            "which is all their ports allow: choose a smaller topology"
        )
    return tuple(planned)


def default_cc(flows: Iterable[PlannedFlow]) -> dict[str, str]:
    """The congestion control, by the kernel's name, that suits each host that takes part as its default: that
    of what it sends, else of what it receives."""
    ends = [(flow.src, flow.dst, kernel_name(flow.cc)) for flow in flows]
    return {dst: cc for _, dst, cc in ends} | {src: cc for src, _, cc in ends}


def connect_s(flows: int, subflows: int) -> float:
    """Deadline for all flows to be connected and all their subflows to have joined, in seconds: a saturated
    machine takes 30 ms a flow (k=10 at 20 Mb/s, 250 flows of 8 subflows: 40 s)."""
    return 60.0 + 0.01 * flows * subflows


def is_data(sport: int, dport: int) -> bool:
    """Whether a connection carries a flow; iperf3's control connection has an ephemeral client port."""
    return FIRST_CPORT <= sport < FIRST_CPORT + STRIDE and dport >= FIRST_PORT


def subflow_paths(topology: Topology, subflows: int) -> PathPolicy:
    """Further subflows over the same address pair (ndiffports); where the hosts have several NICs, over
    first to first, second to second and so on in turn: a dual-homed tree joins only those."""
    addresses: Mapping[str, Sequence[str]] = {
        nic.ip: [other.ip for other in topology.nics_of(nic.host)] for nic in topology.nics
    }

    def pairs(event: Event) -> list[AddressPair]:
        first = event.path
        local, remote = addresses[first.laddr], addresses[first.raddr]
        return [
            AddressPair(
                local[i % len(local)],
                first.lport + i * STRIDE,
                remote[i % len(remote)],
                first.rport,
            )
            for i in range(1, subflows)
        ]

    return pairs
