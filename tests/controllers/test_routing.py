"""Policies: unranking is exact, choices are uniform at every layer, seeds matter."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import UsageError
from controllers.groups import ecmp_groups
from controllers.hashing import PROTO_TCP, FiveTuple, flow_hash, mix
from controllers.routing import DIGITS, path
from topos import build

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
        (
            "fastest",
            "10.0.0.2",
            "10.1.0.2",
            "unknown routing policy 'fastest': choose one of hashed, ecmp, scatter",
        ),
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
