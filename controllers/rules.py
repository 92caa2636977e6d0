"""OpenFlow rules from a topology, a routing policy and a seed, as pure data.

There are two kinds. A flow's own rules, one per switch of its path, match its 5-tuple; `routing.path` chooses
the path, as in the fabric. Tables for all flows are made in advance. They have one rule per remote attachment
switch (for the prefix of its hosts) and one per host below. If several next hops are equal, a table refers to
a group, from which the switch chooses by its own hash.

The front ends (`controllers/openflow/`) convert these to messages. ACKs have the reversed 5-tuple, and thus
their own path.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations
from random import Random

from common.errors import UsageError
from controllers.groups import EcmpTables, leftmost
from controllers.hashing import FiveTuple, switch_seed
from controllers.routing import ends, parse, path, path_of_rank, tables_of
from topos.topology import SwitchPorts, Topology

RANDOM = "random"
POLICIES = ("hashed", "ecmp", "wcmp", "ksp", "spanning-tree", RANDOM)
"""Policies a controller supports. `random` draws a shortest path for each new flow, as RipL does."""


def supports(policy: str) -> bool:
    """Return whether a controller supports a policy, `ksp:8`. Raises UsageError for an unknown one."""
    return policy == RANDOM or parse(policy)[0] in POLICIES


@dataclass(frozen=True)
class Match:
    """IPv4 packets to `dst`, or to all addresses with the same first `bits` bits. None matches anything."""

    dst: str
    bits: int = 32
    src: str | None = None
    proto: int | None = None
    sport: int | None = None
    dport: int | None = None


def exactly(flow: FiveTuple) -> Match:
    """Return the match of one flow's packets, without ports if the protocol has none."""
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
    """Equal next hops of a switch, among which its hash of the 5-tuple chooses in proportion to the weights.

    `number` is the group's number at its switch, from 1. `seed` is the switch's own. With one seed for all,
    the first switch's choice would determine the next switch's, and half of the paths would stay unused.
    """

    number: int
    buckets: tuple[Bucket, ...]
    seed: int


@dataclass(frozen=True)
class Rule:
    """A rule of switch `dpid`: matching packets leave by port `to`, or by one of a choice."""

    dpid: int
    match: Match
    to: int | Choice


