"""FatTree, dual-homed FatTree and star: counts, degrees, path counts, bisection."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from itertools import pairwise

import pytest

from common.errors import UsageError
from topos import Kind, Layer, Topology, build, parse
from topos.cloud import is_ours, rack_of, uplinks
from topos.cloud import paths_between as racks_paths
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
    assert _layers(tree) == {**_layers(plain), Layer.HOST: oversubscription * k**3 // 4}
    assert set(_degree(tree, Layer.EDGE)) == {k // 2 * (1 + oversubscription)}
    assert set(_degree(tree, Layer.AGG)) == set(_degree(tree, Layer.CORE)) == {k}
    assert paths_between(tree, "p0e0h0", f"p1e1h{k // 2 * oversubscription - 1}") == k * k // 4
    assert len({nic.ip for nic in tree.nics}) == len(tree.hosts)


def test_more_hosts_per_switch_than_addresses_are_refused() -> None:
    with pytest.raises(UsageError, match="k=16, oversubscription=32 has 256 hosts per edge switch"):
        build("ft", {"k": 16, "oversubscription": 32})


@pytest.mark.parametrize(("da", "di"), [(2, 2), (4, 4), (4, 6), (8, 6)])
def test_vl2_has_the_papers_counts(da: int, di: int) -> None:
    net = build("vl2", {"da": da, "di": di})
    racks = da * di // 4
    assert _layers(net) == {Layer.HOST: 20 * racks, Layer.EDGE: racks, Layer.AGG: di, Layer.CORE: da // 2}
    for layer, degree in ((Layer.EDGE, 22), (Layer.AGG, da), (Layer.CORE, di)):
        assert set(_degree(net, layer)) == {degree}
    assert speeds(net) == {True: {1}, False: {10}}
    above = {net.nodes[i].name for i in net.adjacency[net.index("a0")] if net.nodes[i].layer is Layer.CORE}
    assert above == {f"i{i}" for i in range(da // 2)}, "complete bipartite"
    assert paths_between(net, "t0h0", f"t{racks - 1}h19") == (2 * da if di > 2 else 1 if racks == 1 else 2)
    if da > 2:
        assert paths_between(net, "t0h0", "t1h0") == 2


def test_leaf_spine_is_pfabrics_network_by_default() -> None:
    net = build("leaf_spine", {"leaves": 9})
    assert _layers(net) == {Layer.HOST: 144, Layer.EDGE: 9, Layer.CORE: 4}
    assert set(_degree(net, Layer.EDGE)) == {20} and set(_degree(net, Layer.CORE)) == {9}
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


def test_forty_hosts_are_dealt_out_over_eight_racks() -> None:
    net = build("cloud", {"n": 40})
    ours = [net.nodes[host].name for host in net.hosts if is_ours(net.nodes[host].name)]
    assert len(ours) == 40 and len(net.hosts) == 40 + 8 * 10
    assert {sum(rack_of(host) == rack for host in ours) for rack in range(8)} == {5}
    assert [node.layer for node in net.nodes if node.name.startswith("s")] == [Layer.CORE] * 8


def test_names_tell_how_many_paths_there_are() -> None:
    net = build("cloud", {"n": 16, "racks": 8, "tenants": 1})
    names = [net.nodes[host].name for host in net.hosts]
    found = set()
    for a, b in itertools.combinations(names, 2):
        paths = len(net.shortest_paths(net.index(a), net.index(b)))
        assert paths == racks_paths(a, b)
        found.add(paths)
    assert found == {1, 2, 4, 6, 8}


@pytest.mark.parametrize("racks", [1, 3, 4])
def test_every_uplink_leads_to_a_spine_of_its_own(racks: int) -> None:
    net = build("cloud", {"n": 5, "racks": racks, "tenants": 0})
    spines = {i for i, node in enumerate(net.nodes) if node.layer is Layer.CORE}
    for rack in range(racks):
        assert len(spines & set(net.adjacency[net.index(f"r{rack}")])) == uplinks(rack)
    assert len(net.hosts) == 5


def test_other_topologies_names_tell_nothing() -> None:
    assert racks_paths("p0e0h0", "p1e0h0") is None
    assert not is_ours("p0e0h0") and rack_of("s3") is None
    assert parse("cloud,40,tenants=3") == ("cloud", {"n": 40, "tenants": 3})
