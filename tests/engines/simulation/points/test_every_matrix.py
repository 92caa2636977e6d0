"""Workloads in the simulator: every matrix runs, sized flows complete, loads arrive, and runs repeat."""

from __future__ import annotations

import dataclasses
import itertools
import math
import statistics

import pytest

from analysis.completion import completions
from model.spec import LinkSpec, RunSpec, StackSpec, TopologySpec, TransportSpec, WorkloadSpec
from tests.support.simulated_networks import result_of
from workloads.matrices import FLOWS, MATRICES, kind_of

ARRIVING = ("poisson", "closed_loop", "short_and_long", "short_and_long_alike")
SIZED = {
    *ARRIVING, "transfers", "permuted_loop", "in_turn", "pairs", "map_reduce", "trace", "incast", "to_one",
    "joined_permutation",
}  # fmt: skip
SIZES: dict[str, dict[str, int | str]] = {
    "transfers": {"kb": 20_000},
    "incast": {"packets": 10_000},
    "trace": {"name": "one", "flows": "0.1,p0e0h0,p1e0h0,3000000"},
}
"""So that they last into the window."""
MADE_FOR = {
    "against_tcp": TopologySpec("dumbbell", {"n": 2, "lanes": 1}),
    "neighbours": TopologySpec("bcube", {"n": 4, "k": 1}),
    "in_turn": TopologySpec("cloud", {"n": 4, "racks": 2, "tenants": 1}),
}


def spec(matrix: str, **params: int | str) -> RunSpec:
    return RunSpec(
        LinkSpec(100.0, 10.0), MADE_FOR.get(matrix, TopologySpec("fat_tree", {"k": 4})),
        TransportSpec(2, "lia"), WorkloadSpec(matrix, params or SIZES.get(matrix, {})),
        engine="simulator", warmup_s=0.2, seconds=0.6,
        stack=StackSpec(min_rto_ms=10.0, delayed_ack_ms=0.0),
    )  # fmt: skip


@pytest.mark.parametrize("matrix", [name for name in MATRICES if kind_of(name) == FLOWS])
def test_every_matrix_runs(matrix: str) -> None:
    result = result_of(spec(matrix))
    assert result.flows
    assert any(flow.bytes_received or math.isfinite(flow.completed_s) for flow in result.flows)
    assert any(flow.size_bytes for flow in result.flows) == (matrix in SIZED)


def test_all_to_all_of_128_hosts_is_set_up_and_runs() -> None:
    large = dataclasses.replace(spec("all_to_all"), topology=TopologySpec("fat_tree", {"k": 8}))
    of = dataclasses.replace(large, transport=TransportSpec(1), warmup_s=0.0, seconds=0.002)
    assert len(result_of(of).flows) == 128 * 127


@pytest.mark.parametrize("matrix", ARRIVING)
def test_no_flow_is_faster_than_its_path(matrix: str) -> None:
    flows = result_of(spec(matrix)).flows
    done = [flow for flow in flows if math.isfinite(flow.completed_s)]
    assert len(done) > 25
    # Two subflows may find two ways through the network, but hosts have one link.
    assert all(flow.completed_s >= 0.999 * flow.ideal_s for flow in done)


def test_a_light_load_arrives_and_hardly_waits() -> None:
    of = dataclasses.replace(
        spec("poisson", load=10, sizes="fixed-10000"), transport=TransportSpec(1), seconds=2.0
    )
    result = result_of(of)
    sized = completions(result.flows)
    late = [flow for flow in result.flows if flow.start_s > 2.0 - 0.005]
    assert sized.unfinished <= len(late)
    assert statistics.median(sized.slowdowns) < 1.2
    carried = sum(flow.bytes_received for flow in result.flows) * 8 / (16 * 100e6 * 2.0)
    assert 100 * carried == pytest.approx(10, rel=5 / math.sqrt(sized.started))


def test_a_closed_loop_has_one_flow_per_host_at_any_time() -> None:
    result = result_of(spec("closed_loop", sizes="fixed-50000", think_ms=5))
    by_host: dict[str, list[tuple[float, float]]] = {}
    for flow in result.flows:
        if math.isfinite(flow.start_s):
            by_host.setdefault(flow.src, []).append((flow.start_s, flow.completed_s))
    assert len(by_host) == 16
    for flows in by_host.values():
        assert len(flows) > 5
        assert flows == sorted(flows)
        for (start, took), (following, _) in itertools.pairwise(flows):
            assert start + took < following


def test_short_flows_are_plain_beside_long_ones_of_many_subflows() -> None:
    flows = result_of(spec("short_and_long", gap_ms=20)).flows
    assert {(flow.transport, flow.cc) for flow in flows if flow.size_bytes} == {("tcp", "reno")}
    assert {(flow.transport, flow.cc) for flow in flows if not flow.size_bytes} == {("mptcp", "lia")}


def test_equal_specs_give_equal_flows_and_ports() -> None:
    of = spec("poisson", load=60, sizes="uniform-1000-90000")
    first, again = result_of(of), result_of(of)
    assert repr(first.flows) == repr(again.flows)
    assert first.ports == again.ports
    assert repr(result_of(dataclasses.replace(of, seed=2)).flows) != repr(first.flows)
