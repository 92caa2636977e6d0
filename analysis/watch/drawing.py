"""A network as a drawing in layers: hosts below, then edge, aggregation and core switches. Pure.

A small network is drawn whole. A larger one is drawn by pod: its hosts, its edge switches and its aggregation
switches are one spot each, and all cables between two spots are one line. A pod is what stays connected
without the core switches.

Every line has two halves, one for each direction: half 2i transmits from the lower end of line i, half 2i+1
from the upper end. In a whole drawing half p is therefore port p (model/network_plan.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from topos.topology import Layer, Topology

MAX_NODES = 260
"""A FatTree with k=8 has 208, one with k=10 has 375."""
MAX_PODS = 64
ROW_HOSTS = 64
"""Hosts side by side; more are staggered over several rows."""
MAX_ROWS = 4
ROW_HEIGHT = 0.05
POD_GAP = 0.25
"""Space beside a pod, as a share of its width."""


@dataclass(frozen=True)
class Spot:
    """A node, or several, at `x` and `y` from 0 to 1, from the left and from the top."""

    name: str
    layer: Layer
    x: float
    y: float
    nodes: int = 1


@dataclass(frozen=True)
class Pod:
    """A pod's name and its extent from left to right."""

    name: str
    left: float
    right: float


@dataclass(frozen=True, eq=False)
class Drawing:
    """Spots, lines between them (indices of spots, the lower one first), and pods.

    `spot_of` holds the spot of each node of the topology, `half_of` the half of a line of each port. `whole`
    says that every node has a spot of its own.
    """

    spots: tuple[Spot, ...]
    lines: tuple[tuple[int, int], ...]
    pods: tuple[Pod, ...]
    spot_of: tuple[int, ...]
    half_of: npt.NDArray[np.int64]
    whole: bool

    @property
    def halves(self) -> int:
        return 2 * len(self.lines)


def draw(topology: Topology, max_nodes: int = MAX_NODES) -> Drawing:
    """Return the drawing of a network: whole with up to `max_nodes` nodes, else by pod."""
    pods = pods_of(topology)
    return _whole(topology, pods) if len(topology.nodes) <= max_nodes else _by_pod(topology, pods)


def pods_of(topology: Topology) -> tuple[int, ...]:
    """Return the number of each node's pod, -1 for core switches; pods count from 0 in order of nodes."""
    pod = [-1] * len(topology.nodes)
    count = 0
    for start, node in enumerate(topology.nodes):
        if node.layer is Layer.CORE or pod[start] >= 0:
            continue
        waiting, pod[start] = [start], count
        while waiting:
            for near in topology.adjacency[waiting.pop()]:
                if topology.nodes[near].layer is not Layer.CORE and pod[near] < 0:
                    pod[near] = count
                    waiting.append(near)
        count += 1
    return tuple(pod)


