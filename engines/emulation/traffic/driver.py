"""The TrafficDriver protocol between a point and its traffic programs, and what a point's flows need."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from engines.emulation.kernel.mptcp_genl import MptcpEvent
from engines.emulation.path_manager import PathPolicy, port_after
from model.congestion import kernel_name
from model.flows import FIRST_CPORT, FIRST_PORT, STRIDE, AddressPair, PlannedFlow
from topos.topology import Topology


@dataclass(frozen=True)
class Delivered:
    """A flow at its end: payload bytes that its receiver read in total, 0 if it is not known here, its error
    or an empty text, and how long it ran, if that is known."""

    received_bytes: int
    error: str = ""
    seconds: float = 0.0


class TrafficDriver(Protocol):
    """All flows of a point in order. Leaving this context manager ends everything."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def open(self) -> None:
        """Start every flow's server. Raises RunError, DeadlineError, HostUnfitError."""

    def connect(self, deadline_s: float) -> None:
        """Establish every flow's connection. Raises DeadlineError that names the first late flow, and
        RunError that names a flow that cannot connect."""

    def up_s(self) -> list[float]:
        """Return seconds from the call of `connect` until each flow's connection was established."""

    def release(self) -> None:
        """Start the traffic, if it has not started on its own."""

    def received(self) -> list[int | None]:
        """Return the payload bytes that each flow's receiver has so far; None if its socket is gone."""

    def started_s(self) -> list[float]:
        """Return seconds from the release until each flow began to send; nan if it has not."""

    def completed_s(self) -> list[float]:
        """Return each sized flow's completion time from its start, in s; nan if unlimited or unfinished."""

    def retransmitted(self) -> list[int | None]:
        """Return the segments that each completed flow's sender retransmitted in all; None if the flow is
        not completed, or the kernel does not say."""

    def check(self) -> None:
        """Raise RunError if a flow has died; call it periodically while flows run."""

    def stop(self) -> list[Delivered]:
        """End the flows and return their outcomes."""


def flow_name(flow: PlannedFlow) -> str:
    """Return `flow 3 (p0e0h0 10.0.0.2:1100 -> p1e0h0 10.1.0.2:5201)`."""
    source, destination = f"{flow.src} {flow.src_ip}:{flow.cport}", f"{flow.dst} {flow.dst_ip}:{flow.port}"
    return f"flow {flow.flow} ({source} -> {destination})"


def default_cc(flows: Iterable[PlannedFlow]) -> dict[str, str]:
    """Return the default congestion control of each host that takes part, by the kernel's name.

    It is the one of the flows that the host sends, else of those that it receives.
    """
    ends = [(flow.src, flow.dst, kernel_name(flow.cc)) for flow in flows]
    return {dst: cc for _, dst, cc in ends} | {src: cc for src, _, cc in ends}


def is_data(sport: int, dport: int) -> bool:
    """Return whether a connection carries a flow; iperf3's control connections have ephemeral ports."""
    return FIRST_CPORT <= sport < FIRST_CPORT + STRIDE and dport >= FIRST_PORT


def any_port(sport: int, dport: int) -> bool:
    """Accept every connection: programs choose their ports."""
    del sport, dport
    return True


def subflow_paths(topology: Topology, subflows: int) -> PathPolicy:
    """Return a policy for further subflows: over the same address pair (ndiffports), or over the pairs of
    several NICs (`Topology.nic_pairs`)."""

    def pairs(event: MptcpEvent) -> list[AddressPair]:
        first = event.path
        hosts = (topology.nic_by_ip(ip).host for ip in (first.laddr, first.raddr))
        joined = topology.nic_pairs(*hosts)
        return [
            AddressPair(local.ip, port_after(first.lport, i * STRIDE), remote.ip, first.rport)
            for i, (local, remote) in zip(range(subflows), itertools.cycle(joined))
        ][1:]

    return pairs


def paths_of_each(topology: Topology, flows: Iterable[PlannedFlow], otherwise: int) -> PathPolicy:
    """Return such a policy for flows that differ in their number of subflows; connections of programs have
    `otherwise`."""
    asked = {flow.seen_by_sender: flow.subflows for flow in flows}
    policies = {subflows: subflow_paths(topology, subflows) for subflows in {otherwise, *asked.values()}}

    def pairs(event: MptcpEvent) -> Sequence[AddressPair]:
        return policies[asked.get(event.path, otherwise)](event)

    return pairs
