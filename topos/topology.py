"""A network as an immutable graph: nodes, links, and the hosts' addresses.

Node indices are positions in `nodes`; link indices are positions in `links`. Both are stable for given
parameters, and all other tables (forwarding, ports, results) use them as keys. `Builder` collects the parts;
`Topology` checks them once and never changes.

For OpenFlow, a switch's datapath id is its node index + 1, as in stock Mininet (`mininet_topos.py`), and its
ports count from 1 along its links in topology order; hosts have no port numbers. For simulations on several
threads a network is divided into parts of whole pods (`parts_of`), which follow from the topology alone.
"""

from __future__ import annotations

import difflib
import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum
from functools import cached_property
from typing import NamedTuple

from common.errors import UsageError


class Kind(StrEnum):
    HOST = "host"
    SWITCH = "switch"


class Layer(IntEnum):
    HOST = 0
    EDGE = 1
    AGG = 2
    CORE = 3


class Node(NamedTuple):
    """A node. `name` is alphanumeric, because it becomes a namespace, an interface prefix and a column."""

    name: str
    kind: Kind
    layer: Layer


class Link(NamedTuple):
    """A full-duplex cable between nodes `a` and `b` (indices); `a` is the lower-layer end.

    `speed` is its rate as a multiple of the run's link rate; `delay_us` is added to the run's delay. `loss`
    is the probability that a frame is lost, in addition to the run's. `queue_pkts`, if not 0, is the
    capacity of its switches' queues instead of the run's.
    """

    a: int
    b: int
    speed: float = 1
    delay_us: float = 0.0
    loss: float = 0.0
    queue_pkts: int = 0

    @property
    def ends(self) -> tuple[int, int]:
        return self.a, self.b


class Nic(NamedTuple):
    """One attachment of a host to a switch: node indices, the link between them, and its addresses.

    `name` is `<host>-eth<n>`, where n counts the host's NICs (`interface_name`). `mac` is locally
    administered and contains the NIC's index.
    """

    host: int
    switch: int
    link: int
    ip: str
    mac: str
    name: str


