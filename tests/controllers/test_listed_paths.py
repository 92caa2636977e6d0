"""Lists of paths: the k shortest ones, by comparison with all simple paths, and weights of next hops."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import UsageError
from controllers.groups import ecmp_groups
from controllers.hashing import PROTO_TCP, FiveTuple
from controllers.hedera import Candidates
from controllers.routing import check_routing, path, tables_of
from controllers.scheduler import FlowCount
from engines.scheduling import numbers
from fabric._core import Graph, VirtualFabric
from model.network_plan import network_plan, port_names
from model.spec import LinkSpec
from topos import Layer, Topology, build
from topos.topology import Builder


def simple_paths(near: list[list[int]], source: int, target: int, most_links: int) -> list[list[int]]:
    """Return all paths without a repeated node, shortest first, then in lexicographic order."""
    found, waiting = [], [[source]]
    while waiting:
        walked = waiting.pop()
        if walked[-1] == target:
            found.append(walked)
        elif len(walked) <= most_links:
            waiting += [[*walked, node] for node in near[walked[-1]] if node not in walked]
    return sorted(found, key=lambda walked: (len(walked), walked))


@settings(deadline=None, max_examples=200)
@given(st.integers(2, 8), st.data(), st.integers(1, 40), st.integers(1, 8))
def test_the_k_shortest_are_the_first_of_all_simple_paths(
    nodes: int, data: st.DataObject, k: int, most_links: int
) -> None:
    pairs = [(a, b) for a in range(nodes) for b in range(a)]
    links = data.draw(st.lists(st.sampled_from(pairs), unique=True))
    near: list[list[int]] = [[] for _ in range(nodes)]
    for a, b in links:
        near[a].append(b)
        near[b].append(a)
    source, target = data.draw(st.lists(st.integers(0, nodes - 1), min_size=2, max_size=2, unique=True))
    found = Graph(near).k_shortest(source, target, k, most_links)
    assert found == simple_paths(near, source, target, most_links)[:k]


def flow(topology: Topology, sport: int, src: int = 0, dst: int = -1) -> FiveTuple:
    return FiveTuple(topology.nics[src].ip, topology.nics[dst].ip, PROTO_TCP, sport, 80)


def test_flows_use_the_listed_paths_evenly() -> None:
    topology = build("jf", {"switches": 20, "ports": 6, "servers": 2})
    tables = tables_of(topology, "ksp:8")
    taken = Counter(path(topology, tables, "ksp:8", 1, flow(topology, sport)) for sport in range(4000))
    ends = topology.nics[0].switch, topology.nics[-1].switch
    assert tables.lists is not None
    listed = {each.nodes for each in tables.lists.between(*ends)}
    assert {nodes[1:-1] for nodes in taken} == listed and len(listed) == 8
    assert max(abs(count - 500) for count in taken.values()) < 5 * math.sqrt(500)


def unequal() -> Topology:
    """Return two leaves and three spines: one is fast, one has a slow link, the third is between them."""
    net = Builder("file", {})
    hosts = [net.host(f"h{i}") for i in range(2)]
    leaves = [net.switch(f"l{i}", Layer.EDGE) for i in range(2)]
    spines = [net.switch(f"s{i}", Layer.CORE) for i in range(3)]
    for i, host in enumerate(hosts):
        net.attach(host, leaves[i], f"10.0.{i}.2")
    for leaf, speeds in zip(leaves, ((3, 3, 2), (3, 1, 2)), strict=True):
        for spine, speed in zip(spines, speeds, strict=True):
            net.link(leaf, spine, speed)
    return net.build()


def test_flows_are_in_proportion_to_what_next_hops_carry() -> None:
    """A next hop carries no more than the slowest link behind it."""
    topology = unequal()
    tables = tables_of(topology, "wcmp")
    assert [hop.paths for hop in tables.group(topology.index("l0"), 1)] == [3, 1, 2]
    taken = Counter(path(topology, tables, "wcmp", 1, flow(topology, sport))[2] for sport in range(6000))
    for spine, share in zip(("s0", "s1", "s2"), (3, 1, 2), strict=True):
        assert abs(taken[topology.index(spine)] - 1000 * share) < 5 * math.sqrt(1000 * share)


def test_the_core_weighs_next_hops_alike() -> None:
    topology = unequal()
    tables = tables_of(topology, "wcmp")
    fabric = VirtualFabric(
        network_plan(topology, tables, LinkSpec(10.0, queue_pkts=0, nic_queue_pkts=0), "wcmp", 1)
    )
    expected: Counter[tuple[str, str]] = Counter()
    for sport in range(500):
        each = flow(topology, sport)
        fabric.inject(0, 0, 1500, numbers(each))
        nodes = path(topology, tables, "wcmp", 1, each)
        expected.update(pairwise(topology.nodes[node].name for node in nodes))
    fabric.run_until(10**14)
    sent = fabric.counters()["tx_packets"].tolist()
    ends = (names[:2] for names in port_names(topology))
    assert {hop: count for hop, count in zip(ends, sent, strict=True) if count} == expected


def test_where_links_are_equal_weights_are_those_of_ecmp() -> None:
    topology = build("ft", {"k": 4})
    tables = tables_of(topology, "wcmp")
    assert {hop.paths for group in tables.groups for hop in group} == {1}
    assert {tuple(hop.node for hop in group) for group in tables.groups} == {
        tuple(hop.node for hop in group) for group in ecmp_groups(topology).groups
    }


def test_schedulers_choose_among_the_listed_paths() -> None:
    topology = build("ft", {"k": 4})
    there = FlowCount(flow(topology, 1000), 0, ())
    listed = Candidates(topology, "ksp:6").of(there)
    assert [len(row) for row in listed.rows] == [4, 4, 4, 4, 6, 6]
    assert listed.links.shape == (6, 6)
    assert len(Candidates(topology, "wcmp").of(there)) == len(Candidates(topology).of(there)) == 4


def test_a_list_too_long_to_keep_is_refused_before_it_is_made() -> None:
    with pytest.raises(UsageError, match="k must be a whole number from 1"):
        check_routing("ksp:1.5", build("ft", {"k": 4}))
    with pytest.raises(UsageError, match="limit: choose a smaller network"):
        check_routing("ksp:64", build("ft", {"k": 32}))
    check_routing("ksp:8", build("ft", {"k": 32}))
