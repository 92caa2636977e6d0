"""Whole points at k=4 on real kernels: counts and physics, never an exact throughput."""

from __future__ import annotations

import dataclasses
import platform
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from analysis.idleness import idleness
from analysis.plausibility import OVER_CARRIED_PCT
from controllers.hashing import FiveTuple
from controllers.routing import path, tables_of
from engines.emulation.engine import MininetEngine
from engines.engine import Silent
from model.flows import STRIDE
from model.result import SAMPLE_COLUMNS, Instant, RunResult, Status
from model.spec import (
    LinkSpec,
    RunSpec,
    SamplingSpec,
    TopologySpec,
    TransportSpec,
    WorkloadSpec,
    sub_seed,
)
from tests.support.machine_noise import exact, only_noise, repeated, run_once

pytestmark = [pytest.mark.emulation, pytest.mark.physics]

RATE_MBPS = 10.0
PAYLOAD = 1448 / 1514
TCP = 6


def spec(subflows: int, workload: str = "one_to_one", cc: str = "reno") -> RunSpec:
    return RunSpec(
        link=LinkSpec(RATE_MBPS),
        topology=TopologySpec("fat_tree", {"k": 4}),
        transport=TransportSpec(subflows, cc),
        workload=WorkloadSpec(workload),
        warmup_s=2.0,
        seconds=4.0,
        sampling=SamplingSpec(queues_ms=100),
    )


class Following(Silent):
    """An observer that keeps the states that a run reports."""

    def __init__(self) -> None:
        self.seen: list[Instant] = []

    def instant(self, seen: Instant) -> None:
        self.seen.append(seen)


def check_physics(result: RunResult, flows: int) -> None:
    assert only_noise(result), result.reasons
    with exact():
        check_counts(result, flows)
    assert all(flow.goodput_mbps > 0 for flow in result.flows)
    assert all(0 <= port.utilisation_pct <= 100.5 for port in result.ports)


def check_counts(result: RunResult, flows: int) -> None:
    assert len(result.flows) == flows
    assert result.provenance["kernel"] == platform.release(), "no counter may take its place"
    before, after = (result.provenance["counters"][when] for when in ("before", "after"))
    for name in ("not_ipv4", "vlan_tagged", "no_such_host", "oversized", "no_memory", "send_refused"):
        assert after[name] == 0, name
    assert after["injected"] == sum(after[fate] for fate in ("delivered", "dropped", "lost", "in_flight"))
    assert sum(port.drops for port in result.ports) == after["dropped"] - before["dropped"]
    assert all(port.max_queue_pkts <= 100 for port in result.ports)


def check_links_are_not_outrun(result: RunResult, wanted: RunSpec) -> None:
    """Check the whole traffic: a window also counts data that waited behind a gap when it opened."""
    goodput = result.samples["goodput"]
    instants = sorted(set(goodput["t_s"].tolist()))
    interval_s = dict(zip(instants[1:], np.diff(instants), strict=True))
    traffic_s = wanted.warmup_s + wanted.seconds + max(flow.up_s for flow in result.flows) + 0.5
    for flow in result.flows:
        mine = goodput["flow"] == flow.flow
        seen = zip(goodput["t_s"][mine].tolist(), goodput["mbps"][mine].tolist(), strict=True)
        received_mb = sum(mbps * interval_s.get(t_s, 0.0) for t_s, mbps in seen)
        assert 0 < received_mb <= RATE_MBPS * PAYLOAD * traffic_s


def test_one_uncongested_flow_fills_the_link(engine: MininetEngine, tmp_path: Path) -> None:
    result = run_once(engine, spec(1, "reference"), tmp_path)
    check_physics(result, 1)
    check_links_are_not_outrun(result, spec(1))
    assert len(result.samples["goodput"]) == len(result.samples["cpu"]) - 1
    assert set(result.samples["queue_times"]["t_s"].tolist())
    assert result.flows[0].goodput_mbps >= RATE_MBPS * PAYLOAD * 0.9, result.reasons


def test_a_permutation_over_tcp(engine: MininetEngine, tmp_path: Path) -> None:
    result = run_once(engine, spec(1), tmp_path)
    check_physics(result, 16)
    assert {flow.cc for flow in result.flows} == {"reno"}
    check_links_are_not_outrun(result, spec(1))
    # A host's downlink carries its one flow's data and its own flow's acknowledgements.
    into = {port.peer: port for port in result.ports if port.layer == "edge-host"}
    for flow in result.flows:
        assert into[flow.dst].tx_bytes >= 0.9 * flow.bytes_received


