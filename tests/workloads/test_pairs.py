"""Pairs of hosts and flows in sequence."""

from __future__ import annotations

import itertools
import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topos
from common.errors import UsageError
from topos import build as build_topology
from topos.cloud import is_ours
from workloads import matrices, pairs
from workloads.flow import Flow, Traffic
from workloads.matrices import build, parse
from workloads.pairs import connections_per_host, local, permutation_share
from workloads.sequential import TRANSPORTS

HOSTS = [f"h{i}" for i in range(16)]
hosts = st.integers(2, 40).map(lambda n: [f"h{i}" for i in range(n)])
seeds = st.integers(0, 2**32 - 1)


@given(hosts=hosts, seed=seeds, flows=st.integers(1, 8), percent=st.integers(1, 100))
def test_every_chosen_host_sends_as_many_flows_to_distinct_others(
    hosts: list[str], seed: int, flows: int, percent: int
) -> None:
    flows = min(flows, len(hosts) - 1)
    drawn = connections_per_host(hosts, seed, flows=flows, percent=percent)
    by_sender = Counter(flow.src for flow in drawn)
    assert set(by_sender.values()) == {flows}
    assert len(by_sender) == max(1, round(len(hosts) * percent / 100))
    assert len({(flow.src, flow.dst) for flow in drawn}) == len(drawn)
    assert all(flow.src != flow.dst for flow in drawn)


@given(hosts=hosts, seed=seeds, small=st.integers(1, 100), large=st.integers(1, 100))
def test_a_share_of_a_permutation_has_distinct_ends_and_grows(
    hosts: list[str], seed: int, small: int, large: int
) -> None:
    small, large = sorted((small, large))
    some, more = (set(permutation_share(hosts, seed, percent=percent)) for percent in (small, large))
    assert some <= more
    assert len({flow.src for flow in more}) == len({flow.dst for flow in more}) == len(more)
    assert more <= set(pairs.one_to_one(hosts, seed))


def test_any_destinations_repeat_and_may_be_more_than_there_are_hosts() -> None:
    drawn = connections_per_host(HOSTS, 1, flows=40, to="any")
    assert len(drawn) == 640
    assert len(set(drawn)) < 640


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("connections_per_host:16", "16 flows per host on 16 hosts are impossible: choose from 1 to 15"),
        ("connections_per_host:0", "0 flows per host"),
        ("connections_per_host:2:percent=0", "percent must be from 1 to 100 percent, not 0"),
        ("connections_per_host:2:to=few", "to must be distinct or any, not 'few'"),
        ("permutation_share:101", "percent must be from 1 to 100 percent, not 101"),
    ],
)
def test_what_no_such_matrix_has_is_refused(text: str, words: str) -> None:
    name, params = matrices.parse(text)
    with pytest.raises(UsageError, match=words):
        matrices.MATRICES[name].draw(HOSTS, 1, **params)


SEEDS = st.integers(0, 2**32 - 1)
TREE = topos.build("fat_tree", {"k": 4, "oversubscription": 4})


@pytest.mark.parametrize("percent", [1, 10, 100, 250])
def test_as_many_connections_as_asked_for(percent: int) -> None:
    for matrix in ("connections", "local"):
        assert len(build(matrix, TREE, {"percent": percent}, 3)) == max(1, round(0.64 * percent))


@given(st.sampled_from(["connections", "local"]), SEEDS, st.integers(1, 150), st.integers(1, 150))
def test_more_load_is_less_load_and_some(matrix: str, seed: int, one: int, other: int) -> None:
    few, many = (build(matrix, TREE, {"percent": load}, seed) for load in sorted((one, other)))
    assert many[: len(few)] == few
    assert all(flow.src != flow.dst for flow in many)


