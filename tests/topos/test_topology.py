"""Topologies: graphs by hand, their paths and sizes, and trees."""

from __future__ import annotations

import itertools
import math
import re
import time
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topos
from common.errors import UsageError
from topos import TOPOLOGIES, Kind, Layer, Link, Nic, Node, Topology, build, parse
from topos.cloud import is_ours, rack_of, uplinks
from topos.cloud import paths_between as racks_paths
from topos.dual_homed_fat_tree import hosts_per_pair
from topos.topology import Builder, SwitchPorts, interface_name

ANY_TOPOLOGY = st.one_of(
    st.tuples(st.sampled_from(["ft", "dhft"]), st.sampled_from([4, 6, 8, 10])).map(
        lambda pair: build(pair[0], {"k": pair[1]})
    ),
    st.integers(2, 300).map(lambda n: build("star", {"n": n})),
    st.tuples(st.sampled_from([2, 4]), st.sampled_from([2, 6])).map(
        lambda p: build("vl2", {"da": p[0], "di": p[1]})
    ),
    st.integers(1, 5).map(lambda n: build("ls", {"leaves": n})),
    st.tuples(st.integers(2, 4), st.integers(0, 2)).map(lambda p: build("bcube", {"n": p[0], "k": p[1]})),
    st.integers(1, 5).map(lambda times: build("ft", {"k": 4, "oversubscription": times})),
    st.tuples(st.integers(1, 5), st.integers(1, 4)).map(lambda p: build("db", {"n": p[0], "lanes": p[1]})),
    st.tuples(st.integers(2, 9), st.integers(1, 5), st.integers(0, 3)).map(
        lambda p: build("cloud", dict(zip(("n", "racks", "tenants"), p, strict=True)))
    ),
    st.integers(2, 300).map(lambda k: build("single", {"k": k})),
    st.tuples(st.integers(2, 9), st.integers(1, 3)).map(lambda p: build("linear", {"k": p[0], "n": p[1]})),
    st.tuples(st.integers(1, 4), st.integers(2, 4)).map(
        lambda p: build("tree", {"depth": p[0], "fanout": p[1]})
    ),
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 3)).map(
        lambda p: build("two", dict(zip(("first", "second", "lanes"), p, strict=True)))
    ),
)
HOST = Node("h", Kind.HOST, Layer.HOST)
SWITCH = Node("s", Kind.SWITCH, Layer.EDGE)
NIC = Nic(0, 1, 0, "10.0.0.1", "02:00:00:00:00:00", "h-eth0")


@settings(deadline=None, max_examples=25)
@given(ANY_TOPOLOGY)
def test_addresses_are_unique_private_and_one_per_nic(topology: Topology) -> None:
    assert len({nic.ip for nic in topology.nics}) == len(topology.nics)
    assert len({nic.mac for nic in topology.nics}) == len(topology.nics)
    for number, nic in enumerate(topology.nics):
        assert nic.ip.startswith("10.") and all(int(octet) <= 254 for octet in nic.ip.split("."))
        assert nic.ip.rsplit(".")[-1] != "0"
        assert nic.mac.startswith("02:") and int(nic.mac.replace(":", "")[4:], 16) == number
        assert topology.link_between(nic.switch, nic.host) == nic.link
        assert topology.nic_by_ip(nic.ip) is nic


@settings(deadline=None, max_examples=25)
@given(ANY_TOPOLOGY, st.data())
def test_shortest_paths_are_simple_equal_long_sorted_walks(topology: Topology, data: st.DataObject) -> None:
    some_node = st.integers(0, len(topology.nodes) - 1)
    src, dst = data.draw(some_node), data.draw(some_node)
    paths = topology.shortest_paths(src, dst)
    assert list(paths) == sorted(set(paths))
    reached = ({topology.islands[n] for n in (node, *topology.adjacency[node])} - {-1} for node in (src, dst))
    assert bool(paths) == (src == dst or bool(set.intersection(*reached)))
    links = {len(path) - 1 for path in paths}
    assert not paths or links == {topology.distances.between(src, dst)} == {
        topology.distances.between(dst, src)
    }
    for path in paths:
        assert path[0] == src and path[-1] == dst and len(set(path)) == len(path)
        assert topology.hosts_forward or all(topology.nodes[n].kind is Kind.SWITCH for n in path[1:-1])
        for a, b in itertools.pairwise(path):
            topology.link_between(a, b)
    assert {path[::-1] for path in paths} == set(topology.shortest_paths(dst, src))


