"""Hosts and traffic programs before they start: sysctls, paths of subflows, impossible flows, iperf3."""

from __future__ import annotations

import errno
import itertools
import math
import os
import resource
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import topos
from common.errors import HostUnfitError, RunError, UsageError
from engines.emulation.hosts import hosts as of_hosts
from engines.emulation.hosts.hosts import is_chosen, sysctls_of
from engines.emulation.kernel.mptcp_genl import EventKind, MptcpEvent
from engines.emulation.kernel.namespaces import HostRef
from engines.emulation.traffic.driver import Delivered, default_cc, is_data, paths_of_each, subflow_paths
from engines.emulation.traffic.iperf3 import client_argv, delivered, parse_report, server_argv
from engines.emulation.traffic.native import NativeDriver, _tables
from fabric._core import FlowDriver, TrafficFlow
from model.flows import STRIDE, AddressPair, PlannedFlow, planned_flows
from model.spec import MAX_SUBFLOWS, LinkSpec, RunSpec, TopologySpec, TransportSpec

EPHEMERAL = 32768


def spec(seed: int = 1, subflows: int = 1) -> RunSpec:
    return RunSpec(LinkSpec(10.0), TopologySpec("fat_tree", {"k": 4}), TransportSpec(subflows), seed=seed)


def pairs(flows: Sequence[PlannedFlow]) -> list[tuple[str, int, str, int]]:
    return [(flow.src_ip, flow.cport, flow.dst_ip, flow.port) for flow in flows]


def test_the_permutation_belongs_to_the_seed_not_to_the_transport() -> None:
    topology = topos.build("fat_tree", {"k": 4})
    flows = planned_flows(spec(), topology)
    assert pairs(flows) == pairs(planned_flows(spec(subflows=8), topology))
    assert flows != planned_flows(spec(seed=2), topology)
    assert [flow.flow for flow in flows] == list(range(16))
    for flow in flows:
        assert topology.nic_by_ip(flow.src_ip).host == topology.index(flow.src)
        assert topology.nic_by_ip(flow.dst_ip).host == topology.index(flow.dst)


def test_hosts_prefer_what_they_send_then_what_they_receive() -> None:
    flow = PlannedFlow(0, "a", "b", "10.0.0.1", "10.0.0.2", 5201, 1100, cc="lia", subflows=2)
    back = replace(flow, flow=1, src="b", dst="c", cc="reno", subflows=1)
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
    other = replace(one, flow=1, cport=1101, subflows=2)
    policy = paths_of_each(topology, [one, other], 1)
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


FLOW = PlannedFlow(3, "a", "b", "10.0.0.1", "10.0.0.2", 5201, 1100)
HOSTS = {name: HostRef(name, os.getpid()) for name in ("a", "b")}


def driver(*flows: PlannedFlow, hosts: dict[str, HostRef] = HOSTS) -> NativeDriver:
    return NativeDriver(flows, hosts)


@pytest.mark.parametrize(
    ("flows", "error"),
    [
        ([replace(FLOW, dst="c")], r"flow 3 \(a 10.0.0.1:1100 -> c 10.0.0.2:5201\): host c does not exist"),
        ([replace(FLOW, size_bytes=-1)], "negative"),
        *(([replace(FLOW, start_s=start_s)], "negative") for start_s in (-0.1, math.nan, math.inf)),
        ([replace(FLOW, cport=0)], "two ports"),
        ([FLOW, replace(FLOW, flow=4)], "two flows from 10.0.0.1:1100 to 10.0.0.2:5201"),
        ([FLOW, replace(FLOW, flow=4, cport=1101, subflows=2)], "5201 share a listener but not a transport"),
        ([replace(FLOW, after=0)], "waits for one that comes later"),
        ([FLOW, replace(FLOW, cport=1101, after=0)], "waits for one without end"),
    ],
)
def test_impossible_flows_are_refused(flows: list[PlannedFlow], error: str) -> None:
    with pytest.raises(UsageError, match=error):
        driver(*flows)


def test_flows_may_share_a_listener() -> None:
    driver(FLOW, replace(FLOW, flow=4, cport=1101))


def test_followers_that_need_more_open_files_than_allowed_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flows = [replace(FLOW, flow=n, cport=1100 + n, after=None if n == 0 else 0) for n in range(100)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 256))
    with pytest.raises(HostUnfitError, match=r"need \d+ open files in one process, and the limit is 256"):
        driver(*flows)
    driver(*(replace(flow, after=None) for flow in flows))


def test_stages_come_in_order() -> None:
    with driver(FLOW) as flows:
        with pytest.raises(RunError, match="release follows connect"):
            flows.release()
        with pytest.raises(RunError, match="connect follows open"):
            flows.connect(1)
        assert flows.received() == [0]
        flows.check()
        assert flows.stop() == [Delivered(0)]


def test_a_host_that_is_gone() -> None:
    missing = {**HOSTS, "a": HostRef("a", 2**22 + 1)}  # above any pid
    with driver(FLOW, hosts=missing) as flows, pytest.raises(RunError, match=r"opening /proc/4194305/ns/net"):
        flows.open()