@dataclass(frozen=True)
class Topology:
    """A validated network. `kind` and `params` are the registry name and parameters it was built from.
    If `hosts_forward` (server-centric networks), paths lead through hosts too.

    Raises UsageError if names are not unique and alphanumeric, if IPs or MACs repeat, if a link lacks an end
    or doubles another, or if a host's links and NICs do not correspond one to one.
    """

    kind: str
    params: Mapping[str, int | str]
    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    nics: tuple[Nic, ...]
    hosts_forward: bool = False

    def __post_init__(self) -> None:
        self._check_nodes()
        self._check_links()
        self._check_nics()

    @cached_property
    def hosts(self) -> tuple[int, ...]:
        """Node indices of the hosts, ascending."""
        return tuple(i for i, node in enumerate(self.nodes) if node.kind is Kind.HOST)

    @cached_property
    def switches(self) -> tuple[int, ...]:
        """Node indices of the switches, ascending."""
        return tuple(i for i, node in enumerate(self.nodes) if node.kind is Kind.SWITCH)

    @cached_property
    def host_names(self) -> tuple[str, ...]:
        """Names of the hosts, in the order of `hosts`."""
        return tuple(self.nodes[host].name for host in self.hosts)

    @cached_property
    def host_speed(self) -> float:
        """The highest total speed of one host's links."""
        return max(sum(self.links[nic.link].speed for nic in self.nics_of(host)) for host in self.hosts)

    @cached_property
    def losses(self) -> frozenset[float]:
        """The loss probabilities of the links."""
        return frozenset(link.loss for link in self.links)

    @cached_property
    def queues_pkts(self) -> Counter[int]:
        """How many links have each queue limit of their own, in packets; 0 for those that have none."""
        return Counter(link.queue_pkts for link in self.links)

    def number(self, name: str, default: int = 0) -> int:
        """Return the parameter `name` if it is a number, else `default`."""
        value = self.params.get(name, default)
        return value if isinstance(value, int) else default

    @property
    def forwarders(self) -> tuple[int, ...]:
        """Node indices of all nodes that forward packets, ascending."""
        return tuple(range(len(self.nodes))) if self.hosts_forward else self.switches

    def attachment(self, nic: Nic) -> int:
        """Return the node where forwarding to `nic` ends: its switch, or the host if hosts forward."""
        return nic.host if self.hosts_forward else nic.switch

    @cached_property
    def distances(self) -> Distances:
        """Distances between nodes in links, found when they are asked for."""
        return Distances(self.adjacency, self.forwarders)

    @cached_property
    def adjacency(self) -> tuple[tuple[int, ...], ...]:
        """For each node, its neighbours' indices in ascending order."""
        neighbours: list[list[int]] = [[] for _ in self.nodes]
        for link in self.links:
            a, b = link.a, link.b
            neighbours[a].append(b)
            neighbours[b].append(a)
        return tuple(tuple(sorted(of_node)) for of_node in neighbours)

    def index(self, name: str) -> int:
        """Return the index of a node by name. Raises UsageError, with close matches, if there is none."""
        try:
            return self._index_of[name]
        except KeyError:
            close = difflib.get_close_matches(name, self._index_of, n=3)
            hint = f"did you mean {' or '.join(close)}?" if close else f"its first is {self.nodes[0].name}"
            raise UsageError(f"{self.kind} has no node called '{name}': {hint}") from None

    def dpid(self, switch: int) -> int:
        """Return the datapath id of a switch (node index): its number if all are called s1, s2 and so on, as
        in Mininet, else its position among the switches, from 1."""
        return self._dpids[switch]

    def nics_of(self, host: int) -> tuple[Nic, ...]:
        """Return the NICs of host `host` in interface order; empty for a switch."""
        return self._nics_by_host.get(host, ())

    def nic_by_ip(self, ip: str) -> Nic:
        """Return the NIC with address `ip`. Raises UsageError if no host has it."""
        try:
            return self._nic_by_ip[ip]
        except KeyError:
            raise UsageError(f"{self.kind} has no host with address {ip}") from None

    def link_between(self, a: int, b: int) -> int:
        """Return the index of the link between nodes `a` and `b`, in either order. Raises UsageError."""
        try:
            return self._link_of[min(a, b), max(a, b)]
        except KeyError:
            names = [self.nodes[end].name if 0 <= end < len(self.nodes) else str(end) for end in (a, b)]
            raise UsageError(f"{self.kind} has no link between {names[0]} and {names[1]}") from None

    @cached_property
    def islands(self) -> tuple[int, ...]:
        """For each node that forwards, the smallest index among those that it reaches; -1 for other nodes."""
        passable = self._passable
        island = [-1] * len(self.nodes)
        for start in self.forwarders:
            waiting = [start] if island[start] < 0 else []
            island[start] = start if waiting else island[start]
            while waiting:
                for near in self.adjacency[waiting.pop()]:
                    if passable[near] and island[near] < 0:
                        island[near] = start
                        waiting.append(near)
        return tuple(island)

    @cached_property
    def is_joined(self) -> bool:
        """Whether a path joins any two nodes that forward."""
        return len({self.islands[node] for node in self.forwarders}) == 1

    def islands_of(self, host: int) -> frozenset[int]:
        """Return the `islands` that the NICs of `host` lead to. A path joins two hosts that share one."""
        return frozenset(self.islands[self.attachment(nic)] for nic in self.nics_of(host))

    def nic_pairs(self, src: int, dst: int) -> tuple[tuple[Nic, Nic], ...]:
        """Return the NICs of hosts `src` and `dst` that the subflows of a connection join, in order; more
        subflows begin again. Empty if no path joins the hosts.

        Subflow i joins NIC i to NIC i, modulo their numbers, or to the next NIC that a path leads to.
        """
        local, remote = self.nics_of(src), self.nics_of(dst)
        island = [self.islands[self.attachment(nic)] for nic in remote]
        pairs = []
        for i in range(math.lcm(len(local), len(remote))):
            mine = local[i % len(local)]
            home = self.islands[self.attachment(mine)]
            turns = ((i + j) % len(remote) for j in range(len(remote)))
            if (turn := next((j for j in turns if island[j] == home), None)) is not None:
                pairs.append((mine, remote[turn]))
        return tuple(pairs)

    def without(self, cut: Collection[int]) -> Topology:
        """Return the topology without these links (indices) between switches; the others are renumbered.

        Raises UsageError for a link of a host, because the host would lose its NIC.
        """
        kept = [i for i in range(len(self.links)) if i not in cut]
        number = {old: new for new, old in enumerate(kept)}
        if torn := [nic.name for nic in self.nics if nic.link not in number]:
            raise UsageError(f"topology {self.kind}: cannot remove the link of the host NIC {torn[0]}")
        nics = tuple(nic._replace(link=number[nic.link]) for nic in self.nics)
        return replace(self, links=tuple(self.links[i] for i in kept), nics=nics)

    def shortest_paths(self, src: int, dst: int) -> tuple[tuple[int, ...], ...]:
        """Return all shortest paths between two nodes as node indices with both ends, in lexicographic order.

        Hosts appear at the ends only, unless they forward. Empty if there is no path.
        """
        return tuple(self._walk((src,), dst, self.distances_to(dst, src)))

    def _walk(
        self, path: tuple[int, ...], dst: int, distance: Mapping[int, int]
    ) -> Iterator[tuple[int, ...]]:
        here = path[-1]
        if here == dst:
            yield path
            return
        closer = distance.get(here, 0) - 1
        for neighbour in self.adjacency[here]:
            if distance.get(neighbour) == closer:
                yield from self._walk((*path, neighbour), dst, distance)

    def distances_to(self, dst: int, src: int) -> dict[int, int]:
        """Return hops to `dst` of `src` and of all nearer nodes, by breadth-first search.

        Unless hosts forward, hosts other than the two ends get no distance, because no path may use them.
        """
        passable = self._passable
        distance = {dst: 0}
        frontier = [dst]
        while frontier and src not in distance:
            reached = []
            for node in frontier:
                for neighbour in self.adjacency[node]:
                    if neighbour not in distance and (neighbour == src or passable[neighbour]):
                        distance[neighbour] = distance[node] + 1
                        reached.append(neighbour)
            frontier = reached
        return distance

    @cached_property
    def _passable(self) -> tuple[bool, ...]:
        return tuple(self.hosts_forward or node.kind is Kind.SWITCH for node in self.nodes)

    @cached_property
    def _index_of(self) -> dict[str, int]:
        return {node.name: i for i, node in enumerate(self.nodes)}

    @cached_property
    def _dpids(self) -> dict[int, int]:
        numbered = [re.fullmatch("s([1-9][0-9]*)", self.nodes[switch].name) for switch in self.switches]
        names = [int(match[1]) for match in numbered if match]
        given = names if len(names) == len(self.switches) else range(1, len(self.switches) + 1)
        return dict(zip(self.switches, given, strict=True))

    @cached_property
    def _nic_by_ip(self) -> dict[str, Nic]:
        return {nic.ip: nic for nic in self.nics}

    @cached_property
    def _nics_by_host(self) -> dict[int, tuple[Nic, ...]]:
        by_host: dict[int, list[Nic]] = {}
        for nic in self.nics:
            by_host.setdefault(nic.host, []).append(nic)
        return {host: tuple(nics) for host, nics in by_host.items()}

    @cached_property
    def _link_of(self) -> dict[tuple[int, int], int]:
        return {
            (link.a, link.b) if link.a < link.b else (link.b, link.a): i for i, link in enumerate(self.links)
        }

    def _check_nodes(self) -> None:
        if len(self._index_of) != len(self.nodes):
            raise UsageError(f"topology {self.kind}: two nodes share a name")
        for node in self.nodes:
            if not (node.name.isascii() and node.name.isalnum()):
                raise UsageError(f"topology {self.kind}: node name '{node.name}' must be letters and digits")

    def _check_links(self) -> None:
        layers = [node.layer for node in self.nodes]
        count = len(layers)
        once = len(self._link_of) == len(self.links)
        for i, link in enumerate(self.links):
            a, b = link.a, link.b
            if not (0 <= a < count and 0 <= b < count) or a == b:
                raise UsageError(f"topology {self.kind}: link {i} ({a}, {b}) lacks an end")
            if not once and self.link_between(a, b) != i:
                names = f"{self.nodes[a].name} and {self.nodes[b].name}"
                raise UsageError(
                    f"topology {self.kind}: two links join {names}; give one of their total rate"
                )
            if link.speed < 1:
                raise UsageError(f"topology {self.kind}: link {i} has speed {link.speed}, must be at least 1")
            if layers[a] > layers[b]:
                raise UsageError(f"topology {self.kind}: link {i} must name its lower-layer end first")

    def _check_nics(self) -> None:
        for what, values in (("IP address", self._nic_by_ip), ("MAC", {nic.mac for nic in self.nics})):
            if len(values) != len(self.nics):
                raise UsageError(f"topology {self.kind}: two NICs share an {what}")
        at_hosts = [i for i, link in enumerate(self.links) if self.nodes[link.a].kind is Kind.HOST]
        if sorted(nic.link for nic in self.nics) != at_hosts:
            raise UsageError(f"topology {self.kind}: every link of a host needs exactly one NIC")
        for nic in self.nics:
            if self.links[nic.link].ends != (nic.host, nic.switch):
                raise UsageError(f"topology {self.kind}: {nic.name} is not at the ends of its link")


