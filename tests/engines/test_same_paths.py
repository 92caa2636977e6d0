"""A subflow takes the same path in both engines: the simulator's own paths against the routing functions by
which tests/live/test_engine_points.py checks the links that real hosts' frames use."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

import topos
from common.errors import UsageError
from controllers.groups import ecmp_groups
from controllers.hashing import PROTO_TCP, FiveTuple
from controllers.routing import DIGITS, path
from engines.core_setup.paths import check_paths
from engines.core_setup.setup import plan_of
from engines.core_setup.stack import core_flows, transport_options
from fabric._core import Simulation
from model.flows import STRIDE, planned_flows
from model.network_plan import plan_for, port_names, ports_along
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec, sub_seed


@pytest.mark.parametrize("routing", ["hashed", "ecmp", "spanning-tree"])
@pytest.mark.parametrize(("k", "subflows", "seed"), [(4, 1, 1), (4, 8, 2), (8, 8, 1)])
def test_every_simulated_subflow_takes_the_path_of_the_emulators_five_tuple(
    k: int, subflows: int, seed: int, routing: str
) -> None:
    spec = RunSpec(
        LinkSpec(10.0),
        TopologySpec("fat_tree", {"k": k}),
        TransportSpec(subflows),
        routing=routing,
        seed=seed,
    )
    topology = topos.build(spec.topology.kind, spec.topology.params)
    flows = planned_flows(spec, topology)
    simulation = Simulation(
        plan_of(spec, topology), transport_options(spec), core_flows(spec, topology, flows)
    )
    tables, routing_seed = ecmp_groups(topology), sub_seed(seed, "routing")
    ports = port_names(topology)
    different = set()
    for flow in flows:
        for i in range(subflows):
            five_tuple = FiveTuple(flow.src_ip, flow.dst_ip, PROTO_TCP, flow.cport + i * STRIDE, flow.port)
            nodes = path(topology, tables, routing, routing_seed, five_tuple)
            names = [topology.nodes[node].name for node in nodes]
            taken = [ports[port][:2] for port in simulation.path(flow.flow * subflows + i)]
            assert taken == list(pairwise(names))
            different.add(tuple(taken))
    least = 0.4 * subflows if routing != "spanning-tree" else 1
    assert len(different) >= least * len(flows)


BCUBE = RunSpec(
    LinkSpec(100.0), TopologySpec("bcube", {"n": 3, "k": 2}), TransportSpec(1, "reno"), routing=DIGITS,
    engine="simulator",
)  # fmt: skip


def test_the_core_sends_where_the_policy_digits_says() -> None:
    """BCube's plain TCP takes one path per pair of servers."""
    topology = topos.build(BCUBE.topology.kind, BCUBE.topology.params)
    tables, flows = ecmp_groups(topology), planned_flows(BCUBE, topology)
    simulation = Simulation(
        plan_of(BCUBE, topology), transport_options(BCUBE), core_flows(BCUBE, topology, flows)
    )
    for flow in flows:
        five_tuple = FiveTuple(flow.src_ip, flow.dst_ip, PROTO_TCP, flow.cport, flow.port)
        nodes = path(topology, tables, DIGITS, 1, five_tuple)
        assert list(simulation.path(flow.flow)) == list(ports_along(topology, nodes))
    with pytest.raises(UsageError, match="fat_tree has none"):
        check_paths(replace(BCUBE, topology=TopologySpec("fat_tree", {"k": 4})), topos.build("ft", {"k": 4}))


def test_networks_differ_in_hosts_queues_alone() -> None:
    """In the simulator, senders wait for room in these queues."""
    spec = RunSpec(LinkSpec(10.0), TopologySpec("fat_tree", {"k": 4}))
    topology = topos.build(spec.topology.kind, spec.topology.params)
    emulated, simulated = plan_for(spec, topology), plan_of(spec, topology)
    for name in ("fib", "group_offsets", "member_port", "member_paths", "rate_bps", "delay_ps", "nic_uplink"):
        assert (getattr(emulated, name) == getattr(simulated, name)).all(), name
    assert (emulated.policy, emulated.seed) == (simulated.policy, simulated.seed)
    differing = (emulated.queue_pkts != simulated.queue_pkts).nonzero()[0]
    assert set(differing) <= set(emulated.nic_uplink)
