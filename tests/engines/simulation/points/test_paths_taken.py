"""Which paths simulated subflows take: by the policy, distinct, or BCube's parallel ones."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

import topos
from common.errors import UsageError
from engines.core_setup.paths import choose_paths
from engines.emulation.engine import MininetEngine
from engines.simulation.engine import SimulatorEngine
from model.flows import planned_flows
from model.spec import LinkSpec, RunSpec, StackSpec, TopologySpec, TransportSpec
from tests.support.scenarios.divided_networks import made

DISTINCT = StackSpec(replacement=False)


def spec_of(kind: str, params: dict[str, int], subflows: int, **more: Any) -> RunSpec:
    network, transport = TopologySpec(kind, params), TransportSpec(subflows, "lia")
    return RunSpec(LinkSpec(100.0), network, transport, engine="simulator", **more)


def paths_of(spec: RunSpec) -> list[list[tuple[tuple[int, ...], tuple[int, ...]]]]:
    """Return, for each flow, the ports there and back of each subflow."""
    topology = topos.build(spec.topology.kind, spec.topology.params)
    flows = planned_flows(spec, topology)
    simulation = made(spec)
    choose_paths(simulation, spec, topology, flows)
    n = spec.transport.subflows
    return [
        [(tuple(simulation.path(i)), tuple(simulation.back_path(i))) for i in range(f * n, f * n + n)]
        for f in range(len(flows))
    ]


@pytest.mark.parametrize(
    ("kind", "params", "most"),
    [("fat_tree", {"k": 6}, 9), ("dual_homed_fat_tree", {"k": 4}, 4), ("vl2", {"da": 6, "di": 4}, 12)],
)
def test_without_replacement_all_paths_are_distinct(kind: str, params: dict[str, int], most: int) -> None:
    """In both directions, for flows with at least one path per subflow. Other flows use all paths equally
    often."""
    found = paths_of(spec_of(kind, params, 8, stack=DISTINCT))
    plain = paths_of(spec_of(kind, params, 8))
    far = 0
    for flow in found:
        for way in (0, 1):
            uses = Counter(subflow[way] for subflow in flow)
            assert max(uses.values()) - min(uses.values()) <= 1
            assert len(uses) in {1, 2, 3, most, 8}
            far += len(uses) == min(8, most)
    assert far > len(found) / 2, "many flows go far"
    assert any(len(set(flow)) < 8 for flow in plain), "with replacement some subflows share a path"


def test_distinct_paths_follow_from_the_seed() -> None:
    spec = spec_of("fat_tree", {"k": 4}, 3, stack=DISTINCT)
    assert paths_of(spec) == paths_of(spec) != paths_of(replace(spec, seed=2))


def test_bcubes_subflows_leave_by_all_nics_and_share_nothing() -> None:
    topology = topos.build("bcube", {"n": 4, "k": 2})
    first_ports = {host: {2 * nic.link for nic in topology.nics_of(host)} for host in topology.hosts}
    for flow in paths_of(spec_of("bcube", {"n": 4, "k": 2}, 3)):
        there, back = [set(p) for p, _ in flow], [set(p) for _, p in flow]
        assert {path[0] for path, _ in flow} in first_ports.values()
        for ways in (there, back):
            assert sum(map(len, ways)) == len(set.union(*ways)), "no port is used twice"
        assert [[port ^ 1 for port in reversed(path)] for path, _ in flow] == [list(path) for _, path in flow]


def test_tcp_in_bcube_and_other_policies_keep_the_shortest_paths() -> None:
    for subflows, routing in ((1, "hashed"), (3, "ecmp")):
        found = paths_of(spec_of("bcube", {"n": 4, "k": 2}, subflows, routing=routing))
        assert max(len(path) for flow in found for way in flow for path in way) == 6


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        (spec_of("fat_tree", {"k": 4}, 8, stack=DISTINCT, routing="ecmp"), "choose --routing hashed"),
        (spec_of("bcube", {"n": 2, "k": 2}, 1, routing="valiant"), "exceed 10 links"),
    ],
)
def test_impossible_choices_are_refused(spec: RunSpec, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        SimulatorEngine().check(spec)


def test_the_emulator_does_not_choose_paths() -> None:
    with pytest.raises(UsageError, match="stack replacement=off"):
        MininetEngine().check(replace(spec_of("fat_tree", {"k": 4}, 8, stack=DISTINCT), engine="mininet"))