class Routes:
    """Paths and rules under one policy and seed, over the links that are up.

    `down` holds the indices of links between switches that are cut. Raises UsageError for a policy that is
    not among POLICIES, and for a network whose hosts forward, because OpenFlow cannot program hosts.
    """

    def __init__(self, topology: Topology, policy: str, seed: int, down: Collection[int] = ()) -> None:
        if not supports(policy):
            raise UsageError(f"OpenFlow has no routing '{policy}': choose one of {', '.join(POLICIES)}")
        if topology.hosts_forward:
            raise UsageError(f"{topology.kind}: its hosts forward, but OpenFlow programs switches only")
        self.topology = topology
        self.policy = policy
        self.ports = SwitchPorts(topology)
        self._seed = seed
        self._alive = topology.without(down)
        tables = tables_of(self._alive, "hashed" if policy == RANDOM else policy)
        self._tables = leftmost(tables) if policy == "spanning-tree" else tables
        self._random = Random(seed)
        self._prefixes = _prefixes(topology, self._tables)

    def path(self, flow: FiveTuple) -> tuple[int, ...]:
        """Return node indices from host to host; under `random` a different path at every call.

        Raises UsageError for unknown addresses, and for hosts without a path.
        """
        if self.policy != RANDOM:
            return path(self._alive, self._tables, self.policy, self._seed, flow)
        src, dst, target = ends(self._alive, self._tables, flow)
        walked = path_of_rank(self._tables, self._random.getrandbits(32), src.switch, target)
        return (src.host, *walked, dst.host)

    def rules(self, flow: FiveTuple, nodes: Sequence[int]) -> tuple[Rule, ...]:
        """Return one rule per switch of this path (host to host), the last switch first."""
        match = exactly(flow)
        hops = [(switch, self.ports.towards(switch, onward)) for switch, onward in pairwise(nodes[1:])]
        return tuple(Rule(self.topology.dpid(switch), match, port) for switch, port in reversed(hops))

    def check(self, flow: FiveTuple, nodes: Sequence[int]) -> None:
        """Raise UsageError unless these nodes are a path of this flow from host to host, over links that are
        up, without a repeated node."""
        src, dst = self.topology.nic_by_ip(flow.src), self.topology.nic_by_ip(flow.dst)
        if (*nodes[:2], *nodes[-2:]) != (src.host, src.switch, dst.switch, dst.host):
            raise UsageError(
                f"a path of {flow.src} -> {flow.dst} must begin {self._names((src.host, src.switch))}, end "
                f"{self._names((dst.switch, dst.host))}, not be {self._names(nodes) or 'empty'}"
            )
        if len(set(nodes)) != len(nodes):
            raise UsageError(f"the path {self._names(nodes)} passes a node twice: choose a simple path")
        for a, b in pairwise(nodes):
            self._alive.link_between(a, b)

    def pair_rules(self) -> Iterator[Rule]:
        """Yield rules between all pairs of host addresses, for switches without groups, last switch first.

        All flows of a pair share the path of the pair's hash. Pairs without a path have no rules.
        """
        for src, dst in permutations(self.topology.nics, 2):
            pair = FiveTuple(src.ip, dst.ip, 0, 0, 0)
            if src.host != dst.host and self._joined(src.switch, dst.switch):
                for rule in self.rules(pair, self.path(pair)):
                    yield Rule(rule.dpid, Match(dst.ip, src=src.ip), rule.to)

    def downward(self, switch: int) -> tuple[Rule, ...]:
        """Return a switch's rules to the hosts below it: those with one shortest path that leads down a layer
        at every hop."""
        self._check_table()
        return tuple(rule for node, rule in self._table(switch) if self.leads_down(switch, node))

    def leads_down(self, switch: int, attachment: int) -> bool:
        """Return whether exactly one path leads from `switch` to switch `attachment`, always downwards."""
        target = self._tables.attach.index(attachment)
        here = switch
        while group := self._tables.group(here, target):
            layers = [self.topology.nodes[node].layer for node in (here, group[0].node)]
            if len(group) > 1 or layers[1] >= layers[0]:
                return False
            here = group[0].node
        return here == attachment

    def table(self, switch: int) -> tuple[Rule, ...]:
        """Return a switch's rules to all hosts. Raises UsageError under `random`, which has no table, and
        where paths are listed, which one table for all sources cannot hold."""
        if self.policy == RANDOM:
            raise UsageError("routing 'random' draws a path per flow: choose --mode reactive or hybrid")
        self._check_table()
        return tuple(rule for _, rule in self._table(switch))

    def _check_table(self) -> None:
        if self._tables.lists is not None:
            raise UsageError(f"routing '{self.policy}' needs rules for each flow: choose --mode reactive")

    def _table(self, switch: int) -> Iterator[tuple[int, Rule]]:
        """Yield rules with the attachment switch to which each leads."""
        numbers: dict[tuple[Bucket, ...], int] = {}
        for target, attachment in enumerate(self._tables.attach):
            if attachment == switch:
                for nic in self.topology.nics:
                    if nic.switch == switch:
                        port = self.ports.port_of(switch, nic.link)
                        yield attachment, Rule(self.topology.dpid(switch), Match(nic.ip), port)
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
                yield attachment, Rule(self.topology.dpid(switch), Match(address, bits), to)

    def _joined(self, a: int, b: int) -> bool:
        return self._tables.path_count(a, self._tables.attach.index(b)) > 0

    def _names(self, nodes: Sequence[int]) -> str:
        return " ".join(self.topology.nodes[node].name for node in nodes)


def _prefixes(topology: Topology, tables: EcmpTables) -> dict[int, tuple[tuple[str, int], ...]]:
    """Return for each switch with hosts how other switches' rules match its hosts.

    The match is one prefix if no other host's address has it, else one address per host.
    """
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
