"""Shares of links, from a point's rows, where replicas repeat one experiment side by side. Pure.

Replicas are independent repetitions: they have no link, queue or random number in common.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from model.result import FlowRow, PortRow
from workloads.long_flows import replica_of


def bottleneck_shares_pct(flows: Iterable[FlowRow]) -> list[float]:
    """Return the goodput of each replica's first flow in % of its flows' total; [] without replicas."""
    replicas: dict[str, list[float]] = {}
    for flow in flows:
        replica = replica_of(flow.src)
        if replica is not None:
            replicas.setdefault(replica, []).append(flow.goodput_mbps)
    return [100 * of_replica[0] / sum(of_replica) for of_replica in replicas.values() if sum(of_replica) > 0]


def congested_shares_pct(ports: Sequence[PortRow]) -> list[float]:
    """Return what each replica's dual-homed sender sent on its first NIC, in % of both NICs.

    Returns [] if no host on the left has two NICs.
    """
    sent: dict[str, list[int]] = {}
    for port in ports:
        if port.layer.startswith("host-") and replica_of(port.node) is not None:
            sent.setdefault(port.node, []).append(port.tx_bytes)
    both = [of_host for of_host in sent.values() if len(of_host) == 2 and sum(of_host) > 0]
    return [100 * first / (first + second) for first, second in both]