def test_mptcp_takes_the_paths_that_routing_predicts(engine: MininetEngine, tmp_path: Path) -> None:
    wanted = spec(4, cc="cubic")
    result = run_once(engine, wanted, tmp_path)
    check_physics(result, 16)
    assert {(flow.subflows_asked, flow.subflows_joined) for flow in result.flows} == {(4, 4)}
    assert {flow.cc for flow in result.flows} == {"cubic"}
    assert not result.provenance["path_manager_errors"]
    assert 50 < result.metrics[OVER_CARRIED_PCT] < 150
    check_paths(wanted, result)


def test_mptcp_takes_the_paths_that_a_policy_lists(engine: MininetEngine, tmp_path: Path) -> None:
    """Pings find ports for them, too. ECMP would leave links unused that these paths pass."""
    network = TopologySpec("jellyfish", {"switches": 10, "ports": 6, "servers": 2})
    wanted = dataclasses.replace(
        spec(8, cc="cubic"), topology=network, routing="ksp:4", sampling=SamplingSpec(pings_ms=250)
    )
    result = run_once(engine, wanted, tmp_path)
    check_physics(result, 20)
    assert {flow.subflows_joined for flow in result.flows} == {8}
    check_paths(wanted, result)
    shortest = dataclasses.replace(wanted, routing="ecmp")
    assert len(expected_links(shortest, result)) < len(used_links(result))


def check_paths(wanted: RunSpec, result: RunResult) -> None:
    """Nothing goes where routing does not send it; a subflow may be silent for a window of seconds."""
    expected, used = expected_links(wanted, result), used_links(result)
    with exact():
        assert used <= expected
    assert len(used) >= 0.95 * len(expected)


def expected_links(wanted: RunSpec, result: RunResult) -> set[tuple[str, str]]:
    """Return the directed links that data and acknowledgements of all subflows should use above the edge."""
    topology = wanted.network()
    tables, seed = tables_of(topology, wanted.routing), sub_seed(wanted.seed, "routing")
    links = set()
    for flow in result.flows:
        for i in range(flow.subflows_asked):
            there = FiveTuple(flow.src_ip, flow.dst_ip, TCP, flow.sport + i * STRIDE, flow.dport)
            back = FiveTuple(flow.dst_ip, flow.src_ip, TCP, flow.dport, flow.sport + i * STRIDE)
            for direction in (there, back):
                nodes = path(topology, tables, wanted.routing, seed, direction)
                names = [topology.nodes[node].name for node in nodes]
                links |= set(pairwise(names[1:-1]))
    return links


def used_links(result: RunResult) -> set[tuple[str, str]]:
    """Return the links that were used; iperf3's control connections are idle inside the window."""
    return {(port.node, port.peer) for port in result.ports if port.tx_packets and "host" not in port.layer}


def test_everything_is_sampled_and_agrees_and_a_second_run_takes_the_same_paths(
    engine: MininetEngine, tmp_path: Path
) -> None:
    """The kernel's round trips and those of pings are of the same paths; queues explain both."""
    wanted = dataclasses.replace(spec(2), sampling=SamplingSpec(queues_ms=100, sockets_ms=250, pings_ms=250))
    feed = Following()

    def followed() -> RunResult:
        feed.seen.clear()
        return engine.run(wanted, feed, tmp_path)

    engine.check(wanted)
    result = repeated(followed)
    check_physics(result, 16)
    check_feed(feed.seen, result, wanted)
    tables = result.samples
    assert set(tables) == {*SAMPLE_COLUMNS}
    assert set(
        zip(tables["sockets"]["flow"].tolist(), tables["sockets"]["subflow"].tolist(), strict=True)
    ) == {(flow, subflow) for flow in range(16) for subflow in range(2)}
    check_sockets(result, wanted.warmup_s + wanted.seconds)
    assert tables["queues"]["pkts"].max() <= 100
    assert {len(set(tables[name]["t_s"].tolist())) >= 5 for name in ("cpu", "links")} == {True}
    assert all(port.utilisation_median_pct <= 101 for port in result.ports)
    full_queue_ms = 100 * 1514 * 8 / wanted.link.rate_mbps / 1000
    for flow in result.flows:
        assert flow.pings_sent > flow.pings_lost
        assert 0 < flow.srtt_ms_mean < 12 * full_queue_ms
        assert 0 < flow.ping_ms_mean < 12 * full_queue_ms
    again = run_once(engine, spec(2), tmp_path)
    ends = [[(f.src, f.dst, f.sport, f.dport) for f in each.flows] for each in (result, again)]
    assert ends[0] == ends[1]
    check_paths(wanted, result)
    check_paths(wanted, again)


