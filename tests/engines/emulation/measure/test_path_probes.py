"""Probes: one per subflow where there are few subflows, one per flow where there are many."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import topos
from controllers.groups import ecmp_groups
from controllers.hashing import PROTO_TCP, PROTO_UDP, FiveTuple
from controllers.routing import path
from engines.emulation.measure.path_pings import PingReadings, Probe, decided, probes_for
from engines.emulation.measure.socket_table import SubflowReadings
from model.flows import STRIDE, planned_flows
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec, sub_seed

SPEC = RunSpec(LinkSpec(5), TopologySpec("fat_tree", {"k": 4}), TransportSpec(4))
TREE = topos.build("fat_tree", {"k": 4})
FLOWS = planned_flows(SPEC, TREE)


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
        cport = flow.cport + probe.subflow * STRIDE
        for udp, tcp in (
            (
                FiveTuple(src_ip, dst_ip, PROTO_UDP, probe.sport, probe.dport),
                FiveTuple(src_ip, dst_ip, PROTO_TCP, cport, flow.port),
            ),
            (
                FiveTuple(dst_ip, src_ip, PROTO_UDP, probe.dport, probe.sport),
                FiveTuple(dst_ip, src_ip, PROTO_TCP, flow.port, cport),
            ),
        ):
            assert path(net, tables, policy, seed, udp) == path(net, tables, policy, seed, tcp)


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
    names = (
        *("cwnd_pkts", "ssthresh_pkts", "srtt_us", "rttvar_us", "min_rtt_us", "retransmits", "bytes_acked"),
        *("delivered_pkts", "delivery_rate_bps", "unacked_pkts", "notsent_bytes", "busy_us"),
        *("rwnd_limited_us", "cc"),
    )
    seen = SubflowReadings(
        t_s=0.0,
        took_s=0.0,
        flow=np.zeros(2, np.int64),
        subflow=np.arange(2),
        laddr=np.full(2, address[0]),
        raddr=np.full(2, address[1]),
        lport=lport,
        rport=np.full(2, flow.port),
        mptcp=np.ones(2, np.bool_),
        cc_names=("reno",),
        **{name: np.zeros(2, np.int64) for name in names},
    )
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