@pytest.mark.parametrize("kind", ["fat_tree", "dual_homed_fat_tree"])
@pytest.mark.parametrize(("rack", "pod"), [(50, 30), (100, 0), (0, 100), (0, 0), (20, 20)])
def test_connections_stay_as_near_as_requested(kind: str, rack: int, pod: int) -> None:
    topology = topos.build(kind, {"k": 6})
    racks = {host: host.partition("h")[0] for host in (topology.nodes[n].name for n in topology.hosts)}
    flows = build("local", topology, {"rack": rack, "pod": pod, "percent": 2000}, 1)
    far = Counter(
        "rack" if racks[f.src] == racks[f.dst] else "pod" if f.src[:2] == f.dst[:2] else "far" for f in flows
    )
    for where, share in (("rack", rack), ("pod", pod), ("far", 100 - rack - pod)):
        assert abs(100 * far[where] / len(flows) - share) < (5 if 0 < share < 100 else 1e-9)


@pytest.mark.parametrize("params", [{"rack": 80, "pod": 30}, {"rack": -1}, {"pod": -1}, {"percent": 0}])
def test_impossible_percentages_are_refused(params: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="must be percentages of at most 100 together"):
        build("local", TREE, params, 1)


@pytest.mark.parametrize(("n", "k"), [(5, 2), (4, 0), (2, 3), (12, 1), (10, 1), (11, 1)])
def test_neighbours_are_those_at_one_switch(n: int, k: int) -> None:
    topology = topos.build("bcube", {"n": n, "k": k})
    switches: dict[str, set[int]] = {}
    for link in topology.links:
        host, switch = sorted((link.a, link.b), key=lambda node: node not in topology.hosts)
        switches.setdefault(topology.nodes[host].name, set()).add(switch)
    flows = build("neighbours", topology, {}, 1)
    assert len(flows) == len(set(flows)) == len(topology.hosts) * (n - 1) * (k + 1)
    assert all(len(switches[flow.src] & switches[flow.dst]) == 1 for flow in flows)


@given(st.integers(1, 30).map(lambda half: 2 * half + 1), SEEDS)
def test_an_odd_number_of_hosts_is_permuted_too(count: int, seed: int) -> None:
    star = topos.build("star", {"n": count})
    flows = build("one_to_one", star, {}, seed)
    assert Counter(f.src for f in flows) == Counter(f.dst for f in flows)
    assert len(flows) == count and all(f.src != f.dst for f in flows)


@pytest.mark.parametrize("hosts", [["p0e0h0", "p1e0h0"], ["p0e0h0", "p0e0h1"], ["p0e0h0", "p0e1h0"]])
def test_a_sender_without_another_host_there_is_refused(hosts: list[str]) -> None:
    with pytest.raises(UsageError, match="has no other host to send to"):
        for seed in range(20):
            local(hosts, seed, rack=34, pod=33)


STAR = topos.build("star", {"n": 51})
TO_ONE = Traffic(seconds=20.0, host_mbps=192.0)


def made(text: str, seed: int = 1, traffic: Traffic = TO_ONE) -> tuple[Flow, ...]:
    name, params = parse(text)
    return build(name, STAR, params, seed, traffic)


@given(st.integers(0, 2**32 - 1), st.integers(1, 10_000))
def test_all_hosts_send_the_same_to_the_last(seed: int, packets: int) -> None:
    flows = made(f"incast:{packets}", seed)
    assert len({flow.src for flow in flows}) == len(flows) == 50
    assert {(flow.dst, flow.size_bytes) for flow in flows} == {("s1h50", packets * 1448)}


@pytest.mark.parametrize(("mbps", "within_s"), [(10_000, 10e-6), (40_000, 2.5e-6)])
def test_starts_are_spread_as_in_the_paper(mbps: float, within_s: float) -> None:
    starts = [flow.start_s for flow in made("incast:10", traffic=Traffic(1.0, mbps))]
    assert 0.8 * within_s < max(starts) < within_s
    assert min(starts) < 0.2 * within_s


