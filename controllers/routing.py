"""Policies: which of the equal shortest paths a packet takes.

Most choose by flow, as a function of its 5-tuple and a seed; `path` is the reference the C++ core's
forwarding is tested against, and what a figure about collisions is computed from; nothing on the data path
calls it.
"""

from __future__ import annotations

from collections.abc import Callable

from common.errors import UsageError
from controllers.groups import EcmpTables, Group
from controllers.hashing import FiveTuple, flow_hash, mix, switch_seed
from topos.topology import Nic, Topology

FIRST_LEG, SECOND_LEG = 0x56414C31, 0x56414C32
"""What the seed is XORed with for the two halves of a path by way of somewhere else."""

Walk = Callable[[EcmpTables, int, int, int, int], tuple[int, ...]]
"""(tables, seed, flow hash, first node that forwards, destination's position in attach) -> nodes that
forward it."""


def hashed(tables: EcmpTables, seed: int, h: int, switch: int, target: int) -> tuple[int, ...]:
    """One hash picks the whole path, as RipL does: path number `mix(h, seed) mod count` of the shortest
    paths in lexicographic order.

    The number is unranked hop by hop: a next hop with n paths beyond it stands for n consecutive
    numbers, so every switch needs only its own group and the number left.
    """
    return path_of_rank(tables, mix(h, seed), switch, target)


def path_of_rank(tables: EcmpTables, rank: int, switch: int, target: int) -> tuple[int, ...]:
    """Shortest path number `rank` modulo how many there are, in lexicographic order; empty where none."""
    count = tables.path_count(switch, target)
    if not count:
        return ()
    rank %= count
    walked = [switch]
    while group := tables.group(walked[-1], target):
        node, rank = _unrank(group, rank)
        walked.append(node)
    return tuple(walked)


def ecmp(tables: EcmpTables, seed: int, h: int, switch: int, target: int) -> tuple[int, ...]:
    """Every switch picks a next hop by itself, as real ones do: member `mix(h, its own seed) mod size`."""
    walked = [switch]
    while group := tables.group(walked[-1], target):
        walked.append(group[mix(h, switch_seed(seed, walked[-1])) % len(group)].node)
    return tuple(walked)


def valiant(tables: EcmpTables, seed: int, h: int, switch: int, target: int) -> tuple[int, ...]:
    """By way of a switch that has hosts, chosen by hash (Valiant and Brebner, STOC 1981): path number
    `mix(h, seed ^ FIRST_LEG)` to it and `mix(h, seed ^ SECOND_LEG)` on from it.

    Where the chosen one is not joined to both ends (the other plane of a dual-homed tree), the next that is.
    """
    count = len(tables.attach)
    chosen = mix(h, seed) % count
    for by in (*range(chosen, count), *range(chosen)):
        there = path_of_rank(tables, mix(h, seed ^ FIRST_LEG), switch, by)
        onward = path_of_rank(tables, mix(h, seed ^ SECOND_LEG), tables.attach[by], target)
        if there and onward:
            return (*there, *onward[1:])
    return ()


def spanning_tree(tables: EcmpTables, seed: int, h: int, switch: int, target: int) -> tuple[int, ...]:
    """The first of the shortest paths, whatever the flow, as RipL's `st`: one tree carries everything in a
    FatTree, below its first core switch."""
    del seed, h
    return path_of_rank(tables, 0, switch, target)


POLICIES: dict[str, Walk | None] = {
    "hashed": hashed,
    "ecmp": ecmp,
    "scatter": None,
    "valiant": valiant,
    "spanning-tree": spanning_tree,
}
"""The walk of a flow's packets. None under `scatter` (PacketScatter in Raiciu et al., SIGCOMM 2011), where
every packet takes any of the shortest paths, all equally likely, and a flow has none of its own."""


def per_packet(policy: str) -> bool:
    """Whether packets of one flow take different paths."""
    return policy in POLICIES and POLICIES[policy] is None


def path(
    topology: Topology, tables: EcmpTables, policy: str, seed: int, five_tuple: FiveTuple
) -> tuple[int, ...]:
    """Node indices from the source host to the destination host that packets of `five_tuple` pass.

    Raises UsageError for an unknown policy, one under which flows have no path, and as `ends` does.
    """
    if policy not in POLICIES:
        raise UsageError(f"unknown routing policy '{policy}': choose one of {', '.join(POLICIES)}")
    walk = POLICIES[policy]
    if walk is None:
        raise UsageError(f"with routing policy '{policy}' every packet of a flow takes a path of its own")
    src, dst, target = ends(topology, tables, five_tuple)
    walked = walk(tables, seed, flow_hash(five_tuple), topology.attachment(src), target)
    return walked if topology.hosts_forward else (src.host, *walked, dst.host)


def ends(topology: Topology, tables: EcmpTables, five_tuple: FiveTuple) -> tuple[Nic, Nic, int]:
    """The NICs a flow leaves and reaches, and the latter's switch as a position in `tables.attach`.

    A host with several NICs uses the one that holds the tuple's address. Raises UsageError for an address no
    host has, a flow of a host to itself, or NICs that no path joins (in a dual-homed FatTree, a host's first
    and another's second).
    """
    src, dst = topology.nic_by_ip(five_tuple.src), topology.nic_by_ip(five_tuple.dst)
    if src.host == dst.host:
        raise UsageError(f"{five_tuple.src} and {five_tuple.dst} are the same host: nothing to route")
    target = tables.attach.index(topology.attachment(dst))
    if not tables.path_count(topology.attachment(src), target):
        raise UsageError(f"no path joins {src.name} ({src.ip}) and {dst.name} ({dst.ip}): use another NIC")
    return src, dst, target


def _unrank(group: Group, rank: int) -> tuple[int, int]:
    """The next hop whose block of path numbers holds `rank`, and the number within that block."""
    for node, paths in group:
        if rank < paths:
            return node, rank
        rank -= paths
    raise ValueError(f"rank beyond the {sum(hop.paths for hop in group)} paths of this group")
