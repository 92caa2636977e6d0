"""The routing policy `digits`: BCube's plain TCP on one path per pair of servers, MPTCP as in its paper."""

from __future__ import annotations

from dataclasses import replace

import pytest

import topos
from common.errors import UsageError
from controllers.groups import ecmp_groups
from controllers.hashing import PROTO_TCP, FiveTuple
from controllers.routing import DIGITS, path
from engines.core_setup.paths import check_paths
from engines.core_setup.setup import plan_of
from engines.core_setup.stack import core_flows, stack_of
from fabric._core import Simulation
from model.flows import planned_flows
from model.network_plan import ports_along
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec

BCUBE = RunSpec(
    LinkSpec(100.0), TopologySpec("bcube", {"n": 3, "k": 2}), TransportSpec(1, "reno"), routing=DIGITS,
    engine="simulator",
)  # fmt: skip


def test_the_core_sends_where_the_policy_says() -> None:
    topology = topos.build(BCUBE.topology.kind, BCUBE.topology.params)
    tables, flows = ecmp_groups(topology), planned_flows(BCUBE, topology)
    simulation = Simulation(plan_of(BCUBE, topology), stack_of(BCUBE), core_flows(BCUBE, topology, flows))
    for flow in flows:
        five_tuple = FiveTuple(flow.src_ip, flow.dst_ip, PROTO_TCP, flow.cport, flow.port)
        nodes = path(topology, tables, DIGITS, 1, five_tuple)
        assert list(simulation.path(flow.flow)) == list(ports_along(topology, nodes))


def test_trees_have_no_digits() -> None:
    spec = replace(BCUBE, topology=TopologySpec("fat_tree", {"k": 4}))
    with pytest.raises(UsageError, match="fat_tree has none"):
        check_paths(spec, topos.build("fat_tree", {"k": 4}))