def _whole(topology: Topology, pods: Sequence[int]) -> Drawing:
    extents = _extents(topology, pods)
    x = _positions(topology, pods, extents)
    hosts = {host: i for i, host in enumerate(_hosts_in_order(topology, pods))}
    rows = min(MAX_ROWS, -(-len(hosts) // ROW_HOSTS))
    height = _heights(topology)
    spots = tuple(
        Spot(
            node.name,
            node.layer,
            x[i],
            height[node.layer] - (ROW_HEIGHT * (rows - 1 - hosts[i] % rows) if i in hosts else 0.0),
        )
        for i, node in enumerate(topology.nodes)
    )
    named = [Pod(f"pod {n}", *extent) for n, extent in enumerate(extents) if _is_shown(topology, pods)]
    lines = tuple(link.ends for link in topology.links)
    ports = np.arange(2 * len(lines), dtype=np.int64)
    return Drawing(spots, lines, tuple(named), tuple(range(len(spots))), ports, True)


def _is_shown(topology: Topology, pods: Sequence[int]) -> bool:
    """Whether pods are worth a name: there are several, with aggregation switches."""
    return max(pods) > 0 and any(node.layer is Layer.AGG for node in topology.nodes)


def _heights(topology: Topology) -> Mapping[Layer, float]:
    """Return the height of each layer that the network has; hosts are at the bottom."""
    layers = sorted({node.layer for node in topology.nodes}, reverse=True)
    return {layer: i / max(1, len(layers) - 1) for i, layer in enumerate(layers)}


def _extents(topology: Topology, pods: Sequence[int]) -> list[tuple[float, float]]:
    """Return where each pod begins and ends; its width goes with its largest layer."""
    sizes: dict[tuple[int, Layer], int] = {}
    for node, pod in zip(topology.nodes, pods, strict=True):
        sizes[pod, node.layer] = sizes.get((pod, node.layer), 0) + 1
    widths = [max(n for (of, _), n in sizes.items() if of == pod) for pod in range(max(pods) + 1)]
    total = sum(widths) + POD_GAP * (len(widths) - 1) * min(widths)
    found, left = [], 0.0
    for width in widths:
        found.append((left / total, (left + width) / total))
        left += width + POD_GAP * min(widths)
    return found


def _hosts_in_order(topology: Topology, pods: Sequence[int]) -> list[int]:
    """Return the hosts by pod and by the switch of their first NIC."""
    return sorted(topology.hosts, key=lambda host: (pods[host], topology.nics_of(host)[0].switch, host))


def _positions(
    topology: Topology, pods: Sequence[int], extents: Sequence[tuple[float, float]]
) -> list[float]:
    """Return the x of each node: nodes of a layer of a pod are spread evenly, core switches over all."""
    rows: dict[tuple[int, Layer], list[int]] = {}
    for host in _hosts_in_order(topology, pods):
        rows.setdefault((pods[host], Layer.HOST), []).append(host)
    for switch in topology.switches:
        rows.setdefault((pods[switch], topology.nodes[switch].layer), []).append(switch)
    x = [0.0] * len(topology.nodes)
    for (pod, _), nodes in rows.items():
        left, right = extents[pod] if pod >= 0 else (0.0, 1.0)
        for i, node in enumerate(nodes):
            x[node] = left + (right - left) * (i + 0.5) / len(nodes)
    return x


_NAMES = {
    Layer.HOST: "hosts",
    Layer.EDGE: "edge switches",
    Layer.AGG: "aggregation switches",
    Layer.CORE: "core switches",
}


def _by_pod(topology: Topology, pods: Sequence[int]) -> Drawing:
    """Draw one spot per layer of a pod; more than MAX_PODS pods share spots with their neighbours."""
    count = max(pods) + 1
    per = -(-count // MAX_PODS)
    bins = -(-count // per)
    members: dict[tuple[int, Layer], list[int]] = {}
    for i, node in enumerate(topology.nodes):
        members.setdefault((pods[i] // per if pods[i] >= 0 else -1, node.layer), []).append(i)
    height = _heights(topology)
    names = [_pod_name(first, min(first + per, count) - 1) for first in range(0, count, per)]
    spots: list[Spot] = []
    spot_of = [0] * len(topology.nodes)
    for (pod, layer), nodes in members.items():
        for at in nodes:
            spot_of[at] = len(spots)
        name = f"{len(nodes)} {_NAMES[layer]}" + (f" of {names[pod]}" if pod >= 0 else "")
        x = (pod + 0.5) / bins if pod >= 0 else 0.5
        spots.append(Spot(name, layer, x, height[layer], len(nodes)))
    lines: dict[tuple[int, int], int] = {}
    half_of = []
    for link in topology.links:
        a, b = spot_of[link.a], spot_of[link.b]
        flipped = (b, a) in lines
        line = lines[b, a] if flipped else lines.setdefault((a, b), len(lines))
        half_of += [2 * line + flipped, 2 * line + (not flipped)]
    extents = [Pod(name, i / bins, (i + 1) / bins) for i, name in enumerate(names)] if bins > 1 else []
    return Drawing(
        tuple(spots), tuple(lines), tuple(extents), tuple(spot_of), np.array(half_of, np.int64), False
    )


def _pod_name(first: int, last: int) -> str:
    return f"pod {first}" if first == last else f"pods {first} to {last}"
