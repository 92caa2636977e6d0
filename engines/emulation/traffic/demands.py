"""What a point's flows ask of the kernels: congestion controls, deadlines, paths of subflows. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from engines.emulation.mptcp.mptcp_genl import Event
from engines.emulation.mptcp.path_manager import PathPolicy
from model.congestion import kernel_name
from model.flows import FIRST_CPORT, FIRST_PORT, STRIDE, AddressPair, PlannedFlow
from topos.topology import Topology


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


def paths_of_each(topology: Topology, flows: Iterable[PlannedFlow]) -> PathPolicy:
    """The same, for flows that differ in their number of subflows."""
    asked = {flow.seen_by_sender: flow.subflows for flow in flows}
    policies = {subflows: subflow_paths(topology, subflows) for subflows in set(asked.values())}

    def pairs(event: Event) -> Sequence[AddressPair]:
        return policies[asked[event.path]](event)

    return pairs
