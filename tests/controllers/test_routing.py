"""Policies: unranking is exact, choices are uniform at every layer, seeds matter."""

from __future__ import annotations

import itertools
import math
import random
import time
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import UsageError
from controllers.groups import EcmpTables, NextHop, ecmp_groups
from controllers.hashing import PROTO_TCP, PROTO_UDP, FiveTuple, flow_hash, mix, switch_seed
from controllers.routing import DIGITS, POLICIES, Policy, canonical, parallel_path, parse, path
from topos import Kind, Parameter, Topology, build

FT8 = build("ft", {"k": 8})
FT8_TABLES = ecmp_groups(FT8)
DHFT6 = build("dhft", {"k": 6})
DHFT6_TABLES = ecmp_groups(DHFT6)
SEEDS = st.integers(0, 2**32 - 1)
PORTS = st.integers(0, 65535)
BY_FLOW = ("ecmp", "hashed")


def _flow(sport: int, src: str = "10.0.0.2", dst: str = "10.7.3.5") -> FiveTuple:
    return FiveTuple(src, dst, PROTO_TCP, sport, 5001)


@settings(deadline=None, max_examples=80)
@given(st.sampled_from([FT8, DHFT6]), SEEDS, PORTS, st.data())
def test_hashed_is_the_ranked_sorted_path(
    topology: object, seed: int, sport: int, data: st.DataObject
) -> None:
    net, tables = (FT8, FT8_TABLES) if topology is FT8 else (DHFT6, DHFT6_TABLES)
    src, dst = data.draw(st.sampled_from(net.nics)), data.draw(st.sampled_from(net.nics))
    if src.host == dst.host:
        return
    flow = _flow(sport, src.ip, dst.ip)
    paths = sorted(net.shortest_paths(src.switch, dst.switch))
    expected = paths[mix(flow_hash(flow), seed) % len(paths)]
    assert path(net, tables, "hashed", seed, flow) == (src.host, *expected, dst.host)


@settings(deadline=None, max_examples=60)
@given(SEEDS, PORTS, st.sampled_from(BY_FLOW), st.data())
def test_every_policy_takes_a_shortest_path_and_repeats_it(
    seed: int, sport: int, policy: str, data: st.DataObject
) -> None:
    src, dst = data.draw(st.lists(st.sampled_from(FT8.nics), min_size=2, max_size=2, unique=True))
    flow = _flow(sport, src.ip, dst.ip)
    taken = path(FT8, FT8_TABLES, policy, seed, flow)
    assert taken in FT8.shortest_paths(src.host, dst.host)
    assert taken == path(FT8, FT8_TABLES, policy, seed, flow)


@pytest.mark.parametrize("policy", BY_FLOW)
def test_all_sixteen_paths_are_used_evenly(policy: str) -> None:
    counts = Counter(path(FT8, FT8_TABLES, policy, 1, _flow(port)) for port in range(32768, 32768 + 3200))
    assert len(counts) == 16
    assert max(abs(count - 200) for count in counts.values()) < 5 * 200**0.5


@pytest.mark.parametrize("policy", BY_FLOW)
def test_no_polarisation_between_layers(policy: str) -> None:
    """Given the edge switch's choice, the aggregation switch's is still uniform over its four uplinks;
    with one hash for both, each aggregation switch would use a quarter of them."""
    by_agg: dict[int, Counter[int]] = defaultdict(Counter)
    for port in range(32768, 32768 + 6400):
        taken = path(FT8, FT8_TABLES, policy, 3, _flow(port))
        by_agg[taken[2]][taken[3]] += 1
    assert len(by_agg) == 4
    for cores in by_agg.values():
        assert len(cores) == 4
        share = sum(cores.values()) / 4
        assert max(abs(count - share) for count in cores.values()) < 5 * share**0.5


@pytest.mark.parametrize("policy", BY_FLOW)
def test_another_seed_lets_other_flows_collide(policy: str) -> None:
    flows = [_flow(port) for port in range(33000, 33064)]

    def partition(seed: int) -> set[frozenset[int]]:
        sharing: dict[tuple[int, ...], set[int]] = defaultdict(set)
        for flow in flows:
            sharing[path(FT8, FT8_TABLES, policy, seed, flow)].add(flow.sport)
        return {frozenset(ports) for ports in sharing.values()}

    assert partition(1) == partition(1)
    assert len(partition(1) & partition(2)) <= 2


def test_spanning_tree_is_the_first_path_whatever_the_flow() -> None:
    first = min(FT8.shortest_paths(FT8.index("p0e0h0"), FT8.index("p7e3h3")))
    for port in range(2000, 2020):
        assert path(FT8, FT8_TABLES, "spanning-tree", port, _flow(port)) == first


