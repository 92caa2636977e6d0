"""Jellyfish (Singla et al., NSDI 2012, section 3): a random regular graph of switches with the same ports.

With the equipment of a FatTree it has more servers, or more capacity for as many. Its shortest paths are few,
so it is used with `--routing ksp:8`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations

from common.errors import UsageError
from topos.topology import Builder, Layer, Topology

KIND = "jellyfish"
MAX_SWITCHES = 4000
MAX_PORTS = 256
MAX_SERVERS = 250
_BLOCK = 250


def jellyfish(switches: int, ports: int, servers: int, more: int, seed: int) -> Topology:
    """Return `switches` switches of `ports` ports, `servers` of them to servers; see `topos.build`.

    The first `more` switches have one server more. Names: server `s0h1`, switch `s0`. The graph of the
    switches follows from `seed`. One port stays free if their ports are odd in number. Addresses
    10.block.switch.server+2, 250 switches per block. Node order: servers, switches. Raises UsageError for
    numbers that give no graph, and if it is not connected.
    """
    own = [servers + (switch < more) for switch in range(switches)]
    degrees = [ports - count for count in own]
    if more > switches or sum(own) < 2 or min(degrees) < 1 or max(degrees) >= switches:
        raise UsageError(
            f"topology {KIND}: {switches} switches of {ports} ports with {servers} servers, and one more at "
            f"{more} of them, give no graph: each needs 1 to {switches - 1} ports for other switches"
        )
    numbers = {"switches": switches, "ports": ports, "servers": servers, "more": more, "seed": seed}
    net = Builder(KIND, numbers)
    hosts = [[net.host(f"s{s}h{h}") for h in range(own[s])] for s in range(switches)]
    nodes = [net.switch(f"s{s}", Layer.EDGE) for s in range(switches)]
    for switch, below in enumerate(hosts):
        block, place = divmod(switch, _BLOCK)
        for slot, host in enumerate(below):
            net.attach(host, nodes[switch], f"10.{block}.{place}.{slot + 2}")
    near = random_graph(degrees, random.Random(seed))
    if len(_reached(near)) < switches:
        raise UsageError(
            f"topology {KIND}: the graph of seed {seed} is not connected: choose more ports, or another seed"
        )
    for a, others in enumerate(near):
        for b in sorted(others):
            if a < b:
                net.link(nodes[a], nodes[b])
    return net.build()


def links(switches: int, ports: int, servers: int, more: int, **_: int) -> int:
    """Return the number of links."""
    hosts = switches * servers + more
    return hosts + max(0, switches * ports - hosts) // 2


def random_graph(degrees: Sequence[int], rng: random.Random) -> list[set[int]]:
    """Return the neighbours of each node of a random graph with these degrees, one perhaps one less.

    Two nodes with free ports that are not neighbours are joined at random until there are none. Two ports
    that are then free, of one node or of neighbours, are joined to the ends of a random link in its place
    (section 3).
    """
    near: list[set[int]] = [set() for _ in degrees]
    free = list(range(len(degrees)))
    while free:
        pairs = _unjoined(free, near, rng)
        if pairs is None:
            break
        _join(near, *pairs)
        free = [node for node in free if len(near[node]) < degrees[node]]
    spare = [node for node in free for _ in range(degrees[node] - len(near[node]))]
    while len(spare) > 1:
        u, v = spare.pop(), spare.pop()
        ends = [(a, b) for a, others in enumerate(near) for b in sorted(others)]
        fit = [(a, b) for a, b in ends if {a, b}.isdisjoint((u, v)) and a not in near[u] and b not in near[v]]
        if not fit:
            break
        a, b = rng.choice(fit)
        near[a].discard(b)
        near[b].discard(a)
        _join(near, u, a)
        _join(near, v, b)
    return near


def _unjoined(free: list[int], near: list[set[int]], rng: random.Random) -> tuple[int, int] | None:
    """Return two of the free nodes that are not neighbours, at random; None if there are none."""
    for _ in range(20):
        a, b = rng.choice(free), rng.choice(free)
        if a != b and b not in near[a]:
            return a, b
    pairs = [(a, b) for a, b in combinations(free, 2) if b not in near[a]]
    return rng.choice(pairs) if pairs else None


def _join(near: list[set[int]], a: int, b: int) -> None:
    near[a].add(b)
    near[b].add(a)


def _reached(near: list[set[int]]) -> set[int]:
    reached, waiting = {0}, [0]
    while waiting:
        for node in near[waiting.pop()] - reached:
            reached.add(node)
            waiting.append(node)
    return reached