def test_readings_have_one_entry_per_flow() -> None:
    first: dict[str, Any] = {
        "src_host": 0, "src_ip": 1, "src_port": 1100, "dst_host": 1, "dst_ip": 2, "dst_port": 5201,
        "size_bytes": 0, "start_s": 0.0, "cc": "reno",
    }  # fmt: skip
    back = {"src_host": 1, "src_ip": 2, "dst_host": 0, "dst_ip": 1, "size_bytes": 9, "start_s": 0.5}
    second = {**first, **back, "mptcp": True, "dscp": 46}
    core = FlowDriver([TrafficFlow(**first), TrafficFlow(**second)], [1, 1])
    readings = core.readings()
    assert {len(readings[name]) for name in ("state", "received_bytes", "errno")} == {2}
    for name in ("ready_s", "started_s", "completed_s"):
        assert np.isnan(readings[name]).all()
    with pytest.raises(IndexError):
        core.describe_failure(2)


@pytest.mark.parametrize("hard", [16, 256, 1024, 20_000, 2**20, resource.RLIM_INFINITY])
@pytest.mark.parametrize("flows", [0, 1, 127, 16_256])
def test_tables_hold_all_flows(flows: int, hard: int) -> None:
    loops, fds = _tables(flows, hard)
    assert loops * (fds - 64) >= 3 * flows
    assert loops == 1 or fds <= max(hard, 128)
    assert loops == 1 or hard < 2**20


DATA = Path(__file__).parents[2] / "data" / "iperf3"
IPERF_FLOW = PlannedFlow(3, "a", "b", "10.0.0.1", "10.0.0.2", 5001, 10000)


def report(name: str) -> Delivered:
    return parse_report((DATA / f"{name}.json").read_text())


def test_argv() -> None:
    assert " ".join(server_argv("iperf3", IPERF_FLOW)).startswith("iperf3 -4 -s -1 -p 5001")
    line = " ".join(client_argv("iperf3", IPERF_FLOW, 12.2))
    assert line.startswith("iperf3 -4 -c 10.0.0.2 -p 5001 -B 10.0.0.1 --cport 10000 -t 13 -C reno")
    assert " -l " not in line
    assert " --dscp " not in line
    assert client_argv("iperf3", IPERF_FLOW, 12.2, 4096)[-2:] == ("-l", "4096")
    assert client_argv("iperf3", replace(IPERF_FLOW, dscp=46), 12.2)[-2:] == ("--dscp", "46")


def test_a_flow_that_ended_by_itself() -> None:
    end = delivered(report("client"), report("server"), stopped=False)
    assert end.error == ""
    assert 12_000_000 < end.received_bytes <= 12_665_656


def test_a_flow_we_stopped_has_data_and_no_error() -> None:
    ends = report("client_terminated"), report("server_terminated")
    assert delivered(*ends, stopped=True) == Delivered(14_838_768)
    assert "terminated" in delivered(*ends, stopped=False).error


@pytest.mark.parametrize(
    ("name", "words"), [("client_refused", "Connection refused"), ("client_unknown_cc", "TCP_CONGESTION")]
)
def test_failures_are_read_from_the_json(name: str, words: str) -> None:
    failed = report(name)
    assert words in failed.error
    assert failed.received_bytes == 0


@pytest.mark.parametrize("text", ["", "iperf3: error - x", '{"start": {'])
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not JSON"):
        parse_report(text)


def needed(spec: RunSpec) -> dict[str, str]:
    topology = topos.build("fat_tree", {"k": 4})
    return sysctls_of(spec, topology, planned_flows(spec, topology))


def test_sysctls_follow_the_network() -> None:
    """ECN is negotiated where links mark, and reordering tolerated where packets scatter."""
    usual = needed(RunSpec(LinkSpec(10.0)))
    assert usual == {"net.ipv4.tcp_no_metrics_save": "1"}
    assert needed(RunSpec(LinkSpec(10.0, ecn_pkts=20)))["net.ipv4.tcp_ecn"] == "1"
    assert needed(RunSpec(LinkSpec(10.0), routing="scatter")).keys() > {"net.ipv4.tcp_recovery"}
    assert needed(RunSpec(LinkSpec(10.0), routing="ecmp")) == usual


def test_a_restricted_congestion_control_names_the_command_that_allows_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Refused:
        def write_text(self, _value: str) -> None:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(of_hosts, "sysctl_path", lambda _name: Refused())
    with pytest.raises(
        HostUnfitError, match=r"sysctl -w net\.ipv4\.tcp_allowed_congestion_control=.reno cubic"
    ):
        of_hosts._write_sysctl("h1", "net.ipv4.tcp_congestion_control", "cubic")


@pytest.mark.parametrize("share", [0.0, 0.15, 0.25, 0.5, 1.0])
@pytest.mark.parametrize("hosts", [1, 16, 128])
def test_a_share_of_the_hosts_is_chosen_and_evenly_spread(hosts: int, share: float) -> None:
    chosen = [number for number in range(hosts) if is_chosen(number, share)]
    assert len(chosen) == int(hosts * share)
    gaps = {after - before for before, after in itertools.pairwise(chosen)}
    assert len(gaps) <= 2
