"""Traffic matrices: each host sends one and receives one, halves exchange, seeds matter."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.errors import UsageError
from topos import build as build_topology
from workloads.matrices import MATRICES, Flow, build, one_to_one

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


def test_reference_crosses_the_network_whatever_the_seed() -> None:
    topology = build_topology("ft", {"k": 4})
    assert build("reference", topology, {}, 1) == build("reference", topology, {}, 2)
    assert build("reference", topology, {}, 1) == (Flow("p0e0h0", "p3e1h1"),)


@pytest.mark.parametrize("kind", ["ft", "dhft"])
def test_build_names_hosts_of_the_topology(kind: str) -> None:
    topology = build_topology(kind, {"k": 4})
    flows = build("one_to_one", topology, {}, 5)
    assert {flow.src for flow in flows} == {topology.nodes[host].name for host in topology.hosts}


@pytest.mark.parametrize(
    ("matrix", "n", "params", "complaint"),
    [
        ("all_to_none", 4, {}, "unknown workload 'all_to_none': choose one of one_to_one, reference"),
        ("one_to_one", 5, {}, "even number"),
        ("one_to_one", 4, {"clients": 2}, "no parameter 'clients'"),
    ],
)
def test_refusals(matrix: str, n: int, params: dict[str, int], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint) as caught:
        build(matrix, build_topology("star", {"n": n}), params, 1)
    assert "\n" not in str(caught.value)


def test_registry_titles() -> None:
    assert all(matrix.title for matrix in MATRICES.values())