class Builder:
    """Collects nodes, links and NICs and returns their indices; `build` validates and freezes them."""

    def __init__(self, kind: str, params: Mapping[str, int | str], *, hosts_forward: bool = False) -> None:
        self._kind = kind
        self._params = dict(params)
        self._hosts_forward = hosts_forward
        self._nodes: list[Node] = []
        self._links: list[Link] = []
        self._nics: list[Nic] = []
        self._nic_counts: dict[int, int] = {}

    def host(self, name: str) -> int:
        return self._add(Node(name, Kind.HOST, Layer.HOST))

    def switch(self, name: str, layer: Layer) -> int:
        return self._add(Node(name, Kind.SWITCH, layer))

    def link(
        self, a: int, b: int, speed: float = 1, delay_us: float = 0.0, loss: float = 0.0, queue_pkts: int = 0
    ) -> int:
        """Join two nodes, the lower-layer one first; return the link's index. For the numbers see Link."""
        self._links.append(Link(a, b, speed, delay_us, loss, queue_pkts))
        return len(self._links) - 1

    def attach(
        self,
        host: int,
        switch: int,
        ip: str,
        speed: float = 1,
        delay_us: float = 0.0,
        loss: float = 0.0,
        queue_pkts: int = 0,
    ) -> None:
        """Add a NIC to `host`, cabled to `switch` by a link with these numbers."""
        number = self._nic_counts.get(host, 0)
        self._nic_counts[host] = number + 1
        name = interface_name(self._nodes[host].name, host, number)
        link = self.link(host, switch, speed, delay_us, loss, queue_pkts)
        mac = local_mac(len(self._nics))
        self._nics.append(Nic(host, switch, link, ip, mac, name))

    def build(self) -> Topology:
        parts = tuple(self._nodes), tuple(self._links), tuple(self._nics)
        return Topology(self._kind, self._params, *parts, self._hosts_forward)

    def _add(self, node: Node) -> int:
        self._nodes.append(node)
        return len(self._nodes) - 1


