"""Pings go exactly where the connection's packets and its ACKs go, by the routing's own path function."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import UsageError
from controllers.groups import EcmpTables, ecmp_groups
from controllers.hashing import PROTO_TCP, PROTO_UDP, FiveTuple, mix
from controllers.probes import DECISIONS, FIRST_PORT, LAST_PORT, ProbePorts, mix_all
from controllers.routing import POLICIES, path
from topos import Topology, build

NETWORKS: dict[str, tuple[Topology, EcmpTables]] = {
    name: (net, ecmp_groups(net))
    for name, net in {
        "fat_tree": build("ft", {"k": 8}),
        "dual_homed": build("dhft", {"k": 6}),
        "star": build("star", {"n": 3}),
    }.items()
}
PORTS = st.integers(1024, 65535)


def paths(net: str, policy: str, seed: int, flow: FiveTuple) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the path there and the path back."""
    answer = FiveTuple(flow.dst, flow.src, flow.proto, flow.dport, flow.sport)
    topology, tables = NETWORKS[net]
    return path(topology, tables, policy, seed, flow), path(topology, tables, policy, seed, answer)


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(sorted(NETWORKS)),
    st.sampled_from(sorted(name for name, policy in POLICIES.items() if policy.walk and name in DECISIONS)),
    st.integers(0, 2**32 - 1),
    PORTS,
    PORTS,
    st.data(),
)
def test_both_ways_are_the_connections(
    net: str, policy: str, seed: int, sport: int, dport: int, data: st.DataObject
) -> None:
    topology, tables = NETWORKS[net]
    src, dst = data.draw(st.lists(st.sampled_from(topology.nics), min_size=2, max_size=2, unique=True))
    if src.host == dst.host:
        return
    found = ProbePorts(topology, tables, policy, seed).find(src.ip, sport, dst.ip, dport)
    assert found is not None
    assert all(FIRST_PORT <= port <= LAST_PORT for port in found)
    tcp = FiveTuple(src.ip, dst.ip, PROTO_TCP, sport, dport)
    udp = FiveTuple(src.ip, dst.ip, PROTO_UDP, *found)
    assert paths(net, policy, seed, udp) == paths(net, policy, seed, tcp)


def test_every_policy_has_its_decisions() -> None:
    assert set(DECISIONS) == set(POLICIES) - {"valiant", "digits"}


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(UsageError, match="fastest"):
        ProbePorts(*NETWORKS["star"], "fastest", 1)


def test_scattered_pings_may_have_any_ports() -> None:
    found = ProbePorts(*NETWORKS["fat_tree"], "scatter", 1).find("10.0.0.2", 1100, "10.7.3.5", 5201)
    assert found == (FIRST_PORT, FIRST_PORT)


@pytest.mark.parametrize("policy", sorted(DECISIONS))
def test_addresses_without_a_path_are_refused(policy: str) -> None:
    net = build("dhft", {"k": 4})
    with pytest.raises(UsageError, match="use another NIC"):
        ProbePorts(net, ecmp_groups(net), policy, 1).find("10.0.0.2", 1100, "10.3.1.2", 5201)


def test_mixing_many_is_mixing_each() -> None:
    hashes = np.array([0, 1, 0xFFFFFFFF, 0xDEADBEEF, 12345], np.uint32)
    assert mix_all(hashes, 0x9E3779B9).tolist() == [mix(int(h), 0x9E3779B9) for h in hashes]
