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
from controllers.routing import IN_SWITCHES, ecmp, ends, parse
from topos.topology import Topology

Hashes = npt.NDArray[np.uint32]

FIRST_PORT, LAST_PORT = 40000, 65535
MAX_SOURCE_PORTS = 512
"""Source ports tried, each with all destination ports: 13 million pairs; k=32 needs 65 536."""
_CHUNK = 4096


class Decision(NamedTuple):
    """A packet with hash h takes this branch if mix(h, seed) mod `modulus` is `value`."""

    seed: int
    modulus: int
    value: int


def _hashed(tables: EcmpTables, seed: int, h: int, switch: int, target: int) -> list[Decision]:
    count = tables.path_count(switch, target)
    return [Decision(seed, count, mix(h, seed) % count)]


def _ecmp(tables: EcmpTables, seed: int, h: int, switch: int, target: int) -> list[Decision]:
    decisions = []
    for node in ecmp(tables, seed, h, switch, target)[:-1]:
        own, size = switch_seed(seed, node), len(tables.group(node, target))
        decisions.append(Decision(own, size, mix(h, own) % size))
    return decisions


def _none(_tables: EcmpTables, _seed: int, _h: int, _switch: int, _target: int) -> list[Decision]:
    return []


DECISIONS: dict[str, Callable[[EcmpTables, int, int, int, int], list[Decision]]] = {
    "hashed": _hashed,
    "ecmp": _ecmp,
    "scatter": _none,
    "spanning-tree": _none,
    **dict.fromkeys((*IN_SWITCHES, "presto"), _none),
}
"""Decisions that must be equal for two hashes to take one path, by routing policy. `scatter` has none,
because a ping takes a random path in each direction, as the connection's packets do, nor have policies that
keep state, to which a ping is a flow of its own; `spanning-tree` has only one path. `valiant` is missing: it
has so many choices that no pair of ports makes all of them equal. `digits` is missing: it is for BCube, whose
hosts are simulated."""


class ProbePorts:
    """Finds ports for one network, policy and seed. Raises UsageError for an unknown policy."""

    def __init__(self, topology: Topology, tables: EcmpTables, policy: str, seed: int) -> None:
        policy, _ = parse(policy)
        if policy not in DECISIONS:
            raise UsageError(f"unknown routing policy '{policy}': choose one of {', '.join(DECISIONS)}")
        self._topology = topology
        self._tables = tables
        self._policy = policy
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
        met = DECISIONS[self._policy](self._tables, self._seed, flow_hash(flow), start, column)
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
    for seed, modulus, value in decisions:
        met &= mix_all(h, seed) % np.uint32(modulus) == value
    return met


def mix_all(h: Hashes, seed: int) -> Hashes:
    """Return hashing.mix of every hash."""
    h = h ^ np.uint32(seed)
    h = h ^ h >> np.uint32(16)
    h = h * np.uint32(0x85EBCA6B)
    h = h ^ h >> np.uint32(13)
    h = h * np.uint32(0xC2B2AE35)
    return h ^ h >> np.uint32(16)