def test_arrivals_offer_the_load_to_the_receiver() -> None:
    flows = made("to_one:50:sizes=fixed-20000")
    offered_mbps = sum(flow.size_bytes for flow in flows) * 8 / 20.0 / 1e6
    assert offered_mbps == pytest.approx(96, rel=0.03)
    assert {flow.dst for flow in flows} == {"s1h50"}
    assert len({flow.src for flow in flows}) == 50
    assert [flow.start_s for flow in flows] == sorted(flow.start_s for flow in flows)


def test_sizes_are_those_of_the_paper() -> None:
    flows = made("to_one:50:sizes=caida", traffic=Traffic(100.0, 192.0))
    sizes = sorted(flow.size_bytes for flow in flows)
    assert statistics.fmean(size <= 10_000 for size in sizes) == pytest.approx(0.976, abs=0.003)
    assert statistics.median(sizes) == pytest.approx(10_000 * 0.5 / 0.976, rel=0.05)


@pytest.mark.parametrize(
    ("text", "says"),
    [("incast:0", "packets must be from 1"), ("to_one:100", "load must be from 1 to 99"),
     ("to_one:50:sizes=fixed-1", "would start about")],
)  # fmt: skip
def test_what_is_out_of_range_is_refused(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        made(text)


NET = build_topology("cloud", {"n": 8, "racks": 4, "tenants": 2})
HOUR = Traffic(3600.0, 100.0)


def drawn(seed: int = 1, traffic: Traffic = HOUR, **params: int) -> tuple[Flow, ...]:
    return build("in_turn", NET, params, seed, traffic)


def transfers(flows: Sequence[Flow]) -> list[Flow]:
    return [flow for flow in flows if is_ours(flow.src)]


def test_each_pair_has_each_transport_one_after_the_other() -> None:
    ours = transfers(drawn())
    for number, flow in enumerate(ours):
        assert flow.after == (number - 1 if number else None) and flow.start_s == 0
        assert flow.subflows == TRANSPORTS[number % 3]
        assert flow.size_bytes == 25_000_000, "two seconds of 100 Mb/s"
    pairs = [(flow.src, flow.dst) for flow in ours[::3]]
    assert pairs == [(flow.src, flow.dst) for flow in ours[2::3]]
    first = pairs[: 8 * 7]
    names = {host for pair in first for host in pair}
    assert set(first) == set(itertools.permutations(names, 2)), "all pairs, before any has a second turn"
    assert pairs[56:112] == first


def test_other_tenants_keep_to_themselves_and_are_silent_now_and_then() -> None:
    flows = drawn(busy_ms=4000, idle_ms=6000)
    others = [flow for flow in flows if not is_ours(flow.src)]
    assert all(flow.plain and not is_ours(flow.dst) and flow.src != flow.dst for flow in others)
    assert len({flow.src for flow in others}) == 8
    assert statistics.fmean(flow.start_s for flow in others) == pytest.approx(6.0, rel=0.1)
    assert statistics.fmean(flow.size_bytes for flow in others) == pytest.approx(4.0 * 12.5e6, rel=0.1)
    for flow in others:
        assert flow.after is None or flows[flow.after].src == flow.src


def test_equal_seeds_draw_equal_flows() -> None:
    assert drawn(3) == drawn(3) != drawn(4)


def test_times_are_those_of_the_hosts_links() -> None:
    slow = transfers(drawn(traffic=Traffic(3600.0, 10.0)))
    assert {flow.size_bytes for flow in slow} == {2_500_000}


@pytest.mark.parametrize(
    ("params", "words"),
    [({"size_ms": 0}, "size_ms must be from 1"), ({"size_ms": 1}, "would plan about 3602880 flows")],
)
def test_impossible_parameters_are_refused(params: dict[str, int], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        build("in_turn", NET, params, 1, HOUR)


def test_other_networks_are_refused() -> None:
    with pytest.raises(UsageError, match="topology cloud"):
        build("in_turn", build_topology("star", {"n": 4}), {}, 1, HOUR)
