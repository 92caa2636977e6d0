"""Conservation of packets: a switch has sent, dropped or still holds every packet that arrived. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from model.result import FlowRow, PortRow


@dataclass(frozen=True)
class Balance:
    """Packet counts of one switch in the measured window: packets arrived (without losses on the wire),
    packets sent, and packets dropped by its queues."""

    node: str
    layer: str
    arrived: int
    sent: int
    dropped: int

    @property
    def unaccounted(self) -> int:
        """Packets held at the end less those held at the start; 0 if the switch was empty both times."""
        return self.arrived - self.sent - self.dropped


def balances(ports: Sequence[PortRow]) -> list[Balance]:
    """Return the balance of every switch, in the order of the ports."""
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
    """Return the number of packets that appeared in or vanished from switches, in total."""
    return sum(abs(balance.unaccounted) for balance in balances(ports))


def undelivered_bytes(flows: Iterable[FlowRow]) -> int:
    """Return the total difference between sizes and received bytes, over all flows with a size."""
    return sum(abs(flow.size_bytes - flow.bytes_received) for flow in flows if flow.size_bytes)