def test_interfaces_are_named_after_their_host() -> None:
    topology = build("dhft", {"k": 4})
    host = topology.index("p1e2h1")
    assert [nic.name for nic in topology.nics_of(host)] == ["p1e2h1-eth0", "p1e2h1-eth1"]
    assert topology.nics_of(topology.switches[0]) == ()


def test_unknown_name_suggests_close_ones() -> None:
    with pytest.raises(UsageError, match=r"did you mean .*p0e0h1"):
        build("ft", {"k": 4}).index("p0e0h11")
    with pytest.raises(UsageError, match="no link between p0e0h0 and c0"):
        topology = build("ft", {"k": 4})
        topology.link_between(topology.index("p0e0h0"), topology.index("c0"))
    with pytest.raises(UsageError, match=r"10\.9\.9\.9"):
        build("star", {"n": 2}).nic_by_ip("10.9.9.9")


def test_hosts_do_not_forward() -> None:
    """s - h - s2 is not a path between the switches, though both reach h."""
    nodes = (HOST, SWITCH, Node("s2", Kind.SWITCH, Layer.EDGE))
    nics = (NIC, Nic(0, 2, 1, "10.0.0.2", "02:00:00:00:00:01", "h-eth1"))
    topology = Topology("two", {}, nodes, (Link(0, 1), Link(0, 2)), nics)
    assert topology.shortest_paths(1, 2) == ()
    assert topology.shortest_paths(2, 1) == ()
    assert topology.shortest_paths(0, 2) == ((0, 2),)
    assert topology.shortest_paths(2, 2) == ((2,),)


@pytest.mark.parametrize(
    ("nodes", "links", "nics", "complaint"),
    [
        ((HOST, HOST), (), (), "share a name"),
        ((Node("e0_1", Kind.SWITCH, Layer.EDGE),), (), (), "letters and digits"),
        ((HOST, SWITCH), (Link(0, 2),), (), "lacks an end"),
        ((HOST, SWITCH), (Link(1, 0),), (), "lower-layer end first"),
        ((HOST, SWITCH), (Link(0, 1), Link(0, 1)), (NIC,), "two links join h and s"),
        ((HOST, SWITCH), (Link(0, 1),), (), "exactly one NIC"),
        ((HOST, SWITCH), (Link(0, 1),), (NIC, NIC), "share an IP"),
    ],
)
def test_construction_refuses_broken_graphs(
    nodes: tuple[Node, ...], links: tuple[Link, ...], nics: tuple[Nic, ...], complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        Topology("broken", {}, nodes, links, nics)


@pytest.mark.parametrize(
    ("kind", "params", "complaint"),
    [
        ("ft", {"k": 5}, "k must be an even number from 4 to 254, not 5"),
        ("ft", {"k": 2}, "even number from 4"),
        ("dhft", {"k": 7}, "even number from 4"),
        ("vl2", {"da": 3}, "da must be an even number from 2"),
        ("fat_tree", {"k": 256}, "not 256"),
        ("star", {"n": 1}, "a number from 2"),
        ("ft", {}, "needs k"),
        ("ft", {"n": 4}, "no parameter 'n'"),
        ("ft", {"k": 4, "hosts": 3}, "no parameter 'hosts': it takes k, an even number from 4 to 254"),
        ("bcube", {"n": 2, "k": 4}, "k must be a number from 0 to 3"),
        ("db", {"lanes": 2}, "needs n: give a number from 1"),
        ("db", {"n": 2, "lanes": 0}, "lanes must be a number from 1 to 254, not 0"),
        ("two", {"first": 252}, "first must be a number from 0 to 251"),
        ("slimfly", {"k": 4}, r"unknown topology 'slimfly': choose one of fat_tree \(ft\)"),
    ],
)
def test_build_says_what_to_do(kind: str, params: dict[str, int], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint) as caught:
        build(kind, params)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["ft,4", "fat_tree,4", "ft,k=4", "ft, 4"])
