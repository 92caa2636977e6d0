"""Oversubscribed FatTree, VL2, leaf-spine, BCube: counts, degrees, speeds and path counts of their papers."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import pytest

from common.errors import UsageError
from topos import Kind, Layer, Topology, build


def layers(topology: Topology) -> dict[Layer, int]:
    return dict(Counter(node.layer for node in topology.nodes))


def degrees(topology: Topology, layer: Layer) -> set[int]:
    return {len(topology.adjacency[i]) for i, node in enumerate(topology.nodes) if node.layer is layer}


def speeds(topology: Topology) -> dict[bool, set[float]]:
    """Return the speeds of the hosts' links (True) and of those between switches (False)."""
    found: dict[bool, set[float]] = {}
    for link in topology.links:
        found.setdefault(topology.nodes[link.a].kind is Kind.HOST, set()).add(link.speed)
    return found


def paths_between(topology: Topology, a: str, b: str) -> int:
    return len(topology.shortest_paths(topology.index(a), topology.index(b)))


@pytest.mark.parametrize(("k", "oversubscription"), [(4, 1), (4, 4), (8, 4), (6, 3)])
def test_an_oversubscribed_tree_has_more_hosts_below_the_same_switches(k: int, oversubscription: int) -> None:
    plain = build("fat_tree", {"k": k})
    tree = build("fat_tree", {"k": k, "oversubscription": oversubscription})
    assert layers(tree) == {**layers(plain), Layer.HOST: oversubscription * k**3 // 4}
    assert degrees(tree, Layer.EDGE) == {k // 2 * (1 + oversubscription)}
    assert degrees(tree, Layer.AGG) == degrees(tree, Layer.CORE) == {k}
    assert paths_between(tree, "p0e0h0", f"p1e1h{k // 2 * oversubscription - 1}") == k * k // 4
    assert len({nic.ip for nic in tree.nics}) == len(tree.hosts)


def test_the_papers_oversubscribed_tree_has_512_hosts() -> None:
    assert len(build("ft", {"k": 8, "oversubscription": 4}).hosts) == 512


def test_more_hosts_per_switch_than_addresses_are_refused() -> None:
    with pytest.raises(UsageError, match="k=16, oversubscription=32 has 256 hosts per edge switch"):
        build("ft", {"k": 16, "oversubscription": 32})


@pytest.mark.parametrize(("da", "di"), [(2, 2), (4, 4), (4, 6), (8, 6)])
def test_vl2_has_the_papers_counts(da: int, di: int) -> None:
    net = build("vl2", {"da": da, "di": di})
    racks = da * di // 4
    assert layers(net) == {Layer.HOST: 20 * racks, Layer.EDGE: racks, Layer.AGG: di, Layer.CORE: da // 2}
    assert (
        degrees(net, Layer.EDGE) == {22}
        and degrees(net, Layer.AGG) == {da}
        and degrees(net, Layer.CORE) == {di}
    )
    assert speeds(net) == {True: {1}, False: {10}}
    intermediate = set(
        net.nodes[i].name for i in net.adjacency[net.index("a0")] if net.nodes[i].layer is Layer.CORE
    )
    assert intermediate == {f"i{i}" for i in range(da // 2)}, (
        "aggregation and intermediate: complete bipartite"
    )
    assert paths_between(net, "t0h0", f"t{racks - 1}h19") == (2 * da if di > 2 else 1 if racks == 1 else 2)
    if da > 2:
        assert paths_between(net, "t0h0", "t1h0") == 2


def test_leaf_spine_is_pfabrics_network_by_default() -> None:
    net = build("leaf_spine", {"leaves": 9})
    assert layers(net) == {Layer.HOST: 144, Layer.EDGE: 9, Layer.CORE: 4}
    assert degrees(net, Layer.EDGE) == {20} and degrees(net, Layer.CORE) == {9}
    assert speeds(net) == {True: {1}, False: {4}}
    assert paths_between(net, "l0h0", "l8h15") == 4 and paths_between(net, "l0h0", "l0h1") == 1


@pytest.mark.parametrize(("n", "k"), [(2, 0), (4, 1), (3, 2), (2, 3), (12, 1)])
def test_bcube_has_the_papers_counts(n: int, k: int) -> None:
    net = build("bcube", {"n": n, "k": k})
    assert len(net.hosts) == n ** (k + 1) and len(net.switches) == (k + 1) * n**k
    assert {len(net.adjacency[host]) for host in net.hosts} == {k + 1}
    assert {len(net.adjacency[switch]) for switch in net.switches} == {n}
    assert net.hosts_forward and len(net.forwarders) == len(net.nodes)
    for number, host in enumerate(net.hosts):
        for level, nic in enumerate(net.nics_of(host)):
            apart = {abs(other - number) for other in net.adjacency[nic.switch] if other != host}
            assert all(gap % n**level == 0 and gap < n ** (level + 1) for gap in apart)


def test_bcube_paths_are_as_many_as_orders_of_the_digits_that_differ() -> None:
    net = build("bcube", {"n": 3, "k": 2})
    for other, apart in (("h001", 1), ("h011", 2), ("h111", 3), ("h202", 2)):
        paths = net.shortest_paths(net.index("h000"), net.index(other))
        assert len(paths) == math.factorial(apart) and {len(path) for path in paths} == {2 * apart + 1}
        for path in paths:
            assert [net.nodes[node].kind for node in path] == [Kind.HOST, *([Kind.SWITCH, Kind.HOST] * apart)]
            assert all(net.link_between(a, b) >= 0 for a, b in pairwise(path))


def test_bcube_that_is_too_large_is_refused() -> None:
    with pytest.raises(UsageError, match="n=64, k=2 has 262144 servers, more than 16384"):
        build("bcube", {"n": 64, "k": 2})
