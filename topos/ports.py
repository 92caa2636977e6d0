"""Numbers of switches and their ports for OpenFlow.

A switch's datapath id is its node index + 1, as in stock Mininet (`mininet_topos.py`). Its ports count from 1
along its links in topology order; hosts have no port numbers. Controllers and bridges are both numbered by
this module, so they need not exchange numbers.
"""

from __future__ import annotations

from collections.abc import Mapping

from common.errors import UsageError
from topos.topology import Kind, Topology


def dpid(switch: int) -> int:
    """Return the datapath id of the switch with this node index."""
    return switch + 1


class SwitchPorts:
    """The numbers of one topology's switches and ports.

    Every method raises UsageError for an unknown switch, link or port.
    """

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        links: dict[int, list[int]] = {switch: [] for switch in topology.switches}
        for number, link in enumerate(topology.links):
            for end in link.ends:
                if end in links:
                    links[end].append(number)
        self._links = {switch: tuple(numbers) for switch, numbers in links.items()}
        self._port_of = {
            (switch, link): port
            for switch, numbers in self._links.items()
            for port, link in enumerate(numbers, start=1)
        }

    @property
    def links(self) -> Mapping[int, tuple[int, ...]]:
        """The links of each switch (node index) in order: the link at position p is at port p + 1."""
        return self._links

    def switch(self, dpid: int) -> int:
        """Return the node index of the switch with this datapath id."""
        node = dpid - 1
        if not 0 <= node < len(self._topology.nodes) or self._topology.nodes[node].kind is not Kind.SWITCH:
            raise UsageError(f"{self._topology.kind} has no switch with datapath id {dpid:#x}")
        return node

    def port_of(self, switch: int, link: int) -> int:
        """Return the port of `switch` to which link number `link` is attached."""
        try:
            return self._port_of[switch, link]
        except KeyError:
            raise UsageError(f"{self._topology.kind}: node {switch} has no port to link {link}") from None

    def towards(self, switch: int, neighbour: int) -> int:
        """Return the port of `switch` that leads to its neighbour `neighbour`."""
        return self.port_of(switch, self._topology.link_between(switch, neighbour))

    def link_at(self, switch: int, port: int) -> int:
        """Return the link at this port of `switch`."""
        links = self._links.get(switch, ())
        if not 1 <= port <= len(links):
            raise UsageError(f"{self._topology.kind}: node {switch} has no port {port}")
        return links[port - 1]

    def neighbour(self, switch: int, port: int) -> int:
        """Return the node at the other end of this port of `switch`."""
        link = self._topology.links[self.link_at(switch, port)]
        return link.b if link.a == switch else link.a
