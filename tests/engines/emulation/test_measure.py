"""Rows and tables made of the readings of a run, and which paths are pinged. Without hosts."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

import topos
from controllers.groups import ecmp_groups
from controllers.hashing import PROTO_TCP, PROTO_UDP, FiveTuple
from controllers.routing import path
from engines.emulation.kernel.proc import CpuSample, CpuUse
from engines.emulation.measure import summarise
from engines.emulation.measure.observing import Readings, Sample
from engines.emulation.measure.path_pings import PingReadings, Probe, decided, probes_for
from engines.emulation.measure.socket_table import SocketReadings
from engines.emulation.measure.summarise import retransmits, sample_parts
from engines.engine import Silent
from engines.wire import ResultReader, messages
from model.flows import STRIDE, planned_flows
from model.result import RunResult, Status, Table
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec, sub_seed
from tests.engines.emulation.test_subflow_index import readings, table

BEFORE = readings((0, 0, 1100, 5), (1, 0, 1101, 7), (1, 1, 1102, 2))
AFTER = readings((0, 0, 1100, 8))
"""Flow 0 still runs, flow 1 had two subflows and is gone, flow 2 began and ended in between."""


@pytest.mark.parametrize(
    ("in_all", "ended_within", "expected"),
    [
        ((None, 12, 4), (None, True, True), [3, 3, 4]),
        ((None, 9, 4), (None, False, True), [3, 0, 4]),  # flow 1 ended before the window
        ((8, 9, 4), (None, True, True), [3, 0, 4]),  # the count of flow 0 came after its end was asked for
        ((None, None, 4), (None, True, True), [3, 0, 4]),  # a kernel that does not say
        ((None, 3, 4), (None, True, True), [3, 0, 4]),  # a subflow of flow 1 had gone before
    ],
)
def test_a_completed_flow_has_its_senders_count(
    in_all: tuple[int | None, ...], ended_within: tuple[bool | None, ...], expected: list[int]
) -> None:
    assert retransmits(BEFORE, AFTER, in_all, ended_within) == expected


MB = 1e6
RATES = np.array([10_000_000, 10_000_000])


def sample(t_s: float) -> Sample:
    idle = CpuSample(CpuUse(0.0, 0.0, 0.0, 0.0, 0.0), {})
    return Sample(t_s, [int(t_s)], idle, np.full(2, t_s), np.zeros(2, np.uint64), t_s - 1.0)


def look(t_s: float, subflows: int) -> SocketReadings:
    of_a_flow = table(np.full(subflows, round(t_s)), np.arange(subflows), cwnd_pkts=[round(t_s)] * subflows)
    return replace(of_a_flow, t_s=t_s)


def sampled(lengths: np.ndarray[Any, Any], looks: int = 0) -> Readings:
    """Readings of 4 s, with rows of queue lengths in equal steps; the window opens after 1 s."""
    times = np.linspace(0.0, 3.0, len(lengths), endpoint=False)
    return Readings(
        samples=[sample(1.0 + t) for t in range(4)],
        opened_at=1,
        sockets=[look(2.0 + i, 3) for i in range(looks)],
        totals=cast(Any, None),
        queues=(times, lengths),
        pings=None,
        up_s=(),
        started_s=(),
        completed_s=(),
        retransmitted=(),
        opened_subflows=(),
        acked_bytes=np.zeros(1, np.int64),
        stalled=(),
        waiting=(),
    )


def together(parts: list[tuple[str, Table]]) -> dict[str, Table]:
    received = ResultReader(Silent())
    for message in messages(RunResult(Status.OK), parts):
        received.take(message)
    return dict(received.result("test").samples)


def test_parts_are_the_whole_tables_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = np.random.default_rng(1).integers(0, 3, (30, 2)).astype(np.uint32)
    whole = list(sample_parts(sampled(lengths, looks=5), RATES))
    monkeypatch.setattr(summarise, "PART_ROWS", 7)
    parts = list(sample_parts(sampled(lengths, looks=5), RATES))
    names = [name for name, _ in whole]
    assert names == ["goodput", "cpu", "links", "queues", "queue_times", "sockets"]
    counted = {name: sum(name == part for part, _ in parts) for name in names}
    assert counted == {**dict.fromkeys(names, 1), "queues": 10, "sockets": 3}
    assert together(parts) == dict(whole)


def test_queue_lengths_keep_their_times_and_ports() -> None:
    lengths = np.array([[0, 2], [0, 0], [7, 0]], np.uint32)
    tables = dict(sample_parts(sampled(lengths), RATES))
    assert tables["queues"] == Table(
        {"t_s": np.array([-1.0, 1.0]), "port": np.array([1, 0]), "pkts": np.array([2, 7])}
    )
    assert tables["queue_times"] == Table({"t_s": np.array([-1.0, 0.0, 1.0])})
    without = dict(sample_parts(sampled(lengths[:0]), RATES))
    assert len(without["queues"]) == len(without["queue_times"]) == 0


def test_sending_all_samples_needs_little_memory() -> None:
    """A guest's program with k=8 and 100 s of queue lengths had more pieces of memory than Linux maps."""
    filled = sampled(np.ones((4000, 500), np.uint32))
    tracemalloc.start()
    sent = 0
    for message in messages(RunResult(Status.OK), sample_parts(filled, RATES)):
        sent += len(json.dumps(message))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sent > 60 * MB
    assert peak < 30 * MB


