"""Invariants of the graph of any topology: what the constructor refuses, and which paths there are."""

from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import UsageError
from topos import TOPOLOGIES, Kind, Layer, Link, Nic, Node, Topology, build, parse

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
    apart = topology.islands[src] != topology.islands[dst]
    planes = topology.kind in {"dual_homed_fat_tree", "two_bottlenecks"}
    assert bool(paths) != apart or (planes and not paths), "only planes meet in a host without a path"
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
        ((HOST, SWITCH), (Link(0, 1), Link(0, 1)), (NIC,), "same pair"),
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
        ("fat_tree", {"k": 256}, "not 256"),
        ("dhft", {"k": 7}, "even number from 4"),
        ("star", {"n": 1}, "a number from 2"),
        ("ft", {}, "needs k"),
        ("ft", {"n": 4}, "no parameter 'n'"),
        ("ft", {"k": 4, "hosts": 3}, "no parameter 'hosts': it takes k, an even number from 4 to 254"),
        ("vl2", {"da": 3}, "da must be an even number from 2"),
        ("bcube", {"n": 2, "k": 4}, "k must be a number from 0 to 3"),
        ("db", {"lanes": 2}, "needs n: give a number from 1"),
        ("db", {"n": 2, "lanes": 0}, "lanes must be a number from 1 to 254, not 0"),
        ("two", {"first": 252}, "first must be a number from 0 to 251"),
        ("jellyfish", {"k": 4}, r"unknown topology 'jellyfish': choose one of fat_tree \(ft\)"),
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
