"""Traffic matrices: who sends to whom, in every workload."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import UsageError
from topos import Link, from_file
from topos import build as build_topology
from workloads.flow import MAX_FLOWS, Flow, Traffic
from workloads.generated import MAX_DSCP
from workloads.matrices import MATRICES, Matrix, Value, build, label, parse
from workloads.pairs import (
    all_to_all,
    hotspot,
    map_reduce,
    one_to_one,
    one_to_several,
    random_pairs,
    replica_of,
    stride,
)

SEEDS = st.integers(0, 2**32 - 1)


def _names(count: int) -> list[str]:
    return [f"s1h{number}" for number in range(count)]


@given(st.integers(1, 64).map(lambda half: 2 * half), SEEDS)
def test_one_to_one_is_a_permutation_without_fixed_points(count: int, seed: int) -> None:
    hosts = _names(count)
    flows = one_to_one(hosts, seed)
    assert [flow.src for flow in flows] == hosts
    assert sorted(flow.dst for flow in flows) == sorted(hosts)
    assert all(flow.src != flow.dst for flow in flows)
    assert one_to_one(hosts, seed) == flows


@given(st.integers(1, 64).map(lambda half: 2 * half), SEEDS)
def test_one_to_one_exchanges_two_halves(count: int, seed: int) -> None:
    """Hosts and flows form a graph of two equal colours: every cycle of the permutation is even."""
    receiver = {flow.src: flow.dst for flow in one_to_one(_names(count), seed)}
    unseen = set(receiver)
    while unseen:
        start = host = unseen.pop()
        length = 1
        while (host := receiver[host]) != start:
            unseen.remove(host)
            length += 1
        assert length % 2 == 0


def test_other_seeds_give_other_flows_and_every_receiver() -> None:
    hosts = _names(16)
    drawn = {one_to_one(hosts, seed) for seed in range(200)}
    assert len(drawn) == 200
    assert {flows[0].dst for flows in drawn} == set(hosts[1:])


def test_receivers_are_equally_likely() -> None:
    counts = dict.fromkeys(_names(8)[1:], 0)
    for seed in range(2100):
        counts[one_to_one(_names(8), seed)[0].dst] += 1
    assert all(abs(count - 300) < 5 * 300**0.5 for count in counts.values())


def test_the_baseline_crosses_the_network_whatever_the_seed() -> None:
    topology = build_topology("ft", {"k": 4})
    assert build("reference", topology, {}, 1) == build("reference", topology, {}, 2)
    assert build("reference", topology, {}, 1) == (Flow("p0e0h0", "p3e1h1"),)


@pytest.mark.parametrize(
    ("matrix", "n", "params", "complaint"),
    [
        ("all_to_none", 4, {}, "unknown workload 'all_to_none': did you mean .*all_to_all"),
        ("connections", 4, {"percent": 0}, "percent must be at least 1, not 0"),
        ("local", 4, {}, "needs host names with rack and pod, but s1h0|h0 has none: choose topology"),
        ("neighbours", 4, {}, "needs BCube addresses, but .* is none: choose topology bcube"),
        ("one_to_one", 4, {"clients": 2}, "no parameter 'clients': it takes none"),
        ("stride", 4, {"j": 2}, "no parameter 'j': it takes i"),
        ("one_to_several", 4, {}, "more than 4 hosts .clients 4., not 4: change k or n"),
        ("one_to_several", 4, {"clients": 0}, "clients must be at least 1, not 0"),
        ("one_to_several", 8, {"servers": 0}, "servers must be from 1 to 100 percent, not 0"),
        ("stride", 4, {"i": 4}, "i=4 with 4 hosts is invalid: choose i from 1 to 3"),
        ("stride", 4, {"i": -1}, "choose i from 1 to 3"),
        ("hotspot", 4, {"spots": 0}, "spots must be at least 1"),
        ("hotspot", 4, {"spots": 4}, "more than 4 hosts"),
        ("hotspot", 4, {"percent": 101}, "percent must be from 0 to 100 percent, not 101"),
    ],
)
def test_refusals(matrix: str, n: int, params: dict[str, int], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint) as caught:
        build(matrix, build_topology("star", {"n": n}), params, 1)
    assert "\n" not in str(caught.value)


def test_the_first_pair_of_each_replica_has_the_transport_under_test() -> None:
    flows = build("against_tcp", build_topology("dumbbell", {"n": 3, "lanes": 2}), {}, 1)
    assert [(flow.src, flow.dst, flow.plain) for flow in flows] == [
        (f"l{lane}h{pair}", f"r{lane}h{pair}", pair > 0) for lane in range(2) for pair in range(3)
    ]
    two = build("against_tcp", build_topology("two_bottlenecks", {"first": 2, "lanes": 2}), {}, 1)
    assert [flow.src for flow in two if not flow.plain] == ["l0h0", "l1h0"]
    assert [flow.src for flow in two if flow.plain][:3] == ["l0ah1", "l0ah2", "l0bh1"]
    assert all(flow.dst == f"r{flow.src[1:]}" for flow in two)


def test_replicas_are_read_from_names() -> None:
    assert [replica_of(name) for name in ("l3h1", "l12ah1")] == ["3", "12"]
    assert [replica_of(name) for name in ("r3h1", "p0e0h0", "l")] == [None] * 3
    with pytest.raises(UsageError, match="s1h0 does not: choose topology dumbbell or two_bottlenecks"):
        build("against_tcp", build_topology("star", {"n": 2}), {}, 1)


def test_no_flow_between_replicas() -> None:
    lanes = build_topology("dumbbell", {"n": 2, "lanes": 2})
    with pytest.raises(UsageError, match="no path joins l0h0 and r1h1 in this dumbbell; choose --workload"):
        build("reference", lanes, {}, 1)


def test_a_network_in_two_parts_needs_a_link() -> None:
    nodes = [("a", 0), ("b", 0), ("c", 0), ("s", 1), ("t", 1)]
    text = from_file.written(nodes, [Link(0, 3), Link(1, 3), Link(2, 4)], 0)
    with pytest.raises(UsageError, match="no path joins a and c in this file; add a link"):
        build("reference", build_topology(from_file.KIND, {"name": "n", "network": text}), {}, 1)


EVERYWHERE = sorted(name for name, matrix in MATRICES.items() if matrix.in_all)


@given(st.sampled_from(EVERYWHERE), st.integers(3, 20).map(lambda half: 2 * half), SEEDS)
def test_every_matrix_repeats_itself_and_sends_nothing_to_itself(matrix: str, count: int, seed: int) -> None:
    hosts = _names(count)
    flows = MATRICES[matrix].draw(hosts, seed)
    assert flows == MATRICES[matrix].draw(hosts, seed)
    assert all(flow.src != flow.dst for flow in flows)
    assert {name for flow in flows for name in (flow.src, flow.dst)} <= set(hosts)
    assert {(flow.size_bytes, flow.start_s) for flow in flows} == {(0, 0.0)}


@given(st.integers(2, 40), st.data(), SEEDS)
def test_every_server_has_its_number_of_distinct_clients(count: int, data: st.DataObject, seed: int) -> None:
    clients = data.draw(st.integers(1, count - 1))
    flows = one_to_several(_names(count), seed, clients=clients)
    assert Counter(flow.dst for flow in flows) == dict.fromkeys(_names(count), clients)
    assert len(set(flows)) == len(flows)


@given(st.integers(5, 40), st.integers(1, 100), SEEDS)
def test_a_part_of_the_hosts_are_servers(count: int, servers: int, seed: int) -> None:
    received = Counter(flow.dst for flow in one_to_several(_names(count), seed, servers=servers))
    assert len(received) == max(1, round(count * servers / 100))
    assert set(received.values()) == {4}


@pytest.mark.parametrize(
    ("name", "params", "expected"),
    [
        ("one_to_one", {}, "one_to_one"),
        ("stride", {"i": 0}, "stride:0"),
        ("one_to_several", {"servers": 100, "clients": 4}, "one_to_several:4"),
        ("one_to_several", {"servers": 25, "clients": 4}, "one_to_several:4:servers=25"),
        ("one_to_several", {}, "one_to_several"),
    ],
)
def test_labels_show_what_is_not_usual(name: str, params: dict[str, int], expected: str) -> None:
    assert label(name, params) == expected


@given(st.integers(2, 40))
def test_all_to_all_is_every_ordered_pair(count: int) -> None:
    flows = all_to_all(_names(count), 1)
    assert len(set(flows)) == len(flows) == count * (count - 1)


@given(st.integers(2, 40), st.data())
def test_stride_is_a_rotation(count: int, data: st.DataObject) -> None:
    hosts, i = _names(count), data.draw(st.integers(1, count - 1))
    assert [flow.src for flow in stride(hosts, 1, i=i)] == hosts
    assert [flow.dst for flow in stride(hosts, 1, i=i)] == hosts[i:] + hosts[:i]


def test_stride_by_default_crosses_the_core_of_a_fat_tree() -> None:
    for flow in build("stride", build_topology("ft", {"k": 6}), {}, 1):
        assert flow.src[:2] != flow.dst[:2], "another pod"


@given(st.integers(2, 40), st.data(), SEEDS)
def test_hot_spots_get_their_share_dealt_out_evenly(count: int, data: st.DataObject, seed: int) -> None:
    hosts, spots = _names(count), data.draw(st.integers(1, count - 1))
    flows = hotspot(hosts, seed, spots=spots, percent=100)
    assert [flow.src for flow in flows] == hosts
    received = Counter(flow.dst for flow in flows)
    # All but the hot hosts themselves send to the hot ones, who send to anybody.
    hot = [number for _, number in received.most_common(spots)]
    assert sum(hot) >= count - spots
    assert max(received.values()) <= -(-(count - spots) // spots) + spots


def test_a_hot_spot_stands_out() -> None:
    received = Counter(flow.dst for flow in hotspot(_names(128), 7, spots=2, percent=50))
    (_, first), (_, second), (_, third) = received.most_common(3)
    assert first >= 32 and second >= 32 and third < 10


def test_without_percent_nothing_is_hot_and_random_receivers_are_equally_likely() -> None:
    hosts = _names(8)
    counts: Counter[str] = Counter()
    for seed in range(300):
        counts.update(flow.dst for flow in hotspot(hosts, seed, percent=0))
    assert all(abs(counts[host] - 300) < 5 * 300**0.5 for host in hosts)


def test_random_draws_sources_and_destinations_independently() -> None:
    hosts, sources, pairs = _names(8), Counter[str](), Counter[tuple[str, str]]()
    for seed in range(1000):
        flows = random_pairs(hosts, seed)
        assert len(flows) == 8
        sources.update(flow.src for flow in flows)
        pairs.update((flow.src, flow.dst) for flow in flows)
    assert all(abs(sources[host] - 1000) < 5 * 1000**0.5 for host in hosts)
    assert len(pairs) == 56 and all(abs(n - 8000 / 56) < 5 * (8000 / 56) ** 0.5 for n in pairs.values())


@pytest.mark.parametrize(
    ("text", "name", "params"),
    [
        ("one_to_one", "one_to_one", {}),
        ("one_to_several", "one_to_several", {"clients": 4, "servers": 100}),
        ("one_to_several:8", "one_to_several", {"clients": 8, "servers": 100}),
        ("one_to_several:2:servers=25", "one_to_several", {"clients": 2, "servers": 25}),
        ("hotspot:1", "hotspot", {"spots": 1, "percent": 50}),
        (" stride : i = 4 ", "stride", {"i": 4}),
        ("hotspot:percent=25", "hotspot", {"spots": 2, "percent": 25}),
    ],
)
def test_text_of_a_workload(text: str, name: str, params: dict[str, int]) -> None:
    assert parse(text) == (name, params)
    assert parse(label(name, params)) == (name, params)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("nope:4", "unknown workload 'nope'"),
        ("one_to_one:4", "one_to_one takes no parameters"),
        ("hotspot:4:5", "name the parameter of 5: one of spots, percent"),
        ("stride:four", "i must be a whole number, not 'four'"),
        ("stride:", "i must be a whole number, not ''"),
        ("stride:j=4", "no parameter 'j': it takes i"),
    ],
)
def test_text_that_is_no_workload(text: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        parse(text)


HOSTS = [f"h{i}" for i in range(35)]


def test_every_mapper_sends_to_every_reducer_of_its_job() -> None:
    flows = map_reduce(HOSTS, 1, maps=3, reduces=4, kb=5)
    assert len(flows) == 5 * 12 and {flow.size_bytes for flow in flows} == {5000}
    for first in range(0, 60, 12):
        job = flows[first : first + 12]
        assert set(Counter(flow.src for flow in job).values()) == {4}
        assert set(Counter(flow.dst for flow in job).values()) == {3}
    assert len({host for flow in flows for host in (flow.src, flow.dst)}) == 35
    assert not {flow.src for flow in flows} & {flow.dst for flow in flows}


def test_the_seed_decides_which_hosts_are_drawn() -> None:
    one, same, other = (map_reduce(HOSTS, seed, jobs=1, maps=2, reduces=2) for seed in (1, 1, 2))
    assert one == same != other


@pytest.mark.parametrize("wrong", [{"jobs": 3}, {"maps": 0}, {"reduces": 40}, {"kb": 0}, {"jobs": -1}])
def test_impossible_jobs_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="map_reduce"):
        map_reduce(HOSTS, 1, **wrong)


MAX_SUBFLOWS = 32
FLOWS = sorted(name for name, matrix in MATRICES.items() if matrix.kind == "flows" and name != "trace")
"""`trace` takes a file's text (tests/harness/options/test_user_files.py); calls have no flows."""
IN_ORDER_OF_STARTS = {"poisson", "pairs"}
NETWORKS = [
    ("star", {"n": 2}),
    ("star", {"n": 7}),
    ("fat_tree", {"k": 4}),
    ("dual_homed_fat_tree", {"k": 4}),
    ("bcube", {"n": 3, "k": 1}),
    ("dumbbell", {"n": 2}),
    ("cloud", {"n": 5}),
]
TEXTS = {
    "sizes": ["websearch", "datamining", "fixed-1000", "uniform-1000-90000", "none", ""],
    "pairs": ["random", "fixed", "none"],
    "to": ["any", "distinct", "none"],
    "flows": ["one_to_one", "poisson", "constant_rate", "none"],
}
ALL_NETWORKS = [build_topology(kind, params) for kind, params in NETWORKS]


