"""Requirements of a point's flows: congestion controls, paths of subflows. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from engines.emulation.mptcp.mptcp_genl import Event
from engines.emulation.mptcp.path_manager import PathPolicy
from model.congestion import kernel_name
from model.flows import FIRST_CPORT, FIRST_PORT, STRIDE, AddressPair, PlannedFlow
from topos.topology import Topology


def default_cc(flows: Iterable[PlannedFlow]) -> dict[str, str]:
    """Return the default congestion control of each host that takes part, by the kernel's name.

    It is the one of the flows that the host sends, else of those that it receives.
    """
    ends = [(flow.src, flow.dst, kernel_name(flow.cc)) for flow in flows]
    return {dst: cc for _, dst, cc in ends} | {src: cc for src, _, cc in ends}


def is_data(sport: int, dport: int) -> bool:
    """Return whether a connection carries a flow; iperf3's control connections have ephemeral ports."""
    return FIRST_CPORT <= sport < FIRST_CPORT + STRIDE and dport >= FIRST_PORT


def subflow_paths(topology: Topology, subflows: int) -> PathPolicy:
    """Return a policy for further subflows over the same address pair (ndiffports).

    With several NICs, subflow i joins NIC i to NIC i, modulo their number; a dual-homed tree has no other
    paths.
    """
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
    """Return such a policy for flows that differ in their number of subflows."""
    asked = {flow.seen_by_sender: flow.subflows for flow in flows}
    policies = {subflows: subflow_paths(topology, subflows) for subflows in set(asked.values())}

    def pairs(event: Event) -> Sequence[AddressPair]:
        return policies[asked[event.path]](event)

    return pairs
