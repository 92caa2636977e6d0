"""Packets are conserved: what came to a switch was sent on, or dropped there, or is in it still. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from model.result import FlowRow, PortRow


@dataclass(frozen=True)
class Balance:
    """Packets of a switch in the measured window: those that came in (not counting what the wire lost), those
    it sent, those its queues refused."""

    node: str
    layer: str
    arrived: int
    sent: int
    dropped: int

    @property
    def unaccounted(self) -> int:
        """What it held more of at the end than at the beginning; 0 where it was empty both times."""
        return self.arrived - self.sent - self.dropped


def balances(ports: Sequence[PortRow]) -> list[Balance]:
    """Of every switch, in the order of the ports."""
    layers = {port.node: port.layer.partition("-")[0] for port in ports}
    arrived, sent, dropped = (dict.fromkeys(layers, 0) for _ in range(3))
    for port in ports:
        arrived[port.peer] += port.tx_packets - port.lost
        sent[port.node] += port.tx_packets
        dropped[port.node] += port.drops
    return [
        Balance(node, layer, arrived[node], sent[node], dropped[node])
        for node, layer in layers.items()
        if layer != "host"
    ]


def unaccounted(ports: Sequence[PortRow]) -> int:
    """Packets that appeared in or vanished from switches, whichever way, all together."""
    return sum(abs(balance.unaccounted) for balance in balances(ports))


def undelivered_bytes(flows: Iterable[FlowRow]) -> int:
    """By how much what receivers got differs from what was to be sent, over all flows of given size."""
    return sum(abs(flow.size_bytes - flow.bytes_received) for flow in flows if flow.size_bytes)
