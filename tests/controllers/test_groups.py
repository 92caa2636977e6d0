"""ECMP tables against the graph's own shortest paths, found by an independent search."""

from __future__ import annotations

import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.groups import EcmpTables, NextHop, ecmp_groups
from topos import Kind, Layer, Topology, build

CASES: dict[str, tuple[Topology, EcmpTables]] = {}
for _kind, _k in (("ft", 4), ("ft", 8), ("dhft", 4), ("dhft", 6)):
    _topology = build(_kind, {"k": _k})
    CASES[f"{_kind},{_k}"] = (_topology, ecmp_groups(_topology))


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(sorted(CASES)), st.data())
def test_groups_count_the_shortest_paths_beyond_each_next_hop(case: str, data: st.DataObject) -> None:
    topology, tables = CASES[case]
    switch = data.draw(st.sampled_from(topology.switches))
    target = data.draw(st.integers(0, len(tables.attach) - 1))
    paths = topology.shortest_paths(switch, tables.attach[target])
    assert tables.path_count(switch, target) == len(paths)
    expected = Counter(path[1] for path in paths if len(path) > 1)
    assert tables.group(switch, target) == tuple(NextHop(node, expected[node]) for node in sorted(expected))


BCUBE = build("bcube", {"n": 3, "k": 2})
BCUBE_TABLES = ecmp_groups(BCUBE)


@settings(deadline=None, max_examples=30)
@given(st.data())
def test_hosts_that_forward_have_groups_too(data: st.DataObject) -> None:
    node = data.draw(st.integers(0, len(BCUBE.nodes) - 1))
    target = data.draw(st.integers(0, len(BCUBE_TABLES.attach) - 1))
    assert BCUBE_TABLES.attach == BCUBE.hosts
    paths = BCUBE.shortest_paths(node, BCUBE_TABLES.attach[target])
    expected = Counter(path[1] for path in paths if len(path) > 1)
    assert dict(BCUBE_TABLES.group(node, target)) == expected


@pytest.mark.parametrize("case", sorted(CASES))
def test_rows_of_hosts_and_of_the_switch_itself_are_empty(case: str) -> None:
    topology, tables = CASES[case]
    assert (tables.rows[list(topology.hosts)] == -1).all() and not tables.group(topology.hosts[0], 0)
    for position, switch in enumerate(tables.attach):
        assert tables.fib[tables.rows[switch], position] == -1
    assert tables.fib.dtype == np.int32 and not tables.fib.flags.writeable
    assert list(tables.attach) == sorted({nic.switch for nic in topology.nics})
    assert len(set(tables.groups)) == len(tables.groups)
    used = set(np.unique(tables.fib).tolist()) - {-1}
    assert used == set(range(len(tables.groups)))
    assert all(topology.nodes[hop.node].kind is Kind.SWITCH for group in tables.groups for hop in group)


def test_a_fat_tree_edge_switch_has_one_group_upwards_per_kind_of_destination() -> None:
    topology, tables = CASES["ft,8"]
    edge = topology.index("p0e0")
    sizes = Counter(len(tables.group(edge, target)) for target in range(len(tables.attach)))
    assert sizes == {4: 31, 0: 1}
    assert len({int(number) for number in tables.fib[tables.rows[edge]]} - {-1}) == 2, (
        "inside the pod, and beyond it"
    )


def test_core_switches_have_one_way_down() -> None:
    topology, tables = CASES["ft,8"]
    for core in (i for i, node in enumerate(topology.nodes) if node.layer is Layer.CORE):
        assert all(len(tables.group(core, target)) == 1 for target in range(len(tables.attach)))


def test_star_needs_no_groups() -> None:
    topology = build("star", {"n": 3})
    tables = ecmp_groups(topology)
    assert tables.groups == () and tables.path_count(topology.switches[0], 0) == 1


@pytest.mark.parametrize(("k", "seconds"), [(16, 2), (32, 5)])
def test_large_trees_take_seconds_at_most(k: int, seconds: float) -> None:
    topology = build("ft", {"k": k})
    start = time.process_time()
    tables = ecmp_groups(topology)
    assert time.process_time() - start < seconds
    last = len(tables.attach) - 1
    assert tables.path_count(tables.attach[0], last) == k * k // 4
