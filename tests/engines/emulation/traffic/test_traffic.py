from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest

import topos
from engines.emulation.kernel.mptcp_genl import EventKind, MptcpEvent
from engines.emulation.traffic.driver import default_cc, is_data, paths_of_each, subflow_paths
from model.flows import STRIDE, AddressPair, PlannedFlow, planned_flows
from model.spec import MAX_SUBFLOWS, LinkSpec, RunSpec, TopologySpec, TransportSpec

EPHEMERAL = 32768


def spec(seed: int = 1, subflows: int = 1) -> RunSpec:
    return RunSpec(LinkSpec(10.0), TopologySpec("fat_tree", {"k": 4}), TransportSpec(subflows), seed=seed)


def test_the_permutation_belongs_to_the_seed_not_to_the_transport() -> None:
    topology = topos.build("fat_tree", {"k": 4})
    assert pairs(planned_flows(spec(), topology)) == pairs(planned_flows(spec(subflows=8), topology))
    assert planned_flows(spec(), topology) != planned_flows(spec(seed=2), topology)


def pairs(flows: Sequence[PlannedFlow]) -> list[tuple[str, int, str, int]]:
    return [(flow.src_ip, flow.cport, flow.dst_ip, flow.port) for flow in flows]


def test_flows_have_the_addresses_of_their_hosts() -> None:
    topology = topos.build("fat_tree", {"k": 4})
    flows = planned_flows(spec(), topology)
    assert [flow.flow for flow in flows] == list(range(16))
    for flow in flows:
        assert topology.nic_by_ip(flow.src_ip).host == topology.index(flow.src)
        assert topology.nic_by_ip(flow.dst_ip).host == topology.index(flow.dst)


def test_hosts_prefer_what_they_send_then_what_they_receive() -> None:
    flow = PlannedFlow(0, "a", "b", "10.0.0.1", "10.0.0.2", 5201, 1100, cc="lia", subflows=2)
    back = dataclasses.replace(flow, flow=1, src="b", dst="c", cc="reno", subflows=1)
    assert default_cc([flow, back]) == {"a": "rf_lia", "b": "reno", "c": "reno"}
    assert default_cc([back, flow]) == {"a": "rf_lia", "b": "reno", "c": "reno"}


def established(src: str, dst: str) -> MptcpEvent:
    return MptcpEvent(EventKind.ESTABLISHED, 1, AddressPair(src, 1100, dst, 5201), False, 0, 0)


def test_subflows_have_ports_of_their_own_below_the_ephemeral_ones() -> None:
    topology = topos.build("fat_tree", {"k": 4})
    pairs = subflow_paths(topology, MAX_SUBFLOWS)(established("10.0.0.2", "10.1.0.2"))
    ports = [pair.lport for pair in pairs]
    assert len(set(ports)) == len(ports) == MAX_SUBFLOWS - 1
    assert max(ports) + STRIDE <= EPHEMERAL
    assert {(pair.laddr, pair.raddr, pair.rport) for pair in pairs} == {("10.0.0.2", "10.1.0.2", 5201)}


def test_each_flow_has_as_many_subflows_as_it_asked_for() -> None:
    topology = topos.build("fat_tree", {"k": 4})
    one = PlannedFlow(0, "p0e0h0", "p1e0h0", "10.0.0.2", "10.1.0.2", 5201, 1100, subflows=4)
    other = dataclasses.replace(one, flow=1, cport=1101, subflows=2)
    policy = paths_of_each(topology, [one, other])
    for flow in (one, other):
        event = MptcpEvent(EventKind.ESTABLISHED, 1, flow.seen_by_sender, False, 0, 0)
        assert [pair.lport for pair in policy(event)] == [
            flow.cport + i * STRIDE for i in range(1, flow.subflows)
        ]


def test_dual_homed_hosts_use_both_nics_plane_by_plane() -> None:
    topology = topos.build("dual_homed_fat_tree", {"k": 4})
    a, b = (topology.nics_of(topology.hosts[i]) for i in (0, -1))
    pairs = subflow_paths(topology, 4)(established(a[0].ip, b[0].ip))
    assert [(p.laddr, p.raddr) for p in pairs] == [(a[i].ip, b[i].ip) for i in (1, 0, 1)]


@pytest.mark.parametrize(
    ("sport", "dport", "data"), [(1100, 5201, True), (40000, 5201, False), (1100, 80, False)]
)
def test_only_data_connections_get_subflows(sport: int, dport: int, data: bool) -> None:
    assert is_data(sport, dport) is data
