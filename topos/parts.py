"""Parts of a network, for simulations that several threads carry out. Pure.

A pod is what remains connected below the highest layer: switches and their hosts. Each part has whole pods
and an equal share of the switches above them. The parts follow from the topology alone.
"""

from __future__ import annotations

from collections.abc import Collection

from topos.topology import Layer, Topology


def parts_of(topology: Topology, most: int) -> tuple[int, ...]:
    """Return the part of each node, numbered from 0, in at most `most` parts; empty if the network cannot be
    divided.

    Networks are not divided if hosts forward, or if they have no layer above the hosts' switches.
    """
    if topology.hosts_forward:
        return ()
    for above in ({Layer.CORE}, {Layer.AGG, Layer.CORE}):
        pods = _pods(topology, above)
        count = min(most, max(pods) + 1)
        if count > 1:
            return _parts(pods, count)
    return ()


def _pods(topology: Topology, above: Collection[Layer]) -> list[int]:
    """Return the pod of each node in the order of their first nodes; -1 for nodes of the layers `above`."""
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