def _value(name: str, default: Value) -> st.SearchStrategy[Value]:
    if isinstance(default, str):
        return st.sampled_from([default, *TEXTS[name]])
    near = st.integers(-2, 200)
    return st.one_of(st.just(default), near, st.sampled_from([10**4, 10**9, 2**63]))


def _parameters(matrix: Matrix) -> st.SearchStrategy[dict[str, Value]]:
    return st.fixed_dictionaries(
        {}, optional={name: _value(name, default) for name, default in matrix.defaults.items()}
    )


@pytest.mark.parametrize("name", FLOWS)
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_flows_are_right_or_refused(name: str, data: st.DataObject) -> None:
    topology = data.draw(st.sampled_from(ALL_NETWORKS))
    params = data.draw(_parameters(MATRICES[name]))
    seed = data.draw(st.integers(0, 2**32 - 1))
    traffic = Traffic(data.draw(st.sampled_from([0.05, 1.0, 3.0])), data.draw(st.sampled_from([1.0, 100.0])))
    try:
        flows = build(name, topology, params, seed, traffic)
    except UsageError as error:
        assert "workload" in str(error) or "size" in str(error)
        assert "\n" not in str(error)
        return
    assert parse(label(name, params)) == (name, {**MATRICES[name].defaults, **params})
    assert flows == build(name, topology, params, seed, traffic)
    _check(name, flows, {topology.nodes[host].name for host in topology.hosts}, traffic)


