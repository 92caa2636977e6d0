"""Points of figures: every matrix, the paths that packets take, windows of sockets and idle subflows."""

from __future__ import annotations

import dataclasses
import itertools
import math
import statistics
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import topos
from analysis.completion import completions
from analysis.idleness import idleness
from common.errors import UsageError
from engines.core_setup import choose_paths
from engines.emulation.engine import MininetEngine
from engines.simulation.engine import SimulatorEngine
from model.flows import planned_flows
from model.result import RunResult
from model.spec import (
    LINUX,
    LinkSpec,
    RunSpec,
    SamplingSpec,
    StackSpec,
    TopologySpec,
    TransportSpec,
    WorkloadSpec,
)
from tests.support.scenarios.divided_networks import made
from tests.support.simulated_networks import result_of
from workloads.matrices import MATRICES

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


@pytest.mark.parametrize("matrix", [name for name, each in MATRICES.items() if each.kind == "engines.flows"])
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


SPEC = RunSpec(
    LinkSpec(10.0, 100.0), TopologySpec("two_bottlenecks", {"first": 8, "second": 0, "lanes": 2}),
    TransportSpec(2, "lia"), WorkloadSpec("against_tcp"),
    engine="simulator", warmup_s=2.0, seconds=6.0, sampling=SamplingSpec(sockets_ms=20),
)  # fmt: skip


def run(stack: StackSpec) -> RunResult:
    return result_of(dataclasses.replace(SPEC, stack=stack))


def test_idle_by_samples_is_idle_by_the_windows_ends() -> None:
    result = run(dataclasses.replace(LINUX, send_buffer=120))
    table = idleness(result.samples["sockets"])
    assert np.isfinite(table["idle_pct"]).all() and np.isfinite(table["starved_pct"]).all()
    assert ((table["idle_pct"] >= 0) & (table["idle_pct"] <= 100)).all()
    assert float(table["idle_pct"].mean()) == pytest.approx(result.metrics["subflow_idle_pct"], abs=1e-6)
    plain = np.bincount(table["flow"])[table["flow"]] == 1
    assert not table["idle_pct"][plain].any()


def test_a_small_buffer_that_bursts_fill_starves_subflows_and_a_reserve_does_not() -> None:
    def mptcps(stack: StackSpec) -> tuple[float, float]:
        table = idleness(run(stack).samples["sockets"])
        of_mptcp = np.bincount(table["flow"])[table["flow"]] > 1
        return table["idle_pct"][of_mptcp].max(), table["starved_pct"][of_mptcp].max()

    small, large = mptcps(dataclasses.replace(LINUX, send_buffer=120)), mptcps(LINUX)
    assert small[0] > 5 and small[1] > 5
    assert large[0] < small[0] and large[1] < small[1]


DISTINCT = StackSpec(replacement=False)


def spec_of(kind: str, params: dict[str, int], subflows: int, **more: Any) -> RunSpec:
    network, transport = TopologySpec(kind, params), TransportSpec(subflows, "lia")
    return RunSpec(LinkSpec(100.0), network, transport, engine="simulator", **more)


def paths_of(spec: RunSpec) -> list[list[tuple[tuple[int, ...], tuple[int, ...]]]]:
    """Return, for each flow, the ports there and back of each subflow."""
    topology = spec.network()
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
