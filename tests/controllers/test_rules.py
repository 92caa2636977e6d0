"""Rules, followed switch by switch, lead every flow to its host on the path of its routing policy."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise, permutations

import pytest

from common.errors import UsageError
from controllers.groups import ecmp_groups
from controllers.hashing import FiveTuple
from controllers.routing import path, tables_of
from controllers.rules import POLICIES, Bucket, Choice, Routes, Rule
from tests.controllers.openflow.fake_switches import applies, tcp
from topos import Topology, build
from topos.topology import SwitchPorts

FT4 = build("ft", {"k": 4})
TREES = {"ft": {"k": 4}, "dhft": {"k": 4}, "vl2": {"da": 4, "servers": 4}, "ls": {"leaves": 3, "hosts": 4}}


def _ends(topology: Topology, rules: dict[int, list[Rule]], flow: FiveTuple, pick: int) -> tuple[int, ...]:
    """Return the nodes a packet passes under these rules; groups use their bucket number `pick`, modulo."""
    ports = SwitchPorts(topology)
    src = topology.nic_by_ip(flow.src)
    nodes = [src.host, src.switch]
    while nodes[-1] in topology.switches and len(nodes) < 20:
        fitting = [rule for rule in rules.get(topology.dpid(nodes[-1]), []) if applies(rule.match, flow)]
        assert len(fitting) == 1, (nodes, fitting)
        to = fitting[0].to
        port = to.buckets[pick % len(to.buckets)].port if isinstance(to, Choice) else to
        nodes.append(ports.neighbour(nodes[-1], port))
    return tuple(nodes)


def _by_switch(rules: list[Rule]) -> dict[int, list[Rule]]:
    found: dict[int, list[Rule]] = {}
    for rule in rules:
        found.setdefault(rule.dpid, []).append(rule)
    return found


@pytest.mark.parametrize("policy", ["hashed", "ecmp", "spanning-tree"])
@pytest.mark.parametrize("kind", TREES)
def test_a_flows_rules_lead_along_the_path_of_the_routing_library(kind: str, policy: str) -> None:
    topology = build(kind, TREES[kind])
    routes, tables = Routes(topology, policy, 7), ecmp_groups(topology)
    src, dst = topology.nics[0], topology.nics[-1]
    for sport in range(2000, 2030):
        flow = tcp(src.ip, dst.ip, sport)
        if kind == "dhft":
            flow = tcp(src.ip, topology.nics_of(dst.host)[0].ip, sport)
        nodes = routes.path(flow)
        assert nodes == path(topology, tables, policy, 7, flow)
        rules = routes.rules(flow, nodes)
        assert [rule.dpid for rule in rules] == [topology.dpid(switch) for switch in reversed(nodes[1:-1])]
        assert _ends(topology, _by_switch(list(rules)), flow, 0) == nodes


@pytest.mark.parametrize("policy", ["hashed", "ecmp", "spanning-tree"])
@pytest.mark.parametrize("kind", TREES)
def test_tables_lead_every_pair_to_its_host_on_a_shortest_path(kind: str, policy: str) -> None:
    topology = build(kind, TREES[kind])
    routes, tables = Routes(topology, policy, 7), ecmp_groups(topology)
    rules = _by_switch([rule for switch in topology.switches for rule in routes.table(switch)])
    for src, dst in permutations(topology.nics[:6] + topology.nics[-6:], 2):
        column = tables.attach.index(dst.switch)
        if src.host == dst.host or not tables.path_count(src.switch, column):
            continue
        for pick in range(4):
            nodes = _ends(topology, rules, tcp(src.ip, dst.ip), pick)
            assert nodes in topology.shortest_paths(src.host, dst.host)
            assert nodes[-2] == dst.switch


def test_a_fat_trees_table_has_one_rule_per_other_edge_switch_and_per_host_below() -> None:
    routes = Routes(FT4, "hashed", 1)
    sizes = Counter(len(routes.table(switch)) for switch in FT4.switches)
    assert sizes == {9: 8, 8: 12}  # edge: 7 others and 2 hosts; aggregation and core: 8 edge switches
    choices = {rule.to for rule in routes.table(FT4.index("p0e0")) if isinstance(rule.to, Choice)}
    own = {choice.buckets: choice for choice in choices}
    assert own.keys() == {(Bucket(3, 2), Bucket(4, 2)), (Bucket(3, 1), Bucket(4, 1))}
    assert {choice.number for choice in choices} == {1, 2}


def test_every_switch_hashes_with_a_seed_of_its_own() -> None:
    routes = Routes(FT4, "ecmp", 1)
    seeds = {
        rule.to.seed
        for switch in FT4.switches
        for rule in routes.table(switch)
        if isinstance(rule.to, Choice)
    }
    assert len(seeds) == 16  # cores have no choice


def test_downward_rules_are_those_of_the_hosts_below() -> None:
    routes = Routes(FT4, "hashed", 1)
    count = {FT4.nodes[switch].name: len(routes.downward(switch)) for switch in FT4.switches}
    assert {count[name] for name in ("p0e0", "p3e1")} == {2}  # its hosts
    assert {count[name] for name in ("p0a0", "p3a1")} == {2}  # its pod's edge switches
    assert {count[f"c{number}"] for number in range(4)} == {8}  # all
    assert not any(isinstance(rule.to, Choice) for switch in FT4.switches for rule in routes.downward(switch))


def test_spanning_tree_uses_one_core_switch() -> None:
    routes = Routes(FT4, "spanning-tree", 1)
    passed = {routes.path(tcp(sport=sport))[3] for sport in range(2000, 2040)}
    assert passed == {FT4.index("c0")}


def test_random_draws_anew_and_repeats_with_its_seed() -> None:
    first, again, other = (Routes(FT4, "random", seed) for seed in (1, 1, 2))
    drawn = [[routes.path(tcp()) for _ in range(60)] for routes in (first, again, other)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert Counter(drawn[0]).keys() == set(FT4.shortest_paths(FT4.index("p0e0h0"), FT4.index("p3e1h1")))
    with pytest.raises(UsageError, match="--mode reactive"):
        first.table(FT4.switches[0])


def test_pairs_share_a_path_and_every_pair_has_one() -> None:
    rules = _by_switch(list(Routes(FT4, "hashed", 1).pair_rules()))
    cores: Counter[int] = Counter()
    for src, dst in permutations(FT4.nics, 2):
        nodes = _ends(FT4, rules, tcp(src.ip, dst.ip), 0)
        assert nodes in FT4.shortest_paths(src.host, dst.host)
        cores[nodes[len(nodes) // 2]] += 1
    assert set(FT4.switches[16:]) <= cores.keys()


def test_a_link_that_is_down_is_on_no_path() -> None:
    cut = FT4.link_between(FT4.index("p0e0"), FT4.index("p0a0"))
    whole, torn = Routes(FT4, "hashed", 1), Routes(FT4, "hashed", 1, {cut})
    paths = [torn.path(tcp(sport=sport)) for sport in range(2000, 2040)]
    assert {nodes[2] for nodes in paths} == {FT4.index("p0a1")}
    assert {whole.path(tcp(sport=sport))[2] for sport in range(2000, 2040)} > {FT4.index("p0a1")}
    assert not torn.leads_down(FT4.index("p0a0"), FT4.index("p0e0"))
    assert all(rule.to != 3 for rule in torn.table(FT4.index("p0e0")))
    rules = _by_switch(list(torn.rules(tcp(), paths[0])))
    assert _ends(FT4, rules, tcp(), 0) == paths[0]  # ports keep their numbers


def test_a_network_cut_in_two_says_so() -> None:
    edge = FT4.index("p0e0")
    cut = {FT4.link_between(edge, FT4.index(name)) for name in ("p0a0", "p0a1")}
    routes = Routes(FT4, "hashed", 1, cut)
    with pytest.raises(UsageError, match="no path joins"):
        routes.path(tcp())
    assert len(list(routes.pair_rules())) < len(list(Routes(FT4, "hashed", 1).pair_rules()))


def _nodes(*names: str) -> list[int]:
    return [FT4.index(name) for name in names]


def test_a_chosen_path_is_checked() -> None:
    routes = Routes(FT4, "hashed", 1, {FT4.link_between(*_nodes("p0a1", "c2"))})
    routes.check(tcp(), _nodes("p0e0h0", "p0e0", "p0a0", "c1", "p3a0", "p3e1", "p3e1h1"))
    for names, complaint in {
        ("p0e0h0", "p0e0", "p0a0", "c1", "p3a0", "p3e1", "p3e1h0"): "end p3e1 p3e1h1",
        ("p0e0h0", "p0e0", "p0a0", "c2", "p3a1", "p3e1", "p3e1h1"): "no link between p0a0 and c2",
        ("p0e0h0", "p0e0", "p0a1", "c2", "p3a1", "p3e1", "p3e1h1"): "no link between p0a1 and c2",
        ("p0e0h0", "p0e0", "p0a0", "p0e0", "p0a0", "c0", "p3a0", "p3e1", "p3e1h1"): "twice",
        (): "not be empty",
    }.items():
        with pytest.raises(UsageError, match=complaint):
            routes.check(tcp(), _nodes(*names))


@pytest.mark.parametrize(
    ("kind", "policy", "complaint"),
    [
        ("ft", "scatter", "choose one of hashed, ecmp"),
        ("ft", "valiant", "choose one of hashed, ecmp"),
        ("bcube", "hashed", "its hosts forward"),
    ],
)
def test_what_flow_tables_cannot_do_is_refused(kind: str, policy: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        Routes(build(kind, {"k": 4} if kind == "ft" else {"n": 2}), policy, 1)


def test_policies_here_are_the_routing_librarys_and_random() -> None:
    for policy in set(POLICIES) - {"random"}:
        assert path(FT4, tables_of(FT4, policy), policy, 3, tcp()) == Routes(FT4, policy, 3).path(tcp())


def test_listed_paths_have_rules_of_flows_only() -> None:
    routes = Routes(FT4, "ksp:8", 1)
    taken = {routes.path(tcp(sport=sport)) for sport in range(1000, 1200)}
    assert sorted(map(len, taken)) == [7, 7, 7, 7, 9, 9, 9, 9]
    for nodes in taken:
        routes.check(tcp(), nodes)
        assert len(routes.rules(tcp(), nodes)) == len(nodes) - 2
    for rules in (routes.table, routes.downward):
        with pytest.raises(UsageError, match="--mode reactive"):
            rules(FT4.switches[0])


def test_paths_that_a_cut_link_is_on_are_replaced() -> None:
    cut = FT4.link_between(*_nodes("p0a1", "c2"))
    torn = Routes(FT4, "ksp:8", 1, {cut})
    taken = {torn.path(tcp(sport=sport)) for sport in range(1000, 1200)}
    gone = set(_nodes("p0a1", "c2"))
    assert len(taken) == 8 and not any(gone == set(hop) for nodes in taken for hop in pairwise(nodes))