def check_feed(seen: list[Instant], result: RunResult, wanted: RunSpec) -> None:
    """Check that the states of every second have the counts of the run's own tables."""
    assert len(seen) >= 6 and seen[0].t_s < 0 < seen[-1].t_s
    assert all(np.diff([each.t_s for each in seen]) > 0)
    last, first = seen[-1], seen[0]
    assert last.windows is not None and len(last.windows.flow) >= 2 * 16
    assert (last.windows.cwnd_pkts > 0).all() and (last.windows.srtt_ms > 0).any()
    assert (last.sent_bytes >= first.sent_bytes).all() and last.sent_bytes.sum() > first.sent_bytes.sum()
    stored, times = result.samples["ports"], np.unique(result.samples["links"]["t_s"])
    counted = last.drops - seen[-4].drops
    found = stored["t_s"] > times[-4]
    ports = np.bincount(stored["port"][found], weights=stored["drops"][found], minlength=len(counted))
    assert np.array_equal(ports, counted)
    assert stored["queued_pkts"].max() <= wanted.link.queue_pkts + 1


def check_sockets(result: RunResult, traffic_s: float) -> None:
    """Check that the subflows' counters agree with each other and with what the connections delivered."""
    sockets = result.samples["sockets"]
    assert (sockets["cwnd_pkts"] >= 1).all()
    assert (sockets["notsent_bytes"] >= 0).all()
    assert (sockets["rwnd_limited_ms"] <= sockets["busy_ms"]).all()
    assert sockets["busy_ms"].max() <= 1000 * (traffic_s + 3 * max(f.up_s for f in result.flows) + 1)
    seen = idleness(sockets)
    assert len(seen) == len(set(zip(sockets["flow"].tolist(), sockets["subflow"].tolist(), strict=True)))
    assert ((seen["starved_pct"] >= 0) & (seen["starved_pct"] <= 100)).all()
    assert (seen["idle_pct"] <= 100).all()
    # The samples' window is up to two intervals shorter than the one that is measured.
    assert float(seen["idle_pct"].mean()) == pytest.approx(result.metrics["subflow_idle_pct"], abs=15)
    goodput = sum(flow.goodput_mbps for flow in result.flows)
    assert float(seen["mbps"].sum()) == pytest.approx(goodput, rel=0.2)


def test_unbounded_queues_drop_nothing(engine: MininetEngine, tmp_path: Path) -> None:
    link = LinkSpec(RATE_MBPS / 4, queue_pkts=0, nic_queue_pkts=0)
    wanted = dataclasses.replace(spec(1), link=link, sampling=SamplingSpec(queues_ms=100, sockets_ms=250))
    result = run_once(engine, wanted, tmp_path)
    assert only_noise(result), result.reasons
    assert sum(port.drops for port in result.ports) == 0
    assert max(port.max_queue_pkts for port in result.ports) > 100, "TCP fills what never drops"


def test_an_overloaded_machine_is_reported_and_the_run_ends(engine: MininetEngine, tmp_path: Path) -> None:
    wanted = dataclasses.replace(spec(8), link=LinkSpec(1000.0), warmup_s=1.0, seconds=3.0)
    engine.check(wanted)
    result = engine.run(wanted, Silent(), tmp_path)
    assert result.status is Status.SUSPECT
    assert any(reason.about.machine for reason in result.reasons)
    assert len(result.flows) == 16


def test_native_traffic_is_traffic_like_any_other(engine: MininetEngine, tmp_path: Path) -> None:
    wanted = dataclasses.replace(spec(4), traffic="native")
    result = run_once(engine, wanted, tmp_path)
    check_physics(result, 16)
    assert all(flow.subflows_joined == 4 for flow in result.flows)
    check_links_are_not_outrun(result, wanted)