def test_parse_accepts_names_and_aliases(text: str) -> None:
    assert parse(text) == ("fat_tree", {"k": 4})


def test_parse_accepts_several_parameters() -> None:
    assert parse("db,2,lanes=6") == parse("dumbbell,n=2,6") == ("dumbbell", {"n": 2, "lanes": 6})
    assert build(*parse("db,2")).params == {"n": 2, "lanes": 1, "access": 1}


@pytest.mark.parametrize("text", ["", "ft", "ft,", "star,4,4", "ft,4,1,1", "ft,n=4", "ft,four", "tf,4"])
def test_parse_refuses_with_one_line(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert "\n" not in str(caught.value)


def test_registry_round_trip() -> None:
    for kind, family in TOPOLOGIES.items():
        if family.size.text:
            continue
        topology = build(*parse(f"{family.alias},{family.size.minimum}"))
        assert topology.kind == kind
        assert build(kind, topology.params) == topology


def test_a_thousand_hosts_build_at_once() -> None:
    start = time.process_time()
    topology = build("ft", {"k": 16})
    assert (len(topology.hosts), len(topology.switches)) == (1024, 320)
    assert time.process_time() - start < 2, "expected well under half a second; 2 s allows for a busy machine"


def test_defaults_are_the_same_given_or_not() -> None:
    plain, typed = {"k": 8}, {"k": 8, "oversubscription": 1}
    assert topos.identity("fat_tree", plain) == topos.identity("fat_tree", typed)
    assert topos.shape("fat_tree", typed) == ()


def test_every_parameter_counts_but_replicas_are_repetitions_of_one_network() -> None:
    plain, four = {"k": 8}, {"k": 8, "oversubscription": 4}
    assert topos.identity("fat_tree", plain) != topos.identity("fat_tree", four)
    assert topos.shape("fat_tree", four) == (("oversubscription", 4),)
    assert topos.identity("bcube", {"n": 4, "k": 2}) != topos.identity("bcube", {"n": 4, "k": 1})
    assert topos.identity("dumbbell", {"n": 2, "lanes": 6}) == topos.identity("dumbbell", {"n": 2})


@pytest.mark.parametrize("kind", [kind for kind, f in topos.TOPOLOGIES.items() if not f.size.text])
def test_the_usual_network_of_any_kind_has_no_shape(kind: str) -> None:
    family = topos.TOPOLOGIES[kind]
    assert topos.shape(kind, {family.size.name: 4}) == ()
    assert len(topos.size_words(kind, {family.size.name: 4})) == 1


def _names(topology: Topology, path: tuple[int, ...]) -> list[str]:
    return [topology.nodes[node].name for node in path]


@pytest.mark.parametrize(("n", "lanes"), [(1, 1), (2, 6), (9, 3), (252, 1), (2, 254)])
def test_every_pair_of_a_lane_crosses_its_one_bottleneck(n: int, lanes: int) -> None:
    topology = build("dumbbell", {"n": n, "lanes": lanes})
    assert (len(topology.hosts), len(topology.switches)) == (2 * n * lanes, 2 * lanes)
    assert len(topology.links) == 2 * n * lanes + lanes
    for lane, pair in itertools.product({0, lanes - 1}, {0, n - 1}):
        ends = [topology.index(f"{side}{lane}h{pair}") for side in "lr"]
        (path,) = topology.shortest_paths(*ends)
        assert _names(topology, path) == [f"l{lane}h{pair}", f"l{lane}", f"r{lane}", f"r{lane}h{pair}"]


def test_replicas_are_islands() -> None:
    topology = build("dumbbell", {"n": 2, "lanes": 3})
    island = {topology.nodes[i].name: topology.islands[i] for i in topology.switches}
    assert len(set(island.values())) == 3
    assert all(island[f"l{lane}"] == island[f"r{lane}"] for lane in range(3))
    assert set(topology.islands) == {-1, *island.values()}
    assert len(set(build("two_bottlenecks", {"first": 1, "lanes": 4}).islands) - {-1}) == 8
    assert set(build("fat_tree", {"k": 4}).islands) == {-1, 16}


@pytest.mark.parametrize(
    ("kind", "params"), [("db", {"n": 2, "lanes": 3}), ("two", {"first": 1, "lanes": 2}), ("dhft", {"k": 4})]
)
def test_hosts_that_share_an_island_have_nics_to_join(kind: str, params: dict[str, int]) -> None:
    topology = build(kind, params)
    reached = {host: topology.islands_of(host) for host in topology.hosts}
    for src, dst in itertools.permutations(topology.hosts, 2):
        assert bool(topology.nic_pairs(src, dst)) is not reached[src].isdisjoint(reached[dst])
    assert topology.is_joined == (len(set(topology.islands) - {-1}) == 1)


@pytest.mark.parametrize(
    ("a", "b", "joined"),
    [
        ("x", "x", ["00"]),
        ("xy", "xy", ["00", "11"]),
        ("xy", "yx", ["01", "10"]),
        ("xy", "x", ["00"]),
        ("yx", "x", ["10"]),
        ("x", "yx", ["01", "01"]),
        ("xX", "xX", ["00", "11"]),
        ("x", "xX", ["00", "01"]),
        ("xy", "yYx", ["02", "11", "02", "10", "02", "10"]),
        ("x", "y", []),
    ],
)
def test_subflows_join_nics_that_a_path_joins(a: str, b: str, joined: list[str]) -> None:
    net = topos.topology.Builder("planes", {})
    switch = {name: net.switch(f"s{number}", Layer.EDGE) for number, name in enumerate("xXyY")}
    net.link(switch["x"], switch["X"])
    net.link(switch["y"], switch["Y"])
    hosts = [net.host("a"), net.host("b")]
    for host, plane in zip(hosts, (a, b), strict=True):
        for number, name in enumerate(plane):
            net.attach(host, switch[name], f"10.0.{host}.{number + 2}")
    pairs = net.build().nic_pairs(*hosts)
    assert [local.name[-1] + remote.name[-1] for local, remote in pairs] == joined


@pytest.mark.parametrize(("first", "second", "lanes"), [(3, 1, 2), (0, 0, 1), (251, 251, 1), (1, 0, 127)])
def test_the_dual_homed_pair_has_a_path_through_each_bottleneck(first: int, second: int, lanes: int) -> None:
    topology = build("two_bottlenecks", {"first": first, "second": second, "lanes": lanes})
    assert len(topology.hosts) == 2 * lanes * (1 + first + second)
    ends = [topology.nics_of(topology.hosts[i])[0].switch for i in (0, len(topology.hosts) // lanes - 1)]
    assert topology.shortest_paths(*ends), "the baseline flow has a path"
    for lane in {0, lanes - 1}:
        left, right = (topology.nics_of(topology.index(f"{side}{lane}h0")) for side in "lr")
        for bottleneck, here, there in zip("ab", left, right, strict=True):
            switches = [topology.nodes[nic.switch].name for nic in (here, there)]
            assert switches == [f"l{lane}{bottleneck}", f"r{lane}{bottleneck}"]
            assert len(topology.shortest_paths(here.switch, there.switch)) == 1
        assert topology.shortest_paths(left[0].switch, right[1].switch) == ()
        for bottleneck, count in (("a", first), ("b", second)):
            below = topology.adjacency[topology.index(f"l{lane}{bottleneck}")]
            hosts = [node for node in below if topology.nodes[node].kind is Kind.HOST]
            assert len(hosts) == 1 + count


@pytest.mark.parametrize("kind", [kind for kind, family in TOPOLOGIES.items() if not family.size.text])
def test_every_link_end_at_a_switch_has_one_port_and_ports_count_from_one(kind: str) -> None:
    topology = build(kind, {TOPOLOGIES[kind].size.name: max(2, TOPOLOGIES[kind].size.minimum)})
    ports = SwitchPorts(topology)
    ends = 0
    for switch, links in ports.links.items():
        assert [ports.port_of(switch, link) for link in links] == list(range(1, len(links) + 1))
        assert list(links) == sorted(links)
        for port, link in enumerate(links, start=1):
            assert ports.link_at(switch, port) == link
            assert {switch, ports.neighbour(switch, port)} == set(topology.links[link].ends)
            assert ports.towards(switch, ports.neighbour(switch, port)) == port
        ends += len(links)
    at_switches = [topology.nodes[end].kind is Kind.SWITCH for link in topology.links for end in link.ends]
    assert ends == sum(at_switches)


def test_interfaces_have_unique_names_that_the_kernel_takes_whatever_nodes_are_called() -> None:
    net = Builder("file", {})
    switches = [net.switch(name, Layer.EDGE) for name in ("tenletters", "tenlettert")]
    for number in range(12):
        host = net.host(f"longhostx{chr(97 + number)}")
        for switch in switches:
            net.attach(host, switch, f"10.0.{switch}.{number + 1}")
    topology = net.build()
    ports = SwitchPorts(topology)
    ours = [nic.name for nic in topology.nics]
    theirs = [
        interface_name(topology.nodes[switch].name, switch, ports.port_of(switch, link))
        for switch in switches
        for link in ports.links[switch]
    ]
    assert len({*ours, *theirs}) == 48
    assert all(len(name) <= 15 for name in (*ours, *theirs))


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("single,3", "h1-s1:1 h2-s1:2 h3-s1:3"),
        ("linear,3", "h1-s1:1 h2-s2:1 s2:2-s1:2 h3-s3:1 s3:2-s2:3"),
        ("linear,2,2", "h1s1-s1:1 h2s1-s1:2 h1s2-s2:1 h2s2-s2:2 s2:3-s1:3"),
        ("tree,2", "h1-s2:1 h2-s2:2 s2:3-s1:1 h3-s3:1 h4-s3:2 s3:3-s1:2"),
    ],
)
def test_mininets_topologies_have_its_names_ports_and_addresses(text: str, links: str) -> None:
    topology = build(*parse(text))
    ports = SwitchPorts(topology)

    def end(node: int, link: int) -> str:
        name = topology.nodes[node].name
        return name if node in topology.hosts else f"{name}:{ports.port_of(node, link)}"

    found = ["-".join(end(node, i) for node in link.ends) for i, link in enumerate(topology.links)]
    assert found == links.split()
    assert [topology.nics_of(host)[0].ip for host in topology.hosts] == [
        f"10.0.0.{number}" for number in range(1, len(topology.hosts) + 1)
    ]


@pytest.mark.parametrize(
    ("kind", "params", "ids"),
    [
        ("ft", {"k": 4}, range(1, 21)),
        ("tree", {"depth": 2, "fanout": 3}, range(1, 5)),
        ("star", {"n": 3}, [1]),
    ],
)
def test_datapath_ids_begin_at_1_as_mininets(
    kind: str, params: dict[str, int | str], ids: Iterable[int]
) -> None:
    topology = build(kind, params)
    ports = SwitchPorts(topology)
    assert [topology.dpid(switch) for switch in topology.switches] == list(ids)
    assert all(ports.switch(topology.dpid(switch)) == switch for switch in topology.switches)


def test_switches_called_s1_s2_have_these_datapath_ids_in_any_order() -> None:
    net = Builder("file", {})
    switches = [net.switch(name, Layer.EDGE) for name in ("s10", "s2", "s1")]
    for number, switch in enumerate(switches):
        net.attach(net.host(f"h{number}"), switch, f"10.0.0.{number + 1}")
    topology = net.build()
    assert [topology.dpid(switch) for switch in switches] == [10, 2, 1]
    assert [SwitchPorts(topology).switch(number) for number in (10, 2, 1)] == switches


@pytest.mark.parametrize("wrong", [-1, 0, 21, 36])
def test_a_datapath_id_of_no_switch_is_refused(wrong: int) -> None:
    with pytest.raises(UsageError, match="no switch with datapath id"):
        SwitchPorts(build("ft", {"k": 4})).switch(wrong)


def test_ports_that_are_not_there_are_refused() -> None:
    topology = build("ft", {"k": 4})
    ports, edge = SwitchPorts(topology), topology.index("p0e0")
    for port in (0, 5):
        with pytest.raises(UsageError, match="no port"):
            ports.link_at(edge, port)
    with pytest.raises(UsageError, match="no port"):
        ports.port_of(topology.index("p0e0h0"), 0)


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