def test_digits_are_corrected_from_the_highest_to_the_lowest() -> None:
    net = build("bcube", {"n": 4, "k": 2})
    a, b = (net.nics_of(net.index(name))[0] for name in ("h000", "h123"))
    for port in range(2000, 2020):
        nodes = path(net, ecmp_groups(net), DIGITS, port, _flow(port, a.ip, b.ip))
        assert [net.nodes[node].name for node in nodes[::2]] == ["h000", "h100", "h120", "h123"]


def test_other_networks_have_no_digits() -> None:
    with pytest.raises(UsageError, match="fat_tree has none: choose another --routing"):
        path(FT8, FT8_TABLES, DIGITS, 1, _flow(1))


def test_below_one_switch_there_is_one_path() -> None:
    flow = _flow(33000, "10.0.0.2", "10.0.0.3")
    names = [FT8.nodes[node].name for node in path(FT8, FT8_TABLES, "ecmp", 9, flow)]
    assert names == ["p0e0h0", "p0e0", "p0e0h1"]


def test_the_address_chooses_the_nic() -> None:
    first, second = DHFT6.nics_of(DHFT6.index("p0e0h0"))
    assert path(DHFT6, DHFT6_TABLES, "hashed", 1, _flow(1, first.ip, "10.5.4.2"))[1] == first.switch
    assert path(DHFT6, DHFT6_TABLES, "hashed", 1, _flow(1, second.ip, "10.5.4.2"))[1] == second.switch