MAX_INTERFACE_NAME = 15
"""Longest name of an interface in Linux (IFNAMSIZ - 1)."""


def interface_name(node: str, index: int, number: int) -> str:
    """Return the name of interface `number` of a node (its name and index): `p0e0-eth1`, or `_7-eth10` where
    that would be too long for the kernel. No node's name has an underscore, so it is unique."""
    name = f"{node}-eth{number}"
    return name if len(name) <= MAX_INTERFACE_NAME else f"_{index}-eth{number}"


def local_mac(number: int) -> str:
    """Return the locally administered unicast MAC number `number` (0 .. 2^32-1): 02:00:00:00:00:01 for 1."""
    return (b"\2\0" + number.to_bytes(4, "big")).hex(":")


Neighbours = tuple[int, ...]


class Distances:
    """Distances between pairs of nodes; paths lead through forwarders only.

    Nodes with the same neighbours have the same distances, so that hosts of one switch are searched for once.
    """

    def __init__(self, adjacency: Sequence[Neighbours], forwarders: Collection[int]) -> None:
        self._adjacency = adjacency
        self._forwarders = frozenset(forwarders)
        self._known: dict[tuple[Neighbours, Neighbours], int] = {}

    def between(self, start: int, end: int) -> int:
        """Return the number of links on the shortest paths. Without a path the number has no meaning."""
        if start == end or end in self._adjacency[start]:
            return int(start != end)
        places = self._adjacency[start], self._adjacency[end]
        if places not in self._known:
            self._known[places] = self._search(start, end)
        return self._known[places]

    def _search(self, start: int, end: int) -> int:
        """Search breadth-first from both ends."""
        growing, waiting = {start}, {end}
        reached, reached_by_other = {start}, {end}
        links = 0
        while growing and growing.isdisjoint(waiting):
            if len(growing) > len(waiting):
                growing, waiting = waiting, growing
                reached, reached_by_other = reached_by_other, reached
            near = {there for here in growing for there in self._adjacency[here]}
            growing = (near & self._forwarders | near & {start, end}) - reached
            reached |= growing
            links += 1
        return links