def _check(name: str, flows: tuple[Flow, ...], hosts: set[str], traffic: Traffic) -> None:
    assert len(flows) <= 2 * MAX_FLOWS  # the limit is on the expected number
    for number, flow in enumerate(flows):
        assert {flow.src, flow.dst} <= hosts and flow.src != flow.dst
        assert flow.size_bytes > 0 or not MATRICES[name].transfers or name == "short_and_long_alike"
        assert 0.0 <= flow.start_s < math.inf
        assert flow.after is None or 0 <= flow.after < number
        assert 0 <= flow.dscp <= MAX_DSCP and 0 <= flow.subflows <= MAX_SUBFLOWS
        assert flow.rate_mbps >= 0.0
    constant = [flow.rate_mbps > 0 for flow in flows]
    assert constant == sorted(constant), "flows of constant rate come last"
    if name in IN_ORDER_OF_STARTS:
        assert all(before.start_s <= after.start_s for before, after in pairwise(flows))
        assert all(flow.start_s < traffic.seconds for flow in flows)


@pytest.mark.parametrize("name", FLOWS)
def test_defaults_suit_some_network(name: str) -> None:
    drawn = 0
    for topology in ALL_NETWORKS:
        try:
            drawn += len(build(name, topology, _small(name), 1, Traffic(3.0, 100.0)))
        except UsageError:
            continue
    assert drawn


def _small(name: str) -> Mapping[str, Value]:
    return {"maps": 2, "reduces": 2} if name == "map_reduce" else {}
