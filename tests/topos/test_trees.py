"""FatTree, dual-homed FatTree and star: counts, degrees, path counts, bisection."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from topos import Layer, Topology, build
from topos.dual_homed_fat_tree import hosts_per_pair

EVEN = [4, 6, 8, 10, 12]


def _layers(topology: Topology) -> Counter[Layer]:
    return Counter(node.layer for node in topology.nodes)


def _degree(topology: Topology, layer: Layer) -> Counter[int]:
    return Counter(len(topology.adjacency[i]) for i, node in enumerate(topology.nodes) if node.layer is layer)


def _between(topology: Topology, lower: Layer, upper: Layer) -> int:
    ends = [(topology.nodes[link.a].layer, topology.nodes[link.b].layer) for link in topology.links]
    return ends.count((lower, upper))


def _pod(name: str) -> int:
    """Return the pod of a host or of an edge or aggregation switch."""
    return int(re.findall(r"\d+", name)[0])


def _max_flow(topology: Topology, sources: set[int], sinks: set[int]) -> int:
    """Count edge-disjoint paths from any source to any sink through switches, by augmenting paths."""
    used: set[tuple[int, int]] = set()
    flow = 0
    while True:
        parent: dict[int, int] = {source: source for source in sources}
        stack = list(sources)
        end = None
        while stack and end is None:
            here = stack.pop()
            for near in topology.adjacency[here]:
                if near not in parent and (here, near) not in used:
                    parent[near] = here
                    stack.append(near)
                    if near in sinks:
                        end = near
        if end is None:
            return flow
        flow += 1
        while parent[end] != end:
            back = (end, parent[end])
            if back in used:
                used.remove(back)
            else:
                used.add((parent[end], end))
            end = parent[end]


@pytest.mark.parametrize("k", EVEN)
def test_fat_tree_counts_and_degrees(k: int) -> None:
    topology = build("fat_tree", {"k": k})
    assert _layers(topology) == {
        Layer.HOST: k**3 // 4,
        Layer.EDGE: k * k // 2,
        Layer.AGG: k * k // 2,
        Layer.CORE: k * k // 4,
    }
    assert len(topology.links) == 3 * k**3 // 4
    assert _degree(topology, Layer.HOST) == {1: k**3 // 4}
    for layer in (Layer.EDGE, Layer.AGG, Layer.CORE):
        assert set(_degree(topology, layer)) == {k}


def test_fat_tree_k8_is_the_papers() -> None:
    topology = build("fat_tree", {"k": 8})
    assert (len(topology.hosts), len(topology.switches)) == (128, 80)
    assert topology.nics_of(topology.index("p7e1h2"))[0].ip == "10.7.1.4"


@pytest.mark.parametrize("k", EVEN)
def test_fat_tree_path_counts(k: int) -> None:
    topology = build("fat_tree", {"k": k})
    start = topology.index("p0e0h0")
    ends = {"p0e0h1": (3, 1), "p0e1h0": (5, k // 2), f"p{k - 1}e1h1": (7, k * k // 4)}
    for name, (length, count) in ends.items():
        paths = topology.shortest_paths(start, topology.index(name))
        assert (len(paths[0]), len(paths)) == (length, count)
    cores = [path[3] for path in topology.shortest_paths(start, topology.index(f"p{k - 1}e1h1"))]
    assert len(set(cores)) == k * k // 4, "between pods, every path has its own core switch"


@pytest.mark.parametrize("k", [4, 6, 8])
def test_fat_tree_has_full_bisection(k: int) -> None:
    """As many link-disjoint paths between the halves of the pods as hosts in a half."""
    topology = build("fat_tree", {"k": k})
    left = {host for host in topology.hosts if _pod(topology.nodes[host].name) < k // 2}
    assert _max_flow(topology, left, set(topology.hosts) - left) == len(topology.hosts) // 2


@pytest.mark.parametrize("k", EVEN)
def test_dual_homed_counts_and_port_budget(k: int) -> None:
    topology = build("dual_homed_fat_tree", {"k": k})
    below = hosts_per_pair(k)
    assert _layers(topology) == {
        Layer.HOST: below * k * k // 2,
        Layer.EDGE: k * k,
        Layer.AGG: k * k // 2,
        Layer.CORE: k * k // 4,
    }
    assert _between(topology, Layer.EDGE, Layer.AGG) == k**3 // 4
    assert _between(topology, Layer.AGG, Layer.CORE) == k**3 // 4
    assert max(_degree(topology, Layer.EDGE)) <= k, "no switch has more than k ports"
    assert set(_degree(topology, Layer.AGG)) == set(_degree(topology, Layer.CORE)) == {k}
    ports = sum(len(topology.adjacency[switch]) for switch in topology.switches)
    tolerance = 0 if k % 3 == 0 else 1 / below + 0.01
    assert ports / len(topology.hosts) == pytest.approx(5, abs=tolerance), "the cost of a FatTree's host"


@pytest.mark.parametrize("k", EVEN)
def test_dual_homed_hosts_reach_two_edge_switches_of_their_pod(k: int) -> None:
    topology = build("dual_homed_fat_tree", {"k": k})
    for host in topology.hosts:
        first, second = topology.nics_of(host)
        switches = [topology.nodes[nic.switch].name for nic in (first, second)]
        assert first.switch != second.switch
        assert {_pod(name) for name in switches} == {_pod(topology.nodes[host].name)}
        assert topology.nodes[host].name.startswith(switches[0])
        uplinks = [set(topology.adjacency[nic.switch]) - set(topology.hosts) for nic in (first, second)]
        assert not uplinks[0] & uplinks[1] and len(uplinks[0] | uplinks[1]) == k // 2


@pytest.mark.parametrize("k", [4, 8, 12])
def test_dual_homed_paths_use_both_planes(k: int) -> None:
    topology = build("dual_homed_fat_tree", {"k": k})
    src, dst = topology.hosts[0], topology.hosts[-1]
    paths = topology.shortest_paths(src, dst)
    assert len(paths) == k * k // 4
    for first, second in zip(topology.nics_of(src), topology.nics_of(dst), strict=True):
        assert len(topology.shortest_paths(first.switch, second.switch)) == k * k // 8
    crossing = (topology.nics_of(src)[0].switch, topology.nics_of(dst)[1].switch)
    assert topology.shortest_paths(*crossing) == ()


@pytest.mark.parametrize("k", [4, 6])
def test_dual_homed_bisection_is_the_cores(k: int) -> None:
    topology = build("dual_homed_fat_tree", {"k": k})
    left = {host for host in topology.hosts if _pod(topology.nodes[host].name) < k // 2}
    assert _max_flow(topology, left, set(topology.hosts) - left) == k**3 // 8


@pytest.mark.parametrize("n", [2, 3, 254, 255, 600])
def test_star(n: int) -> None:
    topology = build("star", {"n": n})
    assert (len(topology.hosts), len(topology.switches), len(topology.links)) == (n, 1, n)
    assert topology.shortest_paths(0, n - 1) == ((0, n, n - 1),)