class SwitchPorts:
    """The numbers of one topology's switches and ports. Controllers and bridges both use them, so they need
    not exchange numbers.

    Every method raises UsageError for an unknown switch, link or port.
    """

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._switch_of = {topology.dpid(switch): switch for switch in topology.switches}
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
        try:
            return self._switch_of[dpid]
        except KeyError:
            raise UsageError(f"{self._topology.kind} has no switch with datapath id {dpid:#x}") from None

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


def parts_of(topology: Topology, most: int) -> tuple[int, ...]:
    """Return the part of each node, numbered from 0, in at most `most` parts; empty if the network cannot be
    divided.

    Networks are not divided if hosts forward, or if they have no layer above the hosts' switches.
    """
    if topology.hosts_forward:
        return ()
    for above in ({Layer.CORE}, {Layer.AGG, Layer.CORE}):
        pods = pods_of(topology, above)
        count = min(most, max(pods) + 1)
        if count > 1:
            return _parts(pods, count)
    return ()


def pods_of(topology: Topology, above: Collection[Layer]) -> list[int]:
    """Return the pod of each node, numbered from 0 in the order of their first nodes; -1 for nodes of the
    layers `above`. A pod is what stays connected without these layers."""
    pods = [-1] * len(topology.nodes)
    found = 0
    for start, node in enumerate(topology.nodes):
        if node.layer in above or pods[start] >= 0:
            continue
        pods[start], waiting = found, [start]
        while waiting:
            for near in topology.adjacency[waiting.pop()]:
                if pods[near] < 0 and topology.nodes[near].layer not in above:
                    pods[near] = found
                    waiting.append(near)
        found += 1
    return pods


def _parts(pods: list[int], count: int) -> tuple[int, ...]:
    total, shared = max(pods) + 1, 0
    parts = []
    for pod in pods:
        if pod >= 0:
            parts.append(pod * count // total)
        else:
            parts.append(shared % count)
            shared += 1
    return tuple(parts)
