"""What switches are told: from a topology, a routing policy and a seed to rules of OpenFlow, as pure data.

Two kinds. A flow's own rules, one a switch of its path, exact in the 5-tuple; which path is `routing.path`'s
decision, the one the fabric takes. And tables for all flows, laid out once: a rule an attachment switch
elsewhere (by the prefix that covers its hosts) and one a host below. Where several next hops are equal, a
table names a group, out of which the switch picks by its own hash.

The front ends (`controllers/openflow/`) turn these into messages; a path of its own for the ACKs follows from
the reversed 5-tuple.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations
from random import Random

from common.errors import UsageError
from controllers.groups import EcmpTables, ecmp_groups, leftmost
from controllers.hashing import FiveTuple, switch_seed
from controllers.routing import ends, path, path_of_rank, per_packet
from topos.ports import SwitchPorts, dpid
from topos.topology import Topology

POLICIES = ("hashed", "ecmp", "random", "spanning-tree")
"""What a controller can route by. `random` draws among the shortest paths for each new flow, as RipL does."""


@dataclass(frozen=True)
class Match:
    """IPv4 packets to `dst`, or to all addresses that share its first `bits` bits. None matches anything."""

    dst: str
    bits: int = 32
    src: str | None = None
    proto: int | None = None
    sport: int | None = None
    dport: int | None = None


def exactly(flow: FiveTuple) -> Match:
    """The packets of one flow. Ports are left out where the protocol has none."""
    if not has_ports(flow.proto):
        return Match(flow.dst, src=flow.src, proto=flow.proto)
    return Match(flow.dst, 32, flow.src, flow.proto, flow.sport, flow.dport)


def has_ports(proto: int) -> bool:
    return proto in (6, 17)


@dataclass(frozen=True)
class Bucket:
    port: int
    weight: int


@dataclass(frozen=True)
class Choice:
    """Equal ways on from a switch, of which its own hash of the 5-tuple picks one, in proportion to weights.

    `number` is the group's, from 1, among its switch's. `seed` is the switch's own: with one seed for all,
    what the first switch decides would decide the next one's choice too, and half the paths stay unused.
    """

    number: int
    buckets: tuple[Bucket, ...]
    seed: int


@dataclass(frozen=True)
class Rule:
    """At switch `dpid`, what matches leaves by port `to`, or by one of a choice."""

    dpid: int
    match: Match
    to: int | Choice


class Routes:
    """Paths and rules under one policy and seed, over the links that are up.

    `down`: indices of links between switches that are cut. Raises UsageError for a policy that is none of
    POLICIES, and for a network whose hosts forward, which have no tables to be programmed.
    """

    def __init__(self, topology: Topology, policy: str, seed: int, down: Collection[int] = ()) -> None:
        if policy not in POLICIES:
            hint = "scatters packets, which no flow table does" if per_packet(policy) else "is not known here"
            raise UsageError(f"routing policy '{policy}' {hint}: choose one of {', '.join(POLICIES)}")
        if topology.hosts_forward:
            raise UsageError(f"{topology.kind}: its hosts forward, and OpenFlow programs switches only")
        self.topology = topology
        self.policy = policy
        self.ports = SwitchPorts(topology)
        self._seed = seed
        self._alive = topology.without(down)
        tables = ecmp_groups(self._alive)
        self._tables = leftmost(tables) if policy == "spanning-tree" else tables
        self._random = Random(seed)
        self._prefixes = _prefixes(topology, self._tables)

    def path(self, flow: FiveTuple) -> tuple[int, ...]:
        """Node indices from host to host. Under `random` another one every time it is asked for.

        Raises UsageError for addresses of no host, and hosts that no path joins.
        """
        if self.policy != "random":
            return path(self._alive, self._tables, self.policy, self._seed, flow)
        src, dst, target = ends(self._alive, self._tables, flow)
        walked = path_of_rank(self._tables, self._random.getrandbits(32), src.switch, target)
        return (src.host, *walked, dst.host)

    def rules(self, flow: FiveTuple, nodes: Sequence[int]) -> tuple[Rule, ...]:
        """A rule at every switch of this path (host to host), the last switch's first."""
        match = exactly(flow)
        hops = [(switch, self.ports.towards(switch, onward)) for switch, onward in pairwise(nodes[1:])]
        return tuple(Rule(dpid(switch), match, port) for switch, port in reversed(hops))

    def check(self, flow: FiveTuple, nodes: Sequence[int]) -> None:
        """Raises UsageError unless these nodes are a path of this flow, from host to host, over links that
        are up, without passing any node twice."""
        src, dst = self.topology.nic_by_ip(flow.src), self.topology.nic_by_ip(flow.dst)
        if (*nodes[:2], *nodes[-2:]) != (src.host, src.switch, dst.switch, dst.host):
            raise UsageError(
                f"a path of {flow.src} -> {flow.dst} begins {self._names((src.host, src.switch))} and ends "
                f"{self._names((dst.switch, dst.host))}, not {self._names(nodes) or 'nowhere'}"
            )
        if len(set(nodes)) != len(nodes):
            raise UsageError(f"the path {self._names(nodes)} passes a node twice")
        for a, b in pairwise(nodes):
            self._alive.link_between(a, b)

    def pair_rules(self) -> Iterator[Rule]:
        """Rules from every host address to every other, for switches without groups, last switch first: all
        flows of a pair share the path that the pair itself hashes to. Pairs that nothing joins have none."""
        for src, dst in permutations(self.topology.nics, 2):
            pair = FiveTuple(src.ip, dst.ip, 0, 0, 0)
            if src.host != dst.host and self._joined(src.switch, dst.switch):
                for rule in self.rules(pair, self.path(pair)):
                    yield Rule(rule.dpid, Match(dst.ip, src=src.ip), rule.to)

    def downward(self, switch: int) -> tuple[Rule, ...]:
        """A switch's rules to the hosts below it: where there is one shortest path, and every hop of it leads
        down a layer."""
        return tuple(rule for node, rule in self._table(switch) if self.leads_down(switch, node))

    def leads_down(self, switch: int, attachment: int) -> bool:
        """Whether from `switch` one path alone leads to switch `attachment`, downwards all along."""
        target = self._tables.attach.index(attachment)
        here = switch
        while group := self._tables.group(here, target):
            layers = [self.topology.nodes[node].layer for node in (here, group[0].node)]
            if len(group) > 1 or layers[1] >= layers[0]:
                return False
            here = group[0].node
        return here == attachment

    def table(self, switch: int) -> tuple[Rule, ...]:
        """A switch's rules to all hosts. Raises UsageError under `random`, which is no table."""
        if self.policy == "random":
            raise UsageError("routing 'random' chooses anew for every flow: choose --mode reactive or hybrid")
        return tuple(rule for _, rule in self._table(switch))

    def _table(self, switch: int) -> Iterator[tuple[int, Rule]]:
        """Rules with the attachment switch each leads to."""
        numbers: dict[tuple[Bucket, ...], int] = {}
        for target, attachment in enumerate(self._tables.attach):
            if attachment == switch:
                for nic in self.topology.nics:
                    if nic.switch == switch:
                        port = self.ports.port_of(switch, nic.link)
                        yield attachment, Rule(dpid(switch), Match(nic.ip), port)
                continue
            buckets = tuple(
                Bucket(self.ports.towards(switch, hop.node), 1 if self.policy == "ecmp" else hop.paths)
                for hop in self._tables.group(switch, target)
            )
            if not buckets:
                continue
            to: int | Choice = buckets[0].port
            if len(buckets) > 1:
                number = numbers.setdefault(buckets, len(numbers) + 1)
                to = Choice(number, buckets, switch_seed(self._seed, switch))
            for address, bits in self._prefixes[attachment]:
                yield attachment, Rule(dpid(switch), Match(address, bits), to)

    def _joined(self, a: int, b: int) -> bool:
        return self._tables.path_count(a, self._tables.attach.index(b)) > 0

    def _names(self, nodes: Sequence[int]) -> str:
        return " ".join(self.topology.nodes[node].name for node in nodes)


def _prefixes(topology: Topology, tables: EcmpTables) -> dict[int, tuple[tuple[str, int], ...]]:
    """For each switch with hosts, how its hosts' addresses are written in other switches' rules: as one
    prefix where none but its own hosts' addresses begin so, else one by one."""
    addresses: dict[int, list[int]] = {attachment: [] for attachment in tables.attach}
    for nic in topology.nics:
        addresses[nic.switch].append(int(ipaddress.IPv4Address(nic.ip)))
    everyone = sorted(address for own in addresses.values() for address in own)
    written = {}
    for attachment, own in addresses.items():
        shared = 32 - (min(own) ^ max(own)).bit_length()
        block = min(own) >> (32 - shared)
        alone = sum(address >> (32 - shared) == block for address in everyone) == len(own)
        pieces = [(block << (32 - shared), shared)] if alone else [(address, 32) for address in own]
        written[attachment] = tuple((str(ipaddress.IPv4Address(address)), bits) for address, bits in pieces)
    return written
