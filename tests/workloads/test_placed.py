"""Matrices that know racks, pods and BCube's addresses, and connections at any load."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topos
from common.errors import UsageError
from workloads.matrices import build, words
from workloads.pairs import local

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


@pytest.mark.parametrize(
    ("name", "params", "text"),
    [
        ("hotspot", {"spots": 8}, "50 % of hosts to 8 spots"),
        ("local", {"rack": 80, "pod": 15}, "80 % in rack, 15 % in pod"),
        ("one_to_several", {"clients": 4}, "one_to_several:4"),
    ],
)
def test_words_describe_a_workload(name: str, params: dict[str, int], text: str) -> None:
    assert words(name, params) == text


@pytest.mark.parametrize("hosts", [["p0e0h0", "p1e0h0"], ["p0e0h0", "p0e0h1"], ["p0e0h0", "p0e1h0"]])
def test_a_sender_without_another_host_there_is_refused(hosts: list[str]) -> None:
    with pytest.raises(UsageError, match="has no other host to send to"):
        for seed in range(20):
            local(hosts, seed, rack=34, pod=33)