SPEC = RunSpec(LinkSpec(5), TopologySpec("fat_tree", {"k": 4}), TransportSpec(4))
TREE = topos.build("fat_tree", {"k": 4})
FLOWS = planned_flows(SPEC, TREE)


def reverse(of: FiveTuple) -> FiveTuple:
    return FiveTuple(of.dst, of.src, of.proto, of.dport, of.sport)


def keys(probes: list[Probe]) -> list[tuple[int, int]]:
    return [(probe.flow, probe.subflow) for probe in probes]


@pytest.mark.parametrize("policy", ["hashed", "ecmp"])
@pytest.mark.parametrize("kind", ["fat_tree", "dual_homed_fat_tree"])
def test_every_subflow_has_a_probe_on_its_paths(kind: str, policy: str) -> None:
    spec = replace(SPEC, topology=TopologySpec(kind, {"k": 4}), routing=policy)
    net = topos.build(kind, {"k": 4})
    flows, tables = planned_flows(spec, net), ecmp_groups(net)
    probes = probes_for(spec, net, flows)
    assert keys(probes) == [(flow.flow, i) for flow in flows for i in range(4)]
    seed = sub_seed(spec.seed, "routing")
    for probe in probes:
        flow = flows[probe.flow]
        nics = [net.nics_of(net.index(name)) for name in (flow.src, flow.dst)]
        src_ip, dst_ip = (own[probe.subflow % len(own)].ip for own in nics)
        assert (probe.src, probe.dst, probe.src_ip, probe.dst_ip) == (flow.src, flow.dst, src_ip, dst_ip)
        tcp = FiveTuple(src_ip, dst_ip, PROTO_TCP, flow.cport + probe.subflow * STRIDE, flow.port)
        udp = FiveTuple(src_ip, dst_ip, PROTO_UDP, probe.sport, probe.dport)
        for ping, data in ((udp, tcp), (reverse(udp), reverse(tcp))):
            assert path(net, tables, policy, seed, ping) == path(net, tables, policy, seed, data)


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (64, [(flow, i) for flow in range(16) for i in range(4)]),
        (63, [(flow, 0) for flow in range(16)]),
        (16, [(flow, 0) for flow in range(16)]),
        (15, [(flow, 0) for flow in range(0, 16, 2)]),
        (5, [(flow, 0) for flow in range(0, 16, 4)]),
        (0, []),
    ],
)
def test_many_subflows_are_thinned(most: int, expected: list[tuple[int, int]]) -> None:
    assert keys(probes_for(SPEC, TREE, FLOWS, most=most)) == expected


def test_subflows_that_were_seen_are_probed_where_they_are() -> None:
    """One subflow has another port than planned, and one never came up."""
    planned = probes_for(SPEC, TREE, FLOWS[:1])
    flow = FLOWS[0]
    nics = [TREE.nic_by_ip(ip) for ip in (flow.src_ip, flow.dst_ip)]
    lport = np.array([flow.cport, flow.cport + STRIDE + 251])
    address = [int.from_bytes(bytes(map(int, nic.ip.split("."))), "big") for nic in nics]
    ends = {"laddr": [address[0]] * 2, "raddr": [address[1]] * 2, "lport": lport, "rport": [flow.port] * 2}
    seen = table(np.zeros(2), np.arange(2), **ends)
    probes = probes_for(SPEC, TREE, FLOWS[:1], seen)
    assert keys(probes) == [(0, 0), (0, 1)]
    assert probes[0] == planned[0]
    assert probes[1] != planned[1]


def test_pings_under_way_are_not_lost_yet() -> None:
    sent = np.array([0.0, 1.0, 8.0, 9.5])
    rtt = np.array([1500.0, np.nan, np.nan, 10.0])
    zeros = np.zeros(4, np.int64)
    known = decided(PingReadings(sent, zeros, zeros, rtt, rtt, rtt), 10.0)
    assert known.sent_s.tolist() == [0.0, 1.0, 9.5], "the answer to 8.0 may still come: another took 1.5 s"
