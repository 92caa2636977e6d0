"""Ports that make pings take the paths of a TCP connection, in both directions.

If a packet's path depends on its 5-tuple only, a search finds UDP ports with the same decisions at every
switch as the connection's data, whose answers have the same decisions as its ACKs. The flow hash is a CRC,
which is linear. The contribution of each port is therefore tabulated once, and thousands of pairs are tried
in one numpy expression.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from common.errors import UsageError
from controllers.groups import EcmpTables
from controllers.hashing import PROTO_TCP, PROTO_UDP, FiveTuple, flow_hash, mix, switch_seed
from controllers.routing import POLICIES, Walk, ecmp, ends, hashed, parse, spanning_tree, wcmp
from topos.topology import Topology

Hashes = npt.NDArray[np.uint32]

FIRST_PORT, LAST_PORT = 40000, 65535
MAX_SOURCE_PORTS = 512
"""Source ports tried, each with all destination ports: 13 million pairs; k=32 needs 65 536."""
_CHUNK = 4096


class Decision(NamedTuple):
    """A packet with hash h takes this branch if mix(h, seed) mod `modulus` is one of `width` numbers from
    `value` on."""

    seed: int
    modulus: int
    value: int
    width: int = 1


def _hashed(tables: EcmpTables, seed: int, h: int, switch: int, target: int) -> list[Decision]:
    count = tables.path_count(switch, target)
    rank = mix(h, seed) % count
    if tables.lists is None:
        return [Decision(seed, count, rank)]
    return [_among(seed, rank, [path.weight for path in tables.lists.between(switch, tables.attach[target])])]


def _among(seed: int, rank: int, weights: Sequence[int]) -> Decision:
    """Return the decision for the branch of this rank among branches with these weights."""
    ends = np.cumsum(weights or [1])
    branch = int(np.searchsorted(ends, rank, side="right"))
    return Decision(seed, int(ends[-1]), int(ends[branch]) - weights[branch], weights[branch])


def _wcmp(tables: EcmpTables, seed: int, h: int, switch: int, target: int) -> list[Decision]:
    decisions = []
    for node in wcmp(tables, seed, h, switch, target)[:-1]:
        own, weights = switch_seed(seed, node), [hop.paths for hop in tables.group(node, target)]
        decisions.append(_among(own, mix(h, own) % sum(weights), weights))
    return decisions


def _ecmp(tables: EcmpTables, seed: int, h: int, switch: int, target: int) -> list[Decision]:
    decisions = []
    for node in ecmp(tables, seed, h, switch, target)[:-1]:
        own, size = switch_seed(seed, node), len(tables.group(node, target))
        decisions.append(Decision(own, size, mix(h, own) % size))
    return decisions


def _none(_tables: EcmpTables, _seed: int, _h: int, _switch: int, _target: int) -> list[Decision]:
    return []


DECISIONS: dict[Walk | None, Callable[[EcmpTables, int, int, int, int], list[Decision]]] = {
    hashed: _hashed,
    ecmp: _ecmp,
    wcmp: _wcmp,
    spanning_tree: _none,
    None: _none,
}
"""Decisions that must be equal for two hashes to take one path, by the function of a routing policy. Where
packets choose one by one there are none, because a ping takes a path of its own in each direction, as the
connection's packets do; `spanning_tree` has only one path. `valiant` is missing: it has so many choices that
no pair of ports makes all of them equal. `digits` is missing: it is for BCube, whose hosts are simulated."""


class ProbePorts:
    """Finds ports for one network, policy and seed. Raises UsageError for an unknown policy."""

    def __init__(self, topology: Topology, tables: EcmpTables, policy: str, seed: int) -> None:
        walk = POLICIES[parse(policy)[0]].walk
        if walk not in DECISIONS:
            raise UsageError(f"routing '{policy}': pings cannot follow its paths; choose --engine simulator")
        self._topology = topology
        self._tables = tables
        self._decide = DECISIONS[walk]
        self._seed = seed
        self._ports = np.arange(FIRST_PORT, LAST_PORT + 1)
        self._as_source = _contributions(self._ports, lambda port: (port, 0))
        self._as_destination = _contributions(self._ports, lambda port: (0, port))

    def find(self, src: str, sport: int, dst: str, dport: int) -> tuple[int, int] | None:
        """Return UDP source and destination port for pings from `src` to `dst`.

        The pings take the paths of the TCP connection between these addresses and ports. Returns None if
        there are no such ports, which does not happen for up to thousands of equal paths. Several connections
        with the same paths may get the same ports. Raises UsageError if no path joins the addresses.
        """
        there = self._decisions(FiveTuple(src, dst, PROTO_TCP, sport, dport))
        back = self._decisions(FiveTuple(dst, src, PROTO_TCP, dport, sport))
        base_there = np.uint32(flow_hash(FiveTuple(src, dst, PROTO_UDP, 0, 0)))
        base_back = np.uint32(flow_hash(FiveTuple(dst, src, PROTO_UDP, 0, 0)))
        for source in range(MAX_SOURCE_PORTS):
            from_source = base_there ^ self._as_source[source]
            to_source = base_back ^ self._as_destination[source]
            for first in range(0, len(self._ports), _CHUNK):
                near = np.arange(first, min(first + _CHUNK, len(self._ports)))
                near = near[_holds(from_source ^ self._as_destination[near], there)]
                near = near[_holds(to_source ^ self._as_source[near], back)]
                if len(near):
                    return FIRST_PORT + source, int(self._ports[near[0]])
        return None

    def _decisions(self, flow: FiveTuple) -> list[Decision]:
        source, _, column = ends(self._topology, self._tables, flow)
        start = self._topology.attachment(source)
        met = self._decide(self._tables, self._seed, flow_hash(flow), start, column)
        return [decision for decision in met if decision.modulus > 1]


def _contributions(ports: npt.NDArray[np.int64], pair: Callable[[int], tuple[int, int]]) -> Hashes:
    """Return what each port contributes (by XOR) to the flow hash, at the position given by `pair`."""

    def hash_of(sport: int, dport: int) -> int:
        return flow_hash(FiveTuple("0.0.0.0", "0.0.0.0", PROTO_UDP, sport, dport))

    none = hash_of(0, 0)
    added = np.zeros(len(ports), np.uint32)
    for bit in range(16):
        weight = np.uint32(hash_of(*pair(1 << bit)) ^ none)
        added ^= np.where(ports >> bit & 1, weight, np.uint32(0))
    return added


def _holds(h: Hashes, decisions: Sequence[Decision]) -> npt.NDArray[np.bool_]:
    """Return which hashes meet all decisions."""
    met = np.ones(len(h), np.bool_)
    for seed, modulus, value, width in decisions:
        rank = mix_all(h, seed) % np.uint32(modulus)
        met &= (value <= rank) & (rank < value + width)
    return met


def mix_all(h: Hashes, seed: int) -> Hashes:
    """Return hashing.mix of every hash."""
    h = h ^ np.uint32(seed)
    h = h ^ h >> np.uint32(16)
    h = h * np.uint32(0x85EBCA6B)
    h = h ^ h >> np.uint32(13)
    h = h * np.uint32(0xC2B2AE35)
    return h ^ h >> np.uint32(16)
