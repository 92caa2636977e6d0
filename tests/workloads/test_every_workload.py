"""Every registered workload with any parameters: right flows, the same every time, or one UsageError."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import UsageError
from topos import build as build_topology
from workloads.flow import MAX_FLOWS, Flow, Traffic
from workloads.generated import MAX_DSCP
from workloads.matrices import MATRICES, Matrix, Value, build, label, parse

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
