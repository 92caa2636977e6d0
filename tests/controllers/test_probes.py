"""Pings go exactly where the connection's packets and its ACKs go, by the routing's own path function."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import UsageError
from controllers.groups import EcmpTables
from controllers.hashing import PROTO_TCP, PROTO_UDP, FiveTuple, mix
from controllers.probes import DECISIONS, FIRST_PORT, LAST_PORT, ProbePorts, mix_all
from controllers.routing import POLICIES, path, tables_of
from topos import Topology, build

NETWORKS: dict[str, Topology] = {
    "fat_tree": build("ft", {"k": 8}),
    "dual_homed": build("dhft", {"k": 6}),
    "star": build("star", {"n": 3}),
    "leaf_spine": build("ls", {"leaves": 3, "hosts": 2}),
    "jellyfish": build("jf", {"switches": 12, "ports": 5, "servers": 2}),
}


@functools.cache
def tables(net: str, policy: str) -> EcmpTables:
    return tables_of(NETWORKS[net], policy)


def search(net: str, policy: str, seed: int) -> ProbePorts:
    return ProbePorts(NETWORKS[net], tables(net, policy), policy, seed)


PORTS = st.integers(1024, 65535)
FOLLOWED = sorted(name for name, policy in POLICIES.items() if policy.walk in DECISIONS)


def paths(net: str, policy: str, seed: int, flow: FiveTuple) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the path there and the path back."""
    answer = FiveTuple(flow.dst, flow.src, flow.proto, flow.dport, flow.sport)
    of = NETWORKS[net], tables(net, policy), policy, seed
    return path(*of, flow), path(*of, answer)


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(sorted(NETWORKS)),
    st.sampled_from([name for name in FOLLOWED if POLICIES[name].walk]),
    st.integers(0, 2**32 - 1),
    PORTS,
    PORTS,
    st.data(),
)
def test_both_ways_are_the_connections(
    net: str, policy: str, seed: int, sport: int, dport: int, data: st.DataObject
) -> None:
    topology = NETWORKS[net]
    src, dst = data.draw(st.lists(st.sampled_from(topology.nics), min_size=2, max_size=2, unique=True))
    if src.host == dst.host:
        return
    found = search(net, policy, seed).find(src.ip, sport, dst.ip, dport)
    assert found is not None
    assert all(FIRST_PORT <= port <= LAST_PORT for port in found)
    tcp = FiveTuple(src.ip, dst.ip, PROTO_TCP, sport, dport)
    udp = FiveTuple(src.ip, dst.ip, PROTO_UDP, *found)
    assert paths(net, policy, seed, udp) == paths(net, policy, seed, tcp)


def test_every_policy_has_its_decisions() -> None:
    without = {name for name, policy in POLICIES.items() if policy.walk not in DECISIONS}
    assert without == {"valiant", "digits"}


def test_a_policy_that_pings_cannot_follow_is_refused() -> None:
    with pytest.raises(UsageError, match="'valiant': pings"):
        search("star", "valiant", 1)


def test_scattered_pings_may_have_any_ports() -> None:
    found = search("fat_tree", "scatter", 1).find("10.0.0.2", 1100, "10.7.3.5", 5201)
    assert found == (FIRST_PORT, FIRST_PORT)


@pytest.mark.parametrize("policy", FOLLOWED)
def test_addresses_without_a_path_are_refused(policy: str) -> None:
    net = build("dhft", {"k": 4})
    with pytest.raises(UsageError, match="use another NIC"):
        ProbePorts(net, tables_of(net, policy), policy, 1).find("10.0.0.2", 1100, "10.3.1.2", 5201)


def test_mixing_many_is_mixing_each() -> None:
    hashes = np.array([0, 1, 0xFFFFFFFF, 0xDEADBEEF, 12345], np.uint32)
    assert mix_all(hashes, 0x9E3779B9).tolist() == [mix(int(h), 0x9E3779B9) for h in hashes]