@pytest.mark.parametrize(
    ("policy", "src", "dst", "complaint"),
    [
        ("fastest", "10.0.0.2", "10.1.0.2", "fastest: unknown; choose from: hashed, ecmp"),
        ("scatter", "10.0.0.2", "10.1.0.2", "chooses a path per packet"),
        ("ecmp", "10.0.0.2", "10.0.0.2", "same host"),
        ("ecmp", "10.0.0.2", "10.200.0.2", "no host with address"),
    ],
)
def test_refusals(policy: str, src: str, dst: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        path(FT8, FT8_TABLES, policy, 1, _flow(1, src, dst))


def test_nics_of_different_planes_are_not_joined() -> None:
    net = build("dhft", {"k": 4})
    with pytest.raises(UsageError, match="use another NIC"):
        path(net, ecmp_groups(net), "hashed", 1, _flow(1, "10.0.0.2", "10.3.1.2"))


def test_valiant_passes_each_switch_with_hosts_equally_often() -> None:
    """Each of the 32 edge switches is equally likely, except the two at the ends, which are passed more
    often. Both halves are shortest paths."""
    counts: Counter[int] = Counter()
    for port in range(32768, 32768 + 6400):
        nodes = path(FT8, FT8_TABLES, "valiant", 1, _flow(port))
        passed = [node for node in nodes[2:-2] if node in FT8_TABLES.attach]
        counts.update(passed)
        by = passed[0] if passed else nodes[1]
        here = nodes.index(by)
        assert nodes[: here + 1] in FT8.shortest_paths(nodes[0], by) or not passed
        assert nodes[here:] in FT8.shortest_paths(by, nodes[-1]) or not passed
    assert len(counts) == 30
    assert max(abs(count - 200) for count in counts.values()) < 5 * 200**0.5


def test_valiant_stays_in_its_plane() -> None:
    net = build("dhft", {"k": 4})
    tables = ecmp_groups(net)
    first, last = net.nics_of(net.hosts[0]), net.nics_of(net.hosts[-1])
    for a, b in zip(first, last, strict=True):
        for port in range(2000, 2060):
            nodes = path(net, tables, "valiant", 1, _flow(port, a.ip, b.ip))
            assert nodes[0] == a.host and nodes[-1] == b.host and b.switch == nodes[-2]
            assert set(nodes[1:-1]) <= set(net.switches)


def test_bcube_paths_lead_through_hosts() -> None:
    net = build("bcube", {"n": 4, "k": 2})
    tables = ecmp_groups(net)
    a, b = (net.nics_of(net.index(name))[0] for name in ("h000", "h123"))
    taken = {path(net, tables, "hashed", 1, _flow(port, a.ip, b.ip)) for port in range(2000, 2100)}
    assert taken == set(net.shortest_paths(a.host, b.host)) and len(taken) == 6


NETWORKS: list[Topology] = [
    build("bcube", {"n": n, "k": k}) for n, k in ((4, 0), (2, 1), (5, 1), (3, 2), (2, 3))
]


def apart(n: int, src: int, dst: int, levels: int) -> list[bool]:
    return [src // n**level % n != dst // n**level % n for level in range(levels)]


@settings(deadline=None, max_examples=150)
@given(st.sampled_from(NETWORKS), st.data())
def test_one_path_per_nic_and_no_node_in_common(net: Topology, data: st.DataObject) -> None:
    some = st.sampled_from(net.hosts)
    src, dst = data.draw(st.lists(some, min_size=2, max_size=2, unique=True))
    detour = data.draw(st.integers(0, 2**32 - 1))
    n, levels = net.number("n"), net.number("k") + 1
    differ = apart(n, src, dst, levels)
    inner: list[set[int]] = []
    for level, nic in enumerate(net.nics_of(src)):
        nodes = parallel_path(net, src, dst, level, detour)
        assert nodes[0] == src and nodes[1] == nic.switch and nodes[-1] == dst
        assert all(net.link_between(a, b) >= 0 for a, b in itertools.pairwise(nodes))
        links = 2 * sum(differ) + (0 if differ[level] else 4)
        assert len(nodes) == len(set(nodes)) == links + 1
        inner.append(set(nodes[1:-1]))
    assert all(not a & b for a, b in itertools.combinations(inner, 2))


def test_a_detour_may_begin_with_any_neighbour() -> None:
    net = build("bcube", {"n": 5, "k": 1})
    src, dst = net.index("h00"), net.index("h01")
    second = {net.nodes[parallel_path(net, src, dst, 1, detour)[2]].name for detour in range(8)}
    assert second == {"h10", "h20", "h30", "h40"}


BCUBE = build("bcube", {"n": 3, "k": 2})
CASES: dict[str, tuple[Topology, EcmpTables]] = {}
for _kind, _k in (("ft", 4), ("ft", 8), ("dhft", 4), ("dhft", 6)):
    _topology = build(_kind, {"k": _k})
    CASES[f"{_kind},{_k}"] = (_topology, ecmp_groups(_topology))


@settings(deadline=None, max_examples=60)
@given(st.sampled_from([*CASES.values(), (BCUBE, ecmp_groups(BCUBE))]), st.data())
def test_groups_count_the_shortest_paths_beyond_each_next_hop(
    of: tuple[Topology, EcmpTables], data: st.DataObject
) -> None:
    """Hosts that forward have groups, too."""
    topology, tables = of
    switch = data.draw(st.sampled_from(topology.forwarders))
    target = data.draw(st.integers(0, len(tables.attach) - 1))
    paths = topology.shortest_paths(switch, tables.attach[target])
    assert tables.path_count(switch, target) == len(paths)
    expected = Counter(path[1] for path in paths if len(path) > 1)
    assert tables.group(switch, target) == tuple(NextHop(node, expected[node]) for node in sorted(expected))


@pytest.mark.parametrize("case", sorted(CASES))
def test_rows_of_hosts_and_of_the_switch_itself_are_empty(case: str) -> None:
    topology, tables = CASES[case]
    assert (tables.rows[list(topology.hosts)] == -1).all() and not tables.group(topology.hosts[0], 0)
    for position, switch in enumerate(tables.attach):
        assert tables.fib[tables.rows[switch], position] == -1
    assert tables.fib.dtype == np.int32 and not tables.fib.flags.writeable
    assert list(tables.attach) == sorted({nic.switch for nic in topology.nics})
    assert len(set(tables.groups)) == len(tables.groups)
    used = set(np.unique(tables.fib).tolist()) - {-1}
    assert used == set(range(len(tables.groups)))
    assert all(topology.nodes[hop.node].kind is Kind.SWITCH for group in tables.groups for hop in group)


def test_star_needs_no_groups() -> None:
    topology = build("star", {"n": 3})
    tables = ecmp_groups(topology)
    assert tables.groups == () and tables.path_count(topology.switches[0], 0) == 1


@pytest.mark.parametrize(("k", "seconds"), [(16, 2), (32, 5)])
def test_large_trees_take_seconds_at_most(k: int, seconds: float) -> None:
    topology = build("ft", {"k": k})
    start = time.process_time()
    tables = ecmp_groups(topology)
    assert time.process_time() - start < seconds
    last = len(tables.attach) - 1
    assert tables.path_count(tables.attach[0], last) == k * k // 4


U32 = st.integers(0, 2**32 - 1)


def chi_square_ok(counts: Counter[int], bins: int) -> bool:
    """Return whether the counts of `bins` bins look uniform: the statistic within 5 sigma of its mean."""
    total = sum(counts.values())
    expected = total / bins
    statistic = sum((counts[b] - expected) ** 2 / expected for b in range(bins))
    freedom = bins - 1
    sigma = math.sqrt(2 * freedom)
    return abs(statistic - freedom) <= 5 * sigma + 1


def tcp(sport: int, dport: int = 5001, src: str = "10.0.0.2", dst: str = "10.3.1.3") -> FiveTuple:
    return FiveTuple(src, dst, PROTO_TCP, sport, dport)


def test_flow_hash_vectors() -> None:
    """zlib's CRC-32 of the 13 bytes written out; the C++ core is tested against the same numbers."""
    assert flow_hash(tcp(40000)) == 0xF75B5894
    assert flow_hash(FiveTuple("255.255.255.255", "0.0.0.0", PROTO_UDP, 65535, 0)) == 0xC2E273D1


def test_fmix32_vectors() -> None:
    """Published values of murmur3's finaliser."""
    assert mix(0, 0) == 0
    assert mix(1, 0) == 0x514E28B7
    assert mix(0xFFFFFFFF, 0) == 0x81F16F39


def test_ports_count_for_tcp_and_udp_alone() -> None:
    icmp = FiveTuple("10.0.0.2", "10.3.1.3", 1, 8, 0)
    assert flow_hash(icmp) == flow_hash(FiveTuple(icmp.src, icmp.dst, 1, 0, 7))
    assert flow_hash(tcp(40000)) != flow_hash(tcp(40001))


@given(U32, U32, U32)
def test_mix_is_a_bijection_for_every_seed(a: int, b: int, seed: int) -> None:
    assert 0 <= mix(a, seed) < 2**32
    assert (mix(a, seed) == mix(b, seed)) == (a == b)


@pytest.mark.parametrize("bins", [2, 3, 4, 8, 16, 64])
@pytest.mark.parametrize("seed", [0, 1, 12345])
def test_random_flows_spread_evenly(bins: int, seed: int) -> None:
    rng = random.Random(seed)
    hosts = [f"10.{p}.{e}.{h + 2}" for p, e, h in itertools.product(range(8), range(4), range(4))]
    flows = (tcp(rng.randrange(32768, 61000), 5001, *rng.sample(hosts, 2)) for _ in range(8000))
    assert chi_square_ok(Counter(mix(flow_hash(flow), seed) % bins for flow in flows), bins)


@pytest.mark.parametrize("bins", [2, 4, 16])
@pytest.mark.parametrize("step", [1, 2, 4])
def test_consecutive_ports_spread_evenly(bins: int, step: int) -> None:
    """MPTCP subflows differ only in the source port, and the kernel assigns ports in steps."""
    ports = range(32768, 32768 + 6000 * step, step)
    counts = Counter(mix(flow_hash(tcp(port)), 7) % bins for port in ports)
    assert chi_square_ok(counts, bins)


def test_eight_consecutive_subflows_collide_like_random_ones() -> None:
    """8 subflows over 16 paths: 6.45 distinct on average, if independent."""
    distinct = [
        len({mix(flow_hash(tcp(base + i)), 3) % 16 for i in range(8)}) for base in range(33000, 57000, 12)
    ]
    assert sum(distinct) / len(distinct) == pytest.approx(16 * (1 - (15 / 16) ** 8), rel=0.02)


def test_a_seed_changes_which_flows_collide_and_crc_alone_would_not() -> None:
    flows = [flow_hash(tcp(port)) for port in range(33000, 33400)]
    pairs = list(itertools.combinations(flows, 2))
    with_mix = [{pair for pair in pairs if mix(pair[0], s) % 16 == mix(pair[1], s) % 16} for s in (1, 2)]
    with_xor = [{pair for pair in pairs if (pair[0] ^ s) % 16 == (pair[1] ^ s) % 16} for s in (1, 2)]
    assert with_xor[0] == with_xor[1]
    share = len(with_mix[0] & with_mix[1]) / len(with_mix[0])
    assert share == pytest.approx(1 / 16, abs=0.02), "colliding under two seeds is independent"


def test_switch_seeds_differ() -> None:
    seeds = {switch_seed(seed, node) for seed in range(20) for node in range(2000)}
    assert len(seeds) > 0.999 * 20 * 2000
    assert switch_seed(1, 5) == switch_seed(1, 5)


@pytest.fixture
def two_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = Parameter("d", 1, 8, default=2), Parameter("m", 0, 4, default=1)
    monkeypatch.setitem(POLICIES, "some", Policy(None, parameters))


@pytest.mark.usefixtures("two_numbers")
@pytest.mark.parametrize("text", ["some", "some:2", "some:2:1", " some : d=2", "some:m=1", "some:d=2:m=1"])
def test_one_setting_of_a_policy_has_one_text(text: str) -> None:
    assert parse(text) == ("some", {"d": 2, "m": 1})
    assert canonical(text) == "some:2:1" == canonical(canonical(text))


@pytest.mark.usefixtures("two_numbers")
@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("ecpm", "ecmp"),
        ("", "hashed"),
        ("ecmp:2", "no parameter"),
        ("some:2:1:0", "some:D:M"),
        ("some:0", "1 to 8"),
        ("some:2:5", "0 to 4"),
        ("some:x", "d must"),
        ("some:9999999999999", "d must"),
        ("some:-1", "d must"),
        ("some:n=1", "no n"),
    ],
)
def test_a_policy_names_what_is_wrong_with_its_text(text: str, named: str) -> None:
    with pytest.raises(UsageError, match=named):
        parse(text)
